//! How often values occur, with bins at round numbers and far outliers counted aside.

use std::fmt::Write;

use super::super::scale::{Along, Axis, Scale, grouped, nice_step, significant};
use super::super::svg::num;
use super::canvas::{Canvas, Margins, Swatch, colour, scales};
use super::{Mark, along, quantity, unit};
use crate::stats::{Sample, Sorted};

const HEIGHT: f64 = 260.0;

/// A histogram of one or several bodies of samples over the same bins; heights are shares of each body.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    x: Axis,
    /// Lower edge of the first bin and width of all bins.
    first: f64,
    width: f64,
    bodies: Vec<Body>,
    marks: Vec<Mark>,
}

#[derive(Clone, Debug, PartialEq)]
struct Body {
    name: String,
    total: u64,
    bins: Vec<u64>,
    below: u64,
    above: u64,
    min: f64,
    max: f64,
}

impl Histogram {
    /// Counts the samples into bins; `unit` is the size of one unit of the axis in units of the samples: 1000 for
    /// samples in ns and an axis in µs. The axis must be linear.
    ///
    /// Bin widths are 1, 2 or 5 times a power of ten near the rule of Freedman and Diaconis (1981). Samples far
    /// outside of the middle 99.8 % are not drawn: a note says how many they are and where the last one is.
    pub fn new<T: Sample>(x: Axis, bodies: &[(&str, &Sorted<T>)], unit: f64) -> Self {
        let at = |s: &Sorted<T>, p: f64| s.quantile(p).map(|v| v.to_f64() / unit);
        let filled = || bodies.iter().map(|(_, s)| *s).filter(|s| !s.is_empty());
        let lowest = |p| filled().filter_map(|s| at(s, p)).fold(f64::INFINITY, f64::min);
        let highest = |p| {
            filled()
                .filter_map(|s| at(s, p))
                .fold(f64::NEG_INFINITY, f64::max)
        };
        let (mut low, mut high) = (lowest(0.0), highest(1.0));
        let (body_low, body_high) = (lowest(0.001), highest(0.999));
        let body = (body_high - body_low).max(0.0);
        if high > body_high + body {
            high = body_high + 0.1 * body;
        }
        if low < body_low - body {
            low = body_low - 0.1 * body;
        }
        let spread = (high - low).max(1e-9 * low.abs().max(high.abs())).max(1e-12);
        let rule = filled().filter_map(|s| {
            let middle = at(s, 0.75)? - at(s, 0.25)?;
            Some(2.0 * middle / (s.len() as f64).cbrt())
        });
        let rough = rule
            .fold(f64::INFINITY, f64::min)
            .clamp(spread / 80.0, spread / 12.0);
        let width = nice_step(if spread.is_finite() { rough } else { 1.0 });
        let first = if low.is_finite() {
            (low / width + 1e-9).floor() * width
        } else {
            0.0
        };
        let count = if high.is_finite() {
            (((high - first) / width + 1e-9).floor() as usize + 1).min(200)
        } else {
            1
        };
        let bodies = bodies.iter().map(|(name, s)| {
            let mut body = Body {
                name: (*name).into(),
                total: s.len() as u64,
                bins: vec![0; count],
                below: 0,
                above: 0,
                min: at(s, 0.0).unwrap_or(0.0),
                max: at(s, 1.0).unwrap_or(0.0),
            };
            for v in s.as_slice() {
                let bin = ((v.to_f64() / unit - first) / width + 1e-9).floor();
                if bin < 0.0 {
                    body.below += 1;
                } else {
                    match body.bins.get_mut(bin as usize) {
                        Some(bin) => *bin += 1,
                        None => body.above += 1,
                    }
                }
            }
            body
        });
        Histogram {
            bodies: bodies.collect(),
            x,
            first,
            width,
            marks: Vec::new(),
        }
    }

    /// Adds a mark.
    pub fn mark(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }

