//! `sdmac certify`: what an adapter and its driver do with a request, as a table and as a certificate for the host.

mod store;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::value_parser;
use frame::MacAddr;
use lab::deploy::stick_at;
use lab::testbed::job::goes_with_the_guest;
use linux::host::EMULATED;
use linux::wifi::certify::{Certificate, CertifyPlan, Peer, certify, identity};

use self::store::{Kept, Store};
use crate::ui::{Failure, Ui};

/// Frames for the statuses, and for each other question, when a look is enough.
const QUICK: (u32, u32) = (500, 20);

/// Try out what a Wi-Fi adapter and its driver do: one-shots, tries, rates, ACKs, statuses, adapter time
///
/// Sends on the adapter's channel for some seconds, from monitor interfaces and for two moments from an access point and
/// an ad hoc network of its own, and leaves nothing behind. A second adapter of the same computer (--peer) hears what the
/// first one cannot know of itself, such as how many frames a request really was; without one the table says what could
/// not be seen. It takes CAP_NET_ADMIN and CAP_NET_RAW. The certificate is kept in $XDG_STATE_HOME/sdmac/certificates (or
/// ~/.local/state), where `measure`, `deploy` and `lab compare` find it by the adapter's driver and address.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac lab run --radios 2 -- sdmac certify --phy phy0 --peer phy1    # without hardware
  sudo sdmac certify --iface wlan1 --peer wlan2
  sudo sdmac certify --phy phy0 --peer phy1 --channel 5180 --out certificate.json
  sudo sdmac certify --iface wlan1 --peer 02:00:00:00:01:00 --quick --json    # a station that acknowledges")]
