//! Test programs that seldom fill all processors, several at once.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use super::counts::without_passed;
use super::tools::{Run, shown};

/// At most so many at once: guests take up to half a gigabyte each.
const MOST: usize = 4;

/// Runs test programs, as many at once as there are processors, in their order. What each prints stands together, once it has ended.
/// An `Err` is a program that could not be started.
pub(super) fn run(all: Vec<Command>) -> Vec<Result<Run>> {
    each(all, true)
}

/// The same, and shows nothing.
pub(super) fn run_unseen(all: Vec<Command>) -> Vec<Result<Run>> {
    each(all, false)
}

fn each(all: Vec<Command>, is_shown: bool) -> Vec<Result<Run>> {
    let lanes = thread::available_parallelism().map_or(1, usize::from).min(MOST);
    let count = all.len();
    let waiting = Mutex::new(all.into_iter().enumerate());
    let next = || waiting.lock().expect("nobody panics with it").next();
    let lane = || {
        let mut done = Vec::new();
        while let Some((index, mut command)) = next() {
            let name = format!("[{}/{count}]", index + 1);
            if is_shown {
                println!("{name} $ {}", shown(&command));
            }
            let start = Instant::now();
            let end = read(&mut command);
            let passed = end.as_ref().is_ok_and(|run| run.code == Some(0));
            let result = if passed { "ok" } else { "FAILED" };
            let seconds = start.elapsed().as_secs_f64();
            let (stdout, stderr) = end.as_ref().map_or(("", ""), |run| (&run.stdout, &run.stderr));
            if is_shown {
                println!(
                    "{name} {result} after {seconds:.0} s: {}\n{}{stderr}",
                    shown(&command),
                    without_passed(stdout)
                );
            }
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

fn read(command: &mut Command) -> Result<Run> {
    let output = command.stdin(Stdio::null()).output().context("cannot run it")?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    Ok(Run::new(
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    ))
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
        let code = |index: usize| ends[index].as_ref().map(|run| run.code).ok();
        assert_eq!(
            [0, 1, 2].map(code),
            [Some(Some(0)), Some(Some(101)), Some(Some(3))]
        );
        assert!(ends[0].as_ref().unwrap().stdout.contains("2 passed"));
        assert_eq!(ends[3].as_ref().err().unwrap().to_string(), "cannot run it");
        assert!(run(Vec::new()).is_empty());
    }
}
