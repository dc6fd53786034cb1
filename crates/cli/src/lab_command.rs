//! `sdmac lab`: the Linux 802.11 stack in virtual time, without hardware and without root.

mod chain;
mod compare;
mod inside;
mod kernels;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Subcommand, value_parser};
use kernels::{Qemu, built_module, machine, made, status};
use lab::testbed::cache::{Cache, Kernel, Machine};
use lab::testbed::job::How;
use lab::testbed::qemu::get;
use lab::testbed::run::{self, MAX_RADIOS, MIN_MEMORY, RunError, Time};
use lab::testbed::{guard, guest, tools};
use serde_json::json;

use crate::ui::{self, Failure, Ui};

/// Exit code when the lab failed and not the program in it, as `timeout` and `chroot` have it.
const LAB_FAILED: u8 = 125;

/// Run a program on the real Linux 802.11 stack, in virtual time or in QEMU, with radios of mac80211_hwsim
///
/// The kernel is a User-Mode-Linux kernel: an ordinary program that is built once from Debian's source package (about
/// seven minutes of CPU time) and kept in the cache. It needs no root and no hardware. With --qemu it is one of Debian's own
/// kernels in an emulated computer, with modules, BTF and probes; its time is good for order and ratios only.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac lab run -- ls /sys/class/net
  sdmac lab run --radios 4 -- sh -c 'sleep 100; cat /proc/uptime'    # ends at once
  sdmac lab compare scenarios/hidden-nodes.toml
  sdmac lab chain scenarios/atp-chain.toml --quick
  sdmac lab build --source linux-6.1.tar.xz --regdb /lib/firmware/regulatory.db
  sdmac lab status
  sdmac lab clean")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Build(BuildArgs),
    Run(RunArgs),
    Compare(compare::Args),
    Chain(chain::Args),
    /// Say which kernels are there, and what is missing to build one
    #[command(after_help = "Examples:
  sdmac lab status
  sdmac lab status --json")]
    Status,
    /// Remove all kernels and logs
    #[command(after_help = "Examples:
  sdmac lab clean")]
    Clean,
}

/// Get the source, configure, compile, and keep the kernel; nothing to do when there is one
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac lab build
  sdmac lab build --jobs 8 --again
  sdmac lab build --qemu rt
  sdmac lab build --source linux-6.1.tar.xz --regdb /lib/firmware/regulatory.db    # without apt")]
struct BuildArgs {
    /// Compilers at the same time; 0: one for each processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Tarball with the source of linux 6.1, in place of Debian's package
    #[arg(long, value_name = "FILE")]
    source: Option<PathBuf>,
    /// Table of countries and channels, in place of the one in Debian's wireless-regdb
    #[arg(long, value_name = "FILE")]
    regdb: Option<PathBuf>,
    /// Debian's kernel for QEMU in place of the one for virtual time
    #[arg(long, value_name = "KERNEL", conflicts_with_all = ["jobs", "source", "regdb"])]
    qemu: Option<Qemu>,
    /// Build even if there is a kernel
    #[arg(long)]
    again: bool,
}

/// Boot a guest and run a program of this computer in it, as root; its output and its exit code are passed on
///
/// The program sees the files of this computer, with your permissions. What it writes goes to memory and is gone
/// afterwards, except in folders named with --write. Exit code: that of the program, 128+N when signal N ended it, 125
/// when the lab failed.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac lab run -- ls /sys/class/net
  sdmac lab run --radios 4 -- target/debug/deps/conformance-1234 --nocapture
  sdmac lab run --write results -- sdmac run scenarios/oneshot.toml --out results/oneshot
  sdmac lab run --param mac80211_hwsim.rctbl=1 --country DE -- ./measure
  sdmac lab run --qemu rt --radios 2 -- uname -v
  sdmac lab run --qemu standard --radios 0 --stick /tmp/stick0 -- iw dev    # after: sdmac ar9170 serve /tmp/stick0
  sdmac lab run --qemu standard --module kernel -- ls -l /dev/sdmac    # in a clone of sdmac
  CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='sdmac lab run --' cargo test    # all tests in a guest")]
