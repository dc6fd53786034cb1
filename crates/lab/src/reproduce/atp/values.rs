//! Our value for every number of every row of the thesis.

use super::plan::Measured;
use super::summary::Summary;
use super::{Bed, Case, LOSS};
use crate::mesh::Kind::{self, Adaptive, Aggressive, Default, Tahoe};
use crate::mesh::metrics::utility;
use crate::reproduce::estimate::Estimate;
use crate::reproduce::values::Values;

const A: Bed = Bed::A(LOSS);
const CALIBRATED: Bed = Bed::CalibratedA;
const ATP: [Kind; 3] = [Default, Aggressive, Adaptive];
/// Runs that an interval needs at least.
const FEW: usize = 5;

/// The mean of values of independent runs, with its error; unbounded if they are few.
pub(super) fn mean(values: &[f64]) -> Option<Estimate> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    match values.len() {
        0 => None,
        few if few < FEW => Some(Estimate {
            value: mean,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        }),
        _ => Some(Estimate::with_error(mean, (squares / (n - 1.0) / n).sqrt())),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

pub(super) fn average(values: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = values.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// Gains in per cent.
pub(super) fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

impl Measured {
    /// The mean over hops of something that compares the runs of one seed by transport; then over seeds.
    fn over_hops<'m>(
        &'m self,
        bed: Bed,
        flows: u32,
        hops: &[u32],
        compare: impl Fn(&dyn Fn(Kind) -> Option<&'m Summary>) -> Option<f64>,
    ) -> Option<Estimate> {
        let of_seed = |n: u64| {
            let of_hops = |&hops: &u32| {
                let of = |kind| {
                    self.get(
                        Case {
                            bed,
                            hops,
                            flows,
                            kind,
                        },
                        n,
                    )
                };
                compare(&of)
            };
            average(hops.iter().filter_map(of_hops))
        };
        mean(&(0..self.seeds()).filter_map(of_seed).collect::<Vec<_>>())
    }

    /// Goodputs of all runs of a case, kb/s.
    fn kbps(&self, case: Case) -> Vec<f64> {
        let runs = (0..self.seeds()).filter_map(|n| self.get(case, n));
        runs.map(Summary::mean_kbps).collect()
    }

    /// Mean goodput over the runs of a case.
    pub(super) fn mean_kbps(&self, bed: Bed, hops: u32, flows: u32, kind: Kind) -> Option<f64> {
        average(
            self.kbps(Case {
                bed,
                hops,
                flows,
                kind,
            })
            .into_iter(),
        )
    }

    /// How much more one transport gets than another, in per cent: means over the runs, then the mean over hops. The
    /// error is that of the runs left out one by one.
    fn gain(&self, bed: Bed, flows: u32, hops: &[u32], of: Kind, over: Kind) -> Option<Estimate> {
        let without = |left_out: Option<u64>| {
            let total = |hops, kind| {
                let runs = (0..self.seeds()).filter(|n| Some(*n) != left_out);
                let runs = runs.filter_map(|n| {
                    self.get(
                        Case {
                            bed,
                            hops,
                            flows,
                            kind,
                        },
                        n,
                    )
                });
                average(runs.map(Summary::mean_kbps))
            };
            let ratio = |&h: &u32| Some(percent(total(h, of)? / total(h, over)?));
            average(hops.iter().filter_map(ratio))
        };
        let value = without(None)?;
        let runs: Vec<f64> = (0..self.seeds()).filter_map(|n| without(Some(n))).collect();
        if runs.len() < FEW {
            return mean(&[value]);
        }
        // the jackknife
        let n = runs.len() as f64;
        let centre = runs.iter().sum::<f64>() / n;
        let squares: f64 = runs.iter().map(|x| (x - centre) * (x - centre)).sum();
        Some(Estimate::with_error(value, (squares * (n - 1.0) / n).sqrt()))
    }
}

impl Values {
    /// All that the runs allow.
    pub(super) fn of_atp(measured: &Measured) -> Values {
        let mut values = Values::default();
        values.single(measured);
        values.dynamics(measured);
        values.several(measured);
        values.testbed_b(measured);
        values.utilities();
        values.constants();
        values.aims(measured);
        values.stack(measured);
        values.random_flows(measured);
        values
    }

    /// Section 5.1: one flow in testbed A.
    fn single(&mut self, m: &Measured) {
        let hops = m.hops(A, 1);
        let gain = |bed, hops: &[u32], of, over| m.gain(bed, 1, hops, of, over);
        self.put("1-19", "gain", gain(A, &hops, Aggressive, Default));
        self.put("1-20", "gain", gain(A, &hops, Adaptive, Default));
        self.put("1-20", "over aggressive", gain(A, &hops, Adaptive, Aggressive));
        self.put("1-21", "gain", gain(A, &hops, Adaptive, Tahoe));
        let losses = [0, 20, 100].map(|loss| (Bed::A(loss), format!("at {} % loss", f64::from(loss) / 10.0)));
        for (bed, at) in losses.into_iter().chain([
            (Bed::RetryingA, "with 7 tries".into()),
            (CALIBRATED, "calibrated".into()),
        ]) {
            let hops = m.hops(bed, 1);
            for (id, of, over) in [
                ("1-19", Aggressive, Default),
                ("1-20", Adaptive, Default),
                ("1-21", Adaptive, Tahoe),
            ] {
                self.put(id, &at, gain(bed, &hops, of, over));
            }
        }
        for (name, h) in [("1 hop", 1), ("6 hops", 6)] {
            self.put("1-22", name, gain(A, &[h], Default, Tahoe));
            let calibrated = gain(CALIBRATED, &[h], Default, Tahoe);
            self.put("1-22", &format!("{name}, calibrated"), calibrated);
        }
        let all = m.hops(CALIBRATED, 1);
        self.put("1-22", "mean, calibrated", gain(CALIBRATED, &all, Default, Tahoe));
        let deviation = |hops, kind| {
            let kbps = m.kbps(Case {
                bed: A,
                hops,
                flows: 1,
                kind,
            });
            let mean = average(kbps.iter().copied())?;
            let squares: f64 = kbps.iter().map(|x| (x - mean) * (x - mean)).sum();
            Some((squares / kbps.len() as f64).sqrt())
        };
        let ratio = |&h: &u32| Some(deviation(h, Default)? / deviation(h, Tahoe)?);
        let ratio = average(hops.iter().filter_map(ratio)).filter(|r| r.is_finite());
        self.put("1-23", "ratio", ratio.map(Estimate::exact));
    }

    /// Sections 5.1.1 to 5.1.3: what happens within one flow over three hops.
    fn dynamics(&mut self, m: &Measured) {
        let three = |kind| {
            let case = Case {
                bed: A,
                hops: 3,
                flows: 1,
                kind,
            };
            (0..m.seeds()).filter_map(move |n| m.get(case, n))
        };
        let middle = |values: Vec<f64>| median(values).map(Estimate::exact);
        let delays = three(Default).filter_map(|s| s.most_delay_ms).collect();
        self.put("1-24", "d_max", middle(delays));
        let rates = three(Default).filter_map(|s| s.least_rate_mbps).collect();
        self.put("1-25", "rate", middle(rates));
        for (name, kind) in [("kappa 0.2", Default), ("kappa 0.5", Aggressive)] {
            let runs = m.hops(A, 1).into_iter().flat_map(|hops| {
                let case = Case {
                    bed: A,
                    hops,
                    flows: 1,
                    kind,
                };
                (0..m.seeds()).filter_map(move |n| m.get(case, n))
            });
            let feedbacks = runs.flat_map(|s| &s.recoveries).map(|n| f64::from(*n));
            self.put("1-26", name, middle(feedbacks.collect()));
        }
        let mut ratios = Vec::new();
        for hops in m.hops(A, 1) {
            let case = Case {
                bed: A,
                hops,
                flows: 1,
                kind: Default,
            };
            ratios.extend((0..m.seeds()).filter_map(|n| m.get(case, n)?.start_ratio));
        }
        if !ratios.is_empty() {
            let cv = crate::mesh::metrics::unfairness(&ratios);
            self.put("1-27", "cv", Estimate::exact(cv));
        }
        let hops = m.hops(A, 1);
        let compared = |of: fn(&Summary) -> Option<f64>| {
            m.over_hops(A, 1, &hops, |run| {
                Some(of(run(Aggressive)?)? / of(run(Adaptive)?)?)
            })
        };
        self.put("1-28", "ratio", compared(|s| s.goodput_variation));
        self.put("1-30", "ratio", compared(|s| s.rate_variation));
        let of_epoch = 1.0 / 0.04;
        for (bed, how) in [(A, ""), (Bed::RetryingA, ", 7 tries")] {
            let case = Case {
                bed,
                ..Case::shown(Aggressive)
            };
            let runs: Vec<&Summary> = (0..m.seeds()).filter_map(|n| m.get(case, n)).collect();
            let mut put = |name: &str, of: &dyn Fn(&Summary) -> Option<f64>| {
                let all = runs.iter().filter_map(|s| of(s)).collect();
                self.put("1-29", &format!("{name}{how}"), middle(all));
            };
            put("slowest", &|s| Some(s.slowest_feedback_s? * of_epoch));
            put("together", &|s| Some(s.feedback_together? as f64));
            put("gap", &|s| Some(s.longest_gap_s? * of_epoch));
        }
    }

    /// Section 5.2: two and five flows in testbed A.
    fn several(&mut self, m: &Measured) {
        for (bed, how) in [(A, ""), (CALIBRATED, ", calibrated")] {
            let hops = m.hops(bed, 2);
            let mut put = |id: &str, name: &str, value| self.put(id, &format!("{name}{how}"), value);
            for (name, over) in [("tahoe", Tahoe), ("default", Default), ("aggressive", Aggressive)] {
                put("1-31", name, m.gain(bed, 2, &hops, Adaptive, over));
            }
            let at = |h| m.gain(bed, 2, &[h], Aggressive, Default);
            put("1-31", "shrinks", at(1).zip(at(6)).map(|(one, six)| one - six));
            let many: Vec<u32> = m.hops(bed, 5).into_iter().filter(|h| *h > 1).collect();
            put("1-33", "adaptive", m.gain(bed, 5, &many, Adaptive, Default));
            put("1-33", "aggressive", m.gain(bed, 5, &many, Aggressive, Default));
        }
        let beds = [
            (A, ""),
            (Bed::RetryingA, ", 7 tries"),
            (CALIBRATED, ", calibrated"),
        ];
        for (bed, how) in beds {
            for (id, flows) in [("1-32", &[2][..]), ("1-34", &[2, 5][..])] {
                for (name, over) in [("default", Default), ("tahoe", Tahoe)] {
                    let cases = flows
                        .iter()
                        .flat_map(|f| m.hops(bed, *f).into_iter().map(move |h| (*f, h)));
                    let ratio = |(flows, h)| {
                        let index = |kind| unfairness_of(m, bed, h, flows, kind);
                        Some(index(over)? / index(Adaptive)?.max(1e-9))
                    };
                    let ratios = median(cases.filter_map(ratio).collect());
                    self.put(id, &format!("{name}{how}"), ratios.map(Estimate::exact));
                }
            }
        }
    }

    /// Section 5.3.
    fn testbed_b(&mut self, m: &Measured) {
        for (bed, how) in [(Bed::B, ""), (Bed::RetryingB, ", 7 tries")] {
            let mut put = |name: &str, value| self.put("1-35", &format!("{name}{how}"), value);
            let spread = |&h: &u32| {
                let all = [Tahoe, Default, Aggressive, Adaptive].map(|k| m.mean_kbps(bed, h, 1, k));
                let all: Vec<f64> = all.into_iter().flatten().collect();
                let most = all.iter().copied().reduce(f64::max)?;
                let least = all.iter().copied().reduce(f64::min)?;
                Some((most - least) / most * 100.0)
            };
            let spread = average(m.hops(bed, 1).iter().filter_map(spread));
            put("spread", spread.map(Estimate::exact));
            let far: Vec<u32> = m.hops(bed, 5).into_iter().filter(|h| *h > 3).collect();
            let gain = |of, over| m.gain(bed, 5, &far, of, over);
            put("tahoe over default", gain(Tahoe, Default));
            put("tahoe over aggressive", gain(Tahoe, Aggressive));
            put("tahoe over adaptive", gain(Tahoe, Adaptive));
            put("aggressive over default", gain(Aggressive, Default));
        }
        for (bed, how) in [(Bed::B, ""), (Bed::RetryingB, ", 7 tries")] {
            let index = |kind| {
                let cases = [2, 5]
                    .into_iter()
                    .flat_map(|f| m.hops(bed, f).into_iter().map(move |h| (f, h)));
                average(cases.filter_map(|(f, h)| unfairness_of(m, bed, h, f, kind)))
            };
            let mut put = |name: &str, value: Option<f64>| {
                self.put("1-36", &format!("{name}{how}"), value.map(Estimate::exact));
            };
            let least_fair = ATP.map(index).into_iter().flatten().reduce(f64::max);
            put("tahoe", index(Tahoe).zip(least_fair).map(|(t, a)| t / a));
            let others = [Tahoe, Default, Adaptive].map(index);
            let fairest = others.into_iter().flatten().reduce(f64::min);
            put("aggressive", index(Aggressive).zip(fairest).map(|(a, o)| a / o));
        }
    }

    /// Table 5.1: its own goodputs through the formula.
    fn utilities(&mut self) {
        for (name, kbps) in [
            ("tahoe", [703.0, 1184.0, 480.0]),
            ("default", [2246.0, 2483.0, 546.0]),
            ("aggressive", [966.0, 1992.0, 951.0]),
            ("adaptive", [2085.0, 2410.0, 875.0]),
        ] {
            self.put("1-43", name, Estimate::exact(utility(&kbps)));
        }
    }
}

/// The unfairness index of a case, mean over its runs.
pub(super) fn unfairness_of(m: &Measured, bed: Bed, hops: u32, flows: u32, kind: Kind) -> Option<f64> {
    let case = Case {
        bed,
        hops,
        flows,
        kind,
    };
    let runs = (0..m.seeds()).filter_map(|n| m.get(case, n));
    average(runs.map(|s| s.unfairness))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs over one hop: those of adaptive ATP get so many kb/s, those of default ATP 100 each.
    fn measured(kbps: &[f64]) -> Measured {
        let run = |kind, n: usize, kbps| {
            let case = Case {
                bed: A,
                hops: 1,
                flows: 1,
                kind,
            };
            let summary = Summary {
                kbps: vec![kbps],
                ..Summary::default()
            };
            ((case, n as u64), summary)
        };
        let runs = kbps.iter().enumerate();
        Measured::of_runs(runs.flat_map(|(n, kbps)| [run(Adaptive, n, *kbps), run(Default, n, 100.0)]))
    }

    /// What is compared with is the same in each run, so that the gain is a mean and has its error.
    #[test]
    fn the_error_of_a_gain_is_that_of_a_mean() {
        let gain = |kbps: &[f64]| measured(kbps).gain(A, 1, &[1], Adaptive, Default);
        let kbps = [100.0, 130.0, 90.0, 150.0, 80.0, 122.0];
        let (gain_of_all, mean_of_all) = (gain(&kbps).unwrap(), mean(&kbps.map(|k| k - 100.0)).unwrap());
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(
            near(gain_of_all.value, 12.0)
                && near(gain_of_all.low, mean_of_all.low)
                && near(gain_of_all.high, mean_of_all.high),
            "{gain_of_all:?} {mean_of_all:?}"
        );
        let few = gain(&kbps[..FEW - 1]).unwrap();
        assert!(near(few.value, 17.5) && !few.is_bounded(), "{few:?}");
        assert_eq!(gain(&[]), None);
    }
}
