//! What all commands share at the terminal: results on stdout, progress and errors on stderr, Ctrl-C, exit codes.
//!
//! Exit codes: 0 done; 1 the answer is no, or something failed on the way; 2 the input is wrong; 130 stopped by
//! Ctrl-C, with partial results. The first Ctrl-C asks the command to stop and keep what it has, the second one ends
//! the process at once. SIGTERM and SIGHUP (a service that is stopped, a terminal that is closed) do the same, but a
//! SIGHUP that the starter ignores, as `nohup` does, stays ignored.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit code of a program that an interrupt has ended: 128 + SIGINT.
const INTERRUPTED: u8 = 130;
/// What takes no longer than this shows no progress.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often progress is drawn.
const LOOK: Duration = Duration::from_millis(100);

/// Options of every command.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Options {
    /// Print one JSON document, as the last line of stdout, and no progress; none where the input is wrong (exit code 2)
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

    /// A file cannot be opened: the input is wrong, or [`open`] was stopped.
    pub fn opening(what: impl Display, why: &io::Error) -> Failure {
        let stopped = why.kind() == io::ErrorKind::Interrupted;
        Failure::input(format!("{what}: {why}")).with_code(if stopped { INTERRUPTED } else { 2 })
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

    /// Whether one JSON document is all that goes to stdout.
    pub fn is_json(&self) -> bool {
        self.options.json
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
        print(&json_line(document)?)
    }

    /// The same on stderr, where stdout carries something else.
    pub fn answer_beside(&self, document: &impl Serialize) -> Result<(), Failure> {
        if self.options.json {
            // a closed stderr is no reason to fail
            let _ = io::stderr().write_all(json_line(document)?.as_bytes());
        }
        Ok(())
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
        let target = (!silent).then(ProgressDrawTarget::stderr);
        Progress::new(what, total, target, PATIENCE)
    }
}

fn json_line(document: &impl Serialize) -> Result<String, Failure> {
    let line = serde_json::to_string(document)
        .map_err(|e| Failure::on_the_way(format!("the result cannot be written as JSON: {e}")))?;
    Ok(line + "\n")
}

/// Whether whoever started this process has it ignore the signal (`SigIgn` in proc_pid_status(5)).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal - 1) & 1 == 1
}

/// A bar on stderr that goes away in the end. Any thread may move it, and none that does waits for the terminal: a thread of
/// the bar's own draws it.
#[derive(Debug)]
pub struct Progress {
    state: Arc<State>,
    drawer: Option<JoinHandle<()>>,
}

/// What whoever draws is told.
#[derive(Debug)]
struct State {
    done: AtomicU64,
    total: AtomicU64,
    /// What is being done, since it has changed.
    what: Mutex<Option<&'static str>>,
    over: AtomicBool,
}

impl Progress {
    /// `target`: where it is drawn, once `patience` is over; `None`: nowhere.
    fn new(what: &str, total: u64, target: Option<ProgressDrawTarget>, patience: Duration) -> Progress {
        let state = Arc::new(State {
            done: AtomicU64::new(0),
            total: AtomicU64::new(total),
            what: Mutex::new(None),
            over: AtomicBool::new(false),
        });
        let start = |target| {
            let mut drawing = Drawing::new(what, target, patience);
            let state = Arc::clone(&state);
            let draw = move || {
                while !state.over.load(Ordering::Acquire) {
                    std::thread::park_timeout(LOOK);
                    drawing.draw(&state);
                }
                drawing.bar.finish_and_clear();
            };
            // without a thread there is no bar: no reason to give up
            std::thread::Builder::new().spawn(draw).ok()
        };
        let drawer = target.and_then(start);
        Progress { state, drawer }
    }

    /// So much is done.
    pub fn set(&self, done: u64) {
        self.state.done.store(done, Ordering::Relaxed);
    }

    /// So much of so much is done.
    pub fn set_of(&self, done: u64, total: u64) {
        self.state.total.store(total, Ordering::Relaxed);
        self.set(done);
    }

    /// What is being done now.
    pub fn rename(&self, what: &'static str) {
        // whoever draws holds it no longer than it takes to copy a word, and nobody waits for that, either
        if let Ok(mut now) = self.state.what.try_lock() {
            *now = Some(what);
        }
    }

