//! The frame of every plot: title, legend, axes with ticks, marks, notes.

use super::super::scale::{Along, Axis, Scale, TICK_SIZE, drawable};
use super::super::svg::{Svg, fit, num, text_width};
use super::Mark;

/// Width of every drawing.
pub(super) const WIDTH: f64 = 720.0;
/// Number of series that differ in colour and dashes; further ones repeat.
pub(super) const LOOKS: usize = 8;

const RIGHT: f64 = 22.0;
const LEGEND_ROW: f64 = 19.0;
const SWATCH: f64 = 26.0;

/// How a series looks in the legend.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Swatch {
    Line,
    Dot,
    LineDot,
    Box,
}

/// A drawing with its plot area.
pub(super) struct Canvas {
    pub(super) svg: Svg,
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    bottom: f64,
    title: String,
}

/// What the space around the plot area must hold.
pub(super) struct Margins {
    /// Width of the widest label left of the area.
    pub(super) labels: f64,
    /// Whether a label runs up the left side.
    pub(super) upright_label: bool,
    /// Lines of labels below the area.
    pub(super) lines: usize,
    /// Whether a label of the axis stands below those.
    pub(super) level_label: bool,
    /// Height of the plot area.
    pub(super) height: f64,
}

/// The class that colours series `i`.
pub(super) fn colour(i: usize) -> String {
    format!("s{}", i % LOOKS)
}

impl Canvas {
    /// Draws title and legend and leaves the plot area free.
    pub(super) fn new(title: &str, legend: &[(&str, Swatch)], margins: &Margins) -> Self {
        let left = margins.labels.ceil() + 12.0 + if margins.upright_label { 22.0 } else { 0.0 };
        let width = WIDTH - left - RIGHT;
        let mut canvas = Canvas {
            svg: Svg::default(),
            left,
            top: 8.0,
            width,
            height: margins.height,
            bottom: 0.0,
            title: title.into(),
        };
        if !title.is_empty() {
            canvas
                .svg
                .text(8.0, 20.0, "title", &fit(title, 14.0, 1.08 * WIDTH - 16.0));
            canvas.top = 32.0;
        }
        canvas.legend(legend);
        canvas.bottom = canvas.top + canvas.height + 6.0 + 15.0 * margins.lines as f64;
        if margins.level_label {
            canvas.bottom += 20.0;
        }
        canvas
    }

    fn legend(&mut self, entries: &[(&str, Swatch)]) {
        if entries.is_empty() {
            self.top += 6.0;
            return;
        }
        let mut x = 8.0;
        for (i, (name, swatch)) in entries.iter().enumerate() {
            let name = fit(name, TICK_SIZE, WIDTH - SWATCH - 30.0);
            let width = SWATCH + 6.0 + text_width(&name, TICK_SIZE) + 16.0;
            if x + width > WIDTH && x > 8.0 {
                x = 8.0;
                self.top += LEGEND_ROW;
            }
            let y = self.top + 8.0;
            self.svg.start("g", &[("class", &colour(i))]);
            if matches!(swatch, Swatch::Line | Swatch::LineDot) {
                self.svg
                    .line((x, y), (x + SWATCH, y), &format!("curve d{}", i % LOOKS));
            }
            match swatch {
                Swatch::Dot | Swatch::LineDot => self.svg.circle((x + SWATCH / 2.0, y), 3.2, "dot", ""),
                Swatch::Box => self.svg.rect((x + 8.0, y - 5.5), (14.0, 11.0), "bar", ""),
                Swatch::Line => {}
            }
            self.svg.end("g");
            self.svg.text(x + SWATCH + 6.0, y + 4.0, "entry", &name);
            x += width;
        }
        self.top += LEGEND_ROW + 10.0;
    }

    /// Horizontal place of a value.
    pub(super) fn x(&self, scale: &Scale, value: f64) -> f64 {
        self.left + self.width * scale.at(value)
    }

    /// Vertical place of a value.
    pub(super) fn y(&self, scale: &Scale, value: f64) -> f64 {
        self.top + self.height * (1.0 - scale.at(value))
    }

    /// Grid, ticks and label of the horizontal axis.
    pub(super) fn x_axis(&mut self, scale: &Scale, axis: &Axis) {
        let (top, bottom) = (self.top, self.top + self.height);
        for &at in &scale.minor {
            let x = self.x(scale, at);
            self.svg.line((x, top), (x, bottom), "fine");
        }
        for tick in &scale.ticks {
            let x = self.x(scale, tick.at);
            self.svg.line((x, top), (x, bottom), "grid");
            self.svg.line((x, bottom), (x, bottom + 4.0), "axis");
            self.svg.text(x, bottom + 17.0, "tick mid", &tick.label);
        }
        let label = with_factor(axis, scale);
        let label = fit(&label, TICK_SIZE, 1.08 * self.width);
        self.svg
            .text(self.left + self.width / 2.0, bottom + 35.0, "mid", &label);
    }

    /// Grid, ticks and label of the vertical axis.
    pub(super) fn y_axis(&mut self, scale: &Scale, axis: &Axis) {
        let (left, right) = (self.left, self.left + self.width);
        for &at in &scale.minor {
            let y = self.y(scale, at);
            self.svg.line((left, y), (right, y), "fine");
        }
        for tick in &scale.ticks {
            let y = self.y(scale, tick.at);
            self.svg.line((left, y), (right, y), "grid");
            self.svg.line((left - 4.0, y), (left, y), "axis");
            self.svg.text(left - 8.0, y + 4.0, "tick far", &tick.label);
        }
        let label = with_factor(axis, scale);
        let label = fit(&label, TICK_SIZE, 1.2 * self.height);
        self.svg
            .text_upwards(16.0, self.top + self.height / 2.0, "mid", &label);
    }

