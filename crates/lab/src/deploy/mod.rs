//! A node of a scenario on radios of this computer: the protocol that ran in the simulator, with the same addresses,
//! channel and traffic, over the kernel's 802.11 stack.
//!
//! What of the scenario is a model (medium, hosts, clocks, faults, channel access of adapters) stays there: this is the real
//! thing.

mod arrived;
mod feed;
#[cfg(test)]
mod no_allocation;
mod over_linux;
mod over_stick;
mod packets;
pub mod page;
mod refused;
mod replay;
mod slots;
mod tape;
mod times;
mod warnings;
mod watched;

pub use arrived::Arrived;
pub use over_stick::stick_at;
pub use refused::Refusals;
pub use replay::{Transcript, transcribe};
pub use slots::{Celled, Clock, Roamed, Slots};
pub use warnings::UNWATCHED;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use ar9170::usb::UsbError;
use frame::MacAddr;
use linux::probe::Way;
use linux::wifi::certify::Certificate;
use linux::wifi::confirm::Path;
use linux::wifi::{Error, Host, HostCounters, Seat, SoftMac, Wait};
use radio::{Duration, Instant};
use serde::Serialize;

use crate::record::RecordError;
use crate::scenario::{Program, Scenario, Station};
use crate::stats::{Running, Sorted, Summary};
use feed::Feed;
use times::Times;
use watched::Watched;

/// How often progress is told.
const LOOK: Duration = Duration::from_ms(100);
/// What a reader must know of results without a certificate.
pub const UNCERTIFIED: &str = "no certificate: one-shot is not proven on this adapter (sdmac certify)";
/// What whoever drives a stick has to know of those of hardware.
pub const UNTRIED: &str = "only emulated sticks have been tried: one of hardware also wants the tables that initialise its baseband and its radio, which this \
                           program does not have, so expect it to hear nothing";
/// Name of the tape inside the folder.
pub const TAPE: &str = "tape.sdmac";
/// Octets of a tape, unless it is given: some ten thousands of frames.
pub const TAPE_OCTETS: usize = 16 << 20;

/// Where a node is to run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Site {
    /// A radio for each adapter of the node, in their order; `usb:PLACE` or `usb:any` is an AR9170 stick.
    pub radios: Vec<String>,
    /// What each was seen to do, in the same order; those that are missing have no certificate.
    pub certificates: Vec<Option<Certificate>>,
    /// Switches of each that Linux has no words for, in the same order; those that are missing have none.
    pub softmac: Vec<Option<SoftMac>>,
    /// Stamp the planes t2 to t8, in this way.
    pub probes: Option<Way>,
    /// By which way outcomes come up. With [`Path::Status`] a radio is named by an interface of the user's, which then carries the
    /// node, at the rate of its protocol.
    pub confirm: Path,
    /// How to wait; `None`: as the scenario's host does.
    pub wait: Option<Wait>,
    /// Of the calling thread.
    pub seat: Seat,
    /// File of a stick's firmware; `None`: where Linux has it.
    pub firmware: Option<PathBuf>,
    /// Record a tape of so many octets at most; 0: none.
    pub tape_octets: usize,
}

impl Site {
    /// What the radio of an adapter was seen to do.
    fn certificate(&self, adapter: usize) -> Option<Certificate> {
        self.certificates.get(adapter).cloned().flatten()
    }
}

