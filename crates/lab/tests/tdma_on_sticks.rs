//! The schedule of `hwsim/tdma.rs` on emulated AR9170 sticks: an access point and two stations, heard by an adapter of the
//! simulator. Clocks of hosts and sticks drift, each in its own way.

use ar9170::driver::Config;
use ar9170::emulated::Knobs;
use frame::mac::Header;
use frame::{Band, MacAddr, Phy, Rate, airtime};
use lab::testbed::ar9170::{Computer, computer, node};
use protocols::mac::data::Identity;
use protocols::mac::sender::{Sender, SenderConfig};
use protocols::mac::sync::{Sync, SyncConfig};
use protocols::mac::tdma::schedule::{BeaconSlot, Flow, Release, SlotCosts, SlotUse, TdmaPlan};
use protocols::mac::tdma::{Tdma, TdmaConfig};
use radio::{
    AdapterId, Attribute, Checked, Duration, Event, Indication, Instant, Msdu, Protocol, Queue, Radio,
};
use sim::World;
use sim::clock::Clock;
use sim::medium::{LossModel, MediumConfig, Position};

type Stack = Tdma<Sender, 16, 256>;

const RATE: Rate = Rate::OFDM_54;
const CYCLE: Duration = Duration::from_ms(10);
const CYCLES: u64 = 2_000;
/// What a transfer takes on the emulated USB.
const TRANSFER: Duration = Duration::from_us(125);

fn plan(all: [MacAddr; 3]) -> TdmaPlan {
    let [ap, a, b] = all;
    let flow = |from, to| Flow {
        from,
        to,
        payload_octets: 50,
    };
    // a frame is with the stick after one transfer, or after two if another one is on its way
    let release = Release {
        min: TRANSFER,
        high: TRANSFER.times(2),
    };
    // a beacon is with its host after one transfer, or sooner if one is on its way already
    let costs = SlotCosts::new(Phy::G, RATE, release, Duration::from_us(200));
    let beacon = BeaconSlot {
        from: ap,
        octets: 60,
        rate: Rate::OFDM_6,
        every: 5,
    };
    let flows = [flow(ap, a), flow(a, ap), flow(ap, b), flow(b, ap)];
    TdmaPlan::new(&flows, CYCLE, Some(beacon), &costs).unwrap()
}

fn stack(me: usize, all: [MacAddr; 3]) -> Stack {
    let holdover = Duration::from_ms(1_000);
    let (identity, sync) = match me {
        0 => (
            Identity::access_point(all[0]),
            SyncConfig::own(Band::Ghz2_4, holdover),
        ),
        _ => (
            Identity::station(all[me], all[0]),
            SyncConfig {
                latency: TRANSFER,
                ..SyncConfig::new(Band::Ghz2_4, holdover)
            },
        ),
    };
    let config = TdmaConfig::new(all[me], plan(all), Sync::tracking(sync), all[0], Queue::Voice);
    Tdma::new(config, Sender::new(SenderConfig::new(identity, RATE)))
}

/// A frame that was on the air: its first bit in network time, us, and who sent it.
struct Heard {
    at_us: i64,
    from: MacAddr,
    is_beacon: bool,
}

/// Hears everything. Network time is what the beacons say.
#[derive(Default)]
struct Ear {
    /// Network time less the adapter's.
    ahead_us: Option<i64>,
    heard: Vec<Heard>,
}

impl Ear {
    fn note(&mut self, received: &Indication<'_>, is_beacon: bool) {
        let begun_us = received.tsf.expect("its adapter tells").0 as i64;
        let from = Header::parse(received.frame).unwrap().transmitter();
        if let (Some(ahead), Some(from)) = (self.ahead_us, from) {
            let at_us = begun_us + ahead - (airtime::first_bit_ns(received.rate) / 1_000) as i64;
            self.heard.push(Heard {
                at_us,
                from,
                is_beacon,
            });
        }
    }
}

impl Protocol for Ear {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => {
                let token = radio.token();
                radio.set(token, AdapterId::FIRST, Attribute::Promiscuous(true));
            }
            Event::Indication(received) => self.note(&received, false),
            Event::Beacon(beacon) => {
                let to_timestamp = (airtime::octets_ns(24, beacon.received.rate) / 1_000) as i64;
                let first_bit = beacon.received.tsf.expect("its adapter tells");
                self.ahead_us = Some(beacon.timestamp.minus(first_bit) - to_timestamp);
                self.note(&beacon.received, true);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

enum Node {
    Stick(Box<Computer<Checked<Stack>>>),
    Ear(Ear),
}

impl Protocol for Node {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Node::Stick(stick) => stick.handle(now, event, radio),
            Node::Ear(ear) => ear.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Node::Stick(stick) => stick.deadline(),
            Node::Ear(ear) => ear.deadline(),
        }
    }
}

