//! What every overlay keeps in worlds where frames are lost and nodes walk, but no host and no adapter fails.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use radio::Msdu;
use sim::trace::{Observer, OnAir, Transmission};
use sim::traffic::parse_header;

/// What was seen of one world.
#[derive(Default)]
pub struct Seen {
    /// Lifetime of the messages of a flow, ns.
    pub lifetimes: HashMap<u32, u64>,
    /// Flow, number and receiver of what was handed up.
    up: HashSet<(u32, u32, u32)>,
    /// Messages that a receiver got twice.
    pub twice: u64,
    /// How long after its end of life the latest message was handed up, ns.
    pub stale_ns: u64,
    /// Nodes with slots.
    pub nodes: Vec<u32>,
    /// Their frames.
    pub frames: u64,
    /// Their frames that were on one channel at once, but for those that ask for a slot, and repetitions in shared slots.
    pub overlaps: u64,
    /// By channel what is on the air until last.
    last: HashMap<u16, Frame>,
}

struct Frame {
    end_ns: u64,
    node: u32,
    asks: bool,
    again: bool,
}

/// Writes what it sees where others can read it.
pub struct Eye(pub Rc<RefCell<Seen>>);

impl Observer for Eye {
    fn transmission(&mut self, t: &Transmission<'_>) {
        let seen = &mut *self.0.borrow_mut();
        if t.what != OnAir::Frame || !seen.nodes.contains(&t.node) {
            return;
        }
        seen.frames += 1;
        let new = Frame {
            end_ns: t.end_ns,
            node: t.node,
            asks: t.frame[0] == 0xd0,
            again: t.frame[1] & 8 != 0,
        };
        if let Some(last) = seen
            .last
            .get(&t.mhz)
            .filter(|l| t.start_ns < l.end_ns && t.node != l.node)
        {
            let fair = new.asks && last.asks || new.again && last.again;
            seen.overlaps += u64::from(!fair);
        }
        if seen.last.get(&t.mhz).is_none_or(|l| l.end_ns < t.end_ns) {
            seen.last.insert(t.mhz, new);
        }
    }

    fn delivered(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        let Some((flow, number, born_ns)) = parse_header(msdu.payload) else {
            return;
        };
        let seen = &mut *self.0.borrow_mut();
        seen.twice += u64::from(!seen.up.insert((flow, number, node)));
        if let Some(lifetime) = seen.lifetimes.get(&flow) {
            seen.stale_ns = seen.stale_ns.max(now_ns.saturating_sub(born_ns + lifetime));
        }
    }
}
