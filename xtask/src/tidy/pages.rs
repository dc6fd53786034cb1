//! Rules about Markdown: links lead somewhere, the book knows its pages, and its code is code that was compiled.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::Tree;

/// The folder with the pages of the book.
const BOOK: &str = "docs/src/";
const SUMMARY: &str = "docs/src/SUMMARY.md";

/// Every relative link and every include of every Markdown file.
pub(super) fn links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (line, link) in links_of(text) {
            let target = link.split('#').next().unwrap_or("");
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !elsewhere
                && !target.is_empty()
                && !resolve(path, target).is_some_and(|target| tree.exists(&target))
            {
                findings.push(Finding::new(path, line, format!("`{link}` leads nowhere")));
            }
        }
        for (line, include) in includes_of(text) {
            if let Err(text) = included(tree, path, include) {
                findings.push(Finding::new(path, line, text));
            }
        }
    }
    findings
}

/// A page that SUMMARY.md does not link is not in the book. (An empty link is a chapter that is announced and not written.)
pub(super) fn summary(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(SUMMARY) else {
        return vec![Finding::new(SUMMARY, 0, "the book has no SUMMARY.md")];
    };
    let linked: BTreeSet<String> = links_of(text)
        .filter_map(|(_, link)| resolve(SUMMARY, link))
        .collect();
    let is_page = |path: &&str| path.starts_with(BOOK) && path.ends_with(".md") && *path != SUMMARY;
    let lost = tree
        .files()
        .filter(is_page)
        .filter(|path| !linked.contains(*path));
    lost.map(|path| Finding::new(path, 0, format!("not linked in {SUMMARY}")))
        .collect()
}

/// A block marked `rust` in the book holds includes only, and each names a file that is part of a package.
pub(super) fn examples(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree
        .texts()
        .filter(|(path, _)| path.starts_with(BOOK) && path.ends_with(".md"))
    {
        let mut in_rust = false;
        for (line, part) in parts(text) {
            match part {
                Part::Fence(language) => in_rust = language.split(',').next() == Some("rust"),
                Part::Code(content)
                    if in_rust && !content.trim().is_empty() && !is_compiled_include(tree, path, content) =>
                {
                    let text = "Rust code in the book is included from a file that cargo builds: `{{#include ../../examples/...}}`";
                    findings.push(Finding::new(path, line, text));
                }
                _ => {}
            }
        }
    }
    findings
}

fn is_compiled_include(tree: &Tree, page: &str, content: &str) -> bool {
    let include = includes_of(content).next().map(|(_, include)| include);
    include
        .and_then(|include| included(tree, page, include).ok())
        .is_some_and(|file| is_compiled(tree, &file))
}

/// The root of a target, or a file in the `src` folder of a package.
fn is_compiled(tree: &Tree, path: &str) -> bool {
    tree.packages.iter().any(|package| {
        path.starts_with(&format!("{}/src/", package.folder()))
            || package.targets.iter().any(|target| target.path == path)
    })
}

/// The file that an include names, if it is there and has the lines that are asked for.
fn included(tree: &Tree, page: &str, include: &str) -> Result<String, String> {
    let (name, part) = include.split_once(':').unwrap_or((include, ""));
    let path = resolve(page, name)
        .filter(|path| tree.exists(path))
        .ok_or(format!("`{name}` is not there"))?;
    let is_range = part.chars().all(|c| c.is_ascii_digit() || c == ':');
    let has_anchor = || {
        tree.text(&path).is_some_and(|text| {
            text.lines()
                .any(|line| line.trim_end().ends_with(&format!("ANCHOR: {part}")))
        })
    };
    if is_range || has_anchor() {
        Ok(path)
    } else {
        Err(format!("`{name}` has no `ANCHOR: {part}`"))
    }
}

/// Targets of `[text](target)` and `![text](target)` outside of code, with their lines.
fn links_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let prose = parts(text).into_iter().filter_map(|(line, part)| match part {
        Part::Prose(content) => Some((line, content)),
        _ => None,
    });
    prose.flat_map(|(line, content)| {
        content.match_indices("](").filter_map(move |(at, open)| {
            let target = &content[at + open.len()..];
            let inside_code = content[..at].matches('`').count() % 2 == 1;
            let end = target.find([')', ' ']).filter(|_| !inside_code)?;
            Some((line, &target[..end]))
        })
    })
}

