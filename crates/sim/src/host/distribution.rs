//! A latency distribution as a table of its quantile function.
//!
//! The table is indexed by a standard normal number z, not by a probability: entry `Q(P(Z < z))`. On that scale
//! equal steps resolve the body and the far tails equally well, a copula needs no further function, and a draw is
//! one look-up with linear interpolation. All statistics below are those of the interpolated table, so they are
//! exactly what the sampler returns.

use super::normal::{self, Normal, Random};
use std::sync::OnceLock;

/// The table ends this many standard deviations from the median: one draw in 10^10 falls outside on either side.
const Z_MAX: f64 = 6.5;
/// Entries per unit of z. At the 99.99th percentile one cell is 3 % of the remaining tail.
const PER_UNIT: usize = 128;
const CELLS: usize = 2 * 6 * PER_UNIT + PER_UNIT;

/// A function of a standard normal number, linear between equally spaced entries and flat outside them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve(Box<[f64; CELLS + 1]>);

impl Curve {
    /// Tabulates `f(z)`. Entries are rounded to 2^-10 ns, which hides the last-digit differences that another
    /// compiler could make.
    pub(super) fn tabulate(mut f: impl FnMut(f64) -> f64) -> Self {
        let mut entries = Box::new([0.0; CELLS + 1]);
        for (index, entry) in entries.iter_mut().enumerate() {
            *entry = libm::round(f(position(index)) * 1024.0) / 1024.0;
        }
        Curve(entries)
    }

    /// The value at `z`.
    #[inline]
    pub(super) fn at(&self, z: f64) -> f64 {
        let x = ((z + Z_MAX) * PER_UNIT as f64).clamp(0.0, CELLS as f64);
        let cell = (x as usize).min(CELLS - 1);
        let from = self.0[cell];
        from + (x - cell as f64) * (self.0[cell + 1] - from)
    }

    /// Mean and standard deviation of the value at a standard normal z.
    pub(super) fn moments(&self) -> (f64, f64) {
        static CELL_WEIGHTS: OnceLock<Weights> = OnceLock::new();
        CELL_WEIGHTS
            .get_or_init(|| Weights::new(PER_UNIT))
            .moments(&self.0[..])
    }

    /// The change across each cell, with the z in its middle.
    pub(super) fn rises(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let half = 0.5 / PER_UNIT as f64;
        self.0
            .windows(2)
            .enumerate()
            .map(move |(cell, pair)| (position(cell) + half, pair[1] - pair[0]))
    }
}

fn position(index: usize) -> f64 {
    index as f64 / PER_UNIT as f64 - Z_MAX
}

/// Integrals of 1, x and x^2 against the normal density over every cell of a grid, x running from 0 to 1 in a cell.
pub(super) struct Weights {
    per_unit: usize,
    cells: Vec<[f64; 3]>,
    outside: f64,
}

impl Weights {
    /// For the grid with `per_unit` cells per unit of z.
    pub(super) fn new(per_unit: usize) -> Self {
        let step = 1.0 / per_unit as f64;
        let count = 13 * per_unit;
        let mut cells = vec![[0.0; 3]; count];
        for cell in 0..count.div_ceil(2) {
            // The left half, where the cumulative function is precise; the right half is its mirror image.
            let (a, b) = (cell as f64 * step - Z_MAX, (cell + 1) as f64 * step - Z_MAX);
            let (fa, fb) = (normal::density(a), normal::density(b));
            let mass = normal::cumulative(b) - normal::cumulative(a);
            let first = (fa - fb - a * mass) / step;
            let second = (mass + a * fa - b * fb - 2.0 * a * (fa - fb) + a * a * mass) / (step * step);
            cells[count - 1 - cell] = [mass, mass - first, mass - 2.0 * first + second];
            cells[cell] = [mass, first, second];
        }
        Weights {
            per_unit,
            cells,
            outside: normal::cumulative(-Z_MAX),
        }
    }

