//! Work that takes one processor at a time, several at once.

use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::test::tools::{Counts, ended, shown};

/// At most so many at once: guests take up to half a gigabyte each.
const MOST: usize = 4;

/// Runs test programs, as many at once as there are processors, in their order. What each prints stands together, once it has ended.
/// Gives the remark on each, or why it failed.
pub(super) fn run(all: Vec<Command>) -> Vec<Result<String>> {
    let lanes = thread::available_parallelism().map_or(1, usize::from).min(MOST);
    let count = all.len();
    let mut done: Vec<Option<Result<String>>> = Vec::new();
    done.resize_with(count, || None);
    let waiting: Mutex<VecDeque<_>> = Mutex::new(all.into_iter().enumerate().collect());
    let next = || waiting.lock().expect("nobody panics with it").pop_front();
    let done = Mutex::new(done);
    thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                while let Some((index, mut command)) = next() {
                    println!("[{}/{count}] $ {}", index + 1, shown(&command));
                    let start = Instant::now();
                    let (text, end) = counted(&mut command);
                    let result = end.as_ref().map_or("FAILED", |_| "ok");
                    println!(
                        "[{}/{count}] {result} after {:.0} s: {}\n{text}",
                        index + 1,
                        start.elapsed().as_secs_f64(),
                        shown(&command)
                    );
                    done.lock().expect("nobody panics with it")[index] = Some(end);
                }
            });
        }
    });
    let done = done.into_inner().expect("nobody panicked with it");
    done.into_iter()
        .map(|end| end.context("it was not run")?)
        .collect()
}

/// Runs tests; gives what they printed, and how many there were.
fn counted(command: &mut Command) -> (String, Result<String>) {
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(e) => return (String::new(), Err(e).context("cannot run it")),
    };
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let end = Counts::parse(&out).and_then(|counts| {
        ended(&counts, output.status.code(), &out, &err)?;
        counts.remark()
    });
    (out + &err, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_end() {
        let sh = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        };
        let good = "sleep 0.1; echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";
        let bad = "echo 'test result: FAILED. 1 passed; 1 failed'; exit 101";
        let ends = run(vec![
            sh(good),
            sh(bad),
            sh("exit 3"),
            Command::new("no-such-program"),
        ]);
        assert_eq!(ends[0].as_ref().unwrap(), "2 tests");
        assert!(
            ends[1]
                .as_ref()
                .unwrap_err()
                .to_string()
                .contains("1 of 2 tests failed")
        );
        assert!(ends[2].as_ref().unwrap_err().to_string().contains("exit code 3"));
        assert_eq!(ends[3].as_ref().unwrap_err().to_string(), "cannot run it");
        assert!(run(Vec::new()).is_empty());
    }
}
