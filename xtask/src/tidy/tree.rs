//! The tree that the rules look at: every file git would put into a clone, and what cargo says about the packages.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::source::{self, Source};
use crate::workspace::{Package, Workspace};

/// Larger files are data; their text is not looked at.
const MAX_TEXT_OCTETS: usize = 1 << 20;

/// All files by path, relative to the root, with `/` between folders.
pub(super) struct Tree {
    files: BTreeMap<String, File>,
    pub(super) packages: Vec<Package>,
}

/// What is known about one file.
struct File {
    /// `None` for a file that is large or not UTF-8.
    text: Option<String>,
    /// Tokens of a Rust file, or why there are none.
    source: Option<Result<Source, source::Broken>>,
}

impl Tree {
    /// Reads the files that git tracks and those that it would add (not the ignored ones).
    pub(super) fn read(workspace: &Workspace) -> Result<Tree> {
        // The clone may belong to another user, as it does in many CI containers.
        let listing = Command::new("git")
            .args([
                "-c",
                "safe.directory=*",
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(&workspace.root)
            .output()
            .context("cannot run git, which tells which files belong to the project")?;
        ensure!(
            listing.status.success(),
            "git ls-files failed in {}: {}",
            workspace.root.display(),
            String::from_utf8_lossy(&listing.stderr).trim()
        );
        let mut files = BTreeMap::new();
        for path in String::from_utf8_lossy(&listing.stdout)
            .split('\0')
            .filter(|path| !path.is_empty())
        {
            let full = workspace.root.join(path);
            // Deleted but not yet committed, or a link to a folder.
            if !full.is_file() {
                continue;
            }
            let octets = std::fs::read(&full).with_context(|| format!("cannot read {path}"))?;
            let text = if octets.len() <= MAX_TEXT_OCTETS {
                String::from_utf8(octets).ok()
            } else {
                None
            };
            files.insert(path.to_owned(), File::new(path, text));
        }
        Ok(Tree {
            files,
            packages: workspace.packages.clone(),
        })
    }

    /// A tree for tests.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), File::new(path, Some((*text).to_owned()))));
        Tree {
            files: files.collect(),
            packages: Vec::new(),
        }
    }

    /// Every path.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Path and text of every text file.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter_map(|(path, file)| Some((path.as_str(), file.text.as_deref()?)))
    }

    /// The text of one file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.text.as_deref()
    }

    /// Path and tokens of every Rust file that can be read.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.files
            .iter()
            .filter_map(|(path, file)| Some((path.as_str(), file.source.as_ref()?.as_ref().ok()?)))
    }

    /// Path and line of every Rust file that cannot.
    pub(super) fn broken(&self) -> impl Iterator<Item = (&str, &source::Broken)> {
        self.files
            .iter()
            .filter_map(|(path, file)| Some((path.as_str(), file.source.as_ref()?.as_ref().err()?)))
    }

    /// True for a file, and for a folder with files in it.
    pub(super) fn exists(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(found, _)| found.starts_with(&folder))
    }
}

impl File {
    fn new(path: &str, text: Option<String>) -> File {
        let source = text
            .as_deref()
            .filter(|_| path.ends_with(".rs"))
            .map(Source::parse);
        File { text, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_tree_can_be_read() {
        let tree = Tree::read(&Workspace::read().unwrap()).unwrap();
        assert!(
            tree.text("Cargo.toml")
                .is_some_and(|text| text.contains("[workspace]"))
        );
        assert!(tree.sources().any(|(path, _)| path == "xtask/src/main.rs"));
        assert!(!tree.files().any(|path| path.starts_with("target/")));
    }

    #[test]
    fn folders_exist_when_they_have_files() {
        let tree = Tree::of(&[("docs/src/a.md", "")]);
        assert!(tree.exists("docs/src/a.md") && tree.exists("docs/src") && tree.exists("docs/"));
        assert!(!tree.exists("docs/sr") && !tree.exists("crates"));
    }
}
