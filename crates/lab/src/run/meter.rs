//! Measures latencies while a run goes on, and passes everything on to a recorder if there is one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use radio::{Confirm, Msdu, Outcome, Plane, Token};
use sim::Observer;
use sim::clock::Clock;
use sim::trace::{OnAir, ReceptionEnd, Transmission};
use sim::traffic::parse_header;

use super::fate::{Fate, Flights};
use super::planes::Planes;
use crate::stats::{Online, Running};

/// Entries of `[[traffic]]` with a distribution of their own; the others only count in that of all.
pub const OWN_ENTRIES: usize = 64;

/// What the meter must know of a node.
pub(super) struct Seat {
    /// Its clock.
    pub clock: Clock,
    /// Its group if its confirms count; those of others, and of access points (their beacons would be counted), do
    /// not.
    pub group: Option<usize>,
    /// It asks for no ACKs.
    pub silent: bool,
}

/// What the meter must know of the scenario.
pub(super) struct Scope {
    /// Each node.
    pub seats: Vec<Seat>,
    /// Number of groups.
    pub groups: usize,
    /// Number of nodes; what has a higher number is a stranger.
    pub nodes: u32,
    /// Node of each adapter.
    pub node_of: Vec<u32>,
    /// For each entry of `[[traffic]]`, one more than the number of its last flow.
    pub flow_ends: Vec<u32>,
    /// What was submitted before does not count, ns.
    pub since_ns: u64,
    /// Losses are judged by what was submitted from then on until here, ns.
    pub settle_ns: u64,
    /// End of the run, ns: the longest latency.
    pub until_ns: u64,
    /// Somebody will read a report.
    pub report: bool,
}

/// A flow, as far as losses are judged by it: MSDUs submitted after the warm-up and before the last tenth of the measured
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// These.
    pub submitted: u64,
    /// Of these, handed up anywhere (a group-addressed one counts at each receiver).
    pub delivered: u64,
}

/// A flow that has submitted something.
#[derive(Default)]
struct Flow {
    /// One more than its last number.
    numbers: u32,
    judged: Judged,
}

impl Scope {
    /// In the measured time, with its first instant and without its last.
    fn is_measured(&self, ns: u64) -> bool {
        (self.since_ns..self.until_ns).contains(&ns)
    }

    /// Losses are judged by what was submitted then.
    fn counts(&self, ns: u64) -> bool {
        (self.since_ns..self.settle_ns).contains(&ns)
    }
}

/// What a run has shown.
pub struct Measured {
    /// From submission to delivery, ns, of all flows.
    pub latency_ns: Online,
    /// Of each of the first [`OWN_ENTRIES`] entries of `[[traffic]]` that delivered something.
    pub by_entry: BTreeMap<usize, Online>,
    /// From the request to the first bit on the air, ns, of requests with a single attempt.
    pub access_ns: Running,
    /// From the request to the confirm, ns.
    pub confirm_ns: Running,
    /// Confirms of each group, by [`Fate`].
    pub fates: Vec<[u64; Fate::ALL.len()]>,
    /// Where the time of requests goes, if there is a report.
    pub planes: Option<Planes>,
    /// MSDUs of `[[traffic]]` that were submitted in the measured time, with its first instant and without its last, so that
    /// their frames are in it; of those that are too short to tell their flow none.
    pub from_since_to_end: u64,
    /// Frames on the air that began in that time, each try one.
    pub tries: u64,
    flights: Flights,
    scope: Scope,
    submitted: BTreeMap<u32, Flow>,
}

impl Measured {
    fn new(mut scope: Scope) -> Measured {
        Measured {
            latency_ns: histogram(scope.until_ns),
            by_entry: BTreeMap::new(),
            access_ns: Running::default(),
            confirm_ns: Running::default(),
            fates: vec![[0; Fate::ALL.len()]; scope.groups],
            planes: scope.report.then(|| Planes::new(scope.until_ns)),
            flights: Flights::new(std::mem::take(&mut scope.node_of)),
            scope,
            submitted: BTreeMap::new(),
            from_since_to_end: 0,
            tries: 0,
        }
    }

    fn delivered(&mut self, now_ns: u64, msdu: &Msdu<'_>) {
        let Some((flow, number, then_ns)) = parse_header(msdu.payload) else {
            return;
        };
        let counts = self.scope.counts(then_ns);
        // payloads of measurement tasks look like headers, and were not submitted
        let known = self.submitted.get_mut(&flow).filter(|f| number < f.numbers);
        let known = known.is_some_and(|f| {
            f.judged.delivered += u64::from(counts);
            true
        });
        let entry = self.scope.flow_ends.partition_point(|end| *end <= flow);
        if !known || then_ns > now_ns || then_ns < self.scope.since_ns || entry == self.scope.flow_ends.len()
        {
            return;
        }
        self.latency_ns.record(now_ns - then_ns);
        if entry < OWN_ENTRIES {
            let until_ns = self.scope.until_ns;
            let own = self.by_entry.entry(entry).or_insert_with(|| histogram(until_ns));
            own.record(now_ns - then_ns);
        }
    }

