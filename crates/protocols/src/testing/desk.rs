//! The radio of one `handle`: notes what is asked for.

use frame::MacAddr;
use radio::{AdapterId, Attribute, AttributeName, Capabilities, Msdu, Radio, Token, Tsf, TxHow};
use std::vec::Vec;

/// What a protocol asked for.
pub(super) enum Act {
    Request(Token, Vec<u8>, TxHow),
    Set(Token),
    Abort(Token),
    Deliver(MacAddr, Vec<u8>),
}

/// See the module.
pub(super) struct Desk {
    pub(super) tsf: Option<Tsf>,
    pub(super) address: MacAddr,
    pub(super) holds_back: bool,
    pub(super) series: u8,
    pub(super) tokens: u64,
    pub(super) acts: Vec<Act>,
}

impl Radio for Desk {
    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.acts.push(Act::Request(token, frame.into(), *how));
    }

    fn set(&mut self, token: Token, _: AdapterId, _: Attribute) {
        self.acts.push(Act::Set(token));
    }

    fn get(&self, _: AdapterId, name: AttributeName) -> Option<Attribute> {
        match name {
            AttributeName::Capabilities => Some(Attribute::Capabilities(Capabilities {
                not_before: self.holds_back,
                abort: true,
                one_shot: true,
                attempts: true,
                series: self.series,
                ..Capabilities::default()
            })),
            AttributeName::Address => Some(Attribute::Address(self.address)),
            AttributeName::Tsf => self.tsf.map(Attribute::Tsf),
            _ => None,
        }
    }

    fn abort(&mut self, token: Token) {
        self.acts.push(Act::Abort(token));
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.acts.push(Act::Deliver(msdu.peer, msdu.payload.into()));
    }
}