/// Why a node cannot run here.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// No such node.
    #[error("there is no node `{name}` in the scenario; there is {}", .have.join(", "))]
    NoNode {
        /// What was asked for.
        name: String,
        /// What there is, the first ones.
        have: Vec<String>,
    },
    /// As many radios as adapters are needed.
    #[error("node `{name}` has {adapters} adapters: name as many radios with --iface, with commas between")]
    Radios {
        /// Which node.
        name: String,
        /// How many.
        adapters: usize,
    },
    /// The folder.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The radios.
    #[error(transparent)]
    Wifi(#[from] Error),
    /// The stick.
    #[error(transparent)]
    Usb(#[from] UsbError),
    /// A stick cannot be used so.
    #[error("a stick (usb:) {0}")]
    Stick(&'static str),
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deployed {
    /// Name of the node.
    pub node: String,
    /// [`UNCERTIFIED`] if a radio of it had no certificate.
    pub uncertified: Option<&'static str>,
    /// This processor is emulated, or its time virtual: times are good for order and ratios only ([`linux::host::EMULATED`]).
    pub emulated: bool,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// How long it ran, ns.
    pub ran_ns: u64,
    /// It was stopped before the end.
    pub interrupted: bool,
    /// Requests by outcome, and packets.
    pub requests: Requests,
    /// MSDUs handed to the protocol, by flow.
    pub submitted: BTreeMap<u32, u64>,
    /// MSDUs that the protocol handed up, by the flow of the scenario that they name; those that name none under `none`.
    pub delivered: BTreeMap<String, u64>,
    /// Since the end of the warm-up, as `sdmac run` counts.
    pub measured: Window,
    /// Of a node in a schedule: what became of its slots.
    pub slots: Option<Slots>,
    /// Of a node in a schedule: how its clock has followed the beacons.
    pub clock: Option<Clock>,
    /// [`UNWATCHED`] if it was to watch the slots of others, and could not.
    pub unwatched: Option<&'static str>,
    /// Of a host that agrees with others on its slot.
    pub cell: Option<Celled>,
    /// Of a node that roams: its hand-overs, and what they cost.
    pub roamed: Option<Roamed>,
    /// From the request to its confirm (t9 - t1), us.
    pub confirm_us: Option<Summary>,
    /// Confirms with all nine planes.
    pub all_planes: u64,
    /// Attributes that the protocol asked for and this host cannot set.
    pub attributes_refused: u64,
}

/// What was counted after the warm-up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Window {
    /// Its length, ns.
    pub window_ns: u64,
    /// MSDUs handed to the protocol here.
    pub submitted: u64,
    /// MSDUs that it handed up here.
    pub delivered: u64,
    /// Octets of these, without LLC/SNAP.
    pub delivered_octets: u64,
    /// Frames on the air, as the confirms tell; `None` where they do not: with [`Path::Status`].
    pub tries: Option<u64>,
    /// From the submission to the delivery here, us. Good if the sender is on this computer: the clocks of two are not
    /// compared.
    pub latency_us: Option<Summary>,
}

/// What a node has done, with its tape.
#[derive(Debug)]
pub struct Run {
    /// Keeps its radios until it is dropped: to take them down stops the kernel's whole configuration for some milliseconds, for
    /// nodes that are still running, too. `None`: it had a stick, which is given back.
    pub host: Option<Host>,
    /// The numbers.
    pub done: Deployed,
    /// From the request to the confirm of frames that were on the air, us, if it came in the measured time.
    pub confirm_us: Running,
    /// Latencies of what was delivered here in the measured time, us, as many as are kept.
    pub latencies_us: Vec<f64>,
    /// For each flow from here the numbers of the MSDUs that losses are judged by: those submitted after the warm-up and
    /// before [`settle_ns`](crate::run::settle_ns).
    pub judged: BTreeMap<u32, Range<u32>>,
    /// What has arrived here.
    pub arrived: Arrived,
    /// Empty if none was asked for. It ends where there was no more room.
    pub tape: Vec<u8>,
    /// Events that found no room on it.
    pub left_out: u64,
}

/// Requests of a node by their ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(
    missing_docs,
    reason = "each is named like the outcome or the counter that it is"
)]
pub struct Requests {
    pub sent: u64,
    pub acked: u64,
    pub not_acked: u64,
    pub refused: u64,
    /// The refused ones by reason.
    pub refusals: Refusals,
    pub aborted: u64,
    pub expired: u64,
    pub unknown: u64,
    pub more_tries_than_asked: u64,
    pub received: u64,
}

impl Requests {
    fn new(c: &HostCounters, refusals: Refusals) -> Requests {
        Requests {
            sent: c.sent,
            acked: c.acked,
            not_acked: c.not_acked,
            refused: c.refused,
            refusals,
            aborted: c.aborted,
            expired: c.expired,
            unknown: c.unknown,
            more_tries_than_asked: c.more_tries_than_asked,
            received: c.indications,
        }
    }

    /// All that have ended.
    pub fn ended(&self) -> u64 {
        self.acked + self.not_acked + self.refused + self.aborted + self.expired + self.unknown
    }
}

/// What has carried a node, and what came of it.
struct Carried {
    host: Option<Host>,
    watched: Watched,
    feed: Feed,
    addresses: Vec<MacAddr>,
    counters: HostCounters,
    ran_ns: u64,
    interrupted: bool,
}

fn station(scenario: &Scenario, node: &str, seed: u64) -> Result<Station, DeployError> {
    scenario.station(node, seed).ok_or_else(|| DeployError::NoNode {
        name: node.to_owned(),
        have: (0..scenario.nodes().min(12))
            .map(|n| scenario.node_name(n))
            .collect(),
    })
}

