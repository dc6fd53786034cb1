//! A radio whose deliveries go elsewhere: for a node that takes in what the protocol below it hands up.

use crate::{AdapterId, Attribute, AttributeName, Msdu, Radio, Token, TxHow};

/// The radio below, but for [`Radio::deliver`], which goes to a function. That is given the radio, too.
pub struct Tap<'r, F> {
    radio: &'r mut dyn Radio,
    deliver: F,
}

impl<'r, F: FnMut(Msdu<'_>, &mut dyn Radio)> Tap<'r, F> {
    /// Delivers to `deliver` in place of `radio`.
    pub fn new(radio: &'r mut dyn Radio, deliver: F) -> Self {
        Tap { radio, deliver }
    }
}

impl<F: FnMut(Msdu<'_>, &mut dyn Radio)> Radio for Tap<'_, F> {
    fn token(&mut self) -> Token {
        self.radio.token()
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
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
        (self.deliver)(msdu, self.radio);
    }
}
