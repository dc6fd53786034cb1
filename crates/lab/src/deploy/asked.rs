//! The radio of a deployed protocol: that of the host, and the sources of traffic learn of its requests.

use std::cell::RefCell;

use radio::{AdapterId, Attribute, AttributeName, Msdu, Radio, Token, TxHow};

use super::feed::Sources;

/// The radio of a protocol, with the requests told to the sources of traffic.
pub(super) struct Asked<'a> {
    pub radio: &'a mut dyn Radio,
    pub sources: &'a RefCell<Sources>,
}

impl Radio for Asked<'_> {
    fn token(&mut self) -> Token {
        self.radio.token()
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.sources.borrow_mut().requested(token, frame);
        self.radio.request(token, frame, how);
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        self.radio.set(token, adapter, attribute);
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        self.radio.get(adapter, name)
    }

    fn abort(&mut self, token: Token) {
        self.radio.abort(token);
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.radio.deliver(msdu);
    }
}
