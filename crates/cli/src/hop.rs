//! `sdmac hop`: this computer as a hop of ATP.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use lab::qualify::question::parse_time;
use linux::netfilter::{Queue, Selection, give_up_other_rights, holder};
use linux::wifi::Reports;
use protocols::transport::hop::HopConfig;
use protocols::transport::wire::{ProtocolId, VERSION};
use radio::Duration;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use transfer::hop::delay::{DelaySource, Fixed, Reported};
use transfer::hop::export::Export;
use transfer::hop::{Counts, run};

use crate::ui::{Failure, Ui};

/// Tell passing ATP packets how long packets take through this computer, until Ctrl-C
///
/// Packets of ATP that leave through the interface, forwarded ones and those of this computer, get this node's delay if it
/// is longer than what they carry. Rules are made and removed by the program. Packets flow on as they are when it ends, however
/// it does, when it is too slow, and a second after it has begun to hang, until it goes on. What waits in its queue then, or when it is
/// killed, is lost. Needs CAP_NET_ADMIN, to measure also CAP_NET_RAW, and gives up every right but the first.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac hop wlan0                                # measured
  sdmac hop wlan0 --delay 3ms                    # a packet takes 3 ms: measured in another way
  sdmac hop wlan0 --delay 3ms --port 7800 --port 7801 --stats
  cat /run/sdmac/hop-wlan0                       # the delay as it is now, in microseconds
  nft list table ip sdmac-hop-wlan0              # what was set up

Exit code: 0 stopped by Ctrl-C, 1 it ended for another reason, 2 the input makes no sense or this computer cannot do it.")]
pub struct Args {
    /// Interface through which packets leave
    interface: String,
    /// Where this node's delay comes from: `status`, measured from what the radio reports of sent packets; or the time
    /// that each packet of data takes, from which it follows how long they wait for each other
    #[arg(long, value_name = "status|TIME", default_value = "status", value_parser = parse_delay, allow_hyphen_values = true)]
    delay: Delay,
    /// UDP port of ATP, at either end; may be given again
    #[arg(long = "port", value_name = "PORT", default_value = "7800")]
    ports: Vec<u16>,
    /// What the delay is multiplied by while the channel is idle: 3, or 5 where paths have five hops and more
    #[arg(long, value_name = "ETA", default_value_t = HopConfig::default().idle_multiplier)]
    idle_multiplier: f64,
    /// File for the delay, in microseconds [default: /run/sdmac/hop-INTERFACE]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Say once a second what was done; with --json one document each
    #[arg(long)]
    stats: bool,
}

/// Where the delay comes from.
#[derive(Clone, Copy, Debug)]
enum Delay {
    Status,
    Fixed(Duration),
}

fn parse_delay(text: &str) -> Result<Delay, String> {
    match text {
        "status" => Ok(Delay::Status),
        _ => parse_time(text).map(|ns| Delay::Fixed(Duration::from_ns(ns))),
    }
}

