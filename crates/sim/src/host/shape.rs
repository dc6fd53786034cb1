//! From the numbers in a published table to a quantile function that has exactly these numbers.
//!
//! A table gives mean, standard deviation, minimum, a few high percentiles and the maximum. The distribution made
//! from them has these parts, by the probability s of a larger value:
//!
//! - the **tail**, from the first published percentile up: straight between the published points when drawn over
//!   ln s, that is, exponential pieces. The maximum of n samples stands at s = 1/n, and nothing lies above it;
//! - the **body**, up to one decade of s below that percentile: a Kumaraswamy law (a close relative of the Beta law
//!   whose quantile function has a closed form) between the minimum and that percentile. Its two parameters are
//!   solved so that mean and standard deviation of the whole come out;
//! - the **bridge**, straight over ln s in the decade between them;
//! - the **foot**, the lowest thousandth (of few samples, the lowest thirty): straight over ln(1 - s) down to the
//!   minimum, which of n samples stands at 1 - s = 1/n.
//!
//! If the straight pieces alone already have more variance than the table states, the bridge and the first piece
//! above it become steps that rise late: then rare long latencies form a mode of their own.

use super::curve::{Curve, Weights};
use super::normal;
use std::sync::OnceLock;

/// Cells per unit of z in the grid on which the body is searched.
const COARSE_CELLS: usize = 16;
/// How late bridge and first tail piece rise, tried in turn: 0 is straight, k has its middle at k/(1 + k) of the
/// piece.
const STEPS: [f64; 8] = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// The points of the quantile function that are given, in ns; the body in between is free.
pub(super) struct Shape {
    pub(super) mean: f64,
    pub(super) sd: f64,
    pub(super) min: f64,
    /// The body's upper end: the first tail point, or the maximum.
    pub(super) top: f64,
    /// 1 - s at the minimum and where the body begins; `None` if the body reaches down to the minimum.
    pub(super) foot: Option<(f64, f64)>,
    /// (ln s, ns) of the tail's points, s falling.
    pub(super) tail: Vec<(f64, f64)>,
}

/// The parameters of the body, both dimensionless: the median of the Kumaraswamy law on 0..1, and its exponent a.
#[derive(Clone, Copy, Debug)]
struct Body {
    median: f64,
    ln_a: f64,
}

impl Shape {
    /// The quantile function with the stated mean and standard deviation, or if the latter is out of reach, with
    /// the nearest. `None` if the mean is out of reach.
    pub(super) fn solve(&self) -> Option<Curve> {
        static COARSE: OnceLock<Grid> = OnceLock::new();
        let grid = COARSE.get_or_init(|| Grid::new(COARSE_CELLS));
        let excess = |body: Body, step: f64| {
            let law = Law::new(self, body, step);
            let values: Vec<f64> = grid.ln_s.iter().map(|&ln_s| law.quantile(ln_s)).collect();
            let (mean, sd) = grid.weights.moments(&values);
            (mean - self.mean, sd - self.sd)
        };
        let with_mean = |ln_a: f64, step: f64| {
            let of_median = |median| excess(Body { median, ln_a }, step).0;
            Body {
                median: root(of_median, 1e-9, 1.0 - 1e-9, 1e-5 * self.sd),
                ln_a,
            }
        };
        let (widest, narrowest) = (libm::log(0.05), libm::log(100.0));
        let fits = |&step: &f64| excess(with_mean(narrowest, step), step).1 < 0.0;
        let step = STEPS.into_iter().find(fits).unwrap_or(STEPS[STEPS.len() - 1]);
        let of_a = |ln_a| excess(with_mean(ln_a, step), step).1;
        let body = with_mean(root(of_a, widest, narrowest, 1e-3 * self.sd), step);
        let (mean, sd) = excess(body, step);
        (mean.abs() < 0.01 * self.sd).then(|| self.refine(body, step, sd.abs() < 0.01 * self.sd))
    }

    /// Newton's method on mean and standard deviation of the full table, as long as it helps; on the mean alone if
    /// the deviation is out of reach.
    fn refine(&self, mut body: Body, step: f64, reachable: bool) -> Curve {
        let table = |body: Body| {
            let law = Law::new(self, body, step);
            Curve::quantiles(|z| law.quantile(ln_upper(z)))
        };
        let miss = |curve: &Curve| {
            let (mean, sd) = curve.moments();
            (mean - self.mean, if reachable { sd - self.sd } else { 0.0 })
        };
        let mut curve = table(body);
        let (mut mean, mut sd) = miss(&curve);
        for _ in 0..4 {
            if mean.abs() + sd.abs() < 5e-3 {
                break;
            }
            let (by, by_ln) = (1e-4 * body.median.min(1.0 - body.median), 1e-4);
            let along_median = miss(&table(Body {
                median: body.median + by,
                ..body
            }));
            let along_a = miss(&table(Body {
                ln_a: body.ln_a + by_ln,
                ..body
            }));
            let (a, c) = ((along_median.0 - mean) / by, (along_median.1 - sd) / by);
            let (b, d) = match reachable {
                true => ((along_a.0 - mean) / by_ln, (along_a.1 - sd) / by_ln),
                false => (0.0, 1.0),
            };
            let determinant = a * d - b * c;
            body.median -= (d * mean - b * sd) / determinant;
            body.ln_a -= (a * sd - c * mean) / determinant;
            if !(body.median > 0.0 && body.median < 1.0 && body.ln_a.is_finite()) {
                break;
            }
            let next = table(body);
            let missing = miss(&next);
            if missing.0.abs() + missing.1.abs() >= mean.abs() + sd.abs() {
                break;
            }
            (curve, mean, sd) = (next, missing.0, missing.1);
        }
        curve
    }
}

