//! Other programs: running them, and getting those that are not on every machine.
//!
//! A machine with rustup and a C compiler is enough. What else a step wants is fetched when that is cheap; when that
//! fails, the step is skipped with the reason, and the run does not fail.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{Workspace, cargo};

/// `cargo` with these arguments, spaces between them, at the root.
pub(crate) fn cargo_at_root(workspace: &Workspace, arguments: &str) -> Command {
    let mut command = Command::new(cargo());
    command
        .args(arguments.split_whitespace())
        .current_dir(&workspace.root);
    command
}

/// The nightly `cargo` with these arguments, at the root, our tools in its reach.
pub(super) fn nightly_at_root(workspace: &Workspace, arguments: &str) -> Command {
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "cargo"])
        .args(arguments.split_whitespace())
        .current_dir(&workspace.root);
    // Set by the stable cargo that runs us, and wrong for another toolchain.
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"] {
        command.env_remove(name);
    }
    with_tools(&mut command, workspace);
    command
}

/// Prints the command and runs it; its output goes where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", name(command)))?;
    ensure!(status.success(), "{} failed ({status})", shown(command));
    Ok(())
}

/// What a command printed, and how it ended.
pub(super) struct Run {
    pub(super) stdout: String,
    /// What it wrote to the standard error.
    pub(super) stderr: String,
    /// Exit code; `None` when a signal ended it.
    pub(super) code: Option<i32>,
}

/// Runs a command, shows its output as it comes and keeps it.
pub(super) fn run_and_read(command: &mut Command) -> Result<Run> {
    println!("$ {}", shown(command));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", name(command)))?;
    let [out, err] = (child.stdout.take().zip(child.stderr.take()))
        .map(|(out, err)| [Box::new(out) as Box<dyn Read + Send>, Box::new(err)])
        .context("the output is not piped")?;
    let stderr = std::thread::spawn(|| kept(err, |line| eprint!("{line}")));
    let stdout = kept(out, |line| print!("{line}"))?;
    let stderr = stderr.join().ok().context("the standard error was not read")??;
    Ok(Run {
        stdout,
        stderr,
        code: child.wait()?.code(),
    })
}

/// All that comes, each line shown at once.
fn kept(from: impl Read, show: impl Fn(&str)) -> Result<String> {
    let mut reader = BufReader::new(from);
    let (mut all, mut line) = (String::new(), Vec::new());
    while reader.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        show(&text);
        all += &text;
        line.clear();
    }
    Ok(all)
}

/// The standard output of a command that succeeds and is not worth showing.
pub(super) fn answer(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Installs a program from its crate into the build folder, unless it is there. `Err` says why it is not.
pub(crate) fn install(workspace: &Workspace, package: &str, version: &str) -> Result<(), String> {
    let folder = workspace.target.join("tools");
    let have = answer(cargo_at_root(workspace, "install --list --root").arg(&folder));
    if have.is_some_and(|list| list.lines().any(|line| line == format!("{package} v{version}:"))) {
        return Ok(());
    }
    let mut command = cargo_at_root(workspace, "install --locked --root");
    command.arg(&folder).args([package, "--version", version]);
    // Without a network this is to fail soon.
    command
        .env("CARGO_NET_RETRY", "1")
        .env("CARGO_HTTP_TIMEOUT", "20");
    run(&mut command)
        .map_err(|_| format!("{package} {version} is not here and cannot be installed, see above"))
}

/// Adds the folder of [`install`] to the path of a command.
pub(crate) fn with_tools(command: &mut Command, workspace: &Workspace) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [workspace.target.join("tools/bin")]
        .into_iter()
        .chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(folders) {
        command.env("PATH", path);
    }
}

/// Whether a program answers to `--version`.
pub(super) fn exists(program: &str) -> bool {
    answer(Command::new(program).arg("--version")).is_some()
}

/// Makes sure that the standard library for `target` is there. `Err` says why it is not.
pub(super) fn rust_target(workspace: &Workspace, target: &str) -> Result<(), String> {
    let installed = answer(
        Command::new("rustup")
            .args(["target", "list", "--installed"])
            .current_dir(&workspace.root),
    );
    match installed {
        Some(list) if list.lines().any(|line| line == target) => return Ok(()),
        Some(_) => {}
        // A toolchain that did not come from rustup may have the target all the same.
        None if has_sysroot(workspace, target) => return Ok(()),
        None => return Err(format!("there is no rustup to install the target {target}")),
    }
    run(Command::new("rustup")
        .args(["target", "add", target])
        .current_dir(&workspace.root))
    .map_err(|_| format!("the target {target} is not here and cannot be installed, see above"))
}

fn has_sysroot(workspace: &Workspace, target: &str) -> bool {
    let sysroot = answer(
        Command::new("rustc")
            .args(["--print", "sysroot"])
            .current_dir(&workspace.root),
    );
    sysroot.is_some_and(|path| Path::new(path.trim()).join("lib/rustlib").join(target).is_dir())
}

