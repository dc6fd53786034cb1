//! What a watch must know of its world.

use super::super::bench::Span;
use frame::{Phy, Rate};
use sim::clock::Clock;

/// What a watch must know of its world.
pub(in super::super) struct About {
    /// Nodes besides the controller.
    pub nodes: u32,
    /// The node of the world that each adapter of the loop belongs to.
    pub owners: Vec<u32>,
    /// The controller has a second access point: the node of the world behind the last.
    pub roams: bool,
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

    /// The node of the loop that a node of the world is, the controller with all its access points being 0; `None` for others.
    pub(super) fn node(&self, node: u32) -> Option<u32> {
        match node {
            n if n <= self.nodes => Some(n),
            n if n == self.nodes + 1 && self.roams => Some(0),
            _ => None,
        }
    }

    /// The node of the loop that an adapter belongs to.
    pub(super) fn at(&self, adapter: u32) -> Option<u32> {
        self.node(*self.owners.get(adapter as usize)?)
    }
}
