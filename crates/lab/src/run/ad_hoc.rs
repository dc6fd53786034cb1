//! What the stations of an ad hoc network have counted since their start, and what it cost them.

use std::collections::BTreeMap;

use protocols::mac::ibss::{Energy, IbssCounters, PowerProfile};
use sim::World;

use crate::scenario::{Program, Scenario};

/// Adds their numbers, if there are such stations.
pub(super) fn ad_hoc(scenario: &Scenario, world: &World<Program>, metrics: &mut BTreeMap<&'static str, f64>) {
    let stations: Vec<(IbssCounters, Energy, PowerProfile)> = (0..scenario.nodes())
        .filter_map(|n| {
            let (counters, energy) = world.protocol(n).ad_hoc(world.host_clock(n))?;
            Some((counters, energy, scenario.power(n)?))
        })
        .collect();
    if stations.is_empty() {
        return;
    }
    let sum = |of: fn(&IbssCounters) -> u64| stations.iter().map(|(c, ..)| of(c)).sum::<u64>() as f64;
    metrics.insert("ibss_beacons", sum(|c| c.beacons));
    metrics.insert("ibss_soft_beacons", sum(|c| c.soft_beacons));
    metrics.insert("ibss_atims", sum(|c| c.atims));
    metrics.insert("ibss_atims_failed", sum(|c| c.atims_failed));
    metrics.insert("ibss_atims_asked_on", sum(|c| c.atims_asked_on));
    metrics.insert("ibss_expired", sum(|c| c.expired));
    metrics.insert("ibss_no_room", sum(|c| c.no_room));
    if sum(|c| c.wakes) > 0.0 {
        let late = sum(|c| c.wakes_late) / sum(|c| c.wakes);
        metrics.insert("ibss_wakes_late_ratio", late);
    }
    let all = |e: &Energy| e.transmit + e.receive + e.listen + e.doze;
    let time = |of: &dyn Fn(&Energy) -> radio::Duration| {
        stations.iter().map(|(_, e, _)| of(e).as_ns()).sum::<u64>() as f64
    };
    if time(&all) > 0.0 {
        metrics.insert("ibss_doze_ratio", time(&|e| e.doze) / time(&all));
    }
    let joules = stations
        .iter()
        .map(|(_, e, profile)| e.microjoules(profile) as f64 / 1e6);
    metrics.insert("ibss_joules", joules.sum::<f64>() / stations.len() as f64);
}