pub struct Args {
    #[command(flatten)]
    radio: Radio,
    /// A second adapter of this computer (phy1, wlan2), or the address of a station that acknowledges
    #[arg(long, value_name = "RADIO|MAC")]
    peer: Option<String>,
    /// Centre frequency in MHz; else where the adapter is, or the first channel where one may send
    #[arg(long, value_name = "MHZ")]
    channel: Option<u16>,
    /// Frames for the question whether each gets its status: 1 to 1000000
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// A few frames only: 500 for the statuses, 20 for each other question
    #[arg(long, conflicts_with = "count")]
    quick: bool,
    /// Write the certificate to this file, too
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
struct Radio {
    /// The adapter, by one of its interfaces
    #[arg(long, value_name = "IFACE")]
    iface: Option<String>,
    /// The adapter, by its own name
    #[arg(long, value_name = "PHY")]
    phy: Option<String>,
}

/// Name of a certificate in a folder of results.
pub const FILE: &str = "certificate.json";

/// Reads a certificate; its text, too, for a folder of results.
pub fn read(path: &Path) -> Result<(Certificate, String), Failure> {
    let wrong = |why: String| {
        let file = path.display();
        Failure::input(format!(
            "{file}: not a certificate ({why}); make one with `sdmac certify`"
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
    let certificate = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    Ok((certificate, text))
}

/// The certificate of a radio: the one that is named, or else the one that was kept for it. `Err` says in a sentence why there
/// is none.
pub fn of(radio: &str, named: Option<&Path>) -> Result<Found, Failure> {
    if let Some(path) = named {
        return read(path).map(Ok);
    }
    let Some(store) = Store::of_user() else {
        return Ok(Err(
            "neither HOME nor XDG_STATE_HOME says where it would be".to_owned()
        ));
    };
    Ok(match store.find(radio) {
        Ok(Kept::Certificate(certificate, text)) => Ok((*certificate, text)),
        Ok(Kept::Nothing(why)) => Err(why),
        Err(why) => Err(why.to_string()),
    })
}

/// What a radio was seen to do, with the text of its certificate, or why nobody knows.
pub type Found = Result<(Certificate, String), String>;

/// The certificates of radios: the one that is named for the radio that it is about, and those that were kept for the others. One
/// radio alone has the one that is named, which is refused later if it is about another.
pub fn of_all(radios: &[String], named: Option<&Path>) -> Result<Vec<Found>, Failure> {
    let (Some(path), 2..) = (named, radios.len()) else {
        return radios.iter().map(|radio| of(radio, named)).collect();
    };
    let address = read(path)?.0.address;
    let is_meant = |radio: &String| identity(radio).is_ok_and(|(_, own)| own == address);
    let meant: Vec<bool> = radios.iter().map(is_meant).collect();
    if !meant.contains(&true) {
        let radios = radios.join(", ");
        return Err(Failure::input(format!(
            "{}: the certificate is about the adapter {address}, which is none of {radios}; make another with `sdmac certify`",
            path.display()
        )));
    }
    let pairs = radios.iter().zip(meant);
    pairs
        .map(|(radio, meant)| of(radio, named.filter(|_| meant)))
        .collect()
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let named = [&args.radio.iface, &args.radio.phy, &args.peer];
    if named.into_iter().flatten().any(|radio| stick_at(radio).is_some()) {
        return Err(Failure::input(
            "a stick (usb:) is driven by this program, and its firmware tells the tries of each frame: there is no driver of the kernel to \
             certify, and no command asks for a certificate of it",
        ));
    }
    let plan = plan(args);
    if let Some(path) = &args.out {
        writable(path)?;
    }
    let bar = ui.progress("certifying", 1);
    let step = |done: usize, total: usize, what: &'static str| {
        bar.rename(what);
        bar.set_of(done as u64, total as u64);
    };
    let certificate = certify(&plan, &step, ui.stop()).map_err(Failure::input)?;
    bar.finish();
    if let Some(path) = &args.out {
        write(path, &certificate)?;
    }
    ui.say(table(&certificate))?;
    if let Some(path) = &args.out {
        ui.say(format!("{}: certificate", path.display()))?;
    }
    if !certificate.partial {
        keep(&certificate, ui)?;
    }
    ui.answer(&certificate)?;
    Ok(ui.exit_code())
}

fn plan(args: &Args) -> CertifyPlan {
    let Radio { iface, phy } = &args.radio;
    let radio = iface.as_ref().or(phy.as_ref()).map_or("", String::as_str);
    let peer = args.peer.as_deref().map(|peer| match MacAddr::parse(peer) {
        Some(address) => Peer::Station(address),
        None => Peer::Radio(peer.into()),
    });
    let plan = CertifyPlan {
        peer,
        channel_mhz: args.channel,
        frames: args.count,
        ..CertifyPlan::new(radio)
    };
    match args.quick {
        true => CertifyPlan {
            frames: QUICK.0,
            each: QUICK.1,
            ..plan
        },
        false => plan,
    }
}

/// Fails before a minute of sending, not after it.
fn writable(path: &Path) -> Result<(), Failure> {
    let existed = path.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|e| {
        Failure::input(format!(
            "{}: cannot be written ({e}); name another file with --out",
            path.display()
        ))
    })?;
    if !existed {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Keeps it where other commands find it.
fn keep(certificate: &Certificate, ui: &Ui) -> Result<(), Failure> {
    // A simulated radio does what its air does, and the next one may have another.
    let own_air = certificate.proven.max_tries.is_none_or(|most| most <= 1);
    if certificate.driver == "mac80211_hwsim" && own_air {
        ui.tell(
            "the certificate is not kept for other commands: hwsim's own air makes one try whatever is asked for, so they \
             would refuse retries; run `sdmac air` beside certify, or give them --certificate",
        );
        return Ok(());
    }
    let kept = Store::of_user().map(|store| store.keep(certificate, &text(certificate)));
    match kept {
        Some(Ok(file)) if goes_with_the_guest(&file) => ui.say(format!(
            "{}: certificate, which measure and deploy find by themselves in this guest; it is gone with it (keep it with \
             XDG_STATE_HOME=DIR sdmac lab run --write DIR, and lab compare finds it, too, given the same XDG_STATE_HOME)",
            file.display()
        )),
        Some(Ok(file)) => ui.say(format!(
            "{}: certificate, which measure, deploy and lab compare find by themselves",
            file.display()
        )),
        Some(Err(why)) => {
            ui.tell(&format!(
                "the certificate is not kept for other commands ({why}): give them --certificate"
            ));
            Ok(())
        }
        None => {
            ui.tell("the certificate is not kept for other commands: neither HOME nor XDG_STATE_HOME is set");
            Ok(())
        }
    }
}

fn text(certificate: &Certificate) -> String {
    let mut text = serde_json::to_string_pretty(certificate).expect("a certificate is plain data");
    text.push('\n');
    text
}

fn write(path: &Path, certificate: &Certificate) -> Result<(), Failure> {
    let failed = |e: String| {
        Failure::on_the_way(format!(
            "{}: the certificate cannot be written ({e})",
            path.display()
        ))
    };
    std::fs::write(path, text(certificate)).map_err(|e| failed(e.to_string()))
}

fn table(c: &Certificate) -> String {
    let mut t = format!(
        "{} ({}, {} monitor) at {} MHz, Linux {}, peer: {}{}\n\n",
        c.radio,
        c.driver,
        c.monitor,
        c.channel_mhz,
        c.kernel,
        c.peer.as_deref().unwrap_or("none"),
        if c.partial {
            "; ended early, so only in part"
        } else {
            ""
        }
    );
    let width = c.rows.iter().map(|row| row.what.len()).max().unwrap_or(0);
    for row in &c.rows {
        let verdict = row.verdict.to_string();
        let _ = writeln!(t, "{verdict:19}  {:width$}  asked: {}", row.what, row.asked);
        let _ = writeln!(t, "{:19}  {:width$}  seen: {}", "", "", row.seen);
    }
    if c.emulated {
        let _ = writeln!(t, "note: {EMULATED}");
    }
    if c.peer.is_none() {
        t += "note: a second adapter (--peer) would hear what this one cannot know of itself\n";
    }
    t
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(line: &str) -> Option<CertifyPlan> {
        let words = std::iter::once("certify").chain(line.split_whitespace());
        Alone::try_parse_from(words).ok().map(|alone| plan(&alone.args))
    }

    #[test]
    fn an_adapter_is_named_once_and_a_peer_is_a_radio_or_an_address() {
        assert!(parsed("").is_none() && parsed("--iface a --phy b").is_none());
        assert!(parsed("--phy a --count 0").is_none() && parsed("--phy a --count 5 --quick").is_none());
        let plan = parsed("--iface wlan1 --peer phy1 --channel 5180").unwrap();
        assert_eq!((plan.radio.as_str(), plan.frames), ("wlan1", 10_000));
        assert_eq!(plan.peer, Some(Peer::Radio("phy1".into())));
        assert_eq!(plan.channel_mhz, Some(5180));
        let plan = parsed("--phy phy0 --peer 02:00:00:00:01:00 --quick").unwrap();
        assert_eq!(plan.peer, Some(Peer::Station(MacAddr([2, 0, 0, 0, 1, 0]))));
        assert_eq!((plan.frames, plan.each), QUICK);
    }
}
