//! A world: nodes with their protocols on one medium, and the loop that runs them.

use crate::adapter::{Adapter, AdapterConfig};
use crate::core::{Core, Ear, Ev};
use crate::fault::Incident;
use crate::medium::fate::LinkState;
use crate::medium::links::Antenna;
use crate::medium::{LinkLoss, MediumConfig, PathLossTrace, Position};
use crate::node::{Node, NodeRadio, beacon};
use crate::plan::Plan;
use crate::rng::{Cause, Stream};
pub use crate::scene::{NodeConfig, NoiseConfig};
use crate::trace::Observer;
use crate::traffic::Traffic;
use frame::mac::header::Header;
use radio::{Beacon, Counters, Event, Instant, Outcome, Protocol, Tsf};

/// A saturated source tries again this long after a refusal, ns.
const REFUSED_NS: u64 = 1_000_000;

/// Nodes with protocols of type `P`, the medium between them, and virtual time.
pub struct World<P> {
    pub(crate) core: Core,
    pub(crate) protocols: Vec<P>,
    scratch: Vec<u8>,
}

impl<P: Protocol> World<P> {
    /// An empty world. Everything random in it follows from `seed`.
    pub fn new(medium: &MediumConfig, seed: u64) -> World<P> {
        World {
            core: Core::new(medium, seed),
            protocols: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Makes room for so many more nodes, with one adapter and one flow each, and no more than that.
    pub fn reserve(&mut self, nodes: usize) {
        let core = &mut self.core;
        core.adapters.reserve_exact(nodes);
        core.ears.reserve_exact(nodes);
        core.armed.reserve_exact(nodes);
        core.antennas.reserve_exact(nodes);
        core.nodes.reserve_exact(nodes);
        core.sources.reserve_exact(nodes);
        self.protocols.reserve_exact(nodes);
    }

    /// Adds a node and tells its number: 0, 1, 2...
    ///
    /// # Panics
    /// Without an adapter, or with an adapter whose sensing time is not below its slot time.
    pub fn add_node(&mut self, config: NodeConfig, protocol: P) -> u32 {
        assert!(!config.adapters.is_empty(), "a node has at least one adapter");
        let core = &mut self.core;
        let node = core.nodes.len() as u32;
        let first = core.adapters.len() as u32;
        for (ordinal, a) in config.adapters.iter().enumerate() {
            let sense = u64::from(a.rules.sense_ns);
            assert!(
                sense < u64::from(a.phy.slot_us) * 1_000,
                "stations must notice a frame within a slot"
            );
            // streams are named by node and ordinal, so that more nodes do not reshuffle them
            let name = u64::from(node) << 8 | ordinal as u64;
            core.adapters
                .push(Adapter::new(a, node, ordinal as u8, name, core.seed));
            add_antenna(core, config.position, a.tx_dbm, a.mhz);
        }
        let count = config.adapters.len() as u8;
        core.nodes.push(Node {
            clock: config.clock,
            host: config.host,
            wait: config.wait,
            interrupts: config.interrupts.map(|i| Box::new(i.start(core.seed, node))),
            stream: Stream::new(core.seed, u64::from(node), Cause::Host),
            faults: config.faults,
            fault_stream: Stream::new(core.seed, u64::from(node), Cause::Fault),
            adapters: (first, count),
            next_token: 0,
            deadline: None,
            thread_free: 0,
            last_visible: 0,
            open: Vec::new(),
            saturated: None,
            start_ns: config.start_ns,
            confirm_timeout_ns: config.confirm_timeout_ns,
            honours_not_before: config.honours_not_before,
        });
        self.protocols.push(protocol);
        self.core.at(config.start_ns, Ev::Start(node));
        node
    }

    /// Adds a source of energy.
    pub fn add_noise(&mut self, config: &NoiseConfig) {
        let core = &mut self.core;
        let adapter = core.adapters.len() as u32;
        let a = AdapterConfig::station(frame::MacAddr::ZERO, frame::Phy::A, config.mhz, false);
        // an antenna that belongs to no node: it receives nothing
        let mut silent = Adapter::new(&a, u32::MAX, 0, u64::MAX - u64::from(adapter), core.seed);
        (silent.reception, silent.carrier_sense) = (false, false);
        core.adapters.push(silent);
        add_antenna(core, config.position, config.tx_dbm, config.mhz);
        core.ears[adapter as usize].gate |= crate::core::gate::DEAF;
        core.relimit(adapter as usize);
        let stream = Stream::new(core.seed, u64::from(adapter), Cause::Fault);
        let noise = Plan::Noise {
            adapter,
            on_ns: config.on_ns.max(1),
            off_ns: config.off_ns,
            random: config.random,
            stream,
        };
        self.plan(config.start_ns, noise);
    }

    /// Adds traffic from `node` and tells the number of its flow: 0, 1, 2...
    pub fn add_traffic(&mut self, node: u32, traffic: Traffic) -> u32 {
        self.core.add_source(node, traffic)
    }

    /// Gives the link between two nodes (their first adapters), in one direction, losses of its own.
    pub fn set_link_loss(&mut self, from: u32, to: u32, loss: LinkLoss) {
        self.set_adapter_loss((from, 0), (to, 0), loss);
    }

    /// As [`set_link_loss`](World::set_link_loss), for any adapter of each node, which must exist: (node, its number).
    pub fn set_adapter_loss(&mut self, from: (u32, u8), to: (u32, u8), loss: LinkLoss) {
        let (from, to) = (self.radio(from.0, from.1), self.radio(to.0, to.1));
        let core = &mut self.core;
        let stream = Stream::new(core.seed, u64::from(from) << 32 | u64::from(to), Cause::Link);
        core.losses.push(LinkState::new(loss, stream));
        core.links.set_loss_state(from, to, core.losses.len() as u32 - 1);
    }

    fn radio(&self, node: u32, adapter: u8) -> u32 {
        let (first, count) = self.core.nodes[node as usize].adapters;
        assert!(adapter < count, "node {node} has {count} adapters");
        first + u32::from(adapter)
    }

    /// Plans a change of the path loss between two nodes (their first adapters) in one direction, in dB; infinite: they
    /// lose sight of each other.
    pub fn plan_loss(&mut self, at_ns: u64, from: u32, to: u32, db: f64) {
        let (from, to) = (self.radio(from, 0), self.radio(to, 0));
        self.plan(at_ns, Plan::Loss { from, to, db });
    }

    /// Plans the changes of a trace: the path from `from` to `to` has these losses, one way.
    pub fn plan_losses(&mut self, from: u32, to: u32, trace: &PathLossTrace) {
        (trace.steps()).for_each(|(at_ns, db)| self.plan_loss(at_ns, from, to, db));
    }

    /// Plans a move of a node.
    pub fn plan_move(&mut self, at_ns: u64, node: u32, position: Position) {
        self.plan(at_ns, Plan::Move { node, position });
    }

    /// Plans a fault.
    pub fn plan_incident(&mut self, at_ns: u64, node: u32, incident: Incident) {
        self.plan(at_ns, Plan::Incident { node, incident });
    }

    fn plan(&mut self, at_ns: u64, plan: Plan) {
        self.core.plans.push(plan);
        let index = self.core.plans.len() as u32 - 1;
        self.core.at(at_ns, Ev::Plan(index));
    }

    /// Shows every step to `observer` from now on.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.core.trace.observer = Some(observer);
    }

    /// Takes the observer back.
    pub fn take_observer(&mut self) -> Option<Box<dyn Observer>> {
        self.core.trace.observer.take()
    }

    /// Runs until `until_ns` of true time, that time included.
    pub fn run_until(&mut self, until_ns: u64) {
        while let Some((time, event)) = self.core.queue.pop_until(until_ns) {
            debug_assert!(time >= self.core.now, "time runs forwards");
            self.core.now = time;
            self.step(event);
        }
        self.core.now = self.core.now.max(until_ns);
    }

    /// True time, ns.
    pub fn now_ns(&self) -> u64 {
        self.core.now
    }

    /// What the host clock of a node shows.
    pub fn host_clock(&self, node: u32) -> Instant {
        Instant::from_ns(self.core.nodes[node as usize].clock.show(self.core.now))
    }

    /// A hash of everything that has happened: equal for equal seeds.
    pub fn trace_hash(&self) -> u64 {
        self.core.trace.hash()
    }

    /// Frames on the air so far, responses included.
    pub fn frames_on_air(&self) -> u64 {
        self.core.frames_on_air
    }

    /// Counters of an adapter of a node.
    pub fn counters(&self, node: u32, adapter: u8) -> Counters {
        self.core.adapters[self.radio(node, adapter) as usize].counters
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        self.core.nodes.len() as u32
    }

    /// The protocol of a node.
    pub fn protocol(&self, node: u32) -> &P {
        &self.protocols[node as usize]
    }

    /// The protocol of a node.
    pub fn protocol_mut(&mut self, node: u32) -> &mut P {
        &mut self.protocols[node as usize]
    }

    /// Requests of a node that are not confirmed yet.
    pub fn open_requests(&self, node: u32) -> usize {
        self.core.nodes[node as usize].open.len()
    }

    /// Objects that have been made for frames, signals, confirms and events so far and are used again and again: a
    /// number that settles after a while.
    pub fn objects(&self) -> usize {
        let c = &self.core;
        let answers = c.answers.made() + c.confirms.made() + c.indications.made();
        c.frames.made() + c.signals.made() + c.queue.made() + answers
    }

    fn step(&mut self, event: Ev) {
        let core = &mut self.core;
        match event {
            Ev::End(s) => core.end(s),
            Ev::Detect(s) => core.detect(s),
            Ev::Respond(a) => core.respond(a as usize),
            Ev::Continue(a) => core.go_on(a as usize),
            Ev::Timeout(a) => core.timeout(a as usize),
            Ev::NavReset(a) => core.reset_nav(a as usize),
            Ev::Access(a) => core.alarm(a as usize),
            Ev::Herd(h) => core.herd(h),
            Ev::Arrive(f) => core.arrive(f),
            Ev::Plan(p) => self.planned(p),
            Ev::Start(node) => self.handle(node, Event::Start),
            Ev::Interrupt(node) => core.interrupt(node),
            Ev::Timer(node) => self.timer(node),
            Ev::Traffic(source) => self.submit(source),
            Ev::Confirm(index) => self.confirm(index),
            Ev::Indicate(index) => self.indicate(index),
            Ev::Answer(node, index) => {
                let answer = core.answers[index];
                core.answers.release(index);
                self.handle(node, Event::Set(answer));
            }
        }
    }

    fn planned(&mut self, index: u32) {
        // a clock that jumped moves its node's deadline
        if let Some(node) = self.core.plan(index) {
            self.rearm(node, true);
        }
    }

    /// Hands an event to a protocol and reads its deadline again.
    fn handle(&mut self, node: u32, event: Event<'_>) {
        let now = self.core.nodes[node as usize].clock.show(self.core.now);
        let radio = &mut NodeRadio {
            core: &mut self.core,
            node,
        };
        self.protocols[node as usize].handle(Instant::from_ns(now), event, radio);
        self.rearm(node, false);
    }

    pub(crate) fn rearm(&mut self, node: u32, always: bool) {
        let wanted = self.protocols[node as usize].deadline().map(Instant::as_ns);
        let core = &mut self.core;
        let n = &mut core.nodes[node as usize];
        if n.deadline.map(|d| d.0) == wanted && !always {
            return;
        }
        if let Some((_, handle)) = n.deadline.take() {
            core.queue.cancel(handle);
        }
        let Some(wanted) = wanted else { return };
        let due = n.clock.when(wanted).max(core.now);
        match &n.interrupts {
            // what comes before it is not known yet
            Some(i) => {
                let at = i.comes(core.now, due).min(Instant::MAX.as_ns());
                let handle = core.at(at, Ev::Interrupt(node));
                core.nodes[node as usize].deadline = Some((wanted, handle));
            }
            None => core.wake(node, wanted, due),
        }
    }

    fn timer(&mut self, node: u32) {
        self.core.nodes[node as usize].deadline = None;
        self.handle(node, Event::Timer);
    }

    fn submit(&mut self, source: u32) {
        let mut payload = std::mem::take(&mut self.scratch);
        if let Some(node) = self.core.next_payload(source, &mut payload) {
            let msdu = self.core.msdu(source, &payload);
            let now = self.core.now;
            if let Some(o) = &mut self.core.trace.observer {
                o.submitted(now, node, &msdu);
            }
            self.handle(node, Event::Submit(msdu));
        }
        self.scratch = payload;
    }

    fn confirm(&mut self, index: u32) {
        let c = self.core.confirms[index].clone();
        self.core.confirms.release(index);
        let now = self.core.now;
        if let Some(o) = &mut self.core.trace.observer {
            o.confirmed(now, c.node, &c.confirm, c.exchange);
        }
        self.handle(c.node, Event::Confirm(c.confirm));
        match c.refill {
            // what was refused now would be refused again in the same instant
            Some(source) if matches!(c.confirm.outcome, Outcome::Refused(_)) => {
                self.core.at(now + REFUSED_NS, Ev::Traffic(source));
            }
            Some(source) => self.submit(source),
            None => {}
        }
    }

    fn indicate(&mut self, index: u32) {
        let i = self.core.indications[index].clone();
        self.core.indications.release(index);
        if self.core.now < self.core.nodes[i.node as usize].start_ns {
            return self.core.drop_frame(i.frame);
        }
        let mut octets = std::mem::take(&mut self.scratch);
        self.core
            .frame_on_air(i.frame, i.retry, i.duration_us, i.beacon_tsf_us, &mut octets);
        self.core.drop_frame(i.frame);
        let indication = self.core.indication(&i, &octets);
        let event = match beacon(&octets) {
            Some((timestamp, interval_tu)) => {
                let bssid = Header::parse(&octets)
                    .ok()
                    .and_then(|h| h.address3())
                    .unwrap_or_default();
                Event::Beacon(Beacon {
                    bssid,
                    timestamp: Tsf(timestamp),
                    interval_tu,
                    received: indication,
                })
            }
            None => Event::Indication(indication),
        };
        self.handle(i.node, event);
        self.scratch = octets;
    }
}

fn add_antenna(core: &mut Core, position: Position, tx_dbm: f64, mhz: u16) {
    let gate = core.channel_index(mhz).expect("at most 2048 channels");
    core.ears.push(Ear {
        gate,
        ..Ear::default()
    });
    core.armed.push(crate::adapter::NEVER);
    core.antennas.push(Antenna {
        position,
        tx_dbm,
        mhz,
    });
    core.relimit(core.ears.len() - 1);
    core.links.touch();
}
