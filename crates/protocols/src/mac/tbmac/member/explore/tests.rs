//! What the exploration finds.

use super::*;

fn losses(losses: u8) -> Budget {
    Budget {
        losses,
        ..Budget::default()
    }
}

fn departures(failures: u8, leaves: u8) -> Budget {
    Budget {
        failures,
        leaves,
        ..Budget::default()
    }
}

/// Rounds that are looked at for the longest path; with that nobody comes near.
const MOST: u32 = 200;

/// Three hosts come into an empty cell, each in any of three rounds. As long as a host hears one of the frames that are
/// sent to it in each round, no slot is shared, except by founders on probation whose claims were lost.
#[test]
fn three_newcomers_share_no_slot() {
    let explorer = Explorer::<3, 3>::new(Losses::AllButOne, 3, 9);
    let (found, last) = explorer.run(Explorer::NOBODY);
    assert_eq!((found.states, found.steps, found.shared), (7_279, 108_525, 0));
    assert_eq!(explorer.longest(&last, 9, MOST), Some(28));
}

/// The same with every pattern of losses: founders who do not hear each other may claim one slot, all on probation, and each of the three has one
/// of its own as soon as frames arrive.
#[test]
fn three_newcomers_are_told_apart_whatever_was_lost() {
    let explorer = Explorer::<3, 3>::new(Losses::Any, 2, 6);
    let (found, last) = explorer.run(Explorer::NOBODY);
    assert_eq!((found.states, found.steps, found.shared), (877, 5_579, 0));
    assert!(
        explorer
            .longest(&last, 6, MOST)
            .is_some_and(|rounds| rounds <= 34)
    );
}

#[test]
#[ignore = "half a minute of computing"]
fn three_newcomers_of_nine_rounds_are_told_apart() {
    let explorer = Explorer::<3, 3>::new(Losses::Any, 3, 9);
    let (found, last) = explorer.run(Explorer::NOBODY);
    assert_eq!((found.states, found.steps, found.shared), (112_429, 1_252_936, 0));
    assert_eq!(explorer.longest(&last, 9, MOST), Some(34));
}

/// One owner and two hosts that ask; one owner fails at any time without a word, and may come back at any time later, as a new host.
#[test]
fn two_who_ask_share_no_slot() {
    let explorer = Explorer::<3, 3>::new(Losses::AllButOne, 0, 6);
    let (found, last) = explorer.run(State {
        budget: departures(1, 0),
        ..explorer.settled(1, 3)
    });
    assert_eq!((found.states, found.steps, found.shared), (13_360, 258_853, 0));
    assert_eq!(explorer.longest(&last, 6, MOST), Some(35));
}

/// The same with two owners and one host that asks, one that fails and one that leaves with a word at any time, and hosts that ask
/// less often after failures.
#[test]
fn whoever_fails_and_leaves_nobody_shares_a_slot() {
    let explorer = Explorer {
        patience: 1,
        ..Explorer::<3, 3>::new(Losses::AllButOne, 0, 6)
    };
    let (found, last) = explorer.run(State {
        budget: departures(1, 1),
        ..explorer.settled(2, 3)
    });
    assert_eq!((found.states, found.steps, found.shared), (102_354, 2_802_339, 0));
    assert_eq!(explorer.longest(&last, 6, MOST), Some(37));
}

/// Three newcomers of whom one leaves as soon as it owns a slot, or later.
#[test]
fn newcomers_who_leave_share_no_slot() {
    let explorer = Explorer::<3, 3>::new(Losses::AllButOne, 3, 8);
    let (found, _) = explorer.run(State {
        budget: departures(0, 1),
        ..Explorer::NOBODY
    });
    assert_eq!((found.states, found.steps, found.shared), (11_039, 186_006, 0));
}

/// One owner that comes too late for its slot in three of six rounds, and two hosts that ask: who was silent for so long that others may
/// claim its slot has given it up.
#[test]
fn who_comes_too_late_for_too_long_has_given_its_slot_up() {
    let late = |explorer: Explorer<3, 3>| {
        let pauses = Budget {
            pauses: 3,
            ..Budget::default()
        };
        let start = State {
            budget: pauses,
            ..explorer.settled(1, 3)
        };
        explorer.run(start).0
    };
    let explorer = Explorer::new(Losses::AllButOne, 0, 6);
    let found = late(explorer);
    assert_eq!((found.states, found.steps, found.shared), (49_753, 1_575_253, 0));
    assert!(late(explorer.broken(Rule::Silence)).shared > 0);
}

