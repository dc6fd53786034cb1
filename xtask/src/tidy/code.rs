//! Rules about Rust files: their size, how they open, and what does not belong in which room.

use super::Finding;
use super::source::Source;
use super::tree::Tree;

/// Lines of one file without its `#[cfg(test)]` modules.
const MAX_LINES: usize = 400;
/// Lines of one file with them, and of a file that is all test.
const MAX_LINES_WITH_TESTS: usize = 600;
/// Rooms that talk to the kernel, where `unsafe` is allowed with its reason.
const UNSAFE_ROOMS: &[&str] = &["crates/linux/"];
/// Rooms whose runs must repeat to the bit.
const REPEATABLE_ROOMS: &[&str] = &[
    "crates/frame/",
    "crates/radio/",
    "crates/protocols/",
    "crates/sim/",
    "crates/ar9170/",
    "crates/node/",
];
/// Rooms that firmware is made of.
const FIRMWARE_ROOMS: &[&str] = &[
    "crates/frame/",
    "crates/radio/",
    "crates/protocols/",
    "crates/ar9170/",
    "crates/node/",
];

/// A file can be read in one sitting.
pub(super) fn size(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        let code = if is_all_test(path) {
            0
        } else {
            source.lines - source.test_lines
        };
        if code > MAX_LINES {
            let text = format!("{code} lines without tests, {MAX_LINES} are the limit: split the file");
            findings.push(Finding::new(path, 0, text));
        } else if source.lines > MAX_LINES_WITH_TESTS {
            let text = format!(
                "{} lines, {MAX_LINES_WITH_TESTS} are the limit: split the file",
                source.lines
            );
            findings.push(Finding::new(path, 0, text));
        }
    }
    findings.extend(
        tree.broken()
            .map(|(path, broken)| Finding::new(path, broken.line, "this is not Rust")),
    );
    findings
}

/// The first thing in a file is a `//!` paragraph; inner attributes may stand before it.
pub(super) fn head(tree: &Tree) -> Vec<Finding> {
    let opens = |source: &Source| {
        let mut rest = source.tokens.as_slice();
        while let [hash, bang, open, name, tail @ ..] = rest {
            if (hash.text.as_str(), bang.text.as_str(), open.text.as_str()) != ("#", "!", "[") {
                return false;
            }
            if name.text == "doc" {
                return true;
            }
            let end = tail.iter().position(|token| token.text == "]");
            rest = end.map_or(&[], |end| &tail[end + 1..]);
        }
        false
    };
    let bare = tree.sources().filter(|(_, source)| !opens(source));
    bare.map(|(path, _)| {
        Finding::new(
            path,
            1,
            "open the file with a `//!` paragraph: what it is, what belongs there",
        )
    })
    .collect()
}

/// `unsafe` only where the kernel is.
pub(super) fn no_unsafe(tree: &Tree) -> Vec<Finding> {
    let others = tree.sources().filter(|(path, _)| !within(path, UNSAFE_ROOMS));
    let found = others.flat_map(|(path, source)| source.find("unsafe").map(move |line| (path, line)));
    found
        .map(|(path, line)| {
            Finding::new(
                path,
                line,
                format!("`unsafe` is for {} only", UNSAFE_ROOMS.join(", ")),
            )
        })
        .collect()
}

/// A hash map has another order in every run.
pub(super) fn ordered(tree: &Tree) -> Vec<Finding> {
    let hashed = |word: &str| {
        word.ends_with("HashMap") || word.ends_with("HashSet") || word == "hash_map" || word == "hash_set"
    };
    let mut findings = Vec::new();
    for (path, source) in tree.sources().filter(|(path, _)| within(path, REPEATABLE_ROOMS)) {
        for token in source.words(hashed) {
            let text = format!(
                "`{}` has another order in every run: use an ordered map or a Vec",
                token.text
            );
            findings.push(Finding::new(path, token.line, text));
        }
    }
    findings
}

/// Time comes in as an argument.
pub(super) fn no_clock(tree: &Tree) -> Vec<Finding> {
    const CLOCKS: &[&str] = &["std : : time", "Instant : : now", "SystemTime", "UNIX_EPOCH"];
    let mut findings = Vec::new();
    for (path, source) in tree
        .sources()
        .filter(|(path, _)| within(path, REPEATABLE_ROOMS) && !is_all_test(path))
    {
        let nested = use_of_time_in_braces(source);
        let mut lines: Vec<usize> = CLOCKS
            .iter()
            .flat_map(|clock| source.find(clock))
            .chain(nested)
            .collect();
        lines.sort_unstable();
        lines.dedup();
        findings.extend(lines.into_iter().map(|line| {
            Finding::new(
                path,
                line,
                "the computer's clock has no place in virtual time: take `now` as an argument",
            )
        }));
    }
    findings
}

/// `use std::{cmp, time::Instant}`: the lines of such a `time`.
fn use_of_time_in_braces(source: &Source) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut depth_in_std = 0_usize;
    for (index, token) in source.tokens.iter().enumerate() {
        let before = |back: usize| {
            index
                .checked_sub(back)
                .map_or("", |i| source.tokens[i].text.as_str())
        };
        match token.text.as_str() {
            "{" if depth_in_std > 0 || (before(3), before(2), before(1)) == ("std", ":", ":") => {
                depth_in_std += 1
            }
            "}" => depth_in_std = depth_in_std.saturating_sub(1),
            "time" if depth_in_std == 1 && matches!(before(1), "{" | ",") => lines.push(token.line),
            _ => {}
        }
    }
    lines
}

