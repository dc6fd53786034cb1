//! Rules about what every room owes the whole: lints, a place in the change log, scenarios that teach.

use super::Finding;
use super::tree::Tree;

const CHANGELOG: &str = "CHANGELOG.md";

/// A crate that does not take the workspace's lints is checked by nobody.
pub(super) fn lints(tree: &Tree) -> Vec<Finding> {
    let takes_them = |manifest: &str| {
        let table: toml::Table = tree.text(manifest)?.parse().ok()?;
        table.get("lints")?.get("workspace")?.as_bool()
    };
    let bare = tree
        .packages
        .iter()
        .filter(|package| takes_them(&package.manifest) != Some(true));
    bare.map(|package| Finding::new(&package.manifest, 0, "add `[lints]` with `workspace = true`"))
        .collect()
}

/// A reader of the change log looks for the room.
pub(super) fn changelog(tree: &Tree) -> Vec<Finding> {
    let text = tree.text(CHANGELOG).unwrap_or("");
    let has = |room: &str| {
        text.lines().any(|line| {
            line.strip_prefix("### ")
                .is_some_and(|title| title.trim() == room)
        })
    };
    let missing = tree
        .packages
        .iter()
        .map(|package| package.room())
        .filter(|room| !has(room));
    missing
        .map(|room| Finding::new(CHANGELOG, 0, format!("no heading `### {room}`")))
        .collect()
}

/// Scenarios are read by people who look for an example.
pub(super) fn scenarios(tree: &Tree) -> Vec<Finding> {
    let is_scenario = |path: &str| path.starts_with("scenarios/") && path.ends_with(".toml");
    let mute = tree
        .texts()
        .filter(|(path, text)| is_scenario(path) && !opens_with_comment(text));
    mute.map(|(path, _)| {
        Finding::new(
            path,
            1,
            "open with a comment: what this scenario shows and what to try",
        )
    })
    .collect()
}

fn opens_with_comment(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    first
        .and_then(|line| line.strip_prefix('#'))
        .is_some_and(|comment| !comment.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Package;

    fn with_sim(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::of(files);
        tree.packages = vec![Package {
            name: "sdmac-sim".to_owned(),
            manifest: "crates/sim/Cargo.toml".to_owned(),
            targets: Vec::new(),
            dependencies: Vec::new(),
        }];
        tree
    }

    #[test]
    fn a_crate_without_the_lints_is_found() {
        let check = |manifest| lints(&with_sim(&[("crates/sim/Cargo.toml", manifest)])).len();
        assert_eq!(check("[lints]\nworkspace = true\n"), 0);
        assert_eq!(check("[lints]\nworkspace = false\n"), 1);
        assert_eq!(check("[package]\nname = \"sdmac-sim\"\n"), 1);
    }

    #[test]
    fn a_room_missing_in_the_change_log_is_found() {
        let check = |text| changelog(&with_sim(&[("CHANGELOG.md", text)])).len();
        assert_eq!(check("## 0.1.0\n\n### sim\n\n- The air.\n"), 0);
        assert_eq!(check("## 0.1.0\n\n### simulator\n\nsim\n"), 1);
        assert_eq!(changelog(&with_sim(&[])).len(), 1);
    }

    #[test]
    fn a_mute_scenario_is_found() {
        let check = |path, text| scenarios(&Tree::of(&[(path, text)])).len();
        assert_eq!(
            check(
                "scenarios/a.toml",
                "\n# Two nodes share one channel.\nnodes = 2\n"
            ),
            0
        );
        assert_eq!(check("scenarios/a.toml", "nodes = 2 # two\n"), 1);
        assert_eq!(check("scenarios/a.toml", "#\nnodes = 2\n"), 1);
        assert_eq!(check("deny.toml", "nodes = 2\n"), 0);
    }
}
