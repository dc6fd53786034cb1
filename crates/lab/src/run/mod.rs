//! Runs a scenario with one seed and tells its metrics.

mod meter;

pub use meter::{Measured, OWN_FLOWS};

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use radio::Counters;
use serde::Serialize;
use sim::World;
use sim::traffic::FlowCounts;

use crate::record::{RecordError, Recorded, Recorder};
use crate::report::folder::Folder;
use crate::scenario::{Program, Scenario};
use meter::Meter;

/// Between two looks at the stop flag, of wall time.
const SLICE: Duration = Duration::from_millis(50);
/// First piece of simulated time, ns.
const FIRST_SLICE_NS: u64 = 1_000_000;
/// LLC and SNAP, which 802.11 counts to the MSDU and payloads do not.
const LLC_SNAP_OCTETS: u64 = 8;

/// What a run has come to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunResult {
    /// The seed.
    pub seed: u64,
    /// Numbers by name; names end with their unit.
    pub metrics: BTreeMap<&'static str, f64>,
    /// A hash of everything that happened: equal for equal scenarios, seeds and versions.
    pub trace_hash: String,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

/// A run with what is too much for [`RunResult`].
pub struct Run {
    /// The numbers.
    pub result: RunResult,
    /// Latencies, if the scenario measures them.
    pub measured: Option<Measured>,
    /// What was written, if there was a folder, or why not.
    pub recorded: Option<Result<Recorded, RecordError>>,
    /// Counters of each node in the measured time.
    pub counters: Vec<Counters>,
    /// Counts of each flow in the measured time.
    pub flows: Vec<FlowCounts>,
    /// Measured time, ns.
    pub window_ns: u64,
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
        let clocks = about.iter().map(|a| a.clock).collect();
        let new = Meter::new(clocks, warm_up, end);
        world.set_observer(new.observer(recorder.as_ref().map(Recorder::observer)));
        meter = Some(new);
    }

    advance(&mut world, warm_up, stop, &mut progress);
    let before = Snapshot::of(&world);
    advance(&mut world, end, stop, &mut progress);
    let after = Snapshot::of(&world);

    drop(world.take_observer());
    let measured = meter.map(Meter::finish);
    let recorded = recorder.and_then(|r| folder.map(|f| r.finish(f)));
    let now = world.now_ns();
    let window_ns = now.saturating_sub(warm_up);
    let counters = after.counters_since(&before);
    let flows = after.flows_since(&before);
    let mut metrics = counted(scenario, &world, &counters, &flows, window_ns);
    metrics.insert(
        "frames_on_air",
        (after.frames_on_air - before.frames_on_air) as f64,
    );
    if let Some(measured) = &measured {
        timed(measured, &mut metrics);
    }
    Ok(Run {
        result: RunResult {
            seed,
            metrics,
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

struct Snapshot {
    counters: Vec<Counters>,
    flows: Vec<FlowCounts>,
    frames_on_air: u64,
}

impl Snapshot {
    fn of(world: &World<Program>) -> Snapshot {
        Snapshot {
            counters: (0..world.nodes()).map(|n| world.counters(n, 0)).collect(),
            flows: (0..world.flows()).map(|f| world.flow(f)).collect(),
            frames_on_air: world.frames_on_air(),
        }
    }

    fn counters_since(&self, before: &Snapshot) -> Vec<Counters> {
        let less = |a: &Counters, b: &Counters| Counters {
            tx_frames: a.tx_frames - b.tx_frames,
            tx_acked: a.tx_acked - b.tx_acked,
            tx_responses: a.tx_responses - b.tx_responses,
            rx_frames: a.rx_frames - b.rx_frames,
            rx_errors: a.rx_errors - b.rx_errors,
            rx_duplicates: a.rx_duplicates - b.rx_duplicates,
            tx_time_us: a.tx_time_us - b.tx_time_us,
            busy_time_us: a.busy_time_us - b.busy_time_us,
        };
        let pairs = self.counters.iter().zip(&before.counters);
        pairs.map(|(a, b)| less(a, b)).collect()
    }

    fn flows_since(&self, before: &Snapshot) -> Vec<FlowCounts> {
        let less = |a: &FlowCounts, b: &FlowCounts| FlowCounts {
            submitted: a.submitted - b.submitted,
            delivered: a.delivered - b.delivered,
            delivered_octets: a.delivered_octets - b.delivered_octets,
        };
        let pairs = self.flows.iter().zip(&before.flows);
        pairs.map(|(a, b)| less(a, b)).collect()
    }
}

/// What follows from counters alone, of the nodes and flows of the scenario itself.
fn counted(
    scenario: &Scenario,
    world: &World<Program>,
    counters: &[Counters],
    flows: &[FlowCounts],
    window_ns: u64,
) -> BTreeMap<&'static str, f64> {
    let mut metrics = BTreeMap::from([("simulated_s", world.now_ns() as f64 / 1e9)]);
    let own = &flows[..scenario.flows().min(flows.len())];
    let submitted: u64 = own.iter().map(|f| f.submitted).sum();
    let delivered: u64 = own.iter().map(|f| f.delivered).sum();
    let octets: u64 = own.iter().map(|f| f.delivered_octets).sum();
    if !own.is_empty() {
        metrics.insert("submitted", submitted as f64);
        metrics.insert("delivered", delivered as f64);
    }
    if submitted > 0 {
        // what is for all should arrive everywhere
        let ratio: f64 = (own.iter().enumerate())
            .map(|(n, f)| {
                let receivers = if scenario.flow_is_broadcast(n) {
                    scenario.nodes() - 1
                } else {
                    1
                };
                f.delivered as f64 / f64::from(receivers.max(1))
            })
            .sum();
        metrics.insert("delivered_ratio", ratio / submitted as f64);
    }
    if window_ns > 0 && !own.is_empty() {
        let bits = (octets + LLC_SNAP_OCTETS * delivered) * 8;
        metrics.insert("throughput_mbps", bits as f64 * 1e3 / window_ns as f64);
    }
    let own = &counters[..scenario.nodes() as usize];
    let sent: u64 = own.iter().map(|c| c.tx_frames).sum();
    let acked: u64 = own.iter().map(|c| c.tx_acked).sum();
    // beacons and broadcasts ask for no ACK
    if sent > 0 && !scenario.sends_without_ack() {
        metrics.insert("collision_probability", 1.0 - acked as f64 / sent as f64);
    }
    let on_air_us: u64 = counters.iter().map(|c| c.tx_time_us).sum();
    if window_ns > 0 {
        metrics.insert("air_use_ratio", on_air_us as f64 * 1e3 / window_ns as f64);
    }
    let (mut asked, mut answered) = (0, 0);
    for node in 0..scenario.nodes() {
        if let Program::Oneshot(p) = world.protocol(node) {
            asked += p.confirms().total();
            answered += p.confirms().acked;
        }
    }
    if asked > 0 {
        metrics.insert("measurements", asked as f64);
        metrics.insert("measurements_acked_ratio", answered as f64 / asked as f64);
    }
    metrics
}

/// What the meter has seen.
fn timed(m: &Measured, metrics: &mut BTreeMap<&'static str, f64>) {
    let us = |ns: f64| ns / 1e3;
    let quantiles = [
        ("latency_p50_us", 0.5),
        ("latency_p99_us", 0.99),
        ("latency_p999_us", 0.999),
        ("latency_max_us", 1.0),
    ];
    for (name, p) in quantiles {
        if let Some(ns) = m.latency_ns.quantile(p) {
            metrics.insert(name, us(ns as f64));
        }
    }
    if let Some(ns) = m.access_ns.mean() {
        metrics.insert("access_us", us(ns));
    }
    if let Some(ns) = m.confirm_ns.mean() {
        metrics.insert("confirm_mean_us", us(ns));
    }
    if let Some(ns) = m.confirm_ns.sd() {
        metrics.insert("confirm_sd_us", us(ns));
    }
    for (name, word) in [
        ("confirms_acked", "acked"),
        ("confirms_not_acked", "not acked"),
        ("confirms_refused", "refused"),
        ("confirms_aborted", "aborted"),
        ("confirms_expired", "expired"),
        ("confirms_unknown", "unknown"),
    ] {
        metrics.insert(name, m.outcomes.get(word).copied().unwrap_or(0) as f64);
    }
}