    /// Takes the bar away. A terminal that nobody reads is waited for a second, no longer.
    pub fn finish(&self) {
        let Some(drawer) = &self.drawer else { return };
        if self.state.over.swap(true, Ordering::AcqRel) {
            return;
        }
        drawer.thread().unpark();
        for _ in 0..1_000 {
            if drawer.is_finished() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The bar, in the hands of the thread that draws it.
struct Drawing {
    bar: ProgressBar,
    begun: Instant,
    patience: Duration,
    /// Where to, until it is drawn there.
    target: Option<ProgressDrawTarget>,
}

impl Drawing {
    fn new(what: &str, target: ProgressDrawTarget, patience: Duration) -> Drawing {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {eta} left");
        bar.set_style(style.expect("a template of our own"));
        bar.set_message(what.to_owned());
        Drawing {
            bar,
            begun: Instant::now(),
            patience,
            target: Some(target),
        }
    }

    fn draw(&mut self, state: &State) {
        if self.begun.elapsed() >= self.patience
            && let Some(target) = self.target.take()
        {
            self.bar.set_draw_target(target);
        }
        // copied, so that it is not held while the terminal takes its time
        let what = state.what.lock().map_or(None, |mut what| what.take());
        if let Some(what) = what {
            self.bar.set_message(what);
        }
        self.bar.set_length(state.total.load(Ordering::Relaxed));
        self.bar.set_position(state.done.load(Ordering::Relaxed));
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

/// Opens a file. One that waits for somebody at its other end, a named pipe, is waited for until the user asks to stop.
pub fn open(options: &OpenOptions, path: &Path, stop: &AtomicBool) -> io::Result<File> {
    let (tell, told) = mpsc::channel();
    let (options, place) = (options.clone(), path.to_owned());
    thread::spawn(move || {
        // who asked to stop does not hear it
        let _ = tell.send(options.open(place));
    });
    let begun = Instant::now();
    let mut said = false;
    loop {
        match told.recv_timeout(LOOK) {
            Ok(done) => return done,
            Err(_) if stop.load(Ordering::Relaxed) => {
                let why = "stopped, and nobody had opened its other end";
                return Err(io::Error::new(io::ErrorKind::Interrupted, why));
            }
            Err(_) if !said && begun.elapsed() > PATIENCE => {
                said = true;
                warn(&format!(
                    "{}: waits for somebody to open its other end",
                    path.display()
                ));
            }
            Err(_) => {}
        }
    }
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

    use std::sync::mpsc;
    use std::thread::{self, ThreadId};

    use indicatif::TermLike;

    /// A terminal that takes what it is given, or that nobody reads any more: then a write to it never ends.
    #[derive(Debug, Clone)]
    struct Terminal {
        text: Arc<Mutex<String>>,
        /// Told when somebody waits in here for ever.
        stalled: Option<mpsc::Sender<ThreadId>>,
        /// Who must not come here.
        protocol: ThreadId,
    }

    impl Terminal {
        fn new(stalled: Option<mpsc::Sender<ThreadId>>) -> Terminal {
            Terminal {
                text: Arc::default(),
                stalled,
                protocol: thread::current().id(),
            }
        }

        fn target(&self) -> ProgressDrawTarget {
            ProgressDrawTarget::term_like(Box::new(self.clone()))
        }

        fn write(&self, text: &str) -> io::Result<()> {
            self.text.lock().unwrap().push_str(text);
            let Some(stalled) = &self.stalled else {
                return Ok(());
            };
            let _ = stalled.send(thread::current().id());
            while thread::current().id() != self.protocol {
                thread::park();
            }
            Ok(())
        }
    }

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            self.write("")
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            self.write("")
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            self.write("")
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            self.write("")
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.write(text)
        }
        fn clear_line(&self) -> io::Result<()> {
            self.write("")
        }
        fn flush(&self) -> io::Result<()> {
            self.write("")
        }
    }

    /// Everything but whoever draws goes on.
    #[test]
    fn a_terminal_that_nobody_reads_holds_nobody_up() {
        let (tell, told) = mpsc::channel();
        let terminal = Terminal::new(Some(tell));
        let progress = Progress::new("running", 1_000, Some(terminal.target()), Duration::ZERO);
        progress.set(1);
        let drawer = told.recv().unwrap();
        assert_ne!(drawer, terminal.protocol);
        for n in 0..1_000 {
            progress.rename("still running");
            progress.set_of(n, 2_000);
        }
        progress.finish();
        drop(progress);
        assert!(told.try_iter().all(|who| who == drawer));
    }

    #[test]
    fn progress_is_patient_and_drawn_as_told() {
        let terminal = Terminal::new(None);
        let progress = Progress::new("runs", 10, None, PATIENCE);
        progress.set(3);
        let mut drawing = Drawing::new("runs", terminal.target(), PATIENCE);
        drawing.draw(&progress.state);
        assert_eq!(
            *terminal.text.lock().unwrap(),
            "",
            "nothing is shown for two seconds"
        );
        drawing.begun = Instant::now() - PATIENCE - Duration::from_millis(1);
        progress.rename("more");
        drawing.draw(&progress.state);
        assert_eq!((drawing.bar.position(), drawing.bar.length()), (3, Some(10)));
        let text = terminal.text.lock().unwrap().clone();
        assert!(text.contains("more") && text.contains("30%"), "{text}");
    }

    #[test]
    fn nobody_looks_no_progress() {
        let silent = Ui {
            options: Options {
                json: true,
                quiet: false,
            },
            stop: Arc::default(),
        };
        assert!(silent.progress("runs", 10).drawer.is_none());
    }
}
