//! A quantile function as a list of points: the form in which measurements are kept.

use super::distribution::Distribution;
use super::normal;

/// A quantile function as a list of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Knots {
    /// (probability 0..=1, latency in ns), both rising. Flat before the first and after the last.
    pub points: Vec<(f64, f64)>,
    /// The mean of the original samples, in ns; the table is adjusted to have it.
    pub mean_ns: Option<f64>,
}

impl Knots {
    /// The most knots one distribution may have.
    pub const MAX: usize = 65_536;

    /// Reduces samples to knots: all of the 64 smallest and largest, 16 per factor of two further in, and 1024
    /// equally probable ones in between. Sorts the samples. `None` if there are none.
    pub fn from_samples(samples_ns: &mut [u64]) -> Option<Self> {
        samples_ns.sort_unstable();
        let last = samples_ns.len().checked_sub(1)?;
        let mut ranks: Vec<usize> = (0..=1024).map(|i| (last as u128 * i / 1024) as usize).collect();
        let mut depth = 0;
        while depth <= last / 16 {
            ranks.extend([depth, last - depth]);
            depth += if depth < 64 { 1 } else { depth / 16 };
        }
        ranks.sort_unstable();
        ranks.dedup();
        let count = samples_ns.len() as f64;
        let points = ranks
            .into_iter()
            .map(|rank| ((rank as f64 + 0.5) / count, samples_ns[rank] as f64))
            .collect();
        let sum: u128 = samples_ns.iter().map(|&ns| u128::from(ns)).sum();
        Some(Knots {
            points,
            mean_ns: Some(sum as f64 / samples_ns.len() as f64),
        })
    }

    /// Finds what is wrong.
    pub(super) fn check(&self) -> Result<(), KnotsError> {
        let (count, ns) = (self.points.len(), 0.0..=Distribution::MAX_NS);
        if count == 0 {
            return Err(KnotsError::Empty);
        }
        if count > Self::MAX {
            return Err(KnotsError::TooMany(count));
        }
        if let Some(bad) = self
            .points
            .iter()
            .position(|&(p, q)| !(0.0..=1.0).contains(&p) || !ns.contains(&q))
        {
            return Err(KnotsError::OutOfRange(bad + 1));
        }
        if let Some(bad) = self
            .points
            .windows(2)
            .position(|pair| pair[1].0 < pair[0].0 || pair[1].1 < pair[0].1)
        {
            return Err(KnotsError::Falling(bad + 2));
        }
        match self.mean_ns {
            Some(mean) if !ns.contains(&mean) => Err(KnotsError::MeanOutOfRange),
            _ => Ok(()),
        }
    }

    /// The quantile at the probability P(Z < z).
    pub(super) fn at(&self, z: f64) -> f64 {
        let p = normal::cumulative(z);
        let after = self.points.partition_point(|&(knot, _)| knot <= p);
        let Some(&(p1, q1)) = self.points.get(after) else {
            return self.points[after - 1].1;
        };
        let Some(&(p0, q0)) = self.points[..after].last() else {
            return q1;
        };
        q0 + (q1 - q0) * (p - p0) / (p1 - p0)
    }
}

/// What is wrong with a list of [`Knots`].
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum KnotsError {
    /// No knot at all.
    #[error("there are no knots")]
    Empty,
    /// More than [`Knots::MAX`] of them.
    #[error("there are {0} knots and at most {max} are allowed", max = Knots::MAX)]
    TooMany(usize),
    /// A probability outside 0..=1 or a latency that is negative, not finite or above [`Distribution::MAX_NS`].
    #[error("knot {0} is out of range: probabilities are 0 to 1, latencies 0 to 100 s")]
    OutOfRange(usize),
    /// A knot whose probability or latency is below that of the knot before it.
    #[error("knot {0} is below the one before it, and both columns must rise")]
    Falling(usize),
    /// The stated mean is negative, not finite or above [`Distribution::MAX_NS`].
    #[error("mean_us must be a number from 0 to 100000000")]
    MeanOutOfRange,
    /// The stated mean is further from the mean of the knots than their spacing can explain.
    #[error("the stated mean is {stated_ns:.1} ns and the knots have {knots_ns:.1} ns")]
    Mean {
        /// The mean in the file, in ns.
        stated_ns: f64,
        /// The mean of the straight lines between the knots, in ns.
        knots_ns: f64,
    },
}
