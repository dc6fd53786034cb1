//! A node of a scenario on radios of this computer: the protocol that ran in the simulator, with the same addresses,
//! channel and traffic, over the kernel's 802.11 stack.
//!
//! What of the scenario is a model (medium, hosts, clocks, faults, channel access of adapters) stays there: this is the real
//! thing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use frame::MacAddr;
use linux::wifi::certify::Certificate;
use linux::wifi::confirm::Path;
use linux::wifi::{
    Adapter, AdapterConfig, Application, Error, Host, HostConfig, HostCounters, Seat, Submission, TsfSource,
    Wait,
};
use radio::{Duration, Event, Instant, MAX_FRAME_OCTETS, Msdu, Plane, Protocol, Radio};
use serde::Serialize;
use sim::rng::{Cause, Stream};
use sim::traffic::{HEADER_OCTETS, parse_header};
use sim::{Pattern, Traffic};

use crate::scenario::Scenario;
use crate::stats::{Sorted, Summary};

/// How often progress is told.
const LOOK: Duration = Duration::from_ms(100);
/// Confirms of which the latency is kept.
const MOST_LATENCIES: usize = 1 << 20;

/// Where a node is to run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Site {
    /// A radio for each adapter of the node, in their order.
    pub radios: Vec<String>,
    /// What they were seen to do.
    pub certificate: Option<Certificate>,
    /// Stamp the planes t2 to t8.
    pub probes: bool,
    /// By which way outcomes come up.
    pub confirm: Path,
    /// Of the calling thread.
    pub seat: Seat,
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
    /// Traffic that follows the confirms.
    #[error(
        "node `{0}` has saturated traffic, which only the simulator makes: use pattern.periodic or pattern.poisson"
    )]
    Saturated(String),
    /// The radios.
    #[error(transparent)]
    Wifi(#[from] Error),
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deployed {
    /// Name of the node.
    pub node: String,
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
    /// MSDUs that the protocol handed up, by the flow that they name; those that name none under `none`.
    pub delivered: BTreeMap<String, u64>,
    /// From the request to its confirm (t9 - t1), us.
    pub confirm_us: Option<Summary>,
    /// Confirms with all nine planes.
    pub all_planes: u64,
    /// Attributes that the protocol asked for and this host cannot set.
    pub attributes_refused: u64,
}

/// Requests of a node by their ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(
    missing_docs,
    reason = "each is named like the outcome or the counter that it is"
)]
pub struct Requests {
    pub sent: u64,
    pub acked: u64,
    pub not_acked: u64,
    pub refused: u64,
    pub aborted: u64,
    pub expired: u64,
    pub unknown: u64,
    pub more_tries_than_asked: u64,
    pub received: u64,
}

