//! Record what a protocol was told and what it did, and replay it on a desk (law 7).
//!
//! [`Tape`] wraps a protocol and writes every event and every action to a [`Sink`]. [`replay`] feeds the events
//! to a fresh protocol and compares each of its actions with the tape. The format is a header of 12 octets
//! followed by records in `postcard` encoding, each behind its length; it is the same on every host.

mod replay;

pub use replay::{ReplayError, Replayed, replay, requested};

use crate::attribute::{Attribute, AttributeName};
use crate::event::{Event, Msdu, Token};
use crate::time::Instant;
use crate::tx::{AdapterId, TxHow};
use crate::{MAX_FRAME_OCTETS, Protocol, Radio};
use core::cell::RefCell;
use serde::{Deserialize, Serialize};

/// First octets of every tape: a name and the version of the format.
pub const MAGIC: &[u8; 12] = b"sdmac-tape\x00\x01";

/// Octets of the longest record, its length included.
pub const MAX_RECORD_OCTETS: usize = MAX_FRAME_OCTETS + 512;

/// Takes the octets of a tape. Any `FnMut(&[u8])` is one.
pub trait Sink {
    /// Appends `octets`.
    fn append(&mut self, octets: &[u8]);
}

impl<F: FnMut(&[u8])> Sink for F {
    fn append(&mut self, octets: &[u8]) {
        self(octets);
    }
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
enum Record<'a> {
    Event(Instant, #[serde(borrow)] Event<'a>),
    Token(Token),
    Request(Token, #[serde(borrow)] &'a [u8], TxHow),
    Set(Token, AdapterId, Attribute),
    Get(AdapterId, AttributeName, Option<Attribute>),
    Abort(Token),
    #[serde(borrow)]
    Deliver(Msdu<'a>),
    /// What `deadline` said after the event.
    Deadline(Option<Instant>),
    /// A record that was too long to keep, by its kind.
    TooLong(u8),
}

/// A recorder around a protocol.
pub struct Tape<P, S> {
    inner: P,
    out: RefCell<Writer<S>>,
}

struct Writer<S> {
    sink: S,
    buffer: [u8; MAX_RECORD_OCTETS],
}

impl<S: Sink> Writer<S> {
    fn write(&mut self, record: &Record<'_>) {
        let body = match postcard::to_slice(record, &mut self.buffer) {
            Ok(body) => body,
            // only a submission or delivery longer than any frame
            Err(_) => postcard::to_slice(&Record::TooLong(0), &mut self.buffer).expect("fits"),
        };
        self.sink.append(&(body.len() as u16).to_le_bytes());
        self.sink.append(body);
    }
}

impl<P: Protocol, S: Sink> Tape<P, S> {
    /// Records `inner` to `sink`, from its first event on.
    pub fn new(inner: P, mut sink: S) -> Self {
        sink.append(MAGIC);
        Tape {
            inner,
            out: RefCell::new(Writer {
                sink,
                buffer: [0; MAX_RECORD_OCTETS],
            }),
        }
    }

    /// The protocol.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// The protocol and the sink.
    pub fn into_parts(self) -> (P, S) {
        (self.inner, self.out.into_inner().sink)
    }

    /// The sink.
    pub fn sink(&mut self) -> &mut S {
        &mut self.out.get_mut().sink
    }
}

impl<P: Protocol, S: Sink> Protocol for Tape<P, S> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.out.get_mut().write(&Record::Event(now, event));
        self.inner.handle(
            now,
            event,
            &mut Recorder {
                radio,
                out: &self.out,
            },
        );
        self.out.get_mut().write(&Record::Deadline(self.inner.deadline()));
    }

    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }
}

struct Recorder<'a, S> {
    radio: &'a mut dyn Radio,
    out: &'a RefCell<Writer<S>>,
}

