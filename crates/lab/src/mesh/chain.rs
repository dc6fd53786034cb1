//! A chain of nodes with flows from its first to its last node, as the testbeds of the ATP thesis had them: fixed
//! rate, static routes.

use std::sync::atomic::AtomicBool;

use frame::Rate;
use protocols::transport::hop::HopConfig;
use radio::Instant;
use sim::Position;

use super::flow::Kind;
use super::net::{Demand, Ended, Net, Routing};

/// From one flow to the next.
const STAGGER_NS: u64 = 1_000_000;
/// Paths of so many hops have the larger idle multiplier (thesis, chapter 2).
const LONG_HOPS: u32 = 5;

/// What the delays of idle nodes count, on a path of so many hops.
pub fn idle_multiplier(hops: u32) -> f64 {
    if hops >= LONG_HOPS {
        5.0
    } else {
        HopConfig::default().idle_multiplier
    }
}

/// What is run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chain {
    /// Hops, 1 to 6.
    pub hops: u32,
    /// Flows at once.
    pub flows: u32,
    /// All of them over this.
    pub kind: Kind,
    /// Rate of data.
    pub rate: Rate,
    /// How often the adapter sends a frame at most.
    pub tries: u8,
    /// Transmit power in dBm.
    pub tx_dbm: f64,
    /// From one node to the next, in m.
    pub spacing_m: f64,
    /// Share of frames that each link loses, beside those that the air does.
    pub loss: f64,
    /// Octets of each flow.
    pub octets: u64,
    /// After so many seconds it ends, done or not.
    pub most_seconds: u64,
}

impl Chain {
    /// Flows start after the greetings: the first one at this instant.
    pub const START_NS: u64 = 1_000_000_000;

    /// The mesh that it is. Greetings go along the whole chain and back, as those of ARP, a ping or a routing protocol
    /// would: every node has sent something before a flow begins.
    pub fn net(&self) -> Net {
        let nodes = 0..=self.hops;
        let next = |node: u32, to: u32| match node.cmp(&to) {
            std::cmp::Ordering::Less => Some(node + 1),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(node - 1),
        };
        let links = (0..self.hops).flat_map(|n| [(n, n + 1, self.loss), (n + 1, n, self.loss)]);
        let greeting = |n: u64| {
            let at = 100_000 + n * 100_000;
            [
                (Instant::from_us(at), 0, self.hops),
                (Instant::from_us(at + 20_000), self.hops, 0),
            ]
        };
        let demand = |flow: u32| Demand {
            from: 0,
            to: self.hops,
            octets: self.octets,
            start_ns: Chain::START_NS + u64::from(flow) * STAGGER_NS,
        };
        Net {
            places: nodes
                .clone()
                .map(|n| Position {
                    x: f64::from(n) * self.spacing_m,
                    ..Position::default()
                })
                .collect(),
            routing: Routing::Static(
                nodes
                    .clone()
                    .map(|n| nodes.clone().map(|to| next(n, to)).collect())
                    .collect(),
            ),
            losses: links.filter(|l| l.2 > 0.0).collect(),
            outages: Vec::new(),
            gone_after: self.kind.gone_after(self.tries),
            greetings: (0..4).flat_map(greeting).collect(),
            demands: (0..self.flows).map(demand).collect(),
            kind: self.kind,
            rate: self.rate,
            tries: self.tries,
            tx_dbm: self.tx_dbm,
            idle_multiplier: idle_multiplier(self.hops),
            most_seconds: self.most_seconds,
        }
    }

    /// Runs it and tells how each flow ended, and the frames on the air. When `stop` is set, it ends early.
    pub fn run(&self, seed: u64, stop: &AtomicBool) -> (Vec<Ended>, u64) {
        let ran = self.net().run(seed, stop);
        (ran.flows, ran.frames)
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::metrics::unfairness;

    fn chain(hops: u32, flows: u32, kind: Kind) -> Chain {
        Chain {
            hops,
            flows,
            kind,
            rate: Rate::OFDM_24,
            tries: 1,
            tx_dbm: 10.0,
            spacing_m: 14.0,
            loss: 0.0,
            octets: 200_000,
            most_seconds: 60,
        }
    }

    fn goodputs(c: &Chain, seed: u64) -> Vec<f64> {
        let (ended, _) = c.run(seed, &AtomicBool::new(false));
        assert!(ended.iter().all(|e| e.done), "{c:?}");
        ended.iter().map(Ended::goodput_kbps).collect()
    }

    /// The medium gives 17.2 Mb/s to packets of this length at 24 Mb/s with ACKs at 6 Mb/s. A rate that follows delays
    /// gets a good part of it; Tahoe waits for its timers whenever data and acknowledgement collide.
    #[test]
    fn one_hop() {
        let adaptive = goodputs(&chain(1, 1, Kind::Adaptive), 1)[0];
        assert!((4_000.0..17_200.0).contains(&adaptive), "{adaptive}");
        let tahoe = goodputs(&chain(1, 1, Kind::Tahoe), 1)[0];
        assert!((100.0..adaptive).contains(&tahoe), "{tahoe}");
    }

    #[test]
    fn every_kind_crosses_six_lossy_hops() {
        for kind in [
            Kind::Tahoe,
            Kind::NewReno,
            Kind::Default,
            Kind::Aggressive,
            Kind::Adaptive,
        ] {
            let c = Chain {
                loss: 0.02,
                octets: 60_000,
                most_seconds: 200,
                ..chain(6, 2, kind)
            };
            assert_eq!(goodputs(&c, 5).len(), 2);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let c = Chain {
            loss: 0.05,
            octets: 50_000,
            ..chain(3, 2, Kind::Adaptive)
        };
        assert_eq!(goodputs(&c, 9), goodputs(&c, 9));
        assert_ne!(goodputs(&c, 9), goodputs(&c, 10));
    }

    #[test]
    fn stopped_at_once() {
        let (ended, _) = chain(2, 1, Kind::Default).run(1, &AtomicBool::new(true));
        assert_eq!((ended[0].octets, ended[0].done), (0, false));
    }

    /// Five flows over two hops that try again.
    fn five(kind: Kind) -> Net {
        Chain {
            tries: 7,
            octets: 500_000,
            ..chain(2, 5, kind)
        }
        .net()
    }

    /// Means of unfairness and of the sum of goodputs in six runs.
    fn means(net: &Net) -> (f64, f64) {
        let runs = (1..=6).map(|seed| {
            let ran = net.run(seed, &AtomicBool::new(false));
            let goodputs: Vec<f64> = ran.flows.iter().map(Ended::goodput_kbps).collect();
            (unfairness(&goodputs), goodputs.iter().sum::<f64>())
        });
        runs.fold((0.0, 0.0), |sum, run| (sum.0 + run.0 / 6.0, sum.1 + run.1 / 6.0))
    }

    #[test]
    fn flows_of_a_node_have_one_rate() {
        let ((unaided, sum), (adaptive, sum_before)) =
            (means(&five(Kind::Unaided)), means(&five(Kind::Adaptive)));
        assert!(unaided < 0.5 * adaptive, "{unaided} {adaptive}");
        assert!(sum > sum_before, "{sum} {sum_before}");
    }
}
