//! The two copies of one request, and the copies of one adapter.

use radio::{Confirm, Instant, Outcome, Token};

/// One copy of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// To be sent at this time, unless the other one is acknowledged before.
    Due(Instant),
    /// Below.
    Flying,
    /// Ended, or never to be sent.
    Over,
}

/// Both copies of a held request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Number in the trailer; `None` if the copies carry none.
    pub sequence: Option<u16>,
    /// Whether an ACK is expected.
    pub answered: bool,
    pub sides: [Side; 2],
    /// Whether the copy has been counted for the choice of the primary, by adapter.
    pub judged: [bool; 2],
    /// The protocol above wants it back, and both copies have been asked for.
    pub recalled: bool,
    /// The best confirm so far.
    pub best: Option<Confirm>,
}

impl Pair {
    pub const NEW: Pair = Pair {
        sequence: None,
        answered: false,
        sides: [Side::Over; 2],
        judged: [false; 2],
        recalled: false,
        best: None,
    };

    /// When the second copy is due, if it waits.
    pub fn due(&self) -> Option<Instant> {
        self.sides.iter().find_map(|s| match s {
            Side::Due(at) => Some(*at),
            _ => None,
        })
    }
}

/// Notes how a copy ended: what says most about the fate of the frame goes before the rest.
pub(in crate::mac) fn keep_best(best: &mut Option<Confirm>, confirm: &Confirm) {
    let rank = |c: &Confirm| match c.outcome {
        Outcome::Acked => 5,
        Outcome::NotAcked => 4,
        Outcome::Unknown => 3,
        Outcome::Expired => 2,
        Outcome::Aborted => 1,
        Outcome::Refused(_) => 0,
    };
    if best.as_ref().is_none_or(|b| rank(confirm) > rank(b)) {
        *best = Some(*confirm);
    }
}

/// The copies of one adapter that have no confirm yet, and how it has done lately.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copies<const N: usize> {
    /// Token below, and the request it belongs to while that is not over.
    below: [Option<(Token, Option<usize>)>; N],
    /// Share of copies acknowledged in time, exponentially averaged; 2^16 is all.
    pub score: u32,
}

impl<const N: usize> Copies<N> {
    pub const NEW: Copies<N> = Copies {
        below: [None; N],
        score: 1 << 16,
    };

    pub fn has_room(&self) -> bool {
        self.below.iter().any(Option::is_none)
    }

    pub fn add(&mut self, token: Token, index: usize) {
        if let Some(free) = self.below.iter_mut().find(|c| c.is_none()) {
            *free = Some((token, Some(index)));
        }
    }

    /// The token of the copy of request `index`.
    pub fn of(&self, index: usize) -> Option<Token> {
        let mine = |c: &(Token, Option<usize>)| c.1 == Some(index);
        self.below.iter().flatten().find(|c| mine(c)).map(|c| c.0)
    }

    /// The request of this copy is over: its confirm tells nobody anything.
    pub fn release(&mut self, index: usize) {
        for c in self.below.iter_mut().flatten() {
            if c.1 == Some(index) {
                c.1 = None;
            }
        }
    }

    /// Its confirm came: the request it belongs to, if that is not over.
    pub fn remove(&mut self, token: Token) -> Option<Option<usize>> {
        let place = self.below.iter_mut().find(|c| c.is_some_and(|c| c.0 == token))?;
        place.take().map(|c| c.1)
    }

    /// Counts a copy for the score.
    pub fn judge(&mut self, good: bool) {
        let target = if good { 1 << 16 } else { 0 };
        self.score = (self.score * 63 + target) / 64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each copy counts 1/64: half of what there was before is forgotten after 44 of them, rounding included.
    #[test]
    fn a_copy_counts_one_in_sixty_four() {
        let mut copies: Copies<4> = Copies::NEW;
        let failures = (1..).find(|_| {
            copies.judge(false);
            copies.score < 1 << 15
        });
        assert_eq!(failures, Some(44), "{}", copies.score);
        let before = copies.score;
        copies.judge(true);
        assert_eq!(copies.score, before + ((1 << 16) - before) / 64);
    }
}
