//! The step `lab`: the kernel of `sdmac lab` is built once, then checked from outside (`crates/cli/tests/lab*.rs`) and from
//! inside, by tests that cargo starts through `sdmac lab run`: of the lab, and of all that drives radios. In QEMU, Linux's own
//! driver is the peer of the emulated AR9170 sticks.

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Outcome;
use super::binaries::Binaries;
use super::steps::{count, done, skipped};
use super::tools::{answer, exists, run};
use crate::workspace::Workspace;

/// Where the kernel is known to build.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Time of this computer for the tests of one guest, s. The longest take four minutes on two cores with nothing else to do.
const LIMIT_S: &str = "2400";
/// Tests of one package, with what they are told.
struct Tests {
    /// Folder of the package.
    folder: &'static str,
    /// Integration tests, or `lib`.
    names: &'static [&'static str],
    /// Arguments of each.
    args: &'static [&'static str],
}

const LAB: &str = "crates/lab";
const LINUX: &str = "crates/linux";

/// The lab from outside.
const OUTSIDE: Tests = Tests {
    folder: "crates/cli",
    names: &["lab", "lab_radios", "lab_compare"],
    args: &["--ignored"],
};
/// Sticks and our module in Debian's kernel, from outside.
const OUTSIDE_QEMU: Tests = Tests {
    folder: "crates/cli",
    names: &["lab_sticks", "lab_usb", "lab_confirm"],
    args: &["--ignored", "--nocapture", "--test-threads=1"],
};
/// The lab itself.
const GUEST: Tests = Tests {
    folder: LAB,
    names: &["guest"],
    args: &["--ignored"],
};
/// What drives radios: the host, and the protocols on it. The tests in there expect four radios.
const RADIOS: [Tests; 2] = [
    Tests {
        folder: LINUX,
        names: &["wifi", "wifi_no_allocation"],
        args: &[],
    },
    Tests {
        folder: LAB,
        names: &["hwsim"],
        args: &[],
    },
];
/// The same as far as it needs no virtual time: the host, and the contract.
const HOST: [Tests; 2] = [
    Tests {
        folder: LINUX,
        names: &["wifi", "wifi_no_allocation", "wifi_cost"],
        args: &["--skip", "tdma::"],
    },
    Tests {
        folder: LAB,
        names: &["hwsim"],
        args: &["--skip", "tdma::", "--skip", "ibss::"],
    },
];
/// What takes modules: the one of the folder `kernel/`, and a driver that goes.
const MODULES: Tests = Tests {
    folder: LINUX,
    names: &["wifi_confirm", "wifi_no_allocation", "wifi_module"],
    args: &[],
};
/// What goes wrong with frames pending, with outcomes by the monitor and by that module.
const PENDING: Tests = Tests {
    folder: LINUX,
    names: &["wifi"],
    args: &["_with_frames_pending"],
};
/// The contract, with outcomes by that module.
const DEVICE: Tests = Tests {
    folder: LAB,
    names: &["hwsim"],
    args: &["by_the_device"],
};
/// The ways by which outcomes come up, as far as they take no module.
const PATHS: Tests = Tests {
    folder: LINUX,
    names: &["wifi_confirm"],
    args: &["paths::"],
};
/// What an adapter is certified to do, on media that make each try and that make one.
const CERTIFY: Tests = Tests {
    folder: LINUX,
    names: &["lib"],
    args: &["certify"],
};
/// What is told of the packets of ordinary interfaces, by the radio and by the socket, and what an access point carries; the
/// news of a radio; and how punctual a host wakes up.
const ORDINARY: Tests = Tests {
    folder: LINUX,
    names: &["lib"],
    args: &["reports::", "ordinary::", "keeper::", "wait::"],
};
/// The planes of frames, where the medium and the sender are on different processors.
const PLANES: Tests = Tests {
    folder: LINUX,
    names: &["wifi"],
    args: &["all_nine_planes_are"],
};
/// The places of probes, of each driver that has some.
const PLACES: Tests = Tests {
    folder: LINUX,
    names: &["lib"],
    args: &["probe::"],
};
/// A host that leaves its processor to nobody.
const SPIN: Tests = Tests {
    folder: LINUX,
    names: &["wifi"],
    args: &["a_host_that_spins"],
};
/// A processor that ordinary threads leave.
const TUNE: Tests = Tests {
    folder: LINUX,
    names: &["lib"],
    args: &["machine::tune"],
};
/// The queueing discipline that lets frames go at their time of departure.
const ETF: Tests = Tests {
    folder: LINUX,
    names: &["lib"],
    args: &["host::etf"],
};
/// The simulator as the air between stacks.
const AIR: Tests = Tests {
    folder: LAB,
    names: &["air"],
    args: &[],
};
/// What runs inside: tests, and how the guest is started. Drivers come with a rate table of their own (rctbl=1, as ath9k has
/// it) and without; what holds for requests has to hold for both.
const INSIDE: &[(&[Tests], &str)] = &[
    (&[GUEST], "--radios 4"),
    (&RADIOS, "--radios 4 --param mac80211_hwsim.rctbl=0"),
    (&RADIOS, "--radios 4 --param mac80211_hwsim.rctbl=1"),
    (&[CERTIFY], "--radios 4 --param mac80211_hwsim.rctbl=0"),
    (&[CERTIFY], "--radios 4 --param mac80211_hwsim.rctbl=1"),
    (&[ORDINARY], "--radios 4"),
    (&[PATHS], "--radios 4"),
    (&[AIR], "--radios 9"),
];
/// What runs on Debian's kernels in QEMU.
const IN_QEMU: &[(&[Tests], &str)] = &[
    (&HOST, "--qemu standard --radios 4"),
    (&HOST, "--qemu rt --radios 4"),
    (&[PLANES], "--qemu standard --radios 4 --cpus 2"),
    (&[PLANES], "--qemu rt --radios 4 --cpus 2"),
    (&[SPIN], "--qemu standard --radios 4 --cpus 2"),
    (&[SPIN], "--qemu rt --radios 4 --cpus 2"),
    (&[PLACES], "--qemu standard"),
    (&[PLACES], "--qemu rt"),
    (&[TUNE], "--qemu standard --cpus 2"),
    (&[ETF], "--qemu standard --cpus 2"),
    // paths are as seen from the folder of the package
    (&[MODULES], "--qemu standard --radios 4 --module ../../kernel"),
    (&[MODULES], "--qemu rt --radios 4 --module ../../kernel"),
    (&[PENDING], "--qemu standard --radios 4 --module ../../kernel"),
    (&[PENDING], "--qemu rt --radios 4 --module ../../kernel"),
    (&[DEVICE], "--qemu rt --radios 4 --module ../../kernel"),
];

