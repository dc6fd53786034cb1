//! Millions of whole nanoseconds in little memory and without loss: how often each value came.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::estimate::{ERRORS, Estimate};
use crate::stats::CcdfPoint;

/// How often each number of nanoseconds came. Memory goes with the range of the values, eight octets for each
/// nanosecond between the smallest and the largest, not with their number.
///
/// Statistics are in microseconds. Quantiles are nearest-rank, deviations have the divisor n - 1, as in
/// [`crate::stats`].
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Counts {
    first: u64,
    bins: VecDeque<u64>,
    total: u64,
}

impl Counts {
    /// Widest range, 10 ms: no latency of interest is longer.
    const MAX_BINS: u64 = 10_000_000;

    /// Takes in one value.
    ///
    /// # Panics
    /// When it lies more than 10 ms from another one.
    #[inline]
    pub fn push(&mut self, ns: u64) {
        self.add(ns, 1);
    }

    fn add(&mut self, ns: u64, times: u64) {
        if self.bins.is_empty() {
            self.first = ns;
        }
        while ns < self.first {
            assert!((self.bins.len() as u64) < Self::MAX_BINS, "{ns} ns is far off");
            self.bins.push_front(0);
            self.first -= 1;
        }
        let at = ns - self.first;
        assert!(at < Self::MAX_BINS, "{ns} ns is far off");
        if at >= self.bins.len() as u64 {
            self.bins.resize(at as usize + 1, 0);
        }
        self.bins[at as usize] += times;
        self.total += times;
    }

    /// Takes in all values of another body. The order of merges does not matter.
    pub fn merge(&mut self, other: &Counts) {
        other.iter().for_each(|(ns, times)| self.add(ns, times));
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The values in rising order, with how often they came.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        let first = self.first;
        let each = self.bins.iter().enumerate();
        each.filter(|(_, n)| **n > 0)
            .map(move |(i, n)| (first + i as u64, *n))
    }

    /// The smallest of as many values as `like`, us. With fewer values than that there is no lower bound; with more
    /// it is the median of what the smallest of `like` values would be.
    pub fn min(&self, like: u64) -> Option<Estimate> {
        let value = us(self.iter().next()?.0 as f64);
        match self.compare(like) {
            Ordering::Less => Some(Estimate {
                low: f64::NEG_INFINITY,
                ..Estimate::exact(value)
            }),
            Ordering::Equal => Some(Estimate::exact(value)),
            Ordering::Greater => self.quantile(std::f64::consts::LN_2 / like as f64),
        }
    }

    /// The largest of as many values as `like`, us: likewise.
    pub fn max(&self, like: u64) -> Option<Estimate> {
        let value = us(self.iter().next_back()?.0 as f64);
        match self.compare(like) {
            Ordering::Less => Some(Estimate {
                high: f64::INFINITY,
                ..Estimate::exact(value)
            }),
            Ordering::Equal => Some(Estimate::exact(value)),
            Ordering::Greater => self.quantile(1.0 - std::f64::consts::LN_2 / like as f64),
        }
    }