    /// The z of every grid point.
    pub(super) fn positions(&self) -> impl Iterator<Item = f64> + '_ {
        (0..=self.cells.len()).map(|index| index as f64 / self.per_unit as f64 - Z_MAX)
    }

    /// Mean and standard deviation of the function that is linear between `values` and flat outside.
    pub(super) fn moments(&self, values: &[f64]) -> (f64, f64) {
        let (origin, end) = (values[0], values[values.len() - 1]);
        let (mut mean, mut square) = (
            self.outside * (end - origin),
            self.outside * (end - origin).powi(2),
        );
        for (pair, [mass, first, second]) in values.windows(2).zip(&self.cells) {
            let (low, rise) = (pair[0] - origin, pair[1] - pair[0]);
            mean += low * mass + rise * first;
            square += low * low * mass + 2.0 * low * rise * first + rise * rise * second;
        }
        (origin + mean, (square - mean * mean).max(0.0).sqrt())
    }
}

/// The distribution of one latency, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    curve: Curve,
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
    /// The stated mean is further from the mean of the knots than their spacing can explain.
    #[error("the stated mean is {stated_ns:.1} ns and the knots have {knots_ns:.1} ns")]
    Mean {
        /// The mean in the file, in ns.
        stated_ns: f64,
        /// The mean of the straight lines between the knots, in ns.
        knots_ns: f64,
    },
}

impl Distribution {
    /// No latency above this (100 s) is accepted, in ns.
    pub const MAX_NS: f64 = 1e11;

    /// Always `ns` nanoseconds.
    pub fn constant(ns: f64) -> Self {
        Distribution {
            curve: Curve::tabulate(|_| ns),
        }
    }

    /// The empirical distribution of `samples_ns`, which get sorted. `None` if there are none.
    ///
    /// Minimum, maximum and mean are those of the samples; the quantiles (linear between order statistics, the
    /// i-th of n at probability (i - 1/2)/n) are within one table cell of theirs.
    pub fn from_samples(samples_ns: &mut [u64]) -> Option<Self> {
        Some(Self::through(&Knots::from_samples(samples_ns)?).0)
    }

    /// The distribution whose quantile function runs in straight lines through the knots.
    pub fn from_knots(knots: &Knots) -> Result<Self, KnotsError> {
        knots.check()?;
        let (distribution, missing_ns) = Self::through(knots);
        let (knots_ns, sd_ns) = distribution.curve.moments();
        if missing_ns.abs() > 0.02 * sd_ns + 1.0 {
            return Err(KnotsError::Mean {
                stated_ns: knots_ns + missing_ns,
                knots_ns,
            });
        }
        Ok(distribution)
    }

    /// The table through checked knots, and how much of the stated mean it lacks, in ns.
    fn through(knots: &Knots) -> (Self, f64) {
        let curve = Curve::tabulate(|z| knots.at(z));
        let Some(stated_ns) = knots.mean_ns else {
            return (Distribution { curve }, 0.0);
        };
        // Straight lines between thinned knots change the mean a little. Every entry gives way towards its
        // neighbour by the same fraction of the way, which keeps the order, the minimum and the maximum.
        let missing = stated_ns - curve.moments().0;
        let toward = if missing > 0.0 { 1 } else { -1 };
        let most = curve.moved(toward, 1.0).moments().0 - curve.moments().0;
        let fraction = if most == 0.0 {
            0.0
        } else {
            (missing / most).clamp(0.0, 1.0)
        };
        let curve = curve.moved(toward, fraction);
        let missing = stated_ns - curve.moments().0;
        (Distribution { curve }, missing)
    }

    pub(super) fn from_curve(curve: Curve) -> Self {
        Distribution { curve }
    }

    pub(super) fn curve(&self) -> &Curve {
        &self.curve
    }

    /// Every latency longer by `ns`, which may be negative; none becomes negative.
    pub fn shifted(&self, ns: f64) -> Self {
        Distribution {
            curve: Curve::tabulate(|z| (self.curve.at(z) + ns).max(0.0)),
        }
    }

