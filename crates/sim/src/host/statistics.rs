//! From the numbers in a published table to a distribution that has exactly these numbers.
//!
//! A table gives mean, standard deviation, minimum, a few high percentiles and the maximum. The distribution made
//! from them has three parts, by the probability s of a larger value:
//!
//! - the **tail**, from the first published percentile up: straight between the published points when drawn over
//!   ln s, that is, exponential pieces. The maximum of n samples stands at s = 1/n, and nothing lies above it;
//! - the **body**, up to one decade of s below that percentile: a Kumaraswamy law (a close relative of the Beta law
//!   whose quantile function has a closed form) between the minimum and that percentile. Its two parameters are
//!   solved so that mean and standard deviation of the whole come out;
//! - the **bridge**, straight over ln s in the decade between them.
//!
//! If the straight pieces alone already have more variance than the table states, the first one above the first
//! percentile becomes a step that rises late: then rare long latencies form a mode of their own.

use super::distribution::{Curve, Distribution, Weights};
use super::normal;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// Published statistics of a latency, in microseconds as the papers print them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// The mean.
    pub mean_us: f64,
    /// The standard deviation.
    pub sd_us: f64,
    /// The smallest value.
    pub min_us: f64,
    /// The 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// The 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_us: Option<f64>,
    /// The 99.99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p9999_us: Option<f64>,
    /// The largest value. Without it the last piece goes on to the probability 1/`samples`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_us: Option<f64>,
    /// How many samples the statistics are of; this places the maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
}

/// A distribution made from [`Statistics`], and what it lacks of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The distribution. Minimum, percentiles and maximum are those of the statistics.
    pub distribution: Distribution,
    /// Mean of the distribution less the stated mean, in ns. 0 up to rounding, if the statistics can be met.
    pub mean_residual_ns: f64,
    /// The same for the standard deviation, in ns.
    pub sd_residual_ns: f64,
}

/// Why no distribution can have the [`Statistics`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatisticsError {
    /// A value that is negative, not finite or above [`Distribution::MAX_NS`].
    #[error("{0} must be a number from 0 to 100000000")]
    OutOfRange(&'static str),
    /// Minimum, mean, percentiles and maximum are not in rising order.
    #[error("{0} must not be below {1}")]
    Order(&'static str, &'static str),
    /// Neither a percentile nor the maximum is given, and the standard deviation is not 0.
    #[error("a maximum or a percentile must be given as well")]
    Unbounded,
    /// The percentiles force another mean than the stated one.
    #[error("no distribution with these percentiles has this mean")]
    Mean,
}

impl Distribution {
    /// A distribution with these statistics; see the module's text for its shape.
    ///
    /// If mean and percentiles can be met and the standard deviation cannot, the nearest one is taken and the
    /// [`Fit`] says what is missing.
    pub fn from_statistics(statistics: &Statistics) -> Result<Fit, StatisticsError> {
        let shape = Shape::new(statistics)?;
        let Some(shape) = shape else {
            let distribution = Distribution::constant(statistics.mean_us * 1e3);
            return Ok(Fit {
                distribution,
                mean_residual_ns: 0.0,
                sd_residual_ns: 0.0,
            });
        };
        shape.fit()
    }
}

/// Cells per unit of z in the grid on which the body is searched.
const COARSE_CELLS: usize = 16;
/// How late the first tail piece rises, tried in turn: 0 is straight, k has its middle at k/(1 + k) of the piece.
const STEPS: [f64; 8] = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Everything but the two parameters of the body and the step.
struct Shape {
    mean: f64,
    sd: f64,
    min: f64,
    /// The body's upper end: the first tail point, or the maximum.
    top: f64,
    /// ln s below which the bridge begins; -inf without a tail.
    ln_bridge: f64,
    /// (ln s, ns) of the tail's points, s falling.
    tail: Vec<(f64, f64)>,
}

/// The parameters of the body, both dimensionless: the median of the Kumaraswamy law on 0..1, and its exponent a.
#[derive(Clone, Copy, Debug)]
struct Body {
    median: f64,
    ln_a: f64,
}

