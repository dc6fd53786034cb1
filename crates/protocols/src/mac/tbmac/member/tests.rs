//! One host's part, rule by rule.

use super::*;
use crate::mac::tbmac::table::Code;

const A: MacAddr = MacAddr::local(1);
const B: MacAddr = MacAddr::local(2);
const C: MacAddr = MacAddr::local(3);
const LUCKY: Chance = Chance { slot: 0, luck: 0 };

/// An owner that knows itself only.
fn owner<const S: usize>(me: MacAddr, slot: u8) -> Member<S> {
    let mut m = Member::new(me, 0);
    m.phase = Phase::Owner(slot, 0);
    m.table[usize::from(slot)] = Entry::of(me);
    m
}

fn round<const S: usize>(m: &mut Member<S>, heard: &[(MacAddr, Report)]) -> Option<Request> {
    heard.iter().for_each(|(from, report)| m.heard(*from, report));
    let ask = m.cfp_over(LUCKY);
    m.round_over();
    ask
}

fn report(slot: u8, table: &[Entry]) -> Report {
    Report {
        slot,
        leave: false,
        near: 0,
        view: View::of(table),
        promises: Promises::default(),
        between: None,
    }
}

/// In how many of all choices that `n - 1` others can make among `m` slots one slot is left to whoever asks in it.
fn share_alone(n: u32, m: u64) -> f64 {
    let all = m.pow(n - 1);
    let alone = |choices: u64| (0..n - 1).all(|other| !(choices / m.pow(other)).is_multiple_of(m));
    (0..all).filter(|c| alone(*c)).count() as f64 / all as f64
}

/// The probability that a host is granted a slot by an owner within 1, 2, ... `most` rounds of asking, if it asks alone with
/// probability `p`: all that can happen to the two, each with its probability.
fn granted_within(p: f64, most: usize) -> std::vec::Vec<f64> {
    let mut asker = Member::<16>::new(B, 0);
    asker.phase = Phase::Requesting(0, 0);
    let mut states = std::vec![(owner::<16>(A, 0), asker, 1.0)];
    let (mut granted, mut within) = (0.0, std::vec::Vec::new());
    for _ in 0..=most {
        let mut next = std::vec::Vec::<(Member<16>, Member<16>, f64)>::new();
        for (mut a, mut b, share) in states {
            b.heard(A, &a.report(false).unwrap());
            a.cfp_over(LUCKY);
            let Some(ask) = b.cfp_over(LUCKY) else {
                assert_eq!(b.slot(), Some(1));
                granted += share;
                continue;
            };
            for (alone, part) in [(true, p), (false, 1.0 - p)] {
                let (mut a, mut b) = (a, b);
                if alone {
                    a.requested(B, &ask);
                }
                a.round_over();
                b.round_over();
                match next.iter_mut().find(|s| (s.0, s.1) == (a, b)) {
                    Some(known) => known.2 += share * part,
                    None => next.push((a, b, share * part)),
                }
            }
        }
        within.push(granted);
        states = next;
    }
    // what is asked in a round is granted in the next one
    within.split_off(1)
}

/// `(1 - 1/m)^(n - 1)` in each round, and the rounds in which 99.9 % succeed: all of it exact.
#[test]
fn contention_is_as_long_as_computed() {
    let golden = [
        (1, 4, 1.0, 1),
        (2, 4, 0.75, 5),
        (4, 4, 0.42, 13),
        (8, 4, 0.13, 49),
        (2, 8, 0.875, 4),
        (4, 8, 0.67, 7),
        (8, 8, 0.39, 14),
    ];
    for (n, m, p, rounds) in golden {
        let exact = (1.0 - 1.0 / m as f64).powi(n as i32 - 1);
        assert!((exact - p).abs() < 0.006, "{n} {m}: {exact}");
        assert!((share_alone(n, m) - exact).abs() < 1e-12, "{n} {m}");
        let within = granted_within(exact, 60);
        for (share, k) in within.iter().zip(1..) {
            let computed = 1.0 - (1.0 - exact).powi(k);
            assert!(
                (share - computed).abs() < 1e-12,
                "{n} {m} {k}: {share} {computed}"
            );
        }
        let enough = within.iter().position(|share| *share >= 0.999);
        assert_eq!(enough, Some(rounds - 1), "{n} {m}");
    }
}

#[test]
fn an_empty_cell_is_claimed_after_three_silent_rounds() {
    let mut m = Member::<3>::new(A, 0);
    for _ in 0..3 {
        assert_eq!(round(&mut m, &[]), None);
    }
    assert_eq!(round(&mut m, &[]).unwrap().claim, Some(3));
    assert_eq!(m.phase(), Phase::Owner(0, PROBATION_ROUNDS));
    let sent = (4..4 + 32).map(|k| m.sends(k).is_some());
    let sent: std::vec::Vec<bool> = sent.collect();
    assert!(
        sent.chunks(2).all(|pair| pair[0] != pair[1]),
        "one of two rounds: {sent:?}"
    );
    (0..200).for_each(|_| assert_eq!(round(&mut m, &[]), None));
    let sent = (36..36 + 64).filter(|k| m.sends(*k) == Some(0)).count();
    assert!(
        (48..64).contains(&sent),
        "it listens in some rounds, as long as it hears nobody: {sent}"
    );
}

