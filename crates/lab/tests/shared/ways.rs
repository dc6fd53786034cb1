//! The way of each payload through a world.
#![allow(dead_code, reason = "not every test looks at all of it")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use radio::{Instant, Msdu};
use sim::Observer;

/// When a payload went down and came up.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Handed down, ns of true time.
    pub down_ns: u64,
    /// Until when it is of use, on the clock of the host that sends it.
    pub deadline: Option<Instant>,
    /// First handed up, ns.
    pub up_ns: Option<u64>,
    /// Times that it was handed up after that.
    pub again: u32,
}

/// The ways of all payloads, each of which has other octets than all others.
#[derive(Clone, Default)]
pub struct Ways(pub Rc<RefCell<BTreeMap<Vec<u8>, Way>>>);

impl Observer for Ways {
    fn submitted(&mut self, now_ns: u64, _: u32, msdu: &Msdu<'_>) {
        let new = Way {
            down_ns: now_ns,
            deadline: msdu.deadline,
            up_ns: None,
            again: 0,
        };
        self.0.borrow_mut().insert(msdu.payload.to_vec(), new);
    }

    fn delivered(&mut self, now_ns: u64, _: u32, msdu: &Msdu<'_>) {
        let mut ways = self.0.borrow_mut();
        let way = ways.get_mut(msdu.payload).expect("it was handed down");
        match way.up_ns {
            None => way.up_ns = Some(now_ns),
            Some(_) => way.again += 1,
        }
    }
}
