//! TC by TC: what is passed on, what is held, and what is told of the selectors.

use super::lone::{Lone, ME, Tc, hello};
use super::*;
use wire::LinkCode;

const SYM: LinkCode = LinkCode::SYM;
const MPR: LinkCode = LinkCode::MPR;
const LOST: LinkCode = LinkCode::LOST;

/// It comes from far, and says that 5 is a neighbour of 8.
const OF_5: Tc = Tc {
    of: 5,
    number: 100,
    ansn: 7,
    ttl: 20,
    advertised: &[8],
};
/// The ways that follow when 1 is a neighbour that reaches 5.
const WITH_8: [(usize, usize, u8); 3] = [(1, 1, 1), (5, 1, 2), (8, 1, 3)];
const WITHOUT_8: [(usize, usize, u8); 2] = [(1, 1, 1), (5, 1, 2)];

/// A node that 1 has chosen to relay, with a way over 1 to 5.
fn relay() -> Lone {
    let mut lone = Lone::new();
    lone.hello(0, 1, &[(MPR, ME), (SYM, 5)]);
    lone
}

fn numbers(lone: &Lone) -> Vec<u16> {
    lone.passed_on().iter().map(|s| s.number).collect()
}

/// And once it has come from one that has not, it is not for the one that has.
#[test]
fn only_for_who_has_chosen_it_a_node_passes_on() {
    let mut lone = relay();
    lone.hello(10, 2, &[(SYM, ME)]);
    lone.tc(20, 2, OF_5);
    assert_eq!(lone.routes().last(), Some(&(8, 1, 3)), "it counts all the same");
    lone.tc(30, 1, OF_5);
    lone.run_until(1_000);
    assert_eq!(numbers(&lone), []);
    lone.tc(1_010, 1, Tc { number: 101, ..OF_5 });
    lone.tc(1_020, 2, Tc { number: 101, ..OF_5 });
    lone.run_until(2_000);
    assert_eq!(numbers(&lone), [101]);
}

#[test]
fn what_is_passed_on_has_a_hop_less_to_go_and_is_else_as_it_was() {
    let mut lone = relay();
    let mut sent = Vec::new();
    lone.hear(10, 1, |w| {
        OF_5.write(w);
        // of a kind that it does not know
        let m = [77, 0x86, 0, 17, 2, 0, 0, 0, 0, 9, 2, 255, 0, 1, 3, 3, 3];
        assert!(w.forward(&m));
        sent.extend_from_slice(&m);
    });
    lone.run_until(1_000);
    assert_eq!(lone.olsr.counters().forwarded, 2);
    for m in lone.passed_on() {
        let mut expected = vec![0; 64];
        let mut w = Writer::new(&mut expected);
        OF_5.write(&mut w);
        let mut expected = match m.kind {
            wire::TC => w.finish(0).unwrap()[wire::PACKET_HEADER_OCTETS..].to_vec(),
            _ => sent.clone(),
        };
        expected[10] -= 1;
        expected[11] = expected[11].saturating_add(1);
        assert_eq!(m.octets, expected);
    }
}

#[test]
fn what_has_come_to_its_last_hop_goes_no_further() {
    for (ttl, counts, goes_on) in [(0, false, false), (1, true, false), (2, true, true)] {
        let mut lone = relay();
        lone.tc(10, 1, Tc { ttl, ..OF_5 });
        assert_eq!(lone.routes().len() == 3, counts, "{ttl}");
        lone.run_until(1_000);
        assert_eq!(lone.passed_on().len() == 1, goes_on, "{ttl}");
    }
}

/// 2 is heard and does not hear, 3 was never heard.
#[test]
fn a_tc_of_a_stranger_is_neither_held_nor_passed_on() {
    for stranger in [2, 3] {
        let mut lone = relay();
        lone.hello(10, 2, &[(MPR, 4)]);
        lone.tc(20, stranger, OF_5);
        assert_eq!(lone.routes(), WITHOUT_8);
        lone.run_until(1_000);
        assert_eq!(numbers(&lone), []);
        // nor is it known as heard
        lone.tc(1_010, 1, OF_5);
        assert_eq!(lone.routes(), WITH_8);
        lone.run_until(2_000);
        assert_eq!(numbers(&lone), [100]);
    }
}

