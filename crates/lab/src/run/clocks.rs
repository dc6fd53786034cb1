//! How far apart the clocks of a schedule were in a run, next to what its slots reckon with.
//!
//! At moments that follow from the seed, one in each of equal parts of the measured time, all nodes of a schedule whose clocks
//! are to be trusted are asked for the network time. What lies between the slowest and the fastest answer is how far two of them
//! were apart: what the slots have their `sync_error` for.

use std::fmt;

use serde::Serialize;
use sim::World;
use sim::rng::{Cause, Stream};

use crate::scenario::sync_error::network_time;
use crate::scenario::{Program, Scenario, Timekeepers};

/// Moments at which clocks are looked at.
const LOOKS: u64 = 1_000;

/// The clocks of a schedule.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClockError {
    /// Its name.
    pub schedule: String,
    /// What its slots reckon with between two nodes, us: `sync_error`.
    pub assumed_us: f64,
    /// Where that was measured before the run: with which probability. `null` where it was told.
    pub probability: Option<f64>,
    /// The most that was seen, us; `null` if there were never two clocks to be trusted.
    pub observed_us: Option<f64>,
    /// Moments with two or more of them, of 1000.
    pub looks: u64,
    /// Pairs of nodes that were compared at these moments, one being first and the other one second.
    pub pairs: u64,
    /// How many of them were further apart than that, the first one's clock behind: its frame may reach into the slot of the second one.
    pub beyond: u64,
}

impl ClockError {
    /// Whether clocks were further apart than the slots allow for: once, or where `probability` says how often they may be, more often than that.
    pub fn is_beyond(&self) -> bool {
        let allowed = self.probability.map_or(0.0, |p| 1.0 - p);
        self.beyond as f64 > allowed * self.pairs as f64
    }
}

/// Pairs of which the second is more than `most` above the first. Sorts the values.
fn pairs_beyond(values: &mut [u64], most: u64) -> u64 {
    values.sort_unstable();
    let above = |v: &u64| values.partition_point(|other| *other <= v.saturating_add(most));
    values.iter().map(|v| (values.len() - above(v)) as u64).sum()
}

impl fmt::Display for ClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, assumed) = (&self.schedule, self.assumed_us);
        let Some(seen) = self.observed_us else {
            return write!(
                f,
                "{name}: no two clocks were to be trusted at the same time; its slots reckon with {assumed} us between them"
            );
        };
        write!(
            f,
            "{name}: clocks were up to {seen:.3} us apart, its slots reckon with {assumed} us"
        )?;
        if self.beyond > 0 {
            let share = 100.0 * self.beyond as f64 / self.pairs as f64;
            write!(f, ", and {share:.2} % of all pairs were beyond")?;
        }
        if !self.is_beyond() {
            return Ok(());
        }
        if let Some(p) = self.probability {
            write!(f, " (guard_probability = {p})")?;
        }
        let most = seen.ceil();
        write!(
            f,
            ": frames may reach into the next slot, give it sync_error = \"{most}us\" or more"
        )
    }
}

/// Those of all schedules, while a run goes on.
pub(super) struct Clocks {
    /// What the slots reckon with, ns, what was seen, and the nodes.
    schedules: Vec<(u64, ClockError, Vec<u32>)>,
    moments: Vec<u64>,
}

impl Clocks {
    /// Nothing seen yet, of a run whose measured time begins at `since_ns`.
    pub(super) fn new(scenario: &Scenario, seed: u64, since_ns: u64) -> Clocks {
        let of = |clocks: Timekeepers<'_>| {
            let error = ClockError {
                schedule: clocks.schedule.to_owned(),
                assumed_us: clocks.sync_error.as_ns() as f64 / 1e3,
                probability: clocks.probability,
                observed_us: None,
                looks: 0,
                pairs: 0,
                beyond: 0,
            };
            (clocks.sync_error.as_ns(), error, clocks.nodes)
        };
        let schedules: Vec<_> = scenario.timekeepers().map(of).collect();
        let mut random = Stream::new(seed, 0, Cause::Protocol);
        let part = scenario.duration_ns().saturating_sub(since_ns) / LOOKS;
        // so that they do not keep step with the beacons
        let moment = |i| since_ns + i * part + random.below(part.max(1));
        let looks = if schedules.is_empty() { 0 } else { LOOKS };
        Clocks {
            schedules,
            moments: (0..looks).map(moment).collect(),
        }
    }

    /// When to look, ns, in the order of time.
    pub(super) fn moments(&self) -> Vec<u64> {
        self.moments.clone()
    }

    pub(super) fn look(&mut self, world: &World<Program>) {
        for (assumed_ns, error, nodes) in &mut self.schedules {
            let network = |n: &u32| network_time(world, *n);
            let mut seen: Vec<u64> = nodes.iter().filter_map(network).map(|t| t.0).collect();
            error.beyond += pairs_beyond(&mut seen, *assumed_ns);
            let ([first, .., last], count) = (&seen[..], seen.len() as u64) else {
                continue;
            };
            let apart_us = (last - first) as f64 / 1e3;
            error.looks += 1;
            error.pairs += count * (count - 1);
            error.observed_us = Some(error.observed_us.map_or(apart_us, |most| most.max(apart_us)));
        }
    }

    pub(super) fn finish(self) -> Vec<ClockError> {
        self.schedules.into_iter().map(|(_, error, _)| error).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_behind_may_reach_into_the_slots_of_all_that_are_too_far_ahead() {
        let count = |values: &[u64], most| pairs_beyond(&mut values.to_vec(), most);
        assert_eq!(count(&[], 1), 0);
        assert_eq!(count(&[7], 0), 0);
        assert_eq!(count(&[9, 5], 4), 0);
        assert_eq!(count(&[9, 5], 3), 1);
        // 1 and 2 are behind 8 and 9, 5 behind 9
        assert_eq!(count(&[9, 1, 5, 2, 8], 3), 5 + 1);
        assert_eq!(count(&[u64::MAX, 0], u64::MAX), 0);
    }

    #[test]
    fn what_was_told_is_never_passed_and_what_was_measured_as_often_as_was_chosen() {
        let clocks = |probability, beyond| ClockError {
            schedule: "loop".to_owned(),
            assumed_us: 2.0,
            probability,
            observed_us: Some(2.5),
            looks: 1_000,
            pairs: 10_000,
            beyond,
        };
        assert!(!clocks(None, 0).is_beyond() && clocks(None, 1).is_beyond());
        assert!(!clocks(Some(0.9), 999).is_beyond() && clocks(Some(0.9), 1_001).is_beyond());
        let (within, beyond) = (
            clocks(Some(0.9), 500).to_string(),
            clocks(Some(0.9), 2_000).to_string(),
        );
        assert!(within.ends_with("5.00 % of all pairs were beyond"), "{within}");
        assert!(
            beyond.contains("20.00 % of all pairs were beyond (guard_probability = 0.9): frames"),
            "{beyond}"
        );
        assert!(beyond.contains("sync_error = \"3us\" or more"), "{beyond}");
    }
}
