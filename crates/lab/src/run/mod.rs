//! Runs a scenario with one seed and tells its metrics.

mod ad_hoc;
mod clocks;
mod counted;
mod fate;
mod meter;
mod overlays;
pub mod page;
mod planes;
mod slots;

pub use clocks::ClockError;
pub use fate::Fate;
pub use meter::{Judged, Measured, OWN_ENTRIES};
pub use planes::{Planes, STRETCHES, Stretch};
pub use slots::SlotPlan;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use radio::Counters;
use serde::Serialize;
use sim::World;
use sim::traffic::FlowCounts;

use crate::record::{RecordError, Recorded, Recorder};
use crate::report::folder::Folder;
use crate::scenario::{Admission, Program, Scenario};
use clocks::Clocks;
use counted::{Snapshot, counted, entries, groups, timed};
use meter::{Meter, Scope, Seat};

/// Between two looks at the stop flag, of wall time.
const SLICE: Duration = Duration::from_millis(50);
/// First piece of simulated time, ns.
const FIRST_SLICE_NS: u64 = 1_000_000;

/// What a run has come to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunResult {
    /// The seed.
    pub seed: u64,
    /// Numbers by name; names end with their unit.
    pub metrics: BTreeMap<&'static str, f64>,
    /// What could be said before the run: whether all messages of a schedule, or of a group that schedules by deadlines, can be
    /// in time.
    pub admission: Vec<Admission>,
    /// Each entry of `[[schedule]]`: its slots.
    pub slots: Vec<SlotPlan>,
    /// Each entry of `[[schedule]]`: how well its clocks agreed.
    pub clocks: Vec<ClockError>,
    /// Each entry of `[[traffic]]`.
    pub traffic: Vec<EntryResult>,
    /// Each entry of `[[group]]`.
    pub groups: Vec<GroupResult>,
    /// A hash of everything that happened: equal for equal scenarios, seeds and versions.
    pub trace_hash: String,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

/// What an entry of `[[traffic]]` has come to, all its flows together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EntryResult {
    /// Where it comes from, as in the file.
    pub from: String,
    /// Where it goes to.
    pub to: String,
    /// MSDUs handed down in the measured time.
    pub submitted: u64,
    /// Of these, MSDUs handed up.
    pub delivered: u64,
    /// Latency in us at the quantiles 0.5, 0.99, 0.999 and 1, to three digits, if it is measured.
    pub latency_us: Option<[f64; 4]>,
}

/// What an entry of `[[group]]` has come to, all its nodes together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GroupResult {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub nodes: u32,
    /// Sums over all its adapters.
    pub counters: Counters,
    /// Confirms by what became of the request, if they are measured.
    pub confirms: Option<BTreeMap<Fate, u64>>,
}

/// A run with what is too much for [`RunResult`].
pub struct Run {
    /// The numbers.
    pub result: RunResult,
    /// Latencies, if the scenario measures them.
    pub measured: Option<Measured>,
    /// What was written, if there was a folder, or why not.
    pub recorded: Option<Result<Recorded, RecordError>>,
    /// Counters of each adapter of each node in the measured time.
    pub counters: Vec<Vec<Counters>>,
    /// Counts of each flow: what was handed down in the measured time.
    pub flows: Vec<FlowCounts>,
    /// Measured time, ns.
    pub window_ns: u64,
}

/// Losses are judged by MSDUs submitted before this time of the run, ns: the last tenth of the measured time is left to
/// those that are under way.
pub fn settle_ns(scenario: &Scenario) -> u64 {
    let (since, end) = (scenario.warm_up_ns(), scenario.duration_ns());
    end - end.saturating_sub(since) / 10
}

