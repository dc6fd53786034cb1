//! Notices of path failure.

use super::feedback::told;
use super::*;

/// A notice of path failure about the packet with these numbers.
pub(super) fn failure(sequence: u32, acknowledgement: u32) -> [u8; HEADER_OCTETS] {
    Header {
        sequence,
        acknowledgement,
        ..Header::new(ProtocolId::Atp, Control::PATH_FAILURE)
    }
    .octets()
}

/// Two ends of ours, of which one has a packet on its way, and a notice about that.
fn failing() -> ([End; 2], [u8; HEADER_OCTETS]) {
    let [mut a, b] = connected(&Config::sdmac(), 1_000);
    let mut s = Sheet::default();
    a.write(at(0), &[1; 50_000]);
    a.handle(at(1), Event::Timer, &mut s);
    let lost = parse(&s.one());
    ([a, b], failure(lost.sequence, lost.acknowledgement))
}

#[test]
fn a_path_that_fails() {
    let [mut a, _] = connected(&Config::standard(), 1_000);
    let mut s = Sheet::default();
    a.write(at(0), &[1; 5_000]);
    a.handle(at(1), Event::Timer, &mut s);
    let lost = parse(&s.one());
    let notice = |sequence| failure(sequence, lost.acknowledgement);
    let strangers = [
        notice(lost.sequence.wrapping_add(9_999)),
        failure(lost.sequence, lost.acknowledgement.wrapping_add(1)),
        failure(lost.sequence, lost.acknowledgement.wrapping_sub(1 << 20)),
    ];
    for stranger in strangers {
        a.handle(at(2), Event::Indication(&stranger), &mut s);
        assert!(!a.rate.is_searching(), "not of ours");
    }
    s.0.clear();
    a.handle(at(3), Event::Indication(&notice(lost.sequence)), &mut s);
    let probe = parse(&s.one());
    assert!(probe.control.has(Control::SACK_REQ) && a.rate.is_searching());
    a.handle(at(500), Event::Timer, &mut s);
    assert!(s.0.is_empty(), "frozen");
    a.handle(at(1_003), Event::Timer, &mut s);
    assert!(
        parse(&s.one()).control.has(Control::SACK_REQ),
        "again after an epoch"
    );
    assert_eq!(a.counters().path_failures, 1);
}

/// Ours is silent before it probes, for longer each time, and goes on with the answer.
#[test]
fn a_path_that_fails_silences_ours() {
    let ([mut a, mut b], notice) = failing();
    let mut s = Sheet::default();
    a.handle(at(2), Event::Indication(&notice), &mut s);
    a.handle(at(3), Event::Indication(&notice), &mut s);
    assert!(s.0.is_empty() && a.rate.is_searching());
    let mut probes = Vec::new();
    while probes.len() < 4 {
        let due = a.deadline().unwrap();
        a.handle(due, Event::Timer, &mut s);
        assert!(parse(&s.one()).control.has(Control::SACK_REQ), "no data");
        probes.push(due.as_ns() / 1_000_000);
    }
    let silences: Vec<_> = (0..4)
        .map(|n| probes[n] - if n == 0 { 2 } else { probes[n - 1] })
        .collect();
    for (silence, mean) in silences.iter().zip([200, 400, 800, 1_600]) {
        assert!((mean / 2..=mean * 3 / 2).contains(silence), "{silences:?}");
    }
    let due = a.deadline().unwrap();
    a.handle(due, Event::Timer, &mut s);
    let probe = s.one();
    b.handle(due, Event::Indication(&probe), &mut s);
    let answer = s.one();
    a.handle(due, Event::Indication(&answer), &mut s);
    a.handle(a.deadline().unwrap(), Event::Timer, &mut s);
    let data = parse(&s.0[0]);
    assert!(
        !a.rate.is_searching() && !data.control.has(Control::SACK_REQ),
        "data again"
    );
}

/// Feedback about data says that the path holds, and after a few of them the next silence is a short one. What asks for everything again says nothing of that.
#[test]
fn a_path_holds_when_data_have_come() {
    let silence_ms = |control| {
        let ([mut a, _], notice) = failing();
        let mut s = Sheet::default();
        a.handle(at(2), Event::Indication(&notice), &mut s);
        for _ in 0..4 {
            let due = a.deadline().unwrap();
            a.handle(due, Event::Timer, &mut s);
        }
        let answer = told(&a, Control::SACK_REQ, 0, &[]);
        a.handle(at(9_000), Event::Indication(&answer), &mut s);
        assert!(!a.rate.is_searching());
        let feedback = told(&a, control, 0, &[]);
        for _ in 0..4 {
            a.handle(at(9_000), Event::Indication(&feedback), &mut s);
        }
        a.handle(at(9_000), Event::Indication(&notice), &mut s);
        a.deadline().unwrap().since(at(9_000)).as_us() / 1_000
    };
    let silences = [Control::default(), Control::SACK_MORE].map(silence_ms);
    assert!(silences[0] <= 300 && silences[1] >= 1_600, "{silences:?}");
}
