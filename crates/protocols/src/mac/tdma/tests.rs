//! Whole cells, in a room without carrier sense: whoever leaves its slot is seen to collide.

use super::schedule::{BeaconSlot, Flow, LinkKind, PlanError, Release, SlotCosts, SlotUse};
use super::*;
use crate::mac::data::{Framer, Identity};
use crate::mac::edf::{Edf, EdfConfig, cost::CostEstimate};
use crate::mac::sender::{Sender, SenderConfig};
use crate::mac::sync::{NetworkTime, SyncConfig};
use crate::testing::{Clock, Delays, Dice, Fate, Probe, Room};
use frame::{Band, Phy, Rate, RateSet};
use proptest::prelude::*;
use radio::Checked;
use std::vec::Vec;

const AP: MacAddr = MacAddr::local(0);
const US: fn(u64) -> Duration = Duration::from_us;
const CYCLE_US: u64 = 4_000;
const CYCLE_NS: u64 = CYCLE_US * 1_000;

type Stack = Tdma<Sender, 16, 256>;

fn node(i: u32) -> MacAddr {
    MacAddr::local(i)
}

/// The release path of the room: 10 us, and at most 4 us more because of late timers.
fn costs(sync_error: Duration) -> SlotCosts {
    let release = Release {
        min: US(10),
        high: US(14),
    };
    SlotCosts {
        basic: RateSet::OFDM_6_ONLY,
        ..SlotCosts::new(Phy::A, Rate::OFDM_54, release, sync_error)
    }
}

fn plan(nodes: u32, cycle_us: u64, beacon: bool, sync_error: Duration) -> Result<TdmaPlan, PlanError> {
    let flow = |from, to| Flow {
        from,
        to,
        payload_octets: 50,
    };
    let both = |i| [flow(AP, node(i)), flow(node(i), AP)];
    let flows: Vec<_> = (1..=nodes).flat_map(both).collect();
    let beacon = beacon.then_some(BeaconSlot {
        from: AP,
        octets: 60,
        rate: Rate::OFDM_6,
        every: 5,
    });
    TdmaPlan::new(&flows, US(cycle_us), beacon, &costs(sync_error))
}

fn identity(me: MacAddr) -> Identity {
    if me == AP {
        Identity::access_point(AP)
    } else {
        Identity::station(me, AP)
    }
}

fn config(me: MacAddr, nodes: u32, cycle_us: u64) -> TdmaConfig {
    let plan = plan(nodes, cycle_us, false, US(0)).unwrap();
    TdmaConfig::new(me, plan, Sync::perfect(0), AP, Queue::Voice)
}

fn sender(me: MacAddr) -> Sender {
    Sender::new(SenderConfig::new(identity(me), Rate::OFDM_54))
}

/// A controller (0) and `nodes` nodes with ideal clocks and the given cycle.
fn cell(seed: u64, nodes: u32, cycle_us: u64) -> Room {
    let mut room = Room::new(seed);
    room.carrier_sense = false;
    room.delays.timer_ns = 0..=4_000;
    for i in 0..=nodes {
        room.add(node(i), move || {
            Stack::new(config(node(i), nodes, cycle_us), sender(node(i)))
        });
    }
    room
}

/// One payload each way in each cycle from `first` on: `[direction, node, cycle]` and 47 zeroes, with the end of the
/// cycle as the deadline.
fn submit(room: &mut Room, nodes: u32, first: u64, cycles: u64) {
    for cycle in first..first + cycles {
        let (at, until) = (cycle * CYCLE_NS, (cycle + 1) * CYCLE_NS);
        for i in 1..=nodes {
            let mut payload = [0; 50];
            payload[..3].copy_from_slice(&[0, i as u8, cycle as u8]);
            room.submit(at.saturating_sub(100_000), 0, node(i), &payload, Some(until));
            payload[0] = 1;
            room.submit(at.saturating_sub(50_000), i as usize, AP, &payload, Some(until));
        }
    }
}

/// The slot in which network time `at_ns` is within the guard of a slot, and whose that is.
fn slot_at(plan: &TdmaPlan, at_ns: u64) -> Option<(usize, SlotUse, MacAddr)> {
    let in_cycle = Duration::from_ns(at_ns % plan.cycle().as_ns());
    let guard = plan.costs().guard();
    let (i, slot) = plan
        .slots()
        .enumerate()
        .find(|(_, s)| s.start <= in_cycle && in_cycle <= s.start + guard)?;
    let whose = match slot.owner {
        SlotUse::Flow { flow, .. } => plan.flow(flow)?.from,
        _ => AP,
    };
    Some((i, slot.owner, whose))
}

