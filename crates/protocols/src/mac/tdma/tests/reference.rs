//! Slots whose clocks follow what two receivers saw.

use super::*;
use crate::mac::beacon::{Beaconer, BeaconerConfig};
use crate::mac::sync::reference::FOLLOW_UP_OCTETS;

const OTHER: MacAddr = MacAddr::local(9);

/// Clocks by reference broadcasts: an access point that knows nothing of slots sends beacons, the controller tells what its
/// clock showed, and the others keep to that.
#[test]
fn clocks_follow_reference_broadcasts() {
    let plan = || {
        let flow = |i| Flow {
            from: node(i),
            to: AP,
            payload_octets: 50,
        };
        let beacon = BeaconSlot {
            from: AP,
            octets: FOLLOW_UP_OCTETS as u16,
            rate: Rate::OFDM_6,
            every: 25,
        };
        TdmaPlan::new(&[1, 2, 3].map(flow), US(CYCLE_US), Some(beacon), &costs(US(3))).unwrap()
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
            let config = TdmaConfig {
                reference: Some(OTHER),
                ..TdmaConfig::new(node(i), plan(), sync, AP, Queue::Voice)
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
