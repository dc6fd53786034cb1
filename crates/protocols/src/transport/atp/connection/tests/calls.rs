//! How a connection begins.

use super::failing::failure;
use super::*;

#[test]
fn call_and_answer() {
    let config = Config {
        initial_number: 7,
        ..Config::adaptive()
    };
    let mut a = Connection::<_, _, 4>::caller(&config, buffers(100));
    let mut s = Sheet::default();
    a.handle(at(0), Event::Start, &mut s);
    let h = parse(&s.one());
    assert_eq!(h.control, Control::SYN.with(Control::SACK_REQ));
    assert_eq!(
        (h.sequence, h.delay_us, h.spacing_us, h.options),
        (7, 0, 40_000, OPTION_RAW_DELAY)
    );
    assert!(a.deadline().is_some_and(|d| (at(750)..at(1_250)).contains(&d)));
    let [a, _] = connected(&Config::adaptive(), 1_000);
    assert_eq!(a.spacing_us(), 3_000, "one hop: three times the delay");
    let [a, b] = connected(&Config::standard(), 1_000);
    assert_eq!((a.spacing_us(), b.rate.is_searching()), (1_000, true));
}

/// Who answers again has not heard that its answer came. A call that comes late asks for nothing.
#[test]
fn an_answer_that_comes_again_is_acknowledged() {
    let ([mut a, mut b], call, answer) = called(&Config::adaptive());
    let (mut s, mut back) = (Sheet::default(), Sheet::default());
    for ms in [0, 10] {
        a.handle(at(ms), Event::Indication(&answer), &mut s);
        let header = parse(&s.one());
        assert!(header.is_feedback() && header.acknowledgement == a.theirs.number(0));
        assert_eq!(a.state(), State::Open);
        b.handle(at(ms), Event::Indication(&header.octets()), &mut back);
        b.handle(at(ms), Event::Indication(&call), &mut back);
        assert_eq!((b.state(), back.0.len()), (State::Open, 0));
    }
}

/// The further it is, the slower the caller begins.
#[test]
fn an_answer_tells_the_hops_of_the_call() {
    for (hops, spacing_us) in [(1, 3_000), (3, 4_000), (5, 5_000)] {
        let [mut a, mut b] = ends(5, &Config::adaptive());
        let (mut s, mut back) = (Sheet::default(), Sheet::default());
        a.handle(at(0), Event::Start, &mut s);
        let mut call = s.one();
        for _ in 0..hops {
            crate::transport::wire::pass(&mut call, |_| 1_000);
        }
        b.handle(at(0), Event::Indication(&call), &mut back);
        let answer = back.one();
        assert_eq!(parse(&answer).hops, hops);
        a.handle(at(0), Event::Indication(&answer), &mut s);
        assert_eq!(a.spacing_us(), spacing_us);
    }
}

/// So does one to a probe: who looks for the rate again begins as slowly as who calls over so many hops.
#[test]
fn an_answer_tells_the_hops_of_the_probe() {
    for (hops, spacing_us) in [(1, 3_000), (3, 4_000), (5, 5_000)] {
        let [mut a, mut b] = connected(&Config::adaptive(), 2_000);
        let (mut s, mut back) = (Sheet::default(), Sheet::default());
        a.write(at(0), &[1; 5_000]);
        a.handle(at(10), Event::Timer, &mut s);
        let lost = parse(&s.one());
        let notice = failure(lost.sequence, lost.acknowledgement);
        a.handle(at(11), Event::Indication(&notice), &mut s);
        let mut probe = s.one();
        for _ in 0..hops {
            crate::transport::wire::pass(&mut probe, |_| 1_000);
        }
        b.handle(at(12), Event::Indication(&probe), &mut back);
        let answer = back.one();
        assert_eq!(parse(&answer).hops, hops);
        a.handle(at(13), Event::Indication(&answer), &mut s);
        assert_eq!(a.spacing_us(), spacing_us);
    }
}

