//! A station walks from one access point to the next, with one adapter and with two.

use frame::{AccessCategory, MacAddr, Phy, Rate};
use protocols::mac::beacon::{Beaconer, BeaconerConfig};
use protocols::mac::data::Identity;
use protocols::mac::roam::gate::Gate;
use protocols::mac::roam::{Roam, RoamConfig, RoamCounters};
use protocols::mac::sender::{Sender, SenderConfig};
use radio::{AdapterId, Checked, Duration, Event, Instant, Protocol, Radio, TxHow};
use sim::{AdapterConfig, MediumConfig, NodeConfig, Pattern, Position, Traffic, World};

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

fn station(second: Option<AdapterId>) -> Roam<Sender> {
    let config = RoamConfig::new(ME, APS[0], &CHANNELS, (AdapterId(0), second), Rate::OFDM_6);
    let mut sender = SenderConfig::new(Identity::station(ME, APS[0]), Rate::OFDM_6);
    sender.how = TxHow::multi_shot(Rate::OFDM_6, 3);
    Roam::new(config, Sender::new(sender))
}

/// Access points at 0 and 80 m, each of which is heard for 51 m, and a station at 10 m, the third node.
fn hall(two: bool, seed: u64) -> World<Node> {
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
    let node = Checked::strict(station(second)).with_twin(station(second));
    world.add_node(config, Node::Station(node));
    world
}

/// From 10 to 70 m at 2 m/s; a frame every 20 ms.
fn walk(two: bool, seed: u64) -> (RoamCounters, MacAddr) {
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
    world.run_until(34_000 * MS);
    let Node::Station(s) = world.protocol(me) else {
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
