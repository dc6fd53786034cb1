//! Exact quantiles, moments and the CCDF of a sorted body of samples.

use super::{Running, special};

/// A number that samples are made of: u64, i64 or f64.
pub trait Sample: Copy {
    /// Total order; a NaN is not a sample.
    fn order(a: &Self, b: &Self) -> std::cmp::Ordering;
    /// The nearest f64.
    fn to_f64(self) -> f64;
}

impl Sample for u64 {
    fn order(a: &Self, b: &Self) -> std::cmp::Ordering {
        a.cmp(b)
    }
    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl Sample for i64 {
    fn order(a: &Self, b: &Self) -> std::cmp::Ordering {
        a.cmp(b)
    }
    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl Sample for f64 {
    fn order(a: &Self, b: &Self) -> std::cmp::Ordering {
        a.partial_cmp(b).expect("a sample is never NaN")
    }
    fn to_f64(self) -> f64 {
        self
    }
}

/// Samples in rising order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sorted<T>(Vec<T>);

/// One point of a CCDF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CcdfPoint {
    /// A value that occurs among the samples.
    pub x: f64,
    /// Share of samples strictly greater than `x`.
    pub p: f64,
}

/// What a table shows of a body of samples. All numbers in the unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// Number of samples.
    pub count: u64,
    /// Smallest.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation, divisor n - 1; 0 for a single sample.
    pub sd: f64,
    /// Median, nearest rank.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile; the largest sample below 1,000 samples.
    pub p99_9: f64,
    /// 99.99th percentile; the largest sample below 10,000 samples.
    pub p99_99: f64,
    /// Largest.
    pub max: f64,
}

/// Interval of a quantile, from order statistics. A missing end means that the samples are too few to bound it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileInterval<T> {
    /// Lower end.
    pub low: Option<T>,
    /// Upper end.
    pub high: Option<T>,
}

impl<T: Sample> Sorted<T> {
    /// Sorts the samples.
    ///
    /// # Panics
    /// When one of them is NaN.
    pub fn new(mut samples: Vec<T>) -> Self {
        samples.sort_unstable_by(T::order);
        Sorted(samples)
    }

    /// The samples, smallest first.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Smallest sample.
    pub fn min(&self) -> Option<T> {
        self.0.first().copied()
    }

    /// Largest sample.
    pub fn max(&self) -> Option<T> {
        self.0.last().copied()
    }

    /// The quantile of `p` by nearest rank: the smallest sample x with F(x) >= p, where F is the empirical
    /// distribution function. `p` of 0 gives the smallest sample, 1 the largest. `None` without samples.
    ///
    /// # Panics
    /// When `p` is outside 0..=1.
    pub fn quantile(&self, p: f64) -> Option<T> {
        if self.0.is_empty() {
            return None;
        }
        Some(self.0[rank(p, self.0.len()) - 1])
    }

    /// Interval that covers the true quantile of `p` with at least `confidence`, whatever the distribution,
    /// from the ranks that the binomial distribution gives. Samples must be independent.
    ///
    /// # Panics
    /// When `p` is outside 0..=1.
    pub fn quantile_interval(&self, p: f64, confidence: f64) -> QuantileInterval<T> {
        assert!(
            (0.0..=1.0).contains(&p),
            "a quantile is asked for {p}, outside 0..=1"
        );
        let n = self.0.len() as u64;
        let tail = (1.0 - confidence) / 2.0;
        // ranks 1..=n; how many of them have P(B <= rank - 1) at most / below a level
        let ranks_with = |inside: &dyn Fn(f64) -> bool| {
            let (mut low, mut high) = (0, n);
            while low < high {
                let rank = low + (high - low).div_ceil(2);
                if inside(special::binomial_cdf(rank - 1, n, p)) {
                    low = rank;
                } else {
                    high = rank - 1;
                }
            }
            low
        };
        if n == 0 {
            return QuantileInterval {
                low: None,
                high: None,
            };
        }
        let below = ranks_with(&|cdf| cdf <= tail) as usize;
        // binomial_cdf(n - 1) is below 1 here, so that a rank of n + 1 means "no bound"
        let above = ranks_with(&|cdf| cdf < 1.0 - tail) as usize;
        QuantileInterval {
            low: below.checked_sub(1).map(|i| self.0[i]),
            high: self.0.get(above).copied(),
        }
    }

    /// Number of samples strictly greater than `x`.
    pub fn count_above(&self, x: T) -> usize {
        self.0.len() - self.0.partition_point(|s| T::order(s, &x).is_le())
    }

    /// Arithmetic mean; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        self.running().mean()
    }

    /// Standard deviation with divisor n - 1; `None` below two samples.
    pub fn sd(&self) -> Option<f64> {
        self.running().sd()
    }

    /// Count and moments of the samples.
    pub fn running(&self) -> Running {
        self.0.iter().map(|s| s.to_f64()).collect()
    }

    /// The usual numbers at once; `None` without samples.
    pub fn summary(&self) -> Option<Summary> {
        let q = |p| self.quantile(p).map(T::to_f64);
        let moments = self.running();
        Some(Summary {
            count: moments.count(),
            min: q(0.0)?,
            mean: moments.mean()?,
            sd: moments.sd().unwrap_or(0.0),
            p50: q(0.5)?,
            p90: q(0.9)?,
            p99: q(0.99)?,
            p99_9: q(0.999)?,
            p99_99: q(0.9999)?,
            max: q(1.0)?,
        })
    }

    /// The empirical CCDF for a plot with a logarithmic axis of probability: at most about `per_decade` points
    /// for each factor of ten of P, every sample where they are sparse. x rises strictly, p falls strictly; the
    /// first point is the smallest sample, the last one is the largest with p = 0.
    pub fn ccdf(&self, per_decade: u32) -> Vec<CcdfPoint> {
        let n = self.0.len();
        let step = 10f64.powf(-1.0 / f64::from(per_decade.max(1)));
        let mut points = Vec::new();
        let mut i = 0;
        while i < n {
            // all samples equal to this one are passed at once
            let above = self.count_above(self.0[i]);
            points.push(CcdfPoint {
                x: self.0[i].to_f64(),
                p: above as f64 / n as f64,
            });
            let next = n - ((above as f64 * step).ceil() as usize).min(above);
            // the first sample beyond the ones passed; later when the next wanted P is further away
            i = (n - above).max(next.min(n - 1));
        }
        points
    }
}

