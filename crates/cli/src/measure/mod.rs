//! `sdmac measure`: what this computer is like, alone ([`host`]) or with an adapter ([`adapter`]), as tables and as a
//! profile for the simulator.

mod adapter;
mod confirm;
mod host;
mod notes;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::value_parser;
use frame::{MacAddr, Rate};
use lab::report::folder::AtomicFile;
use linux::host::{Load, Sched};
use linux::probe::Way;
use linux::wifi::confirm::Path;
use sim::host::{HostModel, Profile};

use crate::ui::{Failure, Ui};

/// How the kernel is probed.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeWay {
    /// By fentry where that can be had, by kprobes elsewhere
    Auto,
    /// Traps at instructions: CAP_PERFMON
    Kprobe,
    /// Programs at functions: root, and a kernel that tells its types
    Fentry,
}

impl ProbeWay {
    pub fn way(self) -> Way {
        match self {
            ProbeWay::Auto => Way::Auto,
            ProbeWay::Kprobe => Way::Kprobe,
            ProbeWay::Fentry => Way::Fentry,
        }
    }
}

/// Measure this computer, alone or with a Wi-Fi adapter, as a table and as a profile for the simulator
///
/// --host: timers, the way of a frame into and out of the kernel, wake-ups, idle and under load. Each load is measured with
/// four kinds of scheduling: ordinary and SCHED_FIFO, each without and with locked memory (mlockall). No Wi-Fi is needed. Without root some parts
/// are left out; the command says which, why, and what to do.
///
/// --iface: one-shots over an adapter to a station that acknowledges, as in section IV of the SDMAC paper: Tables IV and V
/// and Fig. 6 for this adapter and computer. With --probes the planes t2 to t8 are stamped in the kernel as it is. A second
/// station with --peer acknowledges, and tells which frames arrived, so that lost frames and lost ACKs are told apart. It
/// takes CAP_NET_ADMIN and CAP_NET_RAW, and CAP_PERFMON for --probes.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac measure --host
  sdmac measure --host --quick --json
  sudo sdmac measure --host --samples 10000 --profile-of io --out io.toml
  sdmac qualify --nodes 8 --cycle 4ms --payload 50 --miss 1e-4 --host host.toml
  sudo sdmac measure --iface wlan1 --channel 5180 --to 02:00:00:00:01:00 --confirm all
  sudo sdmac measure --iface wlan2 --channel 5180 --peer           # on the other computer: prints its address
  sudo sdmac measure --iface wlan1 --channel 5180 --to 02:00:00:00:01:00 --probes --report wlan1
  sudo sdmac measure --iface usb:any --channel 2412 --to 02:00:00:00:01:00 --report stick    # an AR9170 stick
  sudo sdmac measure --iface wlan1 --to 02:00:00:00:01:00 --probes --load idle,io --fifo 50 --cpu 3 --base host.toml --out adapter.toml")]
