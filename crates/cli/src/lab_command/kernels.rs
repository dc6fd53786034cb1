//! The kernels of the lab: which there are, and how one is made.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::testbed::cache::{Cache, Kernel, Machine};
use lab::testbed::qemu::{get, module};
use lab::testbed::site::BuildError;
use lab::testbed::tools;
use lab::testbed::uml::build;
use lab::testbed::uml::source::Sources;
use serde_json::json;

use super::{BuildArgs, this_program};
use crate::ui::{self, Failure, Ui};

/// Debian's kernels.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Qemu {
    /// The one that Debian installs
    Standard,
    /// PREEMPT_RT
    Rt,
}

/// What runs the guest.
pub(super) fn machine(qemu: Option<Qemu>) -> Machine {
    match qemu {
        None => Machine::Uml,
        Some(Qemu::Standard) => Machine::Standard,
        Some(Qemu::Rt) => Machine::Realtime,
    }
}

/// Builds a kernel; `None` when the user has stopped it.
pub(super) fn made(args: &BuildArgs, cache: &Cache, ui: &Ui) -> Result<Option<Kernel>, Failure> {
    if args.qemu.is_some() {
        return got(machine(args.qemu), cache, ui);
    }
    ui.tell(&format!(
        "building the lab's kernel, about seven minutes of CPU time (log: {})",
        cache.build_log(Machine::Uml).display()
    ));
    let jobs = match args.jobs {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        jobs => jobs,
    };
    let options = build::Options {
        sdmac: this_program()?,
        sources: Sources {
            kernel: args.source.clone(),
            regdb: args.regdb.clone(),
        },
        jobs,
    };
    let bar = ui.progress("getting the source", 1_000);
    let progress = |what, thousandths| {
        bar.rename(what);
        bar.set(thousandths);
    };
    let built = build::build(cache, &options, &progress, ui.stop());
    bar.finish();
    kept(built)
}

/// Makes a kernel of Debian's packages; `None` when the user has stopped it.
fn got(machine: Machine, cache: &Cache, ui: &Ui) -> Result<Option<Kernel>, Failure> {
    ui.tell(&format!(
        "getting Debian's kernel, about 70 MB (log: {})",
        cache.build_log(machine).display()
    ));
    let bar = ui.progress("getting the kernel", 1_000);
    let progress = |what, thousandths| {
        bar.rename(what);
        bar.set(thousandths);
    };
    let made = get::get(cache, machine, &this_program()?, &progress, ui.stop());
    bar.finish();
    kept(made)
}

/// The module that is made of the sources in a folder; `None` when the user has stopped it.
pub(super) fn built_module(
    folder: &Path,
    kernel: &Kernel,
    cache: &Cache,
    ui: &Ui,
) -> Result<Option<PathBuf>, Failure> {
    let bar = ui.progress("building the module", 1_000);
    let progress = |what, thousandths| {
        bar.rename(what);
        bar.set(thousandths);
    };
    let built = module::module(cache, kernel, folder, &this_program()?, &progress, ui.stop());
    bar.finish();
    kept(built)
}

fn kept<T>(made: Result<T, BuildError>) -> Result<Option<T>, Failure> {
    match made {
        Ok(thing) => Ok(Some(thing)),
        Err(stopped @ BuildError::Stopped) => {
            ui::warn(&stopped.to_string());
            Ok(None)
        }
        Err(error) => Err(Failure::on_the_way(error)),
    }
}

pub(super) fn status(cache: &Cache, ui: &Ui) -> Result<ExitCode, Failure> {
    let kernels = cache.kernels();
    let missing: Vec<&str> = tools::missing(tools::BUILD)
        .into_iter()
        .map(|(_, package)| package)
        .collect();
    for kernel in &kernels {
        let state = if kernel.fits() {
            "ready"
        } else {
            "of another sdmac"
        };
        ui.say(format!("{}: {state}", kernel.program().display()))?;
    }
    if !kernels.iter().any(|k| k.machine == Machine::Uml && k.fits()) {
        ui.say("no kernel for this sdmac yet: `sdmac lab build`, or `sdmac lab run`, which builds it first")?;
    }
    if !missing.is_empty() {
        ui.say(format!(
            "to build one, first: sudo apt-get install {}",
            missing.join(" ")
        ))?;
    }
    let list = kernels.iter().map(|k| {
        let qemu = k.machine != Machine::Uml;
        json!({ "kernel": k.program(), "version": k.version, "qemu": qemu, "fits": k.fits() })
    });
    ui.answer(&json!({
        "cache": cache.root(),
        "octets": cache.size(),
        "kernels": list.collect::<Vec<_>>(),
        "missing_packages": missing,
    }))?;
    Ok(ExitCode::SUCCESS)
}
