//! A station walks from one access point to the next, with one adapter and with two.
//!
//! What copies buy: `cargo test -p sdmac-lab --test roam -- --ignored --nocapture`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::rc::Rc;

use frame::mac::{FrameType, Header};
use frame::{AccessCategory, MacAddr, Phy, Rate};
use protocols::mac::beacon::{Beaconer, BeaconerConfig};
use protocols::mac::data::Identity;
use protocols::mac::roam::gate::Gate;
use protocols::mac::roam::{Roam, RoamConfig, RoamCounters};
use protocols::mac::sender::{Sender, SenderConfig};
use radio::{AdapterId, Checked, Duration, Event, Instant, Msdu, Protocol, Radio, TxHow};
use rayon::prelude::*;
use sim::trace::{Observer, Transmission};
use sim::traffic::parse_header;
use sim::{AdapterConfig, LinkLoss, MediumConfig, NodeConfig, Pattern, Position, Process, Traffic, World};

const MS: u64 = 1_000_000;
const APS: [MacAddr; 2] = [MacAddr::local(1), MacAddr::local(2)];
const ME: MacAddr = MacAddr::local(3);
const CHANNELS: [u16; 2] = [5180, 5745];

#[allow(clippy::large_enum_variant, reason = "three nodes")]
enum Node {
    Ap(Checked<Beaconer<Gate<Sender>>>),
    Station(Checked<Roam<Sender>>),
}

impl Protocol for Node {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Node::Ap(p) => p.handle(now, event, radio),
            Node::Station(p) => p.handle(now, event, radio),
        }
    }
    fn deadline(&self) -> Option<Instant> {
        match self {
            Node::Ap(p) => p.deadline(),
            Node::Station(p) => p.deadline(),
        }
    }
}

fn ap(me: MacAddr) -> Beaconer<Gate<Sender>> {
    let config = BeaconerConfig::new(me, Duration::from_us(102_400), Rate::OFDM_6);
    let sender = Sender::new(SenderConfig::new(Identity::access_point(me), Rate::OFDM_6));
    Beaconer::new(config, Gate::new(me, Rate::OFDM_6, sender))
}

fn station(second: Option<AdapterId>, copies: bool) -> Roam<Sender> {
    let mut config = RoamConfig::new(ME, APS[0], &CHANNELS, (AdapterId(0), second), Rate::OFDM_6);
    config.copies = copies;
    let mut sender = SenderConfig::new(Identity::station(ME, APS[0]), Rate::OFDM_6);
    sender.how = TxHow::multi_shot(Rate::OFDM_6, 3);
    Roam::new(config, Sender::new(sender))
}

/// Access points at 0 and 80 m, each of which is heard for 51 m, and a station at 10 m, the third node.
fn hall(two: bool, copies: bool, seed: u64) -> World<Node> {
    let mut world: World<Node> = World::new(&MediumConfig::default(), seed);
    for (i, me) in APS.into_iter().enumerate() {
        let adapter = AdapterConfig::station(me, Phy::A, CHANNELS[i], false);
        let place = Position::new(80.0 * i as f64, 0.0);
        let node = Checked::strict(ap(me)).with_twin(ap(me));
        world.add_node(NodeConfig::ideal(place, adapter), Node::Ap(node));
    }
    let second = two.then_some(AdapterId(1));
    let adapter = |mhz| AdapterConfig::station(ME, Phy::A, mhz, false);
    let mut config = NodeConfig::ideal(Position::new(10.0, 0.0), adapter(CHANNELS[0]));
    if two {
        config.adapters.push(adapter(CHANNELS[1]));
    }
    let node = Checked::strict(station(second, copies)).with_twin(station(second, copies));
    world.add_node(config, Node::Station(node));
    world
}

/// From this instant on the station goes on at 2 m/s from so many metres, for so many tenths of a second.
fn goes(world: &mut World<Node>, from_ns: u64, x_m: f64, tenths: u32) {
    for step in 0..tenths {
        let at = from_ns + u64::from(step) * 100 * MS;
        world.plan_move(at, 2, Position::new(x_m + 0.2 * f64::from(step), 0.0));
    }
}

/// A frame every 20 ms from this instant on.
fn each_20_ms(to: MacAddr, phase_ns: u64, lifetime_ns: u64, count: Option<u32>) -> Traffic {
    Traffic {
        to,
        category: AccessCategory::BestEffort,
        octets: 50,
        pattern: Pattern::Periodic {
            period_ns: 20 * MS,
            phase_ns,
        },
        lifetime_ns: Some(lifetime_ns),
        count,
    }
}

