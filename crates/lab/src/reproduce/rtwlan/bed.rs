//! The experiment of the paper: an originator sends a packet in each period, one or two others answer, all by broadcasts. With the
//! card's own channel access, or in slots of TBMAC over the same hosts.

use std::cell::RefCell;
use std::rc::Rc;

use frame::{MacAddr, Phy};
use protocols::mac::tbmac::cell::Cell;
use protocols::mac::tbmac::rounds::{RoundCosts, Rounds, mpdu_octets};
use protocols::mac::tbmac::{Tbmac, TbmacConfig};
use protocols::mac::tdma::schedule::Release;
use radio::{Confirm, Duration, Event, Instant, Plane, Protocol, Radio, Token, TxHow};
use sim::rng::{Cause, Stream};
use sim::{AdapterConfig, Capture, LossModel, MediumConfig, NodeConfig, Observer, Position, World};

use super::path::{self, FOREIGN_OCTETS, FOREIGN_RATE, Firmware, OCTETS, RATE};

/// Strength of the stronger of two answers at the originator, dBm; the other one is 15 dB weaker. Anything that is captured will do.
const STRONG_DBM: f64 = -50.0;
const WEAK_DBM: f64 = -65.0;
/// How much stronger the captured frame must be: DQPSK at 2 Mb/s.
const CAPTURE_DB: f64 = 10.0;
/// When the originator begins: TBMAC has given everybody a slot by then.
const BEGIN_NS: u64 = 2_000_000_000;
const ORIGINATOR: u32 = 0;
const MHZ: u16 = 2_412;

/// How one gets on the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// As the card does: at once on an idle medium.
    Immediate,
    /// Answers take a backoff first, whatever the medium is like.
    Backoff,
    /// In slots of TBMAC.
    Tbmac,
}

/// How the experiment is run.
#[derive(Clone, PartialEq, Debug)]
pub struct Conditions {
    /// From packet to packet, ns.
    pub period_ns: u64,
    /// Mean software latency of those who answer, us: one or two.
    pub answering_us: Vec<f64>,
    /// How the firmware spreads.
    pub firmware: Firmware,
    /// How one gets on the air.
    pub access: Access,
    /// Of two answers at once, probability that the first host's is the stronger one; `None`: none is.
    pub first_stronger: Option<f64>,
    /// Share of packets that others on the channel are to delay beyond the paper's bound.
    pub delayed: f64,
}

/// What one host has seen, ns.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Host {
    /// From the call to the driver's queue.
    pub software: Vec<u64>,
    /// From there into the card.
    pub firmware: Vec<u64>,
    /// From there to the end on the air.
    pub communication: Vec<u64>,
    /// From there to the beginning on the air.
    pub waiting: Vec<u64>,
    /// From the call to the end on the air.
    pub total: Vec<u64>,
    /// From the request of the application to its confirm.
    pub access: Vec<u64>,
    /// From a packet's call to the arrival of this host's answer.
    pub round_trip: Vec<u64>,
}

/// What was seen.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Found {
    /// Packets of the originator.
    pub packets: u64,
    /// The originator, and those who answer.
    pub hosts: Vec<Host>,
}

impl Found {
    /// Takes in another run.
    pub fn merge(&mut self, other: Found) {
        self.packets += other.packets;
        self.hosts
            .resize(other.hosts.len().max(self.hosts.len()), Host::default());
        for (a, b) in self.hosts.iter_mut().zip(other.hosts) {
            a.software.extend(b.software);
            a.firmware.extend(b.firmware);
            a.communication.extend(b.communication);
            a.waiting.extend(b.waiting);
            a.total.extend(b.total);
            a.access.extend(b.access);
            a.round_trip.extend(b.round_trip);
        }
    }
}

type Log = Rc<RefCell<Found>>;

/// The application of a host.
struct App {
    me: u32,
    /// Packets that it sends, and from one to the next; 0 of those who answer.
    packets: u64,
    period: Duration,
    next: Option<Instant>,
    /// When each packet was sent.
    sent: Vec<Instant>,
    /// Answers that wait for their backoff: when to be sent, and which.
    waiting: Option<(Instant, u32)>,
    dice: Option<Stream>,
    asked: Vec<(Token, Instant)>,
    log: Log,
}

impl App {
    fn send(&mut self, now: Instant, number: u32, radio: &mut dyn Radio) {
        // 4 octets of FCS follow
        let mut frame = [0; OCTETS - 4];
        frame[0] = 0x08;
        frame[4..10].copy_from_slice(&MacAddr::BROADCAST.0);
        frame[10..16].copy_from_slice(&MacAddr::local(self.me).0);
        frame[16..22].copy_from_slice(&MacAddr::BROADCAST.0);
        frame[24..28].copy_from_slice(&self.me.to_le_bytes());
        frame[28..32].copy_from_slice(&number.to_le_bytes());
        let token = radio.token();
        self.asked.push((token, now));
        radio.request(token, &frame, &TxHow::one_shot(RATE));
    }

