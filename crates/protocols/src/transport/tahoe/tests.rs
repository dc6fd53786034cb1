//! Windows by hand, and the same networks as for ATP.

use super::*;
use crate::transport::testing::{Link, Network, Work};
use crate::transport::wire::{Control, HEADER_OCTETS, Header, ProtocolId};
use proptest::prelude::*;
use radio::Duration;
use std::format;
use std::vec;
use std::vec::Vec;

type End = Connection<Vec<u8>>;

const SECOND: u64 = 1_000_000;

fn buffers(octets: usize) -> Buffers<Vec<u8>, [Sent; 0]> {
    Buffers {
        send: vec![0; octets],
        receive: vec![0; octets],
        sent: [],
    }
}

fn two(seed: u64, recovery: Recovery, links: [Link; 2], works: [Work; 2]) -> Network<End> {
    let config = |n: u32| Config {
        initial_number: n.wrapping_mul(seed as u32) ^ 0xffff_ff00,
        ..Config::new(recovery)
    };
    let [there, back] = links;
    let [first, second] = works;
    let caller = Connection::caller(&config(1), buffers(65_535));
    let listener = Connection::listener(&config(2), buffers(65_535));
    Network::new(seed, [(caller, there, first), (listener, back, second)])
}

fn work(octets: usize) -> Work {
    Work { octets, reads: None }
}

#[derive(Default)]
struct Sheet(Vec<Vec<u8>>);

impl Path for Sheet {
    fn request(&mut self, datagram: &[u8]) {
        self.0.push(datagram.to_vec());
    }
}

/// What acknowledges all before this number.
fn answer(control: Control, acknowledgement: u32) -> Header {
    Header {
        size: 65_535,
        acknowledgement,
        ..Header::new(ProtocolId::Tcp, control)
    }
}

/// A caller of 1000 octet segments that is connected.
fn opened(recovery: Recovery) -> End {
    let config = Config {
        segment_octets: 1_000,
        ..Config::new(recovery)
    };
    let mut end: End = Connection::caller(&config, buffers(65_535));
    let mut s = Sheet::default();
    end.handle(Instant::ZERO, Event::Start, &mut s);
    let call = answer(Control::SYN.with(Control::ACK), 1);
    end.handle(Instant::ZERO, Event::Indication(&call.octets()), &mut s);
    end
}

/// The same that has written all it has room for, and an acknowledgement of `offset` for it.
fn connected(recovery: Recovery) -> (End, impl Fn(&mut End, u64, u64) -> Vec<u64>) {
    let mut end = opened(recovery);
    end.write(Instant::ZERO, &vec![0; 65_535]);
    let acknowledge = move |end: &mut End, ms: u64, offset: u64| {
        let mut s = Sheet::default();
        let now = Instant::from_us(ms * 1_000);
        let ack = Header {
            sequence: 1,
            ..answer(Control::ACK, offset as u32 + 1)
        };
        end.handle(now, Event::Indication(&ack.octets()), &mut s);
        while end.deadline().is_some_and(|d| d <= now) {
            end.handle(now, Event::Timer, &mut s);
        }
        let start = |d: &Vec<u8>| u64::from(Header::parse(d).unwrap().0.sequence) - 1;
        s.0.iter().map(start).collect()
    };
    (end, acknowledge)
}

#[test]
fn slow_start_and_avoidance() {
    let (mut end, acknowledge) = connected(Recovery::Tahoe);
    assert_eq!(
        acknowledge(&mut end, 1, 0),
        [0, 1_000, 2_000, 3_000],
        "4 of 1000 octets"
    );
    assert_eq!(
        acknowledge(&mut end, 2, 1_000),
        [4_000, 5_000],
        "one more for each"
    );
    assert_eq!(acknowledge(&mut end, 3, 3_000), [6_000, 7_000, 8_000]);
    end.threshold = 3_000;
    let before = end.window;
    acknowledge(&mut end, 4, 4_000);
    assert_eq!(end.window, before + 1_000_000 / before);
}

/// 4380 octets, or four segments if these are fewer (RFC 3390).
#[test]
fn the_first_window() {
    for (segment_octets, window) in [
        (1_448, 4_380),
        (1_095, 4_380),
        (1_094, 4_376),
        (500, 2_000),
        (1, 4),
    ] {
        let config = Config {
            segment_octets,
            ..Config::new(Recovery::Tahoe)
        };
        let end: End = Connection::caller(&config, buffers(10));
        assert_eq!(end.window_octets(), window);
    }
}