/// Ports that rules are made for at most.
const MOST_PORTS: usize = 16;

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    if args.ports.len() > MOST_PORTS || args.ports.contains(&0) {
        return Err(Failure::input(format!(
            "--port takes 1 to 65535, {MOST_PORTS} times at most"
        )));
    }
    if !(1.0..=100.0).contains(&args.idle_multiplier) {
        return Err(Failure::input(
            "--idle-multiplier takes 1 to 100: 3 is usual, 5 where paths have five hops and more",
        ));
    }
    let config = HopConfig {
        idle_multiplier: args.idle_multiplier,
        ..HopConfig::default()
    };
    let selection = Selection {
        interface: args.interface.clone(),
        ports: args.ports.clone(),
        begins: [ProtocolId::Atp as u8, VERSION],
    };
    let queue = Queue::open(&selection).map_err(Failure::input)?;
    let mut source: Box<dyn DelaySource> = match args.delay {
        Delay::Fixed(delay) => Box::new(Fixed::new(delay)),
        Delay::Status => {
            let reports = Reports::open(&args.interface)
                .map_err(|e| Failure::input(format!("{e}; or give the delay with --delay TIME")))?;
            Box::new(Reported::new(reports))
        }
    };
    let default = || {
        let folder = Path::new("/run/sdmac");
        // if it cannot be made, the file in it cannot
        let _ = std::fs::create_dir_all(folder);
        folder.join(format!("hop-{}", args.interface))
    };
    let path = args.file.clone().unwrap_or_else(default);
    let export = Export::new(&path)
        .map_err(|e| Failure::input(format!("{}: {e}; name another file with --file", path.display())))?;
    give_up_other_rights().map_err(|e| Failure::on_the_way(format!("cannot give up rights: {e}")))?;
    ui.tell(&format!(
        "packets of ATP that leave through {} learn its delay ({}); Ctrl-C ends it",
        args.interface,
        queue.way()
    ));
    let begun = Instant::now();
    let mut told = false;
    let mut lapses = 0;
    let shown = |counts: &Counts| {
        if counts.fragments > 0 && !told {
            told = true;
            ui.tell(&cut(&args.interface));
        }
        if counts.lapses > lapses {
            lapses = counts.lapses;
            ui.tell(LAPSED);
        }
        if args.stats {
            // a closed stdout is noticed in the end
            let _ = ui.say(sentence(counts));
            let _ = ui.answer(&document(&args.interface, counts, begun));
        }
    };
    let counts = run(queue, &mut *source, &config, Some(export), ui.stop(), shown)
        .map_err(|e| Failure::on_the_way(format!("{}: {e}", args.interface)))?;
    if counts.fragments > 0 && !told {
        ui.tell(&cut(&args.interface));
    }
    ui.say(sentence(&counts))?;
    ui.answer(&document(&args.interface, &counts, begun))?;
    // Ctrl-C is how it ends
    Ok(ExitCode::SUCCESS)
}

/// Runs in the process that holds the rules, `linux::netfilter::holder`.
pub fn hold() -> ExitCode {
    // who ends a whole service means the hop, and with that this ends
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let _ = flag::register(signal, Arc::default());
    }
    match holder::hold() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => Failure::on_the_way(format!("cannot hold the rules of the hop: {e}")).report(),
    }
}

/// What it means that the rules had to be made anew.
const LAPSED: &str = "this program did not run for a second or longer, so packets of ATP went by unmarked and uncounted; they are marked \
                      again";

/// What it means that packets come in fragments.
fn cut(interface: &str) -> String {
    format!(
        "packets of ATP come in fragments, which cannot be marked, so their senders do not learn the delay of {interface}: a sender of \
         an older version, or another program, lets its packets be cut; renew it, or raise the MTU of the links before this computer"
    )
}

fn sentence(c: &Counts) -> String {
    let mut text = format!(
        "{} packets, {} of them marked, D {} us from {} samples",
        c.packets, c.marked, c.delay_us, c.samples
    );
    if c.fragments > 0 {
        text += &format!("; {} came in fragments, which cannot be marked", c.fragments);
    }
    if c.missed > 0 {
        text += &format!(
            "; {} went by unmarked, because this computer was too slow",
            c.missed
        );
    }
    if c.lapses > 0 {
        text += &format!(
            "; {} times it did not run, and packets went by uncounted",
            c.lapses
        );
    }
    if c.refused > 0 {
        text += &format!("; {} verdicts were refused by the kernel", c.refused);
    }
    text
}

fn document(interface: &str, c: &Counts, begun: Instant) -> serde_json::Value {
    json!({
        "interface": interface,
        "seconds": begun.elapsed().as_secs_f64(),
        "packets": c.packets,
        "marked": c.marked,
        "fragments": c.fragments,
        "missed": c.missed,
        "refused": c.refused,
        "lapses": c.lapses,
        "delay_us": c.delay_us,
        "samples": c.samples,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_said_and_nothing_else() {
        let good = Counts {
            packets: 9,
            marked: 7,
            delay_us: 800,
            samples: 5,
            ..Counts::default()
        };
        assert_eq!(
            sentence(&good),
            "9 packets, 7 of them marked, D 800 us from 5 samples"
        );
        let bad = Counts {
            fragments: 2,
            missed: 3,
            refused: 1,
            lapses: 4,
            ..good
        };
        for part in [
            "2 came in fragments",
            "3 went by unmarked",
            "1 verdicts",
            "4 times it did not run",
        ] {
            assert!(sentence(&bad).contains(part), "{part}");
        }
    }
}