    /// Whether there are fewer or more values than `like`, by more than a hundredth.
    fn compare(&self, like: u64) -> Ordering {
        match self.total as f64 / like as f64 {
            ratio if ratio < 0.99 => Ordering::Less,
            ratio if ratio > 1.01 => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }

    /// Arithmetic mean, us. `None` below two values.
    pub fn mean(&self) -> Option<Estimate> {
        let (mean, variance, _) = self.moments()?;
        Some(Estimate::with_error(
            us(mean),
            us((variance / self.total as f64).sqrt()),
        ))
    }

    /// Standard deviation, us. `None` below two values.
    pub fn sd(&self) -> Option<Estimate> {
        let (_, variance, fourth) = self.moments()?;
        let sd = variance.sqrt();
        // the variance has the variance (m4 - s^4) / n, and its root that over 2 s
        let error = ((fourth - variance * variance).max(0.0) / self.total as f64).sqrt() / (2.0 * sd);
        Some(Estimate::with_error(
            us(sd),
            if sd > 0.0 { us(error) } else { 0.0 },
        ))
    }

    /// Mean, variance and fourth central moment in ns.
    fn moments(&self) -> Option<(f64, f64, f64)> {
        if self.total < 2 {
            return None;
        }
        let n = self.total as f64;
        // distances from the first value are small, so that nothing cancels
        let mean = self
            .iter()
            .map(|(ns, k)| (ns - self.first) as f64 * k as f64)
            .sum::<f64>()
            / n;
        let central = |power: i32| -> f64 {
            self.iter()
                .map(|(ns, k)| ((ns - self.first) as f64 - mean).powi(power) * k as f64)
                .sum()
        };
        Some((self.first as f64 + mean, central(2) / (n - 1.0), central(4) / n))
    }

    /// The quantile of `p`, us, with the interval that its rank gives. `None` without values.
    ///
    /// # Panics
    /// When `p` is outside 0..=1.
    pub fn quantile(&self, p: f64) -> Option<Estimate> {
        assert!((0.0..=1.0).contains(&p), "a probability");
        let n = self.total as f64;
        let rank = (p * n).ceil().clamp(1.0, n.max(1.0));
        let spread = ERRORS * (n * p * (1.0 - p)).sqrt();
        let (low, high) = ((rank - spread).floor(), (rank + spread).ceil());
        let value = self.ranked(rank as u64)?;
        Some(Estimate {
            value,
            low: if low < 1.0 {
                f64::NEG_INFINITY
            } else {
                self.ranked(low as u64)?
            },
            high: self.ranked(high as u64).unwrap_or(f64::INFINITY),
        })
    }

    /// The value at a rank from 1 on, us.
    fn ranked(&self, rank: u64) -> Option<f64> {
        let mut seen = 0;
        let at = self.iter().find(|(_, k)| {
            seen += k;
            seen >= rank
        });
        at.map(|(ns, _)| us(ns as f64))
    }

    /// Share of values above `ns`. `None` without values.
    pub fn share_above(&self, ns: u64) -> Option<Estimate> {
        let above: u64 = self.iter().filter(|(x, _)| *x > ns).map(|(_, k)| k).sum();
        (self.total > 0).then(|| Estimate::counted(above).times(1.0 / self.total as f64))
    }

    /// The values up to `ns`, and those above.
    pub fn split(&self, ns: u64) -> [Counts; 2] {
        let mut parts = [Counts::default(), Counts::default()];
        for (x, k) in self.iter() {
            parts[usize::from(x > ns)].add(x, k);
        }
        parts
    }

    /// Largest vertical distance between the distribution functions of two bodies (Kolmogorov and Smirnov). The
    /// low end of its interval is 0 where chance alone explains it. `None` if one has no values.
    pub fn distance(&self, other: &Counts) -> Option<Estimate> {
        if self.total == 0 || other.total == 0 {
            return None;
        }
        let mut steps: Vec<(u64, f64)> = Vec::new();
        steps.extend(self.iter().map(|(ns, k)| (ns, k as f64 / self.total as f64)));
        steps.extend(other.iter().map(|(ns, k)| (ns, -(k as f64) / other.total as f64)));
        steps.sort_by_key(|s| s.0);
        let (mut difference, mut largest) = (0.0, 0.0_f64);
        for same in steps.chunk_by(|a, b| a.0 == b.0) {
            difference += same.iter().map(|s| s.1).sum::<f64>();
            largest = largest.max(f64::abs(difference));
        }
        // P(D > d) is about 2 exp(-2 d^2 n m / (n + m)), 0.001 at 1.95
        let chance = 1.95 * (1.0 / self.total as f64 + 1.0 / other.total as f64).sqrt();
        Some(Estimate {
            value: largest,
            low: (largest - chance).max(0.0),
            high: largest + chance,
        })
    }

    /// The CCDF for a logarithmic axis: about `per_decade` points for each factor of ten. x in ns.
    pub fn ccdf(&self, per_decade: u32) -> Vec<CcdfPoint> {
        let ratio = 10_f64.powf(-1.0 / f64::from(per_decade.max(1)));
        let (mut left, mut next) = (self.total, 1.0);
        let mut points = Vec::new();
        for (ns, k) in self.iter() {
            left -= k;
            let p = left as f64 / self.total as f64;
            if p <= next || left == 0 {
                points.push(CcdfPoint { x: ns as f64, p });
                next = p * ratio;
            }
        }
        points
    }
}

/// Nanoseconds as microseconds.
fn us(ns: f64) -> f64 {
    ns / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Sorted;

    fn body(values: impl IntoIterator<Item = u64>) -> Counts {
        let mut c = Counts::default();
        values.into_iter().for_each(|v| c.push(v));
        c
    }

    /// Values that are spread and not sorted.
    fn some(n: u64) -> Vec<u64> {
        (0..n)
            .map(|i| 40_000 + sim::rng::mix3(7, i, 0) % 1_000 + sim::rng::mix3(7, i, 1) % 3_000)
            .collect()
    }

    #[test]
    fn the_same_statistics_as_of_sorted_samples() {
        let values = some(5_000);
        let (counts, sorted) = (body(values.clone()), Sorted::new(values));
        for p in [0.0, 0.001, 0.3, 0.5, 0.99, 0.999, 1.0] {
            assert_eq!(
                counts.quantile(p).unwrap().value,
                sorted.quantile(p).unwrap() as f64 / 1e3
            );
        }
        assert!((counts.mean().unwrap().value - sorted.mean().unwrap() / 1e3).abs() < 1e-9);
        assert!((counts.sd().unwrap().value - sorted.sd().unwrap() / 1e3).abs() < 1e-9);
        assert_eq!(
            counts.min(5_000).unwrap().value,
            sorted.min().unwrap() as f64 / 1e3
        );
        assert_eq!(
            counts.max(5_000).unwrap().value,
            sorted.max().unwrap() as f64 / 1e3
        );
        let above = sorted.count_above(42_000) as f64 / 5_000.0;
        assert!((counts.share_above(42_000).unwrap().value - above).abs() < 1e-12);
        for point in counts.ccdf(20) {
            assert!((point.p - sorted.count_above(point.x as u64) as f64 / 5_000.0).abs() < 1e-12);
        }
    }

    #[test]
    fn merging_in_any_order() {
        let (a, b) = (some(100), some(300));
        let (mut ab, mut ba) = (body(a.clone()), body(b.clone()));
        ab.merge(&body(b.clone()));
        ba.merge(&body(a.clone()));
        assert_eq!(ab, ba);
        assert_eq!(ab, body(a.into_iter().chain(b)));
    }

    #[test]
    fn intervals_of_quantiles_open_at_the_ends() {
        let c = body(some(1_000));
        let median = c.quantile(0.5).unwrap();
        assert!(median.is_bounded() && median.low < median.value && median.value < median.high);
        assert!(!c.quantile(0.9999).unwrap().is_bounded(), "too few to tell");
        assert_eq!(Counts::default().quantile(0.5), None);
        assert_eq!(Counts::default().mean(), None);
    }

    #[test]
    fn extremes_are_those_of_as_many_values() {
        let c = body(some(10_000));
        let (few, same, many) = (
            c.max(100).unwrap(),
            c.max(10_000).unwrap(),
            c.max(1_000_000).unwrap(),
        );
        assert!(
            few.value < same.value && few.is_bounded(),
            "half of all hundreds have no value above"
        );
        assert_eq!((same.low, same.high), (same.value, same.value));
        assert!(many.value == same.value && !many.is_bounded());
        assert!(c.min(100).unwrap().value > c.min(10_000).unwrap().value);
        assert_eq!(c.min(1_000_000).unwrap().low, f64::NEG_INFINITY);
    }

    #[test]
    fn distance_of_distributions() {
        let d = |a: &Counts, b: &Counts| a.distance(b).unwrap().value;
        assert_eq!(d(&body([1, 2, 3]), &body([1, 2, 3, 1, 2, 3])), 0.0);
        assert!((d(&body([1, 2, 3, 4]), &body([3, 4, 5, 6])) - 0.5).abs() < 1e-12);
        assert!((d(&body([1, 2]), &body([8, 9])) - 1.0).abs() < 1e-12);
        let [low, high] = body([1, 5, 5, 9]).split(5);
        assert_eq!((low.count(), high.count()), (3, 1));
    }
}
