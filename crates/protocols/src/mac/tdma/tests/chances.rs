//! Frames that missed their slot, or failed in it.

use super::*;

/// Data that come after their slot go in the next one; those that come within the guard still go in this one.
#[test]
fn late_data_wait_for_the_next_slot() {
    let mut room = cell(1, 1, 1_000);
    room.delays = Delays::STEADY;
    let plan = plan(1, 1_000, false, US(0)).unwrap();
    // slots of 4 + 96 + 34 us, all flows again and again, seven of them: the uplink has the odd ones
    assert_eq!((plan.rounds(), plan.shared()), (3, 1));
    let uplink = 134_000;
    for (at, expected) in [
        (1_000_000, 1_000_000 + uplink),
        (2_000_000 + uplink - 10_000 + 4_000, 2_000_000 + uplink + 4_000),
        (3_000_000 + uplink - 10_000 + 4_001, 3_000_000 + 3 * uplink),
        (4_000_000 + 5 * uplink, 5_000_000 + uplink),
    ] {
        room.submit(at, 1, AP, &[0; 50], None);
        room.run_until(at + 900_000);
        assert_eq!(room.flights.last().unwrap().start_ns, expected);
    }
    assert_in_slots(&room, &plan);
    room.close();
}

#[test]
fn a_failed_frame_has_a_second_chance_in_its_cycle() {
    let mut room = cell(1, 2, 2_000);
    // one round of four slots of 134 us three times, and two shared slots
    let plan = plan(2, 2_000, false, US(0)).unwrap();
    assert_eq!((plan.rounds(), plan.shared()), (3, 2));
    room.script(|a| match (a.node, a.at_ns) {
        (2, ..2_000_000) => Fate::DataLost,
        (1, ..1_000_000) => Fate::AckLost,
        _ => Fate::Arrives,
    });
    room.submit(0, 1, AP, b"one", None);
    room.submit(0, 2, AP, b"two", None);
    room.run_until(4_000_000);
    let of = |n: usize| -> Vec<_> {
        let mine = room.flights.iter().filter(|f| f.node == n);
        mine.map(|f| {
            (
                slot_at(&plan, f.start_ns).unwrap().0,
                f.start_ns / 2_000_000,
                f.frame[1] & 8 != 0,
            )
        })
        .collect()
    };
    assert_eq!(of(1), [(1, 0, false), (5, 0, true), (9, 0, true)]);
    // its turn is in the first of the shared slots; the other one is left
    let in_cycle = [3, 7, 11, 12, 13].map(|slot| (slot, 0, slot > 3));
    assert_eq!(of(2), [&in_cycle[..], &[(3, 1, true)]].concat());
    assert_eq!(room.delivered.len(), 2);
    assert_eq!(room.protocol::<Stack>(2).counters().in_shared, 2);
    room.close();
}

/// What one thing on the air has held up, or destroyed, are slots beside each other: those nodes do not meet again in shared slots.
#[test]
fn neighbours_have_different_shared_slots() {
    let (mut room, _) = repetitions_arrive();
    for cycle in 0..500u64 {
        (1..=8).for_each(|n| room.submit(cycle * CYCLE_NS, n, AP, &[0; 50], None));
    }
    room.run_until(501 * CYCLE_NS);
    assert_eq!(room.collisions().count(), 0);
    assert_eq!(room.delivered.len(), 4_000);
    assert_eq!(room.flights.len(), 8_000);
    room.close();
}

