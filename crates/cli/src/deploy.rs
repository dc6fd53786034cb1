//! `sdmac deploy`: a node of a scenario on a radio of this computer.

mod summary;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::value_parser;
use frame::MacAddr;
use lab::deploy::{
    DeployError, Deployed, Run, Site, TAPE, TAPE_OCTETS, Transcript, UNTRIED, deploy, page, stick_at,
    transcribe,
};
use lab::plan;
use lab::report::folder::{Folder, REPORT, Status};
use lab::run::page::About;
use lab::scenario::{Description, Scenario};
use linux::wifi::confirm::Path;
use linux::wifi::{Host, Seat, Wait};
use serde::Serialize;

use crate::certify;
use crate::measure::ProbeWay;
use crate::ui::{self, Failure, Ui};
use summary::summary;

/// Run a node of a scenario on a radio of this computer
///
/// The protocol that ran in the simulator sends and hears over the kernel's 802.11 stack, with the address, channel and
/// traffic that the scenario gives it, for the scenario's duration or until Ctrl-C. Run each node on its own radio, with the same file; the
/// other nodes know it by its address. Medium, hosts, clocks, faults and channel access of the scenario are models, and do not
/// apply. With --out everything is recorded, as `sdmac run` does it, together with a tape that replays without a radio. It takes CAP_NET_ADMIN and CAP_NET_RAW, CAP_PERFMON for --probes, and CAP_SYS_NICE and CAP_IPC_LOCK for --fifo.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac lab run --radios 2 -- sh -c 'sdmac deploy s.toml --node a.0 --iface phy0 & sdmac deploy s.toml --node a.1 --iface phy1; wait'    # without hardware
  sudo sdmac deploy scenarios/tdma.toml --node controller --iface wlan1
  sudo sdmac deploy scenarios/tdma.toml --node devices.0 --iface wlan1 --fifo 50 --cpu 3 --certificate certificate.json --out run1
  sudo sdmac deploy s.toml --node a.0 --iface wlan0 --confirm status    # through an interface that is in an ad hoc network
  sudo sdmac deploy scenarios/oneshot.toml --node sender --iface usb:any    # an AR9170 stick
  sdmac deploy scenarios/tdma.toml --node devices.0 --replay run1/tape.sdmac    # anywhere, without a radio")]
pub struct Args {
    /// Scenario file, as for `sdmac run`
    scenario: PathBuf,
    /// Name of the node: that of its group, with its number there if it is not alone (devices.0)
    #[arg(long, value_name = "NAME")]
    node: String,
    /// The radio, by one of its interfaces or its own name (phy0); of a node with several adapters one for each. Or an AR9170
    /// stick, which is then driven by this program: usb:any, or usb:1-2 by where it is plugged in
    #[arg(
        long,
        value_name = "IFACE",
        required_unless_present = "replay",
        value_delimiter = ','
    )]
    iface: Vec<String>,
    /// Change a value: a short name that the scenario declares, or a dotted path
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Stamp the planes t2 to t8 in the kernel
    #[arg(long, value_name = "WAY", num_args = 0..=1, default_missing_value = "auto", require_equals = true)]
    probes: Option<ProbeWay>,
    /// The way by which outcomes come up: monitor; device, which takes the kernel module and stamps the planes t2 to t8; or
    /// status: then the node sends through the ordinary interface that --iface names, which is in an ad hoc network or an
    /// access point's, has the node's address, and is given the protocol's rate meanwhile
    #[arg(long, value_name = "PATH", default_value = "monitor", value_parser = confirm)]
    confirm: Path,
    /// How the node waits: spin, sleep or timerfd [default: `wait` of the node's group in the scenario]
    #[arg(long, value_name = "HOW", value_parser = wait)]
    wait: Option<Wait>,
    /// SCHED_FIFO with this priority, and locked memory
    #[arg(long, value_name = "PRIORITY", value_parser = value_parser!(u8).range(1..=99))]
    fifo: Option<u8>,
    /// The CPU to run on
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// The radio's certificate, by `sdmac certify`; it goes into the folder of --out, too [default: the one that certify
    /// has kept for this driver and address]
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// The stick's firmware [default: /lib/firmware/carl9170-1.fw, of Debian's firmware-linux-free]
    #[arg(long, value_name = "FILE")]
    firmware: Option<PathBuf>,
    /// Write report.html, tape, capture, timeline, tables and result to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write to the folder even if it holds other files
    #[arg(long, requires = "out")]
    force: bool,
    /// Octets of the tape in MiB; it ends when they are used up, and so do the files that are made of it
    #[arg(long, value_name = "N", default_value_t = (TAPE_OCTETS >> 20) as u16, value_parser = value_parser!(u16).range(1..=4096), requires = "out")]
    tape_mib: u16,
    /// Play a tape to the node's protocol in place of a radio, and compare each action
    #[arg(long, value_name = "FILE", conflicts_with_all = ["iface", "probes", "wait", "fifo", "cpu", "certificate", "firmware"])]
    replay: Option<PathBuf>,
}