/// A caller that has begun anew refuses the answer to the call before; its next call is answered.
#[test]
fn who_refuses_an_answer_may_call_again() {
    let ([_, mut b], _, answer) = called(&Config::adaptive());
    let (mut s, mut back) = (Sheet::default(), Sheet::default());
    let [mut anew, _] = ends(6, &Config::adaptive());
    anew.handle(at(1), Event::Start, &mut s);
    let next = s.one();
    anew.handle(at(1), Event::Indication(&answer), &mut s);
    let refusal = s.one();
    assert!(parse(&refusal).control.has(Control::RST));
    b.handle(at(1), Event::Indication(&refusal), &mut back);
    assert_eq!((b.state(), b.deadline()), (State::Listening, None));
    b.handle(at(2), Event::Indication(&next), &mut back);
    anew.handle(at(2), Event::Indication(&back.one()), &mut s);
    b.handle(at(2), Event::Indication(&s.one()), &mut back);
    assert_eq!([anew.state(), b.state()], [State::Open; 2]);
}

/// About once a second, 64 times.
#[test]
fn nobody_answers() {
    let dead = Link {
        loss: 1_000,
        ..Link::good()
    };
    let mut n = two(1, Config::standard(), [dead, Link::good()], [work(1), work(1)]);
    assert!(!n.run_until(47 * SECOND));
    assert_eq!(n.end(0).state(), State::Opening);
    n.run_until(81 * SECOND);
    assert_eq!(n.end(0).state(), State::Failed(Failure::NoAnswer));
    assert_eq!((n.end(0).deadline(), n.datagrams[0]), (None, 64));
}

/// Ours begins at once and ends as patient as the others.
#[test]
fn calls_grow_apart() {
    let mut end = Connection::<_, _, 4>::caller(&Config::sdmac(), buffers(10));
    let mut s = Sheet::default();
    end.handle(at(0), Event::Start, &mut s);
    let mut calls = vec![0];
    while let Some(due) = end.deadline() {
        calls.push(due.as_ns() / 1_000);
        end.handle(due, Event::Timer, &mut s);
    }
    assert_eq!(end.state(), State::Failed(Failure::NoAnswer));
    let waits: Vec<u64> = calls.windows(2).map(|w| w[1] - w[0]).collect();
    assert!((45_000..75_000).contains(&waits[0]), "{waits:?}");
    let first_second = calls.iter().filter(|us| **us < SECOND).count();
    assert!((10..14).contains(&first_second), "{calls:?}");
    let lately = &waits[50..];
    assert!(
        lately.iter().all(|us| (750_000..1_250_000).contains(us)),
        "{lately:?}"
    );
    assert!((55 * SECOND..75 * SECOND).contains(calls.last().unwrap()));
    assert_eq!(s.0.len(), 96);
}

/// Who calls says how long its epochs are, and the other end keeps to that, whatever it would choose itself.
#[test]
fn any_kind_talks_with_any_other() {
    for (caller, listener) in ALL.iter().flat_map(|a| ALL.map(|b| (a, b))) {
        let [one, _] = ends(1, &caller());
        let [_, other] = ends(1, &listener());
        let of = |other| {
            let [there, back] = good();
            let sides = [(one.clone(), there, work(600_000)), (other, back, work(0))];
            let mut n = Network::new(1, sides);
            assert!(n.run_until(60 * SECOND), "{:?}", n.end(0).counters());
            (n.now_us(), n.end(0).counters().missed)
        };
        let [_, alike] = ends(1, &caller());
        let ((us, missed), (alike_us, _)) = (of(other), of(alike));
        assert!(
            missed <= 1 && us.abs_diff(alike_us) < alike_us / 10,
            "{us} {missed}, alike {alike_us}"
        );
    }
}

