//! `sync_error` of a schedule: what the clocks of two of its nodes may be apart. Where it is not told it is measured in the simulator, before the slots are
//! computed: the nodes of the scenario on their hosts, with their drifts, places and losses, and with the Wi-Fi of others, follow the beacons, and nobody
//! sends a message.

use protocols::mac::sync::NetworkTime;
use radio::Duration;
use sim::World;
use sim::rng::{Cause, Stream, mix3};

use super::Scenario;
use super::node::duration;
use super::program::Program;
use super::protocol::Protocol;
use super::schedule::Schedule;
use crate::guard::{self, LOOKS, SETTLING_BEACONS, beacons};

/// Clocks that are compared between two beacons, all worlds together, at least: each world has other drifts.
const CLOCKS: usize = 64;
/// Worlds at most.
const WORLDS: usize = 8;
const SEED: u64 = 0xc10c;

/// What a node takes for network time, if its clock is to be trusted.
pub(crate) fn network_time(world: &World<Program>, node: u32) -> Option<NetworkTime> {
    let (local, sync) = (world.host_clock(node), world.protocol(node).network_clock()?);
    sync.to_network(local).filter(|_| sync.is_good(local))
}

impl Schedule {
    /// As it is told, or what is reckoned with where no clock follows another one: `None` where the clocks say it.
    pub(super) fn told_sync_error(&self) -> Option<Duration> {
        match self.sync_error {
            Some(told) => Some(duration(told)),
            None => (self.beacon.is_none()).then_some(Duration::from_ns(guard::RESOLUTION_NS)),
        }
    }

    /// With which the guard covers a release, and a measured error of the clocks.
    pub(super) fn probability(&self) -> f64 {
        (self.guard_probability.as_ref()).map_or(guard::USUAL, |p| p.get_ref().0)
    }
}

impl Scenario {
    /// `sync_error` of each schedule, told or measured; `None` if there is nothing to measure.
    pub(super) fn measured_sync_errors(&self) -> Option<Vec<Duration>> {
        let all = || self.file.schedule.iter();
        if all().all(|s| s.told_sync_error().is_some()) {
            return None;
        }
        let of = |(n, s): (usize, &Schedule)| s.told_sync_error().unwrap_or_else(|| self.measure(n));
        Some(all().enumerate().map(of).collect())
    }

    /// How far the clocks of the nodes of schedule `n` are apart, with the probability of its guard at either end.
    fn measure(&self, n: usize) -> Duration {
        let schedule = &self.file.schedule[n];
        let nodes = self.members(schedule);
        let clocks = nodes.len().saturating_sub(1).max(1);
        let mut differences = Vec::new();
        for world in 0..CLOCKS.div_ceil(clocks).min(WORLDS) {
            self.compare(mix3(SEED, n as u64, world as u64), n, &nodes, &mut differences);
        }
        Duration::from_ns(
            guard::spread_ns(differences, schedule.probability()).unwrap_or(guard::RESOLUTION_NS),
        )
    }

    /// Differences in one world of the network time at each node from that at the one who sends the beacons, as far as both are trusted, ns.
    fn compare(&self, seed: u64, n: usize, nodes: &[u32], differences: &mut Vec<i64>) {
        let interval_ns = self.beacon_interval_ns(n);
        let master = self.schedules[n].master.expect("who has a beacon is compared");
        let mut world = self.build_without_messages(seed);
        let mut random = Stream::new(seed, 0, Cause::Protocol);
        for beacon in SETTLING_BEACONS..SETTLING_BEACONS + beacons(interval_ns) {
            let mut looks: [u64; LOOKS] = std::array::from_fn(|_| random.below(interval_ns));
            looks.sort_unstable();
            for look in looks {
                world.run_until(beacon * interval_ns + look);
                let network = |node: &u32| network_time(&world, *node);
                let Some(true_time) = network(&master) else {
                    continue;
                };
                let others = nodes.iter().filter(|node| **node != master);
                differences.extend(
                    others
                        .filter_map(network)
                        .map(|t| t.0.wrapping_sub(true_time.0) as i64),
                );
            }
        }
    }

    /// From one beacon that clocks follow to the next, ns.
    fn beacon_interval_ns(&self, n: usize) -> u64 {
        let schedule = &self.file.schedule[n];
        let every = schedule.beacon.as_ref().map_or(1, |b| b.every.0);
        let own = schedule.cycle.get_ref().0 * u64::from(every);
        let group = self.schedules[n]
            .reference
            .and_then(|node| self.groups.iter().position(|g| g.contains(&node)));
        match group.map(|g| &self.file.group[g].protocol) {
            Some(Protocol::Beaconer(b)) => own.max(b.interval.get_ref().0),
            _ => own,
        }
    }
}
