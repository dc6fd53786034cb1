//! What the slots of a schedule came to before a run.

use std::fmt;

use serde::Serialize;

use crate::scenario::{Plan, Scenario};

/// The slots of a schedule, as they are without anybody who joins.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SlotPlan {
    /// Its name.
    pub schedule: String,
    /// Slots of a cycle.
    pub slots: usize,
    /// How many of them all may take that have something to repeat.
    pub shared: usize,
    /// Slots that each flow has in a cycle, at least.
    pub rounds: u32,
    /// How much later than usual a frame may be on the air, and still be in its slot, us.
    pub guard_us: f64,
}

impl fmt::Display for SlotPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, slots, shared, guard) = (&self.schedule, self.slots, self.shared, self.guard_us);
        write!(
            f,
            "{name}: {slots} slots in a cycle, {shared} of them shared, guard {guard} us"
        )
    }
}

/// Those of all schedules.
pub(super) fn slots(scenario: &Scenario) -> Vec<SlotPlan> {
    let one = |(name, plan): (&str, &Plan)| SlotPlan {
        schedule: name.to_owned(),
        slots: plan.slots().count(),
        shared: plan.shared(),
        rounds: plan.rounds(),
        guard_us: plan.costs().guard().as_ns() as f64 / 1e3,
    };
    scenario.plans().map(one).collect()
}
