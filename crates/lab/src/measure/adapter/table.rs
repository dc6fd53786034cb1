//! Shots sorted into A, L_D and L_A, without those that something foreign was near to, and the spans between their planes
//! as rows of a table: Tables IV and V of SDMAC.

use std::collections::BTreeMap;

use frame::{Phy, Rate};
use radio::{Instant, Outcome, Plane, Stamps};
use serde::Serialize;

use super::Taken;
use super::shots::Shot;
use crate::deploy::Refusals;
use crate::stats::Sorted;

/// Samples this near to a foreign frame are left out, ns (SDMAC, IV.B.3).
const WINDOW_NS: u64 = 10_000_000;

/// What became of a shot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Set {
    /// Acked.
    #[serde(rename = "A")]
    Acked,
    /// The data frame did not arrive.
    #[serde(rename = "L_D")]
    DataLost,
    /// The data frame arrived, its ACK did not.
    #[serde(rename = "L_A")]
    AckLost,
    /// One of the two; the other station has not told.
    #[serde(rename = "L")]
    NotAcked,
}

impl Set {
    /// As the paper has it.
    pub const fn name(self) -> &'static str {
        match self {
            Set::Acked => "A",
            Set::DataLost => "L_D",
            Set::AckLost => "L_A",
            Set::NotAcked => "L",
        }
    }
}

/// Time on the air that is taken off, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Air {
    /// Data frame, SIFS and ACK.
    pub acked_ns: u64,
    /// Data frame and ACK timeout.
    pub timeout_ns: u64,
}

impl Air {
    /// Of shots with `payload` octets, at this frequency. ACKs come at the mandatory rates; the ACK timeout is that of ath9k, if that is the driver, else
    /// that of the standard.
    pub fn of(payload: usize, rate: Rate, mhz: u16, driver: &str) -> Air {
        let phy = if mhz > 4_000 { Phy::A } else { Phy::G };
        // MAC header, LLC/SNAP and FCS
        let data_us = frame::ppdu_us(rate, payload as u32 + 24 + 8 + 4, phy.band);
        let timeout_us = match driver {
            "ath9k" => phy.ath9k_ack_timeout_us,
            _ => phy.ack_timeout_us(),
        };
        Air {
            acked_ns: u64::from(data_us + phy.sifs_us + phy.ack_us(rate, phy.basic)) * 1_000,
            timeout_ns: u64::from(data_us + timeout_us) * 1_000,
        }
    }

    pub(super) fn ns(&self, set: Set) -> u64 {
        match set {
            Set::Acked => self.acked_ns,
            _ => self.timeout_ns,
        }
    }
}

/// A span of Table V: name, planes, whether the time on the air is taken off.
pub(super) type Span = (&'static str, Plane, Plane, bool);

pub(super) const REQUEST: Span = ("T_sw_req", Plane::T1, Plane::T4, false);
pub(super) const HARDWARE: Span = ("T_hw", Plane::T4, Plane::T5, true);
pub(super) const CONFIRM: Span = ("T_sw_con", Plane::T5, Plane::T9, false);
pub(super) const SDMAC: Span = ("T_SDMAC", Plane::T1, Plane::T9, true);
pub(super) const REQUEST_API: Span = ("request: API", Plane::T1, Plane::T2, false);
pub(super) const REQUEST_INDEPENDENT: Span = ("request: DRV_ind", Plane::T2, Plane::T3, false);
pub(super) const REQUEST_DEPENDENT: Span = ("request: DRV_dep", Plane::T3, Plane::T4, false);
pub(super) const ISR: Span = ("confirm: ISR", Plane::T5, Plane::T6, false);
pub(super) const CONFIRM_DEPENDENT: Span = ("confirm: DRV_dep", Plane::T6, Plane::T7, false);
pub(super) const CONFIRM_INDEPENDENT: Span = ("confirm: DRV_ind", Plane::T7, Plane::T8, false);
pub(super) const CONFIRM_API: Span = ("confirm: API", Plane::T8, Plane::T9, false);

/// All of them, in the order of Table V.
const SPANS: [Span; 11] = [
    REQUEST,
    REQUEST_API,
    REQUEST_INDEPENDENT,
    REQUEST_DEPENDENT,
    HARDWARE,
    CONFIRM,
    ISR,
    CONFIRM_DEPENDENT,
    CONFIRM_INDEPENDENT,
    CONFIRM_API,
    SDMAC,
];

/// How many shots there were, and where they went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// All.
    pub shots: u64,
    /// In A.
    pub acked: u64,
    /// In L_D, L_A or L.
    pub not_acked: u64,
    /// Foreign frames heard.
    pub foreign: u64,
    /// Left out, since one of them was near.
    pub discarded: u64,
    /// Refused by the host or the kernel, ...
    pub refused: u64,
    /// ... by reason.
    pub refusals: Refusals,
    /// Without a status.
    pub without_outcome: u64,
    /// With more than one frame on the air: no one-shots, left out.
    pub repeated: u64,
    /// Of those that count, so many have all nine planes.
    pub full: u64,
}

