//! Meshes of the thesis that are no chains: the stack of three flows (section 5.4), and flows between random nodes over
//! OLSR (section 5.5).

use std::sync::atomic::AtomicBool;

use frame::Rate;
use protocols::transport::hop::HopConfig;
use sim::Position;
use sim::rng::mix3;

use super::Bed;
use super::plan::Plan;
use super::teeth::Teeth;
use crate::mesh::metrics::utility;
use crate::mesh::{Demand, Ended, Kind, Net, Routing};

const SECOND_NS: u64 = 1_000_000_000;
/// From one flow of the stack to the next (thesis, section 5.4).
pub(super) const STACK_STAGGER_NS: u64 = 3 * SECOND_NS;
/// The stack ends after so many seconds. Assumed.
const STACK_SECONDS: u64 = 60;
/// From one line of the stack to the next, in m: neighbouring lines sense each other, the outer ones do not. Assumed.
const STACK_LINES_M: f64 = 40.0;
/// Nodes on the two floors. Assumed: the highest number that the thesis names is 28.
const NODES: u32 = 30;
/// Hops of the longest path (thesis, section 5.5).
const MOST_HOPS: u32 = 4;
/// Transmit power of random flows in dBm (thesis, section 5.5).
const FIELD_DBM: f64 = 2.0;
/// How far it reaches, in m: preambles are detected from -82 dBm on, and log-distance with exponent 3 loses 46.7 dB in
/// the first metre.
const REACH_M: f64 = 17.5;
/// Flows start when OLSR has found all.
const FIELD_START_NS: u64 = 40 * SECOND_NS;
/// Within so much of that: nobody starts programs on many computers in the same instant. Assumed.
const FIELD_SPREAD_NS: u64 = SECOND_NS;
/// Files that are not there after so many seconds have failed. Assumed.
const FILE_SECONDS: u64 = 240;
/// More octets than any stream can send.
const ENDLESS: u64 = 1 << 40;
/// A window of the stack in which a flow counts as starved: 200 ms with less than 10 kb/s.
pub(super) const WINDOW_NS: u64 = SECOND_NS / 5;
const WINDOW_KBPS: f64 = 10.0;
/// A flow is starved below this (thesis, section 5.5.1).
pub(super) const STARVED_KBPS: f64 = 1.0;

/// What is run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum What {
    /// Three lines of two hops side by side; the third flow is in the middle.
    Stack,
    /// So many files at once.
    Files(u32),
    /// So many streams at once.
    Streams(u32),
    /// OLSR alone.
    Idle,
}

/// One point of a figure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Scene {
    /// What is run.
    pub what: What,
    /// How often the adapters send a frame at most.
    pub tries: u8,
    /// What the flows run over.
    pub kind: Kind,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Goodput of each flow, kb/s; in the stack while all of them are there.
    pub kbps: Vec<f64>,
    /// In the stack: share of windows in which each flow is starved.
    pub starved_windows: Vec<f64>,
    /// In the stack: the goodput of each flow in windows of 200 ms that follow each other from the first call on,
    /// kb/s.
    pub course: Vec<Vec<f64>>,
    /// Routes that OLSR has withdrawn.
    pub withdrawn: u64,
    /// In the stack: what the rates of the flows did while all of them were there; of ATP only.
    pub teeth: Vec<Teeth>,
}

impl Outcome {
    /// Sum over the flows, kb/s.
    pub fn total_kbps(&self) -> f64 {
        self.kbps.iter().sum()
    }

    /// Sum of the logarithms.
    pub fn utility(&self) -> f64 {
        utility(&self.kbps)
    }

    /// Share of flows that are starved.
    pub fn starved(&self) -> f64 {
        let starved = self.kbps.iter().filter(|g| **g < STARVED_KBPS).count();
        starved as f64 / self.kbps.len().max(1) as f64
    }
}

impl Scene {
    /// The mesh that it is.
    pub(super) fn net(&self, plan: &Plan, seed: u64) -> Net {
        let net = match self.what {
            What::Stack => stack(self.kind),
            What::Files(flows) => field(self.kind, flows, plan.random_octets(), FILE_SECONDS, seed),
            What::Streams(flows) => field(self.kind, flows, ENDLESS, plan.stream_seconds(), seed),
            What::Idle => field(self.kind, 0, 0, FIELD_START_NS / SECOND_NS, seed),
        };
        Net {
            tries: self.tries,
            gone_after: self.kind.gone_after(self.tries),
            ..net
        }
    }