/// With ideal clocks: every frame started within the guard of a slot that its node may use.
fn assert_in_slots(room: &Room, plan: &TdmaPlan) {
    for f in &room.flights {
        let (_, owner, whose) =
            slot_at(plan, f.start_ns).unwrap_or_else(|| panic!("outside of slots: {f:?}"));
        let from = Header::parse(&f.frame).unwrap().transmitter().unwrap();
        assert!(
            owner == SlotUse::Shared || whose == from,
            "in the slot of another: {f:?}"
        );
    }
}

/// A change takes the way of a request. A frame may begin at the end of the guard, and clocks may be apart: it listens until such a one
/// is over, too.
#[test]
fn reception_is_asked_for_in_time() {
    let plan = plan(1, CYCLE_US, true, US(3)).unwrap();
    let heard = |(index, link)| (link == LinkKind::HearBeacon).then(|| plan.slot(index));
    let beacon = *plan.links(node(1)).find_map(heard).flatten().unwrap();
    let data = |(index, link)| (link == LinkKind::Receive(AP)).then(|| plan.slot(index));
    let data = *plan.links(node(1)).find_map(data).flatten().unwrap();
    let mut config = TdmaConfig::new(node(1), plan, Sync::perfect(0), AP, Queue::Voice);
    config.left_on.reception = false;
    let tdma = Stack::new(config, sender(node(1)));
    let begin = Instant::from_ns(5 * CYCLE_NS) + beacon.start - US(3 + 14);
    let listens = |at| tdma.listening(at).unwrap().0;
    assert!(!listens(begin - Duration::from_ns(1)) && listens(begin));
    let guard = US(4 + 3);
    let end = Instant::from_ns(5 * CYCLE_NS) + data.start + guard + data.exchange + US(3);
    assert!(listens(end - Duration::from_ns(1)) && !listens(end));
}

/// An adapter is not switched off and on again between two slots that follow each other, which takes longer than the way through the host; but
/// ahead of shared ones it is, or what a stranger says would keep the node from sending in them.
#[test]
fn from_slot_to_slot_it_stays_on() {
    let up = |i| Flow {
        from: node(i),
        to: AP,
        payload_octets: 50,
    };
    let flows: Vec<_> = (1..=6).map(up).collect();
    let plan = TdmaPlan::new(&flows, US(CYCLE_US), None, &costs(US(0))).unwrap();
    let (own, shared) = (plan.rounds() * 6, plan.shared());
    assert!(own > 6 && shared > 1);
    let mut config = TdmaConfig::new(AP, plan, Sync::perfect(0), AP, Queue::Voice);
    config.left_on.reception = false;
    let tdma = Stack::new(config, sender(AP));
    let listens = |us| {
        let at = Instant::from_ns(7 * CYCLE_NS + us * 1_000);
        tdma.listening(at).unwrap().0
    };
    let goes_off = (1..CYCLE_US + 100).filter(|us| !listens(*us) && listens(us - 1));
    assert_eq!(goes_off.count(), 1 + shared);
}

/// A jump may have taken its slots to where no beacon is, and a deaf node would not hear one before its holdover is over.
#[test]
fn after_missed_beacons_it_listens() {
    let plan = plan(1, CYCLE_US, true, US(3)).unwrap();
    let interval = 5 * CYCLE_NS;
    let listens = |me, at| {
        let mut sync = Sync::tracking(SyncConfig::new(Band::Ghz5, Duration::from_ms(500)));
        for i in 1..=8 {
            sync.sample(Instant::from_ns(i * interval), NetworkTime(i * interval));
        }
        let mut config = TdmaConfig::new(me, plan.clone(), sync, AP, Queue::Voice);
        config.left_on.reception = false;
        let tdma = Stack::new(config, sender(me));
        // without a clock it listens
        tdma.listening(Instant::from_ns(at)).is_none_or(|l| l.0)
    };
    let deaf = |from: u64, me| {
        let at = |i| from + i * US(100).as_ns();
        (0..interval / US(100).as_ns())
            .filter(|i| !listens(me, at(*i)))
            .count()
    };
    let (last, half) = (8 * interval, interval / 2);
    for missed in 0..10 {
        assert!(
            deaf(last + missed * interval + half, node(1)) > 0,
            "after {missed}"
        );
    }
    assert_eq!(deaf(last + 10 * interval + half + 1, node(1)), 0);
    // its beacons are its own
    assert!(deaf(last + 10 * interval + half + 1, AP) > 0);
}

