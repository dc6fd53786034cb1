//! What the stations of an ad hoc network have counted since their start, and what it cost them.

use std::collections::BTreeMap;

use protocols::mac::ibss::{Energy, IbssCounters, PowerProfile};
use sim::World;

use super::overlays::add;
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
    let counters: Vec<IbssCounters> = stations.iter().map(|(c, ..)| *c).collect();
    add(
        metrics,
        &counters,
        &[
            ("ibss_beacons", |c| c.beacons),
            ("ibss_soft_beacons", |c| c.soft_beacons),
            ("ibss_atims", |c| c.atims),
            ("ibss_atims_failed", |c| c.atims_failed),
            ("ibss_atims_asked_on", |c| c.atims_asked_on),
            ("ibss_expired", |c| c.expired),
            ("ibss_no_room", |c| c.no_room),
        ],
    );
    let wakes: u64 = counters.iter().map(|c| c.wakes).sum();
    if wakes > 0 {
        let late: u64 = counters.iter().map(|c| c.wakes_late).sum();
        metrics.insert("ibss_wakes_late_ratio", late as f64 / wakes as f64);
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
