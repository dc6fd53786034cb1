//! HELLO by HELLO: links, two-hop neighbours, relays, and how they are told.

use super::lone::{Lone, ME, hello};
use super::*;
use wire::LinkCode;

const ASYM: LinkCode = LinkCode::ASYM;
const SYM: LinkCode = LinkCode::SYM;
const MPR: LinkCode = LinkCode::MPR;
const LOST: LinkCode = LinkCode::LOST;

#[test]
fn a_hello_that_another_node_has_made_is_malformed() {
    let mut lone = Lone::new();
    lone.hear(10, 1, |w| hello(w, 2, 3, &[(SYM, ME)]));
    assert_eq!((lone.routes(), lone.olsr.counters().malformed), (vec![], 1));
    assert_eq!((lone.names(1), lone.names(2)), (None, None));
}

#[test]
fn a_link_is_as_the_last_hello_says() {
    let mut lone = Lone::new();
    lone.hello(10, 1, &[]);
    assert_eq!(lone.routes(), []);
    assert_eq!(lone.names(1), Some(ASYM));
    for (ms, heard) in [(3_000, ASYM), (6_000, SYM)] {
        lone.hello(ms, 1, &[(heard, ME)]);
        assert_eq!(lone.routes(), [(1, 1, 1)]);
        assert_eq!(lone.names(1), Some(SYM));
        lone.hello(ms + 2_000, 1, &[(LOST, ME)]);
        assert_eq!(lone.routes(), [], "it no longer hears");
        assert_eq!(lone.names(1), Some(ASYM));
    }
}

/// RFC 3626, 6.1.1: a symmetric link to no neighbour, a type of neighbour that there is not, and codes above 15.
#[test]
fn an_invalid_link_code_says_nothing() {
    for code in [0b0010, 0b1110, 0b1101, 0b1_0110, 0b1_0001].map(LinkCode) {
        let mut lone = Lone::new();
        lone.hello(10, 1, &[(code, ME)]);
        assert_eq!(lone.routes(), [], "{code:?}");
        lone.hello(20, 1, &[(SYM, ME), (SYM, 2), (code, 3)]);
        lone.hello(30, 1, &[(code, ME), (code, 2)]);
        assert_eq!(lone.routes(), [(1, 1, 1), (2, 1, 2)], "{code:?}");
    }
    let mut lone = Lone::new();
    lone.hello(10, 1, &[(SYM, ME)]);
    lone.hello(20, 1, &[(LinkCode(0b1_0011), ME)]);
    assert_eq!(lone.routes(), [(1, 1, 1)]);
}

/// A link is told as lost for as long after its end as three HELLOs take, one that was never symmetric not at all.
#[test]
fn a_lost_link_is_told_for_a_while() {
    for interval_ms in [500, 2_000] {
        let mut lone = Lone::with(OlsrConfig {
            hello_interval: Duration::from_ms(interval_ms),
            ..OlsrConfig::standard(node(ME), 1)
        });
        lone.hello(0, 1, &[(SYM, ME)]);
        lone.hello(0, 2, &[]);
        lone.run_until(30_000);
        let told_until = 6_000 + 3 * interval_ms;
        let mut told = [0; 3];
        for h in lone.own(wire::HELLO) {
            let (phase, expected) = match h.at_ms {
                0..6_000 => (0, (Some(SYM), Some(ASYM))),
                at if at < told_until => (1, (Some(LOST), None)),
                _ => (2, (None, None)),
            };
            assert_eq!((h.names(1), h.names(2)), expected, "at {} ms", h.at_ms);
            told[phase] += 1;
        }
        assert!(told.iter().all(|n| *n >= 2), "{told:?}");
    }
}

#[test]
fn who_never_relays_is_no_relay_and_no_way_to_others() {
    let mut lone = Lone::new();
    let names = [(SYM, ME), (SYM, 5)];
    lone.hear(10, 1, |w| hello(w, 1, 0, &names));
    assert_eq!(lone.routes(), [(1, 1, 1)], "5 is given up");
    assert_eq!(lone.names(1), Some(SYM));
    lone.hello(3_000, 2, &names);
    lone.hear(3_000, 1, |w| hello(w, 1, 0, &names));
    assert_eq!(lone.routes(), [(1, 1, 1), (2, 2, 1), (5, 2, 2)]);
    assert_eq!((lone.names(1), lone.names(2)), (Some(SYM), Some(MPR)));
    // it may think better of it
    lone.hear(7_500, 1, |w| hello(w, 1, 7, &names));
    lone.hello(7_500, 2, &[(LOST, ME)]);
    assert_eq!(lone.routes(), [(1, 1, 1), (5, 1, 2)]);
    assert_eq!(lone.names(1), Some(MPR));
}

#[test]
fn what_a_lost_neighbour_has_said_of_its_neighbours_counts_no_more() {
    let mut lone = Lone::new();
    lone.hello(10, 1, &[(SYM, ME), (SYM, 5), (MPR, 6)]);
    assert_eq!(lone.routes(), [(1, 1, 1), (5, 1, 2), (6, 1, 2)]);
    lone.hello(20, 1, &[(LOST, ME), (SYM, 5)]);
    assert_eq!(lone.routes(), []);
    lone.hello(30, 1, &[(SYM, ME)]);
    assert_eq!(lone.routes(), [(1, 1, 1)]);
}

#[test]
fn a_two_hop_neighbour_ends_when_its_neighbour_says_so() {
    for (code, gone) in [(ASYM, true), (LOST, true), (SYM, false), (MPR, false)] {
        let mut lone = Lone::new();
        lone.hello(10, 1, &[(SYM, ME), (SYM, 5), (SYM, 6)]);
        lone.hello(20, 2, &[(SYM, ME), (SYM, 6)]);
        lone.hello(30, 1, &[(SYM, ME), (code, 5), (code, 6)]);
        let expected: &[_] = match gone {
            true => &[(1, 1, 1), (2, 2, 1), (6, 2, 2)],
            false => &[(1, 1, 1), (2, 2, 1), (5, 1, 2), (6, 1, 2)],
        };
        assert_eq!(lone.routes(), expected, "{code:?}");
    }
}

/// RFC 3626, 18.3: up to a quarter of the interval is taken off.
#[test]
fn hellos_come_at_uneven_intervals() {
    let mut lone = Lone::new();
    lone.run_until(100_000);
    let at: Vec<u64> = lone.own(wire::HELLO).map(|h| h.at_ms).collect();
    let gaps = at.windows(2).map(|w| w[1] - w[0]);
    assert!(gaps.clone().all(|g| (1_499..=2_000).contains(&g)), "{at:?}");
    let (least, most) = (gaps.clone().min(), gaps.max());
    assert!(least < Some(1_600) && most > Some(1_900), "{least:?} {most:?}");
}

/// RFC 3626, 3.3: each packet has the number after that of the one before, whatever else happens in between.
#[test]
fn packets_and_messages_are_numbered_without_gaps() {
    let mut lone = Lone::new();
    for n in 0..8 {
        lone.hello(1_000 * n, 1, &[(SYM, ME)]);
    }
    lone.run_until(30_000);
    assert!(lone.packets.len() > 14);
    assert!(
        lone.packets.windows(2).all(|w| w[1] == w[0] + 1),
        "{:?}",
        lone.packets
    );
    let numbers: Vec<u16> = lone.own(wire::HELLO).map(|h| h.number).collect();
    assert!(numbers.windows(2).all(|w| w[1] == w[0] + 1), "{numbers:?}");
}