    pub(super) fn draw(&self, title: &str) -> Canvas {
        let share = |body: &Body, count: u64| 100.0 * count as f64 / body.total.max(1) as f64;
        let y_axis = Axis::linear(format!(
            "share of samples per {} (%)",
            significant(self.width) + &unit(&self.x)
        ));
        let shares = self
            .bodies
            .iter()
            .flat_map(|b| b.bins.iter().map(|&c| share(b, c)));
        // room for the labels of upright marks
        let room = if self.marks.iter().any(|m| m.upright) {
            1.12
        } else {
            1.0
        };
        let shares = shares.map(|s| s * room).chain(along(&self.marks, false));
        let (y, width) = scales(&y_axis, shares, true, HEIGHT);
        let count = self.bodies.first().map_or(1, |b| b.bins.len());
        let edge = |i: usize| self.first + self.width * i as f64;
        let ends = [edge(0), edge(count)];
        let empty = self.bodies.iter().all(|b| b.total == 0);
        let ends = ends
            .into_iter()
            .filter(|_| !empty)
            .chain(along(&self.marks, true));
        let x = Scale::new(&self.x, ends, false, Along::Horizontal(width));
        let legend: Vec<_> = self
            .bodies
            .iter()
            .map(|b| (b.name.as_str(), Swatch::Box))
            .collect();
        let margins = Margins {
            labels: y.label_width(),
            upright_label: true,
            lines: 1,
            level_label: true,
            height: HEIGHT,
        };
        let mut canvas = Canvas::new(title, if legend.len() > 1 { &legend } else { &[] }, &margins);
        canvas.x_axis(&x, &self.x);
        canvas.y_axis(&y, &y_axis);
        for (i, body) in self.bodies.iter().enumerate() {
            canvas.svg.start("g", &[("class", &colour(i))]);
            let base = num(canvas.y(&y, 0.0));
            let mut outline = format!("M{} {base}", num(canvas.x(&x, edge(0))));
            for (k, &c) in body.bins.iter().enumerate() {
                let _ = write!(
                    outline,
                    "V{}H{}",
                    num(canvas.y(&y, share(body, c))),
                    num(canvas.x(&x, edge(k + 1)))
                );
            }
            let _ = write!(outline, "V{base}");
            canvas.svg.path(&outline, "veil", "");
            canvas.svg.path(&outline, "whisker", "");
            for (k, &c) in body.bins.iter().enumerate().filter(|(_, c)| **c > 0) {
                let (from, to) = (canvas.x(&x, edge(k)), canvas.x(&x, edge(k + 1)));
                let top = canvas.y(&y, share(body, c));
                let tip = format!(
                    "{}\n{} {} to {}{}\n{c} samples, {} %",
                    body.name,
                    quantity(&self.x),
                    significant(edge(k)),
                    significant(edge(k + 1)),
                    unit(&self.x),
                    significant(share(body, c))
                );
                let height = canvas.top + canvas.height - top;
                canvas.svg.rect((from, top), (to - from, height), "hover", &tip);
            }
            canvas.svg.end("g");
        }
        canvas.frame();
        canvas.marks(&self.marks, Some(&x), Some(&y));
        if empty {
            canvas.no_data();
        }
        for body in &self.bodies {
            let name = match self.bodies.len() {
                1 => String::new(),
                _ => format!("{}: ", body.name),
            };
            let (unit, count_of) = (unit(&self.x), |n: u64| grouped(n as f64, 0));
            let sides = [
                (body.below, "below", edge(0), "smallest", body.min),
                (body.above, "above", edge(count), "largest", body.max),
            ];
            for (n, side, end, most, value) in sides.into_iter().filter(|s| s.0 > 0) {
                let (end, value) = (significant(end), significant(value));
                let (n, total) = (count_of(n), count_of(body.total));
                canvas.note(&format!(
                    "{name}{n} of {total} samples {side} {end}{unit} not drawn, the {most} {value}{unit}"
                ));
            }
        }
        canvas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(samples: Vec<u64>) -> (Vec<u64>, u64, f64, f64) {
        let h = Histogram::new(Axis::linear("t (µs)"), &[("a", &Sorted::new(samples))], 1000.0);
        (h.bodies[0].bins.clone(), h.bodies[0].above, h.first, h.width)
    }

    #[test]
    fn every_sample_is_counted_once() {
        let samples: Vec<u64> = (0..10_000).map(|i| 2_600 + (i * 7919) % 1_500).collect();
        let (bins, above, first, width) = counts(samples);
        assert_eq!((bins.iter().sum::<u64>(), above), (10_000, 0));
        // Freedman and Diaconis: 2 * 0.75 / 10,000^(1/3) = 0.07
        assert_eq!(width, 0.1);
        assert!((first - 2.6).abs() < 1e-9);
        // a uniform body fills all bins alike
        assert!(bins.iter().all(|&b| (640..700).contains(&b)), "{bins:?}");
    }

    #[test]
    fn outliers_are_set_aside() {
        let mut samples: Vec<u64> = (0..9_999).map(|i| 100_000 + i).collect();
        samples.push(7_000_000_000);
        let (bins, above, ..) = counts(samples);
        assert_eq!((bins.iter().sum::<u64>(), above), (9_999, 1));
    }

    #[test]
    fn few_and_equal_samples() {
        assert_eq!(counts(vec![]).0, [0]);
        let (bins, above, first, width) = counts(vec![5_000; 7]);
        assert_eq!((bins.iter().sum::<u64>(), above), (7, 0));
        assert!(first <= 5.0 && first + width * bins.len() as f64 > 5.0);
        assert_eq!(counts(vec![0, 0]).0.iter().sum::<u64>(), 2);
        assert_eq!(counts(vec![u64::MAX, 0, 3]).0.iter().sum::<u64>(), 3);
    }
}
