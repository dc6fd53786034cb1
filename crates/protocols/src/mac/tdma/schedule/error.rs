//! Why flows do not become a schedule.

use radio::Duration;

/// Why there is no schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanError {
    /// The cycle is too short for the slots that were asked for: one per flow, if nothing else was said.
    DoesNotFit {
        /// The shortest cycle that they fit in, without second chances.
        shortest_cycle: Duration,
    },
    /// More slots than the plan has room for.
    TooManySlots {
        /// Slots that are needed.
        needed: usize,
    },
    /// There are no flows.
    NoFlows,
}

impl core::fmt::Display for PlanError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PlanError::DoesNotFit { shortest_cycle } => {
                let us = shortest_cycle.as_ns().div_ceil(1_000);
                write!(
                    f,
                    "the cycle is too short for one slot per flow, the shortest is {us} us"
                )
            }
            PlanError::TooManySlots { needed } => {
                write!(f, "{needed} slots are more than the schedule has room for")
            }
            PlanError::NoFlows => write!(f, "there is nothing to schedule"),
        }
    }
}

impl core::error::Error for PlanError {}