/// Who calls and has nothing to send asks until he hears something: that the answer has come is told once, and may get lost.
#[test]
fn an_end_that_is_called_may_speak_first() {
    for config in ALL {
        let [mut a, mut b] = ends(5, &config());
        let (mut there, mut back) = (Sheet::default(), Sheet::default());
        a.handle(at(0), Event::Start, &mut there);
        b.handle(at(0), Event::Indication(&there.one()), &mut back);
        a.handle(at(1), Event::Indication(&back.one()), &mut there);
        b.write(at(1), b"220 ready");
        // what says that the answer has come, and two questions
        there.one();
        let mut now = at(1);
        for _ in 0..2 {
            now = a.deadline().unwrap();
            a.handle(now, Event::Timer, &mut there);
            assert!(parse(&there.one()).control.has(Control::SACK_REQ));
        }
        assert_eq!((b.state(), back.0.len()), (State::Opening, 0));
        let asked = now;
        let mut text = [0; 20];
        while a.read(now, &mut text) == 0 {
            now = sooner(a.deadline(), b.deadline()).unwrap();
            a.handle(now, Event::Timer, &mut there);
            b.handle(now, Event::Timer, &mut back);
            while there.0.len() + back.0.len() > 0 {
                let (to_b, to_a) = (std::mem::take(&mut there.0), std::mem::take(&mut back.0));
                to_b.iter()
                    .for_each(|d| b.handle(now, Event::Indication(d), &mut back));
                to_a.iter()
                    .for_each(|d| a.handle(now, Event::Indication(d), &mut there));
            }
        }
        assert!(text.starts_with(b"220 ready") && now < asked + config().call_wait.times(2));
        assert_eq!(a.counters().probes, 3);
        while a.deadline().unwrap() < now + Duration::from_ms(20_000) {
            // what is still due is feedback for the text
            let due = a.deadline().unwrap();
            a.handle(due, Event::Timer, &mut there);
        }
        assert_eq!(a.counters().probes, 3);
    }
}

/// Where frames are sent once, calls at one instant are all lost. The next ones must not meet again.
#[test]
fn callers_that_began_together_part() {
    let mut due: Vec<u64> = (0..32)
        .map(|number| {
            let config = Config {
                initial_number: number,
                ..Config::standard()
            };
            let mut end = Connection::<_, _, 4>::caller(&config, buffers(10));
            end.handle(at(0), Event::Start, &mut Sheet::default());
            end.deadline().unwrap().as_ns() / 1_000
        })
        .collect();
    due.sort_unstable();
    assert!(due[0] >= 750_000 && due[31] < 1_250_000, "{due:?}");
    let apart = due.windows(2).filter(|w| w[1] - w[0] > 100).count();
    assert!(apart >= 28, "{due:?}");
}

/// Carries a megabyte over a path that loses nothing; tells how long that took, us, and how many feedbacks counted as missed.
fn carry(config: &Config, measured: bool, delay_us: u64, service_us: u64) -> (u64, u64) {
    let link = Link {
        service_us: service_us..=service_us,
        queue: 1_000,
        delay_us: delay_us..=delay_us,
        measured,
        ..Link::good()
    };
    let mut n = two(1, *config, [link.clone(), link], [work(1_000_000), work(0)]);
    assert!(n.run_until(120 * SECOND), "{:?}", n.end(0).counters());
    (n.now_us(), n.end(0).counters().missed)
}

const DELAYS_US: [u64; 6] = [0, 1_000, 5_000, 20_000, 50_000, 100_000];
const SERVICES_US: [u64; 4] = [1, 37, 100, 250];

/// Where nobody knows the delay, whatever it takes to go along the path, no feedback counts as missed, and to adjust the epoch
/// costs little.
#[test]
fn no_feedback_is_missed_on_a_clean_path() {
    for delay_us in DELAYS_US {
        for service_us in SERVICES_US {
            let (adaptive_us, _) = carry(&Config::adaptive(), false, delay_us, service_us);
            let (us, missed) = carry(&Config::sdmac(), false, delay_us, service_us);
            let what = std::format!("{delay_us} {service_us}: {us}, adaptive {adaptive_us}");
            assert_eq!(missed, 0, "{what}");
            assert!(us < adaptive_us * 6 / 5, "{what}");
        }
    }
}

/// Where hops tell delays, the same; only until it knows its round trip a sender may take feedback that is on a long way for missed. The buffers hold
/// less than a round trip of packets here, so that it rests again and again.
#[test]
fn feedback_is_in_time_on_long_ways() {
    for delay_us in DELAYS_US {
        for service_us in SERVICES_US {
            let (adaptive_us, _) = carry(&Config::adaptive(), true, delay_us, service_us);
            let (us, missed) = carry(&Config::sdmac(), true, delay_us, service_us);
            let what = std::format!("{delay_us} {service_us}: {us}, adaptive {adaptive_us}, {missed} missed");
            assert!(missed <= if delay_us > 20_000 { 3 } else { 0 }, "{what}");
            assert!(us < adaptive_us * 6 / 5, "{what}");
        }
    }
}