pub struct Args {
    #[command(flatten)]
    what: What,
    /// With --iface: be the other station, until Ctrl-C
    #[arg(long, conflicts_with_all = ["host", "to", "probes", "loads", "report", "certificate"])]
    peer: bool,
    /// With --iface: the station that acknowledges
    #[arg(long, value_name = "MAC", value_parser = address, required_unless_present_any = ["host", "peer"])]
    to: Option<MacAddr>,
    /// With --iface: stamp the planes t2 to t8 in the kernel
    #[arg(long, value_name = "WAY", conflicts_with = "host", num_args = 0..=1, default_missing_value = "auto", require_equals = true)]
    probes: Option<ProbeWay>,
    /// With --iface: centre frequency in MHz; else where the adapter is, or the first channel where one may send
    #[arg(long, value_name = "MHZ", conflicts_with = "host")]
    channel: Option<u16>,
    /// With --iface: rate of the frames, such as 54M
    #[arg(long, value_name = "RATE", default_value = "54M", value_parser = rate)]
    rate: Rate,
    /// With --iface: octets of payload, 13 to 1500
    #[arg(long, value_name = "OCTETS", default_value_t = 50)]
    payload: usize,
    /// With --iface: the way by which outcomes come up: monitor, or device, which takes the kernel module and tells planes
    /// without --probes. `all` compares these and the two of ordinary interfaces on the same frames, and measures nothing
    /// else
    #[arg(long, value_name = "PATH", default_value = "monitor", value_parser = confirm_way, conflicts_with_all = ["host", "peer"])]
    confirm: Confirm,
    /// With --iface: SCHED_FIFO with this priority, and locked memory, for the thread that sends
    #[arg(long, value_name = "PRIORITY", conflicts_with = "host", value_parser = value_parser!(u8).range(1..=99))]
    fifo: Option<u8>,
    /// With --iface: the CPU of the thread that sends
    #[arg(long, value_name = "CPU", conflicts_with = "host")]
    cpu: Option<usize>,
    /// With --iface: the adapter's certificate, by `sdmac certify`; it goes into the report's folder, too [default: the one
    /// that certify has kept for this driver and address]
    #[arg(long, value_name = "FILE", conflicts_with = "host")]
    certificate: Option<PathBuf>,
    /// With --iface usb: the stick's firmware [default: /lib/firmware/carl9170-1.fw, of Debian's firmware-linux-free]
    #[arg(long, value_name = "FILE", conflicts_with = "host")]
    firmware: Option<PathBuf>,
    /// With --iface: write report.html, Fig. 6, all samples and the result to this folder
    #[arg(long, value_name = "DIR", conflicts_with = "host")]
    report: Option<PathBuf>,
    /// Write to the folder of --report even if it holds other files
    #[arg(long, requires = "report")]
    force: bool,
    /// Samples of each series: 1 to 1000000. 400 carry a p99, 10000 a p99.9. 400 with --host, 10000 frames with --iface,
    /// unless it is given
    #[arg(long, visible_alias = "count")]
    samples: Option<u32>,
    /// Mean time between two samples in us: 100 to 1000000. 1000 with --host, 5000 with --iface, unless it is given
    #[arg(long)]
    period_us: Option<u32>,
    /// Loads: idle, cpu, io, network, timers. The first four with --host, idle with --iface, unless they are given
    #[arg(long, visible_alias = "load", value_delimiter = ',', value_parser = load)]
    loads: Vec<Load>,
    /// With --host: a few samples only, which shows that it works and is too little for percentiles
    #[arg(long, conflicts_with_all = ["iface", "samples"])]
    quick: bool,
    /// The load that the profile describes
    #[arg(long, default_value = "idle", value_parser = load)]
    profile_of: Load,
    /// With --host: the scheduling that the profile describes: other, other+mlock, fifo, fifo+mlock [default: the last of
    /// these that could be measured]
    #[arg(long, conflicts_with = "iface", value_parser = sched)]
    sched: Option<Sched>,
    /// Profile that says what cannot be measured here. A name or a file; with --iface best that of --host
    #[arg(long, default_value = "table5")]
    base: String,
    /// Where to write the profile
    #[arg(long, default_value = "host.toml")]
    out: PathBuf,
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
struct What {
    /// Measure this computer alone
    #[arg(long)]
    host: bool,
    /// Measure this computer with this adapter: one of its interfaces, or its own name (phy0); or an AR9170 stick, which is then driven
    /// by this program: usb:any, or usb:1-2 by where it is plugged in
    #[arg(long, value_name = "IFACE")]
    iface: Option<String>,
}

pub fn load(text: &str) -> Result<Load, String> {
    let names = || Load::ALL.map(Load::name).join(", ");
    let text = if text == "net" { "network" } else { text };
    Load::ALL
        .into_iter()
        .find(|l| l.name() == text)
        .ok_or_else(|| format!("the loads are {}", names()))
}

pub fn sched(text: &str) -> Result<Sched, String> {
    let names = || Sched::ALL.map(Sched::name).join(", ");
    Sched::ALL
        .into_iter()
        .find(|s| s.name() == text)
        .ok_or_else(|| format!("the kinds of scheduling are {}", names()))
}

fn address(text: &str) -> Result<MacAddr, String> {
    let address = MacAddr::parse(text).filter(|a| !a.is_group());
    address.ok_or_else(|| "the address of one station, such as 02:00:00:00:01:00".to_owned())
}

fn rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text).ok_or_else(|| "a rate such as 6M, 54M, 11M or mcs7/20".to_owned())
}