/// The shots of one condition, sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct Sorting {
    /// Where they went.
    pub counts: Counts,
    /// Time on the air.
    pub air: Air,
    sets: BTreeMap<Set, Vec<Shot>>,
}

impl Sorting {
    /// Sorts.
    pub fn new(taken: &Taken, air: Air) -> Sorting {
        let mut counts = Counts {
            shots: taken.shots.len() as u64,
            foreign: taken.foreign.len() as u64 + taken.forgotten,
            ..Counts::default()
        };
        let mut sets: BTreeMap<Set, Vec<Shot>> = BTreeMap::new();
        for shot in &taken.shots {
            let set = match (shot.outcome, &taken.heard) {
                (Outcome::Acked, _) => Set::Acked,
                (Outcome::NotAcked, None) => Set::NotAcked,
                (Outcome::NotAcked, Some(heard)) if heard.has(shot.number) => Set::AckLost,
                (Outcome::NotAcked, Some(_)) => Set::DataLost,
                (Outcome::Refused(reason), _) => {
                    counts.refused += 1;
                    counts.refusals.add(reason);
                    continue;
                }
                _ => {
                    counts.without_outcome += 1;
                    continue;
                }
            };
            if shot.attempts > 1 {
                counts.repeated += 1;
            } else if is_near(&taken.foreign, &shot.stamps) {
                counts.discarded += 1;
            } else {
                let acked = u64::from(set == Set::Acked);
                counts.acked += acked;
                counts.not_acked += 1 - acked;
                counts.full += u64::from(shot.stamps.count() == 9);
                sets.entry(set).or_default().push(*shot);
            }
        }
        Sorting { counts, air, sets }
    }

    /// The sets that have shots.
    pub fn sets(&self) -> impl Iterator<Item = (Set, &[Shot])> {
        self.sets.iter().map(|(set, shots)| (*set, &shots[..]))
    }

    /// A span of each shot of a set that has both planes, ns; without those shorter than the time on the air.
    pub(super) fn span(&self, set: Set, (_, from, to, less_air): Span) -> Vec<u64> {
        let shots = self.sets.get(&set).into_iter().flatten();
        let air_ns = if less_air { self.air.ns(set) } else { 0 };
        let ns = |s: &Shot| {
            let [from, to] = [from, to].map(|p| s.stamps.get_host(p));
            to?.since(from?).as_ns().checked_sub(air_ns)
        };
        shots.filter_map(ns).collect()
    }

    /// Shots that came back sooner than they can have been on the air: then nothing of the air is real.
    pub fn impossible(&self) -> u64 {
        let (mut all, mut possible) = (0, 0);
        for set in self.sets.keys() {
            let (name, from, to, _) = SDMAC;
            all += self.span(*set, (name, from, to, false)).len();
            possible += self.span(*set, SDMAC).len();
        }
        (all - possible) as u64
    }

    /// The rows for which there are samples.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for set in self.sets.keys() {
            for span in SPANS {
                rows.extend(Row::of(*set, span, self.span(*set, span)));
            }
        }
        rows
    }
}

/// Whether t4 or t5 is within the window of a foreign frame; the outermost planes, where these are not known.
fn is_near(foreign: &[Instant], stamps: &Stamps) -> bool {
    let one = |first: Plane, second: Plane| stamps.get_host(first).or_else(|| stamps.get_host(second));
    let near = |at: Instant| {
        let (from, to) = (at.as_ns().saturating_sub(WINDOW_NS), at.as_ns() + WINDOW_NS);
        let first = foreign.partition_point(|f| f.as_ns() < from);
        foreign.get(first).is_some_and(|f| f.as_ns() <= to)
    };
    [one(Plane::T4, Plane::T1), one(Plane::T5, Plane::T9)]
        .into_iter()
        .flatten()
        .any(near)
}

/// One row: a span of one set, in us. Percentiles that too few samples carry (ten beyond them) are left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// A, L_D, L_A or L.
    pub set: Set,
    /// Name in Table V.
    pub what: &'static str,
    /// From which plane to which.
    pub planes: String,
    /// Number of samples.
    pub samples: usize,
    /// Mean.
    pub mean_us: f64,
    /// Standard deviation.
    pub sd_us: f64,
    /// Least.
    pub min_us: f64,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p99_9_us: Option<f64>,
    /// 99.99th percentile.
    pub p99_99_us: Option<f64>,
    /// Largest.
    pub max_us: f64,
}