/// Runs `scenario` with `seed`. `stop` ends it early; `progress` is told simulated ns now and then. With a folder
/// everything is recorded there.
///
/// # Errors
/// If the files in the folder cannot be opened. What goes wrong with them later is in [`Run::recorded`].
pub fn run(
    scenario: &Scenario,
    seed: u64,
    folder: Option<&Folder>,
    stop: &AtomicBool,
    mut progress: impl FnMut(u64),
) -> Result<Run, RecordError> {
    let mut world = scenario.build(seed);
    let (warm_up, end) = (scenario.warm_up_ns(), scenario.duration_ns());
    world.count_flows(warm_up..end);
    let mut recorder = None;
    let mut meter = None;
    if scenario.file().output.latency || folder.is_some() {
        let about = scenario.about(seed);
        if let Some(folder) = folder {
            let seed = seed.to_string();
            let title = scenario.file().title.as_str();
            let facts = [("scenario", title), ("seed", seed.as_str())];
            recorder = Some(Recorder::new(folder, &about, &facts, scenario.limits())?);
        }
        let new = Meter::new(Scope {
            seats: (0..)
                .zip(&about)
                .map(|(n, a)| Seat {
                    clock: a.clock,
                    group: scenario.confirming_group(n),
                    silent: scenario.is_silent(n),
                })
                .collect(),
            groups: scenario.file().group.len(),
            nodes: scenario.nodes(),
            node_of: (0..)
                .zip(&about)
                .flat_map(|(n, a)| a.addresses.iter().map(move |_| n))
                .collect(),
            flow_ends: scenario.flow_ends(),
            since_ns: warm_up,
            settle_ns: settle_ns(scenario),
            until_ns: end,
            report: folder.is_some(),
        });
        world.set_observer(new.observer(recorder.as_ref().map(Recorder::observer)));
        meter = Some(new);
    }

    advance(&mut world, warm_up, stop, &mut progress);
    let before = Snapshot::of(scenario, &world);
    let mut clocks = Clocks::new(scenario, seed, warm_up);
    for moment in clocks.moments() {
        advance(&mut world, moment, stop, &mut progress);
        if world.now_ns() == moment {
            clocks.look(&world);
        }
    }
    advance(&mut world, end, stop, &mut progress);
    let after = Snapshot::of(scenario, &world);

    drop(world.take_observer());
    let measured = meter.map(Meter::finish);
    let recorded = recorder.and_then(|r| folder.map(|f| r.finish(f)));
    let now = world.now_ns();
    let window_ns = now.saturating_sub(warm_up);
    let counters = after.counters_since(&before);
    let flows: Vec<FlowCounts> = (0..world.flows()).map(|f| world.flow(f)).collect();
    let mut metrics = counted(scenario, &world, &counters, &flows, window_ns);
    metrics.insert(
        "frames_on_air",
        (after.frames_on_air - before.frames_on_air) as f64,
    );
    let clocks = clocks.finish();
    if let Some(most) = clocks.iter().filter_map(|c| c.observed_us).reduce(f64::max) {
        metrics.insert("sync_error_max_us", most);
    }
    ad_hoc::ad_hoc(scenario, &world, &mut metrics);
    if let Some(measured) = &measured {
        timed(measured, &mut metrics);
    }
    Ok(Run {
        result: RunResult {
            seed,
            metrics,
            admission: scenario.admission().to_vec(),
            slots: slots::slots(scenario),
            clocks,
            traffic: entries(scenario, &flows, measured.as_ref()),
            groups: groups(scenario, &counters, measured.as_ref()),
            trace_hash: format!("{:016x}", world.trace_hash()),
            interrupted: now < end,
        },
        measured,
        recorded,
        counters,
        flows,
        window_ns,
    })
}

/// Runs until `end`, or until it is stopped, in pieces that take a moment each. The pieces change no result.
fn advance(world: &mut World<Program>, end: u64, stop: &AtomicBool, progress: &mut impl FnMut(u64)) {
    let mut piece = FIRST_SLICE_NS;
    while world.now_ns() < end && !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let until = world.now_ns().saturating_add(piece).min(end);
        world.run_until(until);
        progress(until);
        let took = begun.elapsed();
        if took < SLICE / 2 {
            piece = piece.saturating_mul(2);
        } else if took > SLICE * 2 {
            piece = (piece / 2).max(1_000);
        }
    }
}

#[cfg(test)]
mod tests;