impl Shape {
    /// `None` for a constant.
    fn new(given: &Statistics) -> Result<Option<Self>, StatisticsError> {
        let named = [
            ("min_us", Some(given.min_us)),
            ("p99_us", given.p99_us),
            ("p999_us", given.p999_us),
            ("p9999_us", given.p9999_us),
            ("max_us", given.max_us),
        ];
        for (name, value) in named
            .into_iter()
            .chain([("mean_us", Some(given.mean_us)), ("sd_us", Some(given.sd_us))])
        {
            if value.is_some_and(|us| !(0.0..=Distribution::MAX_NS / 1e3).contains(&us)) {
                return Err(StatisticsError::OutOfRange(name));
            }
        }
        let present: Vec<_> = named
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        if let Some(pair) = present.windows(2).find(|pair| pair[1].1 < pair[0].1) {
            return Err(StatisticsError::Order(pair[1].0, pair[0].0));
        }
        let highest = present[present.len() - 1];
        if given.mean_us < given.min_us {
            return Err(StatisticsError::Order("mean_us", "min_us"));
        }
        if given.sd_us == 0.0 {
            return Ok(None);
        }
        if highest.0 == "min_us" {
            return Err(StatisticsError::Unbounded);
        }
        if given.mean_us >= highest.1 || given.mean_us == given.min_us {
            return Err(StatisticsError::Mean);
        }
        let mut tail: Vec<(f64, f64)> = [
            (1e-2, given.p99_us),
            (1e-3, given.p999_us),
            (1e-4, given.p9999_us),
        ]
        .into_iter()
        .filter_map(|(s, us)| Some((libm::log(s), us? * 1e3)))
        .collect();
        let ln_end = given.samples.map(|n| -libm::log(n.max(2) as f64));
        match (given.max_us, tail.last().copied()) {
            (Some(max), Some((ln_s, _))) => tail.push((
                ln_end.unwrap_or(ln_s - std::f64::consts::LN_10).min(ln_s - 0.1),
                max * 1e3,
            )),
            (Some(max), None) => tail.extend(ln_end.map(|ln_s| (ln_s, max * 1e3))),
            (None, last) => {
                // The exponential piece between the last two percentiles goes on.
                if let (Some(ln_end), [.., before, last]) =
                    (ln_end.filter(|end| *end < last.unwrap().0), &tail[..])
                {
                    let slope = (last.1 - before.1) / (before.0 - last.0);
                    tail.push((ln_end, last.1 + slope * (last.0 - ln_end)));
                }
            }
        }
        Ok(Some(Shape {
            mean: given.mean_us * 1e3,
            sd: given.sd_us * 1e3,
            min: given.min_us * 1e3,
            top: tail.first().map_or(highest.1 * 1e3, |point| point.1),
            ln_bridge: tail.first().map_or(f64::NEG_INFINITY, |point| {
                (point.0 + std::f64::consts::LN_10).min(-0.1)
            }),
            tail,
        }))
    }

    /// The quantile at probability s of a larger value.
    fn quantile(&self, body: Body, step: f64, ln_s: f64) -> f64 {
        if ln_s >= self.ln_bridge {
            return self.body(body, ln_s);
        }
        let next = self.tail.partition_point(|point| point.0 > ln_s);
        let from = match next {
            0 => (self.ln_bridge, self.body(body, self.ln_bridge)),
            _ => self.tail[next - 1],
        };
        let Some(to) = self.tail.get(next) else {
            return from.1;
        };
        let along = (from.0 - ln_s) / (from.0 - to.0);
        let up = if next == 1 && step > 0.0 {
            let cube = |x: f64| x * x * x;
            cube(along) / (cube(along) + cube(step * (1.0 - along)))
        } else {
            along
        };
        from.1 + (to.1 - from.1) * up
    }

    /// Kumaraswamy's law: Q = (1 - s^(1/b))^(1/a) on 0..1, where the median fixes b.
    fn body(&self, body: Body, ln_s: f64) -> f64 {
        let a = libm::exp(body.ln_a);
        let inverse_b = -libm::log1p(-libm::pow(body.median, a)) / std::f64::consts::LN_2;
        self.min + (self.top - self.min) * libm::pow(-libm::expm1(ln_s * inverse_b), 1.0 / a)
    }

