//! Quantiles of a stream in constant memory, within 0.1 %.

use hdrhistogram::Histogram;

use super::CcdfPoint;

/// A histogram with log-linear buckets (200 kB for a range of 1 ns to 10 s): for streams too long to keep.
/// Where samples are kept, [`super::Sorted`] is exact.
#[derive(Clone, Debug)]
pub struct Online {
    buckets: Histogram<u64>,
    clipped: u64,
}

/// Why a histogram cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnlineError {
    /// The largest value must be at least 2.
    #[error("the largest value of a histogram is {0}, but it must be at least 2")]
    TooSmall(u64),
}

impl Online {
    /// A histogram for values 0..=`largest`; larger ones are counted as `largest` (see [`Online::clipped`]).
    pub fn new(largest: u64) -> Result<Self, OnlineError> {
        let buckets =
            Histogram::new_with_bounds(1, largest, 3).map_err(|_| OnlineError::TooSmall(largest))?;
        Ok(Online { buckets, clipped: 0 })
    }

    /// Takes in one sample.
    pub fn record(&mut self, value: u64) {
        self.clipped += u64::from(value > self.buckets.high());
        self.buckets.saturating_record(value);
    }

    /// Takes in all samples of another histogram with the same largest value.
    ///
    /// # Panics
    /// When the largest values differ.
    pub fn merge(&mut self, other: &Online) {
        assert_eq!(
            self.buckets.high(),
            other.buckets.high(),
            "histograms of different range"
        );
        self.buckets
            .add(&other.buckets)
            .expect("the same range always fits");
        self.clipped += other.clipped;
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Number of samples that were larger than the range.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// The quantile of `p`, nearest rank, rounded up to the end of its bucket: never below the true one, and at
    /// most 0.1 % above it. `None` without samples.
    ///
    /// # Panics
    /// When `p` is outside 0..=1.
    pub fn quantile(&self, p: f64) -> Option<u64> {
        assert!(
            (0.0..=1.0).contains(&p),
            "a quantile is asked for {p}, outside 0..=1"
        );
        let n = self.count();
        if n == 0 {
            return None;
        }
        // The crate rounds p n in its own way; ours is the smallest k with k / n >= p.
        let mut seen = 0;
        let bucket = self.buckets.iter_recorded().find(|step| {
            seen += step.count_since_last_iteration();
            seen as f64 / n as f64 >= p
        });
        let value = bucket.map_or(self.buckets.max(), |step| step.value_iterated_to());
        Some(self.buckets.highest_equivalent(value).min(self.buckets.max()))
    }

    /// The CCDF, one point for each bucket in use: x is the end of the bucket, p the share of samples above it.
    pub fn ccdf(&self) -> Vec<CcdfPoint> {
        let n = self.count();
        let mut seen = 0;
        self.buckets
            .iter_recorded()
            .map(|step| {
                seen += step.count_since_last_iteration();
                CcdfPoint {
                    x: self
                        .buckets
                        .highest_equivalent(step.value_iterated_to())
                        .min(self.buckets.max()) as f64,
                    p: (n - seen) as f64 / n as f64,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sorted;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn limits() {
        assert_eq!(Online::new(1).unwrap_err(), OnlineError::TooSmall(1));
        let mut h = Online::new(1000).unwrap();
        assert_eq!((h.quantile(0.5), h.ccdf().len()), (None, 0));
        h.record(5);
        h.record(u64::MAX);
        assert_eq!((h.count(), h.clipped()), (2, 1));
        assert_eq!(h.quantile(0.5), Some(5));
    }

    proptest! {
        #[test]
        fn within_a_thousandth_of_exact(a in proptest::collection::vec(0u64..10_000_000_000, 1..200),
                                        b in proptest::collection::vec(0u64..5000, 0..200), p in 0.0..=1.0f64) {
            let mut h = Online::new(10_000_000_000).unwrap();
            a.iter().for_each(|&x| h.record(x));
            let mut other = Online::new(10_000_000_000).unwrap();
            b.iter().for_each(|&x| other.record(x));
            h.merge(&other);
            let exact = Sorted::new(a.iter().chain(&b).copied().collect());
            let (ours, truth) = (h.quantile(p).unwrap(), exact.quantile(p).unwrap());
            prop_assert!(ours >= truth && ours as f64 <= truth as f64 * 1.001, "{} for {}", ours, truth);
            let ccdf = h.ccdf();
            prop_assert_eq!(ccdf.last().unwrap().p, 0.0);
            prop_assert!(ccdf.windows(2).all(|w| w[0].x < w[1].x && w[0].p > w[1].p));
        }
    }
}
