//! Words that have no place in the tree: paths of somebody's computer, hosts of package registries.

use super::Finding;
use super::tree::Tree;

/// Each word in two halves, so that this file does not contain it; and what it is.
const WORDS: &[(&str, &str, &str)] = &[
    ("/ho", "me/", "a path of one computer"),
    ("/ro", "ot/", "a path of one computer"),
    ("/wo", "rk/", "a path of one computer"),
    ("../sha", "red/", "a folder outside the tree"),
    ("see", "ds/", "a folder outside the tree"),
    ("static.cra", "tes.io", "a host of a registry"),
    ("index.cra", "tes.io", "a host of a registry"),
    ("py", "pi.org", "a host of a registry"),
    ("pythonho", "sted.org", "a host of a registry"),
    ("registry.np", "mjs.org", "a host of a registry"),
    ("proxy.go", "lang.org", "a host of a registry"),
    ("deb.deb", "ian.org", "a host of a registry"),
];

/// Looks at every text file. A word counts where it starts, not as the tail of a longer one.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let words: Vec<(String, &str)> = WORDS
        .iter()
        .map(|(head, tail, what)| (format!("{head}{tail}"), *what))
        .collect();
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for (index, line) in text.lines().enumerate() {
            for (word, what) in &words {
                if contains(line, word) {
                    findings.push(Finding::new(path, index + 1, format!("`{word}` is {what}")));
                }
            }
        }
    }
    findings
}

fn contains(line: &str, word: &str) -> bool {
    let starts_a_word = |at: usize| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '}'))
    };
    line.match_indices(word).any(|(at, _)| starts_a_word(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found() {
        for (head, tail, _) in WORDS {
            let text = format!("fine\nsee {head}{tail}x\n");
            let findings = check(&Tree::of(&[("docs/a.md", &text)]));
            assert_eq!(
                findings.iter().map(|finding| finding.line).collect::<Vec<_>>(),
                [2],
                "{head}{tail}"
            );
        }
    }

    #[test]
    fn parts_of_other_words_are_not() {
        for line in [
            "artwork/a",
            "network/src",
            "tests/shared/mod.rs",
            "$HOME/work",
            "target/tools",
            "the air is shared / busy",
        ] {
            assert_eq!(check(&Tree::of(&[("a.md", line)])), [], "{line}");
        }
    }
}
