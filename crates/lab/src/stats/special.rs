//! The few special functions that the intervals need, with 11 digits for arguments up to 1e8.
//!
//! Own code, because the inverse incomplete beta function of `statrs` 0.19 does not return for 12 misses in
//! 12 million trials, and its forward function loses half of the digits there.

use std::f64::consts::{PI, SQRT_2};

/// Regularized incomplete beta function I_x(a, b): the CDF of Beta(a, b), for a, b > 0 and x in 0..=1.
pub(super) fn beta_cdf(a: f64, b: f64, x: f64) -> f64 {
    debug_assert!(a > 0.0 && b > 0.0 && (0.0..=1.0).contains(&x));
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let y = 1.0 - x;
    // The continued fraction converges fast only left of the mean; right of it, where x is small and 1 - x has lost
    // the digits of x, a power series takes over.
    if x < 0.1 && x * (a + b) > a && x * (a + b) < a + 10.0 * a.sqrt() + 100.0 {
        beta_weight(a, b, x, y) * power_series(a, b, x) / a
    } else if x <= (a + 1.0) / (a + b + 2.0) {
        beta_weight(a, b, x, y) * continued_fraction(a, b, x) / a
    } else {
        1.0 - beta_weight(a, b, x, y) * continued_fraction(b, a, y) / b
    }
}

/// The x with `beta_cdf(a, b, x) == p`, to about 1e-13 of itself.
pub(super) fn beta_quantile(a: f64, b: f64, p: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    let mut x = a / (a + b);
    for _ in 0..200 {
        let error = beta_cdf(a, b, x) - p;
        if error > 0.0 {
            high = x;
        } else {
            low = x;
        }
        let density = beta_weight(a, b, x, 1.0 - x) / (x * (1.0 - x));
        let newton = x - error / density;
        let next = if newton > low && newton < high {
            newton
        } else {
            middle(low, high)
        };
        if (next - x).abs() <= 1e-14 * x {
            return next;
        }
        x = next;
    }
    x
}

/// Halves the bracket; by the order of magnitude while its ends are far apart.
fn middle(low: f64, high: f64) -> f64 {
    if low == 0.0 {
        high * 1e-3
    } else if high > 4.0 * low {
        (low * high).sqrt()
    } else {
        0.5 * (low + high)
    }
}

/// x^a y^b / B(a, b) for y = 1 - x, in the saddle-point form: the large logarithms of the gamma function cancel on paper
/// instead of in the machine (C. Loader, "Fast and accurate computation of binomial probabilities", 2000).
fn beta_weight(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let n = a + b;
    let delta = (x * b - y * a) / n;
    let deviance = a * ln_ratio(x, a / n, delta) + b * ln_ratio(y, b / n, -delta);
    let stirling = stirling_rest(n) - stirling_rest(a) - stirling_rest(b);
    (deviance + stirling).exp() * (a / n * b / (2.0 * PI)).sqrt()
}

/// ln(x / mean), where x = mean + delta; by way of delta near the mean, where x / mean has lost its digits.
fn ln_ratio(x: f64, mean: f64, delta: f64) -> f64 {
    if delta.abs() < 0.5 * mean {
        (delta / mean).ln_1p()
    } else {
        (x / mean).ln()
    }
}

/// ln Γ(z) minus Stirling's formula (z - 1/2) ln z - z + ln(2π)/2.
fn stirling_rest(z: f64) -> f64 {
    let (mut z, mut rest) = (z, 0.0);
    while z < 16.0 {
        rest += (z + 0.5) * (1.0 / z).ln_1p() - 1.0;
        z += 1.0;
    }
    let w = 1.0 / (z * z);
    rest + (1.0 / 12.0 - w * (1.0 / 360.0 - w * (1.0 / 1260.0 - w * (1.0 / 1680.0 - w / 1188.0)))) / z
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22) by the modified Lentz method.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let not_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    // It takes O(sqrt(max(a, b))) terms near the mean.
    let limit = 1000 + (20.0 * (a + b).sqrt()) as u64;
    let mut c = 1.0;
    let mut d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for i in 1..=limit {
        let m = i as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / not_zero(1.0 + even * d);
        c = not_zero(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / not_zero(1.0 + odd * d);
        c = not_zero(1.0 + odd / c);
        value *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The sum of (a+b)_n / (a+1)_n x^n over n (DLMF 8.17.8 and 15.2.1): all terms are positive, none cancel.
fn power_series(a: f64, b: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, 0.0);
    while term > 1e-17 * sum {
        term *= x * (a + b + n) / (a + 1.0 + n);
        sum += term;
        n += 1.0;
    }
    sum
}

/// P(B <= k) for B binomial with `n` trials of probability `p`.
pub(super) fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    beta_cdf((n - k) as f64, k as f64 + 1.0, 1.0 - p)
}

