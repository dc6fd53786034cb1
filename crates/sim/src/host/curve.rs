//! A function of a standard normal number as a table.
//!
//! The table is indexed by a standard normal number z, not by a probability: entry `Q(P(Z < z))`. On that scale
//! equal steps resolve the body and the far tails equally well, a copula needs no further function, and a draw is
//! one look-up with linear interpolation. Moments are those of the interpolated table, so they are exactly what the
//! sampler returns.

use super::normal;
use std::sync::OnceLock;

/// The table ends this many standard deviations from the median: one draw in 10^10 falls outside on either side.
const Z_MAX: f64 = 6.5;
/// Entries per unit of z. At the 99.99th percentile one cell is 3 % of the remaining tail.
const PER_UNIT: usize = 128;
const CELLS: usize = 2 * 6 * PER_UNIT + PER_UNIT;

/// A function of a standard normal number, linear between equally spaced entries and flat outside them.
#[derive(Clone, PartialEq)]
pub(super) struct Curve(Box<[f64; CELLS + 1]>);

impl std::fmt::Debug for Curve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Curve({} to {} ns)", self.0[0], self.0[CELLS])
    }
}

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

    /// As [`Curve::tabulate`] for a quantile function, which is asked at infinity for its minimum and maximum.
    pub(super) fn quantiles(f: impl Fn(f64) -> f64) -> Self {
        Self::tabulate(|z| {
            if z.abs() < Z_MAX {
                f(z)
            } else {
                f(z * f64::INFINITY)
            }
        })
    }

    /// The value at `z`.
    #[inline]
    pub(super) fn at(&self, z: f64) -> f64 {
        let x = ((z + Z_MAX) * PER_UNIT as f64).clamp(0.0, CELLS as f64);
        // Signed conversions between integers and floats are the cheap ones.
        let cell = (x as i32 as usize).min(CELLS - 1);
        let from = self.0[cell];
        from + (x - cell as f64) * (self.0[cell + 1] - from)
    }

    /// The first and the last entry.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.0[0], self.0[CELLS])
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

    /// Every entry but the first and last a `fraction` of the way towards its neighbour (`toward` 1 or -1), which
    /// keeps the order.
    pub(super) fn moved(&self, toward: isize, fraction: f64) -> Curve {
        let mut entries = self.0.clone();
        for index in 1..CELLS {
            let neighbour = self.0[index.wrapping_add_signed(toward)];
            entries[index] += fraction * (neighbour - self.0[index]);
        }
        Curve(entries)
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
            self.outside * (end - origin) * (end - origin),
        );
        for (pair, [mass, first, second]) in values.windows(2).zip(&self.cells) {
            let (low, rise) = (pair[0] - origin, pair[1] - pair[0]);
            mean += low * mass + rise * first;
            square += low * low * mass + 2.0 * low * rise * first + rise * rise * second;
        }
        (origin + mean, (square - mean * mean).max(0.0).sqrt())
    }
}

/// To whole nanoseconds, nearest; negative becomes 0.
#[inline]
pub(super) fn whole(ns: f64) -> u64 {
    ((ns + 0.5) as i64).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_polynomials_in_z_are_those_of_the_normal_law() {
        let line = Curve::tabulate(|z| 100_000.0 + 5_000.0 * z);
        let (mean, sd) = line.moments();
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
    fn entries_give_way_without_changing_places() {
        let curve = Curve::tabulate(|z| 100.0 * z.max(0.0));
        for (toward, fraction) in [(1, 0.5), (1, 1.0), (-1, 0.3)] {
            let moved = curve.moved(toward, fraction);
            assert!(moved.rises().all(|(_, rise)| rise >= 0.0));
            assert_eq!((moved.at(-9.0), moved.at(9.0)), (curve.at(-9.0), curve.at(9.0)));
            let (before, after) = (curve.moments().0, moved.moments().0);
            assert!((after - before).signum() == toward as f64, "{before} {after}");
        }
    }
}