/// Half of what was on the way, but two segments at least (RFC 5681, equation 4).
#[test]
fn a_loss_leaves_a_threshold_of_two_segments_or_more() {
    for (segments, threshold) in [(1, 2_000), (3, 2_000), (5, 2_500), (8, 4_000)] {
        let (mut end, acknowledge) = connected(Recovery::Tahoe);
        end.window = segments * 1_000;
        assert_eq!(acknowledge(&mut end, 1, 0).len() as u64, segments);
        let due = end.deadline().unwrap();
        end.handle(due, Event::Timer, &mut Sheet::default());
        assert_eq!((end.counters.timeouts, end.threshold), (1, threshold));
    }
}

/// Whole segments within what it has told last, from its answer on.
#[test]
fn no_more_goes_than_the_window_of_the_peer_holds() {
    for (told, written, segments) in [
        (0, 9_000, 0),
        (999, 9_000, 0),
        (1_000, 9_000, 1),
        (2_999, 9_000, 2),
        (4_000, 9_000, 4),
        (9_000, 9_000, 4),
        (1_999, 1_400, 1),
        (2_000, 1_400, 2),
    ] {
        for first in [told, 65_535] {
            let mut end = calling();
            let mut s = Sheet::default();
            let answer = from_peer(Control::SYN.with(Control::ACK), 1, 0, first);
            end.handle(Instant::ZERO, Event::Indication(&answer), &mut s);
            s.0.clear();
            end.write(Instant::ZERO, &vec![0; written]);
            if first != told {
                let ack = from_peer(Control::ACK, 1, 1, told);
                end.handle(Instant::ZERO, Event::Indication(&ack), &mut s);
            }
            while end.deadline() <= Some(Instant::ZERO) {
                end.handle(Instant::ZERO, Event::Timer, &mut s);
            }
            assert_eq!(s.0.len(), segments, "{told} of {written}");
        }
    }
}

/// A caller of 1000 octet segments that waits for the answer.
fn calling() -> End {
    let config = Config {
        segment_octets: 1_000,
        ..Config::new(Recovery::Tahoe)
    };
    let mut end: End = Connection::caller(&config, buffers(65_535));
    end.handle(Instant::ZERO, Event::Start, &mut Sheet::default());
    end
}

/// A segment without data.
fn from_peer(control: Control, acknowledgement: u32, sequence: u32, window: u16) -> [u8; HEADER_OCTETS] {
    let header = Header {
        size: window,
        sequence,
        acknowledgement,
        ..Header::new(ProtocolId::Tcp, control)
    };
    header.octets()
}

/// Neither to a call before his, nor to one after it, nor what acknowledges no call at all.
#[test]
fn a_caller_believes_no_answer_to_another_call() {
    for (control, state) in [
        (Control::SYN, State::Open),
        (Control::RST, State::Failed(Failure::Reset)),
    ] {
        let to = control.with(Control::ACK);
        let mut end = calling();
        let mut s = Sheet::default();
        for (n, (control, number)) in [(to, 0), (to, 2), (control, 1)].into_iter().enumerate() {
            let other = from_peer(control, number, 9, 1_000);
            end.handle(Instant::ZERO, Event::Indication(&other), &mut s);
            assert_eq!(
                (end.state(), end.counters.foreign),
                (State::Opening, n as u64 + 1)
            );
        }
        assert!(s.0.is_empty());
        end.handle(
            Instant::ZERO,
            Event::Indication(&from_peer(to, 1, 9, 1_000)),
            &mut s,
        );
        assert_eq!((end.state(), end.counters.foreign), (state, 3));
    }
}

#[test]
fn three_duplicates() {
    let lost = |recovery| {
        let (mut end, acknowledge) = connected(recovery);
        for n in 0..8 {
            acknowledge(&mut end, n, n * 1_000);
        }
        assert_eq!((end.una, end.next), (7_000, 18_000));
        for n in 0..2 {
            let sent = acknowledge(&mut end, 10 + n, 7_000);
            match recovery {
                Recovery::Tahoe => assert!(sent.is_empty()),
                // limited transmit, which does not count for the threshold
                Recovery::NewReno => assert_eq!(sent, [18_000 + n * 1_000]),
            }
        }
        let sent = acknowledge(&mut end, 12, 7_000);
        (end, acknowledge, sent)
    };
    let (mut end, acknowledge, sent) = lost(Recovery::Tahoe);
    assert_eq!((sent, end.window, end.threshold), (vec![7_000], 1_000, 5_500));
    assert!(acknowledge(&mut end, 13, 7_000).is_empty());
    assert_eq!(
        acknowledge(&mut end, 14, 9_000),
        [9_000, 10_000],
        "goes back and sends all again"
    );
    let (mut end, acknowledge, sent) = lost(Recovery::NewReno);
    assert_eq!((sent, end.window), (vec![7_000], 8_500));
    assert!(acknowledge(&mut end, 13, 7_000).is_empty());
    assert_eq!(
        acknowledge(&mut end, 14, 9_000),
        [9_000],
        "a partial one: the next hole"
    );
    assert!(end.recovering);
    let all = end.recover;
    acknowledge(&mut end, 15, all - 1);
    assert!(end.recovering, "up to the highest that was sent, and no less");
    acknowledge(&mut end, 16, all);
    assert_eq!((end.recovering, end.window), (false, 5_500));
    assert_eq!(end.counters().fast, 1);
}