    fn hear(&mut self, now: Instant, frame: &[u8], radio: &mut dyn Radio) {
        let word = |at: usize| Some(u32::from_le_bytes(frame.get(at..at + 4)?.try_into().ok()?));
        let (Some(from), Some(number), true) = (word(24), word(28), frame.len() == OCTETS - 4) else {
            return;
        };
        if self.me == ORIGINATOR {
            let sent = self.sent[number as usize];
            self.log.borrow_mut().hosts[from as usize]
                .round_trip
                .push(now.since(sent).as_ns());
        } else if from == ORIGINATOR {
            match &mut self.dice {
                None => self.send(now, number, radio),
                Some(dice) => {
                    let slots = u64::from(Phy::B.slot_us) * dice.below(32);
                    self.waiting = Some((now + Duration::from_us(slots), number));
                }
            }
        }
    }

    fn timer(&mut self, now: Instant, radio: &mut dyn Radio) {
        if let Some((_, number)) = self.waiting.take_if(|(at, _)| *at <= now) {
            self.send(now, number, radio);
        }
        if let Some(next) = self.next.filter(|next| *next <= now) {
            let number = self.sent.len() as u32;
            self.sent.push(now);
            self.log.borrow_mut().packets += 1;
            self.send(now, number, radio);
            let more = (self.sent.len() as u64) < self.packets;
            self.next = more.then(|| next + self.period);
        }
    }
}

impl Protocol for App {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Timer => self.timer(now, radio),
            Event::Indication(i) => self.hear(now, i.frame, radio),
            Event::Confirm(c) => {
                if let Some(i) = self.asked.iter().position(|(token, _)| *token == c.token) {
                    let (_, asked) = self.asked.swap_remove(i);
                    let access = now.since(asked).as_ns();
                    self.log.borrow_mut().hosts[self.me as usize].access.push(access);
                }
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let waiting = self.waiting.map(|(at, _)| at);
        [waiting, self.next].into_iter().flatten().min()
    }
}

/// Others on the channel: frames at random.
struct Foreigner {
    stream: Stream,
    pause_ns: f64,
    next: Instant,
}

impl Protocol for Foreigner {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if event == Event::Timer {
            let mut frame = [0; FOREIGN_OCTETS - 4];
            frame[0] = 0x08;
            frame[4..10].copy_from_slice(&MacAddr::BROADCAST.0);
            frame[10..16].copy_from_slice(&MacAddr::local(9).0);
            let token = radio.token();
            radio.request(token, &frame, &TxHow::one_shot(FOREIGN_RATE));
            let airtime = frame::ppdu_us(FOREIGN_RATE, FOREIGN_OCTETS as u32, Phy::B.band);
            let pause = self.stream.exponential(self.pause_ns);
            self.next += Duration::from_us(airtime.into()) + Duration::from_ns(pause as u64);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.next)
    }
}

/// Slots of a contention-free period, and to ask for one.
const SLOTS: usize = 4;
const ASKS: u8 = 4;

/// The rounds of TBMAC for these hosts: the guard holds the whole spread of the way to the air.
pub fn rounds() -> Rounds {
    let [least, most] = path::release_us(Firmware::Steady);
    let us = |us: f64| Duration::from_ns((us * 1e3).round() as u64);
    let costs = RoundCosts {
        phy: Phy::B,
        eifs: false,
        rate: RATE,
        octets: mpdu_octets(OCTETS - 4, ASKS) as u16,
        asks: ASKS,
        release: Release {
            min: us(least),
            high: us(most),
        },
        sync_error: Duration::ZERO,
        heard: us(path::receive_us()),
    };
    Rounds::new(&costs, SLOTS as u8).expect("the slots hold a frame")
}

#[allow(clippy::large_enum_variant, reason = "a handful of nodes for each world")]
enum Node {
    Card(App),
    Slots(Tbmac<App, SLOTS, 4, 128>),
    Foreigner(Foreigner),
}

impl Protocol for Node {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Node::Card(p) => p.handle(now, event, radio),
            Node::Slots(p) => p.handle(now, event, radio),
            Node::Foreigner(p) => p.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Node::Card(p) => p.deadline(),
            Node::Slots(p) => p.deadline(),
            Node::Foreigner(p) => p.deadline(),
        }
    }
}

/// Notes the latencies of the hosts.
struct Watch(Log);

impl Observer for Watch {
    fn confirmed(&mut self, now_ns: u64, node: u32, confirm: &Confirm, exchange_ns: Option<(u64, u64)>) {
        let at = |plane| confirm.stamps.get_host(plane).map(Instant::as_ns);
        let stamps = (at(Plane::T1), at(Plane::T2), at(Plane::T3), at(Plane::T4));
        let (Some(t1), Some(t2), Some(t3), Some(t4)) = stamps else {
            return;
        };
        let (Some((begin, end)), true) = (exchange_ns, now_ns >= BEGIN_NS) else {
            return;
        };
        if let Some(host) = self.0.borrow_mut().hosts.get_mut(node as usize) {
            host.software.push(t2 - t1);
            host.firmware.push(t4 - t3);
            host.waiting.push(begin - t4);
            host.communication.push(end - t4);
            host.total.push(end - t1);
        }
    }
}