impl From<&HostCounters> for Requests {
    fn from(c: &HostCounters) -> Requests {
        Requests {
            sent: c.sent,
            acked: c.acked,
            not_acked: c.not_acked,
            refused: c.refused,
            aborted: c.aborted,
            expired: c.expired,
            unknown: c.unknown,
            more_tries_than_asked: c.more_tries_than_asked,
            received: c.indications,
        }
    }
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
) -> Result<Deployed, DeployError> {
    let station = scenario.station(node, seed).ok_or_else(|| DeployError::NoNode {
        name: node.to_owned(),
        have: (0..scenario.nodes().min(12))
            .map(|n| scenario.node_name(n))
            .collect(),
    })?;
    let adapters = &station.config.adapters;
    if adapters.len() != site.radios.len() {
        return Err(DeployError::Radios {
            name: node.to_owned(),
            adapters: adapters.len(),
        });
    }
    let mut feed = Feed::new(station.flows, seed).ok_or_else(|| DeployError::Saturated(node.to_owned()))?;
    let open = |(a, radio): (&sim::AdapterConfig, &String)| {
        Adapter::open(AdapterConfig {
            address: Some(a.address),
            tsf: if station.keeps_time {
                TsfSource::Computer
            } else {
                TsfSource::Adapter
            },
            certificate: site.certificate.clone(),
            ..AdapterConfig::new(radio, a.mhz)
        })
    };
    let opened: Result<Vec<Adapter>, Error> = adapters.iter().zip(&site.radios).map(open).collect();
    let config = HostConfig {
        probes: site.probes,
        confirm: site.confirm,
        wait: match station.config.wait {
            sim::host::Wait::Spin => Wait::Spin,
            sim::host::Wait::Sleep => Wait::Sleep,
            sim::host::Wait::Timerfd => Wait::Timerfd,
        },
        ..HostConfig::default()
    };
    let mut host = Host::new(opened?, config)?;
    site.seat.take()?;
    let addresses: Vec<MacAddr> = host.adapters().iter().map(Adapter::address).collect();
    ready(&addresses);
    let begun = Host::now();
    let until = begun + Duration::from_ns(scenario.duration_ns());
    let start = begun + Duration::from_ns(station.config.start_ns);
    while Host::now() < start && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    feed.start(Host::now());
    let mut watched = Watched::new(station.program);
    while Host::now() < until && !stop.load(Ordering::Relaxed) {
        let look = (Host::now() + LOOK).min(until);
        host.run(&mut watched, &mut feed, Some(look), stop)?;
        progress(Host::now().since(begun).as_ns());
    }
    let interrupted = Host::now() < until;
    let ran_ns = Host::now().since(begun).as_ns();
    host.finish(&mut watched, &mut feed)?;
    Ok(Deployed {
        node: node.to_owned(),
        addresses: addresses.iter().map(MacAddr::to_string).collect(),
        ran_ns,
        interrupted,
        requests: Requests::from(host.counters()),
        submitted: feed.sources.iter().map(|s| (s.flow, s.count.into())).collect(),
        delivered: feed.delivered,
        confirm_us: Sorted::new(watched.latencies_us).summary(),
        all_planes: watched.all_planes,
        attributes_refused: watched.attributes_refused,
    })
}

/// The traffic of a node, as the simulator makes it.
#[derive(Debug)]
struct Feed {
    sources: Vec<Source>,
    delivered: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Source {
    flow: u32,
    traffic: Traffic,
    stream: Stream,
    count: u32,
    next: Instant,
}

impl Feed {
    /// `None` if one of the flows is saturated.
    fn new(flows: Vec<(u32, Traffic)>, seed: u64) -> Option<Feed> {
        if flows
            .iter()
            .any(|(_, t)| matches!(t.pattern, Pattern::Saturated { .. }))
        {
            return None;
        }
        let source = |(flow, traffic): (u32, Traffic)| Source {
            flow,
            traffic,
            stream: Stream::new(seed, flow.into(), Cause::Traffic),
            count: 0,
            next: Instant::MAX,
        };
        Some(Feed {
            sources: flows.into_iter().map(source).collect(),
            delivered: BTreeMap::new(),
        })
    }

    fn start(&mut self, now: Instant) {
        for s in &mut self.sources {
            let first = match s.traffic.pattern {
                Pattern::Periodic { phase_ns, .. } | Pattern::Saturated { phase_ns, .. } => phase_ns,
                Pattern::Poisson { mean_ns } => s.stream.exponential(mean_ns as f64) as u64,
            };
            s.next = now + Duration::from_ns(first);
        }
    }
}

impl Application for Feed {
    fn due(&self) -> Option<Instant> {
        self.sources
            .iter()
            .map(|s| s.next)
            .min()
            .filter(|next| *next < Instant::MAX)
    }

    fn take(&mut self, now: Instant, payload: &mut [u8; MAX_FRAME_OCTETS]) -> Option<Submission> {
        let s = self
            .sources
            .iter_mut()
            .min_by_key(|s| s.next)
            .filter(|s| s.next <= now)?;
        let octets = s.traffic.octets.min(MAX_FRAME_OCTETS);
        payload[..octets.max(HEADER_OCTETS)].fill(0);
        payload[..4].copy_from_slice(&s.flow.to_le_bytes());
        payload[4..8].copy_from_slice(&s.count.to_le_bytes());
        payload[8..HEADER_OCTETS].copy_from_slice(&now.as_ns().to_le_bytes());
        s.count += 1;
        let pause = match s.traffic.pattern {
            Pattern::Poisson { mean_ns } => s.stream.exponential(mean_ns as f64) as u64,
            Pattern::Periodic { period_ns, .. } => period_ns,
            Pattern::Saturated { .. } => u64::MAX,
        };
        // Late or not, the next one is due by the plan.
        s.next += Duration::from_ns(pause.max(1));
        if s.traffic.count.is_some_and(|all| s.count >= all) {
            s.next = Instant::MAX;
        }
        Some(Submission {
            peer: s.traffic.to,
            category: s.traffic.category,
            deadline: s.traffic.lifetime_ns.map(|ns| now + Duration::from_ns(ns)),
            octets,
        })
    }

