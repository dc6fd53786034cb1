//! Connections by hand and over networks that nobody would build.

mod calls;
mod failing;
mod feedback;
mod misled;
mod narrow;
mod several;
mod strangers;
mod unmeasured;

use super::*;
use crate::testing::Dice;
use crate::transport::testing::{Link, Network, Work};
use crate::transport::wire::{MAX_PACKET_OCTETS, blocks};
use proptest::prelude::*;
use std::format;
use std::vec;
use std::vec::Vec;

type End = Connection<Vec<u8>, Vec<Sent>>;

const ALL: [fn() -> Config; 4] = [
    Config::standard,
    Config::aggressive,
    Config::adaptive,
    Config::sdmac,
];
const SECOND: u64 = 1_000_000;

fn buffers(octets: usize) -> Buffers<Vec<u8>, Vec<Sent>> {
    Buffers {
        send: vec![0; octets],
        receive: vec![0; octets],
        sent: vec![Sent::default(); 256],
    }
}

fn work(octets: usize) -> Work {
    Work { octets, reads: None }
}

fn ends(seed: u64, config: &Config) -> [End; 2] {
    // the numbers wrap after some octets
    let config = |n: u32| Config {
        initial_number: n.wrapping_mul(seed as u32) ^ 0xffff_ff00,
        ..*config
    };
    [
        Connection::caller(&config(1), buffers(64 << 10)),
        Connection::listener(&config(2), buffers(64 << 10)),
    ]
}

fn two(seed: u64, config: Config, links: [Link; 2], works: [Work; 2]) -> Network<End> {
    let [caller, listener] = ends(seed, &config);
    let [there, back] = links;
    let [first, second] = works;
    Network::new(seed, [(caller, there, first), (listener, back, second)])
}

/// The same over links that are alike, with buffers of so many octets as files have them: as many packets as they hold of 256.
fn alike(seed: u64, config: &Config, buffer: usize, link: &Link, works: [usize; 2]) -> Network<End> {
    let room = || Buffers {
        sent: vec![Sent::default(); buffer / 256],
        ..buffers(buffer)
    };
    let [caller, listener] = [
        Connection::caller(config, room()),
        Connection::listener(config, room()),
    ];
    let [first, second] = works.map(work);
    Network::new(
        seed,
        [(caller, link.clone(), first), (listener, link.clone(), second)],
    )
}

fn good() -> [Link; 2] {
    [Link::good(), Link::good()]
}

fn states(n: &Network<End>) -> [State; 2] {
    [n.end(0).state(), n.end(1).state()]
}

/// Datagrams, for tests by hand.
#[derive(Default)]
struct Sheet(Vec<Vec<u8>>);

impl Path for Sheet {
    fn request(&mut self, datagram: &[u8]) {
        self.0.push(datagram.to_vec());
    }
}