/// The z with P(|Z| <= z) = `confidence` for a standard normal Z: 1.96 for 0.95.
pub(super) fn normal_z(confidence: f64) -> f64 {
    let target = confidence.clamp(0.0, 1.0 - 1e-15);
    let (mut low, mut high) = (0.0, 9.0);
    while high - low > 1e-15 * high {
        let z = 0.5 * (low + high);
        if z == low || z == high {
            break;
        }
        if erf(z / SQRT_2) < target {
            low = z;
        } else {
            high = z;
        }
    }
    0.5 * (low + high)
}

/// The t with P(|T| <= t) = `confidence` for Student's T with `freedom` degrees of freedom.
pub(super) fn student_t(confidence: f64, freedom: f64) -> f64 {
    let x = beta_quantile(freedom / 2.0, 0.5, 1.0 - confidence);
    (freedom * (1.0 - x) / x).sqrt()
}

/// Error function for x >= 0 by its series of positive terms (DLMF 7.6.2).
fn erf(x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term > 1e-17 * sum {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(ours: f64, theirs: f64, relative: f64) {
        assert!(
            (ours - theirs).abs() <= relative * theirs.abs(),
            "{ours:e} is not {theirs:e}"
        );
    }

    /// mpmath 1.4.1 with 40 digits (scipy 1.17.1 agrees, but for the third row only to 3e-10).
    #[test]
    fn beta_cdf_as_scipy() {
        for (a, b, x, expected) in [
            (6e6, 6e6 + 1.0, 0.4999, 2.443_017_524_389_794e-1),
            (6e6, 6e6, 0.5001, 7.557_888_393_333_102e-1),
            (12.0, 12e6, 1e-6, 5.384_039_821_674_427e-1),
            (1.0, 37000.0, 1e-4, 9.752_810_472_638_923e-1),
            (1200.0, 12e6 - 1200.0, 1.02e-4, 7.573_785_219_517_695e-1),
            (3.0, 5.0, 0.2, 1.480_32e-1),
            (0.5, 0.5, 0.3, 3.690_101_195_655_454e-1),
            (500.0, 2.0, 0.999, 9.095_684_172_917_773e-1),
            (2.0, 3e9, 1e-9, 8.008_517_268_272_667e-1),
        ] {
            near(beta_cdf(a, b, x), expected, 2e-12);
        }
        assert_eq!(beta_cdf(2.0, 3.0, 0.0), 0.0);
        assert_eq!(beta_cdf(2.0, 3.0, 1.0), 1.0);
    }

    /// scipy 1.17.1, `stats.t.ppf(0.975, df)` and `stats.norm.ppf`.
    #[test]
    fn t_and_z_as_scipy() {
        for (freedom, expected) in [
            (1.0, 12.706_204_736_175),
            (2.0, 4.302_652_729_749),
            (5.0, 2.570_581_835_636),
            (30.0, 2.042_272_456_301),
            (1000.0, 1.962_339_080_826),
            (1e6, 1.959_966_356_814),
        ] {
            near(student_t(0.95, freedom), expected, 1e-11);
        }
        near(normal_z(0.95), 1.959_963_984_540_054, 1e-12);
        near(normal_z(0.99), 2.575_829_303_548_901, 1e-12);
        near(normal_z(0.9998), 3.719_016_485_455_68, 1e-10);
    }

    #[test]
    fn the_quantile_inverts_the_cdf() {
        for a in [0.5, 1.0, 3.0, 250.0, 1e7] {
            for b in [0.5, 2.0, 70.0, 1e5, 1e7] {
                for p in [1e-9, 0.025, 0.5, 0.975, 0.999_999] {
                    let x = beta_quantile(a, b, p);
                    assert!((0.0..=1.0).contains(&x));
                    // near 1 the double x itself cannot be finer than 1e-16
                    if x < 1.0 - 1e-6 {
                        near(beta_cdf(a, b, x), p, 1e-7);
                    }
                }
            }
        }
    }

    #[test]
    fn binomial_cdf_sums_the_binomial() {
        // 10 trials of 0.3: P(B <= 2) = 0.7^10 + 10*0.3*0.7^9 + 45*0.09*0.7^8
        let by_hand = 0.7f64.powi(10) + 3.0 * 0.7f64.powi(9) + 4.05 * 0.7f64.powi(8);
        near(binomial_cdf(2, 10, 0.3), by_hand, 1e-13);
        assert_eq!(binomial_cdf(10, 10, 0.3), 1.0);
    }
}
