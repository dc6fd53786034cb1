//! A node of a scenario on radios of this computer: the protocol that ran in the simulator, with the same addresses,
//! channel and traffic, over the kernel's 802.11 stack.
//!
//! What of the scenario is a model (medium, hosts, clocks, faults, channel access of adapters) stays there: this is the real
//! thing.

mod arrived;
mod asked;
mod feed;
pub mod page;
mod refused;
mod replay;
mod slots;
mod tape;
mod watched;

pub use arrived::Arrived;
pub use refused::Refusals;
pub use replay::{Transcript, transcribe};
pub use slots::{Celled, Slots};

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use frame::MacAddr;
use linux::probe::Way;
use linux::wifi::certify::Certificate;
use linux::wifi::confirm::Path;
use linux::wifi::{Adapter, AdapterConfig, Error, Host, HostConfig, HostCounters, Seat, TsfSource, Wait};
use radio::Duration;
use serde::Serialize;

use crate::record::RecordError;
use crate::run;
use crate::scenario::{Program, Scenario, Station};
use crate::stats::{Sorted, Summary};
use feed::Feed;
use watched::Watched;

/// How often progress is told.
const LOOK: Duration = Duration::from_ms(100);
/// What a reader must know of results without a certificate.
pub const UNCERTIFIED: &str = "no certificate: one-shot is not proven on this adapter (sdmac certify)";
/// Name of the tape inside the folder.
pub const TAPE: &str = "tape.sdmac";
/// Octets of a tape, unless it is given: some ten thousands of frames.
pub const TAPE_OCTETS: usize = 16 << 20;

/// Where a node is to run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Site {
    /// A radio for each adapter of the node, in their order.
    pub radios: Vec<String>,
    /// What each was seen to do, in the same order; those that are missing have no certificate.
    pub certificates: Vec<Option<Certificate>>,
    /// Stamp the planes t2 to t8, in this way.
    pub probes: Option<Way>,
    /// By which way outcomes come up.
    pub confirm: Path,
    /// How to wait; `None`: as the scenario's host does.
    pub wait: Option<Wait>,
    /// Of the calling thread.
    pub seat: Seat,
    /// Record a tape of so many octets at most; 0: none.
    pub tape_octets: usize,
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
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deployed {
    /// Name of the node.
    pub node: String,
    /// [`UNCERTIFIED`] if a radio of it had no certificate.
    pub uncertified: Option<&'static str>,
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
    /// Of a host that agrees with others on its slot.
    pub cell: Option<Celled>,
    /// From the request to its confirm (t9 - t1), us.
    pub confirm_us: Option<Summary>,
    /// Confirms with all nine planes.
    pub all_planes: u64,
    /// Attributes that the protocol asked for and this host cannot set.
    pub attributes_refused: u64,
}

impl Deployed {
    /// One sentence if requests were refused: the commonest reason, and what to do.
    pub fn refusal(&self) -> Option<String> {
        self.requests.refusals.warning(&self.node, self.requests.ended())
    }

    /// One sentence if slots were lost because this host was late.
    pub fn lateness(&self) -> Option<String> {
        let of_slots = self.slots.map(|s| (s.overruns, s.late, s.released));
        let of_cell = self.cell.map(|c| (c.overruns, c.late, c.released));
        let (overruns, late, released) = of_slots.or(of_cell).filter(|s| s.0 + s.1 > 0)?;
        Some(format!(
            "{}: {overruns} slots were over before the node woke up for them, and {late} of {released} released frames were not on the air by the \
             end of their guard: this host needs more than the schedule's release.high says; give it what this host keeps \
             (`sdmac measure` tells; an emulated CPU needs milliseconds, and in the lab's virtual time nodes wait for each \
             other's readings of the clock)",
            self.node
        ))
    }
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
    /// Frames on the air, as the confirms tell.
    pub tries: u64,
    /// From the submission to the delivery here, us. Good if the sender is on this computer: the clocks of two are not
    /// compared.
    pub latency_us: Option<Summary>,
}

