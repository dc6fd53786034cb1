//! The distribution of a sum of latencies from those of its parts, computed and not drawn.
//!
//! Independent parts are convolved on a grid. Parts that depend on each other do so through normal numbers in common
//! (the host model's Gaussian copula): given these numbers they are independent, so the sum is convolved for each
//! value of them, and these sums are weighted with the normal law.

use sim::host::{Dependencies, Distribution, HostModel, Means, Outcome, Part};

use super::estimate::Estimate;

/// Distance between two points of the grid, ns. A latency between two points counts for both, in such shares that
/// its mean is kept.
pub const STEP_NS: f64 = 20.0;
/// Values of a normal number per unit, where a latency follows from it alone.
const FINE: usize = 64;
/// Values of a number in common per unit, where a convolution is needed for each.
const COARSE: usize = 16;
/// Beyond this there is one draw in 10^10.
const Z_MAX: f64 = 6.5;

/// A distribution on the grid.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Density {
    /// Number of the first point of the grid.
    first: usize,
    mass: Vec<f64>,
    /// Variance that the grid has added, ns^2.
    blur: f64,
}

impl Density {
    /// Always `ns`, which is at least 0.
    fn point(ns: f64) -> Density {
        let mut d = Density::default();
        d.add(ns, 1.0);
        d
    }

    /// The distribution of `latency_ns` of a standard normal number.
    fn of(latency_ns: impl Fn(f64) -> f64) -> Density {
        let mut d = Density::default();
        for (z, weight) in normal(FINE) {
            d.add(latency_ns(z), weight);
        }
        d
    }

    fn add(&mut self, ns: f64, weight: f64) {
        let at = ns.max(0.0) / STEP_NS;
        let (below, part) = (at.floor(), at.fract());
        self.add_at(below as usize, weight * (1.0 - part));
        self.add_at(below as usize + 1, weight * part);
        self.blur += weight * part * (1.0 - part) * STEP_NS * STEP_NS;
    }

    fn add_at(&mut self, point: usize, weight: f64) {
        if self.mass.is_empty() {
            self.first = point;
        }
        if point < self.first {
            let more = self.first - point;
            self.mass.splice(0..0, std::iter::repeat_n(0.0, more));
            self.first = point;
        }
        let at = point - self.first;
        if at >= self.mass.len() {
            self.mass.resize(at + 1, 0.0);
        }
        self.mass[at] += weight;
    }

    /// Takes in another distribution with a weight.
    fn mix(&mut self, other: &Density, weight: f64) {
        for (point, mass) in other.points() {
            self.add_at(point, weight * mass);
        }
        self.blur += weight * other.blur;
    }

    /// The distribution of the sum of two independent latencies.
    #[must_use]
    pub fn convolve(&self, other: &Density) -> Density {
        let mut mass = vec![0.0; (self.mass.len() + other.mass.len()).saturating_sub(1)];
        for (at, own) in self.mass.iter().enumerate().filter(|(_, m)| **m > 0.0) {
            let sums = &mut mass[at..at + other.mass.len()];
            sums.iter_mut()
                .zip(&other.mass)
                .for_each(|(sum, m)| *sum += own * m);
        }
        Density {
            first: self.first + other.first,
            mass,
            blur: self.blur + other.blur,
        }
    }

    /// Points with their probability.
    fn points(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        (self.first..).zip(self.mass.iter().copied())
    }

    /// The mean, us.
    pub fn mean_us(&self) -> f64 {
        let sum: f64 = self.points().map(|(point, mass)| point as f64 * mass).sum();
        sum * STEP_NS / 1e3
    }

    /// The standard deviation, us: without what the grid adds.
    pub fn sd_us(&self) -> f64 {
        let mean = self.mean_us() * 1e3 / STEP_NS;
        let square: f64 = self
            .points()
            .map(|(point, mass)| (point as f64 - mean).powi(2) * mass)
            .sum();
        (square * STEP_NS * STEP_NS - self.blur).max(0.0).sqrt() / 1e3
    }

    /// The latency that a share `p` (0..=1) does not exceed, us; within a step of the grid.
    pub fn quantile_us(&self, p: f64) -> f64 {
        let mut below = 0.0;
        let mut last = self.first;
        for (point, mass) in self.points() {
            last = point;
            if below + mass >= p && mass > 0.0 {
                // the mass of a point stands for the step around it
                return (point as f64 - 0.5 + (p - below) / mass) * STEP_NS / 1e3;
            }
            below += mass;
        }
        last as f64 * STEP_NS / 1e3
    }
}

