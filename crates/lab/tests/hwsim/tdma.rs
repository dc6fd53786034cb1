//! A static schedule of slots: an access point and two stations, heard by a fourth radio.

use super::*;
use frame::mac::Header;
use frame::{Band, Phy};
use linux::wifi::TsfSource;
use protocols::mac::data::Identity;
use protocols::mac::sender::{Sender, SenderConfig};
use protocols::mac::sync::{Sync, SyncConfig};
use protocols::mac::tdma::schedule::{BeaconSlot, Flow, Release, SlotCosts, SlotUse, TdmaPlan};
use protocols::mac::tdma::{Tdma, TdmaConfig};
use radio::{AdapterId, Attribute, Event, Plane, Queue, Radio};

type Stack = Tdma<Sender, 16, 256>;

const CYCLE: Duration = Duration::from_ms(10);
const CYCLES: u64 = 100;
const US: fn(u64) -> Duration = Duration::from_us;

fn plan(all: [MacAddr; 3]) -> TdmaPlan {
    let [ap, a, b] = all;
    let flow = |from, to| Flow {
        from,
        to,
        payload_octets: 50,
    };
    let release = Release {
        min: US(0),
        high: US(100),
    };
    // A beacon takes no time on hwsim's own medium, and followers reckon with its airtime: they are that much ahead.
    let costs = SlotCosts::new(Phy::A, RATE, release, US(200));
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
            SyncConfig::own(Band::Ghz5, holdover),
        ),
        _ => (
            Identity::station(all[me], all[0]),
            SyncConfig::new(Band::Ghz5, holdover),
        ),
    };
    let config = TdmaConfig::new(all[me], plan(all), Sync::tracking(sync), all[0], Queue::Voice);
    Tdma::new(config, Sender::new(SenderConfig::new(identity, RATE)))
}

/// Hears everything, with the time at which the kernel had it.
#[derive(Default)]
struct Ear(Vec<(Instant, MacAddr, bool)>);

impl Protocol for Ear {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let heard = match event {
            Event::Start => {
                let token = radio.token();
                return radio.set(token, AdapterId::FIRST, Attribute::Promiscuous(true));
            }
            Event::Indication(i) => i,
            Event::Beacon(b) => b.received,
            _ => return,
        };
        let from = Header::parse(heard.frame).unwrap().transmitter();
        let at = heard
            .stamps
            .get_host(Plane::T8)
            .or(heard.stamps.get_host(Plane::T9));
        let is_beacon = matches!(event, Event::Beacon(_));
        self.0
            .extend(from.zip(at).map(|(from, at)| (at, from, is_beacon)));
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn everybody_in_its_slot() {
    let Some((_lab, radios)) = lab() else { return };
    let master = Adapter::open(AdapterConfig {
        tsf: TsfSource::Computer,
        ..AdapterConfig::new(&radios[0], CHANNEL)
    });
    let adapters = [master.unwrap(), open(&radios[1]), open(&radios[2])];
    let all = [0, 1, 2].map(|i: usize| adapters[i].address());
    let ear = open(&radios[3]);
    let start = Host::now() + Duration::from_ms(500); // By then all clocks have heard their beacons.
    let until = start + CYCLE.times(CYCLES + 3);
    let app = |me: usize| {
        let to: &[MacAddr] = if me == 0 { &all[1..] } else { &all[..1] };
        let submit = |cycle: u64| {
            let at = start + CYCLE.times(cycle);
            to.iter()
                .map(move |to| (at, *to, vec![cycle as u8; 50], CYCLE.times(3)))
        };
        App {
            plan: (0..CYCLES).flat_map(submit).collect(),
            ..App::default()
        }
    };
    let mut adapters = adapters.into_iter();
    let (nodes, heard) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|me| {
                let (adapter, app) = (adapters.next().unwrap(), app(me));
                scope.spawn(move || drive(adapter, stack(me, all), app, until))
            })
            .collect();
        let heard = drive(ear, Ear::default(), App::default(), until).protocol.0;
        let nodes: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        (nodes, heard)
    });
    let plan = plan(all);
    for (me, node) in nodes.iter().enumerate() {
        let c = node.protocol.counters();
        let flows = if me == 0 { 2 } else { 1 };
        assert_eq!(
            (c.released, c.failed, c.no_slot),
            (flows * CYCLES, 0, 0),
            "node {me}: {c:?}"
        );
        assert_eq!(node.app.delivered.len() as u64, flows * CYCLES, "node {me}");
        assert_eq!(
            node.protocol.access_taken(),
            Some(false),
            "Linux has no way to set it"
        );
        assert_replays(node, stack(me, all));
    }
    let beacons = heard.iter().filter(|h| h.2).count() as u64;
    assert!(beacons >= CYCLES / 5, "{beacons}");
    assert_eq!(heard.len() as u64 - beacons, 4 * CYCLES);
    // Network time is the master's timer, which is its computer's clock; and all share one computer. A follower is ahead
    // by up to the error that the plan allows, and the stamps of the kernel are a few us off.
    let error = plan.costs().sync_error;
    for (at, from, _) in &heard {
        let may_send = |owner| match owner {
            SlotUse::Flow { flow, .. } => plan.flow(flow).unwrap().from == *from,
            SlotUse::Beacon => all[0] == *from,
            SlotUse::Shared => true,
            SlotUse::Ask => false,
        };
        // Counted from that error before the cycle: its first slot may begin in the one before.
        let after = Duration::from_ns((*at + error).as_ns() % CYCLE.as_ns());
        let in_slot = plan
            .slots()
            .any(|s| s.start <= after && after < s.start + s.length + error && may_send(s.owner));
        assert!(in_slot, "{from} {after:?} after {error:?} before the cycle");
    }
}