/// By which way outcomes come up, or all of them one against the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confirm {
    One(Path),
    All,
}

fn confirm_way(text: &str) -> Result<Confirm, String> {
    match (text, Path::parse(text)) {
        ("all", _) => Ok(Confirm::All),
        (_, Some(path)) if path.carries_requests() => Ok(Confirm::One(path)),
        (_, Some(path)) => Err(format!(
            "{} knows nothing of frames that are sent through a monitor interface: choose monitor or device, or compare it \
             with all",
            path.name()
        )),
        _ => Err("the ways are monitor and device, or all".to_owned()),
    }
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    match &args.what.iface {
        Some(radio) if args.peer => adapter::peer(radio, args, ui),
        Some(radio) => adapter::main(radio, args, ui),
        None => host::main(args, ui),
    }
}

/// The base profile, which has a model.
fn base(args: &Args) -> Result<Profile, Failure> {
    let base = Profile::open(&args.base).map_err(Failure::input)?;
    HostModel::new(&base).map_err(Failure::input)?;
    Ok(base)
}

/// Fails before half a minute of measuring, not after it: an old profile must be writable, and its folder too.
fn writable(path: &std::path::Path) -> Result<(), Failure> {
    let refused = |e: &dyn std::fmt::Display| {
        Failure::input(format!(
            "{}: cannot be written ({e}); name another file with --out",
            path.display()
        ))
    };
    let existed = path.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|e| refused(&e))?;
    if !existed {
        let _ = std::fs::remove_file(path);
    }
    if existed && path.is_file() {
        let behind = path.canonicalize().map_err(|e| refused(&e))?;
        // gone again when it is dropped
        AtomicFile::create(behind).map_err(|e| refused(&e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Alone {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(line: &str) -> Option<Args> {
        let words = std::iter::once("measure").chain(line.split_whitespace());
        Alone::try_parse_from(words).ok().map(|alone| alone.args)
    }

    #[test]
    fn the_help_counts_the_kinds_of_scheduling() {
        use clap::CommandFactory;
        let help = Alone::command().render_long_help().to_string();
        assert_eq!(Sched::ALL.len(), 4);
        let words: Vec<&str> = help.split_whitespace().collect();
        assert!(words.join(" ").contains("four kinds of scheduling"), "{help}");
    }

    #[test]
    fn a_computer_alone_or_an_adapter_with_somebody_to_send_to() {
        assert!(parsed("").is_none() && parsed("--host --iface wlan1").is_none());
        assert!(parsed("--iface wlan1").is_none(), "to whom?");
        assert!(parsed("--iface wlan1 --peer --to 02:00:00:00:01:00").is_none());
        assert!(
            parsed("--iface wlan1 --to ff:ff:ff:ff:ff:ff").is_none(),
            "a group acknowledges nothing"
        );
        assert!(
            parsed("--host --probes").is_none()
                && parsed("--iface w --to 02:00:00:00:01:00 --quick").is_none()
        );
        assert!(
            parsed("--host --quick --loads idle,io").is_some() && parsed("--iface wlan1 --peer").is_some()
        );
        let args =
            parsed("--iface wlan1 --to 02:00:00:00:01:00 --count 9 --load net --fifo 50 --probes").unwrap();
        assert_eq!(
            (args.samples, args.fifo, args.probes),
            (Some(9), Some(50), Some(ProbeWay::Auto))
        );
        assert_eq!(args.loads, [Load::Network]);
        let way = |name: &str| {
            parsed(&format!("--iface w --to 02:00:00:00:01:00 --confirm {name}")).map(|args| args.confirm)
        };
        assert_eq!(
            (way("all"), way("device")),
            (Some(Confirm::All), Some(Confirm::One(Path::Device)))
        );
        let to = "--iface w --to 02:00:00:00:01:00";
        assert!(parsed(&format!("{to} --report r --force")).is_some_and(|args| args.force));
        assert!(parsed(&format!("{to} --force")).is_none(), "which folder?");
        assert_eq!((way("status"), way("nl80211"), way("x")), (None, None, None));
        assert_eq!(args.confirm, Confirm::One(Path::Monitor));
    }
}
