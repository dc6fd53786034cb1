//! Which frame goes in a slot that is there for several.

use super::*;
use radio::TxHow;

/// Nodes whose flows to the controller are `flows`, each the node and the octets of its payload; one slot for each, in this order.
fn uplinks(flows: &[(u32, u16)]) -> (Room, TdmaPlan) {
    let flow = |(i, payload_octets): &(u32, u16)| Flow {
        from: node(*i),
        to: AP,
        payload_octets: *payload_octets,
    };
    let nodes = flows.iter().map(|f| f.0).max().unwrap();
    let flows: Vec<_> = flows.iter().map(flow).collect();
    let costs = costs(US(0));
    let cycle = TdmaPlan::<128>::shortest_cycle(&flows, None, &costs, 0);
    let plan: TdmaPlan = TdmaPlan::new(&flows, cycle, None, &costs).unwrap();
    let mut room = Room::new(1);
    room.carrier_sense = false;
    room.delays = Delays::STEADY;
    for i in 0..=nodes {
        let plan = plan.clone();
        room.add(node(i), move || {
            let config = TdmaConfig::new(node(i), plan.clone(), Sync::perfect(0), AP, Queue::Voice);
            Stack::new(config, sender(node(i)))
        });
    }
    (room, plan)
}

/// Slots, counted from the first one of the first cycle on, and the last octets of what node 1 had in them.
fn sent(room: &Room, plan: &TdmaPlan) -> Vec<(u64, u8)> {
    let (cycle, slots) = (plan.cycle().as_ns(), plan.slots().count() as u64);
    let of = |f: &crate::testing::Flight| {
        let slot = slot_at(plan, f.start_ns).unwrap().0 as u64;
        (f.start_ns / cycle * slots + slot, *f.frame.last().unwrap())
    };
    room.flights.iter().filter(|f| f.node == 1).map(of).collect()
}

/// A long message has the long slot although a short one has the earlier deadline: that has a slot of its own, and the long one no other.
#[test]
fn what_no_shorter_slot_has_room_for_goes_first() {
    let (mut room, plan) = uplinks(&[(1, 200), (2, 50), (1, 50)]);
    let cycle = plan.cycle().as_ns();
    let from = cycle - 50_000;
    room.submit(from, 1, AP, &[b's'; 50], Some(2 * cycle));
    room.submit(from, 1, AP, &[b'l'; 200], Some(2 * cycle + 1));
    room.run_until(4 * cycle);
    assert_eq!(sent(&room, &plan), [(3, b'l'), (5, b's')]);
    assert_eq!(room.delivered.len(), 2);
    room.close();
}

/// What would be too late if it began at the end of the guard takes no slot from what is in time then, and has it if there is nothing else.
#[test]
fn what_may_be_late_goes_last() {
    for rival in [true, false] {
        let (mut room, plan) = uplinks(&[(1, 50)]);
        let cycle = plan.cycle().as_ns();
        let over = (plan.slot(0).unwrap().exchange + plan.costs().guard()).as_ns();
        room.submit(cycle - 50_000, 1, AP, &[b'l'; 50], Some(cycle + over - 1));
        if rival {
            room.submit(cycle - 50_000, 1, AP, &[b'r'; 50], Some(cycle + over));
        }
        room.run_until(4 * cycle);
        let expected = if rival { b'r' } else { b'l' };
        assert_eq!(sent(&room, &plan), [(1, expected)]);
        room.close();
    }
}

/// Of two that are equally urgent, and may go in another slot, too, the one that has failed goes first although it came later.
#[test]
fn of_equals_what_has_failed_goes_first() {
    let (mut room, plan) = uplinks(&[(1, 50), (2, 50), (1, 200), (1, 120)]);
    room.script(|a| match (a.frame.last(), a.frame[1] & 8) {
        (Some(b's'), 0) => Fate::DataLost,
        _ => Fate::Arrives,
    });
    let cycle = plan.cycle().as_ns();
    // too long for the first slot
    room.submit(cycle - 50_000, 1, AP, &[b'm'; 120], None);
    room.submit(cycle - 50_000, 1, AP, &[b's'; 50], None);
    room.run_until(4 * cycle);
    assert_eq!(sent(&room, &plan), [(4, b's'), (6, b's'), (7, b'm')]);
    room.close();
}

/// Which shared slots, counted from the first one on, a node uses that has ten messages more than slots; each has so many tries.
fn relief(tries: u8, in_shared: Fate) -> Vec<u64> {
    let plan = plan(8, CYCLE_US, false, US(0)).unwrap();
    let mut room = Room::new(1);
    room.carrier_sense = false;
    room.delays = Delays::STEADY;
    for i in [0, 1] {
        room.add(node(i), move || {
            let sender = SenderConfig {
                how: TxHow::multi_shot(Rate::OFDM_54, tries),
                ..SenderConfig::new(identity(node(i)), Rate::OFDM_54)
            };
            Stack::new(config(node(i), 8, CYCLE_US), Sender::new(sender))
        });
    }
    let shared = |plan: &TdmaPlan, at| slot_at(plan, at).filter(|s| s.1 == SlotUse::Shared);
    let of = plan.clone();
    room.script(move |a| match shared(&of, a.at_ns) {
        Some(_) => in_shared,
        None => Fate::Arrives,
    });
    (0..10).for_each(|_| room.submit(0, 1, AP, &[0; 50], None));
    (0..200).for_each(|cycle| room.submit(cycle * CYCLE_NS, 1, AP, &[0; 50], None));
    room.run_until(200 * CYCLE_NS);
    let number = |at| Some(at / CYCLE_NS * 13 + shared(&plan, at)?.0 as u64 - 16);
    let used = room.flights.iter().filter_map(|f| number(f.start_ns)).collect();
    room.close();
    used
}

/// One shared slot in four is left to one link after the other: of 29 slots that of node 1 is the second.
fn is_left_to_it(n: &u64) -> bool {
    n.is_multiple_of(4) && n / 4 % 29 == 1
}

/// Messages that pile up where each slot has its own are worked off in shared slots, and not in all of them.
#[test]
fn one_shared_slot_in_four_is_left_to_what_is_passed_over() {
    let used = relief(7, Fate::Arrives);
    assert!(used.len() == 10 && used.iter().all(is_left_to_it), "{used:?}");
}

/// What was in a shared slot only for want of another one, and fails there, does not compete with what has failed elsewhere.
#[test]
fn what_fails_where_it_was_relieved_is_as_before() {
    let used = relief(7, Fate::DataLost);
    assert!(used.len() > 10 && used.iter().all(is_left_to_it), "{used:?}");
}

/// A frame that a collision would end has no shared slot.
#[test]
fn what_has_no_second_try_is_not_relieved() {
    assert_eq!(relief(1, Fate::Arrives), []);
    assert!(!relief(2, Fate::Arrives).is_empty());
}
