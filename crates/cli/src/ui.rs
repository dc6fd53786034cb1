//! What all commands share at the terminal: results on stdout, progress and errors on stderr, Ctrl-C, exit codes.
//!
//! Exit codes: 0 done; 1 the answer is no, or something failed on the way; 2 the input is wrong; 130 stopped by
//! Ctrl-C, with partial results. The first Ctrl-C asks the command to stop and keep what it has, the second one ends
//! the process at once. SIGTERM and SIGHUP (a service that is stopped, a terminal that is closed) do the same, but a
//! SIGHUP that the starter ignores, as `nohup` does, stays ignored.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit code of a program that an interrupt has ended: 128 + SIGINT.
const INTERRUPTED: u8 = 130;
/// What takes no longer than this shows no progress.
const PATIENCE: Duration = Duration::from_secs(2);

/// Options of every command.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Options {
    /// Print one JSON document, as the last line of stdout, and no progress
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no progress and no summary
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// Why a command did not do what it was asked for: one sentence, and an exit code.
#[derive(Debug)]
pub struct Failure {
    sentence: String,
    code: u8,
}

impl Failure {
    /// The input is wrong: arguments, or a file that somebody wrote. Exit code 2.
    pub fn input(sentence: impl Display) -> Failure {
        Failure {
            sentence: sentence.to_string(),
            code: 2,
        }
    }

    /// Something went wrong on the way, the disk is full for example. Exit code 1.
    pub fn on_the_way(sentence: impl Display) -> Failure {
        Failure {
            sentence: sentence.to_string(),
            code: 1,
        }
    }

    /// The same sentence with another exit code.
    pub fn with_code(self, code: u8) -> Failure {
        Failure { code, ..self }
    }

    /// Prints the sentence and gives the exit code.
    pub fn report(&self) -> ExitCode {
        warn(&self.sentence);
        ExitCode::from(self.code)
    }
}

/// The terminal, or whatever stands in its place.
#[derive(Clone, Debug)]
pub struct Ui {
    options: Options,
    stop: Arc<AtomicBool>,
}

impl Ui {
    /// With these options; from now on Ctrl-C, SIGTERM and SIGHUP are ours.
    pub fn new(options: Options) -> Ui {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && is_ignored(SIGHUP) {
                continue;
            }
            // without a handler the signal still ends the process: no reason to give up
            let _ = flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&stop))
                .and_then(|_| flag::register(signal, Arc::clone(&stop)));
        }
        Ui { options, stop }
    }

    /// Prints a sentence on stderr, unless JSON or silence was asked for.
    pub fn tell(&self, sentence: &str) {
        if !self.options.json && !self.options.quiet {
            warn(sentence);
        }
    }

    /// True from the first of these signals on. Long work looks here at least ten times a second.
    pub fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Exit code of a command that is done, or was stopped.
    pub fn exit_code(&self) -> ExitCode {
        if self.stop.load(Ordering::Relaxed) {
            ExitCode::from(INTERRUPTED)
        } else {
            ExitCode::SUCCESS
        }
    }

    /// Prints text for people, unless JSON or silence was asked for.
    pub fn say(&self, text: impl Display) -> Result<(), Failure> {
        if self.options.json || self.options.quiet {
            return Ok(());
        }
        print(&format!("{text}\n"))
    }

    /// Prints the one JSON document if it was asked for.
    pub fn answer(&self, document: &impl Serialize) -> Result<(), Failure> {
        if !self.options.json {
            return Ok(());
        }
        let mut line = serde_json::to_string(document)
            .map_err(|e| Failure::on_the_way(format!("the result cannot be written as JSON: {e}")))?;
        line.push('\n');
        print(&line)
    }

    /// A line that says how far something is whose end nobody knows. Not shown where nobody looks.
    pub fn live(&self) -> Live {
        let silent = self.options.json || self.options.quiet || !io::stderr().is_terminal();
        let bar = ProgressBar::new_spinner();
        if silent {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(ProgressStyle::with_template("{msg}").expect("a template of our own"));
        Live { bar }
    }

    /// Progress of `total` steps of work. Nothing is shown for the first two seconds, nor where nobody looks.
    pub fn progress(&self, what: &str, total: u64) -> Progress {
        let silent = self.options.json || self.options.quiet || !io::stderr().is_terminal();
        Progress::new(what, total, !silent)
    }
}

/// Whether whoever started this process has it ignore the signal (`SigIgn` in proc_pid_status(5)).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal - 1) & 1 == 1
}

/// A bar on stderr that goes away in the end. Any thread may move it.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    begun: Instant,
    waiting: AtomicBool,
}

impl Progress {
    fn new(what: &str, total: u64, wanted: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {eta} left");
        bar.set_style(style.expect("a template of our own"));
        bar.set_message(what.to_owned());
        Progress {
            bar,
            begun: Instant::now(),
            waiting: AtomicBool::new(wanted),
        }
    }

    /// So much is done.
    pub fn set(&self, done: u64) {
        if self.begun.elapsed() > PATIENCE && self.waiting.swap(false, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(done);
    }

    /// So much of so much is done.
    pub fn set_of(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.set(done);
    }

    /// What is being done now.
    pub fn rename(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// One line on stderr that changes.
#[derive(Debug)]
pub struct Live {
    bar: ProgressBar,
}

impl Live {
    /// What it says now.
    pub fn set(&self, text: &str) {
        self.bar.set_message(text.to_owned());
        self.bar.tick();
    }

    /// Takes it away, until it says something again.
    pub fn clear(&self) {
        self.bar.set_message("");
        self.bar.tick();
    }
}

/// One sentence on stderr.
pub fn warn(sentence: &str) {
    // a closed stderr is no reason to fail
    let _ = writeln!(io::stderr(), "sdmac: {sentence}");
}

/// Prints text as it is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // whoever reads has seen enough: `sdmac ... | head`
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(e) => Err(Failure::on_the_way(format!("cannot write to stdout: {e}"))),
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_waits_two_seconds() {
        let mut p = Progress::new("runs", 10, true);
        p.set(3);
        assert!(p.waiting.load(Ordering::Relaxed), "nothing shown yet");
        assert_eq!(p.bar.position(), 3);
        p.begun = Instant::now() - PATIENCE - Duration::from_millis(1);
        p.set(4);
        assert!(!p.waiting.load(Ordering::Relaxed));
        p.finish();
    }

    #[test]
    fn nobody_looks_no_progress() {
        let mut p = Progress::new("runs", 10, false);
        p.begun = Instant::now() - 2 * PATIENCE;
        p.set(1);
        assert!(p.bar.is_hidden());
    }
}
