//! A mesh with flows from anywhere to anywhere: nodes at places, static routes or OLSR, one radio each at a fixed rate.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use frame::{MacAddr, Phy, Rate, RateSet};
use protocols::mac::data::{Identity, Role};
use protocols::mesh::{Forwarder, ForwarderConfig, OlsrConfig, Router};
use protocols::transport::State;
use protocols::transport::hop::HopConfig;
use radio::{Instant, TxHow};
use sim::clock::Clock;
use sim::fault::HostFaults;
use sim::host::{HostModel, Profile};
use sim::rng::mix3;
use sim::{AdapterConfig, LinkLoss, MediumConfig, NodeConfig, Position, Process, World};

use super::flow::{Flow, Kind, Trace};
use super::station::Station;
use crate::scenario::Scenario;

/// Channel 36.
const MHZ: u16 = 5_180;
const SECOND_NS: u64 = 1_000_000_000;

/// How nodes know the way.
#[derive(Clone, PartialEq, Debug)]
pub enum Routing {
    /// Each pair of a node and a destination has a next hop: by node, then by destination.
    Static(Vec<Vec<Option<u32>>>),
    /// They find it.
    Olsr,
}

/// One flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Node that sends.
    pub from: u32,
    /// Node that receives.
    pub to: u32,
    /// Octets to send.
    pub octets: u64,
    /// When it calls, in ns.
    pub start_ns: u64,
}

/// A link that carries nothing for a while, neither way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// Its ends.
    pub between: (u32, u32),
    /// From this second on,
    pub from_s: u64,
    /// until this one.
    pub until_s: u64,
}

/// A mesh to be run.
#[derive(Clone, PartialEq, Debug)]
pub struct Net {
    /// Where the nodes stand, in m.
    pub places: Vec<Position>,
    /// How they know the way.
    pub routing: Routing,
    /// Links that lose a share of their frames beside those that the air does: from, to, share.
    pub losses: Vec<(u32, u32, f64)>,
    /// Links that go away for a while.
    pub outages: Vec<Outage>,
    /// After so many datagrams in a row that a neighbour has not acknowledged, sources of ATP are told that the path has failed;
    /// `None`: only where there is no route.
    pub gone_after: Option<u8>,
    /// Small datagrams before the flows, so that hops have measured something: instant, from, to.
    pub greetings: Vec<(Instant, u32, u32)>,
    /// The flows.
    pub demands: Vec<Demand>,
    /// All of them over this.
    pub kind: Kind,
    /// Rate of data; groups and responses have 6 Mb/s.
    pub rate: Rate,
    /// How often the adapter sends a frame at most.
    pub tries: u8,
    /// Transmit power in dBm.
    pub tx_dbm: f64,
    /// Delays of idle nodes count so many times (thesis, chapter 2).
    pub idle_multiplier: f64,
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
    /// Packets that it has sent again.
    pub resent: u64,
    /// Where the connection of the sender was in the end.
    pub state: State,
}

impl Ended {
    /// Octets of the application per time, in kb/s.
    pub fn goodput_kbps(&self) -> f64 {
        self.octets as f64 * 8.0 / 1e3 / self.seconds
    }
}

/// What came of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Ran {
    /// Its flows, in the order of the demands.
    pub flows: Vec<Ended>,
    /// Frames on the air.
    pub frames: u64,
    /// Routes that OLSR has withdrawn since the first flow began; without flows in the second half.
    pub withdrawn: u64,
    /// Notices of path failure that nodes have given.
    pub told: u64,
}

/// The address of a node.
pub fn address(node: u32) -> MacAddr {
    MacAddr::local(node + 1)
}

/// A share of the frames of data is lost.
fn losing(share: f64) -> LinkLoss {
    LinkLoss {
        data: (share > 0.0).then_some(Process::Fixed(share)),
        ..LinkLoss::default()
    }
}

/// A host without latencies, which stamps its planes.
fn ideal_host() -> Rc<HostModel> {
    let profile = Profile::built_in("ideal").expect("a built-in profile");
    Rc::new(HostModel::new(&profile).expect("built-in profiles can be solved"))
}

impl Net {
    fn forwarding(&self, node: u32) -> ForwarderConfig {
        let identity = Identity {
            me: address(node),
            role: Role::Direct {
                bssid: MacAddr::local(200),
            },
        };
        ForwarderConfig {
            identity,
            how: TxHow::multi_shot(self.rate, self.tries),
            group: TxHow::one_shot(Rate::OFDM_6),
            hop: HopConfig {
                idle_multiplier: self.idle_multiplier,
                ..HopConfig::default()
            },
            gone_after: self.gone_after,
        }
    }