impl Row {
    fn of(set: Set, (what, from, to, less_air): Span, ns: Vec<u64>) -> Option<Row> {
        let samples = ns.len();
        let all = Sorted::new(ns).summary()?;
        let carried = |value: f64, beyond: f64| (samples as f64 * beyond >= 10.0).then_some(value / 1e3);
        Some(Row {
            set,
            what,
            planes: format!("{to} - {from}{}", if less_air { " - air" } else { "" }),
            samples,
            mean_us: all.mean / 1e3,
            sd_us: all.sd / 1e3,
            min_us: all.min / 1e3,
            p99_us: carried(all.p99, 0.01),
            p99_9_us: carried(all.p99_9, 0.001),
            p99_99_us: carried(all.p99_99, 0.0001),
            max_us: all.max / 1e3,
        })
    }
}

#[cfg(test)]
mod tests {
    use radio::Refusal;

    use super::super::Heard;
    use super::super::tests::{AIR, sorting, taken};
    use super::*;

    fn sizes(s: &Sorting) -> Vec<(&'static str, usize)> {
        s.sets().map(|(set, shots)| (set.name(), shots.len())).collect()
    }

    #[test]
    fn only_the_other_station_tells_the_losses_apart() {
        assert_eq!(sizes(&sorting(100, true)), [("A", 80), ("L", 20)]);
        let mut heard = Heard::new(100);
        (0..100).filter(|n| *n != 4).for_each(|n| heard.add(n));
        let told = Taken {
            heard: Some(heard),
            ..taken(100, true)
        };
        assert_eq!(
            sizes(&Sorting::new(&told, AIR)),
            [("A", 80), ("L_D", 1), ("L_A", 19)]
        );
    }

    #[test]
    fn what_a_foreign_frame_was_near_to_is_left_out() {
        let mut taken = taken(100, true);
        let t4 = |n: usize| taken.shots[n].stamps.get_host(Plane::T4).unwrap().as_ns();
        // Just within 10 ms of t4 of the tenth; just beyond that of the twentieth, and of its t5.
        let foreign = [t4(10) - WINDOW_NS, t4(20) - WINDOW_NS - 1];
        taken.foreign = foreign.map(Instant::from_ns).to_vec();
        let sorted = Sorting::new(&taken, AIR);
        assert_eq!((sorted.counts.discarded, sorted.counts.foreign), (1, 2));
        assert_eq!((sorted.counts.acked, sorted.counts.full), (79, 99));
    }

    #[test]
    fn what_is_no_one_shot_or_has_no_outcome_does_not_count() {
        let mut taken = taken(10, true);
        taken.shots[0].outcome = Outcome::Unknown;
        taken.shots[1].attempts = 2;
        taken.shots[2].outcome = Outcome::Refused(Refusal::NoAdapter);
        let sorted = Sorting::new(&taken, AIR);
        assert_eq!((sorted.counts.without_outcome, sorted.counts.repeated), (1, 1));
        assert_eq!(
            (
                sorted.counts.refused,
                sorted.counts.refusals.iter().collect::<Vec<_>>()
            ),
            (1, vec![(Refusal::NoAdapter, 1)])
        );
        assert_eq!(
            (sorted.counts.shots, sorted.counts.acked, sorted.counts.not_acked),
            (10, 5, 2)
        );
    }

    #[test]
    fn rows_are_those_of_table_v_and_the_air_is_taken_off() {
        let rows = sorting(1_250, true).rows();
        let of = |set, what| rows.iter().find(|r| r.set == set && r.what == what).unwrap();
        let hardware = of(Set::Acked, "T_hw");
        assert!((hardware.mean_us - 20.05).abs() < 0.01, "{hardware:?}");
        assert_eq!(
            (hardware.samples, hardware.p99_us.is_some(), hardware.p99_9_us),
            (1_000, true, None)
        );
        let lost = of(Set::NotAcked, "T_hw");
        assert!((lost.mean_us - 13.05).abs() < 0.01 && lost.p99_us.is_none());
        assert_eq!(rows.len(), 22);
        let whole: f64 = ["T_sw_req", "T_hw", "T_sw_con"]
            .iter()
            .map(|what| of(Set::Acked, what).mean_us)
            .sum();
        assert!((whole - of(Set::Acked, "T_SDMAC").mean_us).abs() < 1e-6);
        // Without probes the way as a whole is left.
        let blind = sorting(100, false).rows();
        assert!(blind.iter().all(|r| r.what == "T_SDMAC") && blind.len() == 2);
    }

    #[test]
    fn an_air_that_takes_no_time_is_found_out() {
        let air = Air {
            acked_ns: 1_000_000,
            ..AIR
        };
        let sorted = Sorting::new(&taken(10, true), air);
        assert_eq!(sorted.impossible(), 8);
        assert_eq!(sorting(10, true).impossible(), 0);
    }

    #[test]
    fn the_air_of_fifty_octets() {
        // As in Table III of SDMAC, where the ACK was sent at 6 Mb/s and took 44 us; at 24 Mb/s it takes 28 us.
        let air = Air::of(50, Rate::OFDM_54, 5_825, "ath9k");
        assert_eq!((air.acked_ns, air.timeout_ns), (96_000 - 44_000 + 28_000, 61_000));
    }
}