#[test]
fn everybody_in_its_slot() {
    let mut room = cell(1, 8, CYCLE_US);
    submit(&mut room, 8, 1, 20);
    room.run_until(22 * CYCLE_NS);
    assert_eq!(
        (
            room.flights.len(),
            room.delivered.len(),
            room.collisions().count()
        ),
        (320, 320, 0)
    );
    assert_in_slots(&room, &plan(8, CYCLE_US, false, US(0)).unwrap());
    for d in &room.delivered {
        assert_eq!(d.at_ns / CYCLE_NS, d.payload[2].into(), "in its cycle");
    }
    let p = room.protocol::<Stack>(0);
    assert_eq!(
        (p.counters().released, p.counters().failed, p.counters().overruns),
        (160, 0, 0)
    );
    assert_eq!(p.access_taken(), Some(true));
    room.close();
}

/// A cell with 13 shared slots behind those of eight stations, where each frame is lost once.
fn repetitions_arrive() -> (Room, TdmaPlan) {
    let mut room = cell(1, 8, CYCLE_US);
    let plan = plan(8, CYCLE_US, false, US(0)).unwrap();
    assert_eq!((plan.rounds(), plan.shared()), (1, 13));
    room.script(|a| {
        if a.frame[1] & 8 == 0 {
            Fate::DataLost
        } else {
            Fate::Arrives
        }
    });
    (room, plan)
}

/// Over many cycles every shared slot is taken about equally often by a node with one failed frame.
#[test]
fn shared_slots_are_chosen_evenly() {
    let (mut room, plan) = repetitions_arrive();
    for cycle in 0..1_300u64 {
        room.submit(cycle * CYCLE_NS, 5, AP, &[0; 50], None);
    }
    room.run_until(1_301 * CYCLE_NS);
    let mut counts = [0; 13];
    for f in room.flights.iter().filter(|f| f.frame[1] & 8 != 0) {
        counts[slot_at(&plan, f.start_ns).unwrap().0 - 16] += 1;
    }
    assert_eq!(counts.iter().sum::<u32>(), 1_300);
    // 100 each; a binomial spread of 9.6
    assert!(counts.iter().all(|n| (60..=140).contains(n)), "{counts:?}");
    assert_eq!(room.collisions().count(), 0);
    room.close();
}

#[test]
fn a_host_that_can_hold_frames_back_is_used() {
    let mut room = Room::new(1);
    room.carrier_sense = false;
    room.holds_back = true;
    room.delays.request_ns = 10_000..=14_000;
    let make = || {
        let hold_back = true;
        Stack::new(
            TdmaConfig {
                hold_back,
                ..config(node(1), 1, 1_000)
            },
            sender(node(1)),
        )
    };
    room.add(node(1), make);
    room.submit(0, 0, AP, &[0; 50], None);
    room.submit(900_000, 0, AP, &[0; 50], None);
    room.run_until(5_000_000);
    let starts: Vec<_> = room.flights.iter().map(|f| f.start_ns).collect();
    assert_eq!(starts, [134_000, 1_134_000], "exactly at the slots");
    room.close();
}

#[test]
fn what_has_no_slot_is_refused() {
    let mut room = cell(1, 1, 1_000);
    room.submit(0, 0, node(7), &[0; 50], None);
    room.submit(0, 0, node(1), &[0; 200], None);
    room.submit(0, 0, MacAddr::BROADCAST, &[0; 5], None);
    room.run_until(5_000_000);
    let p = room.protocol::<Stack>(0);
    assert_eq!(
        (p.counters().no_slot, p.protocol().counters().confirms.refused),
        (3, 3)
    );
    assert_eq!(room.flights.len(), 0);
    room.close();
}

#[test]
fn without_a_clock_it_is_silent() {
    let mut room = Room::new(1);
    let make = || {
        let sync = Sync::tracking(SyncConfig::new(Band::Ghz5, Duration::from_ms(300)));
        Stack::new(
            TdmaConfig {
                sync,
                ..config(node(1), 1, 1_000)
            },
            sender(node(1)),
        )
    };
    room.add(node(1), make);
    room.submit(0, 0, AP, &[0; 50], Some(3_000_000));
    room.run_until(10_000_000);
    assert_eq!(room.flights.len(), 0);
    let p = room.protocol::<Stack>(0);
    assert_eq!(
        (p.counters().expired, p.protocol().counters().confirms.expired),
        (1, 1)
    );
    room.close();
}

/// Host clocks and TSFs start anywhere and are up to 20 ppm off; the controller sends beacons, the others follow.
fn drifting_cell(seed: u64, nodes: u32, reads_tsf: bool, sync_error: Duration) -> Room {
    drifting_cell_with(seed, nodes, reads_tsf, sync_error, None)
}

