//! Slots whose clocks follow what two receivers saw.

use super::*;
use crate::mac::beacon::{Beaconer, BeaconerConfig};
use crate::mac::sync::NetworkTime;
use crate::mac::sync::reference::FOLLOW_UP_OCTETS;
use crate::mac::tdma::join::wire::ONE_REPORT_OCTETS;
use crate::mac::tdma::watch::{Verdict, judge};

const OTHER: MacAddr = MacAddr::local(9);

/// A controller and three devices that go by the beacons of somebody else. With `watch` the controller holds frames against the schedule; device 1 wakes up
/// for its slots sooner than the others by `early`.
fn cell(watch: bool, early: Duration) -> Room {
    let plan = move |early: Duration| {
        let flow = |i| Flow {
            from: node(i),
            to: AP,
            payload_octets: 50,
        };
        let beacon = BeaconSlot {
            from: AP,
            octets: (FOLLOW_UP_OCTETS + if watch { ONE_REPORT_OCTETS } else { 0 }) as u16,
            rate: Rate::OFDM_6,
            every: 25,
        };
        let mut costs = costs(US(3));
        costs.release.min += early;
        costs.release.high += early;
        TdmaPlan::new(&[1, 2, 3].map(flow), US(CYCLE_US), Some(beacon), &costs).unwrap()
    };
    let mut room = Room::new(4);
    room.carrier_sense = false;
    room.delays.timer_ns = 0..=4_000;
    let mut dice = Dice::new(4);
    for i in 0..=3 {
        let mut clock = || Clock {
            offset_ns: dice.within(0..=10_000_000_000),
            ppb: dice.within(0..=40_000) as i64 - 20_000,
        };
        let (host, tsf) = (clock(), clock());
        room.add_with_clocks(node(i), host, tsf, move || {
            let sync = match i {
                0 => Sync::perfect(0),
                _ => Sync::tracking(SyncConfig::new(Band::Ghz5, Duration::from_ms(1_000))),
            };
            let plan = plan(if i == 1 { early } else { Duration::ZERO });
            let config = TdmaConfig {
                reference: Some(OTHER),
                watch,
                ..TdmaConfig::new(node(i), plan, sync, AP, Queue::Voice)
            };
            Stack::new(config, sender(node(i)))
        });
    }
    room.add(OTHER, || {
        let config = BeaconerConfig::new(OTHER, US(102_400), Rate::OFDM_6);
        let identity = Identity::access_point(OTHER);
        Beaconer::new(
            config,
            Sender::<8>::new(SenderConfig::new(identity, Rate::OFDM_6)),
        )
    });
    room
}

/// Clocks by reference broadcasts: an access point that knows nothing of slots sends beacons, the controller tells what its
/// clock showed, and the others keep to that.
#[test]
fn clocks_follow_reference_broadcasts() {
    let mut room = cell(false, Duration::ZERO);
    room.run_until(1_500_000_000);
    let mut worst = 0;
    for _ in 0..50 {
        room.run_until(room.now_ns() + 27_654_321);
        let truth = room.local(0, room.now_ns()).as_ns();
        for i in 1..=3 {
            let p = room.protocol::<Stack>(i);
            assert!(p.sync().is_good(room.local(i, room.now_ns())));
            let shows = p.sync().to_network(room.local(i, room.now_ns())).unwrap().0;
            worst = worst.max(shows.abs_diff(truth));
        }
    }
    // adapter time has steps of 1 us, at both ends
    assert!(worst < 3_000, "{worst} ns");
    let before = room.delivered.len();
    let first = room.now_ns() / CYCLE_NS + 1;
    for cycle in first..first + 100 {
        for i in 1..=3 {
            room.submit(cycle * CYCLE_NS, i, AP, &[0; 50], None);
        }
    }
    room.run_until((first + 103) * CYCLE_NS);
    assert_eq!(room.delivered.len() - before, 300);
    room.close();
}

/// Frames of device 1 that began before its slots by more than the clocks may be apart, and all that it sent.
fn early(watch: bool, by: Duration) -> (usize, usize, Room) {
    let mut room = cell(watch, by);
    room.run_until(1_000_000_000);
    let first = room.local(0, room.now_ns()).as_ns() / CYCLE_NS + 1;
    for cycle in 0..400 {
        let at = room.now_ns() + cycle * CYCLE_NS;
        (1..=3).for_each(|i| room.submit(at, i, AP, &[0; 50], None));
    }
    room.run_until(room.now_ns() + 420 * CYCLE_NS);
    let plan = room.protocol::<Stack>(0).plan();
    let (mut early, mut sent) = (0, 0);
    for f in room.flights.iter().filter(|f| f.node == 1) {
        // the controller's host clock is network time
        let begun = NetworkTime(room.local(0, f.start_ns).as_ns());
        if begun.0 / CYCLE_NS >= first {
            let verdict = judge(plan, node(1), begun, begun, US(5));
            early += usize::from(matches!(verdict, Verdict::Outside(..0)));
            sent += 1;
        }
    }
    (early, sent, room)
}

/// The controller tells of overruns in the slot of the beacon, behind what its clock showed.
#[test]
fn who_overruns_is_told_without_beacons() {
    let (before, sent, room) = early(false, US(9));
    assert!(before * 2 > sent && sent > 300, "{before} of {sent}");
    assert_eq!(room.protocol::<Stack>(1).counters().told, 0);
    room.close();
    let (after, sent, room) = early(true, US(9));
    assert!(after > 0 && after * 8 < before, "{after} of {sent}, not {before}");
    let of = |n| *room.protocol::<Stack>(n).counters();
    assert!(of(0).outside > 0 && of(1).told > 0, "{:?} {:?}", of(0), of(1));
    assert_eq!((of(2).told, of(3).told), (0, 0), "nobody else is");
    room.close();
    let (outside, sent, room) = early(true, Duration::ZERO);
    assert!(outside == 0 && sent > 390, "{outside} of {sent}");
    assert_eq!(room.protocol::<Stack>(0).counters().outside, 0);
    room.close();
}
