//! Intervals of a proportion: so many misses in so many independent trials.

use super::special;

/// A closed interval of real numbers.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end, not below `low`.
    pub high: f64,
}

/// Misses (or any other event) counted among independent trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proportion {
    misses: u64,
    trials: u64,
}

impl Proportion {
    /// # Panics
    /// When there are more misses than trials.
    pub fn new(misses: u64, trials: u64) -> Self {
        assert!(misses <= trials, "{misses} misses in {trials} trials");
        Proportion { misses, trials }
    }

    /// Share of misses; `None` without trials.
    pub fn estimate(&self) -> Option<f64> {
        (self.trials > 0).then(|| self.misses as f64 / self.trials as f64)
    }

    /// The exact interval: it covers the true probability with at least `confidence` (Clopper and Pearson 1934).
    /// 0 to 1 without trials.
    pub fn clopper_pearson(&self, confidence: f64) -> Interval {
        clopper_pearson(self.misses as f64, self.trials as f64, confidence)
    }

    /// The score interval: it covers the true probability with `confidence` on average, and is narrower
    /// (Wilson 1927). 0 to 1 without trials.
    pub fn wilson(&self, confidence: f64) -> Interval {
        if self.trials == 0 {
            return Interval { low: 0.0, high: 1.0 };
        }
        let (k, n) = (self.misses as f64, self.trials as f64);
        let z2 = special::normal_z(confidence).powi(2);
        let middle = k + z2 / 2.0;
        let half = (z2 * (k * (n - k) / n + z2 / 4.0)).sqrt();
        Interval {
            low: if self.misses == 0 {
                0.0
            } else {
                (middle - half) / (n + z2)
            },
            high: if self.misses == self.trials {
                1.0
            } else {
                (middle + half) / (n + z2)
            },
        }
    }
}

/// Clopper-Pearson for real counts, as effective sample sizes are.
pub(super) fn clopper_pearson(misses: f64, trials: f64, confidence: f64) -> Interval {
    let tail = (1.0 - confidence) / 2.0;
    let hits = (trials - misses).max(0.0);
    Interval {
        low: if misses <= 0.0 {
            0.0
        } else {
            special::beta_quantile(misses, hits + 1.0, tail)
        },
        // the mirror image keeps its digits when the bound is tiny
        high: if hits <= 0.0 {
            1.0
        } else {
            special::beta_quantile(misses + 1.0, hits, 1.0 - tail)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(ours: f64, theirs: f64) {
        assert!(
            (ours - theirs).abs() <= 2e-12 * theirs.abs(),
            "{ours:e} is not {theirs:e}"
        );
    }

    /// scipy 1.17.1: `stats.beta.ppf(.025, k, n-k+1)`, `stats.beta.ppf(.975, k+1, n-k)`; the row of 12 misses from
    /// mpmath 1.4.1, because scipy is 5e-11 off there.
    #[test]
    fn clopper_pearson_as_scipy() {
        for (k, n, low, high) in [
            (0, 10, 0.0, 3.084_971_078_187_608e-1),
            (1, 10, 2.528_578_544_461_785e-3, 4.450_161_170_282e-1),
            (5, 100, 1.643_187_918_205_216e-2, 1.128_349_111_055e-1),
            (12, 12_000_000, 5.167_146_957_240_953e-7, 1.746_798_101_761_191e-6),
            (6_000_000, 12_000_000, 4.997_170_619_284e-1, 5.002_829_380_716e-1),
            (37, 1_000_000, 2.605_154_415_614_197e-5, 5.099_926_915_260_213e-5),
            (1000, 1000, 9.963_179_161_031e-1, 1.0),
            (999, 1000, 9.944_410_757_202e-1, 9.999_746_825_125e-1),
        ] {
            let ci = Proportion::new(k, n).clopper_pearson(0.95);
            near(ci.low, low);
            near(ci.high, high);
        }
    }

    /// scipy 1.17.1: `stats.binomtest(k, n).proportion_ci(0.95, method="wilson")`.
    #[test]
    fn wilson_as_scipy() {
        for (k, n, low, high) in WILSON {
            let ci = Proportion::new(k, n).wilson(0.95);
            near(ci.low, low);
            near(ci.high, high);
        }
    }

    const WILSON: [(u64, u64, f64, f64); 4] = [
        (0, 10, 0.0000000000000e+00, 2.7753279986289e-01),
        (1, 10, 1.7876213095073e-02, 4.0415002679524e-01),
        (12, 12000000, 5.7206340472302e-07, 1.7480574209474e-06),
        (999, 1000, 9.9435744140204e-01, 9.9982345362937e-01),
    ];

    #[test]
    fn no_trials_say_nothing() {
        let none = Proportion::new(0, 0);
        assert_eq!(none.estimate(), None);
        assert_eq!(none.clopper_pearson(0.95), Interval { low: 0.0, high: 1.0 });
        assert_eq!(none.wilson(0.95), Interval { low: 0.0, high: 1.0 });
    }

    #[test]
    fn the_exact_interval_covers() {
        // Sum the binomial weights of all outcomes whose interval holds the truth: never below the confidence.
        for truth in [0.01_f64, 0.2, 0.5] {
            let n = 60;
            let mut covered = 0.0;
            let mut weight = (1.0 - truth).powi(n);
            for k in 0..=n {
                let ci = Proportion::new(k as u64, n as u64).clopper_pearson(0.95);
                if ci.low <= truth && truth <= ci.high {
                    covered += weight;
                }
                weight *= f64::from(n - k) / f64::from(k + 1) * truth / (1.0 - truth);
            }
            assert!(covered >= 0.95, "{truth}: {covered}");
        }
    }
}
