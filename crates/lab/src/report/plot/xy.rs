//! Curves, steps and points with error bars over two axes.

use std::fmt::Write;

use super::super::scale::{Along, Axis, Scale, drawable, significant};
use super::super::svg::num;
use super::canvas::{CURVE_HEIGHT, Canvas, LOOKS, Margins, Swatch, colour, scales};
use super::{Mark, along, quantity, unit};
use crate::stats::CcdfPoint;

/// A curve of more points is thinned before it is drawn, to the lowest and highest of each piece.
const MOST_POINTS: usize = 4000;
/// A curve of more points has no tooltips of its points.
const MOST_TOOLTIPS: usize = 250;

/// A plot over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Xy {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, first below.
    pub series: Vec<Series>,
    /// Lines across.
    pub marks: Vec<Mark>,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// How they are drawn.
    pub shape: Shape,
    /// In the order in which they are joined.
    pub points: Vec<Point>,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Joined by straight lines.
    Line,
    /// A value holds until the next point: counts, distribution functions.
    Step,
    /// Dots.
    Points,
    /// Dots joined by straight lines.
    LinePoints,
}

/// A point, with an error bar if it has `low` and `high`. What is not finite is left out, and noted below the plot.
/// A y that is not positive lies below every logarithmic axis: curves run off the bottom, and of a dot only
/// the error bar remains, with a ring at its upper end, as for "no miss seen, at most this much".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// Ends of the error bar along the vertical axis.
    pub bar: Option<(f64, f64)>,
}

impl Point {
    /// A point without error bar.
    pub fn new(x: f64, y: f64) -> Self {
        Point { x, y, bar: None }
    }

    /// A point whose y is uncertain between `low` and `high`.
    pub fn with_bar(x: f64, y: f64, low: f64, high: f64) -> Self {
        Point {
            x,
            y,
            bar: Some((low, high)),
        }
    }

    fn is_drawable(&self) -> bool {
        let bar = self.bar.is_none_or(|(low, high)| drawable(low) && drawable(high));
        drawable(self.x) && drawable(self.y) && bar
    }
}

impl Series {
    /// A series from pairs of x and y.
    pub fn new(name: impl Into<String>, shape: Shape, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Series {
            name: name.into(),
            shape,
            points: points.into_iter().map(|(x, y)| Point::new(x, y)).collect(),
        }
    }

    /// A CCDF; `unit` is the size of one unit of the axis in units of the samples: 1000 for samples in ns and an
    /// axis in µs.
    pub fn ccdf(name: impl Into<String>, points: &[CcdfPoint], unit: f64) -> Self {
        let first = points.first().map(|c| (c.x / unit, 1.0));
        let rest = points.iter().map(|c| (c.x / unit, c.p));
        Series::new(name, Shape::Step, first.into_iter().chain(rest))
    }
}