/// A message is judged by what those before it in the packet have said.
#[test]
fn a_tc_behind_a_hello_counts_as_the_hello_says() {
    let mut lone = Lone::new();
    lone.hear(10, 1, |w| {
        hello(w, 1, 3, &[(MPR, ME), (SYM, 5)]);
        OF_5.write(w);
    });
    assert_eq!(lone.routes(), WITH_8);
    lone.run_until(1_000);
    assert_eq!(numbers(&lone), [100]);
    let more = Tc {
        number: 101,
        advertised: &[9],
        ..OF_5
    };
    lone.hear(1_010, 1, |w| {
        hello(w, 1, 3, &[(LOST, ME)]);
        more.write(w);
    });
    lone.hello(1_020, 1, &[(SYM, ME), (SYM, 5)]);
    assert_eq!(lone.routes(), WITH_8);
    lone.run_until(2_000);
    assert_eq!(numbers(&lone), [100]);
}

#[test]
fn an_older_tc_changes_nothing_and_a_newer_one_all() {
    // (ANSN held, ANSN that comes, what is advertised then)
    for (held, ansn, expected) in [
        (7, 6, &[8][..]),
        (7, 7, &[8, 9]),
        (7, 8, &[9]),
        (0xffff, 1, &[9]),
        (1, 0xffff, &[8]),
        (0, 0x7fff, &[9]),
        (0x7fff, 0, &[8]),
    ] {
        let mut lone = relay();
        lone.tc(10, 1, Tc { ansn: held, ..OF_5 });
        let second = Tc {
            number: 101,
            ansn,
            advertised: &[9],
            ..OF_5
        };
        lone.tc(20, 1, second);
        let far: Vec<usize> = lone.routes().iter().filter(|r| r.2 == 3).map(|r| r.0).collect();
        assert_eq!(far, expected, "{ansn} after {held}");
        lone.run_until(1_000);
        assert_eq!(lone.passed_on().len(), 2, "old ones are passed on, too");
    }
}

#[test]
fn a_newer_tc_without_addresses_ends_what_was_advertised() {
    let mut lone = relay();
    lone.tc(10, 1, OF_5);
    let none = Tc {
        number: 101,
        ansn: 8,
        advertised: &[],
        ..OF_5
    };
    lone.tc(20, 1, none);
    assert_eq!(lone.routes(), WITHOUT_8);
}

#[test]
fn a_tc_counts_for_as_long_as_it_says() {
    let mut lone = relay();
    lone.tc(0, 1, OF_5);
    for ms in [5_000, 10_000] {
        lone.hello(ms, 1, &[(SYM, ME), (SYM, 5)]);
    }
    lone.run_until(14_999);
    assert_eq!(lone.routes(), WITH_8);
    lone.run_until(15_000);
    assert_eq!(lone.routes(), WITHOUT_8);
}

/// RFC 3626, 18.3: a number is known for 30 s after it was heard last.
#[test]
fn a_message_is_passed_on_once_in_half_a_minute() {
    let mut lone = Lone::new();
    for ms in (0..65).map(|s| s * 1_000) {
        lone.hello(ms, 1, &[(MPR, ME)]);
        if [0, 1_000, 30_000, 60_000].contains(&ms) {
            lone.tc(ms, 1, OF_5);
        }
    }
    let at: Vec<u64> = lone.passed_on().iter().map(|s| s.at_ms / 1_000).collect();
    assert_eq!(at, [0, 60]);
}

#[test]
fn its_own_messages_that_come_back_say_nothing() {
    let mut lone = relay();
    let tc = Tc { of: ME, ..OF_5 };
    lone.tc(10, 1, tc);
    lone.hello(20, ME, &[(SYM, 9)]);
    assert_eq!(lone.routes(), WITHOUT_8);
    lone.run_until(1_000);
    let c = lone.olsr.counters();
    assert_eq!((c.forwarded, c.malformed, c.no_place), (0, 0, 0));
}

/// Of a node's numbers the last 64 are known; a jump farther than that, either way, is a node that has begun anew.
#[test]
fn numbers_come_late_and_jump() {
    let mut lone = relay();
    let mut ms = 10;
    for (number, is_new) in [
        (1_000, true),
        (1_000, false),
        (1_063, true),
        (1_000, false),
        (1_001, true),
        (1_001, false),
        // just behind what is known
        (1_127, true),
        (1_127, false),
        (1_063, true),
        (1_063, false),
        // far on, and back to the start
        (9_000, true),
        (9_000, false),
        (65_535, true),
        (0, true),
        (65_535, false),
        (2, true),
        (1, true),
        (0, false),
        (32_770, true),
        (32_770, false),
        (3, true),
        (3, false),
    ] {
        let before = lone.passed_on().len();
        lone.hello(ms, 1, &[(MPR, ME)]);
        lone.tc(ms, 1, Tc { number, ..OF_5 });
        ms += 600;
        lone.run_until(ms);
        assert_eq!(lone.passed_on().len() > before, is_new, "{number}");
    }
}

