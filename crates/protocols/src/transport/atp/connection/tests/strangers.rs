//! Datagrams of anybody.

use super::*;

/// A datagram of a stranger who knows the form of packets: id and version are right, and the body is what the control flags say, so
/// that nothing but the numbers tells it from a packet of the connection. One in eight has octets of its own in the length of the blocks.
fn stranger(dice: &mut Dice, numbers: [u32; 2]) -> Vec<u8> {
    let control = (dice.roll() as u16) & 0xf037;
    let blocks = control & Control::SACK_OPT.0 != 0;
    let octets = if blocks {
        BLOCK_OCTETS * dice.within(0..=MAX_BLOCKS as u64) as usize
    } else {
        dice.within(0..=300) as usize
    };
    let mut datagram: Vec<u8> = (0..HEADER_OCTETS + octets).map(|_| dice.roll() as u8).collect();
    let size = match (dice.chance(125), blocks) {
        (true, _) => dice.roll() as u16,
        (false, true) => octets as u16,
        (false, false) => 0,
    };
    datagram[..2].copy_from_slice(&[2, 1]);
    datagram[2..4].copy_from_slice(&control.to_be_bytes());
    datagram[4..6].copy_from_slice(&size.to_be_bytes());
    datagram[8..12].copy_from_slice(&numbers[0].to_be_bytes());
    datagram[12..16].copy_from_slice(&numbers[1].to_be_bytes());
    datagram
}

/// What became of the datagrams of strangers.
#[derive(Default)]
struct Met {
    datagrams: u64,
    /// Those that are packets.
    parsed: u64,
    /// That an end took for packets of another connection, or of none.
    foreign: u64,
}

fn forged(control: Control, sequence: u32, acknowledgement: u32) -> Vec<u8> {
    let header = Header {
        sequence,
        acknowledgement,
        ..Header::new(ProtocolId::Atp, control)
    };
    header.octets().to_vec()
}

/// An end whose other end has more octets than can be on the way at once.
fn far_on() -> End {
    let [mut a, _] = connected(&Config::standard(), 1_000);
    let mut s = Sheet::default();
    for n in 1..=50 {
        a.write(at(2 * n), &[7; MAX_DATA_OCTETS]);
        a.handle(at(2 * n), Event::Timer, &mut s);
        assert_eq!(s.one().len(), MAX_PACKET_OCTETS);
        let number = a.ours.number(a.outbox.next());
        let acknowledged = forged(Control::ACK, a.theirs.number(0), number);
        a.handle(at(2 * n), Event::Indication(&acknowledged), &mut s);
    }
    assert!(a.outbox.acknowledged() == a.outbox.next() && a.outbox.next() > a.outbox.capacity());
    a
}

/// RFC 5961, section 5.
#[test]
fn an_acknowledgement_older_than_all_that_can_be_on_the_way_is_a_strangers() {
    let oldest = |a: &End| a.outbox.acknowledged() - a.outbox.capacity();
    for (older, octets) in [(0, 1), (1, 0)] {
        let mut a = far_on();
        let number = a.ours.number(oldest(&a) - older);
        let mut data = forged(Control::ACK, a.theirs.number(0), number);
        data.push(7);
        a.handle(at(200), Event::Indication(&data), &mut Sheet::default());
        assert_eq!((a.inbox.unread(), a.counters.foreign), (octets, older));
    }
}

#[test]
fn a_reset_with_an_old_acknowledgement_is_a_strangers() {
    let mut a = far_on();
    let (sequence, number) = (a.theirs.number(0), a.ours.number(a.outbox.acknowledged()));
    let reset = |older| {
        forged(
            Control::RST.with(Control::ACK),
            sequence,
            number.wrapping_sub(older),
        )
    };
    for (older, foreign) in [(1, 1), (1_448, 2)] {
        a.handle(at(200), Event::Indication(&reset(older)), &mut Sheet::default());
        assert_eq!((a.state(), a.counters.foreign), (State::Open, foreign));
    }
    a.handle(at(200), Event::Indication(&reset(0)), &mut Sheet::default());
    assert_eq!(a.state(), State::Failed(Failure::Reset));
}

