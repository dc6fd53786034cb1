//! A station walks from one access point to the next, with one adapter and with two. Behind the access points is a wire that takes
//! no time, and what came in twice goes on once.

#[path = "shared/ways.rs"]
mod ways;

use std::cell::RefCell;
use std::rc::Rc;

use frame::{AccessCategory, MacAddr, Phy, Rate};
use protocols::mac::beacon::{Beaconer, BeaconerConfig};
use protocols::mac::data::Identity;
use protocols::mac::roam::gate::Gate;
use protocols::mac::roam::wire::Arrivals;
use protocols::mac::roam::{Roam, RoamConfig, RoamCounters};
use protocols::mac::sender::{Sender, SenderConfig};
use radio::{AdapterId, Checked, Duration, Event, Instant, Protocol, Radio, TxHow};
use sim::{AdapterConfig, MediumConfig, NodeConfig, Pattern, Position, Traffic, World};
use ways::{Way, Ways};

const MS: u64 = 1_000_000;
const APS: [MacAddr; 2] = [MacAddr::local(1), MacAddr::local(2)];
const ME: MacAddr = MacAddr::local(3);
const CHANNELS: [u16; 2] = [5180, 5745];

#[allow(clippy::large_enum_variant, reason = "three nodes")]
enum Node {
    Ap(Checked<Door>),
    Station(Checked<Roam<Sender>>),
}

type Wire = Rc<RefCell<Arrivals>>;

/// An access point at the wire.
struct Door {
    inner: Beaconer<Gate<Sender>>,
    wire: Wire,
}

impl Protocol for Door {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Indication(i) if !self.wire.borrow_mut().is_first(i.frame, now) => {}
            _ => self.inner.handle(now, event, radio),
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }
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

fn ap(me: MacAddr, wire: &Wire) -> Door {
    let config = BeaconerConfig::new(me, Duration::from_us(102_400), Rate::OFDM_6);
    let sender = Sender::new(SenderConfig::new(Identity::access_point(me), Rate::OFDM_6));
    Door {
        inner: Beaconer::new(config, Gate::new(me, Rate::OFDM_6, sender)),
        wire: Rc::clone(wire),
    }
}

fn station(second: Option<AdapterId>) -> Roam<Sender> {
    let config = RoamConfig::new(ME, APS[0], &CHANNELS, (AdapterId(0), second), Rate::OFDM_6);
    let mut sender = SenderConfig::new(Identity::station(ME, APS[0]), Rate::OFDM_6);
    sender.how = TxHow::multi_shot(Rate::OFDM_6, 3);
    Roam::new(config, Sender::new(sender))
}

/// Access points at 0 and 80 m, each of which is heard for 51 m, and a station at 10 m, the third node.
fn hall(two: bool, seed: u64) -> World<Node> {
    let mut world: World<Node> = World::new(&MediumConfig::default(), seed);
    let wire = Wire::default();
    for (i, me) in APS.into_iter().enumerate() {
        let adapter = AdapterConfig::station(me, Phy::A, CHANNELS[i], false);
        let place = Position::new(80.0 * i as f64, 0.0);
        let node = Node::Ap(Checked::strict(ap(me, &wire)));
        world.add_node(NodeConfig::ideal(place, adapter), node);
    }
    let second = two.then_some(AdapterId(1));
    let adapter = |mhz| AdapterConfig::station(ME, Phy::A, mhz, false);
    let mut config = NodeConfig::ideal(Position::new(10.0, 0.0), adapter(CHANNELS[0]));
    if two {
        config.adapters.push(adapter(CHANNELS[1]));
    }
    let node = Checked::strict(station(second)).with_twin(station(second));
    world.add_node(config, Node::Station(node));
    world
}

/// What a walk cost.
#[derive(Debug)]
struct Walked {
    counters: RoamCounters,
    at: MacAddr,
    /// Messages that did not come out of the wire within their 20 ms, and that came out again.
    missed: u64,
    again: u64,
    /// Copies that the wire dropped.
    dropped: u64,
}