/// The quantile function for one body and step.
struct Law<'a> {
    shape: &'a Shape,
    step: f64,
    inverse_a: f64,
    inverse_b: f64,
    /// (ln s, ns) where the body ends and the bridge begins.
    bridge: (f64, f64),
    /// (ln s, ln(1 - s), ns) where the foot ends and the body begins, and ln(1 - s) at the minimum.
    foot: Option<((f64, f64, f64), f64)>,
}

impl<'a> Law<'a> {
    fn new(shape: &'a Shape, body: Body, step: f64) -> Self {
        let a = libm::exp(body.ln_a);
        let inverse_b = -libm::log1p(-libm::pow(body.median, a)) / std::f64::consts::LN_2;
        let bridge = shape
            .tail
            .first()
            .map_or(f64::NEG_INFINITY, |point| point.0 + std::f64::consts::LN_10);
        let mut law = Law {
            shape,
            step,
            inverse_a: 1.0 / a,
            inverse_b,
            bridge: (bridge.min(-0.1), 0.0),
            foot: None,
        };
        law.bridge.1 = law.body(law.bridge.0);
        law.foot = shape.foot.map(|(end, start)| {
            let ln_s = libm::log1p(-start);
            ((ln_s, libm::log(start), law.body(ln_s)), libm::log(end))
        });
        law
    }

    /// Kumaraswamy's law, Q = (1 - s^(1/b))^(1/a), stretched from the minimum to the body's upper end.
    fn body(&self, ln_s: f64) -> f64 {
        let unit = libm::pow(-libm::expm1(ln_s * self.inverse_b), self.inverse_a);
        self.shape.min + (self.shape.top - self.shape.min) * unit
    }

    /// The quantile where a larger value has the probability s.
    fn quantile(&self, ln_s: f64) -> f64 {
        match self.foot {
            Some(((start_ln_s, start, at_start), end)) if ln_s > start_ln_s => {
                let up = (libm::log(-libm::expm1(ln_s)) - end) / (start - end);
                self.shape.min + (at_start - self.shape.min) * up.max(0.0)
            }
            _ if ln_s >= self.bridge.0 => self.body(ln_s),
            _ => self.above(ln_s),
        }
    }

    /// Bridge and tail.
    fn above(&self, ln_s: f64) -> f64 {
        let tail = &self.shape.tail;
        let next = tail.partition_point(|point| point.0 > ln_s);
        let from = if next == 0 { self.bridge } else { tail[next - 1] };
        let Some(to) = tail.get(next) else { return from.1 };
        let along = (from.0 - ln_s) / (from.0 - to.0);
        let up = if next <= 1 && self.step > 0.0 {
            let cube = |x: f64| x * x * x;
            cube(along) / (cube(along) + cube(self.step * (1.0 - along)))
        } else {
            along
        };
        from.1 + (to.1 - from.1) * up
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

/// Where the monotone `f` is 0 between `lo` and `hi`, by the Illinois method, with a bisection whenever three steps
/// did not halve the interval; without a change of sign, the end where |f| is smaller.
fn root(f: impl Fn(f64) -> f64, mut lo: f64, mut hi: f64, tolerance: f64) -> f64 {
    let (mut at_lo, mut at_hi) = (f(lo), f(hi));
    if at_lo.signum() == at_hi.signum() {
        return if at_lo.abs() < at_hi.abs() { lo } else { hi };
    }
    let mut width = (hi - lo).abs();
    for step in 1..200 {
        let mut x = (lo * at_hi - hi * at_lo) / (at_hi - at_lo);
        if step % 3 == 0 {
            if (hi - lo).abs() > 0.5 * width {
                x = 0.5 * (lo + hi);
            }
            width = (hi - lo).abs();
        }
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

    #[test]
    fn the_root_of_a_monotone_function_or_the_nearer_end() {
        let cubic = |x: f64| x * x * x - 2.0;
        assert!((root(cubic, 0.0, 10.0, 1e-12) - 2f64.cbrt()).abs() < 1e-12);
        assert!((root(|x| -cubic(x), 0.0, 10.0, 1e-12) - 2f64.cbrt()).abs() < 1e-12);
        // Flat at one end, steep at the other.
        assert!((root(|x| (50.0 * x).exp() - 2.0, 0.0, 10.0, 1e-9) - 2f64.ln() / 50.0).abs() < 1e-9);
        assert_eq!(root(|x| x + 1.0, 0.0, 5.0, 1e-9), 0.0);
        assert_eq!(root(|x| x - 7.0, 0.0, 5.0, 1e-9), 5.0);
    }

    /// Without points in between the body is Kumaraswamy's law alone; for a = 1, b = 2 that is Q = 1 - sqrt(s) with
    /// mean 1/3 and variance 1/18.
    #[test]
    fn a_body_alone_is_kumaraswamys_law() {
        let sd = 1e6 / 18f64.sqrt();
        let shape = Shape {
            mean: 1e6 / 3.0,
            sd,
            min: 0.0,
            top: 1e6,
            foot: None,
            tail: Vec::new(),
        };
        let curve = shape.solve().unwrap();
        for p in [0.01, 0.1, 0.5, 0.9, 0.99] {
            let (ours, exact) = (curve.at(normal::quantile(p)), 1e6 * (1.0 - (1.0 - p).sqrt()));
            assert!((ours - exact).abs() < 200.0, "{p}: {ours} {exact}");
        }
    }
}
