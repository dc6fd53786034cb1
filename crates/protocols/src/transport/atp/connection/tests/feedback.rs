//! Feedback by hand: what it says of packets, and what it does not.

use super::*;
use crate::transport::stream::Fate::{self, Arrived, Missing, Unknown};

const SHORT: Config = Config {
    packet_octets: 1_000,
    ..Config::standard()
};

/// A caller that has sent five packets of 1,000 octets, one each millisecond.
fn five_sent() -> End {
    let [mut a, _] = connected(&SHORT, 1_000);
    let mut s = Sheet::default();
    a.write(at(0), &[1; 5_000]);
    for ms in 1..=5 {
        a.handle(at(ms), Event::Timer, &mut s);
        assert_eq!(s.one().len(), HEADER_OCTETS + 1_000);
    }
    a
}

/// What the other end says: all before `acknowledged` has come, and `holes` are missing.
pub(super) fn told(end: &End, control: Control, acknowledged: u64, holes: &[(u64, u64)]) -> Vec<u8> {
    let header = Header {
        size: (holes.len() * BLOCK_OCTETS) as u16,
        sequence: end.theirs.number(0),
        acknowledgement: end.ours.number(acknowledged),
        delay_us: 1_000,
        ..Header::new(
            ProtocolId::Atp,
            control.with(Control::ACK).with(Control::SACK_OPT),
        )
    };
    let mut out = header.octets().to_vec();
    for (left, right) in holes {
        out.extend(end.ours.number(*left).to_be_bytes());
        out.extend(end.ours.number(*right).to_be_bytes());
    }
    out
}

/// What the sender takes the packets for once it was told so: one feedback after the other, each late enough that no packet is still on its way.
fn fates(feedbacks: &[(u64, &[(u64, u64)])]) -> [Fate; 5] {
    let mut a = five_sent();
    for ((acknowledged, holes), second) in feedbacks.iter().zip((10..).step_by(10)) {
        let feedback = told(&a, Control::default(), *acknowledged, holes);
        a.receive(at(second * 1_000), &feedback, &mut Sheet::default());
    }
    all(&mut a)
}

fn all(end: &mut End) -> [Fate; 5] {
    [0, 1_000, 2_000, 3_000, 4_000].map(|start| end.outbox.fate(start))
}

#[test]
fn what_a_late_feedback_misses_has_not_arrived() {
    let old: (u64, &[(u64, u64)]) = (0, &[(0, 2_000), (3_000, 4_000)]);
    assert_eq!(fates(&[old]), [Missing, Missing, Arrived, Missing, Unknown]);
    let new: (u64, &[(u64, u64)]) = (1_000, &[(1_000, 2_000), (3_000, 4_000)]);
    let both = [Arrived, Missing, Arrived, Missing, Unknown];
    assert_eq!(fates(&[new]), both);
    assert_eq!(fates(&[new, old]), both);
    // the newer one has told nothing of it yet
    assert_eq!(fates(&[(1_000, &[]), old]), both);
}

#[test]
fn a_hole_that_is_acknowledged_says_nothing() {
    let old: (u64, &[(u64, u64)]) = (0, &[(0, 1_000), (3_000, 4_000)]);
    for acknowledged in [1_000, 2_000] {
        assert_eq!(
            fates(&[(acknowledged, &[]), old])[2..],
            [Arrived, Missing, Unknown]
        );
    }
}

/// Holes beyond what was sent, or without an octet, are of no receiver: nor is what follows them.
#[test]
fn holes_that_cannot_be_are_not_believed() {
    for hole in [(1_000, 5_001), (1_000, 1_000), (2_000, 1_000)] {
        assert_eq!(fates(&[(0, &[hole, (3_000, 4_000)])]), [Unknown; 5], "{hole:?}");
    }
}

/// Half an epoch, here: what the other end misses may still come. Half as long again where nothing has come that was sent later.
#[test]
fn what_has_just_gone_is_not_missing() {
    let cases = [
        (Control::default(), &[(0, 2_000)][..], 500),
        (Control::SACK_MORE, &[], 750),
    ];
    for (control, holes, until) in cases {
        let mut a = five_sent();
        let feedback = told(&a, control, 0, holes);
        for ms in [6, until] {
            a.receive(at(ms), &feedback, &mut Sheet::default());
            assert_eq!(all(&mut a), [Unknown; 5], "{control:?} {ms}");
        }
        a.receive(at(until + 1), &feedback, &mut Sheet::default());
        assert_eq!(all(&mut a)[..2], [Missing, Unknown], "{control:?}");
    }
}

/// The pauses of a reader would slow a sender down that goes by losses alone. One that holds the stream up is told in any case.
#[test]
fn a_reader_that_keeps_up_counts_only_where_the_delay_is_known() {
    let fed_back_us = |us: u32, packets: u64| {
        let [a, mut b] = connected(&Config::standard(), us);
        let mut s = Sheet::default();
        for n in 0..packets {
            let start = n * MAX_DATA_OCTETS as u64;
            let header = a.header(Control::default(), a.ours.number(start));
            let data = [&header.octets()[..], &[7; MAX_DATA_OCTETS]].concat();
            b.handle(at(1), Event::Indication(&data), &mut s);
        }
        assert_eq!(b.read(at(5), &mut [0; MAX_DATA_OCTETS]), MAX_DATA_OCTETS);
        b.handle(at(1_001), Event::Timer, &mut s);
        parse(&s.one()).delay_us
    };
    // 0.15 of the 4 ms that it took for the packet
    assert_eq!([(0, 2), (100, 2)].map(|(us, n)| fed_back_us(us, n)), [0, 600]);
    // more than half of the buffer, and nothing was read since
    assert_eq!(
        [(0, 30), (100, 30)].map(|(us, n)| fed_back_us(us, n)),
        [996_000; 2]
    );
}

/// As long as packets are by now, of a path that has become narrow; the last one of a stream is shorter.
#[test]
fn two_packets_that_are_lost_are_told_at_once() {
    for (lost, last, told) in [(1, 524, 0), (2, 524, 1), (2, 100, 1)] {
        let [a, mut b] = connected(&Config::adaptive(), 1_000);
        let mut s = Sheet::default();
        let mut start = 0;
        for octets in [MAX_DATA_OCTETS, 524, 524, last] {
            if octets == last && start > 2_000 {
                start += lost * 524;
            }
            assert!(s.0.is_empty(), "nothing is lost yet");
            let header = Header {
                spacing_us: 1_000,
                ..a.header(Control::default(), a.ours.number(start))
            };
            let data = [&header.octets()[..], &vec![7; octets]].concat();
            b.handle(at(1), Event::Indication(&data), &mut s);
            start += octets as u64;
        }
        assert_eq!(s.0.len(), told, "{lost} {last}");
    }
}

#[test]
fn a_hole_out_of_turn_does_not_fill_the_one_before_it() {
    let holes = [(3_000, 4_000), (1_000, 2_000), (4_000, 5_000)];
    assert_eq!(fates(&[(0, &holes)])[3..], [Missing; 2]);
}
