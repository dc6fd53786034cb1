//! A watch in two hands.

use super::Watch;
use radio::{Confirm, Msdu, Token};
use sim::Observer;
use sim::trace::{ReceptionEnd, Transmission};
use std::cell::RefCell;
use std::rc::Rc;

/// A [`Watch`] that the world holds while somebody else keeps a hand on it.
#[derive(Clone)]
pub(in super::super) struct Shared(pub Rc<RefCell<Watch>>);

impl Observer for Shared {
    fn transmission(&mut self, t: &Transmission<'_>) {
        self.0.borrow_mut().transmission(t);
    }
    fn reception(&mut self, r: &ReceptionEnd) {
        self.0.borrow_mut().reception(r);
    }
    fn requested(&mut self, now_ns: u64, node: u32, token: Token, frame: &[u8]) {
        self.0.borrow_mut().requested(now_ns, node, token, frame);
    }
    fn delivered(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        self.0.borrow_mut().delivered(now_ns, node, msdu);
    }
    fn confirmed(&mut self, now_ns: u64, node: u32, confirm: &Confirm, exchange_ns: Option<(u64, u64)>) {
        self.0.borrow_mut().confirmed(now_ns, node, confirm, exchange_ns);
    }
}
