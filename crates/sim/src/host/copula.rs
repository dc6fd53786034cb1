//! Which correlation between normal numbers gives the correlation between latencies that a paper reports.
//!
//! With two latencies Q(X) and R(Y), where X and Y are standard normal with correlation r, Mehler's expansion says
//! Cov = sum over k >= 1 of r^k q_k r_k, where q_k and r_k are the coefficients of Q and R in normalised Hermite
//! polynomials. So covariance is a power series in r, it can be solved for r, and sums of latencies just add their
//! coefficients.

use super::curve::Curve;
use super::normal;

/// Terms of the series. What is cut off is below r^64 of the variance: 0.1 % at r = 0.9.
const TERMS: usize = 64;

/// The coefficients 1..=[`TERMS`] of a latency, or of a sum of latencies.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hermite([f64; TERMS]);

impl Hermite {
    /// Of the latency with this table.
    pub(super) fn of(curve: &Curve) -> Self {
        // By parts: q_k is the integral of Q' times the polynomial one degree lower, over sqrt(k).
        let mut coefficients = [0.0; TERMS];
        for (z, rise) in curve.rises().filter(|&(_, rise)| rise != 0.0) {
            let mass = rise * normal::density(z);
            let (mut before, mut polynomial) = (0.0, 1.0);
            for (index, coefficient) in coefficients.iter_mut().enumerate() {
                *coefficient += mass * polynomial;
                let degree = index as f64;
                let next = (z * polynomial - degree.sqrt() * before) / (degree + 1.0).sqrt();
                (before, polynomial) = (polynomial, next);
            }
        }
        for (index, coefficient) in coefficients.iter_mut().enumerate() {
            *coefficient /= (index as f64 + 1.0).sqrt();
        }
        Hermite(coefficients)
    }

    /// Of the sum of latencies.
    pub(super) fn sum<'a>(all: impl Iterator<Item = &'a Hermite>) -> Self {
        let mut total = Hermite([0.0; TERMS]);
        for one in all {
            total.0.iter_mut().zip(one.0).for_each(|(sum, part)| *sum += part);
        }
        total
    }

    /// The covariance of two latencies as a function of r.
    pub(super) fn covariance(&self, other: &Hermite) -> Covariance {
        let mut terms = self.0;
        terms
            .iter_mut()
            .zip(other.0)
            .for_each(|(term, factor)| *term *= factor);
        Covariance(terms)
    }
}

/// A covariance in ns^2 as a power series in r, without a constant term.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Covariance([f64; TERMS]);

impl Covariance {
    /// The covariance between all pairs of different parts, where every two parts have the same r. Counts each
    /// pair twice, as the variance of the sum does.
    pub(super) fn between(parts: &[Hermite]) -> Self {
        let total = Hermite::sum(parts.iter());
        let mut terms = total.covariance(&total);
        for part in parts {
            terms
                .0
                .iter_mut()
                .zip(part.0)
                .for_each(|(term, own)| *term -= own * own);
        }
        terms
    }

    /// The covariance at the correlation `r`.
    pub(super) fn at(&self, r: f64) -> f64 {
        self.0.iter().rev().fold(0.0, |sum, term| (sum + term) * r)
    }

    /// The r in 0..=`most` with this covariance, or the end of the range that comes nearest.
    pub(super) fn solve(&self, covariance: f64, most: f64) -> f64 {
        let (mut low, mut high) = (0.0, most);
        if covariance <= 0.0 {
            return low;
        }
        if covariance >= self.at(most) {
            return high;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.at(middle) < covariance {
                low = middle
            } else {
                high = middle
            }
        }
        0.5 * (low + high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::normal::Normal;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    /// exp(s z) has Hermite coefficients exp(s^2/2) s^k / sqrt(k!), so Cov = exp(s^2) (exp(r s^2) - 1).
    #[test]
    fn lognormal_covariance_in_closed_form() {
        let s = 0.7f64;
        let lognormal = Hermite::of(&Curve::tabulate(|z| 1e4 * (s * z).exp()));
        for r in [0.1, 0.5, 0.9] {
            let exact = 1e8 * (s * s).exp() * ((r * s * s).exp() - 1.0);
            let ours = lognormal.covariance(&lognormal).at(r);
            assert!((ours / exact - 1.0).abs() < 1e-4, "r {r}: {ours} {exact}");
            assert!((lognormal.covariance(&lognormal).solve(exact, 1.0) - r).abs() < 1e-4);
        }
    }

    #[test]
    fn the_variance_of_a_sum_is_that_of_its_parts_and_pairs() {
        let (f, g) = (
            Curve::tabulate(|z| 1e4 + 100.0 * z),
            Curve::tabulate(|z| 1e4 + 50.0 * z * z * z.signum()),
        );
        let parts = [Hermite::of(&f), Hermite::of(&g)];
        let pairs = Covariance::between(&parts);
        let direct = parts[0].covariance(&parts[1]);
        for r in [0.0, 0.3, 0.8] {
            assert!((pairs.at(r) - 2.0 * direct.at(r)).abs() < 1e-6 * direct.at(1.0));
        }
        // By simulation: X and Y share a normal number.
        let (mut rng, normal, r, n) = (ChaCha8Rng::seed_from_u64(3), Normal::new(), 0.6f64, 400_000);
        let mut sums = [0.0f64; 3];
        for _ in 0..n {
            let (x, y) = (normal.draw(&mut rng), normal.draw(&mut rng));
            let (a, b) = (f.at(x) - 1e4, g.at(r * x + (1.0 - r * r).sqrt() * y) - 1e4);
            sums[0] += a;
            sums[1] += b;
            sums[2] += a * b;
        }
        let simulated = sums[2] / n as f64 - sums[0] * sums[1] / (n as f64 * n as f64);
        assert!(
            (simulated / direct.at(r) - 1.0).abs() < 0.02,
            "{simulated} {}",
            direct.at(r)
        );
    }

    #[test]
    fn what_cannot_be_reached_gives_the_nearest() {
        let line = Hermite::of(&Curve::tabulate(|z| 1e4 + 100.0 * z));
        let covariance = line.covariance(&line);
        assert_eq!(covariance.solve(-5.0, 1.0), 0.0);
        assert_eq!(covariance.solve(1e9, 0.75), 0.75);
    }
}
