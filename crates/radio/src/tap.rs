//! A radio with an ear on it: for who takes in what the protocol above or below hands on, or takes note of it.

use crate::{AdapterId, Attribute, AttributeName, Msdu, Radio, Token, TxHow};

/// What is done with the requests and the deliveries of a [`Tap`]. As it is, both go on.
pub trait Hooks {
    /// A frame is requested.
    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow, radio: &mut dyn Radio) {
        radio.request(token, frame, how);
    }

    /// An MSDU is delivered.
    fn deliver(&mut self, msdu: Msdu<'_>, radio: &mut dyn Radio) {
        radio.deliver(msdu);
    }
}

/// The radio below, but for requests and deliveries, which go to hooks. These are given the radio, too.
pub struct Tap<'r, H> {
    radio: &'r mut dyn Radio,
    hooks: H,
}

impl<'r, H: Hooks> Tap<'r, H> {
    /// Hangs `hooks` on `radio`.
    pub fn new(radio: &'r mut dyn Radio, hooks: H) -> Self {
        Tap { radio, hooks }
    }
}

impl<'r, F: FnMut(Msdu<'_>, &mut dyn Radio)> Tap<'r, Delivered<F>> {
    /// Delivers to `deliver` in place of `radio`.
    pub fn delivering(radio: &'r mut dyn Radio, deliver: F) -> Self {
        Tap::new(radio, Delivered(deliver))
    }
}

/// Hooks that are a function for deliveries.
pub struct Delivered<F>(F);

impl<F: FnMut(Msdu<'_>, &mut dyn Radio)> Hooks for Delivered<F> {
    fn deliver(&mut self, msdu: Msdu<'_>, radio: &mut dyn Radio) {
        (self.0)(msdu, radio);
    }
}

impl<H: Hooks> Radio for Tap<'_, H> {
    fn token(&mut self) -> Token {
        self.radio.token()
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.hooks.request(token, frame, how, self.radio);
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
        self.hooks.deliver(msdu, self.radio);
    }
}
