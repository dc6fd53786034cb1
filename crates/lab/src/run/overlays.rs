//! What the overlays of a scenario's nodes have counted since their start, as metrics.

use std::collections::BTreeMap;

use protocols::mac::edf::EdfCounters;
use protocols::mac::edf::coordinator::CoordinatorCounters;
use protocols::mac::redundancy::RedundancyCounters;
use protocols::mac::roam::RoamCounters;
use protocols::mac::slotted::SlottedCounters;
use protocols::mac::tbmac::TbmacCounters;
use protocols::mac::tdma::TdmaCounters;
use protocols::mac::tdma::join::JoinCounters;
use sim::World;

use crate::scenario::{Program, Scenario};

type Metrics = BTreeMap<&'static str, f64>;

/// The name of a metric, and what nodes count of it.
type Counter<C> = (&'static str, fn(&C) -> u64);

/// Those of every overlay that the scenario has.
pub(super) fn counted(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    slots(scenario, world, metrics);
    edf(scenario, world, metrics);
    polled(scenario, world, metrics);
    rounds(scenario, world, metrics);
    twice(scenario, world, metrics);
    roamed(scenario, world, metrics);
}

/// What nodes with slots have counted since their start, those of schedules and those that go by their own clock; where somebody
/// watches or joins, that too.
fn slots(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    let schedules = &scenario.file().schedule;
    let of_nodes = || (0..scenario.nodes()).filter_map(|n| world.protocol(n).slots());
    let sum = |of: fn(&TdmaCounters) -> u64| of_nodes().map(|(c, _)| of(c)).sum::<u64>() as f64;
    if !schedules.is_empty() {
        metrics.insert("slots_released", sum(|c| c.released));
        metrics.insert("slots_late", sum(|c| c.late));
        metrics.insert("slots_lost", sum(|c| c.overruns));
    }
    let buckets: Vec<SlottedCounters> = (0..scenario.nodes())
        .filter_map(|n| world.protocol(n).bucket().copied())
        .collect();
    if !buckets.is_empty() {
        let mut add = |name, of: fn(&SlottedCounters) -> u64| {
            *metrics.entry(name).or_default() += buckets.iter().map(of).sum::<u64>() as f64;
        };
        add("slots_released", |c| c.released);
        add("slots_lost", |c| c.overruns);
        add("slots_carried", |c| c.carried);
    }
    if schedules.iter().any(|s| s.watch) {
        metrics.insert("slots_overran", sum(|c| c.overran));
        metrics.insert("slots_outside", sum(|c| c.outside));
        metrics.insert("slots_strays", sum(|c| c.strays));
        metrics.insert("slots_told", sum(|c| c.told));
    }
    // coordinators have asked nobody
    let joins = || of_nodes().filter_map(|(_, j)| j);
    let sum = |asks: bool, of: fn(&JoinCounters) -> u64| -> f64 {
        joins().filter(|j| (j.asked > 0) == asks).map(of).sum::<u64>() as f64
    };
    if schedules.iter().any(|s| s.join.is_some()) {
        metrics.insert("join_asked", sum(true, |j| j.asked));
        metrics.insert("join_lapsed", sum(true, |j| j.lapsed));
        metrics.insert("join_admitted", sum(false, |j| j.joined));
        metrics.insert("join_refused", sum(false, |j| j.refused));
        metrics.insert("join_left", sum(false, |j| j.left));
        metrics.insert("join_dropped", sum(false, |j| j.lapsed));
        metrics.insert("join_changes", sum(false, |j| j.changes));
    }
}

/// The sums of what those nodes have counted that count it; nothing if there are none.
pub(super) fn add<C>(metrics: &mut Metrics, counters: &[C], sums: &[Counter<C>]) {
    if counters.is_empty() {
        return;
    }
    for (name, of) in sums {
        metrics.insert(name, counters.iter().map(of).sum::<u64>() as f64);
    }
}

fn of_nodes<C>(scenario: &Scenario, world: &World<Program>, of: fn(&Program) -> Option<C>) -> Vec<C> {
    (0..scenario.nodes())
        .filter_map(|n| of(world.protocol(n)))
        .collect()
}

/// Earliest deadline first.
fn edf(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    let counters: Vec<EdfCounters> = of_nodes(scenario, world, |p| p.deadlines().copied());
    add(
        metrics,
        &counters,
        &[
            ("edf_attempts", |c| c.attempts),
            ("edf_unpaid", |c| c.unpaid),
            ("edf_dropped", |c| c.dropped),
            ("edf_given_up", |c| c.exhausted),
            ("edf_silent", |c| c.silent),
        ],
    );
}

/// Those that poll others, by the deadlines of what they have for them.
fn polled(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    let counters: Vec<CoordinatorCounters> = of_nodes(scenario, world, |p| p.polls().copied());
    add(
        metrics,
        &counters,
        &[
            ("polled_exchanges", |c| c.exchanges),
            ("polled_down_missed", |c| c.down_missed),
            ("polled_up_missed", |c| c.up_missed),
            ("polled_timeouts", |c| c.timeouts),
            ("polled_silent", |c| c.silent),
        ],
    );
}

/// Hosts of cells; of several, what crossed their borders, too.
fn rounds(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    let counters: Vec<TbmacCounters> = of_nodes(scenario, world, |p| p.rounds().copied());
    add(
        metrics,
        &counters,
        &[
            ("tbmac_asked", |c| c.asked),
            ("tbmac_granted", |c| c.granted),
            ("tbmac_lost", |c| c.lost),
            ("tbmac_without", |c| c.without),
            ("tbmac_released", |c| c.released),
            ("tbmac_late", |c| c.late),
            ("tbmac_overruns", |c| c.overruns),
        ],
    );
    if scenario.file().has_borders() {
        add(
            metrics,
            &counters,
            &[
                ("cells_crossed", |c| c.crossed),
                ("cells_relayed", |c| c.relayed),
                ("cells_uncrossed", |c| c.uncrossed),
                ("cells_searched", |c| c.searched),
            ],
        );
    }
}

/// Nodes that send on two adapters.
fn twice(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    let counters: Vec<RedundancyCounters> = of_nodes(scenario, world, |p| p.copies().copied());
    add(
        metrics,
        &counters,
        &[
            ("copies_sent", |c| c.copies.iter().sum()),
            ("copies_acked", |c| c.acked.iter().sum()),
            ("copies_spared", |c| c.spared),
            ("copies_cancelled", |c| c.cancelled),
            ("copies_no_room", |c| c.no_room),
            ("copies_first", |c| c.first.iter().sum()),
            ("copies_dropped", |c| c.dropped),
        ],
    );
}

/// What nodes that roam have counted since their start.
fn roamed(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    let counters: Vec<RoamCounters> = of_nodes(scenario, world, Program::roamed);
    add(
        metrics,
        &counters,
        &[
            ("roam_handovers", |c| c.handovers),
            ("roam_given_up", |c| c.given_up),
            ("roam_missed_in_handover", |c| c.missed_in_handover),
            ("roam_missed_else", |c| c.missed_else),
            ("roam_second_chances", |c| c.second_chances),
            ("roam_copies", |c| c.copies),
            ("roam_duplicates", |c| c.duplicates),
            ("roam_repeated", |c| c.repeated),
        ],
    );
    if let Some(longest) = counters.iter().map(|c| c.longest_gap_ns).max() {
        metrics.insert("roam_gap_max_us", longest as f64 / 1e3);
    }
}