fn confirm(text: &str) -> Result<Path, String> {
    let path = Path::parse(text).filter(|path| *path != Path::Nl80211);
    path.ok_or_else(|| "monitor, device or status: nl80211 carries management frames alone".to_owned())
}

fn wait(text: &str) -> Result<Wait, String> {
    match text {
        "spin" => Ok(Wait::Spin),
        "sleep" => Ok(Wait::Sleep),
        "timerfd" => Ok(Wait::Timerfd),
        _ => Err("spin, which takes a CPU for itself, sleep or timerfd".to_owned()),
    }
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
    let seed = args.seed.unwrap_or_else(|| scenario.seed());
    if let Some(tape) = &args.replay {
        return replay(args, &scenario, seed, tape, ui);
    }
    let certificates = match (args.confirm, &args.certificate) {
        (Path::Status, Some(_)) => {
            return Err(Failure::input(
                "a certificate is about a monitor interface: leave --certificate out with --confirm status",
            ));
        }
        (Path::Status, None) => Vec::new(),
        (_, named) => certify::of_all(&args.iface, named.as_deref())?,
    };
    let folder = args.out.as_ref().map(|path| Folder::create(path, args.force));
    let folder = folder.transpose().map_err(Failure::input)?;
    let site = Site {
        radios: args.iface.clone(),
        certificates: certificates
            .iter()
            .map(|c| Some(c.as_ref().ok()?.0.clone()))
            .collect(),
        softmac: Vec::new(),
        probes: args.probes.map(ProbeWay::way),
        confirm: args.confirm,
        wait: args.wait,
        seat: Seat {
            cpu: args.cpu,
            fifo: args.fifo,
            lock_memory: args.fifo.is_some(),
        },
        firmware: args.firmware.clone(),
        tape_octets: folder.as_ref().map_or(0, |_| usize::from(args.tape_mib) << 20),
    };
    let description = Description::open(&args.scenario, changes).map_err(Failure::input)?;
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
        Host::now() // It begins at once.
    };
    if args.iface.iter().any(|radio| stick_at(radio).is_some()) {
        ui.tell(&format!("note: {UNTRIED}"));
    }
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
    let run = done.map_err(|e: DeployError| Failure::input(e))?;
    let done = &run.done;
    ui.say(summary(done))?;
    if let Some(sentence) = done.uncertified {
        let why = certificates.iter().find_map(|c| c.as_ref().err());
        ui.say(format!("note: {sentence}: {}", why.map_or("", String::as_str)))?;
    }
    done.warnings(args.confirm)
        .for_each(|sentence| ui::warn(&sentence));
    if let Some(folder) = &folder {
        for (i, (_, text)) in certificates
            .iter()
            .enumerate()
            .filter_map(|(i, c)| Some((i, c.as_ref().ok()?)))
        {
            let name = match i {
                0 => certify::FILE.to_owned(),
                i => format!("certificate-{i}.json"),
            };
            folder
                .write(&name, text.as_bytes())
                .map_err(Failure::on_the_way)?;
        }
        write(args, &scenario, seed, &description, folder, &run)?;
        ui.say(format!("Report: {}", folder.path().join(REPORT).display()))?;
    }
    ui.answer(done)?;
    if done.interrupted {
        ui::warn("stopped early: the numbers cover the time until then");
    }
    Ok(ui.exit_code())
}