/// What stands in `{{#include ...}}` and `{{#rustdoc_include ...}}`, with its line.
fn includes_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let (_, rest) = line
            .split_once("include ")
            .filter(|(head, _)| head.contains("{{#"))?;
        Some((index + 1, rest.split_once("}}")?.0.trim()))
    })
}

/// What one line of a Markdown file is.
enum Part<'a> {
    Prose(&'a str),
    /// The opening of a block of code, with its language.
    Fence(&'a str),
    Code(&'a str),
}

/// All lines with their numbers, but for those that close a block.
fn parts(text: &str) -> Vec<(usize, Part<'_>)> {
    let mut inside = false;
    let mut parts = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let part = match line.trim_start().strip_prefix("```") {
            Some(language) => {
                inside = !inside;
                inside.then_some(Part::Fence(language.trim()))
            }
            None if inside => Some(Part::Code(line)),
            None => Some(Part::Prose(line)),
        };
        parts.extend(part.map(|part| (index + 1, part)));
    }
    parts
}

/// `link` as seen from the file `from`, relative to the root. `None` when it leaves the tree.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Package, Target};

    fn found(check: fn(&Tree) -> Vec<Finding>, tree: &Tree) -> Vec<(String, usize)> {
        check(tree)
            .into_iter()
            .map(|finding| (finding.path, finding.line))
            .collect()
    }

    #[test]
    fn dead_links_are_found() {
        let text = "[a](docs/a.md#b) [b](https://example.org/x) [c](#c)\n![d](img/d.svg)\n`[e](e.md)`\n```\n[f](f.md)\n```\n[g](../g.md)";
        let tree = Tree::of(&[("README.md", text), ("docs/a.md", "")]);
        assert_eq!(
            found(links, &tree),
            [("README.md".to_owned(), 2), ("README.md".to_owned(), 7)]
        );
    }

    #[test]
    fn dead_includes_are_found() {
        let text = "{{#include ../../examples/a.rs:setup}}\n{{#include ../../examples/a.rs:run}}\n{{#include ../../examples/b.rs}}\n{{#include ../../examples/a.rs:1:2}}";
        let tree = Tree::of(&[
            ("docs/src/a.md", text),
            ("examples/a.rs", "// ANCHOR: setup\n// ANCHOR_END: setup\n"),
        ]);
        assert_eq!(
            found(links, &tree),
            [("docs/src/a.md".to_owned(), 2), ("docs/src/a.md".to_owned(), 3)]
        );
    }

    #[test]
    fn lost_pages_are_found() {
        let tree = Tree::of(&[
            (SUMMARY, "# Book\n\n- [A](a.md)\n- [Soon]()\n"),
            ("docs/src/a.md", ""),
            ("docs/src/deep/b.md", ""),
            ("docs/notes.md", ""),
        ]);
        assert_eq!(found(summary, &tree), [("docs/src/deep/b.md".to_owned(), 0)]);
        assert_eq!(found(summary, &Tree::of(&[])), [(SUMMARY.to_owned(), 0)]);
    }

    #[test]
    fn code_that_nobody_compiles_is_found() {
        let page = "```rust\n{{#include ../../examples/a.rs}}\n```\n```rust,ignore\nfn f() {}\n```\n```text\nfn g() {}\n```\n```rust\n{{#include ../../examples/b.rs}}\n```";
        let mut tree = Tree::of(&[
            ("docs/src/a.md", page),
            ("examples/a.rs", ""),
            ("examples/b.rs", ""),
        ]);
        tree.packages = vec![Package {
            name: "sdmac".to_owned(),
            manifest: "crates/cli/Cargo.toml".to_owned(),
            targets: vec![Target {
                name: "a".to_owned(),
                kind: vec!["example".to_owned()],
                path: "examples/a.rs".to_owned(),
            }],
            dependencies: Vec::new(),
        }];
        assert_eq!(
            found(examples, &tree),
            [("docs/src/a.md".to_owned(), 5), ("docs/src/a.md".to_owned(), 11)]
        );
    }
}
