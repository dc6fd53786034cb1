//! Test programs that seldom fill all processors, several at once.

use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};

use super::tools::{Run, shown};

/// At most so many at once: guests take up to half a gigabyte each.
const MOST: usize = 4;

/// A program to run.
pub(super) struct Work {
    command: Command,
    /// Whether it needs what the first one makes.
    waits: bool,
}

impl From<Command> for Work {
    fn from(command: Command) -> Work {
        Work {
            command,
            waits: false,
        }
    }
}

impl Work {
    /// Begins when the first one has ended well, and fails when that has failed.
    pub(super) fn after_first(self) -> Work {
        Work { waits: true, ..self }
    }
}

/// What is left to do.
struct Left {
    waiting: Vec<(usize, Work)>,
    /// How the first one ended.
    first: Option<bool>,
}

/// The list, and news of the first one.
struct List(Mutex<Left>, Condvar);

impl List {
    fn new(all: Vec<Work>) -> List {
        let waiting = all.into_iter().enumerate().collect();
        let left = Left { waiting, first: None };
        List(Mutex::new(left), Condvar::new())
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.0.lock().expect("nobody panics with it")
    }

    /// The next one that may begin, and whether what it needs is there; waits for the first one if all others do.
    fn next(&self) -> Option<(usize, Work, bool)> {
        let mut left = self.left();
        loop {
            let known = left.first.is_some();
            if let Some(place) = left.waiting.iter().position(|(_, work)| known || !work.waits) {
                let (index, work) = left.waiting.remove(place);
                let can = !work.waits || left.first == Some(true);
                return Some((index, work, can));
            }
            if left.waiting.is_empty() {
                return None;
            }
            left = self.1.wait(left).expect("nobody panics with it");
        }
    }

    fn ended(&self, index: usize, well: bool) {
        if index == 0 {
            self.left().first = Some(well);
            self.1.notify_all();
        }
    }
}

/// Runs programs, as many at once as there are processors, in their order. What each prints stands together, once it has ended. An
/// `Err` is a program that could not be started.
pub(super) fn run(all: Vec<Work>) -> Vec<Result<Run>> {
    let lanes = thread::available_parallelism().map_or(1, usize::from).min(MOST);
    let count = all.len();
    let list = List::new(all);
    let lane = || {
        let mut done = Vec::new();
        while let Some((index, mut work, can)) = list.next() {
            let end = if can {
                told(&format!("[{}/{count}]", index + 1), &mut work.command)
            } else {
                Err(anyhow!("what it needs was not made"))
            };
            list.ended(index, end.as_ref().is_ok_and(is_good));
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

fn is_good(run: &Run) -> bool {
    run.code == Some(0)
}

/// Runs one, and tells of it.
fn told(name: &str, command: &mut Command) -> Result<Run> {
    println!("{name} $ {}", shown(command));
    let start = Instant::now();
    let end = read(command);
    let result = if end.as_ref().is_ok_and(is_good) {
        "ok"
    } else {
        "FAILED"
    };
    let seconds = start.elapsed().as_secs_f64();
    let (stdout, stderr) = end.as_ref().map_or(("", ""), |run| (&run.stdout, &run.stderr));
    println!(
        "{name} {result} after {seconds:.0} s: {}\n{stdout}{stderr}",
        shown(command)
    );
    end
}

fn read(command: &mut Command) -> Result<Run> {
    let output = command.stdin(Stdio::null()).output().context("cannot run it")?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    Ok(Run {
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
        code: output.status.code(),
    })
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
        let ends = run([sh(good), sh(bad), sh("exit 3"), Command::new("no-such-program")]
            .map(Work::from)
            .into());
        let code = |index: usize| ends[index].as_ref().map(|run| run.code).ok();
        assert_eq!(
            [0, 1, 2].map(code),
            [Some(Some(0)), Some(Some(101)), Some(Some(3))]
        );
        assert!(ends[0].as_ref().unwrap().stdout.contains("2 passed"));
        assert_eq!(ends[3].as_ref().err().unwrap().to_string(), "cannot run it");
        assert!(run(Vec::new()).is_empty());
    }

    /// The second needs a file of the first, who is slow; the others do not wait.
    #[test]
    fn who_needs_the_first_waits_for_it() {
        let folder = std::env::temp_dir().join(format!("sdmac-lanes-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let sh = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", text]).current_dir(&folder);
            Work::from(command)
        };
        let codes = |all: Vec<Work>| -> Vec<Option<i32>> {
            let ends = run(all);
            ends.into_iter()
                .map(|end| end.ok().and_then(|run| run.code))
                .collect()
        };
        let slow = sh("sleep 0.3; touch made");
        let all = vec![slow, sh("test -e made").after_first(), sh("test ! -e made")];
        assert_eq!(codes(all), [Some(0); 3]);
        let all = vec![sh("exit 1"), sh("true").after_first(), sh("true")];
        assert_eq!(codes(all), [Some(1), None, Some(0)]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
