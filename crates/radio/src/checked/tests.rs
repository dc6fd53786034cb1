//! A protocol and a host that break each of the laws.

use super::*;
use crate::attribute::{Attribute, AttributeName};
use crate::event::{Beacon, Confirm, Indication, Msdu, Outcome, SetAnswer};
use crate::stamp::{Plane, Stamps};
use crate::time::Duration;
use crate::tx::TxHow;
use core::sync::atomic::{AtomicU64, Ordering};
use frame::{MacAddr, Rate};

/// Sends one frame or sets one attribute per submission; breaks a law on request.
#[derive(Default)]
struct Sample {
    twice: bool,
    flood: bool,
    stuck: bool,
    sets: bool,
    impure: Option<&'static AtomicU64>,
    wake: Option<Instant>,
}

impl Protocol for Sample {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => self.wake = Some(now + Duration::from_us(10)),
            Event::Timer if !self.stuck => self.wake = None,
            Event::Submit(_) if self.sets => {
                let token = radio.token();
                radio.set(token, AdapterId::FIRST, Attribute::TxPower(10));
            }
            Event::Submit(m) => {
                let n = if self.flood { MAX_ACTIONS + 1 } else { 1 };
                for _ in 0..n {
                    let token = radio.token();
                    radio.request(token, m.payload, &TxHow::one_shot(Rate::OFDM_6));
                    if self.twice {
                        radio.request(token, m.payload, &TxHow::one_shot(Rate::OFDM_6));
                    }
                }
                if let Some(outside) = self.impure
                    && outside.fetch_add(1, Ordering::Relaxed) % 2 == 1
                {
                    radio.abort(Token(0));
                }
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.wake
    }
}

#[derive(Default)]
struct Nothing(u64);

impl Radio for Nothing {
    fn token(&mut self) -> Token {
        self.0 += 1;
        Token(self.0)
    }
    fn request(&mut self, _: Token, _: &[u8], _: &TxHow) {}
    fn set(&mut self, _: Token, _: AdapterId, _: Attribute) {}
    fn get(&self, _: AdapterId, _: AttributeName) -> Option<Attribute> {
        None
    }
    fn abort(&mut self, _: Token) {}
    fn deliver(&mut self, _: Msdu<'_>) {}
}

const MSDU: Event<'static> = Event::Submit(Msdu::new(MacAddr::BROADCAST, b"x"));

fn confirm(token: u64) -> Event<'static> {
    Event::Confirm(Confirm::without_air(Token(token), Outcome::Acked, Rate::OFDM_6))
}

fn us(t: u64) -> Instant {
    Instant::from_us(t)
}