impl Sheet {
    /// The one datagram that was sent.
    fn one(&mut self) -> Vec<u8> {
        assert_eq!(self.0.len(), 1, "{:?}", self.0);
        self.0.remove(0)
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_us(ms * 1_000)
}

/// Two ends at 0 ms, a call and the answer to it that the caller has not heard.
fn called(config: &Config) -> ([End; 2], Vec<u8>, Vec<u8>) {
    let [mut a, mut b] = ends(5, config);
    let (mut s, mut back) = (Sheet::default(), Sheet::default());
    a.handle(at(0), Event::Start, &mut s);
    let call = s.one();
    b.handle(at(0), Event::Indication(&call), &mut back);
    ([a, b], call, back.one())
}

/// Two ends that are connected, at 0 ms, without a network. The path told a delay of `us`.
fn connected(config: &Config, us: u32) -> [End; 2] {
    let [mut a, mut b] = ends(5, config);
    let (mut s, mut other) = (Sheet::default(), Sheet::default());
    a.handle(at(0), Event::Start, &mut s);
    let mut call = s.one();
    crate::transport::wire::pass(&mut call, |_| us);
    b.handle(at(0), Event::Indication(&call), &mut other);
    a.handle(at(0), Event::Indication(&other.one()), &mut s);
    b.handle(at(0), Event::Indication(&s.one()), &mut other);
    assert_eq!([a.state(), b.state(), State::Open], [State::Open; 3]);
    assert!(other.0.is_empty());
    [a, b]
}

fn parse(datagram: &[u8]) -> Header {
    Header::parse(datagram).unwrap().0
}

#[test]
fn a_file_each_way() {
    for config in ALL {
        let mut n = two(1, config(), good(), [work(300_000), work(40_000)]);
        assert!(
            n.run_until(60 * SECOND),
            "{:?}",
            [n.end(0).counters(), n.end(1).counters()]
        );
        assert_eq!((n.read(1), n.read(0)), (300_000, 40_000));
        assert_eq!(states(&n), [State::Lingering; 2]);
        let c = n.end(0).counters();
        let least = 300_000u64.div_ceil(1_448) + 1;
        assert!((least..least + 10).contains(&c.sent) && c.foreign == 0, "{c:?}");
    }
}

/// Whoever sends and whoever waits are both told, in bounded time.
#[test]
fn a_peer_that_vanishes() {
    for config in ALL {
        let cut = Link {
            cut_us: 1_500_000..=u64::MAX,
            ..Link::good()
        };
        let mut n = two(3, config(), [cut.clone(), cut], [work(5_000_000), work(0)]);
        assert!(n.run_until(62 * SECOND), "{:?}", states(&n));
        assert_eq!(states(&n), [State::Failed(Failure::PeerSilent); 2]);
        assert!(n.read(1) > 50_000);
        // probes go once an epoch and no faster
        let epochs = 60 * SECOND / config().epoch.as_us();
        assert!(
            n.end(0).counters().probes <= epochs + 10,
            "{:?}",
            n.end(0).counters()
        );
    }
}

#[test]
fn an_idle_connection_is_kept_alive() {
    let [mut a, mut b] = connected(&Config::adaptive(), 1_000);
    let (mut there, mut back) = (Sheet::default(), Sheet::default());
    let mut datagrams = 0;
    for ms in (10..600_000).step_by(10) {
        let due = |e: &End| e.deadline().is_some_and(|d| d <= at(ms));
        while due(&a) || due(&b) {
            a.handle(at(ms), Event::Timer, &mut there);
            b.handle(at(ms), Event::Timer, &mut back);
        }
        for d in core::mem::take(&mut there.0) {
            datagrams += 1;
            b.handle(at(ms), Event::Indication(&d), &mut back);
        }
        for d in core::mem::take(&mut back.0) {
            datagrams += 1;
            a.handle(at(ms), Event::Indication(&d), &mut there);
        }
    }
    assert_eq!([a.state(), b.state()], [State::Open; 2]);
    assert!(
        (20..=90).contains(&datagrams),
        "two for each half of the patience, or four: {datagrams}"
    );
}

#[test]
fn half_closed() {
    // the caller has nothing to say and ends at once; the other direction goes on
    let mut n = two(1, Config::adaptive(), good(), [work(0), work(200_000)]);
    assert!(!n.run_until(300_000));
    assert!(n.end(1).is_exhausted() && !n.end(0).is_exhausted());
    assert_eq!(states(&n), [State::Open; 2]);
    assert!(n.run_until(60 * SECOND));
    assert_eq!(n.read(0), 200_000);
}

/// What is fed back is the slower of network and reader: few packets find no room.
#[test]
fn a_slow_reader() {
    for config in [Config::aggressive(), Config::adaptive()] {
        // 20,000 octets per second; the network would carry 700,000
        let reads = Work {
            octets: 0,
            reads: Some((10_000, 200)),
        };
        let mut n = two(1, config, good(), [work(300_000), reads]);
        assert!(!n.run_until(14 * SECOND), "not faster than it reads");
        assert!(n.run_until(60 * SECOND));
        assert_eq!(n.read(1), 300_000);
        let (sent, refused) = (n.end(0).counters().sent, n.end(1).counters().refused);
        assert!(refused < sent / 2, "{refused} of {sent}");
    }
}

/// After a stretch of silence the rate is looked for anew, data are held until then, and nothing is lost.
#[test]
fn quick_start_after_three_misses() {
    for config in ALL {
        // one that adjusts itself grows with every miss
        let epoch_us = if config().adjusting {
            150_000
        } else {
            config().epoch.as_us()
        };
        let cut = Link {
            cut_us: SECOND..=SECOND + 12 * epoch_us,
            ..Link::good()
        };
        let mut n = two(2, config(), [cut.clone(), cut], [work(1_500_000), work(0)]);
        n.run_until(SECOND + 11 * epoch_us);
        let c = *n.end(0).counters();
        assert!(c.missed >= 3 && c.probes >= 3, "{c:?}");
        assert!(n.end(0).rate.is_searching());
        let held = n.sent_us.iter().filter(|t| **t > SECOND + 5 * epoch_us).count();
        assert_eq!(held, 0, "data are held");
        assert!(n.run_until(120 * SECOND), "{:?}", n.end(0).counters());
        assert_eq!(n.read(1), 1_500_000);
    }
}

/// The last packets of a burst are lost: no later packet shows it, the silence does.
#[test]
fn a_lost_tail_is_asked_for() {
    let [mut a, mut b] = connected(&Config::aggressive(), 1_000);
    let (mut s, mut back) = (Sheet::default(), Sheet::default());
    a.write(at(0), &[1; 3 * 1_448]);
    for ms in 1..=3 {
        a.handle(at(ms), Event::Timer, &mut s);
    }
    let first = s.0.remove(0);
    s.0.clear();
    b.handle(at(3), Event::Indication(&first), &mut back);
    assert_eq!(b.deadline(), Some(at(43)), "an epoch after the first packet");
    b.handle(at(43), Event::Timer, &mut back);
    let feedback = back.one();
    let h = parse(&feedback);
    assert!(h.is_feedback() && h.control.has(Control::SACK_MORE) && h.size == 0);
    a.handle(at(44), Event::Indication(&feedback), &mut s);
    a.handle(at(60), Event::Timer, &mut s);
    assert_eq!(s.0.iter().map(|d| d.len()).collect::<Vec<_>>(), [24 + 1_448; 2]);
    assert_eq!(a.counters().resent, 2);
}

#[test]
fn feedback_names_what_is_missing() {
    let short = Config {
        packet_octets: 1_000,
        ..Config::standard()
    };
    let [mut a, mut b] = connected(&short, 1_000);
    let (mut s, mut back) = (Sheet::default(), Sheet::default());
    a.write(at(0), &vec![1; 45 * 1_000]);
    for ms in 1..=45 {
        a.handle(at(ms), Event::Timer, &mut s);
    }
    // every second one is lost, and the last
    for d in s.0.drain(..).skip(1).step_by(2) {
        b.handle(at(50), Event::Indication(&d), &mut back);
    }
    assert!(back.0.is_empty());
    b.handle(at(1_050), Event::Timer, &mut back);
    let feedback = back.one();
    let (h, body) = Header::parse(&feedback).unwrap();
    assert_eq!((h.size, blocks(body).count()), (160, 20), "no more, the oldest");
    assert_eq!(
        blocks(body).next(),
        Some((a.ours.number(0), a.ours.number(1_000)))
    );
    a.handle(at(1_100), Event::Indication(&feedback), &mut s);
    for ms in (1_101..1_300).step_by(2) {
        a.handle(at(ms), Event::Timer, &mut s);
    }
    // more than an epoch has passed without data, so the rest of what is not known to have arrived goes, too
    let again: Vec<_> =
        s.0.iter()
            .map(|d| a.ours.offset(parse(d).sequence, 0).unwrap())
            .collect();
    let mut expected: Vec<u64> = (0..20).map(|n| n * 2_000).collect();
    expected.extend((39..45).map(|n| n * 1_000).filter(|n| *n != 38_000));
    assert_eq!(again, expected);
}

#[test]
fn strangers_are_not_believed() {
    let [mut a, mut b] = connected(&Config::adaptive(), 1_000);
    let mut s = Sheet::default();
    a.write(at(0), &[1; 5_000]);
    a.handle(at(1), Event::Timer, &mut s);
    let data = s.one();
    b.handle(at(2), Event::Indication(&data), &mut s);
    let (mine, theirs) = (b.ours.number(0), b.theirs.number(1_448));
    let forged = |control: Control, sequence: u32, acknowledgement: u32| {
        Header {
            sequence,
            acknowledgement,
            ..Header::new(ProtocolId::Atp, control)
        }
        .octets()
    };
    let reset = Control::RST.with(Control::ACK);
    for datagram in [
        forged(reset, theirs.wrapping_sub(1), mine),
        forged(reset, theirs.wrapping_add(1 << 20), mine),
        forged(reset, theirs, mine.wrapping_add(1)),
        forged(reset, theirs, mine.wrapping_sub(1)),
        forged(Control::RST, theirs, mine),
        forged(Control::ACK.with(Control::FIN), theirs, mine.wrapping_add(5)),
        forged(
            Control::ACK.with(Control::FIN),
            theirs.wrapping_add(1 << 31),
            mine,
        ),
    ] {
        let before = *b.counters();
        b.handle(at(3), Event::Indication(&datagram), &mut s);
        assert_eq!(
            (b.state(), b.counters().foreign),
            (State::Open, before.foreign + 1)
        );
    }
    assert!(s.0.is_empty(), "and nothing is answered");
    b.handle(at(4), Event::Indication(&forged(reset, theirs, mine)), &mut s);
    assert_eq!(b.state(), State::Failed(Failure::Reset));
    // who goes on is told that there is no connection
    b.handle(at(5), Event::Indication(&data), &mut s);
    a.handle(at(6), Event::Indication(&s.one()), &mut s);
    assert_eq!(a.state(), State::Failed(Failure::Reset));
}

#[test]
fn aborted() {
    let mut n = two(1, Config::standard(), good(), [work(5_000_000), work(0)]);
    assert!(!n.run_until(SECOND));
    n.end_mut(0).abort(Instant::from_us(SECOND));
    assert!(n.run_until(3 * SECOND));
    assert_eq!(states(&n), [Failure::Aborted, Failure::Reset].map(State::Failed));
    let mut end = Connection::<_, _, 4>::caller(&Config::standard(), buffers(10));
    end.abort(at(0));
    assert_eq!((end.deadline(), end.write(at(0), b"x")), (None, 0));
}

/// One pair of buffers serves any number of connections, and each takes a bounded amount of memory.
#[test]
fn ten_thousand_connections() {
    let octets = size_of::<Connection<&mut [u8], &mut [Sent]>>();
    assert!(octets < 5_600, "{octets}");
    let mut memory = [buffers(2_000), buffers(2_000)];
    let [mine, its] = &mut memory;
    for n in 0..10_000 {
        let config = Config {
            initial_number: n * 77_777,
            ..Config::aggressive()
        };
        let mut a: Connection<_, _, 8> = Connection::caller(&config, lent(mine));
        let mut b: Connection<_, _, 8> = Connection::listener(&config, lent(its));
        let (mut s, mut back) = (Sheet::default(), Sheet::default());
        a.handle(at(0), Event::Start, &mut s);
        b.handle(at(0), Event::Indication(&s.one()), &mut back);
        a.write(at(0), b"x");
        a.handle(at(0), Event::Indication(&back.one()), &mut s);
        for d in &s.0 {
            b.handle(at(0), Event::Indication(d), &mut back);
        }
        assert_eq!((b.state(), b.inbox.unread()), (State::Open, 1));
    }
}

fn lent(b: &mut Buffers<Vec<u8>, Vec<Sent>>) -> Buffers<&mut [u8], &mut [Sent]> {
    Buffers {
        send: &mut b.send,
        receive: &mut b.receive,
        sent: &mut b.sent,
    }
}

/// Single packets, never a burst.
#[test]
fn packets_are_spaced() {
    for config in ALL {
        let mut n = two(1, config(), good(), [work(400_000), work(0)]);
        assert!(n.run_until(60 * SECOND));
        let closest = n.sent_us.windows(2).map(|w| w[1] - w[0]).min();
        assert!(closest >= Some(100), "half of the least spacing: {closest:?}");
    }
}

/// A network that nobody would build.
fn any_link(worst: u64) -> impl Strategy<Value = Link> {
    (
        100u64..4_000,
        0u64..6_000,
        0u64..80_000,
        0u64..=worst,
        0u64..200,
        0u64..100,
        any::<bool>(),
        [0u64..20, 0u64..20, 0u64..20],
    )
        .prop_map(
            |(service, more, jitter, loss, repeat, damage, measured, [cut, long, narrow])| Link {
                service_us: service..=service + more,
                queue: 20,
                delay_us: 500..=500 + jitter,
                loss,
                repeat,
                damage,
                cut_us: cut * SECOND..=cut * SECOND + SECOND,
                long_us: long * SECOND..=(long + 2) * SECOND,
                narrow_us: narrow * SECOND..=(narrow + 5) * SECOND,
                measured,
                ..Link::good()
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Loss up to 40 %, reordering, repetition, damage, cuts, delays that jump, an MTU that shrinks, clocks that jump: every octet arrives once and in order (the network
    /// checks each), or both ends fail and say so, in bounded time.
    #[test]
    fn any_network(
        seed: u64,
        links in [any_link(400), any_link(400)],
        octets in [0usize..60_000, 0usize..20_000],
        variant in 0..ALL.len(),
        slow: bool,
        jumps in [0..20 * SECOND, 0..20 * SECOND],
    ) {
        let reads = slow.then_some((5_000, 3_000));
        let works = octets.map(|octets| Work { octets, reads });
        let mut n = two(seed, ALL[variant](), links, works);
        let mut over = n.run_until(4 * SECOND);
        for (end, jump) in jumps.into_iter().enumerate() {
            n.jump(end, jump);
            over = n.run_until((8 + 4 * end as u64) * SECOND);
        }
        over = over || n.run_until(1_500 * SECOND);
        let told = format!("{:?} {:?} {:?}", states(&n), n.end(0).counters(), n.end(1).counters());
        prop_assert!(over, "{}", told);
        if !states(&n).iter().any(|s| matches!(s, State::Failed(_))) {
            prop_assert_eq!((n.read(1), n.read(0)), (octets[0], octets[1]), "{}", told);
        } else {
            prop_assert!(n.end(0).state() == State::Failed(Failure::NoAnswer), "only the call may fail: {}", told);
        }
    }
}

/// Longer than the other end may be silent: both ends say so, and what was read until then is right.
#[test]
fn a_clock_that_jumps_too_far() {
    for config in ALL {
        let mut n = two(4, config(), good(), [work(5_000_000), work(0)]);
        assert!(!n.run_until(SECOND));
        n.jump(1, 61 * SECOND);
        assert!(n.run_until(200 * SECOND), "{:?}", states(&n));
        assert!(
            matches!(states(&n), [State::Failed(_), State::Failed(_)]),
            "{:?}",
            states(&n)
        );
    }
}

/// Who writes now and then owes nothing: what it writes at once thereafter keeps its spacing.
#[test]
fn an_application_that_pauses_makes_up_for_nothing() {
    let [mut a, _] = connected(&Config::standard(), 1_000);
    let mut s = Sheet::default();
    for n in 1..=10 {
        a.write(at(3 * n), &[7; MAX_DATA_OCTETS]);
        a.handle(at(3 * n), Event::Timer, &mut s);
        assert_eq!(s.one().len(), MAX_PACKET_OCTETS);
    }
    a.write(at(33), &[7; 6 * MAX_DATA_OCTETS]);
    let mut gone_us = Vec::new();
    let mut now = at(33);
    while gone_us.len() < 6 {
        a.handle(now, Event::Timer, &mut s);
        gone_us.extend(s.0.drain(..).map(|_| now.since(at(33)).as_us()));
        now = a.deadline().unwrap();
    }
    // the first is late by as much as any may be made up for
    assert_eq!(gone_us, [0, 500, 1_500, 2_500, 3_500, 4_500]);
}
