//! Sources of traffic learn what a deployed protocol requests.

use std::cell::RefCell;

use radio::{Hooks, Radio, Token, TxHow};

use super::feed::Sources;

/// Requests are told to the sources of traffic, and go on.
pub(super) struct Asked<'a>(pub &'a RefCell<Sources>);

impl Hooks for Asked<'_> {
    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow, radio: &mut dyn Radio) {
        self.0.borrow_mut().requested(token, frame);
        radio.request(token, frame, how);
    }
}
