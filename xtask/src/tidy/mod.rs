//! `cargo xtask tidy`: the habits of this tree that a program can check.
//!
//! A rule is a function from the tree to its findings; it reads no file and runs no program, so each is tested on a few
//! lines of text. To add a rule, write the function in the file it is akin to, and name it in [`RULES`].

mod code;
mod exceptions;
mod layers;
mod licence;
mod pages;
mod rooms;
mod source;
mod tree;
mod words;

use anyhow::Result;

use crate::workspace::Workspace;
use exceptions::EXCEPTIONS;
use tree::Tree;

/// Options of `cargo xtask tidy`.
#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Name the rules and check nothing.
    #[arg(long)]
    list: bool,
}

/// One habit.
struct Rule {
    name: &'static str,
    what: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

/// One place that breaks a habit.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// Relative to the root.
    path: String,
    /// Counted from 1; 0 when the whole file is meant.
    line: usize,
    /// What is wrong, and what to do.
    text: String,
}

impl Finding {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            text: text.into(),
        }
    }
}

impl Rule {
    const fn new(name: &'static str, what: &'static str, check: fn(&Tree) -> Vec<Finding>) -> Rule {
        Rule { name, what, check }
    }
}

/// All habits, in the order they are checked.
#[rustfmt::skip]
const RULES: &[Rule] = &[
    Rule::new("layers", "dependencies between rooms go one way", layers::direction),
    Rule::new("lints", "every crate takes the lints of the workspace", rooms::lints),
    Rule::new("changelog", "CHANGELOG.md has a heading for every room", rooms::changelog),
    Rule::new("scenarios", "a scenario opens with a comment that teaches", rooms::scenarios),
    Rule::new("size", "Rust files have at most 400 lines, 600 with their tests", code::size),
    Rule::new("head", "a Rust file opens with a paragraph that says what it is", code::head),
    Rule::new("unsafe", "`unsafe` stays in the rooms next to the kernel", code::no_unsafe),
    Rule::new("order", "ordered maps only, where runs must repeat", code::ordered),
    Rule::new("clock", "no clock of the computer in virtual time", code::no_clock),
    Rule::new("no_std", "the rooms for firmware use neither std nor alloc", code::no_std),
    Rule::new("unfinished", "no `todo!`, no test ignored without a reason", code::finished),
    Rule::new("words", "no path of one computer, no host of a registry", words::check),
    Rule::new("links", "relative links and includes in Markdown lead somewhere", pages::links),
    Rule::new("summary", "every page of the book is linked in its SUMMARY.md", pages::summary),
    Rule::new("examples", "Rust code in the book comes from files that cargo builds", pages::examples),
    Rule::new("licence", "GPL code is marked, and stays in its folders", licence::check),
];

/// Checks everything and prints each finding as `path:line: rule: text`. True when there is none.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    if options.list {
        for rule in RULES {
            println!("{:<12}{}", rule.name, rule.what);
        }
        return Ok(true);
    }
    let tree = Tree::read(workspace)?;
    let findings = check(&tree, RULES, EXCEPTIONS);
    for line in &findings {
        println!("{line}");
    }
    println!(
        "tidy: {} files, {} rules, {} exceptions, {} findings",
        tree.files().count(),
        RULES.len(),
        EXCEPTIONS.len(),
        findings.len()
    );
    Ok(findings.is_empty())
}

/// The findings that no exception covers, and the exceptions that cover nothing.
fn check(tree: &Tree, rules: &[Rule], exceptions: &[exceptions::Exception]) -> Vec<String> {
    let mut used = vec![false; exceptions.len()];
    let mut lines = Vec::new();
    for rule in rules {
        for finding in (rule.check)(tree) {
            let covered = exceptions
                .iter()
                .position(|e| e.rule == rule.name && e.path == finding.path);
            match covered {
                Some(index) => used[index] = true,
                None if finding.line == 0 => {
                    lines.push(format!("{}: {}: {}", finding.path, rule.name, finding.text))
                }
                None => lines.push(format!(
                    "{}:{}: {}: {}",
                    finding.path, finding.line, rule.name, finding.text
                )),
            }
        }
    }
    for (exception, _) in exceptions.iter().zip(used).filter(|(_, used)| !used) {
        lines.push(format!(
            "{}: {}: the exception ({}) covers nothing: take it out",
            exception.path, exception.rule, exception.reason
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use exceptions::Exception;

    const RULE: Rule = Rule::new("size", "", |_| vec![Finding::new("a.rs", 3, "long")]);
    const EXCEPTION: Exception = Exception {
        rule: "size",
        path: "a.rs",
        reason: "one table",
    };

    #[test]
    fn a_finding_is_told_with_path_line_and_rule() {
        assert_eq!(check(&Tree::of(&[]), &[RULE], &[]), ["a.rs:3: size: long"]);
    }

    #[test]
    fn an_exception_covers_its_rule_and_path_only() {
        assert!(check(&Tree::of(&[]), &[RULE], &[EXCEPTION]).is_empty());
        let other = Exception {
            path: "b.rs",
            ..EXCEPTION
        };
        assert_eq!(check(&Tree::of(&[]), &[RULE], &[other]).len(), 2);
    }

    #[test]
    fn a_stale_exception_is_a_finding() {
        assert_eq!(
            check(&Tree::of(&[]), &[], &[EXCEPTION]),
            ["a.rs: size: the exception (one table) covers nothing: take it out"]
        );
    }

    #[test]
    fn exceptions_name_rules_that_exist() {
        for exception in EXCEPTIONS {
            assert!(
                RULES.iter().any(|rule| rule.name == exception.rule),
                "{}",
                exception.rule
            );
            assert!(exception.reason.len() > 20, "{}: say why", exception.path);
        }
    }
}
