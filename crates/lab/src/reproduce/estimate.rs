//! A value with its sampling error.

use std::ops::{Add, Sub};

/// How many standard errors an [`Estimate`] reaches to either side: 99.9 % of a normal law.
pub const ERRORS: f64 = 3.290_526_731_491_926;

/// A value that was computed, and the interval in which the true one lies with 99.9 % as far as the number of
/// samples is concerned. What was not sampled has an interval of no width.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end; minus infinity if the samples are too few to tell.
    pub low: f64,
    /// Upper end; infinity if the samples are too few to tell.
    pub high: f64,
}

impl Estimate {
    /// A value without sampling error.
    pub const fn exact(value: f64) -> Estimate {
        Estimate {
            value,
            low: value,
            high: value,
        }
    }

    /// A value with a standard error.
    pub fn with_error(value: f64, standard_error: f64) -> Estimate {
        let half = ERRORS * standard_error;
        Estimate {
            value,
            low: value - half,
            high: value + half,
        }
    }

    /// `count` events that came at random among many more chances (Poisson).
    pub fn counted(count: u64) -> Estimate {
        // the square root of a count has a deviation of one half
        let root = (count as f64 + 0.375).sqrt();
        let end = |root: f64| root.max(0.0).powi(2);
        Estimate {
            value: count as f64,
            low: end(root - ERRORS / 2.0),
            high: end(root + ERRORS / 2.0),
        }
    }

    /// Whether the samples bound the value on both sides.
    pub fn is_bounded(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// Value and interval times a positive factor.
    #[must_use]
    pub fn times(self, factor: f64) -> Estimate {
        Estimate {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    /// The ratio of two positive values; its interval is at least as wide as it must be.
    #[must_use]
    pub fn over(self, other: Estimate) -> Estimate {
        Estimate {
            value: self.value / other.value,
            low: self.low / other.high,
            high: self.high / other.low,
        }
    }

    /// The middle one of several values; `None` of none.
    pub fn median(mut all: Vec<Estimate>) -> Option<Estimate> {
        all.sort_unstable_by(|a, b| a.value.total_cmp(&b.value));
        all.get(all.len() / 2).copied()
    }
}

/// Sums and differences: the half-widths add up, which is wider than needed for independent values.
impl Add for Estimate {
    type Output = Estimate;
    fn add(self, other: Estimate) -> Estimate {
        Estimate {
            value: self.value + other.value,
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }
}

impl Sub for Estimate {
    type Output = Estimate;
    fn sub(self, other: Estimate) -> Estimate {
        Estimate {
            value: self.value - other.value,
            low: self.low - other.high,
            high: self.high - other.low,
        }
    }
}

impl Add<f64> for Estimate {
    type Output = Estimate;
    fn add(self, other: f64) -> Estimate {
        self + Estimate::exact(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_keeps_the_truth_inside() {
        let a = Estimate::with_error(10.0, 1.0 / ERRORS);
        let b = Estimate::with_error(4.0, 0.5 / ERRORS);
        let close = |e: Estimate, low: f64, value: f64, high: f64| {
            assert!((e.low - low).abs() + (e.value - value).abs() + (e.high - high).abs() < 1e-9);
        };
        close(a - b, 4.5, 6.0, 7.5);
        close(a + b, 12.5, 14.0, 15.5);
        close(a + 1.0, 10.0, 11.0, 12.0);
        close(a.times(2.0), 18.0, 20.0, 22.0);
        close(a.over(b), 9.0 / 4.5, 2.5, 11.0 / 3.5);
        assert_eq!(Estimate::median(vec![a, b, b]), Some(b));
        assert_eq!(Estimate::median(Vec::new()), None);
    }

    #[test]
    fn counts_cover_their_mean() {
        // 100 events: exact 99.9 % limits of a Poisson mean are 70.0 and 137.8
        let e = Estimate::counted(100);
        assert!(
            (e.low - 70.0).abs() < 2.0 && (e.high - 137.8).abs() < 2.0,
            "{e:?}"
        );
        assert_eq!(Estimate::counted(0).low, 0.0);
        assert!(Estimate::counted(0).high > 3.0);
    }
}
