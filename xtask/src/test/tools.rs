//! Other programs: running them, and getting those that are not on every machine.
//!
//! A machine with rustup and a C compiler is enough. What else a step wants is fetched when that is cheap; when that
//! fails, the step is skipped with the reason, and the run does not fail.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::counts::Counts;
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
    /// Programs of several that ended badly although none of their tests had failed, and how; empty for a program alone.
    pub(super) broken: Vec<String>,
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
    Ok(Run::new(stdout, stderr, child.wait()?.code()))
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

/// Installs a program from its crate into the build folder, unless it is there; not optimized, since building it takes longer than all
/// that it does here. `Err` says why it is not.
pub(crate) fn install(workspace: &Workspace, package: &str, version: &str) -> Result<(), String> {
    let folder = workspace.target.join("tools");
    let have = answer(cargo_at_root(workspace, "install --list --root").arg(&folder));
    if have.is_some_and(|list| list.lines().any(|line| line == format!("{package} v{version}:"))) {
        return Ok(());
    }
    let mut command = cargo_at_root(workspace, "install --debug --locked --root");
    command.arg(&folder).args([package, "--version", version]);
    // Without a network this is to fail soon.
    command
        .env("CARGO_NET_RETRY", "1")
        .env("CARGO_HTTP_TIMEOUT", "20")
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
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
    /// What one program printed, and how it ended.
    pub(super) fn new(stdout: String, stderr: String, code: Option<i32>) -> Run {
        Run {
            stdout,
            stderr,
            code,
            broken: Vec::new(),
        }
    }

    /// Several with their names, as if one program had printed all of it; it ends as the first that did not end well.
    pub(super) fn together(runs: Vec<(String, Run)>) -> Run {
        let first = |a: Option<i32>, b: Option<i32>| if a == Some(0) { b } else { a };
        let nothing = Run::new(String::new(), String::new(), Some(0));
        runs.into_iter().fold(nothing, |mut all, (name, run)| {
            if run.is_broken() {
                all.broken.push(format!("{name} {}", run.end()));
            }
            Run {
                stdout: all.stdout + &run.stdout,
                stderr: all.stderr + &run.stderr,
                code: first(all.code, run.code),
                broken: all.broken,
            }
        })
    }

    /// Whether it ended badly, and not since a test had failed.
    fn is_broken(&self) -> bool {
        self.code != Some(0) && Counts::parse(&self.stdout).is_ok_and(|counts| counts.failed == 0)
    }

    /// By what it ended, and what it said last.
    fn end(&self) -> String {
        let code = self
            .code
            .map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        let last = |text: &str| text.trim_end().lines().next_back().unwrap_or("").to_owned();
        format!(
            "ended by {code} after `{}` and `{}`",
            last(&self.stdout),
            last(&self.stderr)
        )
    }

    /// How many tests it says there were; an error if one failed, or if it ended badly for another reason.
    pub(super) fn tests(&self) -> Result<String> {
        let mut counts = Counts::parse(&self.stdout)?;
        counts.look_for_panics(&self.stderr);
        let broken = if self.broken.is_empty() && self.is_broken() {
            self.end()
        } else {
            self.broken.join("; ")
        };
        match counts.remark() {
            remark if broken.is_empty() => remark,
            Err(failed) if counts.failed > 0 => bail!("{broken}; {failed:#}"),
            _ => bail!("{broken}"),
        }
    }
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
    fn several_end_as_the_first_that_failed() {
        let run = |passed: u32, code| {
            let stdout = format!("test result: ok. {passed} passed; 0 failed; 0 ignored\n");
            Run::new(stdout, String::new(), code)
        };
        let all =
            |codes: [Option<i32>; 3]| Run::together(codes.map(|code| ("p".to_owned(), run(2, code))).into());
        assert_eq!(all([Some(0); 3]).tests().unwrap(), "6 tests");
        assert_eq!(all([Some(0), Some(3), Some(4)]).code, Some(3));
        assert_eq!(all([Some(0), None, Some(4)]).code, None);
        assert!(all([Some(0), Some(0), None]).tests().is_err());
    }

    #[test]
    fn who_ended_without_a_word_is_named() {
        let run = |name: &str, stdout: &str, stderr: &str, code| {
            (
                name.to_owned(),
                Run::new(stdout.to_owned(), stderr.to_owned(), code),
            )
        };
        let failed =
            "---- a stdout ----\nno\n\nfailures:\n    a\n\ntest result: FAILED. 1 passed; 1 failed\n";
        let runs = vec![
            run("one", failed, "", Some(101)),
            run("two", "running 2 tests\n", "stack overflow\n", None),
        ];
        let said = Run::together(runs).tests().unwrap_err().to_string();
        let first = said.lines().next().unwrap();
        assert_eq!(
            first,
            "two ended by a signal after `running 2 tests` and `stack overflow`; 1 of 2 tests failed: a"
        );
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