/// The same. `watch`: all watch slots, and see what has ended as much earlier or later than they reckon with.
fn drifting_cell_with(
    seed: u64,
    nodes: u32,
    reads_tsf: bool,
    sync_error: Duration,
    watch: Option<Duration>,
) -> Room {
    let mut room = Room::new(seed);
    room.carrier_sense = false;
    room.reads_tsf = reads_tsf;
    room.delays.timer_ns = 0..=4_000;
    let mut dice = Dice::new(seed);
    for i in 0..=nodes {
        let mut clock = || Clock {
            offset_ns: dice.within(0..=10_000_000_000),
            ppb: dice.within(0..=40_000) as i64 - 20_000,
        };
        let (host, tsf) = (clock(), clock());
        room.add_with_clocks(node(i), host, tsf, move || {
            let holdover = Duration::from_ms(300);
            let latency = if i == 0 { US(5) } else { US(10) };
            let sync = match i {
                0 => SyncConfig::own(Band::Ghz5, holdover),
                _ => SyncConfig::new(Band::Ghz5, holdover),
            };
            let sync = Sync::tracking(SyncConfig {
                latency,
                latency_spread: watch,
                ..sync
            });
            let plan = plan(nodes, CYCLE_US, true, sync_error).unwrap();
            let config = TdmaConfig {
                watch: watch.is_some(),
                ..TdmaConfig::new(node(i), plan, sync, AP, Queue::Voice)
            };
            Stack::new(config, sender(node(i)))
        });
    }
    room
}

/// How far network time of the nodes is from that of the controller at most, now, in nanoseconds.
fn spread_ns(room: &Room, nodes: u32) -> u64 {
    let network = |n: usize| {
        let p = room.protocol::<Stack>(n);
        let local = room.local(n, room.now_ns());
        (
            p.sync().to_network(local).unwrap().0,
            p.sync().error_bound(local).unwrap().as_ns(),
        )
    };
    let (reference, bound) = network(0);
    let others = (1..=nodes as usize).map(network);
    let off = |(t, b): (u64, u64)| {
        let off = t.abs_diff(reference);
        assert!(off <= b + bound, "{off} ns, the bounds are {b} and {bound}");
        off
    };
    others.map(off).max().unwrap()
}

#[test]
fn clocks_follow_the_beacons() {
    let mut room = drifting_cell(5, 4, true, US(3));
    room.run_until(100_000_000);
    for _ in 0..50 {
        room.run_until(room.now_ns() + 7_654_321);
        let spread = spread_ns(&room, 4);
        assert!(spread < 2_000, "{spread} ns");
    }
    assert!(room.protocol::<Stack>(3).sync().counters().samples > 20);
    room.close();
}

/// The same where adapter time cannot be read: the latency of the paths is in the stamps, and was configured.
#[test]
fn clocks_follow_the_stamps_of_beacons() {
    let mut room = drifting_cell(6, 4, false, US(3));
    room.run_until(200_000_000);
    for _ in 0..50 {
        room.run_until(room.now_ns() + 7_654_321);
        let spread = spread_ns(&room, 4);
        assert!(spread < 1_000, "{spread} ns");
    }
    room.close();
}

#[test]
fn drifting_clocks_keep_their_slots() {
    for seed in 0..10 {
        let mut room = drifting_cell(seed, 6, true, US(3));
        room.run_until(25 * CYCLE_NS);
        let mut sent = 0;
        for cycle in 25..225 {
            for i in 1..=6 {
                room.submit(cycle * CYCLE_NS, i as usize, AP, &[0; 50], None);
                room.submit(cycle * CYCLE_NS, 0, node(i), &[0; 50], None);
                sent += 2;
            }
        }
        room.run_until(230 * CYCLE_NS);
        assert_eq!(
            (room.delivered.len(), room.collisions().count()),
            (sent, 0),
            "seed {seed}"
        );
        let p = room.protocol::<Stack>(0);
        assert!(p.counters().beacons.not_acked >= 40, "{:?}", p.counters());
        room.close();
    }
}

