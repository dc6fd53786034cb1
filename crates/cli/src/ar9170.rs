//! `sdmac ar9170`: emulated AR9170 sticks that QEMU plugs into its guests.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Subcommand, value_parser};
use lab::testbed::ar9170::Knobs;
use lab::testbed::ar9170::served::{self, MAX_STICKS, Served, Stage};

use crate::ui::{Failure, Ui};

/// Emulated AR9170 sticks for the guests of QEMU
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac ar9170 serve /tmp/stick0 /tmp/stick1
  sdmac ar9170 serve /tmp/stick0 --station robots --json")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Serve(ServeArgs),
}

/// Serve sticks on one air over usbredir until Ctrl-C, then say which commands each was given
///
/// The sticks behave as hardware with the open firmware does, so the unmodified driver `carl9170` of Linux runs them. Their
/// air is the simulator's, in the time of this computer: 802.11g on the channels of 2.4 GHz, and all hear each other. Any
/// QEMU takes them, as the examples show; QEMU has to be started after this command.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac ar9170 serve /tmp/stick0 /tmp/stick1
  sdmac lab run --qemu standard --radios 0 --stick /tmp/stick0 --stick /tmp/stick1 -- iw dev    # meanwhile, elsewhere
  qemu-system-x86_64 ... -device qemu-xhci -chardev socket,id=s,path=/tmp/stick0 -device usb-redir,chardev=s
  sdmac ar9170 serve /tmp/stick0 --station robots          # our own driver and ad hoc network is there, too
  sdmac ar9170 serve /tmp/stick0 --skip-response 500       # the driver has to find out, and to start the stick anew
  sdmac ar9170 serve /tmp/stick0 --late 1 --late-us 5000   # what it says comes in groups of 5 ms")]
struct ServeArgs {
    /// Unix socket for each stick, 1 to 8; one that an ended server has left behind is replaced
    #[arg(value_name = "SOCKET", required = true, num_args = 1..=MAX_STICKS as usize)]
    sockets: Vec<PathBuf>,
    /// A further station with our own driver is a member of the ad hoc network of this name, on channel 1, and sends back
    /// what it receives; its clock starts 1000 s ahead of those of the sticks
    #[arg(long, value_name = "SSID", value_parser = ssid)]
    station: Option<String>,
    /// Skip the sequence number of each stick's N-th response, once
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    skip_response: Option<u64>,
    /// The chance that what a stick says is late: what it says meanwhile comes in the same transfer, up to 4 frames or blocks of
    /// responses
    #[arg(long, value_name = "CHANCE", value_parser = chance, default_value_t = 0.0)]
    late: f64,
    /// By how much, us, up to a second
    #[arg(long, value_name = "US", value_parser = value_parser!(u32).range(1..=1_000_000), default_value_t = 1_000)]
    late_us: u32,
    /// The chance that the status of a frame is lost: Linux starts the stick anew after 5.5 s without it
    #[arg(long, value_name = "CHANCE", value_parser = chance, default_value_t = 0.0)]
    lost_status: f64,
    /// Seed of the air
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

fn ssid(text: &str) -> Result<String, String> {
    if (1..=32).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err("1 to 32 octets".to_owned())
    }
}

fn chance(text: &str) -> Result<f64, String> {
    let chance = text.parse().ok().filter(|chance| (0.0..=1.0).contains(chance));
    chance.ok_or_else(|| "a chance, 0 (never) to 1 (always)".to_owned())
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let Action::Serve(args) = &args.action;
    let mut seen = BTreeSet::new();
    if let Some(twice) = args.sockets.iter().find(|socket| !seen.insert(*socket)) {
        return Err(Failure::input(format!(
            "{}: one socket for two sticks, give each its own",
            twice.display()
        )));
    }
    let stage = Stage {
        sockets: args.sockets.clone(),
        knobs: Knobs {
            skip_response: args.skip_response,
            late_interrupt: args.late,
            late_ns: u64::from(args.late_us) * 1_000,
            lost_status: args.lost_status,
            ..Knobs::default()
        },
        // a protocol borrows its name for as long as the program runs, and so does this command
        station: args.station.clone().map(|ssid| &*ssid.leak()),
        seed: args.seed,
    };
    let ready = || ui.tell("the sticks can be plugged in now; Ctrl-C unplugs them");
    let served = served::serve(&stage, ui.stop(), ready).map_err(Failure::on_the_way)?;
    ui.say(page(&served))?;
    ui.answer(&served)?;
    // Ctrl-C is how it ends
    Ok(ExitCode::SUCCESS)
}

fn page(served: &Served) -> String {
    let mut text = String::new();
    for stick in &served.sticks {
        let _ = writeln!(
            text,
            "{} ({}): plugged in {}x, reset {}x, firmware started {}x, {} frames on the air, TSF {} us",
            stick.socket,
            stick.address,
            stick.connections,
            stick.resets,
            stick.starts,
            stick.frames,
            stick.tsf_us
        );
        if let Some(why) = &stick.refused {
            let _ = writeln!(text, "  the last connection was closed: {why}");
        }
        let names: BTreeSet<&String> = stick.commands.keys().chain(stick.asynchronous.keys()).collect();
        for name in names {
            let count = |of: &std::collections::BTreeMap<String, u64>| of.get(name).copied().unwrap_or(0);
            let (waits, goes_on) = (count(&stick.commands), count(&stick.asynchronous));
            let _ = writeln!(text, "  {name:16} {waits:>8} {goes_on:>8}");
        }
    }
    if let Some(s) = &served.station {
        let _ = writeln!(
            text,
            "our station ({}), network {}: {} payloads, {} beacons sent and {} heard, {} clocks taken over, {} networks left, TSF {} us",
            s.address,
            s.bssid.as_deref().unwrap_or("none"),
            s.delivered,
            s.beacons,
            s.beacons_heard,
            s.adoptions,
            s.merges,
            s.tsf_us
        );
    }
    let _ = write!(
        text,
        "Commands by name: with the host waiting for the answer, and without. {:.1} s, at most {:.1} ms late.",
        served.seconds,
        served.latest_us / 1e3
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::testbed::ar9170::served::StickSummary;

    #[test]
    fn the_table_has_each_command_once() {
        let one = |n| [("Echo".to_owned(), n)].into_iter().collect();
        let text = page(&Served {
            seconds: 1.0,
            sticks: vec![StickSummary {
                socket: "/tmp/s".into(),
                address: "02:00:00:00:00:01".into(),
                connections: 1,
                refused: None,
                resets: 1,
                starts: 1,
                commands: one(3),
                asynchronous: one(4),
                frames: 0,
                tsf_us: 0,
            }],
            station: None,
            latest_us: 0.0,
        });
        assert_eq!(text.matches("Echo").count(), 1);
        assert!(text.contains("       3        4"), "{text}");
    }

    #[test]
    fn chances() {
        assert_eq!(
            (chance("0"), chance("1"), chance("0.05")),
            (Ok(0.0), Ok(1.0), Ok(0.05))
        );
        for wrong in ["1.01", "-0.1", "nan", "5%", ""] {
            assert!(chance(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_of_networks() {
        assert!(ssid("robots").is_ok() && ssid("").is_err());
        assert!(ssid(&"x".repeat(33)).is_err());
    }
}
