//! `sdmac deploy`: a node of a scenario on a radio of this computer.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::value_parser;
use frame::MacAddr;
use lab::deploy::{DeployError, Deployed, Site, deploy};
use lab::plan;
use lab::report::folder::{Folder, Status};
use lab::scenario::Scenario;
use linux::wifi::Seat;
use linux::wifi::confirm::Path;

use crate::certify;
use crate::ui::{self, Failure, Ui};

/// Run a node of a scenario on a radio of this computer
///
/// The protocol that ran in the simulator sends and hears over the kernel's 802.11 stack, with the address, channel and
/// traffic that the scenario gives it, for the scenario's duration or until Ctrl-C. Run each node on its own radio, with the same file; the
/// other nodes know it by its address. Medium, hosts, clocks, faults and channel access of the scenario are models, and do not
/// apply. It takes CAP_NET_ADMIN and CAP_NET_RAW, CAP_PERFMON for --probes, and CAP_SYS_NICE and CAP_IPC_LOCK for --fifo.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac lab run --radios 2 -- sh -c 'sdmac deploy s.toml --node a.0 --iface phy0 & sdmac deploy s.toml --node a.1 --iface phy1; wait'    # without hardware
  sudo sdmac deploy scenarios/tdma.toml --node controller --iface wlan1
  sudo sdmac deploy scenarios/tdma.toml --node devices.0 --iface wlan1 --fifo 50 --cpu 3 --certificate certificate.json --out run1")]
pub struct Args {
    /// Scenario file, as for `sdmac run`
    scenario: PathBuf,
    /// Name of the node: that of its group, with its number there if it is not alone (devices.0)
    #[arg(long, value_name = "NAME")]
    node: String,
    /// The radio, by one of its interfaces or its own name (phy0); of a node with several adapters one for each
    #[arg(long, value_name = "IFACE", required = true, value_delimiter = ',')]
    iface: Vec<String>,
    /// Change a value: a short name that the scenario declares, or a dotted path
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Stamp the planes t2 to t8 in the kernel
    #[arg(long)]
    probes: bool,
    /// The way by which outcomes come up: monitor, or device, which takes the kernel module and stamps the planes t2 to t8
    #[arg(long, value_name = "PATH", default_value = "monitor", value_parser = confirm)]
    confirm: Path,
    /// SCHED_FIFO with this priority, and locked memory
    #[arg(long, value_name = "PRIORITY", value_parser = value_parser!(u8).range(1..=99))]
    fifo: Option<u8>,
    /// The CPU to run on
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// The radio's certificate, by `sdmac certify`; it goes into the folder of --out, too
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Write the result to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn confirm(text: &str) -> Result<Path, String> {
    let path = Path::parse(text).filter(|path| path.carries_requests());
    path.ok_or_else(|| {
        "monitor or device: no other way tells of what is sent through a monitor interface".to_owned()
    })
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let points = plan::grid(&args.set).map_err(Failure::input)?;
    let [changes] = &points[..] else {
        return Err(Failure::input(
            "--set has a list of values, and a radio runs one node at a time: give one value",
        ));
    };
    let scenario = Scenario::open(&args.scenario, changes).map_err(Failure::input)?;
    let certificate = args.certificate.as_deref().map(certify::read).transpose()?;
    let folder = args.out.as_ref().map(|path| Folder::create(path, false));
    let folder = folder.transpose().map_err(Failure::input)?;
    let site = Site {
        radios: args.iface.clone(),
        certificate: certificate.as_ref().map(|(c, _)| c.clone()),
        probes: args.probes,
        confirm: args.confirm,
        seat: Seat {
            cpu: args.cpu,
            fifo: args.fifo,
            lock_memory: args.fifo.is_some(),
        },
    };
    let seed = args.seed.unwrap_or_else(|| scenario.seed());
    let ms = |ns: u64| ns / 1_000_000;
    let bar = ui.progress("running", ms(scenario.duration_ns()).max(1));
    let ready = |addresses: &[MacAddr]| {
        let all: Vec<String> = addresses.iter().map(MacAddr::to_string).collect();
        ui.tell(&format!(
            "{} runs on {} as {}",
            args.node,
            args.iface.join(", "),
            all.join(", ")
        ));
    };
    let done = deploy(
        &scenario,
        &args.node,
        seed,
        &site,
        ready,
        &|ns| bar.set(ms(ns)),
        ui.stop(),
    );
    bar.finish();
    let done = done.map_err(|e: DeployError| Failure::input(e))?;
    ui.say(summary(&done))?;
    if let Some(folder) = &folder {
        if let Some((_, text)) = &certificate {
            folder
                .write(certify::FILE, text.as_bytes())
                .map_err(Failure::on_the_way)?;
        }
        let status = if done.interrupted {
            Status::Interrupted
        } else {
            Status::Complete
        };
        folder.publish(status, &done).map_err(Failure::on_the_way)?;
        ui.say(format!("Result: {}", folder.path().display()))?;
    }
    ui.answer(&done)?;
    if done.interrupted {
        ui::warn("stopped early: the numbers cover the time until then");
    }
    Ok(ui.exit_code())
}

fn summary(d: &Deployed) -> String {
    let r = &d.requests;
    let mut t = format!(
        "{} ran {:.3} s: {} frames sent, {} acked, {} not acked, {} refused, {} aborted, {} expired, {} unknown; {} received",
        d.node,
        d.ran_ns as f64 / 1e9,
        r.sent,
        r.acked,
        r.not_acked,
        r.refused,
        r.aborted,
        r.expired,
        r.unknown,
        r.received
    );
    for (flow, count) in &d.submitted {
        let _ = write!(t, "\nflow {flow}: {count} handed to the protocol");
    }
    for (flow, count) in &d.delivered {
        let _ = write!(t, "\nflow {flow}: {count} delivered here");
    }
    if let Some(us) = &d.confirm_us {
        let _ = write!(
            t,
            "\nrequest to confirm: min {:.1}, median {:.1}, p99 {:.1}, max {:.1} us; {} with all nine planes",
            us.min, us.p50, us.p99, us.max, d.all_planes
        );
    }
    if r.more_tries_than_asked > 0 {
        let _ = write!(
            t,
            "\nnote: {} frames were sent more often than asked, see `sdmac certify`",
            r.more_tries_than_asked
        );
    }
    if d.attributes_refused > 0 {
        let _ = write!(
            t,
            "\nnote: {} settings that the protocol asked for cannot be made on Linux (channel access, for example)",
            d.attributes_refused
        );
    }
    t
}