#[test]
fn everybody_in_its_slot() {
    const S: u64 = 1_000_000_000;
    let all = [1, 2, 3].map(MacAddr::local);
    let medium = MediumConfig {
        loss: LossModel::FixedPower(-50.0),
        ..MediumConfig::default()
    };
    let mut world = World::new(&medium, 1);
    let drifts = [(20_000, -20_000), (-20_000, 15_000), (0, 20_000)];
    for (i, (host, stick)) in drifts.into_iter().enumerate() {
        let mut config = node(all[i], Position::new(i as f64, 0.0));
        let clock = |drift_ppb| Clock {
            drift_ppb,
            ..Clock::default()
        };
        (config.clock, config.adapters[0].tsf) = (clock(host), clock(stick));
        let protocol = Checked::strict(stack(i, all));
        let computer = computer(all[i], Config::default(), Knobs::default(), protocol);
        world.add_node(config, Node::Stick(Box::new(computer)));
    }
    let ear = node(MacAddr::local(9), Position::new(3.0, 0.0));
    world.add_node(ear, Node::Ear(Ear::default()));
    // by then all clocks have heard their beacons
    let start = S;
    for cycle in 0..CYCLES {
        world.run_until(start + cycle * CYCLE.as_ns());
        for (from, to) in [(0, 1), (0, 2), (1, 0), (2, 0)] {
            world.act(from, |node, now, radio| {
                let payload = [cycle as u8; 50];
                let msdu = Msdu {
                    deadline: Some(now + CYCLE.times(3)),
                    category: frame::AccessCategory::Voice,
                    ..Msdu::new(all[to], &payload)
                };
                node.handle(now, Event::Submit(msdu), radio);
            });
        }
    }
    world.run_until(start + (CYCLES + 3) * CYCLE.as_ns());
    let plan = plan(all);
    for me in 0..3 {
        let Node::Stick(stick) = world.protocol(me) else {
            unreachable!("the first three have sticks")
        };
        let tdma = stick.protocol().inner();
        let c = tdma.counters();
        println!("{c:?}, {:?}", tdma.sync().counters());
        let flows = if me == 0 { 2 } else { 1 };
        assert_eq!(
            (c.released, c.failed, c.no_slot),
            (flows * CYCLES, 0, 0),
            "node {me}: {c:?}"
        );
        assert_eq!(tdma.access_taken(), Some(true));
    }
    let Node::Ear(ear) = world.protocol(3) else {
        unreachable!("the last one hears")
    };
    let beacons = ear.heard.iter().filter(|h| h.is_beacon).count() as u64;
    assert!(beacons >= CYCLES / 5, "{beacons}");
    assert_eq!(ear.heard.len() as u64 - beacons, 4 * CYCLES);
    // how far each frame is from the beginning of a slot in which it may be: the nearest one
    let cycle_us = CYCLE.as_us() as i64;
    let from_slot_us = |heard: &Heard| {
        let may_send = |owner| match owner {
            SlotUse::Flow { flow, .. } => plan.flow(flow).unwrap().from == heard.from,
            SlotUse::Beacon => all[0] == heard.from,
            SlotUse::Shared | SlotUse::Ask => false,
        };
        let behind = |start: Duration| {
            let us = (heard.at_us - start.as_us() as i64).rem_euclid(cycle_us);
            if us > cycle_us / 2 { us - cycle_us } else { us }
        };
        let own = plan.slots().filter(|slot| may_send(slot.owner));
        own.map(|slot| behind(slot.start))
            .min_by_key(|us| us.abs())
            .unwrap()
    };
    let all_us = || ear.heard.iter().map(from_slot_us);
    let (first, last) = (all_us().min().unwrap(), all_us().max().unwrap());
    println!("{first} to {last} us from the beginning of a slot");
    let (error, guard) = (plan.costs().sync_error, plan.costs().guard());
    assert!(
        first >= -(error.as_us() as i64) && last <= guard.as_us() as i64,
        "{first} to {last} us"
    );
}