    fn station(&self, node: u32, seed: u64) -> Station {
        let config = self.forwarding(node);
        let Routing::Static(next) = &self.routing else {
            let olsr = OlsrConfig::standard(address(node), mix3(seed, 0x015c, 0));
            return Station::routing(Router::new(&config, &olsr));
        };
        let mut forwarder = Forwarder::new(&config);
        for (to, via) in next[node as usize].iter().enumerate() {
            if let Some(via) = via {
                forwarder.set_route(address(to as u32), address(*via));
            }
        }
        Station::new(forwarder)
    }

    fn world(&self, seed: u64) -> World<Station> {
        let mut world = World::new(&MediumConfig::default(), seed);
        let host = ideal_host();
        for (node, place) in (0..).zip(&self.places) {
            let mut station = self.station(node, seed);
            self.populate(node, seed, &mut station);
            let adapter = AdapterConfig {
                tx_dbm: self.tx_dbm,
                basic: RateSet::OFDM_6_ONLY,
                ..AdapterConfig::station(address(node), Phy::A, MHZ, false)
            };
            let config = NodeConfig {
                host: Some(Rc::clone(&host)),
                ..NodeConfig::ideal(*place, adapter)
            };
            world.add_node(config, station);
        }
        for &(from, to, share) in &self.losses {
            world.set_link_loss(from, to, losing(share));
        }
        world
    }

    /// Links go away, and come back, at this second.
    fn change_links(&self, world: &mut World<Station>, second: u64) {
        for outage in &self.outages {
            let (a, b) = outage.between;
            for (from, to) in [(a, b), (b, a)] {
                let loss = self.losses.iter().find(|l| (l.0, l.1) == (from, to));
                if second == outage.from_s {
                    world.set_link_loss(from, to, losing(1.0));
                } else if second == outage.until_s {
                    world.set_link_loss(from, to, losing(loss.map_or(0.0, |l| l.2)));
                }
            }
        }
    }

    /// Greetings, and the ends of the flows that are here.
    fn populate(&self, node: u32, seed: u64, station: &mut Station) {
        for &(at, _, to) in self.greetings.iter().filter(|g| g.1 == node) {
            station.greet(at, address(to));
        }
        for (port, d) in self.demands.iter().enumerate() {
            let number = mix3(seed, port as u64, u64::from(node != d.from)) as u32;
            let port = port as u16;
            if node == d.from {
                let start = Instant::from_ns(d.start_ns);
                let flow = Flow::sender(self.kind, address(d.to), port, d.octets, start, number);
                station.add(flow);
            } else if node == d.to {
                station.add(Flow::receiver(self.kind, address(d.from), port, number));
            }
        }
    }

