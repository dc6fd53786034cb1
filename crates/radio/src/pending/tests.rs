//! The life of held requests, and what becomes of too many.

use super::*;
use crate::attribute::{Attribute, AttributeName};
use crate::event::Msdu;
use crate::tx::AdapterId;
use frame::Rate;

#[derive(Default)]
struct Below {
    tokens: u64,
    sent: u32,
    empty: u32,
    aborted: Option<Token>,
}

impl Radio for Below {
    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(1_000 + self.tokens)
    }
    fn request(&mut self, _: Token, frame: &[u8], _: &TxHow) {
        match frame {
            [] => self.empty += 1,
            frame => {
                assert_eq!(frame, b"abc");
                self.sent += 1;
            }
        }
    }
    fn set(&mut self, _: Token, _: AdapterId, _: Attribute) {}
    fn get(&self, _: AdapterId, _: AttributeName) -> Option<Attribute> {
        None
    }
    fn abort(&mut self, token: Token) {
        self.aborted = Some(token);
    }
    fn deliver(&mut self, _: Msdu<'_>) {}
}

const HOW: TxHow = TxHow::one_shot(Rate::OFDM_6);

fn answer(token: Token, outcome: Outcome) -> Confirm {
    Confirm {
        attempts: 1,
        ..Confirm::without_air(token, outcome, Rate::OFDM_6)
    }
}

#[test]
fn retry_then_success_is_one_confirm() {
    let mut p: Pending<4, 16> = Pending::default();
    let mut below = Below::default();
    let i = p.hold(Instant::ZERO, Token(7), b"abc", &HOW, &mut below).unwrap();
    let first = p.launch(i, &HOW, &mut below);
    assert_eq!(p.landed(&answer(first, Outcome::NotAcked)), Some(i));
    p.wait_again(i);
    assert_eq!(p.landed(&answer(first, Outcome::NotAcked)), None, "an old launch");
    let second = p.launch(i, &HOW, &mut below);
    let last = answer(second, Outcome::Acked);
    assert_eq!(p.landed(&last), Some(i));
    p.finish(i, &last);
    let c = p.next_owed().unwrap();
    assert_eq!((c.token, c.outcome, c.attempts), (Token(7), Outcome::Acked, 2));
    assert_eq!((p.next_owed(), p.len(), below.sent), (None, 0, 2));
}

#[test]
fn no_room_is_a_refusal() {
    let mut p: Pending<1, 4> = Pending::default();
    let mut below = Below::default();
    assert!(
        p.hold(Instant::ZERO, Token(1), b"abc", &HOW, &mut below)
            .is_some()
    );
    assert!(
        p.hold(Instant::ZERO, Token(2), b"abc", &HOW, &mut below)
            .is_none()
    );
    assert!(
        p.hold(Instant::ZERO, Token(3), b"abcde", &HOW, &mut below)
            .is_none()
    );
    let owed: [Option<(Token, Outcome)>; 3] =
        core::array::from_fn(|_| p.next_owed().map(|c| (c.token, c.outcome)));
    assert_eq!(owed[0], Some((Token(2), Outcome::Refused(Refusal::QueueFull))));
    assert_eq!(owed[1], Some((Token(3), Outcome::Refused(Refusal::BadFrame))));
    assert_eq!(owed[2], None);
}

#[test]
fn refusals_without_end_go_down() {
    let mut p: Pending<1, 4> = Pending::default();
    let mut below = Below::default();
    let more = MAX_ACTIONS as u64 + 3;
    for token in 0..=more {
        p.hold(Instant::ZERO, Token(token), b"abc", &HOW, &mut below);
    }
    let owed = core::iter::from_fn(|| p.next_owed()).map(|c| c.token.0);
    assert!(owed.eq(1..=MAX_ACTIONS as u64));
    assert_eq!((below.empty, below.sent, p.len()), (3, 0, 1));
}

#[test]
fn expiry_and_abort() {
    let mut p: Pending<4, 8> = Pending::default();
    let mut below = Below::default();
    let t = Instant::from_us;
    p.hold(t(0), Token(1), b"abc", &HOW.expires(t(10)), &mut below);
    p.hold(t(0), Token(2), b"abc", &HOW.expires(t(20)), &mut below);
    let third = p.hold(t(0), Token(3), b"abc", &HOW, &mut below).unwrap();
    assert_eq!(p.next_expiry(), Some(t(10)));
    assert_eq!((p.expire(t(10)), p.expire(t(11))), (0, 1));
    let lower = p.launch(third, &HOW, &mut below);
    assert!(p.owes() && !p.get(third).unwrap().is_unwanted());
    assert!(p.abort(Token(2), &mut below) && below.aborted.is_none());
    assert!(p.abort(Token(3), &mut below) && below.aborted == Some(lower));
    assert!(!p.abort(Token(9), &mut below) && !p.abort(Token(1), &mut below));
    assert_eq!(
        p.next_owed().map(|c| (c.token, c.outcome)),
        Some((Token(1), Outcome::Expired))
    );
    assert_eq!(
        p.next_owed().map(|c| (c.token, c.outcome)),
        Some((Token(2), Outcome::Aborted))
    );
    assert_eq!((p.next_owed(), p.len()), (None, 1));
    assert!(!p.owes() && p.get(third).unwrap().is_unwanted());
}

#[test]
fn the_first_by_a_key() {
    let mut p: Pending<4, 8> = Pending::default();
    let mut below = Below::default();
    let t = Instant::from_us;
    for (token, deadline) in [(1, 30), (2, 10), (3, 10)] {
        p.hold(t(0), Token(token), b"abc", &HOW.expires(t(deadline)), &mut below);
    }
    let i = p.first_by(|h| h.how.expires).unwrap();
    assert_eq!(p.get(i).unwrap().token, Token(2));
}
