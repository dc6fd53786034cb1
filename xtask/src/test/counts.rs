//! What the harness of Rust's tests prints: how many there were, which failed, and what these said; and which passed although they could
//! not run here.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// How many tests a run of `cargo test` counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    passed: u64,
    pub(super) failed: u64,
    /// Those that failed, as far as they were told.
    failures: Vec<Failure>,
    /// Names with reasons.
    ignored: Vec<String>,
    /// Why tests that passed say that they were skipped, and how many each time. They say so with `--show-output` only.
    skipped: BTreeMap<String, u64>,
}

/// What a line is part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Results, one by one and in total.
    Results,
    /// What tests that passed have printed; `true` once one has said that it is skipped.
    Passed(bool),
    /// What one that failed has printed.
    Quote,
    /// The names of those that failed.
    Names,
}

/// What a test begins the line with in which it says why it cannot run here.
const SKIPPED: &str = "skipped: ";
/// What stands above the output of tests that passed.
const PASSED: &str = "successes:";
/// And of those that failed.
const FAILED: &str = "failures:";
const TOTAL: &str = "test result: ";

/// All but what tests that passed have printed.
pub(super) fn without_passed(text: &str) -> String {
    let (mut quotes, mut lists) = (false, false);
    let mut shown = |line: &&str| {
        if *line == PASSED {
            (quotes, lists) = (!quotes, quotes);
        }
        // what is quoted may look like the end
        lists &= *line != FAILED && !line.starts_with(TOTAL);
        !quotes && !lists
    };
    let lines = text.lines().filter(|line| shown(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// A test that failed.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    name: String,
    /// What it printed before it ended, the panic message among it.
    said: Vec<String>,
}

/// Lines of a panic message that are told again at the end.
const LINES: usize = 6;
/// Characters of each.
const WIDTH: usize = 400;

impl Failure {
    fn new(name: &str) -> Failure {
        Failure {
            name: name.to_owned(),
            said: Vec::new(),
        }
    }

    /// Its name, and below it where it panicked and the first lines of the message.
    fn told(&self) -> String {
        let panic = self.said.iter().position(|line| line.contains("panicked at"));
        let first = self.said.iter().skip(panic.unwrap_or(0));
        let lines = first.take_while(|line| *line != "stack backtrace:");
        let lines = lines.filter(|line| !line.trim().is_empty()).take(LINES);
        let cut = |line: &String| format!("\n    {}", line.chars().take(WIDTH).collect::<String>());
        format!("  {}{}", self.name, lines.map(cut).collect::<String>())
    }
}

impl Counts {
    /// Reads what the test harness prints.
    pub(super) fn parse(text: &str) -> Result<Counts> {
        let mut counts = Counts::default();
        let mut part = Part::Results;
        for line in text.lines() {
            let name = line
                .strip_prefix("---- ")
                .and_then(|rest| rest.strip_suffix(" stdout ----"));
            if line == PASSED {
                // once above what they have printed, and once above their names
                part = match part {
                    Part::Passed(_) => Part::Results,
                    _ => Part::Passed(false),
                };
            } else if let Part::Passed(has_said) = part {
                if name.is_some() {
                    part = Part::Passed(false);
                } else if let Some(why) = line.strip_prefix(SKIPPED).filter(|_| !has_said) {
                    part = Part::Passed(true);
                    *counts.skipped.entry(why.to_owned()).or_default() += 1;
                }
            } else if line == FAILED {
                part = Part::Names;
            } else if let Some(name) = name {
                part = Part::Quote;
                counts.failures.push(Failure::new(name));
            } else if let Some(result) = line.strip_prefix(TOTAL) {
                part = Part::Results;
                counts.passed += number_before(result, " passed")?;
                counts.failed += number_before(result, " failed")?;
            } else if let Some((name, reason)) = line
                .strip_prefix("test ")
                .and_then(|rest| rest.split_once(" ... ignored"))
            {
                counts.ignored.push(format!("{name}{reason}"));
            } else if part == Part::Names {
                counts.failed_by_name(line);
            } else if part == Part::Quote {
                let failure = counts.failures.last_mut();
                failure.into_iter().for_each(|f| f.said.push(line.to_owned()));
            }
        }
        Ok(counts)
    }

    /// A line among the names of those that failed. One that is not quoted wrote to where all do.
    fn failed_by_name(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("    ")
            && self.failures.iter().all(|f| f.name != name)
        {
            self.failures.push(Failure::new(name));
        }
    }

    /// What tests whose output was not captured have written to the standard error.
    pub(super) fn look_for_panics(&mut self, stderr: &str) {
        for failure in self.failures.iter_mut().filter(|f| f.said.is_empty()) {
            let thread = format!("thread '{}' ", failure.name);
            let lines = stderr.lines().skip_while(|line| !line.starts_with(&thread));
            failure.said = lines.take(LINES).map(str::to_owned).collect();
        }
    }

    /// For the table. Fails when a test failed, and when there was none: names in the first line, below it what each said.
    pub(super) fn remark(&self) -> Result<String> {
        if self.failed > 0 {
            let names: Vec<&str> = self.failures.iter().map(|f| f.name.as_str()).collect();
            let told: String = self.failures.iter().map(|f| format!("\n{}", f.told())).collect();
            bail!(
                "{} of {} tests failed: {}{told}",
                self.failed,
                self.failed + self.passed,
                names.join(", ")
            );
        }
        ensure!(self.passed > 0, "not one test was run");
        let mut remark = format!("{} tests", self.passed);
        if !self.ignored.is_empty() {
            remark += &format!("; ignored: {}", self.ignored.join("; "));
        }
        if !self.skipped.is_empty() {
            let each = self.skipped.iter().map(|(why, n)| format!("{n} {why}"));
            let all: u64 = self.skipped.values().sum();
            remark += &format!("; {all} of them skipped: {}", each.collect::<Vec<_>>().join("; "));
        }
        Ok(remark)
    }
}

fn number_before(text: &str, word: &str) -> Result<u64> {
    let head = text
        .split_once(word)
        .with_context(|| format!("no `{word}` in `{text}`"))?
        .0;
    head.rsplit(' ')
        .next()
        .unwrap_or("")
        .parse()
        .with_context(|| format!("no number before `{word}` in `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARNESS: &str = "\nrunning 3 tests\ntest a::b ... ok\ntest a::c ... ignored, needs root\ntest a::d ... ok\n\n\
        test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
        test result: ok. 10 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n";

    #[test]
    fn tests_are_counted() {
        let counts = Counts::parse(HARNESS).unwrap();
        assert_eq!(counts.remark().unwrap(), "12 tests; ignored: a::c, needs root");
    }

    #[test]
    fn failures_and_empty_runs_fail() {
        let failure = "---- c::e stdout ----\ntest result: FAILED. 9 passed; 1 failed";
        let text = HARNESS.replace("test result: ok. 10 passed; 0 failed", failure);
        let failed = Counts::parse(&text).unwrap();
        assert_eq!(
            failed.remark().unwrap_err().to_string(),
            "1 of 12 tests failed: c::e\n  c::e"
        );
        assert_eq!(
            Counts::parse("").unwrap().remark().unwrap_err().to_string(),
            "not one test was run"
        );
        assert!(Counts::parse("test result: many").is_err());
    }

    /// What a test printed before is left out, and what comes behind the message, too.
    #[test]
    fn what_a_failed_test_said_is_told_below_its_name() {
        let text = "running 2 tests\ntest a::b ... FAILED\ntest c ... FAILED\n\nfailures:\n\n---- a::b stdout ----\n1\n\n\
            thread 'a::b' (7) panicked at src/a.rs:3:5:\nassertion failed\n  left: 1\n right: 2\nstack backtrace:\n   \
            0: rust_begin_unwind\n\n---- c stdout ----\nError: \"no such file\"\n\n\nfailures:\n    a::b\n    c\n\n\
            test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let counts = Counts::parse(text).unwrap();
        assert_eq!(
            counts.remark().unwrap_err().to_string(),
            "2 of 2 tests failed: a::b, c\n  a::b\n    thread 'a::b' (7) panicked at src/a.rs:3:5:\n    assertion failed\n\
            \x20     left: 1\n     right: 2\n  c\n    Error: \"no such file\""
        );
        let long = Failure {
            said: vec!["x".repeat(1_000); 100],
            ..Failure::new("d")
        };
        assert_eq!(long.told().lines().count(), 1 + LINES);
        assert!(long.told().lines().all(|line| line.len() <= WIDTH + 4));
    }

    /// Each test counts once, what else it says does not, and what one that failed says least of all.
    #[test]
    fn what_passed_without_running_is_told() {
        let text = "running 4 tests\ntest a::b ... ok\ntest a::c ... ok\ntest d ... ok\ntest e ... FAILED\n\nsuccesses:\n\n\
            ---- a::b stdout ----\nskipped: no tshark\nskipped: again\n\n---- a::c stdout ----\nat a::c\ntest result: FAILED. 1 passed; 1 failed\nfailures:\n\n\
            ---- d stdout ----\nskipped: no tshark\n\n\nsuccesses:\n    a::b\n    a::c\n    d\n\nfailures:\n\n\
            ---- e stdout ----\nskipped: no root\n\n\nfailures:\n    e\n\n\
            test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let failed = Counts::parse(text).unwrap();
        assert_eq!(failed.skipped, BTreeMap::from([("no tshark".to_owned(), 2)]));
        assert_eq!(failed.failures.len(), 1);
        let (before, _) = text.split_once("failures:\n\n---- e").unwrap();
        let good = before.to_owned() + "test result: ok. 3 passed; 0 failed; 0 ignored\n";
        assert_eq!(
            Counts::parse(&(good.clone() + &good.replace("no tshark", "no root")))
                .unwrap()
                .remark()
                .unwrap(),
            "6 tests; 4 of them skipped: 2 no root; 2 no tshark"
        );
        let shown = without_passed(text);
        assert!(!shown.contains("1 passed"), "{shown}");
        assert!(
            shown.contains("test a::b ... ok")
                && !shown.contains("no tshark")
                && shown.contains("skipped: no root"),
            "{shown}"
        );
        assert!(without_passed(&good).ends_with("test result: ok. 3 passed; 0 failed; 0 ignored\n"));
    }

    /// With `--nocapture` there are names on one side and panics on the other.
    #[test]
    fn what_was_not_captured_is_found_in_the_standard_error() {
        let stdout = "running 2 tests\ntest a::b ... 1\ntest c ... ok\nFAILED\n\nfailures:\n\nfailures:\n    a::b\n\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let mut counts = Counts::parse(stdout).unwrap();
        counts.look_for_panics("2\nthread 'a::b' (7) panicked at src/a.rs:3:5:\nno answer\n");
        assert_eq!(
            counts.remark().unwrap_err().to_string(),
            "1 of 2 tests failed: a::b\n  a::b\n    thread 'a::b' (7) panicked at src/a.rs:3:5:\n    no answer"
        );
    }
}
