//! Figures 5.1 to 5.12 of the thesis from our runs, with what its text says of them.
//!
//! | module | figures |
//! |---|---|
//! | [`hops`] | 5.1, 5.4 to 5.7: chains, over hops, and distributions over the runs |
//! | [`course`] | 5.2, 5.3: one flow over time |
//! | [`stack`] | 5.8, 5.9: the stack, and its flows over time |
//! | [`random`] | 5.10 to 5.12: flows between random nodes |
//!
//! Runs are those with adapters that try once, as the thesis says.

mod course;
mod hops;
mod random;
mod stack;

pub(super) use course::windows;

use super::plan::Measured;
use super::{Values, atp_claims};
use crate::report::plot::{Figure, Point, Series, Shape};
use crate::reproduce::claims::Claim;

/// The plots, each with the name of its file; those that nothing was run for are left out.
pub fn figures(measured: &Measured) -> Vec<(&'static str, Figure)> {
    let said = Said::new(measured);
    let mut all = hops::figures(measured, &said);
    all.extend(course::figures(measured, &said));
    all.extend(stack::figures(measured, &said));
    all.extend(random::figures(measured, &said));
    all.sort_by_key(|(file, _)| number(file));
    all
}

/// Files in the order of the thesis: 5.10 comes after 5.9.
fn number(file: &str) -> (u32, String) {
    let rest = file.trim_start_matches("fig5.");
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    (rest[..digits].parse().unwrap_or(0), rest[digits..].to_owned())
}

/// The numbers of the text, and ours.
struct Said {
    claims: Vec<Claim>,
    ours: Values,
}

impl Said {
    fn new(measured: &Measured) -> Said {
        Said {
            claims: atp_claims(),
            ours: Values::of_atp(measured),
        }
    }

    /// A number of the thesis.
    ///
    /// # Panics
    /// If no row states it. The rows are part of the program, and the tests draw every figure.
    fn thesis(&self, id: &str, name: &str) -> f64 {
        let claim = self.claims.iter().find(|c| c.id == id);
        let value = claim.and_then(|c| c.values.iter().find(|v| v.name == name));
        value.and_then(|v| v.paper).expect("a row of the claims")
    }

    /// The same as words, with ours if it was run: "47 % (ours 545 %)".
    fn both(&self, id: &str, name: &str, unit: &str) -> String {
        let thesis = self.thesis(id, name);
        match self.ours.get(id, name) {
            Some(ours) => format!("{thesis}{unit} (ours {}{unit})", Short(ours.value)),
            None => format!("{thesis}{unit}"),
        }
    }
}

/// A number of at most three digits behind the point, and none from 100 on.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = match self.0.abs() {
            x if x >= 100.0 => 0,
            x if x >= 1.0 => 1,
            _ => 2,
        };
        write!(f, "{:.digits$}", self.0)
    }
}

/// The mean of the runs, with a bar of one standard deviation to either side; nothing without runs.
fn over_runs(x: f64, runs: &[f64]) -> Option<Point> {
    if runs.is_empty() {
        return None;
    }
    let n = runs.len() as f64;
    let mean = runs.iter().sum::<f64>() / n;
    let squares: f64 = runs.iter().map(|x| (x - mean) * (x - mean)).sum();
    let deviation = (squares / n).sqrt();
    Some(Point::with_bar(x, mean, mean - deviation, mean + deviation))
}

/// What points with bars are.
const BARS: &str = "Means over the runs; bars: one standard deviation to either side.";

/// The share of values that are no larger. Values are not sorted, and are positive.
fn distribution(name: &str, mut values: Vec<f64>) -> Series {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len() as f64;
    let from = values.first().map(|x| (*x, 0.0));
    let steps = (1..).zip(&values).map(|(i, x)| (*x, f64::from(i) / n));
    Series::new(
        name,
        Shape::Step,
        from.into_iter().chain(steps).collect::<Vec<_>>(),
    )
}

#[cfg(test)]
mod tests;