/// Runs the experiment with `packets` packets.
pub fn run(conditions: &Conditions, seed: u64, packets: u64) -> Found {
    let medium = MediumConfig {
        loss: LossModel::FixedPower(STRONG_DBM),
        capture: Capture::MessageInMessage {
            by_db: CAPTURE_DB,
            // as long as frames can begin without having heard each other
            window_us: Phy::B.cca_us + Phy::B.commit_us,
        },
        ..MediumConfig::default()
    };
    let mut world = World::new(&medium, seed);
    let answering = &conditions.answering_us;
    let log: Log = Rc::new(RefCell::new(Found {
        packets: 0,
        hosts: vec![Host::default(); 1 + answering.len()],
    }));
    let config = |me: u32| AdapterConfig::station(MacAddr::local(me), Phy::B, MHZ, false);
    let software = std::iter::once(answering[0]).chain(answering.iter().copied());
    let software: Vec<f64> = software.collect();
    for (me, software_us) in (0u32..).zip(software) {
        let node = NodeConfig {
            host: Some(path::host(software_us, conditions.firmware)),
            ..NodeConfig::ideal(Position::default(), config(me))
        };
        let is_first = me == ORIGINATOR;
        let backoff = conditions.access == Access::Backoff && !is_first;
        let app = App {
            me,
            packets,
            period: Duration::from_ns(conditions.period_ns),
            next: is_first.then(|| Instant::from_ns(BEGIN_NS)),
            sent: Vec::new(),
            waiting: None,
            dice: backoff.then(|| Stream::new(seed, u64::from(me), Cause::Protocol)),
            asked: Vec::new(),
            log: Rc::clone(&log),
        };
        let protocol = match conditions.access {
            Access::Tbmac => {
                let cell = Cell { q: 0, r: 0 };
                Node::Slots(Tbmac::new(
                    TbmacConfig::new(MacAddr::local(me), cell, rounds()),
                    app,
                ))
            }
            Access::Immediate | Access::Backoff => Node::Card(app),
        };
        world.add_node(node, protocol);
    }
    if conditions.delayed > 0.0 {
        let pause_ns = path::foreign_pause_ns(conditions.delayed);
        let mut stream = Stream::new(seed, 99, Cause::Traffic);
        // not with the first packet, which they would delay in every run
        let first = Duration::from_ns(stream.exponential(pause_ns) as u64);
        let foreigner = Foreigner {
            stream,
            pause_ns,
            next: Instant::from_ns(BEGIN_NS) + first,
        };
        world.add_node(
            NodeConfig::ideal(Position::default(), config(9)),
            Node::Foreigner(foreigner),
        );
    }
    if answering.len() == 2 {
        strengths(&mut world, conditions, seed, packets);
    }
    world.set_observer(Box::new(Watch(Rc::clone(&log))));
    world.run_until(BEGIN_NS + packets * conditions.period_ns + 50_000_000);
    drop(world);
    Rc::try_unwrap(log).map(RefCell::into_inner).unwrap_or_default()
}

/// In each period one of the two answers is the stronger one at the originator.
fn strengths(world: &mut World<Node>, conditions: &Conditions, seed: u64, packets: u64) {
    let Some(p) = conditions.first_stronger else {
        return;
    };
    let mut dice = Stream::new(seed, 98, Cause::Link);
    let tx_dbm = AdapterConfig::station(MacAddr::local(0), Phy::B, MHZ, false).tx_dbm;
    for n in 0..packets {
        let at_ns = BEGIN_NS + n * conditions.period_ns;
        let first = dice.chance(p);
        for (node, strong) in [(1, first), (2, !first)] {
            let dbm = if strong { STRONG_DBM } else { WEAK_DBM };
            world.plan_loss(at_ns, node, ORIGINATOR, tx_dbm - dbm);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(answering_us: &[f64], access: Access) -> Conditions {
        Conditions {
            period_ns: 20_000_000,
            answering_us: answering_us.to_vec(),
            firmware: Firmware::Steady,
            access,
            first_stronger: Some(0.95),
            delayed: 0.0,
        }
    }

    #[test]
    fn two_hosts_alone_lose_nothing_and_never_wait() {
        let found = run(&conditions(&[384.0], Access::Immediate), 1, 50);
        assert_eq!((found.packets, found.hosts[1].round_trip.len()), (50, 50));
        assert!(found.hosts.iter().all(|h| h.waiting.iter().all(|ns| *ns == 0)));
        assert!(found.hosts[0].communication.iter().all(|ns| *ns == 600_000));
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let c = conditions(&[393.0, 397.0], Access::Immediate);
        assert_eq!(run(&c, 3, 40), run(&c, 3, 40));
        assert_ne!(run(&c, 3, 40), run(&c, 4, 40));
    }

    #[test]
    fn in_slots_of_tbmac_nothing_is_lost() {
        let found = run(&conditions(&[393.0, 397.0], Access::Tbmac), 2, 100);
        assert_eq!(found.packets, 100);
        for host in &found.hosts[1..] {
            assert_eq!(host.round_trip.len(), 100);
        }
    }
}
