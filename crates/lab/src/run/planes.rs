//! Where the time of requests goes, plane by plane: kept only for the report, because it costs time and memory.

use std::collections::BTreeMap;

use radio::{Confirm, Plane};
use sim::clock::Clock;

use super::fate::Fate;
use super::meter::histogram;
use crate::stats::{Online, Running};

/// Stretches between neighbouring planes, the air among them.
pub const STRETCHES: [&str; 10] = [
    "t1-t2", "t2-t3", "t3-t4", "t4-air", "air", "air-t5", "t5-t6", "t6-t7", "t7-t8", "t8-t9",
];
/// Groups with a waterfall of their own; each takes some megabytes.
const MAX_GROUPS: usize = 16;
/// Stamps of a clock with drift are right to this, ns.
const ROUNDING_NS: u64 = 10;

/// What one stretch has taken.
pub struct Stretch {
    /// Mean, ns.
    pub mean_ns: Running,
    /// Distribution, ns.
    pub spread_ns: Online,
}

/// The planes of a run: how long requests and confirms took between them, by group.
pub struct Planes {
    /// For each group the stretches of its acknowledged requests, in the order of [`STRETCHES`].
    pub ways: BTreeMap<usize, Vec<Stretch>>,
    /// From request to confirm, ns, by what became of it.
    pub requests: BTreeMap<Fate, Online>,
    /// Requests left out because their clock jumped on the way.
    pub left_out: u64,
    until_ns: u64,
}

impl Planes {
    pub(super) fn new(until_ns: u64) -> Planes {
        Planes {
            ways: BTreeMap::new(),
            requests: BTreeMap::new(),
            left_out: 0,
            until_ns,
        }
    }

    pub(super) fn confirmed(
        &mut self,
        now_ns: u64,
        (group, clock): (usize, Clock),
        fate: Fate,
        c: &Confirm,
        exchange_ns: Option<(u64, u64)>,
    ) {
        let (Some(t1), Some((begin, end))) = (c.stamps.get_host(Plane::T1), exchange_ns) else {
            return;
        };
        let at = |plane| c.stamps.get_host(plane).map(|t| clock.when(t.as_ns()));
        let t1_ns = clock.when(t1.as_ns());
        let until_ns = self.until_ns;
        let new = || histogram(until_ns);
        let request = self.requests.entry(fate).or_insert_with(new);
        request.record(now_ns.saturating_sub(t1_ns));
        if fate != Fate::Acked || (self.ways.len() == MAX_GROUPS && !self.ways.contains_key(&group)) {
            return;
        }
        let points = [
            at(Plane::T2),
            at(Plane::T3),
            at(Plane::T4),
            Some(begin),
            Some(end),
            at(Plane::T5),
            at(Plane::T6),
            at(Plane::T7),
            at(Plane::T8),
            at(Plane::T9),
        ];
        // a plane that this host does not stamp takes no time; what follows counts from the one before
        let mut last = t1_ns;
        let mut taken = [0; STRETCHES.len()];
        for (taken, point) in taken.iter_mut().zip(points) {
            let point = point.unwrap_or(last);
            if point + ROUNDING_NS < last {
                self.left_out += 1;
                return;
            }
            *taken = point.saturating_sub(last);
            last = point.max(last);
        }
        let way = self.ways.entry(group).or_insert_with(|| {
            let stretch = |_: &&str| Stretch {
                mean_ns: Running::default(),
                spread_ns: new(),
            };
            STRETCHES.iter().map(stretch).collect()
        });
        for (stretch, ns) in way.iter_mut().zip(taken) {
            stretch.mean_ns.push(ns as f64);
            stretch.spread_ns.record(ns);
        }
    }
}
