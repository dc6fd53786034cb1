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
use crate::scenario::{Program, Scenario};

/// Moments at which clocks are looked at.
const LOOKS: u64 = 1_000;

/// The clocks of a schedule.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClockError {
    /// Its name.
    pub schedule: String,
    /// What its slots reckon with between two nodes, us: `sync_error`.
    pub assumed_us: f64,
    /// The most that was seen, us; `null` if there were never two clocks to be trusted.
    pub observed_us: Option<f64>,
    /// Moments with two or more of them, of 1000.
    pub looks: u64,
}

impl ClockError {
    /// Whether clocks were further apart than the slots allow for.
    pub fn is_beyond(&self) -> bool {
        self.observed_us.is_some_and(|seen| seen > self.assumed_us)
    }
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
        match self.is_beyond() {
            true => write!(
                f,
                ": frames may reach into the next slot, give it sync_error = \"{}us\" or more",
                seen.ceil()
            ),
            false => Ok(()),
        }
    }
}

/// Those of all schedules, while a run goes on.
pub(super) struct Clocks {
    schedules: Vec<(ClockError, Vec<u32>)>,
    moments: Vec<u64>,
}

impl Clocks {
    /// Nothing seen yet, of a run whose measured time begins at `since_ns`.
    pub(super) fn new(scenario: &Scenario, seed: u64, since_ns: u64) -> Clocks {
        let of = |(name, assumed, nodes): (&str, radio::Duration, Vec<u32>)| {
            let error = ClockError {
                schedule: name.to_owned(),
                assumed_us: assumed.as_ns() as f64 / 1e3,
                observed_us: None,
                looks: 0,
            };
            (error, nodes)
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
        for (error, nodes) in &mut self.schedules {
            let network = |n: &u32| network_time(world, *n);
            let seen: Vec<u64> = nodes.iter().filter_map(network).map(|t| t.0).collect();
            let (Some(first), Some(last), 2..) = (seen.iter().min(), seen.iter().max(), seen.len()) else {
                continue;
            };
            let apart_us = (last - first) as f64 / 1e3;
            error.looks += 1;
            error.observed_us = Some(error.observed_us.map_or(apart_us, |most| most.max(apart_us)));
        }
    }

    pub(super) fn finish(self) -> Vec<ClockError> {
        self.schedules.into_iter().map(|(error, _)| error).collect()
    }
}