impl Xy {
    /// Two axes without content.
    pub fn new(x: Axis, y: Axis) -> Self {
        Xy {
            x,
            y,
            series: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Adds a series.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a mark.
    pub fn mark(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }

    pub(super) fn draw(&self, title: &str) -> Canvas {
        let points = || {
            self.series
                .iter()
                .flat_map(|s| &s.points)
                .filter(|p| p.is_drawable() && self.x.shows(p.x))
        };
        let ys = points().flat_map(|p| {
            let (low, high) = p.bar.unwrap_or((p.y, p.y));
            [p.y, low, high]
        });
        let (y, width) = scales(&self.y, ys.chain(along(&self.marks, false)), false, CURVE_HEIGHT);
        let xs = points().map(|p| p.x).chain(along(&self.marks, true));
        let x = Scale::new(&self.x, xs, false, Along::Horizontal(width));
        let legend: Vec<_> = self
            .series
            .iter()
            .map(|s| (s.name.as_str(), swatch(s.shape)))
            .collect();
        let margins = Margins {
            labels: y.label_width(),
            upright_label: true,
            lines: 1,
            level_label: true,
            height: CURVE_HEIGHT,
        };
        let mut canvas = Canvas::new(title, &legend, &margins);
        canvas.x_axis(&x, &self.x);
        canvas.y_axis(&y, &self.y);
        let mut hidden = 0;
        for (i, series) in self.series.iter().enumerate() {
            let (shown, lost): (Vec<Point>, Vec<Point>) = series
                .points
                .iter()
                .partition(|p| p.is_drawable() && self.x.shows(p.x));
            hidden += lost.len();
            canvas.svg.start("g", &[("class", &colour(i))]);
            if series.shape != Shape::Points {
                canvas.clip();
                let data = path(&canvas, (&x, &y), series.shape, &shown);
                canvas
                    .svg
                    .path(&data, &format!("curve d{}", i % LOOKS), &series.name);
                canvas.svg.end("svg");
            }
            self.dots(&mut canvas, (&x, &y), series, &shown);
            canvas.svg.end("g");
        }
        canvas.frame();
        canvas.marks(&self.marks, Some(&x), Some(&y));
        if points().next().is_none() {
            canvas.no_data();
        }
        if hidden > 0 {
            canvas.note(&format!(
                "{hidden} points have no place on these axes and are not shown"
            ));
        }
        canvas
    }

    /// Dots with error bars, or invisible ones that carry the tooltips of a curve.
    fn dots(&self, canvas: &mut Canvas, (x, y): (&Scale, &Scale), series: &Series, points: &[Point]) {
        let visible = matches!(series.shape, Shape::Points | Shape::LinePoints);
        if !visible && points.len() > MOST_TOOLTIPS {
            return;
        }
        for p in points.iter().filter(|p| x.holds(p.x)) {
            let mut tip = format!(
                "{}\n{} {}{}\n{} {}{}",
                series.name,
                quantity(&self.x),
                significant(p.x),
                unit(&self.x),
                quantity(&self.y),
                significant(p.y),
                unit(&self.y)
            );
            let at = canvas.x(x, p.x);
            if let Some((low, high)) = p.bar {
                let _ = write!(tip, "\n{} to {}", significant(low), significant(high));
                whisker(canvas, y, at, (low, high));
                if !self.y.shows(p.y) && y.holds(high) {
                    let place = canvas.y(y, high);
                    canvas.svg.circle((at, place), 3.4, "ring", &tip);
                }
            }
            if self.y.shows(p.y) && y.holds(p.y) {
                let place = (at, canvas.y(y, p.y));
                match visible {
                    true => canvas.svg.circle(place, 3.2, "dot", &tip),
                    false => canvas.svg.circle(place, 4.5, "hover", &tip),
                }
            }
        }
    }
}

/// An error bar with its caps, cut at the edges of the plot area.
pub(super) fn whisker(canvas: &mut Canvas, y: &Scale, at: f64, (low, high): (f64, f64)) {
    let (top, bottom) = (canvas.top, canvas.top + canvas.height);
    let (up, down) = (canvas.y(y, high), canvas.y(y, low));
    if up > bottom || down < top {
        return;
    }
    canvas
        .svg
        .line((at, up.max(top)), (at, down.min(bottom)), "whisker");
    for end in [up, down] {
        if (top..=bottom).contains(&end) {
            canvas.svg.line((at - 3.5, end), (at + 3.5, end), "whisker");
        }
    }
}

fn swatch(shape: Shape) -> Swatch {
    match shape {
        Shape::Line | Shape::Step => Swatch::Line,
        Shape::Points => Swatch::Dot,
        Shape::LinePoints => Swatch::LineDot,
    }
}

/// The data of the path through the points, in the coordinates of the drawing.
fn path(canvas: &Canvas, (x, y): (&Scale, &Scale), shape: Shape, points: &[Point]) -> String {
    // far enough outside to be clipped, near enough to keep the digits
    let place = |p: &Point| {
        let px = canvas.x(x, p.x).clamp(-5000.0, 5000.0);
        let py = canvas.y(y, p.y).clamp(-5000.0, 5000.0);
        (px, py)
    };
    let mut data = String::new();
    for (i, p) in thinned(points).iter().enumerate() {
        let (px, py) = place(p);
        let (px, py) = (num(px), num(py));
        let _ = match (i, shape) {
            (0, _) => write!(data, "M{px} {py}"),
            (_, Shape::Step) => write!(data, "H{px}V{py}"),
            _ => write!(data, "L{px} {py}"),
        };
    }
    data
}

/// At most about [`MOST_POINTS`] points: of each run of neighbours the first, lowest, highest and last.
fn thinned(points: &[Point]) -> Vec<Point> {
    if points.len() <= MOST_POINTS {
        return points.to_vec();
    }
    let mut out = Vec::with_capacity(MOST_POINTS);
    for run in points.chunks(points.len().div_ceil(MOST_POINTS / 4)) {
        let by_y = |i: &usize, j: &usize| run[*i].y.total_cmp(&run[*j].y);
        let lowest = (0..run.len()).min_by(by_y).unwrap_or(0);
        let highest = (0..run.len()).max_by(by_y).unwrap_or(0);
        let mut kept = [0, lowest, highest, run.len() - 1];
        kept.sort_unstable();
        out.extend(
            kept.iter()
                .enumerate()
                .filter(|(n, i)| *n == 0 || kept[n - 1] != **i)
                .map(|(_, &i)| run[i]),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_extremes() {
        let points: Vec<_> = (0..100_000)
            .map(|i| Point::new(f64::from(i), f64::from(i % 1000)))
            .collect();
        let thin = thinned(&points);
        assert!(thin.len() <= MOST_POINTS + 4);
        assert!(thin.windows(2).all(|w| w[0].x < w[1].x));
        assert_eq!((thin[0], *thin.last().unwrap()), (points[0], points[99_999]));
        assert!(thin.iter().any(|p| p.y == 999.0) && thin.iter().any(|p| p.y == 0.0));
    }

    #[test]
    fn a_ccdf_starts_at_one() {
        let points = [CcdfPoint { x: 1000.0, p: 0.5 }, CcdfPoint { x: 3000.0, p: 0.0 }];
        let s = Series::ccdf("x", &points, 1000.0);
        let pairs: Vec<_> = s.points.iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(pairs, [(1.0, 1.0), (1.0, 0.5), (3.0, 0.0)]);
    }
}
