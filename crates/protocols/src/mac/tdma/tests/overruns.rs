//! Frames that an adapter could not take back: they wait for the medium, and are on the air in slots of others.

use super::super::watch::{Verdict, judge};
use super::*;
use crate::mac::sync::NetworkTime;

/// What the host sees of the air comes 5 us after its end for what it has sent, and 10 us for what it hears.
const SPREAD: Duration = Duration::from_us(5);
const NODES: u32 = 2;

/// A cell in which strangers are on the air `strangers` times in 800 cycles, and the host reads adapter time or not.
fn among(strangers: u64, reads_tsf: bool, takes_back: bool, watch: bool) -> Room {
    let mut room = drifting_cell_with(7, NODES, reads_tsf, US(3), watch.then_some(SPREAD));
    room.carrier_sense = true;
    room.takes_back = takes_back;
    let stranger = room.add(node(9), || -> Sender {
        Sender::new(SenderConfig::new(identity(node(9)), Rate::OFDM_6))
    });
    let mut dice = Dice::new(3);
    for cycle in 200..1_000 {
        (1..=NODES as usize).for_each(|n| room.submit(cycle * CYCLE_NS, n, AP, &[0; 50], None));
    }
    for n in 0..strangers {
        let at = 800_000_000 + n * (3_200_000_000 / strangers.max(1)) + dice.within(0..=1_000_000);
        room.submit(at, stranger, node(8), &[0; 200], None);
    }
    room.run_until(4_100_000_000);
    room
}

/// Acknowledged frames of all with slots that began outside of these by more than this.
fn outside(room: &Room, tolerance: Duration) -> u64 {
    let plan = room.protocol::<Stack>(0).plan();
    let mut beacon = None;
    let mut count = 0;
    for f in room.flights.iter().filter(|f| f.node <= NODES as usize) {
        if f.frame[0] == 0x80 {
            // adapter time at octet 24 at 6 Mb/s, behind a preamble of 20 us and two octets
            let at = u64::from_le_bytes(f.frame[24..32].try_into().unwrap());
            beacon = Some((at * 1_000, f.start_ns + 54_667));
        } else if let (Some((network, at)), Fate::Arrives, false) = (beacon, f.fate, f.collided) {
            let begun = NetworkTime(network + f.start_ns - at);
            let ended = NetworkTime(begun.0 + 30_000);
            let verdict = judge(plan, node(f.node as u32), begun, ended, tolerance);
            count += u64::from(verdict != Verdict::InSlot);
        }
    }
    count
}

fn overran(room: &Room) -> u64 {
    let of = |n| room.protocol::<Stack>(n).counters();
    (0..=NODES as usize).map(|n| of(n).overran).sum()
}

/// A node counts its own, by the adapter's time or by what its host has seen; and the one that receives them sees them, too.
#[test]
fn who_was_in_the_slots_of_others_knows() {
    for reads_tsf in [true, false] {
        let room = among(400, reads_tsf, false, true);
        let (most, least) = (outside(&room, US(0)), outside(&room, US(20)));
        let counted = overran(&room);
        assert!(
            least > 20 && (least..=most).contains(&counted),
            "{least} {counted} {most}"
        );
        let heard = room.protocol::<Stack>(0).counters().outside;
        assert!((least..=most).contains(&heard), "{least} {heard} {most}");
        room.close();
    }
}

#[test]
fn nobody_is_accused_who_was_in_time() {
    for (strangers, takes_back, watch) in [(0, false, true), (400, true, true), (400, false, false)] {
        for reads_tsf in [true, false] {
            let room = among(strangers, reads_tsf, takes_back, watch);
            let heard = room.protocol::<Stack>(0).counters().outside;
            assert_eq!(
                (overran(&room), heard),
                (0, 0),
                "{strangers} {takes_back} {watch} {reads_tsf}"
            );
            room.close();
        }
    }
}