/// Middles of equal cells of a standard normal number, with their probabilities, which add up to 1.
fn normal(per_unit: usize) -> impl Iterator<Item = (f64, f64)> {
    let cells = (2.0 * Z_MAX * per_unit as f64) as usize;
    let edge = move |cell: usize| match cell {
        0 => 0.0,
        c if c == cells => 1.0,
        c => {
            let z = c as f64 / per_unit as f64 - Z_MAX;
            0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
        }
    };
    (0..cells).map(move |cell| {
        let z = (cell as f64 + 0.5) / per_unit as f64 - Z_MAX;
        (z, edge(cell + 1) - edge(cell))
    })
}

/// The parts of a path, every one of which sees `common` times the path's number and a number of its own.
struct Path<'a> {
    parts: &'a [Distribution],
    common: f64,
}

impl Path<'_> {
    /// The sum where all parts see the path's number and nothing else.
    fn at(&self, number: f64) -> f64 {
        self.parts.iter().map(|part| part.at_normal_ns(number)).sum()
    }

    /// The sum, given the path's number.
    fn given(&self, number: f64) -> Density {
        let own = (1.0 - self.common * self.common).sqrt();
        let parts = self.parts.iter();
        parts
            .map(|part| Density::of(|z| part.at_normal_ns(self.common * number + own * z)))
            .fold(Density::point(0.0), |sum, part| sum.convolve(&part))
    }

    /// The sum.
    fn whole(&self) -> Density {
        if self.common == 0.0 {
            return self.given(0.0);
        }
        if self.common == 1.0 {
            return Density::of(|z| self.at(z));
        }
        let mut all = Density::default();
        for (number, weight) in normal(COARSE) {
            all.mix(&self.given(number), weight);
        }
        all
    }
}

/// The sum of two paths whose numbers have the correlation `r`. `None` if that is not 0 and a path has parts with
/// numbers of their own: nothing published needs it.
fn both(request: &Path<'_>, confirm: &Path<'_>, r: f64) -> Option<Density> {
    if r == 0.0 {
        return Some(request.whole().convolve(&confirm.whole()));
    }
    if request.common < 1.0 || confirm.common < 1.0 {
        return None;
    }
    let rest = (1.0 - r * r).sqrt();
    let others: Vec<_> = normal(FINE).collect();
    let mut all = Density::default();
    for (number, weight) in normal(FINE) {
        let first = request.at(number);
        for (other, share) in &others {
            all.add(first + confirm.at(r * number + rest * other), weight * share);
        }
    }
    Some(all)
}

/// What the host model says of one outcome, without a draw.
#[derive(Clone, Debug)]
pub struct Computed {
    /// The exact means.
    pub means: Means,
    /// T_sw_req.
    pub request: Density,
    /// T_sw_con.
    pub confirm: Density,
    /// T_SDMAC; `None` where it cannot be computed (see [`Computed::new`]).
    pub total: Option<Density>,
}

impl Computed {
    /// Of 50 octets of payload. There is no total if the two paths depend on each other and are not given as totals.
    pub fn new(model: &HostModel, outcome: Outcome) -> Computed {
        let part = |part| {
            let found = model.distribution(part, outcome);
            found.expect("the model has every single part as a table")
        };
        let request = [
            Part::RequestApi,
            Part::RequestDriverIndependent,
            Part::RequestDriverDependent,
        ];
        let confirm = [
            Part::Isr,
            Part::ConfirmDriverDependent,
            Part::ConfirmDriverIndependent,
            Part::ConfirmApi,
        ];
        let (request, confirm) = (request.map(part), confirm.map(part));
        let Dependencies {
            request: of_request,
            confirm: of_confirm,
            paths,
        } = model.dependencies(outcome);
        let request = Path {
            parts: &request,
            common: of_request,
        };
        let confirm = Path {
            parts: &confirm,
            common: of_confirm,
        };
        let hardware = part(Part::Hardware);
        let hardware = Density::of(|z| hardware.at_normal_ns(z));
        Computed {
            means: model.means(outcome, 50),
            total: both(&request, &confirm, paths).map(|software| software.convolve(&hardware)),
            request: request.whole(),
            confirm: confirm.whole(),
        }
    }
}