/// Neither to a call before his, nor to one after it, nor what acknowledges no call at all.
#[test]
fn a_caller_believes_no_answer_to_another_call() {
    let answer = Control::SYN.with(Control::SACK_OPT);
    for (control, state) in [
        (answer, State::Open),
        (Control::RST, State::Failed(Failure::Reset)),
    ] {
        let [mut a, _] = ends(5, &Config::adaptive());
        let mut s = Sheet::default();
        a.handle(at(0), Event::Start, &mut s);
        let number = parse(&s.one()).sequence.wrapping_add(1);
        let to = control.with(Control::ACK);
        for (n, other) in [
            forged(to, 9, number.wrapping_sub(1)),
            forged(to, 9, number.wrapping_add(1)),
            forged(control, 9, number),
        ]
        .iter()
        .enumerate()
        {
            a.handle(at(1), Event::Indication(other), &mut s);
            assert_eq!((a.state(), a.counters.foreign), (State::Opening, n as u64 + 1));
        }
        a.handle(at(2), Event::Indication(&forged(to, 9, number)), &mut s);
        assert_eq!((a.state(), a.counters.foreign), (state, 3));
    }
}

/// 64 MiB ahead: what it acknowledges is not believed either.
#[test]
fn a_sequence_far_from_the_expected_one_is_a_strangers() {
    for (ahead, believed) in [((1 << 26) - 1, true), (1 << 26, false)] {
        let [mut a, _] = connected(&Config::standard(), 1_000);
        let mut s = Sheet::default();
        a.write(at(1), b"abc");
        a.handle(at(1), Event::Timer, &mut s);
        let packet = forged(Control::ACK, a.theirs.number(ahead), a.ours.number(3));
        a.handle(at(2), Event::Indication(&packet), &mut s);
        let known = (a.outbox.acknowledged(), a.counters.foreign);
        assert_eq!(known, if believed { (3, 0) } else { (0, 1) });
    }
}

/// A call with the caller's address that comes before his first packet takes his place, since he may have begun anew. He is told at once.
#[test]
fn whose_place_is_taken_is_told() {
    let ([mut a, mut b], call, answer) = called(&Config::adaptive());
    let (mut s, mut back) = (Sheet::default(), Sheet::default());
    a.handle(at(1), Event::Indication(&answer), &mut s);
    let mut other = call.clone();
    other[8..12].copy_from_slice(&0x1234_5678_u32.to_be_bytes());
    b.handle(at(1), Event::Indication(&other), &mut back);
    assert_eq!(parse(&back.one()).acknowledgement, 0x1234_5679);
    b.handle(at(2), Event::Indication(&s.one()), &mut back);
    a.handle(at(3), Event::Indication(&back.one()), &mut s);
    assert_eq!(
        (a.state(), b.state()),
        (State::Failed(Failure::Reset), State::Opening)
    );
    // who does not know the number of the answer is told nothing
    let blind = stranger(&mut Dice::new(1), [7, 9]);
    b.handle(at(4), Event::Indication(&blind), &mut back);
    assert!(back.0.iter().all(|d| !parse(d).control.has(Control::RST)));
}