fn run(p: Sample, events: &[(u64, Event<'_>)]) -> Checked<Sample> {
    let mut c = Checked::new(p);
    let mut radio = Nothing::default();
    for (t, e) in events {
        c.handle(us(*t), *e, &mut radio);
    }
    c.finish();
    c
}

fn law(p: Sample, events: &[(u64, Event<'_>)]) -> Option<(Law, Party)> {
    run(p, events).violation().map(|v| (v.law, v.by))
}

#[test]
fn a_good_run_has_no_violation() {
    let events = [
        (0, Event::Start),
        (10, Event::Timer),
        (11, MSDU),
        (12, confirm(1)),
    ];
    let c = run(Sample::default(), &events);
    assert_eq!((c.violation(), c.open_tokens().len()), (None, 0));
}

#[test]
fn law_1() {
    let s = (0, Event::Start);
    assert_eq!(
        law(Sample::default(), &[s, (1, MSDU)]),
        Some((Law::OneConfirm, Party::Host))
    );
    let twice = [s, (1, MSDU), (2, confirm(1)), (3, confirm(1))];
    assert_eq!(
        law(Sample::default(), &twice),
        Some((Law::OneConfirm, Party::Host))
    );
    let p = Sample {
        twice: true,
        ..Sample::default()
    };
    assert_eq!(
        law(p, &[s, (1, MSDU), (2, confirm(1))]),
        Some((Law::OneConfirm, Party::Protocol))
    );
}

/// The answer to a change ends it, as a confirm ends a request.
#[test]
fn law_1_of_changes() {
    let sets = || Sample {
        sets: true,
        ..Sample::default()
    };
    let answer = Event::Set(SetAnswer {
        token: Token(1),
        result: Ok(()),
    });
    let (s, change) = ((0, Event::Start), (1, MSDU));
    let broken = Some((Law::OneConfirm, Party::Host));
    assert_eq!(law(sets(), &[s, change, (2, answer)]), None);
    assert_eq!(law(sets(), &[s, change]), broken, "no answer");
    assert_eq!(law(sets(), &[s, (2, answer)]), broken, "nothing was set");
}

/// A radio that calls back would have to hold the protocol, which Rust's borrows do not allow; the flag
/// catches hosts that get around them with cells.
#[test]
fn law_2() {
    let mut c: Checked<Sample> = Checked::new(Sample::default());
    c.busy = true;
    c.handle(us(0), Event::Start, &mut Nothing::default());
    assert_eq!(c.violation().map(|v| v.law), Some(Law::NoReentry));
}

#[test]
fn law_3() {
    let events = [(0, Event::Start), (5, MSDU), (4, confirm(1))];
    assert_eq!(
        law(Sample::default(), &events),
        Some((Law::TimeForward, Party::Host))
    );
}

#[test]
fn law_4() {
    let early = [(0, Event::Start), (9, Event::Timer)];
    assert_eq!(
        law(Sample::default(), &early),
        Some((Law::HonestTimer, Party::Host))
    );
    let stale = [(0, Event::Start), (10, Event::Timer), (20, Event::Timer)];
    assert_eq!(
        law(Sample::default(), &stale),
        Some((Law::HonestTimer, Party::Host))
    );
    let late = [(0, Event::Start), (1_000, Event::Timer)];
    assert_eq!(law(Sample::default(), &late), None);
}

fn received(tsf: u64) -> Indication<'static> {
    Indication {
        frame: b"",
        rate: Rate::OFDM_6,
        signal_dbm: None,
        tsf: Some(Tsf(tsf)),
        adapter: AdapterId::FIRST,
        stamps: Stamps::NONE,
    }
}

#[test]
fn law_5() {
    let heard = |tsf| Event::Indication(received(tsf));
    let s = (0, Event::Start);
    let wrong = [s, (5, heard(50)), (5, heard(40))];
    assert_eq!(
        law(Sample::default(), &wrong),
        Some((Law::OrderOfEvents, Party::Host))
    );
    // at another time it was the TSF that jumped
    assert_eq!(law(Sample::default(), &[s, (5, heard(50)), (6, heard(40))]), None);
    assert_eq!(
        law(Sample::default(), &[s, s]),
        Some((Law::OrderOfEvents, Party::Host))
    );
    assert_eq!(
        law(Sample::default(), &[(0, confirm(1))]).unwrap().0,
        Law::OrderOfEvents
    );
}

#[test]
fn law_5_of_beacons() {
    let beacon = |tsf| {
        Event::Beacon(Beacon {
            bssid: MacAddr::local(1),
            timestamp: Tsf(0),
            interval_tu: 100,
            received: received(tsf),
        })
    };
    let s = (0, Event::Start);
    assert_eq!(
        law(Sample::default(), &[s, (5, beacon(40)), (5, beacon(50))]),
        None
    );
    assert_eq!(
        law(Sample::default(), &[s, (5, beacon(50)), (5, beacon(40))]),
        Some((Law::OrderOfEvents, Party::Host))
    );
}

#[test]
fn law_5_of_stamps() {
    let stamped = |t8, t9| {
        let mut c = Confirm::without_air(Token(1), Outcome::Acked, Rate::OFDM_6);
        c.stamps.host(Plane::T8, us(t8));
        c.stamps.host(Plane::T9, us(t9));
        [(0, Event::Start), (1, MSDU), (9, Event::Confirm(c))]
    };
    assert_eq!(law(Sample::default(), &stamped(7, 8)), None);
    assert_eq!(
        law(Sample::default(), &stamped(8, 7)),
        Some((Law::OrderOfEvents, Party::Host))
    );
}

#[test]
fn law_6() {
    let flood = Sample {
        flood: true,
        ..Sample::default()
    };
    let v = law(flood, &[(0, Event::Start), (1, MSDU)]);
    assert_eq!(v, Some((Law::BoundedActions, Party::Protocol)));
    let stuck = Sample {
        stuck: true,
        ..Sample::default()
    };
    let mut events = [(20, Event::Timer); 1 + MAX_TIMERS_AT_ONCE as usize + 1];
    events[0] = (0, Event::Start);
    assert_eq!(law(stuck, &events), Some((Law::BoundedActions, Party::Protocol)));
}

/// `N` requests may be open, and not one more.
#[test]
fn law_6_of_open_requests() {
    let mut c: Checked<Sample, 1> = Checked::new(Sample::default());
    let mut radio = Nothing::default();
    c.handle(us(0), Event::Start, &mut radio);
    c.handle(us(1), MSDU, &mut radio);
    assert_eq!((c.violation(), c.open_tokens()), (None, &[Token(1)][..]));
    c.handle(us(2), MSDU, &mut radio);
    let v = c.violation().map(|v| (v.law, v.by, v.token));
    assert_eq!(v, Some((Law::BoundedActions, Party::Protocol, Some(Token(2)))));
    assert_eq!(c.open_tokens(), [Token(1)], "what has no room is not followed");
}

#[test]
fn law_7() {
    static OUTSIDE: AtomicU64 = AtomicU64::new(0);
    let make = || Sample {
        impure: Some(&OUTSIDE),
        ..Sample::default()
    };
    let mut c: Checked<Sample> = Checked::new(make()).with_twin(make());
    let mut radio = Nothing::default();
    c.handle(us(0), Event::Start, &mut radio);
    assert_eq!(c.violation(), None);
    c.handle(us(1), MSDU, &mut radio);
    assert_eq!(c.violation().map(|v| v.law), Some(Law::SameActions));
    let mut pure: Checked<Sample> = Checked::strict(Sample::default()).with_twin(Sample::default());
    pure.handle(us(0), Event::Start, &mut radio);
    pure.handle(us(1), MSDU, &mut radio);
}

/// A twin that does the same but wants to be woken at another time does something else.
#[test]
fn law_7_of_deadlines() {
    let stuck = Sample {
        stuck: true,
        ..Sample::default()
    };
    let mut c: Checked<Sample> = Checked::new(Sample::default()).with_twin(stuck);
    c.handle(us(0), Event::Start, &mut Nothing::default());
    assert_eq!(c.violation(), None);
    c.handle(us(10), Event::Timer, &mut Nothing::default());
    assert_eq!(c.violation().map(|v| v.law), Some(Law::SameActions));
}

#[test]
#[should_panic(expected = "law 3 broken by the host")]
fn strict_panics() {
    let mut c: Checked<Sample> = Checked::strict(Sample::default());
    c.handle(us(2), Event::Start, &mut Nothing::default());
    c.handle(us(1), MSDU, &mut Nothing::default());
}
