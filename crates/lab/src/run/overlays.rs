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

/// Earliest deadline first.
fn edf(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    let of_nodes = || (0..scenario.nodes()).filter_map(|n| world.protocol(n).deadlines());
    if of_nodes().next().is_none() {
        return;
    }
    let sum = |of: fn(&EdfCounters) -> u64| of_nodes().map(of).sum::<u64>() as f64;
    metrics.insert("edf_attempts", sum(|c| c.attempts));
    metrics.insert("edf_unpaid", sum(|c| c.unpaid));
    metrics.insert("edf_dropped", sum(|c| c.dropped));
    metrics.insert("edf_given_up", sum(|c| c.exhausted));
}

/// Those that poll others, by the deadlines of what they have for them.
fn polled(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    let of_nodes = || (0..scenario.nodes()).filter_map(|n| world.protocol(n).polls());
    if of_nodes().next().is_none() {
        return;
    }
    let sum = |of: fn(&CoordinatorCounters) -> u64| of_nodes().map(of).sum::<u64>() as f64;
    metrics.insert("polled_exchanges", sum(|c| c.exchanges));
    metrics.insert("polled_down_missed", sum(|c| c.down_missed));
    metrics.insert("polled_up_missed", sum(|c| c.up_missed));
    metrics.insert("polled_timeouts", sum(|c| c.timeouts));
}

/// Hosts of cells; of several, what crossed their borders, too.
fn rounds(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    let of_nodes = || (0..scenario.nodes()).filter_map(|n| world.protocol(n).rounds());
    if of_nodes().next().is_none() {
        return;
    }
    let sum = |of: fn(&TbmacCounters) -> u64| of_nodes().map(of).sum::<u64>() as f64;
    metrics.insert("tbmac_asked", sum(|c| c.asked));
    metrics.insert("tbmac_granted", sum(|c| c.granted));
    metrics.insert("tbmac_lost", sum(|c| c.lost));
    metrics.insert("tbmac_without", sum(|c| c.without));
    metrics.insert("tbmac_released", sum(|c| c.released));
    metrics.insert("tbmac_late", sum(|c| c.late));
    metrics.insert("tbmac_overruns", sum(|c| c.overruns));
    if scenario.file().has_borders() {
        metrics.insert("cells_crossed", sum(|c| c.crossed));
        metrics.insert("cells_relayed", sum(|c| c.relayed));
        metrics.insert("cells_uncrossed", sum(|c| c.uncrossed));
        metrics.insert("cells_searched", sum(|c| c.searched));
    }
}

/// Nodes that send on two adapters.
fn twice(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    let of_nodes = || (0..scenario.nodes()).filter_map(|n| world.protocol(n).copies());
    if of_nodes().next().is_none() {
        return;
    }
    let sum = |of: fn(&RedundancyCounters) -> u64| of_nodes().map(of).sum::<u64>() as f64;
    metrics.insert("copies_sent", sum(|c| c.copies.iter().sum()));
    metrics.insert("copies_acked", sum(|c| c.acked.iter().sum()));
    metrics.insert("copies_spared", sum(|c| c.spared));
    metrics.insert("copies_cancelled", sum(|c| c.cancelled));
    metrics.insert("copies_no_room", sum(|c| c.no_room));
    metrics.insert("copies_first", sum(|c| c.first.iter().sum()));
    metrics.insert("copies_dropped", sum(|c| c.dropped));
}

/// What nodes that roam have counted since their start.
fn roamed(scenario: &Scenario, world: &World<Program>, metrics: &mut Metrics) {
    let of_nodes = || (0..scenario.nodes()).filter_map(|n| world.protocol(n).roamed());
    if of_nodes().next().is_none() {
        return;
    }
    let sum = |of: fn(RoamCounters) -> u64| of_nodes().map(of).sum::<u64>() as f64;
    metrics.insert("roam_handovers", sum(|c| c.handovers));
    metrics.insert("roam_given_up", sum(|c| c.given_up));
    metrics.insert("roam_missed_in_handover", sum(|c| c.missed_in_handover));
    metrics.insert("roam_missed_else", sum(|c| c.missed_else));
    metrics.insert("roam_second_chances", sum(|c| c.second_chances));
    metrics.insert("roam_copies", sum(|c| c.copies));
    metrics.insert("roam_duplicates", sum(|c| c.duplicates));
    metrics.insert("roam_repeated", sum(|c| c.repeated));
    let longest = of_nodes().map(|c| c.longest_gap_ns).max().unwrap_or(0);
    metrics.insert("roam_gap_max_us", longest as f64 / 1e3);
}
