//! What a bed measures: every confirm is sorted by its outcome into A, L_D or L_A, with the time between the planes.

use std::cell::RefCell;
use std::rc::Rc;

use frame::Phy;
use radio::{Confirm, Outcome, Plane};
use sim::Observer;
use sim::trace::{OnAir, ReceptionEnd, Transmission};

use super::super::counts::Counts;
use super::{AP_NODE, STATION_NODE, air_ns};

/// Samples this near to a foreign frame are discarded (section IV.B.3).
const WINDOW_NS: u64 = 10_000_000;

/// A span between two planes, of which the bed counts every nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// t2 - t1.
    RequestApi,
    /// t3 - t2.
    RequestIndependent,
    /// t4 - t3.
    RequestDependent,
    /// T_sw_req: t4 - t1.
    Request,
    /// T_hw: t5 - t4 less the time on the air that the outcome implies.
    Hardware,
    /// t6 - t5.
    Isr,
    /// t7 - t6.
    ConfirmDependent,
    /// t8 - t7.
    ConfirmIndependent,
    /// t9 - t8.
    ConfirmApi,
    /// T_sw_con: t9 - t5.
    Confirm,
    /// T_SDMAC: t9 - t1 less the same time on the air.
    Sdmac,
    /// From the first bit on the air to the end of the exchange, as it was in truth.
    Exchange,
    /// From t1 to the first bit on the air, as it was in truth.
    Release,
}

/// Number of spans.
const SPANS: usize = 13;

/// The samples of one outcome.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Set([Counts; SPANS]);

impl Set {
    /// All values of a span.
    pub fn of(&self, span: Span) -> &Counts {
        &self.0[span as usize]
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.of(Span::Sdmac).count()
    }
}

/// What a bed has measured.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Sets {
    /// A: confirmed with an ACK.
    pub acked: Set,
    /// L_D: the data frame did not arrive.
    pub data_lost: Set,
    /// L_A: it arrived, and its ACK did not.
    pub ack_lost: Set,
    /// Samples left out because of foreign frames.
    pub discarded: u64,
    /// Beacon periods simulated.
    pub periods: u64,
    /// Largest deviation of an ACK from SIFS after the data frame, ns.
    pub sifs_deviation_ns: u64,
}

impl Sets {
    /// Takes in what another piece of the same bed has measured.
    pub fn merge(&mut self, other: &Sets) {
        let pairs = [
            (&mut self.acked, &other.acked),
            (&mut self.data_lost, &other.data_lost),
            (&mut self.ack_lost, &other.ack_lost),
        ];
        for (mine, theirs) in pairs {
            mine.0.iter_mut().zip(&theirs.0).for_each(|(a, b)| a.merge(b));
        }
        self.discarded += other.discarded;
        self.periods += other.periods;
        self.sifs_deviation_ns = self.sifs_deviation_ns.max(other.sifs_deviation_ns);
    }

    /// Samples that were not discarded.
    pub fn samples(&self) -> u64 {
        self.acked.count() + self.data_lost.count() + self.ack_lost.count()
    }
}

/// A sample that may still be discarded.
struct Sample {
    outcome: Outcome,
    arrived: bool,
    ended_ns: u64,
    spans: [u64; SPANS],
}

/// Sorts confirms into sets.
pub(super) struct Recorder {
    pub(super) sets: Sets,
    octets: u16,
    /// End of the latest data frame.
    data_end_ns: u64,
    arrived: bool,
    foreign_end_ns: Option<u64>,
    waiting: Option<Sample>,
}

impl Recorder {
    pub(super) fn new(octets: u16) -> Recorder {
        Recorder {
            sets: Sets::default(),
            octets,
            data_end_ns: 0,
            arrived: false,
            foreign_end_ns: None,
            waiting: None,
        }
    }

    /// The waiting sample counts.
    pub(super) fn settle(&mut self) {
        let Some(sample) = self.waiting.take() else { return };
        let set = match (sample.outcome, sample.arrived) {
            (Outcome::Acked, _) => &mut self.sets.acked,
            (_, false) => &mut self.sets.data_lost,
            (_, true) => &mut self.sets.ack_lost,
        };
        set.0.iter_mut().zip(sample.spans).for_each(|(c, ns)| c.push(ns));
    }
}

impl Observer for Recorder {
    fn transmission(&mut self, t: &Transmission<'_>) {
        match t.what {
            OnAir::Frame if t.node == STATION_NODE => self.data_end_ns = t.end_ns,
            OnAir::Ack => {
                let sifs_ns = u64::from(Phy::A.sifs_us) * 1_000;
                let deviation = t.start_ns.abs_diff(self.data_end_ns + sifs_ns);
                self.sets.sifs_deviation_ns = self.sets.sifs_deviation_ns.max(deviation);
            }
            OnAir::Noise => {
                self.foreign_end_ns = Some(t.end_ns);
                let near = |s: &Sample| t.start_ns.saturating_sub(s.ended_ns) <= WINDOW_NS;
                if self.waiting.take_if(|s| near(s)).is_some() {
                    self.sets.discarded += 1;
                }
            }
            _ => {}
        }
    }

    fn reception(&mut self, r: &ReceptionEnd) {
        // adapters are numbered like nodes here
        if r.adapter == AP_NODE && r.from == STATION_NODE {
            self.arrived |= r.ok;
        }
    }

    fn confirmed(&mut self, _now_ns: u64, node: u32, c: &Confirm, exchange_ns: Option<(u64, u64)>) {
        let (STATION_NODE, Some((start, end))) = (node, exchange_ns) else {
            return;
        };
        self.settle();
        let arrived = std::mem::take(&mut self.arrived);
        if self
            .foreign_end_ns
            .is_some_and(|f| start.saturating_sub(f) <= WINDOW_NS)
        {
            self.sets.discarded += 1;
            return;
        }
        let t = Plane::ALL.map(|plane| {
            let stamp = c.stamps.get_host(plane);
            stamp.expect("the host stamps all planes").as_ns()
        });
        let air = air_ns(c.outcome == Outcome::Acked, self.octets);
        let spans = [
            t[1] - t[0],
            t[2] - t[1],
            t[3] - t[2],
            t[3] - t[0],
            t[4] - t[3] - air,
            t[5] - t[4],
            t[6] - t[5],
            t[7] - t[6],
            t[8] - t[7],
            t[8] - t[4],
            t[8] - t[0] - air,
            end - start,
            start - t[0],
        ];
        self.waiting = Some(Sample {
            outcome: c.outcome,
            arrived,
            ended_ns: end,
            spans,
        });
    }
}

/// The world owns its observer; this leaves a way to it.
pub(super) struct Shared(pub(super) Rc<RefCell<Recorder>>);

impl Observer for Shared {
    fn transmission(&mut self, t: &Transmission<'_>) {
        self.0.borrow_mut().transmission(t);
    }

    fn reception(&mut self, r: &ReceptionEnd) {
        self.0.borrow_mut().reception(r);
    }

    fn confirmed(&mut self, now_ns: u64, node: u32, c: &Confirm, exchange_ns: Option<(u64, u64)>) {
        self.0.borrow_mut().confirmed(now_ns, node, c, exchange_ns);
    }
}
