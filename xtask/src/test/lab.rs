//! The step `lab`: the kernel of `sdmac lab` is built once, then checked from outside (`crates/cli/tests/lab*.rs`) and from
//! inside, by tests that cargo starts through `sdmac lab run`: of the lab, and of all that drives radios. In QEMU, Linux's own
//! driver is the peer of the emulated AR9170 sticks.

mod jobs;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Error, Result, ensure};
use serde_json::Value;

use self::jobs::{JOBS, Job, Kernel};
use super::binaries::{Binaries, SHOW};
use super::steps::{partly, skipped};
use super::tools::{answer, exists, run, run_and_read};
use super::{Outcome, lanes};
use crate::workspace::Workspace;

/// Where the kernel is known to build.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Time of this computer for the tests of one guest, s. The longest take four minutes on two cores with nothing else to do.
const LIMIT_S: &str = "2400";

/// What is run each time.
pub(super) fn lab(workspace: &Workspace) -> Result<Outcome> {
    run_jobs(workspace, false)
}

/// The same tests on other kernels, and on drivers of the other kind.
pub(super) fn more(workspace: &Workspace) -> Result<Outcome> {
    run_jobs(workspace, true)
}

/// The start of a command in a guest of the lab's own kernel: what follows are its options, `--`, and a program. The inner `Err` says
/// why there is none.
pub(super) fn guest(workspace: &Workspace) -> Result<Result<Command, String>> {
    if let Err(why) = is_known() {
        return Ok(Err(why));
    }
    let sdmac = workspace.sdmac();
    Ok(kernel(&status(&sdmac)?, &sdmac)?.map(|()| runner(&sdmac)))
}

/// Whether there can be a guest of Debian's kernel, which has sticks. `Err` says why not.
pub(super) fn has_guest_with_sticks() -> Result<(), String> {
    is_known()?;
    get_qemu("qemu-system-x86_64", "qemu-system-x86")
        .map_err(|why| format!("there is no qemu-system-x86_64, {why}"))
}

fn runner(sdmac: &Path) -> Command {
    let mut runner = Command::new(sdmac);
    runner.args(["lab", "run", "--limit", LIMIT_S]);
    runner
}

fn is_known() -> Result<(), String> {
    match cfg!(all(
        target_os = "linux",
        target_arch = "x86_64",
        target_env = "gnu"
    )) {
        true => Ok(()),
        false => Err(format!("the lab's kernel is for {TARGET}")),
    }
}

fn status(sdmac: &Path) -> Result<Value> {
    answer(Command::new(sdmac).args(["lab", "status", "--json"]))
        .and_then(|text| serde_json::from_str(&text).ok())
        .context("`sdmac lab status --json` gave no answer")
}

fn run_jobs(workspace: &Workspace, rare: bool) -> Result<Outcome> {
    if let Err(why) = is_known() {
        return skipped(why);
    }
    // the same as in the steps `build` and `test`, so nothing is compiled here if they were run
    let binaries = Binaries::build(workspace)?;
    let sdmac = workspace.sdmac();
    let status = status(&sdmac)?;
    // either kind of guest may be missing
    let own = kernel(&status, &sdmac)?.map_err(|why| format!("there is {why}"));
    let debian = has_guest_with_sticks();
    let of = |kernel| match kernel {
        Kernel::Own => &own,
        Kernel::Debian => &debian,
    };
    let all = || JOBS.iter().filter(|job| job.rare == rare);
    let chosen: Vec<&Job> = all().filter(|job| of(job.kernel).is_ok()).collect();
    let commands: Result<Vec<_>> = chosen.iter().map(|job| command(job, &binaries, &sdmac)).collect();
    let (mut remarks, mut failures) = (Vec::new(), Vec::new());
    // one that fails keeps nobody from the others
    for (job, end) in chosen.iter().zip(lanes::run(commands?)) {
        let name = format!("{} {} {}", job.folder, job.name, job.args);
        let name = format!("{}, {}", name.trim_end(), job.guest.unwrap_or("outside"));
        let again = || run_and_read(&mut command(job, &binaries, &sdmac)?)?.tests();
        match end
            .and_then(|run| run.tests())
            .or_else(|why| second(job.kernel, why, again))
        {
            Ok(remark) => remarks.push(format!("{name}: {remark}")),
            Err(why) => failures.push((name, format!("{why:#}"))),
        }
    }
    let names: Vec<&str> = failures.iter().map(|(name, _)| name.as_str()).collect();
    let told = failures.iter().map(|(name, why)| format!("\n{name}: {why}"));
    ensure!(
        failures.is_empty(),
        "{} of {} test programs failed: {}{}",
        failures.len(),
        chosen.len(),
        names.join("; "),
        told.collect::<String>()
    );
    let missing = [(Kernel::Own, "the lab's own kernel"), (Kernel::Debian, "QEMU")]
        .into_iter()
        .filter_map(|(kernel, where_)| {
            let why = of(kernel).as_ref().err()?;
            let count = all().filter(|job| job.kernel == kernel).count();
            Some(format!("{count} test programs in {where_}, since {why}"))
        });
    partly(remarks, missing.collect())
}