#[test]
fn the_longer_listener_wins_then_the_smaller_address() {
    for (mine, theirs, wins) in [(3, 3, true), (3, 4, false), (4, 3, true)] {
        let mut m = Member::<3>::new(A, 0);
        m.phase = Phase::Claiming(mine);
        m.cfp_over(LUCKY);
        let claim = Some(theirs);
        m.requested(B, &Request { slot: 1, claim });
        m.round_over();
        assert_eq!(m.slot().is_some(), wins, "{mine} {theirs}");
        assert!(wins || m.table()[0].host() == Some(B));
    }
}

#[test]
fn a_promise_goes_to_the_lowest_free_slot_or_the_one_it_had() {
    let mut m = owner::<4>(A, 1);
    let ask = |slot| Request { slot, claim: None };
    m.requested(C, &ask(1));
    m.requested(B, &ask(0));
    m.round_over();
    let promises = m.report(false).unwrap().promises;
    assert_eq!(promises.as_slice(), [(B, 0), (C, 2)], "by slot of the request");
    m.cfp_over(LUCKY);
    m.requested(C, &ask(0));
    m.round_over();
    assert_eq!(m.report(false).unwrap().promises.as_slice(), [(C, 2)]);
}

#[test]
fn one_who_does_not_agree_is_enough() {
    let granted = |second: Option<u8>| {
        let mut m = Member::<4>::new(C, 0);
        m.phase = Phase::Requesting(0, 0);
        let (mut a, mut b) = (
            report(0, &[Entry::of(A), Entry::of(B)]),
            report(1, &[Entry::of(A), Entry::of(B)]),
        );
        round(&mut m, &[(A, a)]).unwrap();
        a.promises.push(C, 2);
        second.into_iter().for_each(|i| b.promises.push(C, i));
        round(&mut m, &[(A, a), (B, b)]);
        m.slot()
    };
    assert_eq!(
        [granted(Some(2)), granted(Some(3)), granted(None)],
        [Some(2), None, None]
    );
}

#[test]
fn a_silent_slot_is_free_when_all_agree() {
    let mut m = owner::<4>(A, 0);
    let both = [Entry::of(A), Entry::of(B), Entry::of(C), Entry::Free];
    round(&mut m, &[(B, report(1, &both)), (C, report(2, &both))]);
    for _ in 0..5 {
        assert_ne!(m.table()[2], Entry::Free, "B still believes in it");
        round(&mut m, &[(B, report(1, &both))]);
    }
    round(&mut m, &[(B, report(1, &both[..2]))]);
    assert_eq!(m.table()[2], Entry::Free);
    // and what leaves is free at once
    let gone = Report {
        leave: true,
        ..report(1, &both[..2])
    };
    round(&mut m, &[(B, gone)]);
    assert_eq!(m.table()[1], Entry::Free);
}

#[test]
fn two_in_one_slot_are_told_and_give_it_up() {
    let mut m = owner::<4>(A, 0);
    let view = [Entry::of(A), Entry::of(B)];
    round(&mut m, &[(B, report(1, &view))]);
    round(&mut m, &[(C, report(1, &view))]);
    assert_eq!(m.report(false).unwrap().view.code(1), Code::Conflict);
    let mut b = owner::<4>(B, 1);
    round(&mut b, &[(A, m.report(false).unwrap())]);
    assert_eq!(b.phase(), Phase::Requesting(0, 0));
    // told for one round, then kept for a while
    round(&mut m, &[]);
    round(&mut m, &[]);
    assert!(matches!(m.table()[1], Entry::Owned { host: None, .. }));
}

#[test]
fn an_owner_that_nobody_hears_asks_again() {
    let mut b = owner::<4>(B, 1);
    let alone = [Entry::of(A)];
    assert!(round(&mut b, &[(A, report(0, &alone))]).is_some());
    assert_eq!(b.slot(), None);
}

/// Whether a host of this patience, which asks in vain, does so in the next round with this luck.
fn asks_in_vain(patience: u8) -> impl FnMut(u8) -> bool {
    let mut m = Member::<4>::new(C, patience);
    m.phase = Phase::Requesting(0, 0);
    let a = report(0, &[Entry::of(A)]);
    move |luck| {
        m.heard(A, &a);
        let asks = m.cfp_over(Chance { slot: 0, luck }).is_some();
        m.round_over();
        asks
    }
}

#[test]
fn failures_make_patient() {
    let mut asks = asks_in_vain(3);
    // three times in vain, then in one of two rounds, in one of four, and in one of eight for good
    assert_eq!([255, 255, 255].map(&mut asks), [true; 3]);
    for least in [128, 64, 32, 32, 32] {
        let tried = [least, least - 1, 255, least - 1, least, 0];
        assert_eq!(
            tried.map(&mut asks),
            [false, true, false, true, false, true],
            "{least}"
        );
    }
}

#[test]
fn without_patience_it_always_asks() {
    assert_eq!([255; 20].map(asks_in_vain(0)), [true; 20]);
}

/// A founder that comes too late for its slot begins its probation again, until it has heard somebody: others may have its slot by then.
#[test]
fn a_founder_that_is_late_gives_its_slot_up_to_company() {
    let mut m = owner::<4>(A, 0);
    m.phase = Phase::Owner(0, 20);
    let mut late = |asks: bool| {
        m.was_silent();
        m.cfp_over(LUCKY);
        if asks {
            let request = Request { slot: 0, claim: None };
            m.requested(B, &request);
        }
        m.round_over();
        m.phase()
    };
    let alone = [(); 5].map(|()| late(false));
    let left = [19, 18, 31, 31, 31].map(|left| Phase::Owner(0, left));
    assert_eq!(alone, left);
    assert_eq!(late(true), Phase::Owner(0, 31), "it hears only now");
    assert!(matches!(late(false), Phase::Requesting(0, _)));
}