/// Two owners and two hosts that ask, all patterns of two losses (frames and requests, each at one host).
const FOUR: u8 = 2;

#[test]
fn four_hosts_share_no_slot() {
    let explorer = Explorer::<4, 4>::new(Losses::Counted, 0, 4);
    let (found, _) = explorer.run(State {
        budget: losses(FOUR),
        ..explorer.settled(2, 4)
    });
    assert_eq!((found.states, found.steps, found.shared), (61_994, 453_324, 0));
}

/// Three losses do no harm either. The fourth is one too many: each of the two who ask has then heard another owner
/// only, and no owner both.
#[test]
#[ignore = "10 s of computing"]
fn four_losses_are_too_many() {
    for (losses, shared) in [(3, 0), (4, 2)] {
        let explorer = Explorer::<4, 4>::new(Losses::Counted, 0, 4);
        let explorer = Explorer {
            first: true,
            ..explorer
        };
        let (found, _) = explorer.run(State {
            budget: self::losses(losses),
            ..explorer.settled(2, 4)
        });
        assert_eq!(found.shared, shared, "{losses}");
    }
}

/// The exploration of [`four_hosts_share_no_slot`] notices when a rule is broken.
#[test]
fn a_broken_rule_is_found() {
    for rule in [Rule::Unanimity, Rule::Merge] {
        let explorer = Explorer::<4, 4>::new(Losses::Counted, 0, 4).broken(rule);
        let (found, _) = explorer.run(State {
            budget: losses(FOUR),
            ..explorer.settled(2, 4)
        });
        assert!(found.shared > 0, "{rule:?}");
    }
}

/// Where a host may lose all that is sent to it, slots can be shared. It is not for long: as soon as nothing is lost
/// any more, every host comes to a slot of its own.
#[test]
fn what_was_shared_is_told_apart() {
    let explorer = Explorer::<3, 3>::new(Losses::Any, 0, 4);
    let start = State {
        budget: departures(1, 0),
        ..explorer.settled(1, 3)
    };
    let (found, last) = explorer.run(start);
    assert_eq!(
        (found.states, found.steps, found.shared > 0),
        (17_323, 137_521, true)
    );
    assert_eq!(explorer.longest(&last, 4, MOST), Some(33));
}

/// Two claims that were lost on each other make two founders in one slot. Their probation tells them apart; without
/// it they would stay there for ever.
#[test]
fn founders_are_told_apart() {
    let founders = |broken| {
        let explorer = Explorer::<2, 2>::new(Losses::Any, 1, 5);
        let explorer = Explorer { broken, ..explorer };
        explorer.longest(&explorer.run(Explorer::NOBODY).1, 5, MOST)
    };
    assert_eq!(founders(None), Some(26));
    assert_eq!(founders(Some(Rule::Probation)), None);
}

/// Without losses, who asks alone in its slot of the contention period in round k sends from round k + 2 on.
#[test]
fn a_request_that_is_heard_is_granted_in_the_next_round() {
    let explorer = Explorer::<3, 3>::new(Losses::Counted, 0, 2);
    let (found, last) = explorer.run(explorer.settled(1, 3));
    let owners = |s: &State<3, 3>| s.hosts.iter().flatten().filter(|m| m.slot().is_some()).count();
    let mut all: Vec<usize> = last.iter().map(owners).collect();
    all.sort_unstable();
    all.dedup();
    // two who ask in the same slot: none, or the one that is captured; else both
    assert_eq!((found.shared, &all[..]), (0, &[1, 2, 3][..]));
}

/// Three who ask in three slots, so that all of them may be granted theirs in one round: without losses a slot that was granted is kept.
#[test]
fn a_slot_that_was_granted_is_kept() {
    let explorer = Explorer {
        asks: 3,
        ..Explorer::<4, 4>::new(Losses::Counted, 0, 3)
    };
    let (found, last) = explorer.run(explorer.settled(1, 4));
    assert_eq!((found.shared, found.given_up), (0, 0));
    assert!(last.iter().any(State::all_have_slots));
}

/// One owner and three who ask in three slots, all patterns of two losses.
#[test]
fn three_who_ask_share_no_slot() {
    let explorer = Explorer {
        asks: 3,
        ..Explorer::<4, 4>::new(Losses::Counted, 0, 4)
    };
    let (found, _) = explorer.run(State {
        budget: losses(FOUR),
        ..explorer.settled(1, 4)
    });
    assert_eq!((found.states, found.steps, found.shared), (55_146, 787_793, 0));
}
