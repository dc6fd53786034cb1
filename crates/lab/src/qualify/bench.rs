//! The worlds in which the schemes are tried: a controller, its nodes, and who disturbs them.

use super::admission::Share;
use super::clocks::ClockError;
use super::facts::Facts;
use super::question::{Link, Question, Scheme, Turn};
use super::roaming::{self, Whereabouts};
use super::tdma;
use super::{layers::counted, own::Sum};
use frame::{AccessCategory, edca_default_ap};
use protocols::mac::data::Identity;
use protocols::mac::edf::PATIENCE;
use protocols::mac::edf::coordinator::{Coordinator, CoordinatorConfig};
use protocols::mac::edf::responder::{Responder, ResponderConfig};
use protocols::mac::overlay::Access;
use radio::{Duration, Event, Instant, Protocol, Queue, Radio, TxHow};
use sim::clock::Clock;
use sim::host::{HostModel, Wait};
use sim::rng::{Cause, Stream};
use sim::{AdapterConfig, LinkLoss, LossModel, MediumConfig, NodeConfig, Pattern, Position, Process};
use sim::{Traffic, World};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard};

/// How far host clocks are off, parts per billion: uniform up to this. 20 ppm is what 802.11 asks of oscillators
/// (IEEE 802.11-2016, 17.3.9.5).
pub const DRIFT_PPB: u64 = 20_000;
/// Distance of the nodes from the controller in metres.
const RADIUS_M: f64 = 10.0;
/// Share of the lost ACKs whose beginning was heard (SDMAC, Cena et al. 2018, section V.C.3).
const HEARD: f64 = 0.013;
/// Thermal noise over 20 MHz and a noise figure of 7 dB, in dBm.
const NOISE_DBM: f64 = -94.0;

/// A protocol of any type on a node.
pub(super) struct Seat(pub(super) Box<dyn Protocol>);

impl Protocol for Seat {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.0.handle(now, event, radio);
    }
    fn deadline(&self) -> Option<Instant> {
        self.0.deadline()
    }
}

/// Everything that the worlds of one question share.
pub(super) struct Bench {
    pub question: Question,
    pub host: HostModel,
    pub facts: Facts,
    /// How well the clocks of TDMA agree; `None` if it is not asked for.
    pub clock_error: Option<ClockError>,
    /// What was worked out of schedules so far.
    shares: Mutex<BTreeMap<(Scheme, u64), Share>>,
}

/// Which part of a run counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    /// Length of a cycle, ns.
    pub cycle_ns: u64,
    /// True time of the first release, ns.
    pub first_ns: u64,
    /// Cycles before the first that counts.
    pub warm_up: u32,
    /// Cycles that count.
    pub cycles: u32,
}

impl Span {
    /// True time at which the first cycle that counts starts, ns.
    pub fn begin_ns(self) -> u64 {
        self.first_ns + u64::from(self.warm_up) * self.cycle_ns
    }

    /// True time at which the last one ends, ns.
    pub fn end_ns(self) -> u64 {
        self.begin_ns() + u64::from(self.cycles) * self.cycle_ns
    }
}

/// A world ready to run, and the clocks of its nodes. What overlays count is complete when the world is gone.
pub(super) struct Ready {
    pub world: World<Seat>,
    pub clocks: Vec<Clock>,
    pub span: Span,
    /// Release of each node's messages after the start of the cycle, ns; the first is the controller's, and 0.
    pub offsets_ns: Vec<u64>,
    pub own: Sum,
}

impl Bench {
    /// Solves the profile and the facts.
    ///
    /// # Errors
    /// What is wrong with the profile.
    pub(super) fn new(question: &Question) -> Result<Bench, sim::host::ProfileError> {
        let host = HostModel::new(&question.host)?;
        let facts = Facts::new(question, &host);
        let mut bench = Bench {
            question: question.clone(),
            host,
            facts,
            clock_error: None,
            shares: Mutex::default(),
        };
        if question.schemes.iter().any(|s| s.turn == Turn::Tdma) {
            bench.clock_error = Some(bench.measure_clocks());
        }
        Ok(bench)
    }

