//! Statistics of measured samples and counted misses.
//!
//! One definition of each term holds for the whole project:
//! - a quantile is the nearest rank: the smallest sample x with F(x) >= p ([`Sorted::quantile`]). No interpolation.
//! - a standard deviation is that of a sample (divisor n - 1).
//! - an interval without further word has a confidence of 95 % ([`CONFIDENCE`]).
//! - a CCDF is P(X > x), strictly greater.
//!
//! Samples are plain numbers; the unit is whatever the caller put in.

mod batches;
mod decide;
mod online;
mod proportion;
mod running;
mod sorted;
mod special;

pub use batches::Batches;
pub use decide::{Look, More, Sequential, Verdict, more_trials};
pub use online::{Online, OnlineError};
pub use proportion::{Interval, Proportion};
pub use running::Running;
pub use sorted::{CcdfPoint, QuantileInterval, Sample, Sorted, Summary};

/// Confidence of an interval where nothing else is said.
pub const CONFIDENCE: f64 = 0.95;
