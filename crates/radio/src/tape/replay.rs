//! Reading a tape: to a fresh protocol, whose actions are compared, or for its frames alone.

use super::{MAGIC, Record};
use crate::attribute::{Attribute, AttributeName};
use crate::event::{Msdu, Token};
use crate::tx::{AdapterId, TxHow};
use crate::{Protocol, Radio};
use core::cell::RefCell;
use core::fmt;

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