    /// Runs it, and tells the frames on the air as well.
    pub(super) fn run(&self, plan: &Plan, seed: u64, stop: &AtomicBool) -> (Outcome, u64) {
        let net = self.net(plan, seed);
        let ran = net.run(seed, stop);
        let all_ns = net.demands.iter().map(|d| d.start_ns).max().unwrap_or(0);
        let end_ns = net.most_seconds * SECOND_NS;
        let outcome = match self.what {
            What::Stack => Outcome {
                kbps: ran.flows.iter().map(|f| goodput(f, all_ns, end_ns)).collect(),
                starved_windows: ran.flows.iter().map(|f| starved(f, all_ns, end_ns)).collect(),
                course: ran.flows.iter().map(|f| windows(f, SECOND_NS, end_ns)).collect(),
                withdrawn: ran.withdrawn,
                teeth: ran
                    .flows
                    .iter()
                    .filter_map(|f| Teeth::of(&f.sent, all_ns, end_ns))
                    .collect(),
            },
            _ => Outcome {
                kbps: ran.flows.iter().map(Ended::goodput_kbps).collect(),
                starved_windows: Vec::new(),
                course: Vec::new(),
                withdrawn: ran.withdrawn,
                teeth: Vec::new(),
            },
        };
        (outcome, ran.frames)
    }
}

/// Octets that came from `from` to `to`.
fn octets(flow: &Ended, from: u64, to: u64) -> u64 {
    let there = flow
        .received
        .delivered
        .iter()
        .filter(|d| (from..to).contains(&d.0));
    there.map(|d| u64::from(d.1)).sum()
}

fn goodput(flow: &Ended, from: u64, to: u64) -> f64 {
    octets(flow, from, to) as f64 * 8e6 / (to - from) as f64
}

/// Goodput in whole windows that follow each other, kb/s.
fn windows(flow: &Ended, from: u64, to: u64) -> Vec<f64> {
    let mut windows = vec![0_u64; ((to - from) / WINDOW_NS) as usize];
    for (at, n) in &flow.received.delivered {
        let window = at.checked_sub(from).map(|t| (t / WINDOW_NS) as usize);
        if let Some(w) = window.and_then(|w| windows.get_mut(w)) {
            *w += u64::from(*n);
        }
    }
    let kbps = |n: u64| n as f64 * 8e6 / WINDOW_NS as f64;
    windows.into_iter().map(kbps).collect()
}

fn starved(flow: &Ended, from: u64, to: u64) -> f64 {
    let windows = windows(flow, from, to);
    let poor = windows.iter().filter(|kbps| **kbps < WINDOW_KBPS);
    poor.count() as f64 / windows.len() as f64
}

/// Three lines at the power and with the hops of testbed B, which is on the same floor. The thesis draws its stack
/// without measures.
pub(super) fn stack(kind: Kind) -> Net {
    let line = |flow: u32| match flow {
        0 => 0,
        1 => 2,
        _ => 1,
    };
    let bed = Bed::B.radio();
    let place = |node: u32| Position {
        x: f64::from(node % 3) * bed.spacing_m,
        y: f64::from(node / 3) * STACK_LINES_M,
        ..Position::default()
    };
    let next = |node: u32, to: u32| {
        let same_line = node / 3 == to / 3;
        match node.cmp(&to) {
            std::cmp::Ordering::Less if same_line => Some(node + 1),
            std::cmp::Ordering::Greater if same_line => Some(node - 1),
            _ => None,
        }
    };
    Net {
        places: (0..9).map(place).collect(),
        routing: Routing::Static((0..9).map(|n| (0..9).map(|to| next(n, to)).collect()).collect()),
        losses: Vec::new(),
        outages: Vec::new(),
        gone_after: None,
        greetings: Vec::new(),
        demands: (0..3)
            .map(|flow| Demand {
                from: 3 * line(flow),
                to: 3 * line(flow) + 2,
                octets: ENDLESS,
                start_ns: SECOND_NS + u64::from(flow) * STACK_STAGGER_NS,
            })
            .collect(),
        kind,
        rate: bed.rate,
        tries: bed.tries,
        tx_dbm: bed.tx_dbm,
        idle_multiplier: HopConfig::default().idle_multiplier,
        most_seconds: STACK_SECONDS,
    }
}

/// Nodes at random in a building twice as long as wide, as large as it can be with paths of at most four hops.
fn building() -> Vec<Position> {
    let draw = |node: u32, axis: u64| mix3(28, u64::from(node), axis) as f64 / u64::MAX as f64;
    let places = |metres: f64| -> Vec<Position> {
        let place = |n| Position {
            x: draw(n, 0) * metres,
            y: draw(n, 1) * metres / 2.0,
            ..Position::default()
        };
        (0..NODES).map(place).collect()
    };
    let fits = |p: &[Position]| longest_path(p).is_some_and(|hops| hops <= MOST_HOPS);
    let sizes = (20..100).rev().map(f64::from).map(places);
    let mut fitting = sizes.filter(|p| fits(p));
    fitting.next().unwrap_or_else(|| places(20.0))
}

