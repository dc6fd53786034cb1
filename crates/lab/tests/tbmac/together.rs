//! Hosts that come to a cell at once, as they are: who has a slot asks no more, and who has asked in vain stays away from some rounds.

use super::*;
use protocols::mac::sync::Sync;
use protocols::mac::tbmac::member::PATIENCE;

/// Rounds from the one in which they came until each of the hosts had a slot of its own, of those of so many moves in which all came in one round: a host
/// that listens in its own slot tells one round later that it goes.
fn took(Contention { hosts, asks }: Contention, patience: u8, moves: u64) -> Vec<u64> {
    let rounds = rounds_with(asks);
    let (length, over) = (rounds.length().as_ns(), rounds.ask(0).as_ns() - 1);
    let make = |seed: u64, cell: Cell, i: u32| {
        let me = MacAddr::local(i);
        let config = TbmacConfig {
            patience,
            channels: Some(CHANNELS),
            // what a host draws follows from the round
            sync: Sync::perfect((seed * 10_007 * length) as i64),
            ..TbmacConfig::new(me, cell, rounds)
        };
        Tbmac::new(config, Sender::new(SenderConfig::new(identity(me), Rate::DSSS_2)))
    };
    let of_move = |seed: u64| {
        // two own slots here, since one alone would listen now and then; the others come from where nobody is
        let from = |i| if (1..=hosts).contains(&i) { THERE } else { HERE };
        let nodes = (0..=hosts + 1).map(|i| make(seed, from(i), i)).collect();
        let mut world = world(seed, nodes);
        let begun = 60;
        // before the first slot, in which one of them tells that it goes: so all go in this round
        world.run_until(begun * length - 1_000);
        (1..=hosts).for_each(|i| go(&mut world, i, HERE));
        // the round in which it came
        let mut waiting: Vec<(u32, Option<u64>)> = (1..=hosts).map(|i| (i, None)).collect();
        let (mut took, mut came_in, mut at_once) = (Vec::new(), None, true);
        for round in begun.. {
            assert!(round < begun + 2_000, "seed {seed}: {waiting:?} have no slot");
            world.run_until(round * length + over);
            waiting.retain_mut(|(i, came)| {
                let host = world.protocol(*i);
                if host.cell() != HERE {
                    return true;
                }
                let came = *came.get_or_insert(round);
                at_once &= *came_in.get_or_insert(came) == came;
                let has_slot = host.member().is_some_and(|m| m.slot().is_some());
                took.extend(has_slot.then(|| round - came));
                !has_slot
            });
            if waiting.is_empty() {
                break;
            }
        }
        at_once.then_some(took)
    };
    let taken: Vec<_> = (0..moves).into_par_iter().filter_map(of_move).collect();
    assert!(
        taken.len() as u64 > moves * 9 / 10,
        "{} moves at once",
        taken.len()
    );
    let mut all: Vec<u64> = taken.into_iter().flatten().collect();
    all.sort_unstable();
    all
}

/// Rounds of asking: one host alone has what it asks for after one.
fn asked(contention: Contention, patience: u8, moves: u64) -> Vec<u64> {
    let alone = took(
        Contention {
            hosts: 1,
            ..contention
        },
        patience,
        1,
    )[0];
    let all = took(contention, patience, moves).into_iter();
    all.map(|rounds| rounds + 1 - alone).collect()
}

fn mean(all: &[u64]) -> f64 {
    all.iter().sum::<u64>() as f64 / all.len() as f64
}

/// It takes no longer than among those who never cease to ask, on average, whether or not who has asked in vain stays away from rounds.
#[test]
fn who_comes_at_once_has_slots_soon() {
    for contention in Contention::ALL {
        for patience in [0, PATIENCE] {
            let all = asked(contention, patience, 120);
            assert_eq!(all.len() as u32 % contention.hosts, 0, "each of them has one");
            let bound = 1.05 / contention.alone();
            let mean = mean(&all);
            assert!(mean < bound, "{contention:?} {patience}: {mean} {bound}");
            // one in a thousand may take longer than the bound says of hosts that never cease to ask
            let computed = contention.rounds_until(0.001).ceil() as u64;
            let beyond = all.iter().filter(|rounds| **rounds > computed).count();
            assert!(
                beyond <= 2,
                "{contention:?} {patience}: {beyond} of {} beyond {computed}",
                all.len()
            );
            // they do ask for the same slots
            assert!(mean > 1.1, "{contention:?} {patience}: {mean}");
        }
    }
}

/// What the book's page on TBMAC says of real hosts, below its table.
#[test]
#[ignore = "takes minutes; prints a table"]
fn rounds_of_those_who_come_at_once() {
    let many = Contention { hosts: 14, asks: 4 };
    for contention in Contention::ALL.into_iter().chain([many]) {
        for patience in [0, PATIENCE] {
            let all = asked(contention, patience, 2_000);
            let at = |share: f64| all[((all.len() - 1) as f64 * share).round() as usize];
            println!(
                "{contention:?} {patience}: {:.2} on average, half {}, 99 % {}, 99.9 % {}",
                mean(&all),
                at(0.5),
                at(0.99),
                at(0.999)
            );
            let computed = contention.rounds_until(0.001).ceil() as u64;
            // each of them would have to wait for all others
            assert!(at(0.999) <= computed, "{contention:?} {patience}");
        }
    }
}