/// Runs a node for the duration of the scenario, or until `stop`. `ready` is told its addresses and tells when the scenario begins,
/// on the host's clock. `progress` is told the time that it has run, ns. It is called between two events of the protocol, so it
/// must return at once: it may set a number that another thread shows, and not write to a terminal.
///
/// # Errors
/// [`DeployError`].
pub fn deploy(
    scenario: &Scenario,
    node: &str,
    seed: u64,
    site: &Site,
    ready: impl FnOnce(&[MacAddr]) -> Instant,
    progress: &dyn Fn(u64),
    stop: &AtomicBool,
) -> Result<Run, DeployError> {
    let mut station = station(scenario, node, seed)?;
    station.program.number_packets_from(packets::first_by_clock());
    let adapters = &station.config.adapters;
    if adapters.len() != site.radios.len() {
        return Err(DeployError::Radios {
            name: node.to_owned(),
            adapters: adapters.len(),
        });
    }
    let (own, watches) = (station.sends_beacons, station.watches_by_adapter);
    let carried = match over_stick::name(&site.radios) {
        Some(stick) => over_stick::carry(scenario, station, seed, stick, site, ready, progress, stop)?,
        None => over_linux::carry(scenario, station, seed, site, ready, progress, stop)?,
    };
    let Carried {
        host,
        watched,
        feed,
        addresses,
        counters,
        ran_ns,
        interrupted,
    } = carried;
    let sources = feed.sources.borrow();
    let (program, strip) = watched.tape.into_parts();
    let (tape, left_out) = strip.into_parts();
    let done = Deployed {
        node: node.to_owned(),
        // a stick's firmware tells the tries of each frame; an ordinary interface has no one-shot to be proven
        uncertified: (host.is_some()
            && site.confirm != Path::Status
            && (0..site.radios.len()).any(|i| site.certificate(i).is_none()))
        .then_some(UNCERTIFIED),
        emulated: linux::host::environment().is_emulated(),
        addresses: addresses.iter().map(MacAddr::to_string).collect(),
        ran_ns,
        interrupted,
        requests: Requests::new(&counters, watched.refusals),
        submitted: sources.all.iter().map(|s| (s.flow, s.count.into())).collect(),
        delivered: feed.delivered(),
        measured: Window {
            window_ns: ran_ns.saturating_sub(scenario.warm_up_ns()),
            submitted: sources.all.iter().map(|s| s.measured).sum(),
            delivered: feed.measured,
            delivered_octets: feed.octets,
            tries: (site.confirm != Path::Status).then_some(watched.tries),
            latency_us: Sorted::new(feed.latencies_us.clone()).summary(),
        },
        slots: program.slots().map(|(counters, _)| Slots::from(counters)),
        clock: program.network_clock().map(|sync| Clock::new(sync, own)),
        unwatched: (host.is_some() && watches).then_some(UNWATCHED),
        cell: match &program {
            Program::Tbmac(p) => Some(Celled::from(p.host())),
            _ => None,
        },
        roamed: program.roamed().map(Roamed::from),
        confirm_us: Sorted::new(watched.latencies_us).summary(),
        all_planes: watched.all_planes,
        attributes_refused: watched.attributes_refused,
    };
    Ok(Run {
        host,
        done,
        confirm_us: watched.confirm_us,
        latencies_us: feed.latencies_us,
        judged: sources.all.iter().map(|s| (s.flow, s.judged.clone())).collect(),
        arrived: feed.arrived,
        tape,
        left_out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn wrong_names_and_numbers_are_told_before_a_radio_is_opened() {
        let text = "[run]\nduration = \"1s\"\n[[group]]\nname = \"a\"\ncount = 2\nprotocol.sender = { rate = \"6M\" }\n";
        let scenario =
            Scenario::parse(std::path::Path::new("t.toml"), text, &[]).unwrap_or_else(|e| panic!("{e}"));
        let run = |node: &str| {
            let never = AtomicBool::new(false);
            deploy(
                &scenario,
                node,
                1,
                &Site::default(),
                |_| Instant::ZERO,
                &|_| (),
                &never,
            )
            .unwrap_err()
            .to_string()
        };
        assert!(run("b").contains("there is a.0, a.1"), "{}", run("b"));
        assert!(run("a.1").contains("name as many radios"), "{}", run("a.1"));
    }
}