/// The crate root says `no_std`, and nobody brings `alloc` in. (That `std` is absent is proven by the build for a bare target.)
pub(super) fn no_std(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree
        .sources()
        .filter(|(path, _)| within(path, FIRMWARE_ROOMS) && path.contains("/src/"))
    {
        if FIRMWARE_ROOMS
            .iter()
            .any(|room| path == format!("{room}src/lib.rs"))
            && source.find("no_std").next().is_none()
        {
            findings.push(Finding::new(path, 1, "this room is for firmware: `#![no_std]`"));
        }
        findings.extend(source.find("extern crate alloc").map(|line| {
            Finding::new(
                path,
                line,
                "this room does without a heap: use arrays or `heapless`, with a limit",
            )
        }));
    }
    findings
}

/// Nothing is left for later in the code.
pub(super) fn finished(tree: &Tree) -> Vec<Finding> {
    const UNFINISHED: &[(&str, &str)] = &[
        ("todo !", "`todo!` does not belong in a commit"),
        ("unimplemented !", "`unimplemented!` does not belong in a commit"),
        (
            "# [ ignore ]",
            "say why the test is ignored: `#[ignore = \"reason\"]`",
        ),
    ];
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        for (pattern, text) in UNFINISHED {
            findings.extend(source.find(pattern).map(|line| Finding::new(path, line, *text)));
        }
    }
    findings
}

fn within(path: &str, rooms: &[&str]) -> bool {
    rooms.iter().any(|room| path.starts_with(room))
}

/// Integration tests, benches, and test modules in a file of their own.
fn is_all_test(path: &str) -> bool {
    path.contains("/tests/") || path.contains("/benches/") || path.ends_with("/tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines(check: fn(&Tree) -> Vec<Finding>, path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)]))
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn long_files_are_found() {
        let code = "fn f() {}\n".repeat(400);
        let tests = |n| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "fn g() {}\n".repeat(n));
        assert_eq!(size(&Tree::of(&[("a.rs", &code)])), []);
        assert_eq!(size(&Tree::of(&[("a.rs", &(code.clone() + &tests(100)))])), []);
        assert_eq!(
            size(&Tree::of(&[("a.rs", &(code.clone() + "fn one_more() {}\n"))])).len(),
            1
        );
        assert_eq!(
            size(&Tree::of(&[("a.rs", &(code.clone() + &tests(200)))])).len(),
            1
        );
        assert_eq!(size(&Tree::of(&[("crates/sim/tests/a.rs", &code)])), []);
        assert_eq!(
            size(&Tree::of(&[("crates/sim/tests/a.rs", &code.repeat(2))])).len(),
            1
        );
        assert_eq!(lines(size, "a.rs", "fn f() {}\n)"), [2]);
    }

    #[test]
    fn a_file_without_a_head_is_found() {
        assert_eq!(lines(head, "a.rs", "//! What it is.\nfn f() {}"), NONE);
        assert_eq!(
            lines(
                head,
                "a.rs",
                "#![no_std]\n#![allow(unsafe_code)]\n//! What it is."
            ),
            NONE
        );
        assert_eq!(lines(head, "a.rs", "#![no_std]\nfn f() {}"), [1]);
        assert_eq!(
            lines(head, "a.rs", "// What it is.\n/// A function.\nfn f() {}"),
            [1]
        );
        assert_eq!(lines(head, "a.rs", ""), [1]);
    }

    #[test]
    fn unsafe_is_found_outside_its_rooms() {
        let text = "#![forbid(unsafe_code)]\n\nfn f() { unsafe { g() } }";
        assert_eq!(lines(no_unsafe, "crates/sim/src/a.rs", text), [3]);
        assert_eq!(lines(no_unsafe, "crates/linux/src/a.rs", text), NONE);
    }

    #[test]
    fn hash_maps_are_found() {
        let text = "use std::collections::{BTreeMap, HashMap};\ntype S = FxHashSet<u8>; // HashMap";
        assert_eq!(lines(ordered, "crates/protocols/src/a.rs", text), [1, 2]);
        assert_eq!(lines(ordered, "crates/lab/src/a.rs", text), NONE);
    }

    #[test]
    fn clocks_are_found() {
        let clock = |text| lines(no_clock, "crates/sim/src/a.rs", text);
        assert_eq!(clock("use std::time::Duration;"), [1]);
        assert_eq!(clock("use std::{cmp, time::Instant};"), [1]);
        assert_eq!(
            clock("use std::{fmt::{self}, time};\nfn f() { let time = 3; }"),
            [1]
        );
        assert_eq!(clock("\nlet t = Instant::now();"), [2]);
        assert_eq!(clock("fn f(now: Instant) -> SystemTime {}"), [1]);
        assert_eq!(
            clock("use radio::time::Instant;\nfn f(time: Instant) { g(std::cmp::max(time, time)) }"),
            NONE
        );
        assert_eq!(
            lines(no_clock, "crates/linux/src/a.rs", "use std::time::Instant;"),
            NONE
        );
    }

    #[test]
    fn a_heap_in_firmware_is_found() {
        assert_eq!(lines(no_std, "crates/radio/src/lib.rs", "//! The neck."), [1]);
        assert_eq!(
            lines(
                no_std,
                "crates/radio/src/lib.rs",
                "#![cfg_attr(not(test), no_std)]\nextern crate alloc;"
            ),
            [2]
        );
        assert_eq!(lines(no_std, "crates/radio/src/a.rs", "//! no_std"), NONE);
        assert_eq!(lines(no_std, "crates/sim/src/lib.rs", "//! The air."), NONE);
    }

    #[test]
    fn unfinished_code_is_found() {
        let text = "fn f() { todo!() }\n#[ignore]\nfn g() { unimplemented!(\"x\") }\n#[ignore = \"slow\"]\nfn todo() {}";
        let mut found = lines(finished, "a.rs", text);
        found.sort_unstable();
        assert_eq!(found, [1, 2, 3]);
    }
}