/// The longest of the shortest paths in hops; `None` if there is none between some nodes.
pub(super) fn longest_path(places: &[Position]) -> Option<u32> {
    let near = |a: &Position, b: &Position| (a.x - b.x).hypot(a.y - b.y) < REACH_M;
    let far = |from: usize| {
        let mut hops = vec![None; places.len()];
        hops[from] = Some(0);
        let mut front = vec![from];
        while let Some(n) = front.first().copied() {
            front.remove(0);
            for m in 0..places.len() {
                if hops[m].is_none() && near(&places[n], &places[m]) {
                    hops[m] = hops[n].map(|h: u32| h + 1);
                    front.push(m);
                }
            }
        }
        hops.into_iter().try_fold(0, |most, h| Some(h?.max(most)))
    };
    (0..places.len()).try_fold(0, |most, n| Some(far(n)?.max(most)))
}

/// Flows between random nodes of the building, all within a second, over OLSR.
fn field(kind: Kind, flows: u32, octets: u64, seconds: u64, seed: u64) -> Net {
    let node = |flow: u32, end: u64| mix3(seed, u64::from(flow), 0x9a17 + end) % u64::from(NODES);
    let demand = |flow: u32| {
        let from = node(flow, 0) as u32;
        // another one
        let step = 1 + node(flow, 1) as u32 % (NODES - 1);
        Demand {
            from,
            to: (from + step) % NODES,
            octets,
            start_ns: FIELD_START_NS + mix3(seed, u64::from(flow), 0x57a7) % FIELD_SPREAD_NS,
        }
    };
    Net {
        places: building(),
        routing: Routing::Olsr,
        losses: Vec::new(),
        outages: Vec::new(),
        gone_after: None,
        greetings: Vec::new(),
        demands: (0..flows).map(demand).collect(),
        kind,
        rate: Rate::OFDM_6,
        tries: 1,
        tx_dbm: FIELD_DBM,
        idle_multiplier: HopConfig::default().idle_multiplier,
        most_seconds: FIELD_START_NS / SECOND_NS + seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_building_has_paths_of_four_hops() {
        let places = building();
        assert_eq!(longest_path(&places), Some(MOST_HOPS));
        assert_eq!(longest_path(&[places[0], Position { x: 1e3, ..places[0] }]), None);
    }

    #[test]
    fn windows_and_shares() {
        let delivered = vec![(5, 1_000), (WINDOW_NS + 5, 100), (3 * WINDOW_NS, 2_000)];
        let flow = Ended {
            resent: 0,
            octets: 3_100,
            seconds: 1.0,
            done: false,
            received: crate::mesh::Trace {
                delivered,
                ..Default::default()
            },
            sent: Default::default(),
            state: protocols::transport::State::Open,
        };
        // 100 octets in 200 ms are 4 kb/s
        assert_eq!(windows(&flow, 0, 4 * WINDOW_NS), [40.0, 4.0, 0.0, 80.0]);
        assert_eq!(starved(&flow, 0, 4 * WINDOW_NS), 0.5);
        assert!((goodput(&flow, WINDOW_NS, 2 * WINDOW_NS) - 4.0).abs() < 1e-9);
        let outcome = Outcome {
            kbps: vec![0.5, 1.0, 100.0, 0.0],
            starved_windows: Vec::new(),
            course: Vec::new(),
            withdrawn: 0,
            teeth: Vec::new(),
        };
        assert!(outcome.starved() == 0.5 && outcome.total_kbps() == 101.5);
    }

    /// Hops of our variant give notices where adapters try again, and where many contend that helps.
    #[test]
    fn notices_help_flows_that_contend() {
        let plan = Plan { seed: 1, quick: true };
        let scene = |kind, tries| Scene {
            what: What::Files(24),
            tries,
            kind,
        };
        let told = |kind, tries| scene(kind, tries).net(&plan, 1).gone_after;
        assert_eq!(
            [
                told(Kind::Sdmac, 7),
                told(Kind::Sdmac, 1),
                told(Kind::Adaptive, 7)
            ],
            [Some(3), None, None]
        );
        let sums = [Some(3), None].map(|gone_after| {
            let total = |seed| {
                let net = Net {
                    gone_after,
                    ..scene(Kind::Sdmac, 7).net(&plan, seed)
                };
                let ran = net.run(seed, &AtomicBool::new(false));
                ran.flows.iter().map(Ended::goodput_kbps).sum::<f64>()
            };
            (1..=6).map(total).sum::<f64>()
        });
        assert!(sums[0] > 1.1 * sums[1], "{sums:?}");
    }

    /// The middle flow of the stack is the one that hears both others.
    #[test]
    fn the_middle_of_the_stack_gets_least() {
        let scene = Scene {
            what: What::Stack,
            tries: 1,
            kind: Kind::Default,
        };
        let (outcome, frames) = scene.run(&Plan { seed: 1, quick: true }, 1, &AtomicBool::new(false));
        assert!(frames > 1_000);
        let [one, two, middle] = outcome.kbps[..] else {
            panic!("{outcome:?}")
        };
        assert!(middle < one && middle < two, "{outcome:?}");
    }
}
