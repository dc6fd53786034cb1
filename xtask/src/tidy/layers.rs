//! Which room may know which: dependencies point down the layers, never sideways and never up.

use super::Finding;
use super::tree::Tree;
use crate::workspace::Package;

/// Rooms from the bottom up. A room may use every room of the layers below its own.
const LAYERS: &[&[&str]] = &[
    &["frame"],
    &["radio"],
    &["protocols", "sim", "linux", "ar9170"],
    &["node"],
    &["lab", "transfer"],
    &["cli", "examples", "c"],
];
/// Rooms that look at the tree from outside: they use no other room, and none uses them.
const OUTSIDE: &[&str] = &["xtask"];

/// Checks normal, dev and build dependencies alike: a test that needs two siblings belongs a layer up.
pub(super) fn direction(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        let place = place(package.room());
        if place.is_none() {
            findings.push(Finding::new(
                &package.manifest,
                0,
                "this room has no place yet: give it one in xtask/src/tidy/layers.rs",
            ));
            continue;
        }
        for dependency in package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some())
        {
            let Some(other) = tree.packages.iter().find(|other| other.name == dependency.name) else {
                continue;
            };
            if !may_use(package, other) {
                let kind = dependency.kind.as_deref().unwrap_or("normal");
                let text = format!(
                    "`{}` must not know `{}` ({kind} dependency)",
                    package.room(),
                    other.room()
                );
                findings.push(Finding::new(&package.manifest, 0, text));
            }
        }
    }
    findings
}

/// Where a room stands.
#[derive(Clone, Copy)]
enum Place {
    Layer(usize),
    Outside,
}

fn place(room: &str) -> Option<Place> {
    if OUTSIDE.contains(&room) {
        return Some(Place::Outside);
    }
    LAYERS
        .iter()
        .position(|layer| layer.contains(&room))
        .map(Place::Layer)
}

fn may_use(package: &Package, other: &Package) -> bool {
    match (place(package.room()), place(other.room())) {
        (Some(Place::Layer(upper)), Some(Place::Layer(lower))) => lower < upper,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    /// One package that depends on one other, by the names of their rooms.
    fn findings(room: &str, on: &str, kind: &str) -> Vec<String> {
        let package = |room: &str, dependencies: &str| {
            format!(
                r#"{{"name": "sdmac-{room}", "manifest_path": "/r/crates/{room}/Cargo.toml", "targets": [], "dependencies": [{dependencies}]}}"#
            )
        };
        let dependency = format!(r#"{{"name": "sdmac-{on}", "kind": {kind}, "path": "/r/crates/{on}"}}"#);
        let json = format!(
            r#"{{"workspace_root": "/r", "target_directory": "/t", "packages": [{}, {}]}}"#,
            package(room, &dependency),
            package(on, "")
        );
        let mut tree = Tree::of(&[]);
        tree.packages = Workspace::parse(&json).unwrap().packages;
        direction(&tree).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn down_is_allowed() {
        for (room, on) in [
            ("radio", "frame"),
            ("sim", "radio"),
            ("lab", "sim"),
            ("cli", "frame"),
        ] {
            assert!(findings(room, on, "null").is_empty(), "{room} -> {on}");
        }
    }

    #[test]
    fn sideways_and_up_are_found() {
        assert_eq!(
            findings("protocols", "sim", "\"dev\""),
            ["`protocols` must not know `sim` (dev dependency)"]
        );
        assert_eq!(
            findings("frame", "radio", "null"),
            ["`frame` must not know `radio` (normal dependency)"]
        );
        assert_eq!(findings("cli", "xtask", "null").len(), 1);
        assert_eq!(findings("xtask", "frame", "null").len(), 1);
    }

    #[test]
    fn a_new_room_needs_a_place() {
        assert_eq!(
            findings("attic", "frame", "null"),
            ["this room has no place yet: give it one in xtask/src/tidy/layers.rs"]
        );
    }
}