    /// The ends of flow `n`: sender, receiver.
    fn ends<'w>(&self, world: &'w World<Station>, n: usize) -> (&'w Flow, &'w Flow) {
        let d = &self.demands[n];
        let of = |node: u32| {
            let mut flows = world.protocol(node).flows().iter();
            flows
                .find(|f| usize::from(f.port()) == n)
                .expect("both ends were added")
        };
        (of(d.from), of(d.to))
    }

    fn is_over(&self, world: &World<Station>) -> bool {
        let over = |n: usize| {
            let (sender, receiver) = self.ends(world, n);
            receiver.read() == self.demands[n].octets || matches!(sender.state(), State::Failed(_))
        };
        !self.demands.is_empty() && (0..self.demands.len()).all(over)
    }

    /// Its nodes as those of a scenario, with the medium, the adapters and the losses that they have there. Only [`routing`],
    /// [`greetings`], [`demands`], [`kind`], [`rate`], [`tries`] and [`idle_multiplier`] are its own.
    ///
    /// [`routing`]: Net::routing
    /// [`greetings`]: Net::greetings
    /// [`demands`]: Net::demands
    /// [`kind`]: Net::kind
    /// [`rate`]: Net::rate
    /// [`tries`]: Net::tries
    /// [`idle_multiplier`]: Net::idle_multiplier
    ///
    /// # Panics
    /// If somebody is there beside the nodes of the scenario.
    pub fn run_in(&self, scenario: &Scenario, seed: u64, stop: &AtomicBool) -> Ran {
        let host = ideal_host();
        let world = scenario.build_with(seed, |node, mut config, _| {
            assert!(node < scenario.nodes(), "a chain has no strangers");
            config.host = Some(Rc::clone(&host));
            (config.clock, config.faults, config.start_ns) = (Clock::default(), HostFaults::default(), 0);
            config.adapters[0].address = address(node);
            let mut station = self.station(node, seed);
            self.populate(node, seed, &mut station);
            (config, station)
        });
        self.play(world, stop)
    }

    /// Runs it. When `stop` is set, it ends early.
    pub fn run(&self, seed: u64, stop: &AtomicBool) -> Ran {
        self.play(self.world(seed), stop)
    }

    fn play(&self, mut world: World<Station>, stop: &AtomicBool) -> Ran {
        let half_ns = self.most_seconds / 2 * SECOND_NS;
        let first_ns = self.demands.iter().map(|d| d.start_ns).min().unwrap_or(half_ns);
        let mut seconds = first_ns / SECOND_NS;
        world.run_until(seconds * SECOND_NS);
        let withdrawn = |world: &World<Station>| -> u64 {
            let nodes = 0..self.places.len() as u32;
            nodes
                .filter_map(|n| Some(world.protocol(n).olsr()?.counters().withdrawn))
                .sum()
        };
        let before = withdrawn(&world);
        while seconds < self.most_seconds && !stop.load(Ordering::Relaxed) && !self.is_over(&world) {
            self.change_links(&mut world, seconds);
            seconds += 1;
            world.run_until(seconds * SECOND_NS);
        }
        let end_ns = seconds * SECOND_NS;
        let nodes = 0..self.places.len() as u32;
        Ran {
            flows: (0..self.demands.len())
                .map(|n| self.ended(&world, n, end_ns))
                .collect(),
            frames: world.frames_on_air(),
            withdrawn: withdrawn(&world) - before,
            told: nodes.map(|n| world.protocol(n).counters().told).sum(),
        }
    }

    fn ended(&self, world: &World<Station>, n: usize, now_ns: u64) -> Ended {
        let (sender, receiver) = self.ends(world, n);
        let d = &self.demands[n];
        let done = receiver.read() == d.octets;
        let last_ns = receiver.trace().delivered.last().map_or(now_ns, |d| d.0);
        let end_ns = if done { last_ns } else { now_ns };
        Ended {
            octets: receiver.read(),
            seconds: end_ns.saturating_sub(d.start_ns).max(1) as f64 / 1e9,
            done,
            received: receiver.trace().clone(),
            sent: sender.trace().clone(),
            resent: sender.resent(),
            state: sender.state(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::fault::Incident;

    /// Nodes at these places in m, at 2 dBm, and a flow from the first to the last that nobody has told the way.
    fn meshed(places: &[(f64, f64)], kind: Kind, octets: u64) -> Net {
        let at = |&(x, y): &(f64, f64)| Position {
            x,
            y,
            ..Position::default()
        };
        Net {
            places: places.iter().map(at).collect(),
            routing: Routing::Olsr,
            losses: Vec::new(),
            outages: Vec::new(),
            gone_after: None,
            greetings: Vec::new(),
            demands: vec![Demand {
                from: 0,
                to: places.len() as u32 - 1,
                octets,
                start_ns: 30 * SECOND_NS,
            }],
            kind,
            rate: Rate::OFDM_6,
            tries: 7,
            tx_dbm: 2.0,
            idle_multiplier: 3.0,
            most_seconds: 60,
        }
    }

    /// Five nodes in a line, 12 m apart: four hops.
    #[test]
    fn olsr_carries_a_flow() {
        let line: Vec<_> = (0..5).map(|n| (12.0 * f64::from(n), 0.0)).collect();
        let ran = meshed(&line, Kind::Adaptive, 30_000).run(3, &AtomicBool::new(false));
        assert!(ran.flows[0].done, "{:?}", ran.flows[0].octets);
        assert_eq!(ran.flows[0].octets, 30_000);
    }

    /// Two relays side by side: the one in use dies in the middle, the routes move to the other, and the flow goes on.
    #[test]
    fn a_flow_survives_the_death_of_a_relay() {
        const OCTETS: u64 = 1_000_000;
        let passed_on = |world: &World<Station>, relay| world.protocol(relay).counters().forwarded;
        for kind in [Kind::Default, Kind::Aggressive, Kind::Adaptive] {
            let net = meshed(
                &[(0.0, 0.0), (10.0, 6.6), (10.0, -6.6), (20.0, 0.0)],
                kind,
                OCTETS,
            );
            let mut world = net.world(5);
            world.run_until(32 * SECOND_NS);
            let (used, other) = if passed_on(&world, 1) > passed_on(&world, 2) {
                (1, 2)
            } else {
                (2, 1)
            };
            let before = net.ends(&world, 0).1.read();
            let spared = passed_on(&world, other);
            assert!((50_000..OCTETS).contains(&before), "{kind:?}: {before}");
            world.plan_incident(32 * SECOND_NS, used, Incident::AdapterGone { adapter: 0 });
            let mut seconds = 32;
            while seconds < 120 && !net.is_over(&world) {
                seconds += 1;
                world.run_until(seconds * SECOND_NS);
            }
            let ended = net.ended(&world, 0, seconds * SECOND_NS);
            assert!(ended.done && ended.octets == OCTETS, "{kind:?}: {}", ended.octets);
            assert!(passed_on(&world, other) - spared > 300, "{kind:?}");
        }
    }
}
