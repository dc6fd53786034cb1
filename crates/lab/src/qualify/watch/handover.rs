//! Hand-overs of nodes that roam, and the messages that missed in them.

use super::super::tally::Cause;
use super::Watch;

/// A node was let in by another access point than before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HandOver {
    pub node: u32,
    pub at_ns: u64,
}

/// Who was let in where.
pub(super) struct HandOvers {
    /// The access point of each node of the loop.
    at: Vec<Option<u32>>,
    seen: Vec<HandOver>,
}

impl HandOvers {
    pub(super) fn new(nodes: u32) -> HandOvers {
        HandOvers {
            at: vec![None; nodes as usize + 1],
            seen: Vec::new(),
        }
    }

    /// A node has heard that an access point lets it in.
    pub(super) fn let_in(&mut self, node: u32, ap: u32, at_ns: u64) {
        let old = self.at[node as usize].replace(ap);
        if old.is_some_and(|old| old != ap) {
            self.seen.push(HandOver { node, at_ns });
        }
    }
}

impl Watch {
    /// Finds the messages that hand-overs cost, before causes are told. Those of one direction that missed in a row, up to the moment of the
    /// hand-over, or from it on, or both.
    pub(super) fn blame_hand_overs(&mut self) {
        for HandOver { node, at_ns } in std::mem::take(&mut self.hand_overs.seen) {
            if !self.counts(at_ns) {
                continue;
            }
            let down = node as usize - 1;
            let flows = [down, down + self.about.nodes as usize];
            let longest = flows.map(|flow| self.blame(flow, at_ns)).into_iter().max();
            let cycles = longest.unwrap_or(0);
            self.tally.cut_off.push(cycles * self.about.span.cycle_ns);
            self.tally.unharmed += u64::from(cycles == 0);
        }
    }

    /// Messages of one flow that a hand-over cost.
    fn blame(&mut self, flow: usize, at_ns: u64) -> u64 {
        let flows = 2 * self.about.nodes as usize;
        let cycles = self.about.span.cycles as usize;
        let since = at_ns.saturating_sub(self.release_ns(flow));
        // that of this cycle was under way
        let now = ((since / self.about.span.cycle_ns) as usize).min(cycles - 1);
        let missed = |w: &Watch, cycle: usize| {
            let m = cycle * flows + flow;
            w.messages[m].delivered_ns > w.deadline_ns(m)
        };
        let before = (0..now).rev().take_while(|c| missed(self, *c)).count();
        // the one that was under way may have been saved after all
        let first = if missed(self, now) { now } else { now + 1 };
        let after = (first..cycles).take_while(|c| missed(self, *c)).count();
        for cycle in (now - before..now).chain(first..first + after) {
            self.messages[cycle * flows + flow].failure = Some(Cause::HandOver);
        }
        (before + after) as u64
    }
}