struct RunArgs {
    /// Radios of mac80211_hwsim: phy0 with wlan0, and so on; 0 to 100
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u32).range(..=i64::from(MAX_RADIOS)))]
    radios: u32,
    /// Memory of the guest: 64M or more; 256M, and 512M in QEMU, unless it is given
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    mem: Option<u64>,
    /// Debian's kernel in a computer of QEMU in place of virtual time; it is downloaded when it is not there
    #[arg(long, value_name = "KERNEL", conflicts_with_all = ["virtual_time", "real"])]
    qemu: Option<Qemu>,
    /// Let this computer's CPU run the guest in place of an emulated one: needs /dev/kvm
    #[arg(long, requires = "qemu")]
    kvm: bool,
    /// Socket of an emulated AR9170 stick to plug in, as `sdmac ar9170 serve` has it; may be repeated. The guest then has the
    /// time of this computer
    #[arg(long = "stick", value_name = "SOCKET", requires = "qemu")]
    sticks: Vec<PathBuf>,
    /// CPUs of the computer in QEMU: 1, and with --kvm 2, unless it is given; with more than 1 the guest has the time of this
    /// computer
    #[arg(long, value_name = "N", requires = "qemu", value_parser = value_parser!(u32).range(1..=64))]
    cpus: Option<u32>,
    /// Virtual time: computing takes none, and sleeping is over at once (this is so unless --real is given)
    #[arg(long = "virtual", conflicts_with = "real")]
    virtual_time: bool,
    /// The time of this computer
    #[arg(long)]
    real: bool,
    /// Country whose channels are allowed: two letters, or 00 for what is allowed everywhere
    #[arg(long, value_name = "XX", default_value = "US", value_parser = country)]
    country: String,
    /// Folder that the program may write to; may be repeated
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// With --qemu: build the kernel module whose sources and Makefile are in this folder, and load it before the program
    /// starts; SDMAC_LAB_MODULE names its file
    #[arg(long, value_name = "DIR", requires = "qemu")]
    module: Option<PathBuf>,
    /// Kernel parameter, such as mac80211_hwsim.rctbl=1; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    params: Vec<String>,
    /// Kill the guest after this time of this computer, in s; 0: never
    #[arg(long, value_name = "S", default_value_t = 600)]
    limit: u64,
    /// Keep the kernel's log in this file
    #[arg(long, value_name = "FILE")]
    kernel_log: Option<PathBuf>,
    /// Program, a path or a name in $PATH, and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// Arguments of the guard, which nobody types.
#[derive(clap::Args, Debug)]
pub struct GuardArgs {
    folder: PathBuf,
}

fn memory(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.strip_suffix(['M', 'm']) {
        Some(digits) => (digits, 20),
        None => (text.strip_suffix(['G', 'g']).unwrap_or(""), 30),
    };
    let octets = digits.parse::<u32>().ok().map(|n| u64::from(n) << shift);
    octets
        .filter(|size| *size >= MIN_MEMORY)
        .ok_or_else(|| format!("a number with M or G, at least {}M", MIN_MEMORY >> 20))
}

fn country(text: &str) -> Result<String, String> {
    let letters = text.len() == 2 && text.bytes().all(|b| b.is_ascii_alphabetic());
    if letters || text == "00" {
        Ok(text.to_ascii_uppercase())
    } else {
        Err("two letters, or 00".to_owned())
    }
}