impl<S: Sink> Radio for Recorder<'_, S> {
    fn token(&mut self) -> Token {
        let token = self.radio.token();
        self.out.borrow_mut().write(&Record::Token(token));
        token
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.out.borrow_mut().write(&Record::Request(token, frame, *how));
        self.radio.request(token, frame, how);
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        self.out
            .borrow_mut()
            .write(&Record::Set(token, adapter, attribute));
        self.radio.set(token, adapter, attribute);
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        let answer = self.radio.get(adapter, name);
        self.out.borrow_mut().write(&Record::Get(adapter, name, answer));
        answer
    }

    fn abort(&mut self, token: Token) {
        self.out.borrow_mut().write(&Record::Abort(token));
        self.radio.abort(token);
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.out.borrow_mut().write(&Record::Deliver(msdu));
        self.radio.deliver(msdu);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::event::{Confirm, Outcome};
    use crate::stamp::{Plane, Stamps};
    use crate::time::{Duration, Tsf};
    use frame::{MacAddr, Rate};
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Answers every submission with a request at a rate that depends on an attribute.
    #[derive(Default)]
    struct Sample {
        wake: Option<Instant>,
        rate_on_confirm: Option<Rate>,
    }

    impl Protocol for Sample {
        fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
            match event {
                Event::Submit(m) => {
                    let token = radio.token();
                    let fast = radio.get(AdapterId::FIRST, AttributeName::Channel).is_some();
                    let rate = if fast { Rate::OFDM_54 } else { Rate::OFDM_6 };
                    radio.request(token, m.payload, &TxHow::one_shot(rate));
                    self.wake = Some(now + Duration::from_us(5));
                }
                Event::Confirm(c) => {
                    let rate = self.rate_on_confirm.unwrap_or(c.rate);
                    radio.request(c.token, b"again", &TxHow::one_shot(rate));
                    radio.deliver(Msdu::new(MacAddr::local(1), b"up"));
                    radio.abort(c.token);
                }
                Event::Timer => self.wake = None,
                _ => {}
            }
        }
        fn deadline(&self) -> Option<Instant> {
            self.wake
        }
    }

    struct Below(u64);

    impl Radio for Below {
        fn token(&mut self) -> Token {
            self.0 += 1;
            Token(self.0)
        }
        fn request(&mut self, _: Token, _: &[u8], _: &TxHow) {}
        fn set(&mut self, _: Token, _: AdapterId, _: Attribute) {}
        fn get(&self, _: AdapterId, name: AttributeName) -> Option<Attribute> {
            (name == AttributeName::Channel && self.0 % 2 == 1).then_some(Attribute::Channel(5825))
        }
        fn abort(&mut self, _: Token) {}
        fn deliver(&mut self, _: Msdu<'_>) {}
    }

    fn record() -> Vec<u8> {
        let mut octets = Vec::new();
        {
            let mut tape = Tape::new(Sample::default(), |b: &[u8]| octets.extend_from_slice(b));
            let mut below = Below(0);
            tape.handle(Instant::ZERO, Event::Start, &mut below);
            for i in 0..10u64 {
                let t = Instant::from_us(10 * i + 1);
                let payload = [i as u8; 300];
                tape.handle(
                    t,
                    Event::Submit(Msdu::new(MacAddr::local(2), &payload)),
                    &mut below,
                );
                let mut stamps = Stamps::NONE;
                stamps.host(Plane::T9, t);
                let tsf = Some(Tsf(i));
                let c = Confirm::without_air(Token(i), Outcome::Acked, Rate::OFDM_24);
                tape.handle(t, Event::Confirm(Confirm { stamps, tsf, ..c }), &mut below);
                tape.handle(t + Duration::from_us(5), Event::Timer, &mut below);
            }
        }
        octets
    }

    #[test]
    fn replays_action_for_action() {
        let tape = record();
        let found = replay(&tape, &mut Sample::default()).unwrap();
        assert_eq!(
            found,
            Replayed {
                events: 31,
                actions: 40
            }
        );
    }

    #[test]
    fn what_was_requested_is_read_from_it() {
        let tape = record();
        let frames: Vec<Vec<u8>> = requested(&tape).map(<[u8]>::to_vec).collect();
        let of = |i: u8| [std::vec![i; 300], b"again".to_vec()];
        assert_eq!(frames, (0..10).flat_map(of).collect::<Vec<_>>());
        assert_eq!(
            requested(&tape[..tape.len() / 2]).count(),
            10,
            "as far as it goes"
        );
        assert_eq!(requested(b"").count(), 0);
    }

    #[test]
    fn another_protocol_diverges() {
        let tape = record();
        let mut other = Sample {
            rate_on_confirm: Some(Rate::OFDM_6),
            ..Sample::default()
        };
        let Err(ReplayError::Diverged { event, expected, .. }) = replay(&tape, &mut other) else {
            panic!("must diverge")
        };
        assert_eq!((event, expected), (2, "a request"));
        struct Deaf;
        impl Protocol for Deaf {
            fn handle(&mut self, _: Instant, _: Event<'_>, _: &mut dyn Radio) {}
            fn deadline(&self) -> Option<Instant> {
                None
            }
        }
        assert!(matches!(
            replay(&tape, &mut Deaf),
            Err(ReplayError::Diverged { event: 1, .. })
        ));
    }

    #[test]
    fn what_is_no_tape() {
        assert_eq!(replay(b"", &mut Sample::default()), Err(ReplayError::NotATape));
        assert_eq!(
            replay(b"sdmac-tape\0\x09", &mut Sample::default()),
            Err(ReplayError::NotATape)
        );
        assert_eq!(replay(MAGIC, &mut Sample::default()), Ok(Replayed::default()));
        let tape = record();
        let cut = replay(&tape[..tape.len() - 3], &mut Sample::default());
        assert!(matches!(cut, Err(ReplayError::Damaged { .. })), "{cut:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 512 }))]
        #[test]
        fn a_damaged_tape_never_panics(at in 0usize..4_000, bit in 0u8..8) {
            let mut tape = record();
            let at = at % tape.len();
            tape[at] ^= 1 << bit;
            let _ = replay(&tape, &mut Sample::default());
            requested(&tape).for_each(drop);
        }
    }
}
