//! Runs a program and tells what it cost: CPU time and memory from the kernel, instructions from `perf` where there are counters.

use std::io::{Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result, bail};
use wait4::Wait4;

/// Set by Ctrl-C, which also reaches the program that is running.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on Ctrl-C ends the program that runs, and only that.
pub(super) fn catch_interrupt() -> Result<()> {
    let flag = Arc::clone(&INTERRUPTED);
    signal_hook::flag::register(signal_hook::consts::SIGINT, flag).context("cannot catch Ctrl-C")?;
    Ok(())
}

/// True after Ctrl-C.
pub(super) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// A program that has run to its end.
#[derive(Debug)]
pub(super) struct Finished {
    /// Everything it printed.
    pub stdout: String,
    /// User and system CPU time of the whole process, seconds.
    pub cpu_s: f64,
    /// Largest resident set, in units of 1024 octets. Never less than that of the process which started it.
    pub max_rss_kb: u64,
}

/// Runs it and waits. A program that fails is an error that ends with the last line it wrote to standard error.
pub(super) fn run(command: &mut Command) -> Result<Finished> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let stderr = child.stderr.take();
    let errors = std::thread::spawn(move || read(stderr));
    let stdout = read(child.stdout.take());
    let used = child
        .wait4()
        .with_context(|| format!("cannot wait for {program}"))?;
    let stderr = errors.join().unwrap_or_default();
    if killed_by_interrupt(used.status) {
        // the handler has a thread of its own and may be late
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    if !used.status.success() {
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
        bail!("{program}: {}: {}", used.status, last.unwrap_or("no message"));
    }
    Ok(Finished {
        stdout,
        cpu_s: (used.rusage.utime + used.rusage.stime).as_secs_f64(),
        max_rss_kb: used.rusage.maxrss / 1024,
    })
}

/// True for a program that Ctrl-C has ended, and for one that says so by the exit code of shells.
fn killed_by_interrupt(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    const SIGINT: i32 = 2;
    status.signal() == Some(SIGINT) || status.code() == Some(128 + SIGINT)
}

/// User-mode instructions of a program and its children, or none where `perf` or the counter is missing.
pub(super) fn instructions(command: &Command) -> Option<f64> {
    let output = Command::new("perf")
        .args(["stat", "-x", ",", "-e", "instructions:u", "--"])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| counted(&String::from_utf8_lossy(&output.stderr)))?
}

/// The count in what `perf stat -x ,` prints: value, unit, event, ...
fn counted(csv: &str) -> Option<f64> {
    let line = csv
        .lines()
        .find(|line| line.split(',').nth(2) == Some("instructions:u"))?;
    line.split(',').next()?.parse().ok()
}

/// Progress goes to standard error, at once. A closed standard error is no reason to stop.
pub(super) fn tell(text: &str) {
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// All that comes, up to an error; what is no UTF-8 is replaced.
fn read(from: Option<impl Read>) -> String {
    let mut octets = Vec::new();
    if let Some(mut from) = from {
        let _ = from.read_to_end(&mut octets);
    }
    String::from_utf8_lossy(&octets).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn cpu_time_and_memory_are_of_the_child() {
        let idle = run(&mut shell("sleep 0.2")).unwrap();
        let busy = run(&mut shell(
            "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done",
        ))
        .unwrap();
        assert_eq!(busy.stdout, "done\n");
        assert!(idle.cpu_s < 0.1, "{idle:?}");
        assert!(busy.cpu_s > 2.0 * idle.cpu_s, "{busy:?} {idle:?}");
        let large = run(&mut shell(
            "head -c 100000000 /dev/zero | tail -c 90000000 >/dev/null",
        ))
        .unwrap();
        assert!(large.max_rss_kb > 80_000, "{large:?}");
        assert!((1..50_000).contains(&idle.max_rss_kb), "{idle:?}");
    }

    #[test]
    fn a_failure_ends_with_the_last_line() {
        let error = run(&mut shell("echo first >&2; echo last >&2; exit 3"))
            .unwrap_err()
            .to_string();
        assert_eq!(error, "sh: exit status: 3: last");
        let error = run(&mut Command::new("no-such-program")).unwrap_err().to_string();
        assert_eq!(error, "cannot run no-such-program");
    }

    #[test]
    fn much_output_on_both_sides_does_not_block() {
        let finished = run(&mut shell(
            "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero",
        ))
        .unwrap();
        assert_eq!(finished.stdout.len(), 1_000_000);
    }

    #[test]
    fn perf_output() {
        assert_eq!(
            counted("a warning\n123456,,instructions:u,1000,100.00,,\n"),
            Some(123_456.0)
        );
        assert_eq!(counted("<not supported>,,instructions:u,0,100.00,,\n"), None);
        assert_eq!(counted(""), None);
    }
}