    /// Searches the body on the coarse grid, refines it on the table itself.
    fn fit(&self) -> Result<Fit, StatisticsError> {
        static COARSE: OnceLock<Grid> = OnceLock::new();
        let grid = COARSE.get_or_init(|| Grid::new(COARSE_CELLS));
        let excess = |body: Body, step: f64| {
            let values: Vec<f64> = grid
                .ln_s
                .iter()
                .map(|&ln_s| self.quantile(body, step, ln_s))
                .collect();
            let (mean, sd) = grid.weights.moments(&values);
            (mean - self.mean, sd - self.sd)
        };
        let with_mean = |ln_a: f64, step: f64| {
            let median = root(
                |median| excess(Body { median, ln_a }, step).0,
                1e-9,
                1.0 - 1e-9,
                1e-5 * self.sd,
            );
            Body { median, ln_a }
        };
        let (widest, narrowest) = (libm::log(0.05), libm::log(100.0));
        let fits = |&step: &f64| excess(with_mean(narrowest, step), step).1 < 0.0;
        let step = STEPS.into_iter().find(fits).unwrap_or(STEPS[STEPS.len() - 1]);
        let ln_a = root(
            |ln_a| excess(with_mean(ln_a, step), step).1,
            widest,
            narrowest,
            1e-3 * self.sd,
        );
        let coarse = with_mean(ln_a, step);
        if excess(coarse, step).0.abs() > 0.1 * self.sd {
            return Err(StatisticsError::Mean);
        }
        let curve = self.refined(coarse, step);
        let (mean, sd) = curve.moments();
        Ok(Fit {
            distribution: Distribution::from_curve(curve),
            mean_residual_ns: mean - self.mean,
            sd_residual_ns: sd - self.sd,
        })
    }

    /// Newton's method on (mean, standard deviation) of the full table, as long as it helps.
    fn refined(&self, mut body: Body, step: f64) -> Curve {
        let table = |body: Body| Curve::tabulate(|z| self.quantile(body, step, ln_upper(z)));
        let miss = |curve: &Curve| {
            let (mean, sd) = curve.moments();
            [mean - self.mean, sd - self.sd]
        };
        let mut curve = table(body);
        for _ in 0..4 {
            let now = miss(&curve);
            let change = 1e-4 * body.median.min(1.0 - body.median);
            let by_median = miss(&table(Body {
                median: body.median + change,
                ..body
            }))
            .map(|x| x / change);
            let by_a = miss(&table(Body {
                ln_a: body.ln_a + 1e-4,
                ..body
            }))
            .map(|x| x / 1e-4);
            let slope = |i: usize| (by_median[i] - now[i] / change, by_a[i] - now[i] / 1e-4);
            let ((a, b), (c, d)) = (slope(0), slope(1));
            let determinant = a * d - b * c;
            let next = Body {
                median: body.median - (d * now[0] - b * now[1]) / determinant,
                ln_a: body.ln_a - (a * now[1] - c * now[0]) / determinant,
            };
            if !(next.median > 0.0 && next.median < 1.0 && next.ln_a.is_finite()) {
                break;
            }
            let better = table(next);
            let size = |miss: [f64; 2]| miss[0].hypot(miss[1]);
            if size(miss(&better)) >= size(now) {
                break;
            }
            (body, curve) = (next, better);
            if size(miss(&curve)) < 5e-3 {
                break;
            }
        }
        curve
    }
}

/// A grid over z with ln P(Z > z) at its points.
struct Grid {
    weights: Weights,
    ln_s: Vec<f64>,
}

impl Grid {
    fn new(per_unit: usize) -> Self {
        let weights = Weights::new(per_unit);
        let ln_s = weights.positions().map(ln_upper).collect();
        Grid { weights, ln_s }
    }
}

/// ln P(Z > z) of a standard normal Z.
fn ln_upper(z: f64) -> f64 {
    if z < 0.0 {
        libm::log1p(-normal::cumulative(z))
    } else {
        libm::log(normal::cumulative(-z))
    }
}