/// What a node has done, with its tape.
#[derive(Debug)]
pub struct Run {
    /// Keeps its radios until it is dropped: to take them down stops the kernel's whole configuration for some milliseconds, for
    /// nodes that are still running, too.
    pub host: Host,
    /// The numbers.
    pub done: Deployed,
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

fn station(scenario: &Scenario, node: &str, seed: u64) -> Result<Station, DeployError> {
    scenario.station(node, seed).ok_or_else(|| DeployError::NoNode {
        name: node.to_owned(),
        have: (0..scenario.nodes().min(12))
            .map(|n| scenario.node_name(n))
            .collect(),
    })
}

/// Runs a node for the duration of the scenario, or until `stop`. `ready` is told its addresses, `progress` the time that
/// it has run, ns.
///
/// # Errors
/// [`DeployError`].
pub fn deploy(
    scenario: &Scenario,
    node: &str,
    seed: u64,
    site: &Site,
    ready: impl FnOnce(&[MacAddr]),
    progress: &dyn Fn(u64),
    stop: &AtomicBool,
) -> Result<Run, DeployError> {
    let station = station(scenario, node, seed)?;
    let adapters = &station.config.adapters;
    if adapters.len() != site.radios.len() {
        return Err(DeployError::Radios {
            name: node.to_owned(),
            adapters: adapters.len(),
        });
    }
    let certificate = |i: usize| site.certificates.get(i).cloned().flatten();
    let open = |(i, (a, radio)): (usize, (&sim::AdapterConfig, &String))| {
        Adapter::open(AdapterConfig {
            address: Some(a.address),
            tsf: if station.keeps_time {
                TsfSource::Computer
            } else {
                TsfSource::Adapter
            },
            certificate: certificate(i),
            width: scenario.width(a.mhz),
            ..AdapterConfig::new(radio, a.mhz)
        })
    };
    let opened: Result<Vec<Adapter>, Error> =
        adapters.iter().zip(&site.radios).enumerate().map(open).collect();
    let config = HostConfig {
        probes: site.probes,
        confirm: site.confirm,
        wait: site.wait.unwrap_or(match station.config.wait {
            sim::host::Wait::Spin => Wait::Spin,
            sim::host::Wait::Sleep => Wait::Sleep,
            sim::host::Wait::Timerfd => Wait::Timerfd,
        }),
        ..HostConfig::default()
    };
    let mut host = Host::new(opened?, config)?;
    let mut feed = Feed::new(
        station.flows,
        scenario.flows() as u32,
        seed,
        config.outstanding.into(),
    );
    let mut watched = Watched::new(station.program, &feed.sources, site.tape_octets);
    site.seat.take()?;
    let addresses: Vec<MacAddr> = host.adapters().iter().map(Adapter::address).collect();
    ready(&addresses);
    let begun = Host::now();
    let since = begun + Duration::from_ns(scenario.warm_up_ns());
    let until = begun + Duration::from_ns(scenario.duration_ns());
    let start = begun + Duration::from_ns(station.config.start_ns);
    while Host::now() < start && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let settle = begun + Duration::from_ns(run::settle_ns(scenario));
    feed.start(Host::now(), since, settle);
    watched.since = since;
    while Host::now() < until && !stop.load(Ordering::Relaxed) {
        let look = (Host::now() + LOOK).min(until);
        host.run(&mut watched, &mut feed, Some(look), stop)?;
        progress(Host::now().since(begun).as_ns());
    }
    let interrupted = Host::now() < until;
    let ran_ns = Host::now().since(begun).as_ns();
    host.finish(&mut watched, &mut feed)?;
    let sources = feed.sources.borrow();
    let (program, strip) = watched.tape.into_parts();
    let (tape, left_out) = strip.into_parts();
    let done = Deployed {
        node: node.to_owned(),
        uncertified: (0..adapters.len())
            .any(|i| certificate(i).is_none())
            .then_some(UNCERTIFIED),
        addresses: addresses.iter().map(MacAddr::to_string).collect(),
        ran_ns,
        interrupted,
        requests: Requests::new(host.counters(), watched.refusals),
        submitted: sources.all.iter().map(|s| (s.flow, s.count.into())).collect(),
        delivered: feed.delivered,
        measured: Window {
            window_ns: ran_ns.saturating_sub(scenario.warm_up_ns()),
            submitted: sources.all.iter().map(|s| s.measured).sum(),
            delivered: feed.measured,
            delivered_octets: feed.octets,
            tries: watched.tries,
            latency_us: Sorted::new(feed.latencies_us.clone()).summary(),
        },
        slots: match &program {
            Program::Tdma(p) => Some(Slots::from(p.counters())),
            _ => None,
        },
        cell: match &program {
            Program::Tbmac(p) => Some(Celled::from(&**p)),
            _ => None,
        },
        confirm_us: Sorted::new(watched.latencies_us).summary(),
        all_planes: watched.all_planes,
        attributes_refused: watched.attributes_refused,
    };
    Ok(Run {
        host,
        done,
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
            deploy(&scenario, node, 1, &Site::default(), |_| (), &|_| (), &never)
                .unwrap_err()
                .to_string()
        };
        assert!(run("b").contains("there is a.0, a.1"), "{}", run("b"));
        assert!(run("a.1").contains("name as many radios"), "{}", run("a.1"));
    }
}
