//! A miss ratio whose trials come in batches: the messages of one cycle suffer together.

use super::proportion::clopper_pearson;
use super::{Interval, special};

/// Misses among trials that are independent between batches only, for example all messages of one cycle.
/// Constant memory: only sums are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    batches: u64,
    misses: u64,
    trials: u64,
    misses_squared: u128,
    misses_trials: u128,
    trials_squared: u128,
}

impl Batches {
    /// Takes in one batch. One without trials changes nothing.
    ///
    /// # Panics
    /// When there are more misses than trials.
    pub fn push(&mut self, misses: u64, trials: u64) {
        assert!(misses <= trials, "{misses} misses in {trials} trials");
        if trials == 0 {
            return;
        }
        self.batches += 1;
        self.misses += misses;
        self.trials += trials;
        self.misses_squared += u128::from(misses).pow(2);
        self.misses_trials += u128::from(misses) * u128::from(trials);
        self.trials_squared += u128::from(trials).pow(2);
    }

    /// Takes in all batches of another count.
    pub fn merge(&mut self, other: &Batches) {
        self.batches += other.batches;
        self.misses += other.misses;
        self.trials += other.trials;
        self.misses_squared += other.misses_squared;
        self.misses_trials += other.misses_trials;
        self.trials_squared += other.trials_squared;
    }

    /// Trials that are all independent of each other: batches of one.
    pub fn independent(misses: u64, trials: u64) -> Self {
        assert!(misses <= trials, "{misses} misses in {trials} trials");
        Batches {
            batches: trials,
            misses,
            trials,
            misses_squared: misses.into(),
            misses_trials: misses.into(),
            trials_squared: trials.into(),
        }
    }

    /// Number of batches with at least one trial.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// Number of misses.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Number of trials.
    pub fn trials(&self) -> u64 {
        self.trials
    }

    /// Misses per trial; `None` without trials.
    pub fn estimate(&self) -> Option<f64> {
        (self.trials > 0).then(|| self.misses as f64 / self.trials as f64)
    }

    /// How many times larger the variance of the estimate is than if all trials were independent (the design
    /// effect), from the spread between the batches. Not below 1. `None` when the data cannot tell: fewer than
    /// two batches, no miss, or nothing but misses.
    pub fn design_effect(&self) -> Option<f64> {
        if self.batches < 2 || self.misses == 0 || self.misses == self.trials {
            return None;
        }
        let (m, n) = (self.batches as f64, self.trials as f64);
        let p = self.misses as f64 / n;
        // sum over the batches of (misses - p trials)^2: linearised variance of a ratio (Cochran 1977, 6.4)
        let residuals = self.misses_squared as f64 - 2.0 * p * self.misses_trials as f64
            + p * p * self.trials_squared as f64;
        let clustered = m / (m - 1.0) * residuals.max(0.0) / (n * n);
        let independent = p * (1.0 - p) / (n - 1.0);
        Some((clustered / independent).max(1.0))
    }

    /// Interval of the miss probability that allows for the correlation inside batches: Clopper-Pearson with the
    /// effective number of trials (Korn and Graubard 1998). While there is no miss, each batch counts as one
    /// trial, and the upper end never falls below that: k = 0 says nothing about how misses cluster.
    /// 0 to 1 without trials.
    pub fn interval(&self, confidence: f64) -> Interval {
        self.scaled(1.0, confidence)
    }

    /// The interval if there were `scale` times as many batches of the same kind.
    pub(super) fn scaled(&self, scale: f64, confidence: f64) -> Interval {
        self.imagined(self.misses as f64 * scale, scale, confidence)
    }