/// Makes sure that there is a nightly toolchain with these components. `Err` says what is missing.
pub(super) fn nightly(components: &[&str]) -> Result<(), String> {
    let list =
        answer(Command::new("rustup").args(["component", "list", "--toolchain", "nightly", "--installed"]))
            .ok_or("no nightly toolchain: `rustup toolchain install nightly`")?;
    match components
        .iter()
        .find(|name| !list.lines().any(|line| line.starts_with(**name)))
    {
        None => Ok(()),
        Some(name) => Err(format!(
            "nightly has no {name}: `rustup component add --toolchain nightly {name}`"
        )),
    }
}

impl Run {
    /// How many tests it says there were; an error if one failed, or if it ended badly for another reason.
    pub(super) fn tests(&self) -> Result<String> {
        let counts = Counts::parse(&self.stdout)?;
        if counts.failed == 0 && self.code != Some(0) {
            let code = self
                .code
                .map_or("a signal".to_owned(), |code| format!("exit code {code}"));
            let last = |text: &str| text.trim_end().lines().next_back().unwrap_or("").to_owned();
            bail!(
                "ended by {code} after `{}` and `{}`",
                last(&self.stdout),
                last(&self.stderr)
            );
        }
        counts.remark()
    }
}

/// How many tests a run of `cargo test` counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    /// Those that failed, as far as they were told.
    failures: Vec<Failure>,
    /// Names with reasons.
    ignored: Vec<String>,
}

/// A test that failed.
#[derive(Debug, Default, PartialEq, Eq)]
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
    /// Its name, and below it where it panicked and the first lines of the message.
    fn told(&self) -> String {
        let panic = self.said.iter().position(|line| line.contains("panicked at"));
        let first = self.said.iter().skip(panic.unwrap_or(0));
        let lines = first.filter(|line| !line.trim().is_empty()).take(LINES);
        let cut = |line: &String| format!("\n    {}", line.chars().take(WIDTH).collect::<String>());
        format!("  {}{}", self.name, lines.map(cut).collect::<String>())
    }
}

impl Counts {
    /// Reads what the test harness prints.
    fn parse(text: &str) -> Result<Counts> {
        let mut counts = Counts::default();
        // whether a test that failed is being quoted
        let mut quotes = false;
        for line in text.lines() {
            let name = line
                .strip_prefix("---- ")
                .and_then(|rest| rest.strip_suffix(" stdout ----"));
            quotes &= line != "failures:";
            if let Some(name) = name {
                quotes = true;
                counts.failures.push(Failure {
                    name: name.to_owned(),
                    ..Failure::default()
                });
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

    /// For the table. Fails when a test failed, and when there was none: names in the first line, below it what each said.
    fn remark(&self) -> Result<String> {
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

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// The command as one would type it, with the variables that were set for it.
pub(super) fn shown(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(key, value)| Some((key.to_str()?, value?.to_str()?)))
        .filter(|(key, _)| *key != "PATH")
        .map(|(key, value)| format!("{key}={}", quoted(value)))
        .collect();
    words.push(
        Path::new(&name(command))
            .file_name()
            .map_or_else(|| name(command), |file| file.to_string_lossy().into_owned()),
    );
    words.extend(
        command
            .get_args()
            .map(|argument| quoted(&argument.to_string_lossy())),
    );
    words.join(" ")
}

fn quoted(word: &str) -> String {
    if word.contains(' ') {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
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
            thread 'a::b' (7) panicked at src/a.rs:3:5:\nassertion failed\n  left: 1\n right: 2\nnote: run with \
            `RUST_BACKTRACE=1`\n\n---- c stdout ----\nError: \"no such file\"\n\n\nfailures:\n    a::b\n    c\n\n\
            test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let counts = Counts::parse(text).unwrap();
        assert_eq!(
            counts.remark().unwrap_err().to_string(),
            "2 of 2 tests failed: a::b, c\n  a::b\n    thread 'a::b' (7) panicked at src/a.rs:3:5:\n    assertion failed\n\
            \x20     left: 1\n     right: 2\n    note: run with `RUST_BACKTRACE=1`\n  c\n    Error: \"no such file\""
        );
        let long = Failure {
            name: "d".to_owned(),
            said: vec!["x".repeat(1_000); 100],
        };
        assert_eq!(long.told().lines().count(), 1 + LINES);
        assert!(long.told().lines().all(|line| line.len() <= WIDTH + 4));
    }

    #[test]
    fn commands_are_shown_as_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command
            .args(["test", "--", "-D warnings"])
            .env("PROPTEST_CASES", "4")
            .env_remove("RUSTC");
        assert_eq!(shown(&command), "PROPTEST_CASES=4 cargo test -- '-D warnings'");
    }

    #[test]
    fn output_is_kept_and_failure_is_told() {
        let run =
            run_and_read(Command::new("sh").args(["-c", "echo one; echo two; echo no >&2; exit 3"])).unwrap();
        assert_eq!(
            (run.stdout.as_str(), run.stderr.as_str(), run.code),
            ("one\ntwo\n", "no\n", Some(3))
        );
        assert!(super::run(&mut Command::new("false")).is_err());
        assert!(!exists("no-such-program-here"));
    }
}