    /// Every latency multiplied by `factor`, which is at least 0.
    pub fn scaled(&self, factor: f64) -> Self {
        assert!(factor >= 0.0, "a latency cannot be scaled by {factor}");
        Distribution {
            curve: Curve::tabulate(|z| self.curve.at(z) * factor),
        }
    }

    /// The mean, in ns.
    pub fn mean_ns(&self) -> f64 {
        self.curve.moments().0
    }

    /// The standard deviation, in ns.
    pub fn sd_ns(&self) -> f64 {
        self.curve.moments().1
    }

    /// The smallest latency, in ns.
    pub fn min_ns(&self) -> f64 {
        self.curve.0[0]
    }

    /// The largest latency, in ns.
    pub fn max_ns(&self) -> f64 {
        self.curve.0[CELLS]
    }

    /// The latency that a share `p` (0..=1) of all draws does not exceed, in ns.
    pub fn quantile_ns(&self, p: f64) -> f64 {
        self.curve.at(normal::quantile(p))
    }

    /// One draw, in ns: one word of `random`, and the larger the word the longer the latency.
    #[inline]
    pub fn sample_ns(&self, random: &mut impl Random) -> u64 {
        whole(self.curve.at(Normal::new().draw(random)))
    }
}

impl Curve {
    fn moved(&self, toward: isize, fraction: f64) -> Curve {
        let mut entries = self.0.clone();
        for index in 1..CELLS {
            let neighbour = self.0[index.wrapping_add_signed(toward)];
            entries[index] += fraction * (neighbour - self.0[index]);
        }
        Curve(entries)
    }
}

/// To whole nanoseconds, nearest; negative becomes 0.
#[inline]
pub(super) fn whole(ns: f64) -> u64 {
    (ns + 0.5) as u64
}

