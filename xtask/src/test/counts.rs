//! What the harness of Rust's tests prints: how many there were, which failed, and what these said.

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
        // whether a test that failed is being quoted, and whether names of those are listed
        let (mut quotes, mut lists) = (false, false);
        for line in text.lines() {
            let name = line
                .strip_prefix("---- ")
                .and_then(|rest| rest.strip_suffix(" stdout ----"));
            if line == "failures:" {
                (quotes, lists) = (false, true);
            } else if let Some(name) = name {
                (quotes, lists) = (true, false);
                counts.failures.push(Failure::new(name));
            } else if let Some(name) = line.strip_prefix("    ").filter(|_| lists) {
                // not quoted, since its output was not captured
                if counts.failures.iter().all(|f| f.name != name) {
                    counts.failures.push(Failure::new(name));
                }
            } else if let Some(result) = line.strip_prefix("test result: ") {
                counts.passed += number_before(result, " passed")?;
                counts.failed += number_before(result, " failed")?;
            } else if let Some((name, reason)) = line
                .strip_prefix("test ")
                .and_then(|rest| rest.split_once(" ... ignored"))
            {
                counts.ignored.push(format!("{name}{reason}"));
            } else if let Some(failure) = counts.failures.last_mut().filter(|_| quotes) {
                failure.said.push(line.to_owned());
            }
        }
        Ok(counts)
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