fn parameter(text: &str) -> Result<String, String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE")?;
    let plain = |c: char| c.is_ascii_graphic() && c != '"';
    if !name.is_empty() && (name.to_owned() + value).chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("NAME=VALUE without blanks and quotes".to_owned())
    }
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let cache = Cache::of_user().ok_or_else(|| {
        Failure::input("there is no place for a kernel: set HOME or XDG_CACHE_HOME to a folder")
    })?;
    match &args.action {
        Action::Build(args) => match cache.kernel(machine(args.qemu)).filter(|_| !args.again) {
            Some(kernel) => {
                ui.say(format!("{}: is there", kernel.program().display()))?;
                answer(&kernel, ui)
            }
            None => match made(args, &cache, ui)? {
                Some(kernel) => {
                    ui.say(kernel.program().display())?;
                    answer(&kernel, ui)
                }
                None => Ok(ui.exit_code()),
            },
        },
        Action::Run(args) => in_guest(args, &cache, ui),
        Action::Compare(args) => compare::main(args, &cache, ui),
        Action::Chain(args) => chain::main(args, &cache, ui),
        Action::Status => status(&cache, ui),
        Action::Clean => {
            let size = cache.size();
            cache
                .clean()
                .map_err(|e| Failure::on_the_way(format!("{}: {e}", cache.root().display())))?;
            ui.say(format!("{} MB freed", size / 1_000_000))?;
            ui.answer(&json!({ "freed": size }))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The first process of a guest.
pub fn init() -> ExitCode {
    Failure::input(guest::main()).report()
}

/// The process that ends a guest whose user was killed.
pub fn guard(args: &GuardArgs) -> ExitCode {
    match guard::keep(io::stdin(), args.folder.clone()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::on_the_way(format!("{}: {error}", args.folder.display())).report(),
    }
}

fn answer(kernel: &Kernel, ui: &Ui) -> Result<ExitCode, Failure> {
    ui.answer(&json!({ "kernel": kernel.program(), "version": kernel.version }))?;
    Ok(ExitCode::SUCCESS)
}

fn in_guest(args: &RunArgs, cache: &Cache, ui: &Ui) -> Result<ExitCode, Failure> {
    let lab_failed = |failure: Failure| failure.with_code(LAB_FAILED);
    let machine = machine(args.qemu);
    if machine != Machine::Uml
        && let Some((program, package)) = tools::missing(get::RUN).first()
    {
        let what = format!("there is no {program}; on Debian: sudo apt-get install {package}");
        return Err(lab_failed(Failure::input(what)));
    }
    let Some(kernel) = kernel(args.qemu, cache, ui)? else {
        return Ok(ui.exit_code());
    };
    let module = match &args.module {
        None => None,
        Some(folder) => match built_module(folder, &kernel, cache, ui).map_err(lab_failed)? {
            Some(module) => Some(module),
            None => return Ok(ui.exit_code()),
        },
    };
    let (program, arguments) = args.program.split_first().expect("clap wants a program");
    let texts = std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)));
    let options = run::Options {
        sdmac: this_program().map_err(lab_failed)?,
        memory: args.mem.unwrap_or(if machine == Machine::Uml {
            256 << 20
        } else {
            512 << 20
        }),
        time: if args.real || machine != Machine::Uml {
            Time::Real
        } else {
            Time::Virtual
        },
        kvm: args.kvm,
        sticks: args.sticks.clone(),
        cpus: args.cpus.unwrap_or(1 + u32::from(args.kvm)),
        radios: args.radios,
        country: args.country.clone(),
        module,
        parameters: args.params.clone(),
        writable: args.write.clone(),
        environment: texts.collect::<BTreeMap<_, _>>(),
        limit: (args.limit > 0).then(|| Duration::from_secs(args.limit)),
        kernel_log: args.kernel_log.clone(),
        program: program.clone(),
        arguments: arguments.to_vec(),
    };
    let mut output = |stream: usize, octets: &[u8]| match stream {
        0 => write_now(io::stdout().lock(), octets),
        _ => write_now(io::stderr().lock(), octets),
    };
    let end = match run::run(&kernel, &options, &mut output, ui.stop()) {
        Ok(end) => end,
        Err(stopped @ RunError::Stopped) => {
            ui::warn(&stopped.to_string());
            return Ok(ui.exit_code());
        }
        // whoever reads has seen enough: `sdmac lab run ... | head`
        Err(RunError::Host { error, .. }) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(lab_failed(Failure::on_the_way(error))),
    };
    ui.answer(&json!({
        "kernel": kernel.version,
        "end": end.how,
        "took_ns": end.took_ns,
        "uptime_ns": end.uptime_ns,
    }))?;
    Ok(match end.how {
        How::Exited(code) => ExitCode::from(code as u8),
        How::Killed(signal) => {
            ui::warn(&format!("{program}: ended by signal {signal}"));
            ExitCode::from(128_u8.wrapping_add(signal as u8))
        }
        How::NotStarted(_) => unreachable!("an error of `run`"),
    })
}

/// The kernel that is there, or is made now; `None` if that was stopped.
fn kernel(qemu: Option<Qemu>, cache: &Cache, ui: &Ui) -> Result<Option<Kernel>, Failure> {
    if let Some(kernel) = cache.kernel(machine(qemu)) {
        return Ok(Some(kernel));
    }
    let plain = BuildArgs {
        jobs: 0,
        source: None,
        regdb: None,
        qemu,
        again: false,
    };
    made(&plain, cache, ui).map_err(|failure| failure.with_code(LAB_FAILED))
}

fn write_now(mut stream: impl Write, octets: &[u8]) -> io::Result<()> {
    stream.write_all(octets)?;
    stream.flush()
}

fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::on_the_way(format!("cannot find the program sdmac itself: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(memory("256M"), Ok(256 << 20));
        assert_eq!(memory("1g"), Ok(1 << 30));
        for wrong in ["256", "32M", "-1G", "M", "", "99999999999G"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn countries_and_parameters() {
        assert_eq!(country("de"), Ok("DE".to_owned()));
        assert_eq!(country("00"), Ok("00".to_owned()));
        assert!(country("USA").is_err() && country("0A").is_err());
        assert!(parameter("mac80211_hwsim.rctbl=1").is_ok());
        for wrong in ["rctbl", "=1", "a=b c", "a=\"b\""] {
            assert!(parameter(wrong).is_err(), "{wrong}");
        }
    }
}
