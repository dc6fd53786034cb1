//! What a watch must know of its world.

use super::super::bench::Span;
use frame::{Phy, Rate};
use sim::clock::Clock;

/// What a watch must know of its world.
pub(in super::super) struct About {
    /// Nodes besides the controller.
    pub nodes: u32,
    /// Adapters of each of them and of the controller.
    pub adapters: u32,
    /// Which part counts.
    pub span: Span,
    /// Host clocks, of the controller first.
    pub clocks: Vec<Clock>,
    /// Release of each node's messages after the start of the cycle, ns; the first is the controller's.
    pub offsets_ns: Vec<u64>,
    /// Nodes send only when the controller has polled them.
    pub polled: bool,
    /// Says how long the ACK to a frame takes.
    pub phy: Phy,
    /// Who sends without backoff and waits for the channel begins this long after it is free, at most, ns. `None` with
    /// backoff: there, waiting for others and waiting at random cannot be told apart.
    pub wait_ns: Option<u64>,
}

impl About {
    /// SIFS and the ACK to a frame at this rate, ns.
    pub(super) fn ack_ns(&self, rate: Rate) -> u64 {
        u64::from(self.phy.sifs_us + self.phy.ack_us(rate, self.phy.basic)) * 1_000
    }

    /// One more than the number of the last adapter of the loop.
    pub(super) fn adapters_end(&self) -> u32 {
        (self.nodes + 1) * self.adapters
    }

    /// Which of the channels an adapter is on; others are on the first.
    pub(super) fn channel(&self, adapter: u32) -> u32 {
        match adapter < self.adapters_end() {
            true => adapter % self.adapters,
            false => 0,
        }
    }
}
