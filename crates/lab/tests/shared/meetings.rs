//! Frames that were on one channel at once, and whether they may have been.

use std::collections::HashMap;

use lab::scenario::Program;
use protocols::mac::tdma::Tdma;
use protocols::mac::tdma::schedule::SlotUse;
use radio::{Duration, Instant, Protocol};
use sim::World;
use sim::trace::{OnAir, Transmission};

/// A frame that was on the air.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its first bit, ns of true time.
    pub start_ns: u64,
    end_ns: u64,
    node: u32,
    asks: bool,
}

/// What was on the air.
#[derive(Default)]
pub struct Air {
    /// Frames.
    pub frames: u64,
    /// Of these, requests for slots.
    pub asks: u64,
    /// Pairs of frames of two nodes that were on a channel at once, since they were last looked at.
    pub met: Vec<[Sent; 2]>,
    /// By channel what is on the air until last.
    last: HashMap<u16, Sent>,
}

impl Air {
    /// Notes a transmission.
    pub fn note(&mut self, t: &Transmission<'_>) {
        if t.what != OnAir::Frame {
            return;
        }
        let new = Sent {
            start_ns: t.start_ns,
            end_ns: t.end_ns,
            node: t.node,
            asks: t.frame[0] == 0xd0,
        };
        self.frames += 1;
        self.asks += u64::from(new.asks);
        let last = self.last.get(&t.mhz).copied();
        if let Some(last) = last.filter(|l| new.start_ns < l.end_ns && new.node != l.node) {
            self.met.push([last, new]);
        }
        if last.is_none_or(|l| l.end_ns < new.end_ns) {
            self.last.insert(t.mhz, new);
        }
    }
}

/// Whether two frames that met just now were both requests for slots, or both in shared slots (repetitions, and what a timer came too
/// late for). `program` finds what runs on a node; one that is dead by now has none.
pub fn may_meet<P: Protocol>(
    world: &mut World<P>,
    met: &[Sent; 2],
    program: impl Fn(&P) -> Option<&Program>,
) -> bool {
    let true_ns = world.now_ns();
    let shared = |sent: &Sent| {
        world.act(sent.node, |node, now, _| {
            let at = now - Duration::from_ns(true_ns - sent.start_ns);
            program(node).is_some_and(|p| is_in_shared_slot(p, at))
        })
    };
    met.iter().all(|s| s.asks) || met.iter().all(shared)
}

fn is_in_shared_slot(program: &Program, at: Instant) -> bool {
    match program {
        Program::Tdma(p) => use_of(p, at) == Some(SlotUse::Shared),
        Program::TdmaEdf(p) => use_of(p, at) == Some(SlotUse::Shared),
        Program::Redundant(p) => is_in_shared_slot(p.protocol(), at),
        _ => false,
    }
}

/// Whose slot it is in which a frame of this node begins at `at`, by its own clock and schedule.
fn use_of<P: Protocol, const N: usize, const L: usize, const S: usize>(
    node: &Tdma<P, N, L, S>,
    at: Instant,
) -> Option<SlotUse> {
    let plan = node.plan();
    let in_cycle = node.sync().to_network(at)?.0 % plan.cycle().as_ns();
    // it begins as much earlier as its host is faster than the fastest one, and its clock is off
    let costs = plan.costs();
    let begun = in_cycle + (costs.release.min + costs.sync_error).as_ns();
    let slots = plan.slots().filter(|s| s.start.as_ns() <= begun);
    Some(slots.max_by_key(|s| s.start)?.owner)
}