    pub(super) fn shares(&self) -> MutexGuard<'_, BTreeMap<(Scheme, u64), Share>> {
        self.shares.lock().expect("nobody panics with it")
    }

    /// A world with `scheme`, in which `cycles` cycles of `cycle_ns` count.
    pub(super) fn world(&self, scheme: Scheme, seed: u64, cycle_ns: u64, cycles: u32) -> Ready {
        let q = &self.question;
        let warm_up = match scheme.turn {
            // a host of a cell has its slot after a few tens of rounds
            Turn::Tbmac => (100 * self.rounds(scheme).length().as_ns()).div_ceil(cycle_ns) as u32 + 4,
            Turn::Tdma => tdma::settling_ns(cycle_ns).div_ceil(cycle_ns) as u32 + 1,
            _ if scheme.walks() => roaming::SETTLING_NS.div_ceil(cycle_ns) as u32,
            _ => 4,
        };
        // the controller's adapter shows true time, and schedules start at multiples of the cycle
        let span = Span {
            cycle_ns,
            first_ns: cycle_ns,
            warm_up,
            cycles,
        };
        let (whereabouts, own) = (Whereabouts::default(), Sum::default());
        let (mut world, clocks) = self.nodes(seed, scheme, q.nodes, &|node| match scheme.walks() {
            true => self.roaming(scheme, node, cycle_ns, &whereabouts, &own),
            false => {
                let seat = self.seat(scheme, (node, seed), cycle_ns, &own);
                self.layered(scheme, node, cycle_ns, seat, &own)
            }
        });
        let offsets_ns: Vec<_> = (0..=q.nodes).map(|n| q.offset_ns(n, cycle_ns)).collect();
        self.add_messages(&mut world, span, &offsets_ns);
        if scheme.walks() {
            self.add_second_door(&mut world, span, &offsets_ns);
            self.walk(&mut world, seed, span);
        }
        self.disturb(&mut world, scheme);
        Ready {
            world,
            clocks,
            span,
            offsets_ns,
            own,
        }
    }

    /// A world with the controller and `nodes` nodes, without messages, and the clocks of their hosts.
    pub(super) fn nodes(
        &self,
        seed: u64,
        scheme: Scheme,
        nodes: u32,
        seat: &dyn Fn(u32) -> Seat,
    ) -> (World<Seat>, Vec<Clock>) {
        let mut world = World::new(&self.medium(scheme), seed);
        let host = Rc::new(self.host.clone());
        let mut clocks = Vec::new();
        // behind the nodes the second access point
        for node in 0..=nodes + u32::from(scheme.walks()) {
            let clock = match scheme.turn {
                // its hosts know the time
                Turn::Tbmac => Clock::default(),
                _ => clock(seed, node),
            };
            let at = match scheme.walks() {
                true => self.door_step(node),
                false => place(node, nodes),
            };
            let mut config = NodeConfig {
                host: Some(host.clone()),
                wait: Wait::Sleep,
                clock,
                ..NodeConfig::ideal(at, self.adapter(seed, scheme, node))
            };
            for second in 1..self.adapters(scheme, node) {
                let mut adapter = self.adapter(seed, scheme, node);
                adapter.mhz = self.second_mhz();
                adapter.tsf = self::clock(seed, node | 1 << 30 | second << 29);
                config.adapters.push(adapter);
            }
            clocks.push(clock);
            world.add_node(config, seat(node));
        }
        if let Link::Per { data, ack } = self.question.link {
            let loss = || LinkLoss {
                data: (data > 0.0).then_some(Process::Fixed(data)),
                response: (ack > 0.0).then_some(Process::Fixed(ack)),
                heard: HEARD,
            };
            for node in 1..=nodes {
                for adapter in 0..scheme.adapters() as u8 {
                    let ends: &[_] = match scheme.walks() {
                        true => &[(0, 0), (nodes + 1, 0)],
                        false => &[(0, adapter)],
                    };
                    for end in ends {
                        world.set_adapter_loss(*end, (node, adapter), loss());
                        world.set_adapter_loss((node, adapter), *end, loss());
                    }
                }
            }
        }
        (world, clocks)
    }

    fn medium(&self, scheme: Scheme) -> MediumConfig {
        if scheme.walks() {
            return MediumConfig {
                preamble_dbm: NOISE_DBM,
                ..MediumConfig::default()
            };
        }
        let received_dbm = match self.question.link {
            Link::Per { .. } => -50.0,
            Link::SnrDb(db) => NOISE_DBM + db,
        };
        MediumConfig {
            loss: LossModel::FixedPower(received_dbm),
            preamble_dbm: NOISE_DBM,
            ..MediumConfig::default()
        }
    }

    pub(super) fn mhz(&self) -> u16 {
        match self.question.phy.band {
            frame::Band::Ghz5 => 5_180,
            frame::Band::Ghz2_4 => 2_412,
        }
    }

    /// The channel of second adapters, and of the second access point.
    pub(super) fn second_mhz(&self) -> u16 {
        match self.question.phy.band {
            frame::Band::Ghz5 => 5_745,
            frame::Band::Ghz2_4 => 2_462,
        }
    }

    fn adapter(&self, seed: u64, scheme: Scheme, node: u32) -> AdapterConfig {
        let phy = self.question.phy;
        let mut adapter = AdapterConfig::station(Question::address(node), phy, self.mhz(), true);
        let second_door = node > self.question.nodes;
        if scheme.walks() {
            adapter.tx_dbm = self.cell_dbm();
        }
        if second_door {
            adapter.mhz = self.second_mhz();
        }
        if node > 0 {
            adapter.tsf = clock(seed, node | 1 << 31);
        }
        if node == 0 || second_door {
            for category in AccessCategory::ALL {
                adapter.edca[Queue::from(category).index()] = edca_default_ap(category, &phy);
            }
        }
        adapter
    }

    pub(super) fn identity(&self, node: u32) -> Identity {
        let controller = Question::address(0);
        match node {
            0 => Identity::access_point(controller),
            n if n > self.question.nodes => Identity::access_point(Question::address(n)),
            _ => Identity::station(Question::address(node), controller),
        }
    }

    fn seat(&self, scheme: Scheme, (node, seed): (u32, u64), cycle_ns: u64, own: &Sum) -> Seat {
        match scheme.turn {
            Turn::Edca => self.edca(scheme, node, cycle_ns, own),
            Turn::Edf if node == 0 => self.coordinator(cycle_ns, own),
            Turn::Edf => self.responder(node, own),
            Turn::Tdma => self.tdma(scheme, node, cycle_ns, own),
            Turn::Tbmac => self.celled(scheme, node, seed, own),
            Turn::Slotted => self.slotted(scheme, node, cycle_ns, own),
        }
    }

    /// Whether it is the controller, or its second access point.
    pub(super) fn is_door(&self, node: u32) -> bool {
        node == 0 || node > self.question.nodes
    }

    fn one_shot(&self) -> TxHow {
        TxHow::one_shot(self.question.rate).queue(Queue::Voice)
    }

    fn coordinator(&self, cycle_ns: u64, own: &Sum) -> Seat {
        let extra = self.foreign_wait_ns();
        let config = CoordinatorConfig {
            identity: self.identity(0),
            how: self.one_shot(),
            qos: true,
            attempt: Duration::from_ns(self.facts.attempt.p99_99_ns),
            answer: Duration::from_ns(self.facts.answer.p99_99_ns + extra),
            default_deadline: Duration::from_ns(cycle_ns),
            max_attempts: u16::MAX,
            gap: Duration::ZERO,
            poll_again: None,
            patience: PATIENCE,
            access: Some(Access::without_backoff(Queue::Voice, 1)),
        };
        match (self.question.nodes, self.question.simulated_octets()) {
            (..=8, ..=256) => counted(Box::new(Coordinator::<8, 256>::new(config)), own),
            (..=32, ..=256) => counted(Box::new(Coordinator::<32, 256>::new(config)), own),
            (..=32, _) => counted(Box::new(Coordinator::<32, 1500>::new(config)), own),
            (_, ..=256) => counted(Box::new(Coordinator::<256, 256>::new(config)), own),
            _ => counted(Box::new(Coordinator::<256, 1500>::new(config)), own),
        }
    }

    fn responder(&self, node: u32, own: &Sum) -> Seat {
        let within = self.facts.reply.p99_99_ns + self.foreign_wait_ns();
        let config = ResponderConfig {
            identity: self.identity(node),
            coordinator: Question::address(0),
            how: self.one_shot(),
            qos: true,
            within: Duration::from_ns(within),
            patience: PATIENCE,
            access: Some(Access::without_backoff(Queue::Voice, 2)),
        };
        match self.question.simulated_octets() {
            ..=256 => counted(Box::new(Responder::<256>::new(config)), own),
            _ => counted(Box::new(Responder::<1500>::new(config)), own),
        }
    }

    /// Who sends without backoff and found the channel taken begins this long after it is free, at most, ns; `None` with
    /// backoff.
    pub(super) fn wait_ns(&self, scheme: Scheme) -> Option<u64> {
        // two frames that end within the propagation time of 10 m
        const SLACK_NS: u64 = 200;
        let difs_ns = u64::from(self.question.phy.difs_us()) * 1_000;
        (scheme.turn != Turn::Edca).then_some(difs_ns + SLACK_NS)
    }

    /// A message each cycle to a node.
    pub(super) fn messages(&self, span: Span, to: u32, offset_ns: u64) -> Traffic {
        Traffic {
            to: Question::address(to),
            category: AccessCategory::Voice,
            octets: self.question.simulated_octets(),
            pattern: Pattern::Periodic {
                period_ns: span.cycle_ns,
                phase_ns: span.first_ns + offset_ns,
            },
            lifetime_ns: Some(span.cycle_ns),
            count: Some(span.warm_up + span.cycles + 1),
        }
    }

    /// Flow i: controller to node i + 1. Flow N + i: the other way.
    fn add_messages(&self, world: &mut World<Seat>, span: Span, offsets_ns: &[u64]) {
        let nodes = (1..).zip(&offsets_ns[1..]);
        for (node, offset_ns) in nodes.clone() {
            world.add_traffic(0, self.messages(span, node, *offset_ns));
        }
        for (node, offset_ns) in nodes {
            world.add_traffic(node, self.messages(span, 0, *offset_ns));
        }
    }
}

/// On a circle around the controller.
pub(super) fn place(node: u32, nodes: u32) -> Position {
    if node == 0 {
        return Position::default();
    }
    let angle = std::f64::consts::TAU * f64::from(node - 1) / f64::from(nodes);
    Position::new(RADIUS_M * libm::cos(angle), RADIUS_M * libm::sin(angle))
}

/// Some offset below a second, some drift within [`DRIFT_PPB`].
fn clock(seed: u64, node: u32) -> Clock {
    let mut s = Stream::new(seed, u64::from(node), Cause::Clock);
    Clock {
        offset_ns: s.below(1_000_000_000),
        drift_ppb: s.below(2 * DRIFT_PPB + 1) as i64 - DRIFT_PPB as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_differ_within_their_tolerance() {
        let clocks: Vec<_> = (0..200).map(|n| clock(7, n)).collect();
        assert!(clocks.iter().all(|c| c.drift_ppb.unsigned_abs() <= DRIFT_PPB));
        assert!(clocks.iter().any(|c| c.drift_ppb > 15_000) && clocks.iter().any(|c| c.drift_ppb < -15_000));
        assert_eq!(clocks[3], clock(7, 3));
    }
}
