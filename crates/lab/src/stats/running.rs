//! Mean and deviation of a stream in constant memory.

use super::{CONFIDENCE, Interval, special};

/// Count, mean, deviation, smallest and largest of a stream of numbers (Welford's recurrence; two streams are
/// joined as in Chan, Golub and LeVeque 1979).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Running {
    count: u64,
    mean: f64,
    /// Sum of squared distances from the mean.
    spread: f64,
    min: f64,
    max: f64,
}

impl Default for Running {
    fn default() -> Self {
        Running {
            count: 0,
            mean: 0.0,
            spread: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl Running {
    /// Takes in one sample.
    pub fn push(&mut self, x: f64) {
        self.count += 1;
        let before = x - self.mean;
        self.mean += before / self.count as f64;
        self.spread += before * (x - self.mean);
        self.min = self.min.min(x);
        self.max = self.max.max(x);
    }

    /// Takes in all samples of another stream.
    pub fn merge(&mut self, other: &Running) {
        if other.count == 0 {
            return;
        }
        let (n, m) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        self.mean += apart * m / (n + m);
        self.spread += other.spread + apart * apart * n * m / (n + m);
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Arithmetic mean; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Standard deviation with divisor n - 1; `None` below two samples.
    pub fn sd(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.spread / (self.count - 1) as f64).sqrt())
    }

    /// Smallest sample; `None` without samples.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// Largest sample; `None` without samples.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// 95 % interval of the mean of independent samples, mean ± 1.96 s / √n: right for n of about 30 and more.
    /// `None` below two samples.
    pub fn mean_interval(&self) -> Option<Interval> {
        let half = special::normal_z(CONFIDENCE) * self.sd()? / (self.count as f64).sqrt();
        Some(Interval {
            low: self.mean - half,
            high: self.mean + half,
        })
    }
}

impl Running {
    /// Half the interval around the mean in which the mean of `more` more samples of the same normal distribution lies with
    /// `confidence` (Student's t, n - 1 degrees of freedom). `None` below two samples, or for the mean of none.
    pub fn next_mean(&self, more: u64, confidence: f64) -> Option<f64> {
        let n = self.count as f64;
        let t = |sd: f64| special::student_t(confidence, n - 1.0) * sd * (1.0 / more as f64 + 1.0 / n).sqrt();
        self.sd().filter(|_| more > 0).map(t)
    }
}

impl FromIterator<f64> for Running {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Self {
        let mut running = Running::default();
        samples.into_iter().for_each(|x| running.push(x));
        running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// numpy 2.4.6: mean 5.0, std(ddof=1) 2.138089935299395, interval 3.518406490932507 to 6.481593509067493
    #[test]
    fn as_numpy() {
        let r: Running = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().collect();
        assert_eq!(r.mean(), Some(5.0));
        assert!((r.sd().unwrap() - 2.138_089_935_299_395).abs() < 1e-14);
        let ci = r.mean_interval().unwrap();
        assert!((ci.low - 3.518_406_490_932_507).abs() < 1e-12, "{ci:?}");
        assert!((ci.high - 6.481_593_509_067_493).abs() < 1e-12, "{ci:?}");
        assert_eq!((r.min(), r.max()), (Some(2.0), Some(9.0)));
    }

    #[test]
    fn a_large_offset_does_not_spoil_the_deviation() {
        let r: Running = [1e15 + 4.0, 1e15 + 7.0, 1e15 + 13.0, 1e15 + 16.0]
            .into_iter()
            .collect();
        assert_eq!(r.sd(), Some(30f64.sqrt()));
    }

    #[test]
    fn nothing_is_none() {
        let r = Running::default();
        assert_eq!((r.mean(), r.sd(), r.min(), r.max()), (None, None, None, None));
        assert!(r.mean_interval().is_none());
    }

    proptest! {
        #[test]
        fn merging_equals_one_stream(a in proptest::collection::vec(-1e6..1e6f64, 0..50),
                                     b in proptest::collection::vec(-1e6..1e6f64, 0..50)) {
            let mut joined: Running = a.iter().copied().collect();
            joined.merge(&b.iter().copied().collect());
            let whole: Running = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(joined.count(), whole.count());
            prop_assert_eq!((joined.min(), joined.max()), (whole.min(), whole.max()));
            if whole.count() > 1 {
                prop_assert!((joined.mean().unwrap() - whole.mean().unwrap()).abs() < 1e-6);
                prop_assert!((joined.sd().unwrap() - whole.sd().unwrap()).abs() < 1e-6);
            }
        }
    }
}
