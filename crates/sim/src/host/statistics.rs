//! Published statistics of a latency, and the distribution that has them.

use super::distribution::Distribution;
use super::shape::Shape;
use serde::{Deserialize, Serialize};

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
    /// A distribution with these statistics; see the text of the module `shape` for its form.
    ///
    /// If mean and percentiles can be met and the standard deviation cannot, the nearest one is taken and the
    /// [`Fit`] says what is missing.
    pub fn from_statistics(statistics: &Statistics) -> Result<Fit, StatisticsError> {
        check(statistics)?;
        let (mean, sd) = (statistics.mean_us * 1e3, statistics.sd_us * 1e3);
        let distribution = match sd {
            0.0 => Distribution::constant(mean),
            _ => Distribution::from_curve(shape(statistics).solve().ok_or(StatisticsError::Mean)?),
        };
        let (mean_residual_ns, sd_residual_ns) = (distribution.mean_ns() - mean, distribution.sd_ns() - sd);
        Ok(Fit {
            distribution,
            mean_residual_ns,
            sd_residual_ns,
        })
    }
}

/// Finds contradictions.
fn check(given: &Statistics) -> Result<(), StatisticsError> {
    let rising = [
        ("min_us", Some(given.min_us)),
        ("p99_us", given.p99_us),
        ("p999_us", given.p999_us),
        ("p9999_us", given.p9999_us),
        ("max_us", given.max_us),
    ];
    let present: Vec<(&str, f64)> = rising
        .into_iter()
        .filter_map(|(name, us)| Some((name, us?)))
        .collect();
    for &(name, us) in present
        .iter()
        .chain(&[("mean_us", given.mean_us), ("sd_us", given.sd_us)])
    {
        if !(0.0..=Distribution::MAX_NS / 1e3).contains(&us) {
            return Err(StatisticsError::OutOfRange(name));
        }
    }
    if let Some(pair) = present.windows(2).find(|pair| pair[1].1 < pair[0].1) {
        return Err(StatisticsError::Order(pair[1].0, pair[0].0));
    }
    if given.mean_us < given.min_us {
        return Err(StatisticsError::Order("mean_us", "min_us"));
    }
    let highest = present[present.len() - 1];
    if given.sd_us == 0.0 {
        Ok(())
    } else if highest.0 == "min_us" {
        Err(StatisticsError::Unbounded)
    } else if given.mean_us >= highest.1 || given.mean_us == given.min_us {
        Err(StatisticsError::Mean)
    } else {
        Ok(())
    }
}

/// The points that checked statistics fix.
fn shape(given: &Statistics) -> Shape {
    let percentiles = [
        (1e-2, given.p99_us),
        (1e-3, given.p999_us),
        (1e-4, given.p9999_us),
    ];
    let point = |(s, us): (f64, Option<f64>)| Some((libm::log(s), us? * 1e3));
    let mut tail: Vec<(f64, f64)> = percentiles.into_iter().filter_map(point).collect();
    // One in n, where the maximum of n samples stands.
    let one_in_n = given.samples.map(|n| -libm::log(n.max(2) as f64));
    let max = given.max_us.map(|us| us * 1e3);
    let top = tail
        .first()
        .map(|point| point.1)
        .or(max)
        .expect("a percentile or a maximum was checked for");
    match (&tail[..], max) {
        ([], Some(max)) => tail.extend(one_in_n.map(|ln_s| (ln_s, max))),
        ([.., last], Some(max)) => {
            let beyond = one_in_n.unwrap_or(last.0 - std::f64::consts::LN_10);
            tail.push((beyond.min(last.0 - 0.1), max));
        }
        ([.., before, last], None) => {
            // The piece between the last two percentiles goes on.
            let slope = (last.1 - before.1) / (before.0 - last.0);
            let (from, to) = (*last, one_in_n.unwrap_or(last.0));
            if to < from.0 {
                tail.push((to, from.1 + slope * (from.0 - to)));
            }
        }
        _ => {}
    }
    let foot = |n: u64| {
        Some((1.0 / n as f64, (30.0 / n as f64).clamp(1e-3, 0.1))).filter(|(end, start)| 2.0 * end < *start)
    };
    Shape {
        mean: given.mean_us * 1e3,
        sd: given.sd_us * 1e3,
        min: given.min_us * 1e3,
        top,
        foot: given.samples.and_then(foot),
        tail,
    }
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
    fn fitted(statistics: Statistics) -> Distribution {
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
        assert!((d.mean_ns() / 1e3 - statistics.mean_us).abs() < 1e-3);
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
            fitted(Statistics {
                max_us: Some(100.0),
                ..given(mean, sd, 0.0)
            });
        }
    }

    #[test]
    fn a_heavy_tail_above_a_narrow_body() {
        let d = fitted(Statistics {
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
        let d = fitted(Statistics {
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
        assert!((fitted(statistics).max_ns() - 3054.0).abs() < 0.1);
        let d = fitted(Statistics {
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
        assert!((fit.distribution.quantile_ns(0.99) - 2_000.0).abs() < 40.0);
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
            // mean and deviation are traded off where the points leave no room for both: 1.02e-3 was seen, in 6,000 cases
            prop_assert!(fit.mean_residual_ns.abs() < 3e-3 * mean_us * 1e3, "{statistics:?} {}", fit.mean_residual_ns);
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