/// From 10 to 70 m at 2 m/s; a frame every 20 ms.
fn walk(two: bool, seed: u64) -> (RoamCounters, MacAddr) {
    let mut world = hall(two, false, seed);
    goes(&mut world, 2_000 * MS, 10.0, 300);
    world.add_traffic(2, each_20_ms(APS[0], 1_500 * MS, 20 * MS, Some(1_600)));
    world.run_until(34_000 * MS);
    let Node::Station(s) = world.protocol(2) else {
        unreachable!("the third node is the station");
    };
    (
        s.inner().counters(),
        s.inner().access_point().expect("it is let in"),
    )
}

/// Two adapters miss no deadline; one misses those of the time in which it finds out, listens and asks.
#[test]
fn two_adapters_hand_over_without_a_miss() {
    for seed in 1..4 {
        let (two, at) = walk(true, seed);
        assert_eq!((two.handovers, at), (1, APS[1]), "{two:?}");
        assert_eq!((two.missed_in_handover, two.missed_else), (0, 0), "{two:?}");
        assert!(two.longest_gap_ns < 40 * MS, "{two:?}");
        let (one, at) = walk(false, seed);
        assert_eq!((one.handovers, at), (1, APS[1]), "{one:?}");
        assert!(one.missed_in_handover >= 10, "{one:?}");
        assert!((300 * MS..1_500 * MS).contains(&one.longest_gap_ns), "{one:?}");
    }
}

/// The second adapter listens where the first one does not: else both would acknowledge what comes down, at once, and neither
/// would be understood.
#[test]
fn one_adapter_acknowledges() {
    let unacknowledged = |two| {
        let mut world = hall(two, false, 1);
        world.add_traffic(0, each_20_ms(ME, 1_500 * MS, 20 * MS, Some(400)));
        world.run_until(10_000 * MS);
        let ap = world.counters(0, 0);
        assert!(ap.tx_acked >= 400, "{ap:?}");
        ap.tx_frames - ap.tx_acked
    };
    let beacons = unacknowledged(false);
    assert_eq!((beacons, unacknowledged(true)), (98, 98));
}

/// What is seen of the station's messages.
#[derive(Default)]
struct Seen {
    /// When a message was born, ns, by its number.
    born: BTreeMap<u32, u64>,
    /// When it was handed up first at an access point, ns.
    up: BTreeMap<u32, u64>,
    /// Messages that were handed up for the second time.
    again: Vec<u32>,
    /// When data frames of the station began, ns.
    frames: Vec<u64>,
}

struct Eye(Rc<RefCell<Seen>>);

impl Observer for Eye {
    fn transmission(&mut self, t: &Transmission<'_>) {
        if t.node == 2 && Header::parse(t.frame).is_ok_and(|h| h.frame_type() == FrameType::Data) {
            self.0.borrow_mut().frames.push(t.start_ns);
        }
    }

    fn submitted(&mut self, now_ns: u64, _: u32, msdu: &Msdu<'_>) {
        let (_, number, _) = parse_header(msdu.payload).expect("it is long enough");
        self.0.borrow_mut().born.insert(number, now_ns);
    }

    fn delivered(&mut self, now_ns: u64, _: u32, msdu: &Msdu<'_>) {
        let (_, number, _) = parse_header(msdu.payload).expect("it is long enough");
        let seen = &mut *self.0.borrow_mut();
        match seen.up.entry(number) {
            Entry::Vacant(place) => {
                place.insert(now_ns);
            }
            Entry::Occupied(_) => seen.again.push(number),
        }
    }
}

/// Of the messages that were born in the 100 ms behind hand-overs.
#[derive(Clone, Debug, Default)]
struct Behind {
    messages: usize,
    /// Not handed up anywhere within their lifetime.
    missed: usize,
    /// Handed up at both access points.
    twice: usize,
    /// Data frames on the air in these 100 ms.
    frames: usize,
    /// From birth to the first access point, ns, in rising order.
    latency_ns: Vec<u64>,
    /// Without an ACK around the hand-over at most, ns.
    gap_ns: u64,
    counters: Vec<RoamCounters>,
}

impl Behind {
    fn and(mut self, other: Behind) -> Behind {
        self.messages += other.messages;
        self.missed += other.missed;
        self.twice += other.twice;
        self.frames += other.frames;
        self.latency_ns.extend(other.latency_ns);
        self.latency_ns.sort_unstable();
        self.gap_ns = self.gap_ns.max(other.gap_ns);
        self.counters.extend(other.counters);
        self
    }

    fn latency_us(&self, share: f64) -> f64 {
        let last = self.latency_ns.len() - 1;
        self.latency_ns[(last as f64 * share) as usize] as f64 / 1e3
    }
}