    /// The lines left of and below the plot area, over the grid.
    pub(super) fn frame(&mut self) {
        let (left, bottom) = (self.left, self.top + self.height);
        self.svg.line((left, self.top), (left, bottom), "axis");
        self.svg.line((left, bottom), (left + self.width, bottom), "axis");
    }

    /// Lines of the marks that lie in sight, with labels that keep clear of each other, of upright lines and of the
    /// edges.
    pub(super) fn marks(&mut self, marks: &[Mark], x: Option<&Scale>, y: Option<&Scale>) {
        // boxes of the labels so far: left, right, base line
        let mut taken: Vec<(f64, f64, f64)> = Vec::new();
        let mut upright_lines: Vec<f64> = Vec::new();
        let (left, right) = (self.left, self.left + self.width);
        let in_order = marks
            .iter()
            .filter(|m| m.upright)
            .chain(marks.iter().filter(|m| !m.upright));
        for mark in in_order {
            let scale = if mark.upright { x } else { y };
            let Some(scale) = scale.filter(|s| drawable(mark.at) && s.holds(mark.at)) else {
                continue;
            };
            let label = fit(&mark.label, 1.05 * TICK_SIZE, self.width * 0.8);
            // bold
            let width = 1.05 * text_width(&label, TICK_SIZE);
            let (from, to, mut base, anchor);
            if mark.upright {
                let at = self.x(scale, mark.at);
                self.svg
                    .line((at, self.top), (at, self.top + self.height), "mark");
                upright_lines.push(at);
                base = self.top + 13.0;
                // right of the line if there is room
                (from, to, anchor) = if at + 6.0 + width < right {
                    (at + 6.0, at + 6.0 + width, "mark")
                } else {
                    (at - 6.0 - width, at - 6.0, "mark far")
                };
            } else {
                let at = self.y(scale, mark.at);
                self.svg.line((left, at), (right, at), "mark");
                base = if at - 16.0 < self.top { at + 14.0 } else { at - 5.0 };
                // at the right edge, or left of the upright line that is in the way
                let in_the_way = upright_lines
                    .iter()
                    .copied()
                    .filter(|l| right - width - 10.0 < *l && *l - width > left);
                to = in_the_way.fold(right, f64::min) - 5.0;
                (from, anchor) = (to - width, "mark far");
            }
            while taken
                .iter()
                .any(|t| from < t.1 && t.0 < to && (base - t.2).abs() < 14.0)
            {
                base += 15.0;
            }
            taken.push((from, to, base));
            self.svg
                .text(if anchor == "mark" { from } else { to }, base, anchor, &label);
        }
    }

    /// Says in the middle that there is nothing to show.
    pub(super) fn no_data(&mut self) {
        let (x, y) = (self.left + self.width / 2.0, self.top + self.height / 2.0);
        self.svg.text(x, y, "note mid", "no data");
    }

    /// A line of small print below everything.
    pub(super) fn note(&mut self, text: &str) {
        self.bottom += 17.0;
        let text = fit(text, 11.0, 1.05 * WIDTH - 16.0);
        self.svg.text(8.0, self.bottom - 3.0, "note", &text);
    }

    /// Opens a group that is clipped to the plot area. Close it with `svg.end("svg")`.
    pub(super) fn clip(&mut self) {
        let (x, y, w, h) = (self.left, self.top - 1.0, self.width + 1.0, self.height + 2.0);
        let (x, y, w, h) = (num(x), num(y), num(w), num(h));
        // the inner system of coordinates is that of the drawing
        let view = format!("{x} {y} {w} {h}");
        self.svg.start(
            "svg",
            &[
                ("x", &x),
                ("y", &y),
                ("width", &w),
                ("height", &h),
                ("viewBox", &view),
            ],
        );
    }

    /// The drawing as one element, with `style` inside if it is not empty.
    pub(super) fn finish(self, style: &str) -> String {
        let height = num(self.bottom + 6.0);
        let mut outer = Svg::default();
        let view = format!("0 0 {} {height}", num(WIDTH));
        outer.start(
            "svg",
            &[
                ("xmlns", "http://www.w3.org/2000/svg"),
                ("class", "plot"),
                ("viewBox", &view),
                ("width", &num(WIDTH)),
                ("height", &height),
                ("role", "img"),
                ("aria-label", &self.title),
            ],
        );
        let mut text = outer.into_string();
        if !style.is_empty() {
            // a page paints its own paper
            text += &format!("<style>\n{style}</style>\n");
            text += "<rect width=\"100%\" height=\"100%\" style=\"fill: var(--paper)\"/>\n";
        }
        text += "\n";
        text += &self.svg.into_string();
        text + "</svg>\n"
    }
}

fn with_factor(axis: &Axis, scale: &Scale) -> String {
    if scale.factor.is_empty() {
        return axis.label.clone();
    }
    format!("{}  {}", axis.label, scale.factor)
}

/// The height of a plot area that suits a curve.
pub(super) const CURVE_HEIGHT: f64 = 300.0;

/// The scale of the horizontal axis depends on the width, and the width on the labels of the vertical one: this is
/// the vertical scale and the width that it leaves.
pub(super) fn scales(
    y: &Axis,
    y_values: impl Iterator<Item = f64>,
    y_from_zero: bool,
    height: f64,
) -> (Scale, f64) {
    let scale = Scale::new(y, y_values, y_from_zero, Along::Vertical(height));
    let width = WIDTH - RIGHT - scale.label_width().ceil() - 34.0;
    (scale, width)
}
