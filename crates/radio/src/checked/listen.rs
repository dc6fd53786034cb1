//! How the law checker listens in: a radio that notes what the protocol does, and one that plays it to a twin.

use super::MAX_ACTIONS;
use crate::Radio;
use crate::attribute::{Attribute, AttributeName};
use crate::event::{Msdu, Token};
use crate::tx::{AdapterId, TxHow};
use core::cell::{Cell, RefCell};
use core::hash::{Hash, Hasher};

/// What the protocol did in one event: a hash of it all, and what the twin must be told.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) calls: usize,
    pub(super) hash: Fnv,
    pub(super) tokens: [Token; MAX_ACTIONS],
    pub(super) tokens_len: usize,
    pub(super) answers: [Option<Attribute>; MAX_ACTIONS],
    pub(super) answers_len: usize,
    pub(super) tokens_opened: [Token; MAX_ACTIONS],
    pub(super) opened: usize,
}

impl Default for Log {
    fn default() -> Self {
        Log {
            calls: 0,
            hash: Fnv::default(),
            tokens: [Token(0); MAX_ACTIONS],
            tokens_len: 0,
            answers: [None; MAX_ACTIONS],
            answers_len: 0,
            tokens_opened: [Token(0); MAX_ACTIONS],
            opened: 0,
        }
    }
}

impl Log {
    pub(super) fn clear(&mut self) {
        (self.calls, self.tokens_len, self.answers_len, self.opened) = (0, 0, 0, 0);
        self.hash = Fnv::default();
    }

    fn open(&mut self, token: Token) {
        if let Some(slot) = self.tokens_opened.get_mut(self.opened) {
            *slot = token;
            self.opened += 1;
        }
    }
}

/// The real radio, with a log.
pub(super) struct Watch<'a> {
    pub(super) radio: &'a mut dyn Radio,
    pub(super) log: &'a RefCell<Log>,
}

impl Watch<'_> {
    fn note(&self, action: impl Hash) {
        let mut log = self.log.borrow_mut();
        log.calls += 1;
        action.hash(&mut log.hash);
    }
}

impl Radio for Watch<'_> {
    fn token(&mut self) -> Token {
        let token = self.radio.token();
        let mut log = self.log.borrow_mut();
        let at = log.tokens_len;
        if let Some(slot) = log.tokens.get_mut(at) {
            *slot = token;
            log.tokens_len += 1;
        }
        token
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.note((1u8, token, frame, how));
        self.log.borrow_mut().open(token);
        self.radio.request(token, frame, how);
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        self.note((2u8, token, adapter, attribute));
        self.log.borrow_mut().open(token);
        self.radio.set(token, adapter, attribute);
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        let answer = self.radio.get(adapter, name);
        let mut log = self.log.borrow_mut();
        let at = log.answers_len;
        if let Some(slot) = log.answers.get_mut(at) {
            *slot = answer;
            log.answers_len += 1;
        }
        answer
    }

    fn abort(&mut self, token: Token) {
        self.note((3u8, token));
        self.radio.abort(token);
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.note((4u8, msdu.peer, msdu.category as u8, msdu.deadline, msdu.payload));
        self.radio.deliver(msdu);
    }
}

/// The twin's radio: gives the same tokens and answers again and does nothing.
pub(super) struct Shadow<'a> {
    pub(super) log: &'a Log,
    pub(super) hash: Fnv,
    pub(super) tokens: usize,
    pub(super) answers: Cell<usize>,
}

impl Radio for Shadow<'_> {
    fn token(&mut self) -> Token {
        let token = self
            .log
            .tokens
            .get(self.tokens)
            .copied()
            .unwrap_or(Token(u64::MAX));
        self.tokens += 1;
        token
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        (1u8, token, frame, how).hash(&mut self.hash);
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        (2u8, token, adapter, attribute).hash(&mut self.hash);
    }

    fn get(&self, _adapter: AdapterId, _name: AttributeName) -> Option<Attribute> {
        let at = self.answers.replace(self.answers.get() + 1);
        self.log.answers.get(at).copied().flatten()
    }

    fn abort(&mut self, token: Token) {
        (3u8, token).hash(&mut self.hash);
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        (4u8, msdu.peer, msdu.category as u8, msdu.deadline, msdu.payload).hash(&mut self.hash);
    }
}

/// FNV-1a, 64 bits: enough to tell two lists of actions apart.
#[derive(Debug)]
pub(super) struct Fnv(pub(super) u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
