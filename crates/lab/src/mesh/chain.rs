//! A chain of nodes with flows from its first to its last node, as the testbeds of the ATP thesis had them: fixed
//! rate, static routes.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use frame::{MacAddr, Phy, Rate, RateSet};
use protocols::mac::data::{Identity, Role};
use protocols::mesh::{Forwarder, ForwarderConfig};
use protocols::transport::State;
use protocols::transport::hop::HopConfig;
use radio::{Instant, TxHow};
use sim::host::{HostModel, Profile};
use sim::rng::mix3;
use sim::{AdapterConfig, LinkLoss, MediumConfig, NodeConfig, Position, Process, World};

use super::station::{Flow, Kind, Station, Trace};

/// Channel 36.
const MHZ: u16 = 5_180;
const SECOND_NS: u64 = 1_000_000_000;
/// Flows start after the greetings.
const START_NS: u64 = SECOND_NS;
/// From one flow to the next.
const STAGGER_NS: u64 = 1_000_000;
/// Paths of so many hops have the larger idle multiplier (thesis, chapter 2).
const LONG_HOPS: u32 = 5;

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

/// How one flow ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Ended {
    /// Octets delivered.
    pub octets: u64,
    /// From its call to its last octet, or to the end of the run if it is not done, in seconds.
    pub seconds: f64,
    /// Whether all was delivered.
    pub done: bool,
    /// What the receiver saw.
    pub received: Trace,
    /// What the sender saw.
    pub sent: Trace,
}

impl Ended {
    /// Octets of the application per time, in kb/s.
    pub fn goodput_kbps(&self) -> f64 {
        self.octets as f64 * 8.0 / 1e3 / self.seconds
    }
}

fn address(node: u32) -> MacAddr {
    MacAddr::local(node + 1)
}

fn identity(node: u32) -> Identity {
    let bssid = MacAddr::local(200);
    Identity {
        me: address(node),
        role: Role::Direct { bssid },
    }
}

impl Chain {
    fn forwarder(&self, node: u32) -> Forwarder {
        let hop = HopConfig::default();
        let config = ForwarderConfig {
            identity: identity(node),
            how: TxHow::multi_shot(self.rate, self.tries),
            group: TxHow::one_shot(Rate::OFDM_6),
            hop: HopConfig {
                idle_multiplier: if self.hops >= LONG_HOPS {
                    5.0
                } else {
                    hop.idle_multiplier
                },
                ..hop
            },
        };
        let mut forwarder = Forwarder::new(&config);
        for to in 0..=self.hops {
            if to != node {
                let next = if to > node { node + 1 } else { node - 1 };
                forwarder.set_route(address(to), address(next));
            }
        }
        forwarder
    }

    fn adapter(&self, node: u32) -> AdapterConfig {
        AdapterConfig {
            tx_dbm: self.tx_dbm,
            basic: RateSet::OFDM_6_ONLY,
            ..AdapterConfig::station(address(node), Phy::A, MHZ, false)
        }
    }

    /// Runs it and tells how each flow ended. When `stop` is set, it ends early.
    pub fn run(&self, seed: u64, stop: &AtomicBool) -> (Vec<Ended>, u64) {
        let mut world = World::new(&MediumConfig::default(), seed);
        let profile = Profile::built_in("ideal").expect("a built-in profile");
        // an ideal host stamps its planes
        let host = Rc::new(HostModel::new(&profile).expect("built-in profiles can be solved"));
        for node in 0..=self.hops {
            let mut station = Station::new(self.forwarder(node));
            self.populate(node, seed, &mut station);
            let place = Position {
                x: f64::from(node) * self.spacing_m,
                ..Position::default()
            };
            let config = NodeConfig {
                host: Some(Rc::clone(&host)),
                ..NodeConfig::ideal(place, self.adapter(node))
            };
            world.add_node(config, station);
        }
        if self.loss > 0.0 {
            for node in 0..self.hops {
                for (from, to) in [(node, node + 1), (node + 1, node)] {
                    let data = Some(Process::Fixed(self.loss));
                    let loss = LinkLoss {
                        data,
                        ..LinkLoss::default()
                    };
                    world.set_link_loss(from, to, loss);
                }
            }
        }
        let mut seconds = START_NS / SECOND_NS;
        let is_over = |w: &World<Station>| {
            let first = w.protocol(0).flows();
            let all = w.protocol(self.hops).flows().iter().zip(first);
            all.clone().count() > 0
                && all
                    .into_iter()
                    .all(|(to, from)| to.read() == self.octets || matches!(from.state(), State::Failed(_)))
        };
        while seconds < self.most_seconds && !stop.load(Ordering::Relaxed) && !is_over(&world) {
            seconds += 1;
            world.run_until(seconds * SECOND_NS);
        }
        let senders = world.protocol(0).flows().iter();
        let both = world.protocol(self.hops).flows().iter().zip(senders);
        let ended = both
            .enumerate()
            .map(|(flow, (receiver, sender))| self.ended(flow as u64, receiver, sender, seconds * SECOND_NS));
        (ended.collect(), world.frames_on_air())
    }

    /// Greetings along the whole chain, and the ends of the flows.
    fn populate(&self, node: u32, seed: u64, station: &mut Station) {
        let last = self.hops;
        let (begins, ends) = (node == 0, node == last);
        for n in 0..4 {
            // as ARP, a ping or a routing protocol would: every node has sent something before a flow begins
            let at = Instant::from_us(100_000 + n * 100_000 + 20_000 * u64::from(ends));
            if begins {
                station.greet(at, address(last));
            } else if ends {
                station.greet(at, address(0));
            }
        }
        for flow in 0..self.flows {
            let port = flow as u16;
            let number = mix3(seed, u64::from(flow), u64::from(ends)) as u32;
            if begins {
                let start = Instant::from_ns(START_NS + u64::from(flow) * STAGGER_NS);
                station.add(Flow::sender(
                    self.kind,
                    address(last),
                    port,
                    self.octets,
                    start,
                    number,
                ));
            } else if ends {
                station.add(Flow::receiver(self.kind, address(0), port, number));
            }
        }
    }

    fn ended(&self, flow: u64, receiver: &Flow, sender: &Flow, now_ns: u64) -> Ended {
        let start_ns = START_NS + flow * STAGGER_NS;
        let done = receiver.read() == self.octets;
        let last_ns = receiver.trace().delivered.last().map_or(now_ns, |d| d.0);
        let end_ns = if done { last_ns } else { now_ns };
        Ended {
            octets: receiver.read(),
            seconds: end_ns.saturating_sub(start_ns).max(1) as f64 / 1e9,
            done,
            received: receiver.trace().clone(),
            sent: sender.trace().clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
