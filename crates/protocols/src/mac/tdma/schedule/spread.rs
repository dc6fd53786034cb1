//! Slots for flows that need different numbers of them, spread over the cycle.
//!
//! A flow with n slots has one in each n-th part of the cycle. Within these windows the slots are laid out as earliest
//! deadline first without preemption would do it: whenever a slot ends, the one whose window ends first goes next among
//! those whose windows have begun. So two neighbouring slots of a flow begin one window apart, give or take what others
//! push them back; how far that is, [`admission`](super::super::admission) looks up in the plan that has come out. What
//! is free between is cut into shared slots.

use super::room::Room;
use super::{Flow, PlanError, Slot, SlotCosts, SlotUse, TdmaPlan};
use radio::Duration;

impl<const S: usize> TdmaPlan<S> {
    /// Whether flows have different numbers of slots, spread over the cycle; otherwise all have one in each round.
    pub fn is_spread(&self) -> bool {
        self.spread
    }

    /// Slots of a flow in a cycle.
    pub fn slots_of(&self, flow: u16) -> usize {
        let own = |s: &&Slot| matches!(s.owner, SlotUse::Flow { flow: f, .. } if f == flow);
        self.slots().filter(own).count()
    }
}

/// Lays out `slots[i]` slots for each flow i; `given` has a zero for each.
///
/// # Errors
/// [`PlanError::DoesNotFit`] if the last one would end after the cycle.
pub(super) fn lay_out(
    room: &mut Room<'_>,
    flows: &[Flow],
    slots: &[u16],
    given: &mut [u16],
    costs: &SlotCosts,
) -> Result<(), PlanError> {
    let shared = flows.iter().map(|f| costs.of_flow(f)).max().unwrap_or_default();
    let mut left: usize = slots.iter().map(|n| usize::from(*n)).sum();
    // the window of the k-th slot of a flow with n slots begins at k / n of the cycle
    let cycle_ns = room.cycle.as_ns();
    let part = |k: u16, n: u16| {
        let ns = u128::from(cycle_ns) * u128::from(k) / u128::from(n);
        Duration::from_ns(ns as u64)
    };
    while left > 0 {
        let mut open: Option<(Duration, usize, u16)> = None;
        let mut next = room.cycle;
        for (i, (n, k)) in slots.iter().copied().zip(given.iter().copied()).enumerate() {
            if k == n {
                continue;
            }
            let (begins, ends) = (part(k, n), part(k + 1, n));
            if begins > room.end {
                next = next.min(begins);
            } else if open.is_none_or(|o| (ends, i) < (o.0, o.1)) {
                open = Some((ends, i, k));
            }
        }
        let Some((_, flow, chance)) = open else {
            while room.end + costs.slot(shared) <= next && room.used + left < room.slots.len() {
                room.add(costs, shared, SlotUse::Shared);
            }
            room.end = next;
            continue;
        };
        let owner = SlotUse::Flow {
            flow: flow as u16,
            chance,
        };
        room.add(costs, costs.of_flow(&flows[flow]), owner);
        given[flow] += 1;
        left -= 1;
    }
    match room.end > room.cycle {
        true => Err(PlanError::DoesNotFit {
            shortest_cycle: room.end,
        }),
        false => Ok(()),
    }
}
