//! Record what a protocol was told and what it did, and replay it on a desk (law 7).
//!
//! [`Tape`] wraps a protocol and writes every event and every action to a [`Sink`]. [`replay`] feeds the events
//! to a fresh protocol and compares each of its actions with the tape. The format is a header of 12 octets
//! followed by records in `postcard` encoding, each behind its length; it is the same on every host.

use crate::attribute::{Attribute, AttributeName};
use crate::event::{Event, Msdu, Token};
use crate::time::Instant;
use crate::tx::{AdapterId, TxHow};
use crate::{MAX_FRAME_OCTETS, Protocol, Radio};
use core::cell::RefCell;
use core::fmt;
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

/// What a replay found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// Events fed to the protocol.
    pub events: u64,
    /// Actions that were the same.
    pub actions: u64,
}

/// Why a replay ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayError {
    /// The octets are not a tape, or one of another version.
    NotATape,
    /// The octets from `offset` on are not a record: the tape is damaged or cut off.
    Damaged {
        /// Octets from the start.
        offset: usize,
    },
    /// The protocol did something else than on the tape.
    Diverged {
        /// Octets from the start: the record that was expected.
        offset: usize,
        /// Number of the event that led to it, counted from 0.
        event: u64,
        /// What the tape has there.
        expected: &'static str,
        /// What the protocol did.
        found: &'static str,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::NotATape => write!(f, "not a tape of this version"),
            ReplayError::Damaged { offset } => write!(f, "the tape is damaged at octet {offset}"),
            ReplayError::Diverged {
                offset,
                event,
                expected,
                found,
            } => write!(
                f,
                "event {event}: the tape has {expected} at octet {offset}, the protocol did {found}"
            ),
        }
    }
}

impl core::error::Error for ReplayError {}

impl Record<'_> {
    fn name(&self) -> &'static str {
        match self {
            Record::Event(..) => "the next event",
            Record::Token(_) => "a token",
            Record::Request(..) => "a request",
            Record::Set(..) => "a set",
            Record::Get(..) => "a get",
            Record::Abort(_) => "an abort",
            Record::Deliver(_) => "a delivery",
            Record::Deadline(_) => "a deadline",
            Record::TooLong(_) => "an overlong record",
        }
    }
}

/// Feeds the events of `tape` to `protocol` and compares what it does, action for action and deadline for
/// deadline.
///
/// # Errors
/// At the first difference, or where the tape cannot be read on.
pub fn replay(tape: &[u8], protocol: &mut impl Protocol) -> Result<Replayed, ReplayError> {
    if !tape.starts_with(MAGIC) {
        return Err(ReplayError::NotATape);
    }
    let mut player = Player {
        reader: RefCell::new(Reader {
            tape,
            at: MAGIC.len(),
            matched: 0,
            error: None,
        }),
        event: 0,
    };
    let mut found = Replayed::default();
    loop {
        let reader = player.reader.get_mut();
        if reader.at == tape.len() {
            return Ok(found);
        }
        let offset = reader.at;
        let Some(Record::Event(now, event)) = reader.read()? else {
            return Err(ReplayError::Damaged { offset });
        };
        protocol.handle(now, event, &mut player);
        player.expect(&Record::Deadline(protocol.deadline()));
        let reader = player.reader.get_mut();
        if let Some(error) = reader.error.take() {
            return Err(error);
        }
        found.events += 1;
        found.actions += reader.matched;
        reader.matched = 0;
        player.event += 1;
    }
}

/// The frames that the protocol of a tape has requested, in order, as far as it can be read.
pub fn requested(tape: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut reader = Reader {
        tape,
        at: MAGIC.len().min(tape.len()),
        matched: 0,
        error: None,
    };
    let records = core::iter::from_fn(move || reader.read().ok().flatten());
    records.filter_map(|record| match record {
        Record::Request(_, frame, _) => Some(frame),
        _ => None,
    })
}

struct Reader<'a> {
    tape: &'a [u8],
    at: usize,
    matched: u64,
    error: Option<ReplayError>,
}

impl<'a> Reader<'a> {
    /// The next record; `None` at the end.
    fn read(&mut self) -> Result<Option<Record<'a>>, ReplayError> {
        let damaged = ReplayError::Damaged { offset: self.at };
        let rest = &self.tape[self.at..];
        if rest.is_empty() {
            return Ok(None);
        }
        let (len, rest) = rest.split_first_chunk::<2>().ok_or(damaged)?;
        let len = usize::from(u16::from_le_bytes(*len));
        let body = rest.get(..len).ok_or(damaged)?;
        let record = postcard::from_bytes(body).map_err(|_| damaged)?;
        self.at += 2 + len;
        Ok(Some(record))
    }
}

/// A radio that answers from the tape and notes the first difference.
struct Player<'a> {
    reader: RefCell<Reader<'a>>,
    event: u64,
}

impl<'a> Player<'a> {
    /// The next record if the protocol is still on the tape; notes an error otherwise.
    fn next(&self, found: &'static str) -> Option<(usize, Record<'a>)> {
        let mut reader = self.reader.borrow_mut();
        if reader.error.is_some() {
            return None;
        }
        let offset = reader.at;
        match reader.read() {
            Ok(Some(record)) => Some((offset, record)),
            Ok(None) => {
                let expected = "its end";
                reader.error = Some(ReplayError::Diverged {
                    offset,
                    event: self.event,
                    expected,
                    found,
                });
                None
            }
            Err(e) => {
                reader.error = Some(e);
                None
            }
        }
    }

    fn diverged(&self, offset: usize, expected: &Record<'_>, found: &'static str) {
        let error = ReplayError::Diverged {
            offset,
            event: self.event,
            expected: expected.name(),
            found,
        };
        self.reader.borrow_mut().error = Some(error);
    }

    fn expect(&self, found: &Record<'_>) {
        let Some((offset, expected)) = self.next(found.name()) else {
            return;
        };
        if expected == *found {
            self.reader.borrow_mut().matched += u64::from(!matches!(found, Record::Deadline(_)));
        } else {
            let name = if expected.name() == found.name() {
                "the same with another content"
            } else {
                found.name()
            };
            self.diverged(offset, &expected, name);
        }
    }
}

impl Radio for Player<'_> {
    fn token(&mut self) -> Token {
        match self.next("a token") {
            Some((_, Record::Token(token))) => token,
            Some((offset, other)) => {
                self.diverged(offset, &other, "a token");
                Token(u64::MAX)
            }
            None => Token(u64::MAX),
        }
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.expect(&Record::Request(token, frame, *how));
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        self.expect(&Record::Set(token, adapter, attribute));
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        match self.next("a get") {
            Some((_, Record::Get(a, n, answer))) if (a, n) == (adapter, name) => answer,
            Some((offset, other)) => {
                self.diverged(offset, &other, "another get");
                None
            }
            None => None,
        }
    }

    fn abort(&mut self, token: Token) {
        self.expect(&Record::Abort(token));
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.expect(&Record::Deliver(msdu));
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
