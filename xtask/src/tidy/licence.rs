//! The project is MIT or Apache-2.0. Programs that link GPL code live in folders of their own, each file marked.

use super::Finding;
use super::tree::Tree;

/// Folders for code under the GPL: programs for ns-3, code for the kernel.
const GPL_FOLDERS: &[&str] = &["peers/", "kernel/"];
/// Built from two halves, so that this file does not carry the mark.
const MARK: (&str, &str) = ("SPDX-License-", "Identifier: GPL-2.0");
/// The mark stands in the first lines.
const MARK_LINES: usize = 5;
const SOURCES: &[&str] = &["c", "cc", "cpp", "h", "hpp", "py", "rs", "sh"];

/// Marks where they are owed, none elsewhere, a licence text in each folder, and no package of ours inside.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mark = format!("{}{}", MARK.0, MARK.1);
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        let gpl = GPL_FOLDERS.iter().any(|folder| path.starts_with(folder));
        let marked = text.lines().take(MARK_LINES).any(|line| line.contains(&mark));
        let is_source = path
            .rsplit_once('.')
            .is_some_and(|(_, ending)| SOURCES.contains(&ending));
        if gpl && is_source && !marked {
            findings.push(Finding::new(
                path,
                1,
                format!("mark the file: `{mark}-only` or `{mark}-or-later`"),
            ));
        }
        if !gpl && marked {
            findings.push(Finding::new(
                path,
                1,
                format!("GPL code belongs in {}", GPL_FOLDERS.join(" or ")),
            ));
        }
    }
    for folder in GPL_FOLDERS {
        if tree.exists(folder) && !tree.exists(&format!("{folder}COPYING")) {
            findings.push(Finding::new(
                &format!("{folder}COPYING"),
                0,
                "the text of the GPL is missing",
            ));
        }
        for package in tree
            .packages
            .iter()
            .filter(|package| package.manifest.starts_with(folder))
        {
            findings.push(Finding::new(
                &package.manifest,
                0,
                "a package here must not be a member of the workspace",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files))
            .into_iter()
            .map(|finding| finding.path)
            .collect()
    }

    #[test]
    fn unmarked_gpl_sources_are_found() {
        let marked = format!("// {}{}-only\nint x;\n", MARK.0, MARK.1);
        assert!(
            texts(&[
                ("peers/COPYING", "GPL"),
                ("peers/ns3/a.cc", &marked),
                ("peers/README.md", "")
            ])
            .is_empty()
        );
        assert_eq!(
            texts(&[("peers/COPYING", "GPL"), ("peers/ns3/a.cc", "int x;\n")]),
            ["peers/ns3/a.cc"]
        );
    }

    #[test]
    fn gpl_outside_its_folders_is_found() {
        let marked = format!("// {}{}-or-later\n", MARK.0, MARK.1);
        assert_eq!(
            texts(&[("crates/sim/src/a.rs", &marked)]),
            ["crates/sim/src/a.rs"]
        );
    }

    #[test]
    fn a_missing_licence_text_is_found() {
        assert_eq!(texts(&[("kernel/README.md", "")]), ["kernel/COPYING"]);
    }
}
