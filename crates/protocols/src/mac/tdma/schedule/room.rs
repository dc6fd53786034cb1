//! The cycle while slots are given away.

use super::{Slot, SlotCosts, SlotUse};
use radio::Duration;

/// The part of the cycle that is not given away yet.
pub(super) struct Room<'a> {
    pub(super) slots: &'a mut [Option<Slot>],
    pub(super) used: usize,
    pub(super) end: Duration,
    pub(super) cycle: Duration,
}

impl Room<'_> {
    pub(super) fn has(&self, time: Duration, slots: usize) -> bool {
        self.end + time <= self.cycle && self.used + slots <= self.slots.len()
    }

    pub(super) fn add(&mut self, costs: &SlotCosts, exchange: Duration, owner: SlotUse) {
        let length = costs.slot(exchange);
        self.slots[self.used] = Some(Slot {
            start: self.end,
            length,
            exchange,
            owner,
        });
        self.used += 1;
        self.end += length;
    }
}