/// Where the monotone `f` is 0 between `lo` and `hi`, by the Illinois method; without a change of sign, the end
/// where |f| is smaller.
fn root(f: impl Fn(f64) -> f64, mut lo: f64, mut hi: f64, tolerance: f64) -> f64 {
    let (mut at_lo, mut at_hi) = (f(lo), f(hi));
    if at_lo.signum() == at_hi.signum() {
        return if at_lo.abs() < at_hi.abs() { lo } else { hi };
    }
    for _ in 0..200 {
        let x = (lo * at_hi - hi * at_lo) / (at_hi - at_lo);
        let y = f(x);
        if y.abs() <= tolerance || (hi - lo).abs() < 1e-14 {
            return x;
        }
        // `hi` is always the latest point; an end that stays twice counts only half.
        if y.signum() == at_hi.signum() {
            at_lo *= 0.5;
        } else {
            (lo, at_lo) = (hi, at_hi);
        }
        (hi, at_hi) = (x, y);
    }
    hi
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, any, prop, prop_assert, proptest};

    fn given(mean_us: f64, sd_us: f64, min_us: f64) -> Statistics {
        Statistics {
            mean_us,
            sd_us,
            min_us,
            ..Statistics::default()
        }
    }

    /// Everything that is stated must come back: moments to 1e-5, points to half a per cent (a table cell).
    fn check(statistics: Statistics) -> Distribution {
        let Fit {
            distribution: d,
            mean_residual_ns,
            sd_residual_ns,
        } = Distribution::from_statistics(&statistics).unwrap();
        assert!(
            mean_residual_ns.abs() < 1e-5 * statistics.mean_us * 1e3,
            "mean off by {mean_residual_ns} ns"
        );
        assert!(
            sd_residual_ns.abs() < 1e-4 * statistics.sd_us * 1e3,
            "deviation off by {sd_residual_ns} ns"
        );
        assert_eq!((d.mean_ns() / 1e3 - statistics.mean_us).abs() < 1e-3, true);
        assert!((d.min_ns() / 1e3 - statistics.min_us).abs() < 1e-6);
        let points = [
            (0.99, statistics.p99_us),
            (0.999, statistics.p999_us),
            (0.9999, statistics.p9999_us),
        ];
        for (p, us) in points.into_iter().filter_map(|(p, us)| Some((p, us?))) {
            assert!(
                (d.quantile_ns(p) / 1e3 / us - 1.0).abs() < 0.005,
                "p {p}: {} {us}",
                d.quantile_ns(p)
            );
        }
        if let Some(us) = statistics.max_us {
            assert!((d.max_ns() / 1e3 / us - 1.0).abs() < 1e-6, "{} {us}", d.max_ns());
        }
        assert!(d.curve().rises().all(|(_, rise)| rise >= 0.0), "the table falls");
        d
    }

    #[test]
    fn a_body_alone_meets_all_kinds_of_moments() {
        for (mean, sd) in [
            (50.0, 1.0),
            (50.0, 28.8),
            (10.0, 2.0),
            (90.0, 9.0),
            (20.0, 30.0),
            (2.0, 1.0),
        ] {
            check(Statistics {
                max_us: Some(100.0),
                ..given(mean, sd, 0.0)
            });
        }
    }

    #[test]
    fn a_heavy_tail_above_a_narrow_body() {
        let d = check(Statistics {
            p999_us: Some(50.698),
            p9999_us: Some(76.128),
            max_us: Some(373.083),
            samples: Some(1_728_000),
            ..given(21.657, 2.581, 18.593)
        });
        assert!(d.quantile_ns(0.5) < 22_000.0);
        // Exponential between the maximum at one in 1.7 million and the 99.99th percentile.
        let halfway = d.quantile_ns(1.0 - (1e-4f64 / 1_728_000.0).sqrt());
        assert!(
            (halfway / 1e3 - (76.128 + 373.083) / 2.0).abs() < 2.0,
            "{halfway}"
        );
    }

    /// Table V, API part of the confirm: straight pieces alone would have a deviation above the stated one.
    #[test]
    fn rare_long_latencies_become_a_mode_of_their_own() {
        let d = check(Statistics {
            p99_us: Some(1.608),
            p999_us: Some(6.261),
            p9999_us: Some(7.028),
            max_us: Some(9.503),
            samples: Some(12_091_189),
            ..given(1.368, 0.213, 0.758)
        });
        assert!(d.quantile_ns(0.995) < 2_000.0 && d.quantile_ns(0.9989) > 5_500.0);
    }

    #[test]
    fn without_a_maximum_the_last_piece_goes_on_to_one_in_n() {
        let statistics = Statistics {
            p999_us: Some(1.959),
            p9999_us: Some(3.054),
            ..given(0.886, 0.105, 0.652)
        };
        assert!((check(statistics).max_ns() - 3054.0).abs() < 0.1);
        let d = check(Statistics {
            samples: Some(1_000_000),
            ..statistics
        });
        assert!(
            (d.max_ns() - (3054.0 + 2.0 * (3054.0 - 1959.0))).abs() < 1.0,
            "{}",
            d.max_ns()
        );
    }

    #[test]
    fn an_impossible_deviation_gives_the_nearest_and_says_so() {
        let statistics = Statistics {
            p99_us: Some(2.0),
            max_us: Some(100.0),
            samples: Some(1000),
            ..given(1.5, 0.2, 1.0)
        };
        let fit = Distribution::from_statistics(&statistics).unwrap();
        // One maximum of 100 in 1000 samples alone makes the deviation 3.
        assert!(fit.sd_residual_ns > 1_000.0);
        assert!((fit.distribution.quantile_ns(0.99) - 2_000.0).abs() < 10.0);
        let flat = Statistics {
            max_us: Some(2.0),
            ..given(1.5, 0.9, 1.0)
        };
        assert!(Distribution::from_statistics(&flat).unwrap().sd_residual_ns < -300.0);
    }

    #[test]
    fn contradictions_are_named() {
        let error = |statistics: Statistics| Distribution::from_statistics(&statistics).unwrap_err();
        assert_eq!(
            error(given(f64::NAN, 1.0, 0.0)),
            StatisticsError::OutOfRange("mean_us")
        );
        assert_eq!(error(given(1.0, -1.0, 0.0)), StatisticsError::OutOfRange("sd_us"));
        assert_eq!(
            error(given(1.0, 1.0, 2.0)),
            StatisticsError::Order("mean_us", "min_us")
        );
        assert_eq!(error(given(1.0, 1.0, 0.0)), StatisticsError::Unbounded);
        let points = Statistics {
            p99_us: Some(5.0),
            p999_us: Some(4.0),
            ..given(2.0, 1.0, 0.0)
        };
        assert_eq!(error(points), StatisticsError::Order("p999_us", "p99_us"));
        assert_eq!(
            error(Statistics {
                max_us: Some(2.0),
                ..given(2.0, 1.0, 0.0)
            }),
            StatisticsError::Mean
        );
        // 1 % lies above 1000, so the mean is at least 10.
        assert_eq!(
            error(Statistics {
                p99_us: Some(1000.0),
                ..given(5.0, 1.0, 0.0)
            }),
            StatisticsError::Mean
        );
        assert_eq!(
            Distribution::from_statistics(&given(3.0, 0.0, 3.0))
                .unwrap()
                .distribution
                .max_ns(),
            3000.0
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// The statistics of any samples can be met: moments as far as the points allow, the points always.
        #[test]
        fn statistics_of_real_samples(
            mut us in prop::collection::vec(0.5f64..50.0, 200..300),
            outliers in prop::collection::vec(50.0f64..500.0, 3..10),
        ) {
            us.extend(outliers);
            us.sort_unstable_by(f64::total_cmp);
            let n = us.len() as f64;
            let mean_us = us.iter().sum::<f64>() / n;
            let sd_us = (us.iter().map(|x| (x - mean_us).powi(2)).sum::<f64>() / n).sqrt();
            let statistics = Statistics {
                p99_us: Some(us[(0.99 * n) as usize]),
                max_us: us.last().copied(),
                samples: Some(us.len() as u64),
                ..given(mean_us, sd_us, us[0])
            };
            let fit = Distribution::from_statistics(&statistics).unwrap();
            prop_assert!(fit.mean_residual_ns.abs() < 1e-4 * mean_us * 1e3);
            prop_assert!(fit.sd_residual_ns.abs() < 0.35 * sd_us * 1e3, "{statistics:?} {}", fit.sd_residual_ns);
        }

        #[test]
        fn no_input_panics(mean in any::<f64>(), sd in any::<f64>(), min in any::<f64>(), p99 in any::<Option<f64>>(),
                           scale in -2.0f64..9.0, rest in prop::array::uniform5(prop::option::of(0.0f64..1.0)), samples in any::<Option<u64>>()) {
            let _ = Distribution::from_statistics(&Statistics { p99_us: p99, samples, ..given(mean, sd, min) });
            // Plausible sizes get further than arbitrary bits.
            let us = |x: Option<f64>| x.map(|x| x * 10f64.powf(scale));
            let _ = Distribution::from_statistics(&Statistics {
                mean_us: us(rest[0]).unwrap_or(1.0),
                sd_us: us(rest[1]).unwrap_or(1.0),
                p99_us: us(rest[2]),
                p9999_us: us(rest[3]),
                max_us: us(rest[4]),
                samples,
                ..Statistics::default()
            });
        }
    }
}