/// What failed in a guest with this computer's time is tried once more, with nothing else beside it: what another guest took from it
/// is no fault of ours. The table tells of it. In virtual time nothing is tried twice.
fn second(kernel: Kernel, why: Error, again: impl FnOnce() -> Result<String>) -> Result<String> {
    if kernel != Kernel::Debian {
        return Err(why);
    }
    println!("once more, alone: {why:#}");
    let first = format!("{why:#}").lines().next().unwrap_or("").to_owned();
    match again() {
        Ok(remark) => Ok(format!("{remark}, AT THE SECOND TRY: at the first, {first}")),
        Err(also) => Err(also.context(format!("twice; at first {first}"))),
    }
}

fn command(job: &Job, binaries: &Binaries, sdmac: &Path) -> Result<Command> {
    let mut runner = job.guest.map(|guest| {
        let mut runner = runner(sdmac);
        runner.args(guest.split_whitespace()).arg("--");
        runner
    });
    let mut command = binaries.command(job.folder, job.name, runner.as_mut())?;
    command.args(job.args.split_whitespace()).arg(SHOW);
    Ok(command)
}

/// Builds the lab's own kernel, unless it is there. The inner `Err` says why there will be none.
fn kernel(status: &Value, sdmac: &Path) -> Result<Result<(), String>> {
    let is_own = |kernel: &Value| kernel["fits"] == true && kernel["qemu"] == false;
    if status["kernels"]
        .as_array()
        .is_some_and(|all| all.iter().any(is_own))
    {
        return Ok(Ok(()));
    }
    if let Err(why) = prepare(status) {
        return Ok(Err(why));
    }
    run(Command::new(sdmac).args(["lab", "build"]))?;
    Ok(Ok(()))
}

/// Gets QEMU, where that is allowed. `Err` says why there is none.
pub(super) fn get_qemu(program: &str, package: &str) -> Result<(), String> {
    get(program, &[package])
}

/// Gets a program with these packages, where that is allowed. `Err` says why there is none.
pub(super) fn get(program: &str, packages: &[&str]) -> Result<(), String> {
    let package = packages.join(" ");
    if exists(program) {
        return Ok(());
    }
    if !exists("apt-get") || !is_root() {
        return Err(format!("which is not installed: sudo apt-get install {package}"));
    }
    let words = ["install", "-y", "--no-install-recommends"];
    // tshark's asks who may capture
    let mut get = Command::new("apt-get");
    get.env("DEBIAN_FRONTEND", "noninteractive");
    run(get.args(words).args(packages))
        .map_err(|_| format!("since `apt-get install {package}` failed, see above"))
}

fn is_root() -> bool {
    answer(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0")
}

/// Gets what the build needs, where that is allowed. `Err` says why there will be no kernel.
fn prepare(status: &Value) -> Result<(), String> {
    if !exists("apt-get") {
        return Err(
            "no kernel, and no `apt-get` to get its source with: `sdmac lab build --help`".to_owned(),
        );
    }
    let packages: Vec<&str> = status["missing_packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !packages.is_empty() {
        let command = format!("apt-get install -y {}", packages.join(" "));
        if !is_root() {
            return Err(format!("no kernel, and no tools to build one: sudo {command}"));
        }
        run(Command::new("apt-get").args(command.split_whitespace().skip(1)))
            .map_err(|_| format!("`{command}` failed, see above"))?;
    }
    let sources = ["linux-source-6.1", "wireless-regdb"];
    let offered = |package: &&str| {
        let policy = answer(Command::new("apt-cache").args(["show", "--no-all-versions", package]));
        policy.is_some_and(|text| !text.trim().is_empty())
    };
    match sources.iter().find(|package| !offered(package)) {
        Some(package) => Err(format!(
            "no kernel, and apt offers no {package}: try `apt-get update`"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn only_where_time_is_real_there_is_a_second_try_and_it_is_told() {
        let why = || anyhow!("1 of 2 tests failed: a\n  a");
        let (good, bad) = (
            || Ok("2 tests".to_owned()),
            || Err(anyhow!("2 of 2 tests failed: a, b")),
        );
        assert_eq!(
            second(Kernel::Debian, why(), good).unwrap(),
            "2 tests, AT THE SECOND TRY: at the first, 1 of 2 tests failed: a"
        );
        assert_eq!(
            format!("{:#}", second(Kernel::Debian, why(), bad).unwrap_err()),
            "twice; at first 1 of 2 tests failed: a: 2 of 2 tests failed: a, b"
        );
        let never = || -> Result<String> { unreachable!() };
        assert_eq!(
            format!("{:#}", second(Kernel::Own, why(), never).unwrap_err()),
            format!("{:#}", why())
        );
    }
}