/// A quantile function as a list of points, the form in which measurements are kept.
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

    fn check(&self) -> Result<(), KnotsError> {
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
            Some(mean) if !ns.contains(&mean) => Err(KnotsError::OutOfRange(0)),
            _ => Ok(()),
        }
    }

    /// The quantile at the probability that z stands for; the ends of the table stand for 0 and 1.
    fn at(&self, z: f64) -> f64 {
        let p = match z {
            z if z <= -Z_MAX => 0.0,
            z if z >= Z_MAX => 1.0,
            z => normal::cumulative(z),
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, any, prop, prop_assert, prop_assert_eq, proptest};
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn a_constant_is_constant() {
        let d = Distribution::constant(1234.0);
        assert_eq!(
            (d.mean_ns(), d.sd_ns(), d.min_ns(), d.max_ns()),
            (1234.0, 0.0, 1234.0, 1234.0)
        );
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        assert!((0..1000).all(|_| d.sample_ns(&mut rng) == 1234));
    }

    #[test]
    fn moments_of_polynomials_in_z_are_those_of_the_normal_law() {
        let line = Distribution::from_curve(Curve::tabulate(|z| 100_000.0 + 5_000.0 * z));
        let (mean, sd) = line.curve.moments();
        assert!(
            (mean - 100_000.0).abs() < 1e-6 && (sd - 5_000.0).abs() < 1e-4,
            "{mean} {sd}"
        );
        // Z^2 has mean 1 and variance 2; chords of a parabola lie above it by h^2/6 on average.
        let square = Curve::tabulate(|z| 1e6 * z * z);
        let (mean, sd) = square.moments();
        let chord = 1e6 / (6.0 * (PER_UNIT * PER_UNIT) as f64);
        assert!((mean - 1e6 - chord).abs() < 0.1, "{mean}");
        assert!((sd - 2f64.sqrt() * 1e6).abs() < 5.0, "{sd}");
    }

    #[test]
    fn samples_keep_mean_minimum_maximum_and_extreme_quantiles() {
        // A heavy tail (Pareto, exponent 2) on a million samples: the maximum is about 1000 times the median.
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut samples: Vec<u64> = (0..1_000_000)
            .map(|_| {
                let s = ((rng.next_u64() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
                (2_000.0 / s.sqrt()) as u64
            })
            .collect();
        let mean = samples.iter().sum::<u64>() as f64 / samples.len() as f64;
        let d = Distribution::from_samples(&mut samples).unwrap();
        assert!((d.mean_ns() / mean - 1.0).abs() < 1e-9);
        assert_eq!(
            (d.min_ns(), d.max_ns()),
            (samples[0] as f64, samples[999_999] as f64)
        );
        for p in [0.001, 0.01, 0.5, 0.99, 0.999, 0.9999, 0.99999] {
            let rank = (samples.len() as f64 * p) as usize;
            let (exact, ours) = (samples[rank] as f64, d.quantile_ns((rank as f64 + 0.5) / 1e6));
            // Beyond 1e-4 the table is coarser than the gaps between order statistics.
            let tolerance = if p > 0.9999 { 0.01 } else { 0.003 };
            assert!((ours / exact - 1.0).abs() < tolerance, "p {p}: {ours} {exact}");
        }
        // Drawing from it again gives the same distribution.
        let drawn: Vec<u64> = (0..200_000).map(|_| d.sample_ns(&mut rng)).collect();
        let below = drawn
            .iter()
            .filter(|&&ns| ns as f64 <= d.quantile_ns(0.99))
            .count();
        assert!((below as f64 / 200_000.0 - 0.99).abs() < 4.0 * (0.99f64 * 0.01 / 200_000.0).sqrt());
    }

    #[test]
    fn one_sample_and_equal_samples_make_a_constant() {
        for mut samples in [vec![5u64], vec![5; 3000]] {
            let d = Distribution::from_samples(&mut samples).unwrap();
            assert_eq!((d.min_ns(), d.mean_ns(), d.max_ns()), (5.0, 5.0, 5.0));
        }
        assert_eq!(Distribution::from_samples(&mut []), None);
    }

    #[test]
    fn broken_knots_are_refused() {
        let try_points = |points: &[(f64, f64)], mean_ns| {
            Distribution::from_knots(&Knots {
                points: points.to_vec(),
                mean_ns,
            })
            .unwrap_err()
        };
        assert_eq!(try_points(&[], None), KnotsError::Empty);
        assert_eq!(
            try_points(&[(0.0, 1.0), (1.5, 2.0)], None),
            KnotsError::OutOfRange(2)
        );
        assert_eq!(try_points(&[(0.0, f64::NAN)], None), KnotsError::OutOfRange(1));
        assert_eq!(try_points(&[(0.0, -1.0)], None), KnotsError::OutOfRange(1));
        assert_eq!(
            try_points(&[(0.0, 2.0), (1.0, 1.0)], None),
            KnotsError::Falling(2)
        );
        assert_eq!(
            try_points(&[(0.5, 1.0), (0.2, 2.0)], None),
            KnotsError::Falling(2)
        );
        assert!(matches!(
            try_points(&[(0.0, 0.0), (1.0, 100.0)], Some(80.0)),
            KnotsError::Mean { .. }
        ));
        assert_eq!(
            try_points(&vec![(0.5, 1.0); Knots::MAX + 1], None),
            KnotsError::TooMany(Knots::MAX + 1)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_samples_give_a_monotone_table_with_their_mean(mut samples in prop::collection::vec(0u64..10_000_000, 2..400)) {
            let mean = samples.iter().sum::<u64>() as f64 / samples.len() as f64;
            let d = Distribution::from_samples(&mut samples).unwrap();
            prop_assert!(d.curve.rises().all(|(_, rise)| rise >= 0.0));
            prop_assert_eq!(d.min_ns(), samples[0] as f64);
            prop_assert_eq!(d.max_ns(), samples[samples.len() - 1] as f64);
            prop_assert!((d.mean_ns() - mean).abs() <= 1e-6 * (d.max_ns() - d.min_ns()) + 1e-3);
        }

        #[test]
        fn knots_never_panic(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..8), mean in any::<Option<f64>>()) {
            let _ = Distribution::from_knots(&Knots { points, mean_ns: mean });
        }
    }
}
