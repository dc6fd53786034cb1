//! The distribution of one latency: from samples, from knots or constant (from statistics: see that module).

use super::curve::{Curve, whole};
use super::knots::{Knots, KnotsError};
use super::normal::{self, Normal, Random};

/// The distribution of one latency, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    curve: Curve,
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
        let curve = Curve::quantiles(|z| knots.at(z));
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
        self.curve.ends().0
    }

    /// The largest latency, in ns.
    pub fn max_ns(&self) -> f64 {
        self.curve.ends().1
    }

    /// The latency that a share `p` (0..=1) of all draws does not exceed, in ns.
    pub fn quantile_ns(&self, p: f64) -> f64 {
        self.curve.at(normal::quantile(p))
    }

    /// The latency at a standard normal number, in ns: what [`Distribution::quantile_ns`] gives for the probability
    /// of a number not above it. All dependence between latencies is between such numbers.
    pub fn at_normal_ns(&self, z: f64) -> f64 {
        self.curve.at(z)
    }

    /// One draw, in ns: one word of `random`, and the larger the word the longer the latency.
    #[inline]
    pub fn sample_ns(&self, random: &mut impl Random) -> u64 {
        whole(self.curve.at(Normal::new().draw(random)))
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
        assert_eq!(
            try_points(&[(0.0, 1.0)], Some(f64::NAN)),
            KnotsError::MeanOutOfRange
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