/// Two ends talk in both directions, and for so many seconds strangers send each of them a packet every millisecond, with numbers
/// that they cannot know. What is read is right (the network compares every octet), and all of it arrives.
fn guesses(seed: u64, seconds: u64) -> Met {
    let mut dice = Dice::new(seed);
    // not through before the strangers are
    let octets = 700_000 * seconds as usize;
    let works = [work(octets), work(octets / 2)];
    let mut n = two(seed, Config::adaptive(), good(), works);
    let mut met = Met::default();
    // the connection is there: before, a stranger's call would take the place of the caller's
    assert!(!n.run_until(50_000) && states(&n) == [State::Open; 2]);
    for ms in 51..=seconds * 1_000 {
        assert!(!n.run_until(ms * 1_000), "{:?}", states(&n));
        for end in 0..2 {
            let numbers = [dice.roll() as u32, dice.roll() as u32];
            let datagram = stranger(&mut dice, numbers);
            met.datagrams += 1;
            met.parsed += u64::from(Header::parse(&datagram).is_ok());
            n.inject(end, &datagram);
        }
    }
    n.run_until((seconds + 120) * SECOND);
    assert_eq!((n.read(1), n.read(0)), (octets, octets / 2), "{:?}", states(&n));
    assert_eq!(states(&n), [State::Lingering; 2]);
    met.foreign = [0, 1].map(|end| n.end(end).counters().foreign).iter().sum();
    met
}

/// The same with numbers near those of the connection, which only somebody who sees its packets can have: such a stranger can spoil it, but
/// nothing panics, answers are few and short, and timers make sense.
fn near_guesses(seed: u64, seconds: u64) -> Met {
    let mut dice = Dice::new(seed);
    let mut all = Vec::new();
    let mut s = Sheet::default();
    let mut met = Met::default();
    for n in 0..2_000 * seconds {
        // ends that have failed or closed have no more to do
        if n % 2_000 == 0 {
            all = Vec::from(connected(&Config::adaptive(), 1_000));
            all.extend(ends(6, &Config::standard()));
            all[0].write(at(0), &[1; 9_000]);
            all[1].write(at(0), &[2; 9_000]);
        }
        let now = at(1 + n % 2_000 / 2);
        let near =
            |dice: &mut Dice, n: u32| n.wrapping_add(dice.within(0..=20_000) as u32).wrapping_sub(6_000);
        let to = dice.within(0..=3) as usize;
        let end = &mut all[to];
        let numbers = [end.theirs, end.ours].map(|numbers| near(&mut dice, numbers.number(0)));
        let datagram = stranger(&mut dice, numbers);
        met.datagrams += 1;
        met.parsed += u64::from(Header::parse(&datagram).is_ok());
        let before = end.counters().foreign;
        end.handle(now, Event::Indication(&datagram), &mut s);
        met.foreign += end.counters().foreign - before;
        for end in &mut all {
            end.handle(now, Event::Timer, &mut s);
            assert!(s.0.len() <= 4 && s.0.drain(..).all(|d| d.len() <= MAX_PACKET_OCTETS));
            assert!(end.outbox.acknowledged() <= end.outbox.next());
            end.read(now, &mut [0; 2_000]);
        }
    }
    met
}

/// Seven in eight are packets. Without the numbers a quarter gets an answer, since a call in the middle of a connection is asked about (RFC 5961,
/// section 4), and the others are of no connection.
fn check(blind: &Met, near: &Met) {
    assert!(
        blind.parsed * 10 >= blind.datagrams * 8,
        "{} of {}",
        blind.parsed,
        blind.datagrams
    );
    assert!(
        blind.foreign * 10 >= blind.datagrams * 7,
        "{} of {}",
        blind.foreign,
        blind.datagrams
    );
    assert!(near.parsed * 10 >= near.datagrams * 8);
    // these are looked at: a good part is neither refused by the parser nor for its numbers
    assert!(
        near.foreign * 10 <= near.datagrams * 8,
        "{} of {}",
        near.foreign,
        near.datagrams
    );
}

#[test]
fn packets_of_strangers() {
    check(&guesses(9, 6), &near_guesses(9, 6));
}

/// The same for an hour each, with new connections each minute.
#[test]
#[ignore = "takes minutes; in the step `long`"]
fn an_hour_of_packets_of_strangers() {
    for minute in 0..60 {
        check(&guesses(100 + minute, 60), &near_guesses(100 + minute, 60));
    }
}
