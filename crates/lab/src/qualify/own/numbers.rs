//! What overlays told, as it stands in the document and in a sentence: cells, slots of one node, copies.

use super::super::text::{count, percent, probability, time};

/// How a cell agreed on slots.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct CellNumbers {
    /// Length of a round, ns.
    pub round_ns: u64,
    /// Slots in it.
    pub slots: u8,
    /// Hosts in all runs together; in each all begin at once.
    pub hosts: u64,
    /// Rounds in which a host had no slot: median; from its start until it has been given one, and behind each that it gave up.
    pub without_p50_rounds: u64,
    /// ... and most.
    pub without_max_rounds: u64,
    /// Hosts that never had one.
    pub never: u64,
    /// Times that a host asked for a slot, mean.
    pub asked: f64,
    /// Slots that hosts gave up, since others had them too or did not hear them.
    pub given_up: u64,
    /// Share of the frames with messages that were too late for their slot.
    pub late_share: f64,
}

/// Slots that each node has by its own clock.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct OwnSlots {
    /// Length of a node's slot, ns.
    pub node_ns: u64,
    /// ... and of the controller's.
    pub controller_ns: u64,
    /// Share of the frames with messages that were too late for their slot.
    pub late_share: f64,
    /// Of these, the share that went in a later one before their deadline.
    pub carried_share: f64,
}

/// What became of copies.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct CopyNumbers {
    /// Copies that went down, by adapter.
    pub sent: [u64; 2],
    /// Of these, acknowledged.
    pub acked: [u64; 2],
    /// Asked back, because the other one had been acknowledged; some are on the air by then.
    pub cancelled: u64,
    /// Never sent, because the other one had been acknowledged.
    pub spared: u64,
    /// Not sent, because too many of that adapter had no confirm yet.
    pub no_room: u64,
    /// Of the frames that arrived, the share that came first over each adapter.
    pub first_share: [f64; 2],
    /// Copies that arrived behind the other one, and were dropped.
    pub dropped: u64,
}

/// A rate that was chosen.
#[derive(Clone, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct RateShare {
    /// Which: `54M`, `mcs7/20`.
    pub rate: String,
    /// Of the frames with messages, repetitions included.
    pub share: f64,
}

impl CellNumbers {
    pub(super) fn sentence(&self) -> String {
        let long = |rounds: u64| {
            let s = if rounds == 1 { "" } else { "s" };
            format!(
                "{} round{s} ({})",
                count(rounds),
                time((rounds * self.round_ns) as f64)
            )
        };
        let mut text = format!(
            "Rounds of {} with {} slots: a host was without a slot for {} at the median, {} at most, and asked {:.1} times.",
            time(self.round_ns as f64),
            self.slots,
            long(self.without_p50_rounds),
            long(self.without_max_rounds),
            self.asked
        );
        if self.never > 0 {
            text += &format!(" {} of {} never had one.", count(self.never), count(self.hosts));
        }
        if self.given_up > 0 {
            text += &format!(" Slots given up: {}.", count(self.given_up));
        }
        text + &late(self.late_share)
    }
}

impl OwnSlots {
    pub(super) fn sentence(&self) -> String {
        let (node, controller) = (time(self.node_ns as f64), time(self.controller_ns as f64));
        let mut text = format!("A node has a slot each {node}, the controller each {controller}.");
        text += &late(self.late_share);
        if self.late_share > 0.0 {
            text += &format!(" Of these {} went in a later one.", percent(self.carried_share));
        }
        text
    }
}

fn late(share: f64) -> String {
    format!(" Too late for their slot: {} of the frames.", probability(share))
}

impl CopyNumbers {
    pub(super) fn sentence(&self) -> String {
        let [one, two] = self.sent.map(count);
        let mut text = format!("Copies over the two adapters: {one} and {two}");
        for (n, what) in [
            (self.cancelled, "asked back"),
            (self.spared, "never needed"),
            (self.no_room, "without room"),
        ] {
            if n > 0 {
                text += &format!(", {} {what}", count(n));
            }
        }
        format!(
            "{text}. Of what arrived {} came first over the second adapter; {} came behind the other copy, and were dropped.",
            percent(self.first_share[1]),
            count(self.dropped)
        )
    }
}