#[test]
fn timeouts_double() {
    let (mut end, acknowledge) = connected(Recovery::Tahoe);
    acknowledge(&mut end, 0, 0);
    let mut at = Vec::new();
    while let Some(due) = end.deadline() {
        let mut s = Sheet::default();
        end.handle(due, Event::Timer, &mut s);
        if s.0.len() == 1 {
            assert_eq!(Header::parse(&s.0[0]).unwrap().0.sequence, 1, "the oldest alone");
            at.push(due.as_ns() / 1_000_000_000);
        }
    }
    // 3 s, because nothing was measured
    assert_eq!(at, [3, 9, 21, 45, 93]);
    assert_eq!(end.state(), State::Failed(Failure::PeerSilent));
}

#[test]
fn a_file_each_way() {
    for recovery in [Recovery::Tahoe, Recovery::NewReno] {
        let mut n = two(
            1,
            recovery,
            [Link::good(), Link::good()],
            [work(300_000), work(70_000)],
        );
        assert!(n.run_until(60 * SECOND), "{:?}", n.end(0).counters());
        assert_eq!((n.read(1), n.read(0)), (300_000, 70_000));
    }
}

#[test]
fn a_closed_window_opens() {
    let slow = Work {
        octets: 0,
        reads: Some((300_000, 30_000)),
    };
    let mut n = two(
        1,
        Recovery::Tahoe,
        [Link::good(), Link::good()],
        [work(400_000), slow],
    );
    assert!(n.run_until(60 * SECOND), "{:?}", n.end(0).counters());
    assert_eq!(n.read(1), 400_000);
}

#[test]
fn nobody_there() {
    let dead = Link {
        loss: 1_000,
        ..Link::good()
    };
    let mut n = two(1, Recovery::Tahoe, [dead, Link::good()], [work(1), work(0)]);
    n.run_until(200 * SECOND);
    assert_eq!(n.end(0).state(), State::Failed(Failure::NoAnswer));
    let mut n = two(
        1,
        Recovery::Tahoe,
        [Link::good(), Link::good()],
        [work(5_000_000), work(0)],
    );
    n.run_until(SECOND);
    n.end_mut(1).abort(Instant::from_us(SECOND));
    n.run_until(5 * SECOND);
    let states = [n.end(0).state(), n.end(1).state()];
    assert_eq!(states, [Failure::Reset, Failure::Aborted].map(State::Failed));
}