/// The smallest k in 1..=n with k / n >= p.
fn rank(p: f64, n: usize) -> usize {
    assert!(
        (0.0..=1.0).contains(&p),
        "a quantile is asked for {p}, outside 0..=1"
    );
    // p n may be rounded to the wrong side of a whole number, k / n is not: 0.07 * 100 > 7, but 7 / 100 >= 0.07
    let reaches = |k: usize| k as f64 / n as f64 >= p;
    let mut k = ((p * n as f64).ceil() as usize).clamp(1, n);
    while k > 1 && reaches(k - 1) {
        k -= 1;
    }
    while k < n && !reaches(k) {
        k += 1;
    }
    k
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nearest_rank() {
        let s = Sorted::new(vec![50u64, 15, 40, 20, 35]);
        for (p, x) in [(0.0, 15), (0.05, 15), (0.3, 20), (0.4, 20), (0.5, 35), (1.0, 50)] {
            assert_eq!(s.quantile(p), Some(x), "{p}");
        }
        assert_eq!(Sorted::<u64>::new(vec![]).quantile(0.5), None);
    }

    #[test]
    fn a_decimal_p_meets_its_rank_exactly() {
        let s = Sorted::new((1..=100u64).collect());
        for percent in 1..=100u64 {
            let p: f64 = format!("{}.{:02}", percent / 100, percent % 100).parse().unwrap();
            assert_eq!(s.quantile(p), Some(percent));
        }
        assert_eq!(
            Sorted::new((1..=1_000_000u64).collect()).quantile(0.9999),
            Some(999_900)
        );
    }

    #[test]
    #[should_panic(expected = "never NaN")]
    fn nan_is_refused() {
        Sorted::new(vec![1.0, f64::NAN, 2.0]);
    }

    #[test]
    fn ccdf_of_few() {
        let s = Sorted::new(vec![3i64, 1, 3, -2]);
        let points: Vec<_> = s.ccdf(20).iter().map(|c| (c.x, c.p)).collect();
        assert_eq!(points, [(-2.0, 0.75), (1.0, 0.5), (3.0, 0.0)]);
        assert!(Sorted::<f64>::new(vec![]).ccdf(20).is_empty());
    }

    #[test]
    fn ccdf_of_many_is_small_and_keeps_the_tail() {
        let s = Sorted::new((0..1_000_000u64).collect());
        let points = s.ccdf(30);
        assert!(points.len() < 6 * 30 + 20, "{}", points.len());
        let last: Vec<_> = points[points.len() - 4..].iter().map(|c| c.x).collect();
        assert_eq!(last, [999_996.0, 999_997.0, 999_998.0, 999_999.0]);
    }

    /// scipy 1.17.1: n = 100, p = 0.5: ranks 40 and 61; n = 20,000, p = 0.999: ranks 19971 and 19989.
    #[test]
    fn quantile_interval_as_scipy() {
        let s = Sorted::new((1..=100u64).collect());
        let ci = s.quantile_interval(0.5, 0.95);
        assert_eq!((ci.low, ci.high), (Some(40), Some(61)));
        let s = Sorted::new((1..=20_000u64).collect());
        let ci = s.quantile_interval(0.999, 0.95);
        assert_eq!((ci.low, ci.high), (Some(19_971), Some(19_989)));
        // 1,000 samples cannot bound p99.99 from above
        let few = Sorted::new((1..=1000u64).collect()).quantile_interval(0.9999, 0.95);
        assert_eq!(few.high, None);
    }

    proptest! {
        #[test]
        fn quantile_is_the_smallest_that_reaches_p(v in proptest::collection::vec(0u64..30, 1..60),
                                                   p in 0.0..=1.0f64) {
            let x = Sorted::new(v.clone()).quantile(p).unwrap();
            let share = |keep: &dyn Fn(u64) -> bool| v.iter().filter(|&&s| keep(s)).count() as f64 / v.len() as f64;
            prop_assert!(share(&|s| s <= x) >= p);
            prop_assert!(v.contains(&x));
            prop_assert!(share(&|s| s < x) < p || Some(&x) == v.iter().min());
        }

        #[test]
        fn ccdf_points_are_true(v in proptest::collection::vec(0u64..1000, 1..400), per in 1u32..40) {
            let s = Sorted::new(v.clone());
            let points = s.ccdf(per);
            for c in &points {
                let above = v.iter().filter(|&&x| x as f64 > c.x).count();
                prop_assert_eq!(c.p, above as f64 / v.len() as f64);
            }
            prop_assert!(points.windows(2).all(|w| w[0].x < w[1].x && w[0].p > w[1].p));
            prop_assert_eq!(points[0].x, s.min().unwrap() as f64);
            prop_assert_eq!(points.last().unwrap().x, s.max().unwrap() as f64);
            prop_assert_eq!(points.last().unwrap().p, 0.0);
        }
    }
}