/// Whether a computed value may be what was simulated: no further from the simulated value than twice its interval
/// reaches and a step of the grid. What too few samples do not bound is not contradicted.
pub fn agrees(computed: f64, simulated: &Estimate) -> bool {
    let step = STEP_NS / 1e3;
    let low = simulated.value - 2.0 * (simulated.value - simulated.low) - step;
    let high = simulated.value + 2.0 * (simulated.high - simulated.value) + step;
    (low..=high).contains(&computed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::host::{Knots, Profile};

    /// z with P(Z < z) = p, by bisection.
    fn z(p: f64) -> f64 {
        let (mut low, mut high) = (-8.0, 8.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if 0.5 * libm::erfc(-middle / std::f64::consts::SQRT_2) < p {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    fn close(ours: f64, exact: f64, within: f64) {
        assert!((ours - exact).abs() <= within, "{ours} {exact}");
    }

    /// Uniform from `least` to `most` ns.
    fn uniform(least: f64, most: f64) -> Distribution {
        let knots = Knots {
            points: vec![(0.0, least), (1.0, most)],
            mean_ns: None,
        };
        Distribution::from_knots(&knots).unwrap()
    }

    #[test]
    fn normal_laws_add_up_to_a_normal_law() {
        let a = Density::of(|z| 20_000.0 + 300.0 * z);
        let b = Density::of(|z| 30_000.0 + 400.0 * z);
        let sum = a.convolve(&b);
        close(sum.mean_us(), 50.0, 1e-6);
        close(sum.sd_us(), 0.5, 1e-4);
        // narrower than the grid
        let narrow = Density::of(|z| 10_007.0 + 3.0 * z);
        close(narrow.sd_us(), 0.003, 1e-5);
        for p in [0.001, 0.5, 0.99, 0.9999] {
            close(sum.quantile_us(p), 50.0 + 0.5 * z(p), 0.005);
        }
    }

    #[test]
    fn uniform_laws_add_up_to_a_triangle() {
        let parts = [uniform(1_000.0, 5_000.0), uniform(2_000.0, 6_000.0)];
        let path = Path {
            parts: &parts,
            common: 0.0,
        };
        let sum = path.whole();
        close(sum.mean_us(), 7.0, 1e-3);
        // P(sum > 11 - x) = x^2 / 32 for x up to 4 us
        for p in [0.5, 0.99, 0.999] {
            close(sum.quantile_us(p), 11.0 - (32.0 * (1.0 - p)).sqrt(), 0.02);
        }
    }

    #[test]
    fn with_one_number_the_quantiles_add_up() {
        let parts = [uniform(0.0, 4_000.0), Distribution::constant(500.0)];
        let path = |common| Path {
            parts: &parts,
            common,
        };
        let more = [uniform(10_000.0, 50_000.0)];
        let other = Path {
            parts: &more,
            common: 1.0,
        };
        let sum = both(&path(1.0), &other, 1.0).unwrap();
        for p in [0.01, 0.5, 0.999] {
            close(sum.quantile_us(p), 10.5 + 44.0 * p, 0.3);
        }
        assert_eq!(both(&path(0.5), &other, 0.5), None);
    }

    /// Two normal latencies with correlation r: the sum is normal, whether they are two parts or two paths.
    #[test]
    fn correlated_normal_laws_add_up_to_a_wider_one() {
        // the tables of a distribution are made of knots: enough of them for a straight line
        let points = (1..2_000).map(|i| {
            let p = f64::from(i) / 2_000.0;
            (p, 20_000.0 + 1_000.0 * z(p))
        });
        let knots = Knots {
            points: points.collect(),
            mean_ns: None,
        };
        let one = Distribution::from_knots(&knots).unwrap();
        let (r, parts) = (0.6_f64, [one.clone(), one]);
        let as_parts = Path {
            parts: &parts,
            common: r.sqrt(),
        };
        let [first, second] = parts.each_ref().map(|part| Path {
            parts: std::slice::from_ref(part),
            common: 1.0,
        });
        for sum in [as_parts.whole(), both(&first, &second, r).unwrap()] {
            close(sum.mean_us(), 40.0, 1e-3);
            for p in [0.05, 0.5, 0.95, 0.99] {
                close(sum.quantile_us(p), 40.0 + (2.0 + 2.0 * r).sqrt() * z(p), 0.03);
            }
        }
    }

    /// The mean on the grid is that of the model's tables.
    #[test]
    fn means_are_exact() {
        for name in ["table4-baseline-io", "table4-optimised-idle", "table5", "ideal"] {
            let model = HostModel::new(&Profile::built_in(name).unwrap()).unwrap();
            for outcome in [Outcome::Acked, Outcome::Timeout] {
                let c = Computed::new(&model, outcome);
                close(c.request.mean_us(), c.means.request_ns / 1e3, 1e-3);
                close(c.confirm.mean_us(), c.means.confirm_ns / 1e3, 1e-3);
                close(c.total.unwrap().mean_us(), c.means.total_ns() / 1e3, 1e-3);
            }
        }
    }

    #[test]
    fn a_simulation_contradicts_what_is_far_from_it() {
        let simulated = Estimate {
            value: 10.0,
            low: 9.0,
            high: 12.0,
        };
        assert!(agrees(8.0, &simulated) && agrees(14.0, &simulated));
        assert!(!agrees(7.9, &simulated) && !agrees(14.1, &simulated));
        let open = Estimate {
            high: f64::INFINITY,
            ..simulated
        };
        assert!(agrees(1e9, &open));
    }
}
