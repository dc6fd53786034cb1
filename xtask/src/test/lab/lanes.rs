//! Work that takes one processor at a time, several at once.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::test::tools::{Run, shown};

/// At most so many at once: guests take up to half a gigabyte each.
const MOST: usize = 4;

/// Runs test programs, as many at once as there are processors, in their order. What each prints stands together, once it has ended.
/// Gives the remark on each, or why it failed.
pub(super) fn run(all: Vec<Command>) -> Vec<Result<String>> {
    let lanes = thread::available_parallelism().map_or(1, usize::from).min(MOST);
    let count = all.len();
    let waiting = Mutex::new(all.into_iter().enumerate());
    let next = || waiting.lock().expect("nobody panics with it").next();
    let lane = || {
        let mut done = Vec::new();
        while let Some((index, mut command)) = next() {
            let name = format!("[{}/{count}]", index + 1);
            println!("{name} $ {}", shown(&command));
            let start = Instant::now();
            let (text, end) = counted(&mut command);
            let result = end.as_ref().map_or("FAILED", |_| "ok");
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "{name} {result} after {seconds:.0} s: {}\n{text}",
                shown(&command)
            );
            done.push((index, end));
        }
        done
    };
    let mut done: Vec<_> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        let done = lanes
            .into_iter()
            .flat_map(|l| l.join().expect("a lane does not panic"));
        done.collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, end)| end).collect()
}

/// Runs tests; gives what they printed, and how many there were.
fn counted(command: &mut Command) -> (String, Result<String>) {
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(e) => return (String::new(), Err(e).context("cannot run it")),
    };
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    let run = Run {
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
        code: output.status.code(),
    };
    let end = run.tests();
    (run.stdout + &run.stderr, end)
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