/// A request that reaches the adapter behind the guard has lost its slot, but no try: nothing was on the air.
#[test]
fn a_frame_that_is_late_for_its_slot_has_used_no_try() {
    let mut room = cell(1, 1, 1_000);
    let request_ns = 30_000..=30_000;
    room.delays = Delays {
        request_ns,
        ..Delays::STEADY
    };
    room.submit(0, 1, AP, &[0; 50], None);
    room.run_until(200_000);
    let counters = |room: &Room| *room.protocol::<Stack>(1).counters();
    assert_eq!((room.flights.len(), counters(&room).late), (0, 1));
    room.delays = Delays::STEADY;
    room.run_until(1_000_000);
    assert_eq!(counters(&room).late, 1);
    let sent: Vec<_> = room
        .flights
        .iter()
        .map(|f| (f.start_ns, f.frame[1] & 8))
        .collect();
    assert_eq!(sent, [(3 * 134_000, 0)], "in its next slot, not as a repetition");
    assert_eq!(room.delivered.len(), 1);
    room.close();
}

/// Timers that come later than the guard lose slots; they never make a frame go outside of its slot.
#[test]
fn an_overrun_is_counted_and_nothing_is_sent() {
    let mut room = cell(3, 4, CYCLE_US);
    room.delays.timer_ns = 0..=40_000;
    submit(&mut room, 4, 1, 50);
    room.run_until(52 * CYCLE_NS);
    let plan = plan(4, CYCLE_US, false, US(0)).unwrap();
    assert_in_slots(&room, &plan);
    let overruns: u64 = (0..=4)
        .map(|n| room.protocol::<Stack>(n).counters().overruns)
        .sum();
    assert!(
        overruns > 100,
        "{overruns} of 400 and more: 9 of 10 timers are too late"
    );
    // who has lost a slot may try a shared one, and meet others there
    let shared = |at| slot_at(&plan, at).unwrap().1 == SlotUse::Shared;
    assert!(room.collisions().all(|f| shared(f.start_ns)));
    room.close();
}

/// A frame whose slot was slept through goes in a shared slot of the same cycle.
#[test]
fn a_slot_that_was_slept_through_has_a_second_chance() {
    let mut room = cell(1, 8, CYCLE_US);
    let plan = plan(8, CYCLE_US, false, US(0)).unwrap();
    room.delays = Delays {
        timer_ns: 30_000..=30_000,
        ..Delays::STEADY
    };
    room.submit(0, 5, AP, &[0; 50], None);
    room.run_until(600_000);
    assert_eq!(room.flights.len(), 0);
    // the timer for its slot is on its way, and late
    room.delays = Delays::STEADY;
    room.run_until(2 * CYCLE_NS);
    let c = *room.protocol::<Stack>(5).counters();
    assert_eq!((c.overruns, c.in_shared, c.released), (1, 1, 1));
    let [sent] = &room.flights[..] else {
        panic!("{:?}", room.flights);
    };
    assert!(sent.start_ns < CYCLE_NS, "in its cycle: {sent:?}");
    assert_eq!(slot_at(&plan, sent.start_ns).unwrap().1, SlotUse::Shared);
    assert_eq!(room.delivered.len(), 1);
    room.close();
}

/// What was heard and is not known to be, and is known so late that its receiver has forgotten it, would be handed up there again.
#[test]
fn what_its_receiver_has_forgotten_is_not_repeated() {
    for (patience_ms, sent) in [(60, 2), (200, 1)] {
        let mut room = cell(1, 1, 1_000);
        room.delays.patience_ns = patience_ms * 1_000_000;
        room.script(|a| match a.at_ns {
            ..1_000_000 => Fate::ConfirmLost,
            _ => Fate::Arrives,
        });
        room.submit(0, 1, AP, b"once", None);
        for n in 1..=300 {
            room.submit(n * 1_000_000, 1, AP, &[0; 50], None);
        }
        room.run_until(400_000_000);
        let of = |payload: &[u8]| room.delivered.iter().filter(|d| d.payload == payload).count();
        assert_eq!((of(b"once"), of(&[0; 50])), (1, 300), "{patience_ms}");
        assert_eq!(room.flights.len(), 300 + sent, "{patience_ms}");
        let forgotten = room.protocol::<Stack>(1).counters().forgotten;
        assert_eq!(forgotten, 2 - sent as u64, "{patience_ms}");
        room.close();
    }
}
