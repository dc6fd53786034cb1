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
fn told(end: &End, acknowledged: u64, holes: &[(u64, u64)]) -> Vec<u8> {
    let header = Header {
        size: (holes.len() * BLOCK_OCTETS) as u16,
        sequence: end.theirs.number(0),
        acknowledgement: end.ours.number(acknowledged),
        delay_us: 1_000,
        ..Header::new(ProtocolId::Atp, Control::ACK.with(Control::SACK_OPT))
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
        let feedback = told(&a, *acknowledged, holes);
        a.receive(at(second * 1_000), &feedback, &mut Sheet::default());
    }
    [0, 1_000, 2_000, 3_000, 4_000].map(|start| a.outbox.fate(start))
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