/// When the controller falls silent, so do the nodes, after the holdover.
#[test]
fn no_beacons_no_frames() {
    let mut room = drifting_cell(1, 2, true, US(3));
    room.script(|a| match a.frame[0] {
        0x80 if a.at_ns > 200_000_000 => Fate::DataLost,
        _ => Fate::Arrives,
    });
    for cycle in 0..300 {
        room.submit(cycle * CYCLE_NS, 1, AP, &[0; 50], Some((cycle + 3) * CYCLE_NS));
    }
    room.run_until(310 * CYCLE_NS);
    let last = room.flights.iter().rev().find(|f| f.node == 1).unwrap().start_ns;
    assert!((480_000_000..505_000_000).contains(&last), "{last}");
    room.close();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Bursts, aborts, losses, lost confirms, resets, late timers: every token gets exactly one confirm, and no frame
    /// goes outside of its slots or after its deadline.
    #[test]
    fn any_requests_in_any_air(
        seed: u64,
        bursts in proptest::collection::vec((0u64..3_000_000, proptest::collection::vec(any::<u8>(), 0..12)), 1..20),
    ) {
        type Wild = Tdma<Checked<Probe>, 4, 128>;
        let mut room = Room::new(seed);
        room.carrier_sense = false;
        room.delays = Delays {
            request_ns: 10_000..=20_000,
            confirm_ns: 5_000..=300_000,
            timer_ns: 0..=20_000,
            ..Delays::STEADY
        };
        let me = node(1);
        room.add(me, || {
            let probe = || Probe::new(identity(me), AP);
            Wild::new(config(me, 2, 1_000), Checked::strict(probe()).with_twin(probe()))
        });
        let mut dice = Dice::new(seed ^ 1);
        room.script(move |_| match dice.within(0..=19) {
            0..=9 => Fate::Arrives,
            10..=14 => Fate::DataLost,
            15..=16 => Fate::AckLost,
            17 => Fate::ConfirmLost,
            18 => Fate::Reset,
            _ => Fate::Refused(Refusal::QueueFull),
        });
        let mut t = 0;
        for (pause, burst) in &bursts {
            t += pause;
            room.submit(t, 0, AP, burst, None);
        }
        room.run_until(t + 200_000_000);
        let stack = room.protocol::<Wild>(0);
        prop_assert_eq!(stack.protocol().open_tokens().len(), 0);
        let probe = stack.protocol().inner();
        prop_assert_eq!(probe.ended.len() as u32, probe.made());
        let plan = plan(2, 1_000, false, US(0)).unwrap();
        for f in &room.flights {
            let (_, owner, whose) = slot_at(&plan, f.start_ns).expect("in a slot");
            prop_assert!(owner == SlotUse::Shared || whose == me);
            prop_assert!(Instant::from_ns(f.start_ns) <= Probe::read(&f.frame).unwrap().1);
        }
        for (_, expires, at, c) in &probe.ended {
            if let (Some(expires), Outcome::Expired) = (expires, c.outcome) {
                prop_assert!(*at <= *expires + US(1_500), "{:?} {:?}", at, expires);
            }
        }
        room.close();
    }
}

/// EDF above TDMA: slots decide when, deadlines decide what.
#[test]
fn overlays_nest() {
    type Nested = Tdma<Edf<Sender>>;
    let mut room = Room::new(1);
    let make = || {
        let edf = EdfConfig::new(CostEstimate::fixed(US(120)), Duration::from_ms(50));
        Nested::new(config(node(1), 1, 1_000), Edf::new(edf, sender(node(1))))
    };
    room.add(node(1), make);
    let mut losses = 0;
    room.script(move |a| {
        losses += u32::from(a.frame.ends_with(b"a"));
        if a.frame.ends_with(b"a") && losses <= 2 {
            Fate::DataLost
        } else {
            Fate::Arrives
        }
    });
    for (name, deadline_ms) in [(b"a", 30), (b"b", 20), (b"c", 10)] {
        room.submit(0, 0, AP, name, Some(deadline_ms * 1_000_000));
    }
    room.run_until(10_000_000);
    let order: Vec<_> = room.flights.iter().map(|f| *f.frame.last().unwrap()).collect();
    assert_eq!(order, b"acbaa");
    let confirms = room
        .protocol::<Nested>(0)
        .protocol()
        .protocol()
        .counters()
        .confirms;
    assert_eq!((confirms.acked, confirms.attempts), (3, 5));
    assert_in_slots(&room, &plan(1, 1_000, false, US(0)).unwrap());
    room.close();
}

/// A frame is what Framer builds: the slot of the plan fits its payload to the octet.
#[test]
fn the_plan_counts_the_octets_that_are_sent() {
    let mut framer = Framer::new(identity(node(1)), true, 0x88b5);
    let mut out = [0; 128];
    let mpdu = framer
        .frame(AP, frame::AccessCategory::Voice, false, &[], &[0; 50], &mut out)
        .unwrap();
    assert_eq!(mpdu.len() + 4, 50 + usize::from(costs(US(0)).overhead_octets));
}

mod chances;
mod order;
mod overruns;
mod reference;