    fn submitted(&mut self, now_ns: u64, flow: u32, number: u32) {
        let counts = self.scope.counts(now_ns);
        let is_traffic = self.scope.flow_ends.last().is_some_and(|end| flow < *end);
        self.from_since_to_end += u64::from(is_traffic && self.scope.is_measured(now_ns));
        let flow = self.submitted.entry(flow).or_default();
        flow.numbers = number.saturating_add(1);
        flow.judged.submitted += u64::from(counts);
    }

    /// What each flow of `[[traffic]]` tells of losses, by its number. What foreign stations send each other is not ours.
    pub fn judged(&self) -> impl Iterator<Item = (u32, Judged)> {
        let end = self.scope.flow_ends.last().copied().unwrap_or(0);
        self.submitted.range(..end).map(|(flow, f)| (*flow, f.judged))
    }

    fn confirmed(&mut self, now_ns: u64, node: u32, c: &Confirm, exchange_ns: Option<(u64, u64)>) {
        let Some(seat) = self.scope.seats.get(node as usize) else {
            return;
        };
        let fate = self.flights.confirmed(node, c.outcome, exchange_ns, seat.silent);
        let (clock, Some(group)) = (seat.clock, seat.group.filter(|_| now_ns >= self.scope.since_ns)) else {
            return;
        };
        self.fates[group][fate as usize] += 1;
        if let Some(planes) = &mut self.planes {
            planes.confirmed(now_ns, (group, clock), fate, c, exchange_ns);
        }
        let Some(t1) = c.stamps.get_host(Plane::T1) else {
            return;
        };
        let t1_ns = clock.when(t1.as_ns());
        if let (1, Some((begin, _))) = (c.attempts, exchange_ns) {
            self.access_ns.push(begin.saturating_sub(t1_ns) as f64);
        }
        if matches!(c.outcome, Outcome::Acked | Outcome::NotAcked) {
            self.confirm_ns.push(now_ns.saturating_sub(t1_ns) as f64);
        }
    }
}

pub(super) fn histogram(until_ns: u64) -> Online {
    Online::new(until_ns.max(1_000)).expect("a duration of at most a year fits a histogram")
}

/// Keeps [`Measured`] while the world has its observer.
pub(super) struct Meter(Rc<RefCell<Measured>>);

impl Meter {
    pub(super) fn new(scope: Scope) -> Meter {
        Meter(Rc::new(RefCell::new(Measured::new(scope))))
    }

    pub(super) fn observer(&self, next: Option<Box<dyn Observer>>) -> Box<dyn Observer> {
        Box::new(Watch {
            measured: Rc::clone(&self.0),
            next,
        })
    }

    /// After the world has given back its observer.
    pub(super) fn finish(self) -> Measured {
        let inner = Rc::try_unwrap(self.0).ok().expect("the observer was taken back");
        inner.into_inner()
    }
}

struct Watch {
    measured: Rc<RefCell<Measured>>,
    next: Option<Box<dyn Observer>>,
}

impl Observer for Watch {
    fn transmission(&mut self, t: &Transmission<'_>) {
        let mut measured = self.measured.borrow_mut();
        measured.flights.transmission(t);
        let is_ours = t.what == OnAir::Frame && t.node < measured.scope.nodes;
        measured.tries += u64::from(is_ours && measured.scope.is_measured(t.start_ns));
        drop(measured);
        if let Some(next) = &mut self.next {
            next.transmission(t);
        }
    }

    fn reception(&mut self, r: &ReceptionEnd) {
        self.measured.borrow_mut().flights.reception(r);
        if let Some(next) = &mut self.next {
            next.reception(r);
        }
    }

    fn submitted(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        if let Some((flow, number, _)) = parse_header(msdu.payload) {
            self.measured.borrow_mut().submitted(now_ns, flow, number);
        }
        if let Some(next) = &mut self.next {
            next.submitted(now_ns, node, msdu);
        }
    }

    fn requested(&mut self, now_ns: u64, node: u32, token: Token, frame: &[u8]) {
        if let Some(next) = &mut self.next {
            next.requested(now_ns, node, token, frame);
        }
    }

    fn delivered(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        self.measured.borrow_mut().delivered(now_ns, msdu);
        if let Some(next) = &mut self.next {
            next.delivered(now_ns, node, msdu);
        }
    }

    fn confirmed(&mut self, now_ns: u64, node: u32, c: &Confirm, exchange_ns: Option<(u64, u64)>) {
        self.measured.borrow_mut().confirmed(now_ns, node, c, exchange_ns);
        if let Some(next) = &mut self.next {
            next.confirmed(now_ns, node, c, exchange_ns);
        }
    }
}
