//! Frames that go on both links while both serve: the second copies that are below, and how both come to one end.

use super::Roam;
use crate::mac::data::Received;
use crate::mac::redundancy::pair::keep_best;
use crate::mac::redundancy::trailer::{self, Trailer};
use frame::mac::Header;
use radio::{Confirm, Instant, Outcome, Protocol, Radio, Token};

/// What a held request has below.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launched {
    /// Link and token of the launch that the table of held requests knows.
    pub side: usize,
    token: Token,
    /// Copies that have no confirm yet: 2 at most.
    open: u8,
    /// It went on both links.
    pub twice: bool,
    /// The protocol above wants it back, and its second copy has been asked for.
    recalled: bool,
    /// The best confirm so far.
    best: Option<Confirm>,
}

impl Launched {
    pub const NONE: Launched = Launched {
        side: 0,
        token: Token(0),
        open: 0,
        twice: false,
        recalled: false,
        best: None,
    };

    pub const fn new(side: usize, token: Token) -> Launched {
        Launched {
            side,
            token,
            open: 1,
            ..Launched::NONE
        }
    }
}

/// A copy that the table of held requests does not know.
#[derive(Clone, Copy, Debug)]
struct Second {
    token: Token,
    side: usize,
    /// Its request; `None`: that is over, since the other copy was acknowledged.
    request: Option<usize>,
}

/// Second copies, and the first ones of requests that are over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds<const N: usize>([Option<Second>; N]);

impl<const N: usize> Seconds<N> {
    pub const NONE: Seconds<N> = Seconds([None; N]);

    pub fn has_room(&self) -> bool {
        self.0.iter().any(Option::is_none)
    }

    fn add(&mut self, second: Second) {
        if let Some(place) = self.0.iter_mut().find(|s| s.is_none()) {
            *place = Some(second);
        }
    }

    fn of(&self, index: usize) -> Option<Token> {
        let mut all = self.0.iter().flatten();
        all.find(|s| s.request == Some(index)).map(|s| s.token)
    }

    fn take(&mut self, token: Token) -> Option<Second> {
        let place = self.0.iter_mut().find(|s| s.is_some_and(|s| s.token == token));
        place.and_then(Option::take)
    }

    /// Request `index` is over: its copy, if one is below.
    fn release(&mut self, index: usize) -> Option<Token> {
        let mut all = self.0.iter_mut().flatten();
        let second = all.find(|s| s.request == Some(index))?;
        second.request = None;
        Some(second.token)
    }
}

impl<P: Protocol, const N: usize, const L: usize> Roam<P, N, L> {
    /// Notes that request `index` has gone on link `k`, as its first copy or its second one.
    pub(super) fn is_below(&mut self, index: usize, k: usize, token: Token, second: bool) {
        self.left = self.left.saturating_sub(1);
        self.links[k].flying += 1;
        if !second {
            self.launched[index] = Launched::new(k, token);
            return;
        }
        self.counters.copies += 1;
        let launched = &mut self.launched[index];
        (launched.open, launched.twice) = (2, true);
        let request = Some(index);
        self.seconds.add(Second {
            token,
            side: k,
            request,
        });
    }

    /// Asks for the second copies of what the protocol above wants back; the table has asked for the first ones.
    pub(super) fn recall(&mut self, radio: &mut dyn Radio) {
        for index in 0..N {
            let unwanted = self.above.held.get(index).is_some_and(|h| h.is_unwanted());
            if self.left > 0 && unwanted && !self.launched[index].recalled {
                self.launched[index].recalled = true;
                if let Some(token) = self.seconds.of(index) {
                    self.left -= 1;
                    radio.abort(token);
                }
            }
        }
    }

    /// Takes the confirm of a launch; false if it is somebody else's. A request ends with its first ACK, or with its last copy.
    pub(super) fn landed(&mut self, confirm: &Confirm, now: Instant, radio: &mut dyn Radio) -> bool {
        let first = self.above.held.landed(confirm);
        let (k, index) = match (first, self.seconds.take(confirm.token)) {
            (Some(index), _) => (self.launched[index].side, Some(index)),
            (None, Some(second)) => (second.side, second.request),
            (None, None) => return false,
        };
        self.links[k].flying -= 1;
        let acked = confirm.outcome.is_acked();
        let asks = index.is_none_or(|index| self.asks(index));
        if asks && (acked || confirm.outcome == Outcome::NotAcked) {
            self.links[k].sent(acked);
        }
        if acked {
            self.alive(now);
        }
        let Some(index) = index else {
            self.counters.duplicates += u64::from(acked);
            return true;
        };
        if first.is_none()
            && let Some(held) = self.above.held.get_mut(index)
        {
            held.attempts = held.attempts.saturating_add(confirm.attempts);
        }
        let launched = &mut self.launched[index];
        launched.open -= 1;
        keep_best(&mut launched.best, confirm);
        if launched.open > 0 && !acked {
            return true;
        }
        if launched.open > 0 {
            let other = match first {
                Some(_) => self.seconds.release(index),
                None => {
                    // its place is free again
                    let Launched { side, token, .. } = *launched;
                    let request = None;
                    self.seconds.add(Second { token, side, request });
                    Some(token)
                }
            };
            if let Some(token) = other {
                radio.abort(token);
            }
        }
        if let Some(best) = launched.best.take() {
            self.ended(index, &best, now);
        }
        true
    }

    /// Octets of a data frame that go up: without its trailer if it has one. `None`: it came through another access point before.
    pub(super) fn first(&mut self, mpdu: &[u8], now: Instant) -> Option<usize> {
        let octets = mpdu.len();
        let found = Received::parse(mpdu).zip(Header::parse(mpdu).ok());
        let found = found.and_then(|(r, h)| Some((r.source, Trailer::of(h.body())?)));
        let Some((source, trailer)) = found.filter(|_| self.config.copies) else {
            return Some(octets);
        };
        if !self.discard.is_first(source, trailer.sequence, now) {
            self.counters.repeated += 1;
            return None;
        }
        Some(octets - trailer::OCTETS)
    }
}