pub(super) fn lab(workspace: &Workspace) -> Result<Outcome> {
    if !cfg!(all(
        target_os = "linux",
        target_arch = "x86_64",
        target_env = "gnu"
    )) {
        return skipped(format!("the lab's kernel is for {TARGET}"));
    }
    // the same as in the steps `build` and `test`, so nothing is compiled here if they were run
    let binaries = Binaries::build(workspace)?;
    let sdmac = workspace.target.join("debug/sdmac");
    let status: Value = answer(Command::new(&sdmac).args(["lab", "status", "--json"]))
        .and_then(|text| serde_json::from_str(&text).ok())
        .context("`sdmac lab status --json` gave no answer")?;
    // one that fails keeps nobody from the others
    let failures = RefCell::new(Vec::new());
    let count_all = |tests: &[Tests], guest: Option<&str>| -> Result<String> {
        let mut remarks = Vec::new();
        for of in tests {
            for name in of.names {
                let mut runner = guest.map(|guest| {
                    let mut runner = Command::new(&sdmac);
                    runner
                        .args(["lab", "run", "--limit", LIMIT_S])
                        .args(guest.split_whitespace())
                        .arg("--");
                    runner
                });
                let mut command = binaries.command(of.folder, name, runner.as_mut())?;
                let where_ = guest.unwrap_or("outside");
                match count(command.args(of.args)) {
                    Ok(remark) => remarks.push(remark),
                    Err(why) => {
                        let failure = format!("{} {name}, {where_}: {why:#}", of.folder);
                        eprintln!("FAILED: {failure}");
                        failures.borrow_mut().push(failure);
                    }
                }
            }
        }
        Ok(remarks.join("; "))
    };
    let inside = |runs: &[(&[Tests], &str)]| -> Result<String> {
        let remarks: Result<Vec<_>> = runs
            .iter()
            .map(|(tests, guest)| count_all(tests, Some(guest)))
            .collect();
        Ok(remarks?.join("; "))
    };
    // either kind of guest may be missing
    let (mut remarks, mut missing) = (Vec::new(), Vec::new());
    match kernel(&status, &sdmac)? {
        Ok(()) => {
            remarks.push(format!("outside: {}", count_all(&[OUTSIDE], None)?));
            remarks.push(format!("inside: {}", inside(INSIDE)?));
        }
        Err(why) => missing.push(format!(
            "{} guests in the lab's own kernel, since there is {why}",
            INSIDE.len()
        )),
    }
    match get_qemu("qemu-system-x86_64", "qemu-system-x86") {
        Ok(()) => {
            remarks.push(format!("in QEMU: {}", inside(IN_QEMU)?));
            remarks.push(format!("from outside: {}", count_all(&[OUTSIDE_QEMU], None)?));
        }
        Err(why) => missing.push(format!(
            "{} guests in QEMU (probes, modules, PREEMPT_RT, two processors) and {}, since there is no qemu-system-x86_64, {why}",
            IN_QEMU.len(),
            OUTSIDE_QEMU.names.join(" and ")
        )),
    }
    let failures = failures.into_inner();
    ensure!(failures.is_empty(), "{}", failures.join("; "));
    let (remark, skipped) = (remarks.join("; "), missing.join("; "));
    match (remarks.is_empty(), missing.is_empty()) {
        (_, true) => done(remark),
        (false, false) => Ok(Outcome::Partly { remark, skipped }),
        (true, false) => Ok(Outcome::Skipped(skipped)),
    }
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
    run(Command::new("apt-get").args(words).args(packages))
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