fn any_link() -> impl Strategy<Value = Link> {
    (100u64..4_000, 0u64..40_000, 0u64..250, 0u64..100, 0u64..50).prop_map(
        |(service, jitter, loss, repeat, damage)| Link {
            service_us: service..=service,
            delay_us: 500..=500 + jitter,
            loss,
            repeat,
            damage,
            ..Link::good()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_network(
        seed: u64,
        links in [any_link(), any_link()],
        octets in [0usize..60_000, 0usize..20_000],
        newreno: bool,
    ) {
        let recovery = if newreno { Recovery::NewReno } else { Recovery::Tahoe };
        let mut n = two(seed, recovery, links, octets.map(work));
        let over = n.run_until(20_000 * SECOND);
        let told = [0, 1].map(|e| n.end(e)).map(|e| {
            format!("{:?} {} {} {} {} {:?} {:?}", e.state, e.una, e.next, e.highest, e.end(), e.timer, e.counters)
        });
        let told = told.join("\n");
        // what was delivered was right in any case: the network checks each octet
        if ![0, 1].iter().any(|e| matches!(n.end(*e).state(), State::Failed(Failure::NoAnswer | Failure::PeerSilent))) {
            prop_assert!(over, "{}", told);
            prop_assert_eq!((n.read(1), n.read(0)), (octets[0], octets[1]), "{}", told);
        }
    }
}

/// Until `us` of its deadlines, and what it sent: the control octets.
fn alone(end: &mut End, until_us: u64) -> Vec<Control> {
    let mut s = Sheet::default();
    while let Some(at) = end.deadline().filter(|at| *at <= Instant::from_us(until_us)) {
        end.handle(at, Event::Timer, &mut s);
    }
    s.0.iter().map(|d| Header::parse(d).unwrap().0.control).collect()
}

/// An end with nothing to send notices that the other one has gone, and one that is answered stays.
#[test]
fn silence_ends_a_connection() {
    let config = Config {
        patience: Duration::from_ms(8_000),
        ..Config::new(Recovery::NewReno)
    };
    let from_peer =
        |control, acknowledgement, sequence| from_peer(control, acknowledgement, sequence, 65_535);
    let called = || {
        let mut end: End = Connection::listener(&config, buffers(10_000));
        let call = from_peer(Control::SYN, 0, 0);
        end.handle(Instant::ZERO, Event::Indication(&call), &mut Sheet::default());
        assert_eq!(end.state(), State::Opening);
        end
    };
    let mut half_open = called();
    assert_eq!(alone(&mut half_open, 60_000_000), []);
    assert_eq!(half_open.state(), State::Listening);

    let mut left_alone = called();
    let ack = from_peer(Control::ACK, 1, 1);
    left_alone.handle(Instant::ZERO, Event::Indication(&ack), &mut Sheet::default());
    let asks = alone(&mut left_alone, 60_000_000);
    assert!(
        asks.len() == 4 && asks.iter().all(|c| c.has(Control::SACK_REQ)),
        "{asks:?}"
    );
    assert_eq!(left_alone.state(), State::Failed(Failure::PeerSilent));

    let mut answered = called();
    for n in 0..10 {
        answered.handle(
            Instant::from_us(n * 5_000_000),
            Event::Indication(&ack),
            &mut Sheet::default(),
        );
        alone(&mut answered, (n + 1) * 5_000_000);
    }
    assert_eq!(answered.state(), State::Open);
    // and it answers itself
    let ask = from_peer(Control::ACK.with(Control::SACK_REQ), 1, 1);
    let mut s = Sheet::default();
    answered.handle(Instant::from_us(50_000_000), Event::Indication(&ask), &mut s);
    assert_eq!(s.0.len(), 1);
}

/// Who calls and has nothing to send asks until he hears something: his acknowledgement of the answer may have got lost.
#[test]
fn an_end_that_is_called_may_speak_first() {
    let config = Config::new(Recovery::NewReno);
    let mut a: End = Connection::caller(&config, buffers(10_000));
    let mut b: End = Connection::listener(&config, buffers(10_000));
    let (mut there, mut back) = (Sheet::default(), Sheet::default());
    a.handle(Instant::ZERO, Event::Start, &mut there);
    b.handle(Instant::ZERO, Event::Indication(&there.0.remove(0)), &mut back);
    a.handle(Instant::ZERO, Event::Indication(&back.0.remove(0)), &mut there);
    b.write(Instant::ZERO, b"220 ready");
    there.0.clear();
    let now = Instant::from_us(SECOND);
    assert_eq!(a.deadline(), Some(now));
    a.handle(now, Event::Timer, &mut there);
    b.handle(now, Event::Indication(&there.0.remove(0)), &mut back);
    assert_eq!(b.state(), State::Open);
    back.0
        .iter()
        .for_each(|d| a.handle(now, Event::Indication(d), &mut there));
    let mut text = [0; 20];
    assert_eq!(a.read(now, &mut text), 9);
    assert!(a.deadline().unwrap() > now + Duration::from_ms(20_000));
}

/// What is written and ended at once goes at once, its end too.
#[test]
fn the_end_goes_behind_the_last_data() {
    for recovery in [Recovery::Tahoe, Recovery::NewReno] {
        let mut end = opened(recovery);
        let mut s = Sheet::default();
        end.write(Instant::ZERO, &[7; 200]);
        end.finish(Instant::ZERO);
        while end.deadline().is_some_and(|d| d <= Instant::ZERO) {
            end.handle(Instant::ZERO, Event::Timer, &mut s);
        }
        let fins =
            s.0.iter()
                .filter(|d| Header::parse(d).unwrap().0.control.has(Control::FIN))
                .count();
        assert_eq!(
            fins,
            1,
            "of {} segments, next timer at {:?}",
            s.0.len(),
            end.deadline()
        );
    }
}
