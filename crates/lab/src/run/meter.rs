//! Measures latencies while a run goes on, and passes everything on to a recorder if there is one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use radio::{Confirm, Msdu, Outcome, Plane};
use sim::Observer;
use sim::clock::Clock;
use sim::trace::{ReceptionEnd, Transmission};
use sim::traffic::parse_header;

use crate::record::outcome_word;
use crate::stats::{Online, Running};

/// Flows with a distribution of their own; the others only count in that of all.
pub const OWN_FLOWS: usize = 64;

/// What a run has shown.
pub struct Measured {
    /// From submission to delivery, ns, of all flows.
    pub latency_ns: Online,
    /// Of each of the first [`OWN_FLOWS`] flows.
    pub by_flow: BTreeMap<u32, Online>,
    /// From the request to the first bit on the air, ns, of requests with a single attempt.
    pub access_ns: Running,
    /// From the request to the confirm, ns.
    pub confirm_ns: Running,
    /// Confirms by outcome.
    pub outcomes: BTreeMap<&'static str, u64>,
    since_ns: u64,
    until_ns: u64,
    clocks: Vec<Clock>,
    submitted: BTreeMap<u32, u32>,
}

impl Measured {
    fn new(clocks: Vec<Clock>, since_ns: u64, until_ns: u64) -> Measured {
        Measured {
            latency_ns: histogram(until_ns),
            by_flow: BTreeMap::new(),
            access_ns: Running::default(),
            confirm_ns: Running::default(),
            outcomes: BTreeMap::new(),
            since_ns,
            until_ns,
            clocks,
            submitted: BTreeMap::new(),
        }
    }

    fn delivered(&mut self, now_ns: u64, msdu: &Msdu<'_>) {
        let Some((flow, number, then_ns)) = parse_header(msdu.payload) else {
            return;
        };
        // payloads of measurement tasks look like headers, and were not submitted
        let known = self.submitted.get(&flow).is_some_and(|n| number < *n);
        if !known || then_ns > now_ns || then_ns < self.since_ns {
            return;
        }
        self.latency_ns.record(now_ns - then_ns);
        let until_ns = self.until_ns;
        if self.by_flow.len() < OWN_FLOWS || self.by_flow.contains_key(&flow) {
            let own = self.by_flow.entry(flow).or_insert_with(|| histogram(until_ns));
            own.record(now_ns - then_ns);
        }
    }

    fn confirmed(&mut self, now_ns: u64, node: u32, c: &Confirm, exchange_ns: Option<(u64, u64)>) {
        if now_ns < self.since_ns {
            return;
        }
        *self.outcomes.entry(outcome_word(c.outcome)).or_default() += 1;
        let Some(t1) = c.stamps.get_host(Plane::T1) else {
            return;
        };
        let t1_ns = self.clocks[node as usize].when(t1.as_ns());
        if let (1, Some((begin, _))) = (c.attempts, exchange_ns) {
            self.access_ns.push(begin.saturating_sub(t1_ns) as f64);
        }
        if matches!(c.outcome, Outcome::Acked | Outcome::NotAcked) {
            self.confirm_ns.push(now_ns.saturating_sub(t1_ns) as f64);
        }
    }
}

fn histogram(until_ns: u64) -> Online {
    Online::new(until_ns.max(1_000)).expect("a duration of at most a year fits a histogram")
}

/// Keeps [`Measured`] while the world has its observer.
pub(super) struct Meter(Rc<RefCell<Measured>>);

impl Meter {
    pub(super) fn new(clocks: Vec<Clock>, since_ns: u64, until_ns: u64) -> Meter {
        Meter(Rc::new(RefCell::new(Measured::new(clocks, since_ns, until_ns))))
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
        if let Some(next) = &mut self.next {
            next.transmission(t);
        }
    }

    fn reception(&mut self, r: &ReceptionEnd) {
        if let Some(next) = &mut self.next {
            next.reception(r);
        }
    }

    fn submitted(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        if let Some((flow, number, _)) = parse_header(msdu.payload) {
            let numbers = number.saturating_add(1);
            self.measured.borrow_mut().submitted.insert(flow, numbers);
        }
        if let Some(next) = &mut self.next {
            next.submitted(now_ns, node, msdu);
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