    fn deliver(&mut self, _: Instant, msdu: Msdu<'_>) {
        let flow =
            parse_header(msdu.payload).map_or_else(|| "none".to_owned(), |(flow, ..)| flow.to_string());
        *self.delivered.entry(flow).or_default() += 1;
    }
}

/// A protocol, and what its events tell of the host.
struct Watched<P> {
    protocol: P,
    latencies_us: Vec<f64>,
    all_planes: u64,
    attributes_refused: u64,
}

impl<P> Watched<P> {
    fn new(protocol: P) -> Watched<P> {
        Watched {
            protocol,
            latencies_us: Vec::with_capacity(MOST_LATENCIES),
            all_planes: 0,
            attributes_refused: 0,
        }
    }
}

impl<P: Protocol> Protocol for Watched<P> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match &event {
            Event::Confirm(c) => {
                self.all_planes += u64::from(c.stamps.count() == 9);
                let [t1, t9] = [Plane::T1, Plane::T9].map(|p| c.stamps.get_host(p));
                if let (Some(t1), Some(t9)) = (t1, t9)
                    && self.latencies_us.len() < MOST_LATENCIES
                {
                    self.latencies_us.push(t9.since(t1).as_ns() as f64 / 1e3);
                }
            }
            Event::Set(answer) => self.attributes_refused += u64::from(answer.result.is_err()),
            _ => {}
        }
        self.protocol.handle(now, event, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        self.protocol.deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::AccessCategory;

    fn traffic(pattern: Pattern, count: Option<u32>) -> Traffic {
        Traffic {
            to: MacAddr::local(2),
            category: AccessCategory::Voice,
            octets: 50,
            pattern,
            lifetime_ns: Some(4_000_000),
            count,
        }
    }

    #[test]
    fn traffic_is_that_of_the_scenario_late_or_not() {
        let periodic = Pattern::Periodic {
            period_ns: 1_000_000,
            phase_ns: 500_000,
        };
        let mut feed = Feed::new(vec![(7, traffic(periodic, Some(3)))], 1).unwrap();
        feed.start(Instant::from_us(10_000));
        assert_eq!(feed.due(), Some(Instant::from_us(10_500)));
        let mut payload = [9; MAX_FRAME_OCTETS];
        assert!(feed.take(Instant::from_us(10_499), &mut payload).is_none());
        // Twice at once after a late look, and the third in its time.
        for (number, at) in [(0, 12_000), (1, 12_000), (2, 12_500)] {
            let now = Instant::from_us(at);
            let s = feed.take(now, &mut payload).unwrap();
            assert_eq!((s.octets, s.deadline), (50, Some(now + Duration::from_ms(4))));
            assert_eq!(parse_header(&payload[..s.octets]), Some((7, number, now.as_ns())));
        }
        assert_eq!(feed.due(), None, "three were asked for");
        feed.deliver(Instant::ZERO, Msdu::new(MacAddr::local(1), &payload[..50]));
        feed.deliver(Instant::ZERO, Msdu::new(MacAddr::local(1), &[1]));
        assert_eq!(
            feed.delivered,
            BTreeMap::from([("7".into(), 1), ("none".into(), 1)])
        );
    }

    #[test]
    fn saturated_traffic_is_for_the_simulator() {
        let saturated = Pattern::Saturated {
            backlog: 1,
            phase_ns: 0,
        };
        assert!(Feed::new(vec![(0, traffic(saturated, None))], 1).is_none());
    }

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