/// From 10 to 70 m at 2 m/s; a frame every 20 ms.
fn walk(two: bool, seed: u64) -> Walked {
    let mut world = hall(two, seed);
    let me = 2;
    for step in 0..300u32 {
        let at = 2_000 * MS + u64::from(step) * 100 * MS;
        world.plan_move(at, me, Position::new(10.0 + 0.2 * f64::from(step), 0.0));
    }
    world.add_traffic(
        me,
        Traffic {
            to: APS[0],
            category: AccessCategory::BestEffort,
            octets: 50,
            pattern: Pattern::Periodic {
                period_ns: 20 * MS,
                phase_ns: 1_500 * MS,
            },
            lifetime_ns: Some(20 * MS),
            count: Some(1_600),
        },
    );
    let messages = Ways::default();
    world.set_observer(Box::new(messages.clone()));
    world.run_until(34_000 * MS);
    let (Node::Station(s), Node::Ap(door)) = (world.protocol(me), world.protocol(0)) else {
        unreachable!("the third node is the station");
    };
    let messages = messages.0.borrow();
    assert_eq!(messages.len(), 1_600);
    let in_time = |w: &&Way| w.up_ns.is_some_and(|t| t - w.down_ns <= 20 * MS);
    Walked {
        counters: *s.inner().counters(),
        at: s.inner().access_point().expect("it is let in"),
        missed: (messages.len() - messages.values().filter(in_time).count()) as u64,
        again: messages.values().map(|w| u64::from(w.again)).sum(),
        dropped: door.inner().wire.borrow().dropped(),
    }
}

/// Two adapters miss no deadline; one misses those of the time in which it finds out, listens and asks. What the station counts as
/// missed is what does not come out of the wire in time. In the overlap of 100 ms each message goes over both access points, which
/// the wire notices.
#[test]
fn two_adapters_hand_over_without_a_miss() {
    for seed in 1..4 {
        let two = walk(true, seed);
        let c = two.counters;
        assert_eq!((c.handovers, two.at), (1, APS[1]), "{two:?}");
        assert_eq!((c.missed_in_handover, c.missed_else), (0, 0), "{two:?}");
        assert_eq!((two.missed, two.again), (0, 0), "{two:?}");
        assert!(c.longest_gap_ns < 40 * MS, "{two:?}");
        assert!((4..=10).contains(&c.duplicated), "{two:?}");
        // the old access point is 10 m or more further away, and still in reach
        assert!(c.twice > 0 && c.twice <= c.duplicated, "{two:?}");
        assert!(two.dropped >= c.twice, "{two:?}");
        let one = walk(false, seed);
        let c = one.counters;
        assert_eq!((c.handovers, one.at), (1, APS[1]), "{one:?}");
        assert!(c.missed_in_handover >= 10, "{one:?}");
        assert_eq!((c.duplicated, one.again), (0, 0), "{one:?}");
        // one whose ACKs all get lost is not missed
        assert!(one.missed <= c.missed_in_handover + c.missed_else, "{one:?}");
        assert!(one.missed + 3 >= c.missed_in_handover + c.missed_else, "{one:?}");
        assert!((300 * MS..1_500 * MS).contains(&c.longest_gap_ns), "{one:?}");
    }
}

/// The second adapter listens where the first one does not: else both would acknowledge what comes down, at once, and neither
/// would be understood.
#[test]
fn one_adapter_acknowledges() {
    let unacknowledged = |two| {
        let mut world = hall(two, 1);
        let down = Traffic {
            to: ME,
            category: AccessCategory::BestEffort,
            octets: 50,
            pattern: Pattern::Periodic {
                period_ns: 20 * MS,
                phase_ns: 1_500 * MS,
            },
            lifetime_ns: Some(20 * MS),
            count: Some(400),
        };
        world.add_traffic(0, down);
        world.run_until(10_000 * MS);
        let ap = world.counters(0, 0);
        assert!(ap.tx_acked >= 400, "{ap:?}");
        ap.tx_frames - ap.tx_acked
    };
    let beacons = unacknowledged(false);
    assert_eq!((beacons, unacknowledged(true)), (98, 98));
}