    /// The interval if there were `scale` times as many batches as now with `misses` in all of them.
    pub(super) fn imagined(&self, misses: f64, scale: f64, confidence: f64) -> Interval {
        if self.trials == 0 {
            return Interval { low: 0.0, high: 1.0 };
        }
        let batches = self.batches as f64 * scale;
        let trials = self.trials as f64 * scale;
        let by_batch = Interval {
            low: clopper_pearson(batches, batches, confidence).low,
            high: clopper_pearson(0.0, batches, confidence).high,
        };
        let Some(effect) = self.design_effect() else {
            // nothing but hits, nothing but misses, or one single batch
            let ratio = misses / trials;
            return clopper_pearson(ratio * batches, batches, confidence);
        };
        // few batches know their own variance badly: the ratio of the t quantiles says how badly
        let t = special::student_t(confidence, trials - 1.0) / special::student_t(confidence, batches - 1.0);
        let effective = (trials / effect * t * t).min(trials);
        let wide = clopper_pearson(misses / trials * effective, effective, confidence);
        Interval {
            low: wide.low.min(by_batch.low),
            high: wide.high.max(by_batch.high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Proportion;
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-12), "{a:e} is not {b:e}");
    }

    #[test]
    fn batches_of_one_are_clopper_pearson() {
        for (k, n) in [(0, 50), (1, 1000), (12, 400), (50, 50)] {
            let ours = Batches::independent(k, n).interval(0.95);
            let exact = Proportion::new(k, n).clopper_pearson(0.95);
            close(ours.low, exact.low);
            close(ours.high, exact.high);
        }
    }

    /// Whole batches missed: ten messages each, so that only the batches count. numpy: design effect 10.0 up to
    /// the factor (n-1)/(m-1) * m/n.
    #[test]
    fn misses_that_come_together_count_once() {
        let mut b = Batches::default();
        for i in 0..1000 {
            b.push(if i % 100 == 0 { 10 } else { 0 }, 10);
        }
        let expected = 10.0 * (9999.0 / 10000.0) * (1000.0 / 999.0);
        close(b.design_effect().unwrap(), expected);
        let ci = b.interval(0.95);
        let per_batch = Proportion::new(10, 1000).clopper_pearson(0.95);
        assert!(
            (ci.high / per_batch.high - 1.0).abs() < 0.01,
            "{ci:?} {per_batch:?}"
        );
        assert!(
            (ci.low / per_batch.low - 1.0).abs() < 0.01,
            "{ci:?} {per_batch:?}"
        );
    }

    #[test]
    fn no_miss_counts_batches() {
        let mut b = Batches::default();
        (0..100).for_each(|_| b.push(0, 16));
        close(
            b.interval(0.95).high,
            Proportion::new(0, 100).clopper_pearson(0.95).high,
        );
        b.push(1, 16);
        assert!(b.interval(0.95).high >= Proportion::new(0, 101).clopper_pearson(0.95).high);
        assert_eq!(
            Batches::default().interval(0.95),
            Interval { low: 0.0, high: 1.0 }
        );
    }

    #[test]
    fn merging_equals_one_count() {
        let (mut a, mut b, mut whole) = Default::default();
        for (i, part) in [(3, 9), (0, 0), (1, 2), (0, 7)].into_iter().enumerate() {
            let side: &mut Batches = if i < 2 { &mut a } else { &mut b };
            side.push(part.0, part.1);
            Batches::push(&mut whole, part.0, part.1);
        }
        a.merge(&b);
        assert_eq!(a, whole);
        assert_eq!(a.batches(), 3);
    }

    /// Of 1000 experiments with correlated misses, the 95 % interval may miss the truth in at most 5 %, give or
    /// take 3 sd. The plain binomial interval fails here, which shows that the test can fail.
    #[test]
    fn it_covers_where_the_binomial_does_not() {
        let mut state = 1u64;
        let mut uniform = move || {
            // SplitMix64
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        };
        let truth = 0.04; // a tenth of the batches is bad, 40 % of the trials in a bad one miss
        let (mut ours, mut plain) = (0, 0);
        for _ in 0..1000 {
            let mut b = Batches::default();
            for _ in 0..300 {
                let p = if uniform() < 0.1 { 0.4 } else { 0.0 };
                b.push((0..12).filter(|_| uniform() < p).count() as u64, 12);
            }
            let holds = |ci: Interval| ci.low <= truth && truth <= ci.high;
            ours += u32::from(!holds(b.interval(0.95)));
            plain += u32::from(!holds(
                Proportion::new(b.misses(), b.trials()).clopper_pearson(0.95),
            ));
        }
        assert!(ours <= 50 + 21, "{ours}");
        assert!(plain > 200, "{plain}");
    }
}
