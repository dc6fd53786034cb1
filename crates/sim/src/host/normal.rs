//! The standard normal law: its cumulative function, its quantiles, and a fast draw.
//!
//! Every random quantity of the host starts as a standard normal number, because the dependence between the
//! components is described by a Gaussian copula. The elementary functions come from `libm`, which gives the same
//! bits on every platform; the standard library's do not.

use std::sync::OnceLock;

/// A source of uniform 64-bit words, one per call.
///
/// The host model draws a fixed number of words per call, so that a change of profile does not shift the
/// words that a later call sees.
pub trait Random {
    /// The next word, uniform over all 2^64 values.
    fn next_u64(&mut self) -> u64;
}

impl Random for rand_chacha::ChaCha8Rng {
    fn next_u64(&mut self) -> u64 {
        rand_chacha::rand_core::Rng::next_u64(self)
    }
}

/// P(Z < z) of a standard normal Z. Keeps its relative precision for z far below 0.
pub(super) fn cumulative(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The density of the standard normal law at z.
pub(super) fn density(z: f64) -> f64 {
    const INV_SQRT_TAU: f64 = 0.398_942_280_401_432_7;
    INV_SQRT_TAU * libm::exp(-0.5 * z * z)
}

/// The z with P(Z < z) = `p`, for `p` in 0..=1 (outside: the nearer end). Infinite at 0 and 1.
pub(super) fn quantile(p: f64) -> f64 {
    if p > 0.5 {
        -lower_quantile(1.0 - p)
    } else {
        lower_quantile(p)
    }
}

/// Newton's method on ln P(Z < z), which is concave: from the left it converges without overshoot.
fn lower_quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let target = libm::log(p);
    let mut z = -libm::sqrt(-2.0 * target);
    for _ in 0..60 {
        let below = cumulative(z);
        let step = (target - libm::log(below)) * below / density(z);
        z += step;
        if step.abs() < 1e-15 * (1.0 + z.abs()) {
            break;
        }
    }
    z
}

/// Steps per octave of probability in the draw's table.
const STEPS: usize = 64;
/// Octaves below one half: the smallest probability resolved is 2^-41, seven standard deviations out.
const OCTAVES: usize = 40;

/// Quantiles of the normal law at the probabilities 2^-k (1 + i/64), which rise with the index.
struct Table([f64; OCTAVES * STEPS + 1]);

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut z = [0.0; OCTAVES * STEPS + 1];
        for (index, value) in z.iter_mut().enumerate().take(OCTAVES * STEPS) {
            let octave = libm::ldexp(1.0, (index / STEPS) as i32 - OCTAVES as i32 - 1);
            *value = quantile(octave * (1.0 + (index % STEPS) as f64 / STEPS as f64));
        }
        Table(z)
    })
}

/// Draws standard normal numbers by inversion: one word each, increasing with the word, at most 7 from 0.
#[derive(Clone, Copy)]
pub(super) struct Normal(&'static Table);

impl std::fmt::Debug for Normal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Normal")
    }
}

impl Normal {
    pub(super) fn new() -> Self {
        Normal(table())
    }

    /// One standard normal number. Standard deviation within 1e-5 of 1.
    #[inline]
    pub(super) fn draw(self, random: &mut impl Random) -> f64 {
        self.invert(random.next_u64())
    }

    #[inline]
    fn invert(self, word: u64) -> f64 {
        // The upper half mirrors the lower one. Half of the words are there, so this must not branch.
        let upper = word & (1 << 63);
        let folded = word ^ ((word as i64 >> 63) as u64);
        let zeros = folded.leading_zeros() as usize;
        let z = if zeros > OCTAVES {
            self.0.0[0]
        } else {
            // The leading one is shifted out; what follows says where in the octave we are.
            let rest = folded << (zeros + 1);
            let cell = (OCTAVES - zeros) * STEPS + (rest >> 58) as usize;
            let fraction = ((rest << 6) >> 11) as i64 as f64 * (1.0 / (1u64 << 53) as f64);
            let from = self.0.0[cell];
            from + fraction * (self.0.0[cell + 1] - from)
        };
        f64::from_bits(z.to_bits() ^ upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    /// Abramowitz and Stegun, tables 26.1 and 26.5 (and 26.2 for the far tail).
    #[test]
    fn agrees_with_the_printed_tables() {
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (-2.0, 0.022_750_131_948_179),
        ] {
            assert!((cumulative(z) - p).abs() < 1e-15);
            assert!((quantile(p) - z).abs() < 1e-13);
        }
        assert!((quantile(0.999) - 3.090_232_306_167_813).abs() < 1e-12);
        assert!((quantile(1e-9) + 5.997_807_015_008_182).abs() < 1e-11);
        assert!((cumulative(-5.0) / 2.866_515_718_791_939e-7 - 1.0).abs() < 1e-13);
    }

    #[test]
    fn quantile_inverts_the_cumulative_function_over_the_whole_range() {
        for step in 0..=1400 {
            let z = -7.0 + step as f64 * 0.005;
            assert!((quantile(cumulative(z)) - z).abs() < 1e-12, "at {z}");
            // From above a probability near 1 has lost digits before we see it.
            assert!(
                (quantile(1.0 - cumulative(z)) + z).abs() < 1e-12 + 1e-16 / cumulative(z) * 0.5,
                "at {z}"
            );
        }
    }

    #[test]
    fn the_draw_is_monotone_symmetric_and_close_to_the_true_quantile() {
        let normal = Normal::new();
        let mut last = f64::NEG_INFINITY;
        for word in (0..4096u64).map(|i| i << 52).chain([u64::MAX]) {
            let z = normal.invert(word);
            assert!(z >= last);
            assert_eq!(z, -normal.invert(!word));
            let p = (word as f64 + 0.5) / 18_446_744_073_709_551_616.0;
            if p > 1e-12 && p < 1.0 - 1e-12 {
                assert!((z - quantile(p)).abs() < 1e-4, "{word:x}: {z} {}", quantile(p));
            }
            last = z;
        }
        assert_eq!(normal.invert(0), quantile(libm::ldexp(1.0, -41)));
        assert!((normal.invert(1 << 25) - quantile(libm::ldexp(1.0, -39))).abs() < 1e-9);
    }

    #[test]
    fn two_million_draws_have_the_moments_of_the_normal_law() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let normal = Normal::new();
        let n = 2_000_000;
        let mut power = [0.0f64; 4];
        for _ in 0..n {
            let z = normal.draw(&mut rng);
            for (k, sum) in power.iter_mut().enumerate() {
                *sum += z.powi(k as i32 + 1);
            }
        }
        let [mean, second, third, fourth] = power.map(|sum| sum / n as f64);
        // Four standard errors: 1, 2, 15 and 96 are the variances of Z, Z^2, Z^3, Z^4.
        assert!(mean.abs() < 4.0 * (1.0 / n as f64).sqrt());
        assert!((second - 1.0).abs() < 4.0 * (2.0 / n as f64).sqrt());
        assert!(third.abs() < 4.0 * (15.0 / n as f64).sqrt());
        assert!((fourth - 3.0).abs() < 4.0 * (96.0 / n as f64).sqrt());
    }
}