/// One walk from 30 to 60 m on an air that loses this share of the station's frames, and half as many of the ACKs.
fn hand_over(copies: bool, loss: f64, lifetime_ns: u64, seed: u64) -> Behind {
    const OVERLAP_NS: u64 = 100 * MS;
    let mut world = hall(true, copies, seed);
    goes(&mut world, 0, 30.0, 151);
    for (ap, adapter) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let there = LinkLoss {
            data: Some(Process::Fixed(loss)),
            ..LinkLoss::default()
        };
        let back = LinkLoss {
            response: Some(Process::Fixed(loss / 2.0)),
            ..LinkLoss::default()
        };
        world.set_adapter_loss((2, adapter), (ap, 0), there);
        world.set_adapter_loss((ap, 0), (2, adapter), back);
    }
    // hand-overs come at the same time in all walks
    let phase_ns = 1_500 * MS + seed * 7_919_000 % (20 * MS);
    world.add_traffic(2, each_20_ms(APS[0], phase_ns, lifetime_ns, None));
    let seen = Rc::new(RefCell::new(Seen::default()));
    world.set_observer(Box::new(Eye(seen.clone())));
    let counters = |world: &World<Node>| match world.protocol(2) {
        Node::Station(s) => s.inner().counters(),
        Node::Ap(_) => unreachable!("the third node is the station"),
    };
    let mut overlaps: Vec<Range<u64>> = Vec::new();
    for ms in 1..=16_000 {
        world.run_until(ms * MS);
        if counters(&world).handovers > overlaps.len() as u64 {
            overlaps.push(ms * MS..ms * MS + OVERLAP_NS);
        }
    }
    let seen = seen.borrow();
    let within = |at: u64| overlaps.iter().any(|o| o.contains(&at));
    let mut behind = Behind {
        frames: seen.frames.iter().filter(|at| within(**at)).count(),
        counters: vec![counters(&world)],
        gap_ns: counters(&world).longest_gap_ns,
        ..Behind::default()
    };
    for (number, born) in seen.born.iter().filter(|(_, born)| within(**born)) {
        behind.messages += 1;
        behind.twice += usize::from(seen.again.contains(number));
        match seen.up.get(number).map(|at| at - born) {
            Some(ns) if ns <= lifetime_ns => behind.latency_ns.push(ns),
            _ => behind.missed += 1,
        }
    }
    behind
}

/// Walks of so many seeds.
fn hand_overs(copies: bool, loss: f64, lifetime_ns: u64, seeds: u64) -> Behind {
    let walks = (0..seeds).into_par_iter();
    let all: Vec<Behind> = walks
        .map(|seed| hand_over(copies, loss, lifetime_ns, seed))
        .collect();
    all.into_iter().fold(Behind::default(), Behind::and)
}

/// Copies cost frames, and buy what is in time although one link is bad: of messages with a short life fewer are missed. Those that live
/// for long have time for a second chance.
#[test]
fn copies_help_those_in_a_hurry() {
    let quiet = hand_overs(true, 0.0, MS, 16);
    assert!(quiet.messages >= 70, "{quiet:?}");
    assert_eq!(quiet.missed, 0, "{quiet:?}");
    let [plain, copied] = [false, true].map(|copies| hand_overs(copies, 0.5, MS, 60));
    assert!(2 * copied.missed < plain.missed, "{plain:?} {copied:?}");
    assert!(copied.frames > plain.frames, "{plain:?} {copied:?}");
    assert!(
        plain.counters.iter().all(|c| (c.copies, c.duplicates) == (0, 0)),
        "{plain:?}"
    );
    let sum = |of: fn(&RoamCounters) -> u64| copied.counters.iter().map(of).sum::<u64>() as usize;
    // at both access points arrives what both have acknowledged, and what the ACK was lost of
    assert!(sum(|c| c.duplicates) > 0, "{copied:?}");
    assert!(copied.twice >= sum(|c| c.duplicates), "{copied:?}");
    // with the last one of an overlap comes one of the next 100 ms
    assert!(
        sum(|c| c.copies) <= copied.messages + copied.counters.len(),
        "{copied:?}"
    );
}

/// The table of the book.
#[test]
#[ignore = "takes minutes: the table of the book"]
fn table() {
    println!("| lost | lifetime | copies | missed | median, p99 | longest gap | frames | at both |");
    println!("|---|---|---|---|---|---|---|---|");
    for lifetime_ms in [1, 2, 20] {
        for loss in [0.0, 0.1, 0.3, 0.5] {
            for copies in [false, true] {
                let b = hand_overs(copies, loss, lifetime_ms * MS, 1_000);
                println!(
                    "| {loss} | {lifetime_ms} ms | {copies} | {} of {} | {:.0}, {:.0} us | {:.1} ms | {:.2} | {} |",
                    b.missed,
                    b.messages,
                    b.latency_us(0.5),
                    b.latency_us(0.99),
                    b.gap_ns as f64 / 1e6,
                    b.frames as f64 / b.messages as f64,
                    b.twice,
                );
            }
        }
    }
}
