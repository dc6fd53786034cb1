//! The numbers of a run: counters and flows of the measured time, and the metrics that follow from them.

use std::collections::BTreeMap;

use radio::Counters;
use sim::World;
use sim::traffic::FlowCounts;

use super::{EntryResult, Fate, GroupResult, Measured, overlays};
use crate::scenario::{Program, Scenario};
use crate::stats::Online;

/// LLC and SNAP, which 802.11 counts to the MSDU and payloads do not.
const LLC_SNAP_OCTETS: u64 = 8;

/// Counts so far.
pub(super) struct Snapshot {
    counters: Vec<Vec<Counters>>,
    pub(super) frames_on_air: u64,
}

impl Snapshot {
    pub(super) fn of(scenario: &Scenario, world: &World<Program>) -> Snapshot {
        let of_node = |n| (0..scenario.adapters(n)).map(|a| world.counters(n, a)).collect();
        Snapshot {
            counters: (0..world.nodes()).map(of_node).collect(),
            frames_on_air: world.frames_on_air(),
        }
    }

    pub(super) fn counters_since(&self, before: &Snapshot) -> Vec<Vec<Counters>> {
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
        pairs
            .map(|(a, b)| a.iter().zip(b).map(|(a, b)| less(a, b)).collect())
            .collect()
    }
}

/// Each entry of `[[traffic]]`.
pub(super) fn entries(
    scenario: &Scenario,
    flows: &[FlowCounts],
    measured: Option<&Measured>,
) -> Vec<EntryResult> {
    let mut first = 0;
    let mut list = Vec::new();
    for (n, (entry, end)) in scenario
        .file()
        .traffic
        .iter()
        .zip(scenario.flow_ends())
        .enumerate()
    {
        let own = &flows[first..end as usize];
        first = end as usize;
        let quantiles = |h: &Online| {
            Some([0.5, 0.99, 0.999, 1.0].map(|p| h.quantile(p).map_or(0.0, |ns| ns as f64 / 1e3)))
        };
        list.push(EntryResult {
            from: entry.from.get_ref().clone(),
            to: entry.to.get_ref().clone(),
            submitted: own.iter().map(|f| f.submitted).sum(),
            delivered: own.iter().map(|f| f.delivered).sum(),
            latency_us: measured.and_then(|m| quantiles(m.by_entry.get(&n)?)),
        });
    }
    list
}

/// Each entry of `[[group]]`.
pub(super) fn groups(
    scenario: &Scenario,
    counters: &[Vec<Counters>],
    measured: Option<&Measured>,
) -> Vec<GroupResult> {
    let all = scenario
        .file()
        .group
        .iter()
        .zip(scenario.group_nodes())
        .enumerate();
    all.map(|(g, (group, nodes))| GroupResult {
        name: group.name.get_ref().clone(),
        nodes: nodes.len() as u32,
        counters: sum(counters[nodes.start as usize..nodes.end as usize]
            .iter()
            .flatten()),
        confirms: measured.map(|m| {
            let of_group = Fate::ALL.into_iter().map(|f| (f, m.fates[g][f as usize]));
            of_group.filter(|(_, count)| *count > 0).collect()
        }),
    })
    .collect()
}

/// All of them together.
pub(super) fn sum<'a>(counters: impl Iterator<Item = &'a Counters>) -> Counters {
    counters.fold(Counters::default(), |a, b| Counters {
        tx_frames: a.tx_frames + b.tx_frames,
        tx_acked: a.tx_acked + b.tx_acked,
        tx_responses: a.tx_responses + b.tx_responses,
        rx_frames: a.rx_frames + b.rx_frames,
        rx_errors: a.rx_errors + b.rx_errors,
        rx_duplicates: a.rx_duplicates + b.rx_duplicates,
        tx_time_us: a.tx_time_us + b.tx_time_us,
        busy_time_us: a.busy_time_us + b.busy_time_us,
    })
}

/// What follows from counters alone, of the nodes and flows of the scenario itself.
pub(super) fn counted(
    scenario: &Scenario,
    world: &World<Program>,
    counters: &[Vec<Counters>],
    flows: &[FlowCounts],
    window_ns: u64,
) -> BTreeMap<&'static str, f64> {
    let mut metrics = BTreeMap::from([("simulated_s", world.now_ns() as f64 / 1e9)]);
    let own = &flows[..scenario.flows().min(flows.len())];
    let submitted: u64 = own.iter().map(|f| f.submitted).sum();
    let delivered: u64 = own.iter().map(|f| f.delivered).sum();
    let arrived: u64 = own.iter().map(|f| f.arrived).sum();
    let octets: u64 = own.iter().map(|f| f.arrived_octets).sum();
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
        let bits = (octets + LLC_SNAP_OCTETS * arrived) * 8;
        metrics.insert("throughput_mbps", bits as f64 * 1e3 / window_ns as f64);
    }
    let own = &counters[..scenario.nodes() as usize];
    let sent: u64 = own.iter().flatten().map(|c| c.tx_frames).sum();
    let acked: u64 = own.iter().flatten().map(|c| c.tx_acked).sum();
    // beacons and broadcasts ask for no ACK
    if sent > 0 && !scenario.sends_without_ack() {
        // an ACK may come after the warm-up to a frame from before it
        let ratio = acked as f64 / sent as f64;
        metrics.insert("collision_probability", (1.0 - ratio).max(0.0));
    }
    let on_air_us: u64 = counters.iter().flatten().map(|c| c.tx_time_us).sum();
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
    overlays::counted(scenario, world, &mut metrics);
    if asked > 0 {
        metrics.insert("measurements", asked as f64);
        metrics.insert("measurements_acked_ratio", answered as f64 / asked as f64);
    }
    metrics
}

/// What the meter has seen.
pub(super) fn timed(m: &Measured, metrics: &mut BTreeMap<&'static str, f64>) {
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
    let mut not_acked = 0;
    for fate in Fate::ALL {
        let count: u64 = m.fates.iter().map(|of_group| of_group[fate as usize]).sum();
        metrics.insert(fate.metric(), count as f64);
        if matches!(fate, Fate::DataLost | Fate::AckLost | Fate::Unasked) {
            not_acked += count;
        }
    }
    metrics.insert("confirms_not_acked", not_acked as f64);
}