/// Fills the folder of a run.
fn write(
    args: &Args,
    scenario: &Scenario,
    seed: u64,
    description: &Description,
    folder: &Folder,
    run: &Run,
) -> Result<(), Failure> {
    folder.write(TAPE, &run.tape).map_err(Failure::on_the_way)?;
    let transcript = transcribe(scenario, &args.node, seed, &run.tape, Some(folder));
    let transcript = transcript.map_err(Failure::on_the_way)?;
    let about = About {
        file: &args.scenario.display().to_string(),
        command: &std::env::args().collect::<Vec<_>>().join(" "),
        description,
    };
    let page = page::page(&about, scenario, &run.done, &transcript).html();
    folder
        .write(REPORT, page.as_bytes())
        .map_err(Failure::on_the_way)?;
    let status = if run.done.interrupted {
        Status::Interrupted
    } else {
        Status::Complete
    };
    let body = Body {
        scenario: about.file,
        seed,
        deployed: &run.done,
        replayed: Played::of(&transcript),
        left_out: run.left_out,
    };
    folder.publish(status, &body).map_err(Failure::on_the_way)?;
    if run.left_out > 0 {
        ui::warn(&format!(
            "the tape was full: {} events are not on it, and not in the files that are made of it (--tape-mib)",
            run.left_out
        ));
    }
    if let Some(Err(error)) = transcript.recorded {
        return Err(Failure::on_the_way(error));
    }
    transcript.replayed.map(|_| ()).map_err(|error| {
        Failure::on_the_way(format!(
            "a fresh protocol does not do what is on the tape: {error}"
        ))
    })
}

/// The body of `result.json`.
#[derive(Serialize)]
struct Body<'a> {
    scenario: &'a str,
    seed: u64,
    #[serde(flatten)]
    deployed: &'a Deployed,
    replayed: Option<Played>,
    /// Events that found no room on the tape.
    left_out: u64,
}

/// What a fresh protocol has repeated.
#[derive(Serialize)]
struct Played {
    events: u64,
    actions: u64,
}

impl Played {
    fn of(transcript: &Transcript) -> Option<Played> {
        let of = |r: &radio::tape::Replayed| Played {
            events: r.events,
            actions: r.actions,
        };
        transcript.replayed.as_ref().ok().map(of)
    }
}

/// Plays a tape.
fn replay(
    args: &Args,
    scenario: &Scenario,
    seed: u64,
    tape: &std::path::Path,
    ui: &Ui,
) -> Result<ExitCode, Failure> {
    let place = |e: &dyn std::fmt::Display| Failure::input(format!("{}: {e}", tape.display()));
    let octets = std::fs::read(tape).map_err(|e| place(&e))?;
    let folder = args.out.as_ref().map(|path| Folder::create(path, args.force));
    let folder = folder.transpose().map_err(Failure::input)?;
    let done = transcribe(scenario, &args.node, seed, &octets, folder.as_ref()).map_err(Failure::input)?;
    let played = done.replayed.map_err(|e| place(&e))?;
    if let Some(Err(error)) = done.recorded {
        return Err(Failure::on_the_way(error));
    }
    let played = Played {
        events: played.events,
        actions: played.actions,
    };
    if let Some(folder) = &folder {
        folder
            .publish(Status::Complete, &played)
            .map_err(Failure::on_the_way)?;
    }
    ui.say(format!(
        "{}: {} events, and {} actions that are the same",
        args.node, played.events, played.actions
    ))?;
    ui.answer(&played)?;
    Ok(ExitCode::SUCCESS)
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

    #[test]
    fn waiting_and_folders_are_chosen() {
        let parsed = |line: &str| {
            let words = ["deploy", "s.toml", "--node", "a"].into_iter();
            let all = words.chain(line.split_whitespace());
            Alone::try_parse_from(all).ok().map(|alone| alone.args)
        };
        let wait = |how: &str| parsed(&format!("--iface phy0 --wait {how}")).map(|args| args.wait);
        assert_eq!(
            ["spin", "sleep", "timerfd", "io"].map(wait),
            [
                Some(Some(Wait::Spin)),
                Some(Some(Wait::Sleep)),
                Some(Some(Wait::Timerfd)),
                None
            ]
        );
        assert_eq!(parsed("--iface phy0").unwrap().wait, None, "that of the scenario");
        assert!(parsed("--replay tape --wait spin").is_none());
        assert!(parsed("--iface phy0 --out o --force").is_some_and(|args| args.force));
        assert!(parsed("--iface phy0 --force").is_none(), "which folder?");
        let confirm = |how: &str| parsed(&format!("--iface phy0 --confirm {how}")).map(|args| args.confirm);
        assert_eq!(
            ["monitor", "device", "status", "nl80211"].map(confirm),
            [Some(Path::Monitor), Some(Path::Device), Some(Path::Status), None]
        );
    }
}