/// Neighbours that hear the same message would else all send it on at once.
#[test]
fn messages_are_passed_on_after_uneven_times() {
    let mut lone = relay();
    for number in 0..16 {
        lone.tc(100, 1, Tc { number, ..OF_5 });
    }
    lone.run_until(700);
    let after: Vec<u64> = lone.passed_on().iter().map(|s| s.at_ms - 100).collect();
    assert_eq!(after.len(), 16);
    assert!(after.iter().all(|a| *a <= 500), "{after:?}");
    assert!(
        after.iter().min() < Some(&200) && after.iter().max() > Some(&400),
        "{after:?}"
    );
}

#[test]
fn tcs_come_at_uneven_intervals() {
    let mut lone = Lone::new();
    for ms in (0..100).map(|s| s * 1_000) {
        lone.hello(ms, 1, &[(MPR, ME)]);
    }
    let at: Vec<u64> = lone.own(wire::TC).map(|t| t.at_ms).collect();
    let gaps = at.windows(2).map(|w| w[1] - w[0]);
    assert!(gaps.clone().all(|g| (4_499..=5_000).contains(&g)), "{at:?}");
    let (least, most) = (gaps.clone().min(), gaps.max());
    assert!(least < Some(4_700) && most > Some(4_800), "{least:?} {most:?}");
}

#[test]
fn the_number_of_a_tc_goes_up_when_the_selectors_are_others() {
    let mut lone = Lone::new();
    // who selects it from second to second
    let selects = |ms: u64| match ms {
        0..20_000 => &[1][..],
        20_000..40_000 => &[1, 2],
        _ => &[2],
    };
    for ms in (0..60).map(|s| s * 1_000) {
        for &n in selects(ms) {
            lone.hello(ms, n, &[(MPR, ME)]);
        }
    }
    lone.run_until(60_000);
    let mut told: Vec<_> = lone.own(wire::TC).map(|t| t.advertises()).collect();
    assert!(told.len() >= 11, "every 5 s or sooner");
    told.dedup();
    let first = told[0].0;
    let expected = [
        (first, vec![node(1)]),
        (first + 1, vec![node(1), node(2)]),
        (first + 2, vec![node(2)]),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_lost_neighbour_is_no_selector_when_it_comes_back() {
    let mut lone = relay();
    lone.hello(10, 1, &[(LOST, ME)]);
    lone.hello(20, 1, &[(SYM, ME), (SYM, 5)]);
    lone.tc(30, 1, OF_5);
    assert_eq!(lone.routes(), WITH_8);
    lone.run_until(5_000);
    assert_eq!(numbers(&lone), []);
    assert!(lone.own(wire::TC).all(|t| t.advertises().1.is_empty()));
}

/// RFC 3626, 9.3: until what was told of the last selectors has run out everywhere.
#[test]
fn who_has_no_selectors_any_more_says_so_for_a_while() {
    for interval_ms in [2_000, 5_000, 10_000] {
        let config = OlsrConfig {
            tc_interval: Duration::from_ms(interval_ms),
            ..OlsrConfig::standard(node(ME), 1)
        };
        let mut lone = Lone::with(config);
        lone.run_until(20_000);
        assert_eq!(lone.own(wire::TC).count(), 0, "there was nothing to tell");
        lone.hello(20_000, 1, &[(MPR, ME)]);
        lone.hello(25_000, 1, &[(MPR, ME)]);
        let gone_ms = 31_000;
        lone.run_until(100_000);
        let (told, empty): (Vec<_>, Vec<_>) = lone.own(wire::TC).partition(|t| t.at_ms < gone_ms);
        assert!(!told.is_empty() && told.iter().all(|t| t.advertises().1 == [node(1)]));
        assert!(empty.iter().all(|t| t.advertises().1.is_empty()));
        let last = told.iter().map(|t| t.advertises().0).max().unwrap();
        assert!(empty.iter().all(|t| t.advertises().0 > last), "news");
        let until_ms = empty.last().map(|t| t.at_ms - gone_ms);
        assert!(until_ms > Some(2 * interval_ms - 500), "{until_ms:?}");
        assert!(until_ms < Some(3 * interval_ms), "{until_ms:?}");
    }
}
