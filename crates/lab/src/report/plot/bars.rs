//! Bars side by side, in groups.

use super::super::scale::{Axis, TICK_SIZE, drawable, significant};
use super::super::svg::{text_width, wrap};
use super::canvas::{Canvas, Margins, Swatch, colour, scales};
use super::xy::whisker;
use super::{Mark, along, unit};

const HEIGHT: f64 = 260.0;

/// A bar; with an error bar if it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Its height. One that is not finite is left out, and so is such an error bar.
    pub value: f64,
    /// Ends of its error bar.
    pub bar: Option<(f64, f64)>,
}

impl Bar {
    /// A bar without error bar.
    pub fn new(value: f64) -> Self {
        Bar { value, bar: None }
    }
}

/// Groups of bars over a vertical axis. On a logarithmic one, bars start at the bottom, and the height of a
/// value that is not positive is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// The vertical axis.
    pub y: Axis,
    /// Names of the groups, left to right.
    pub groups: Vec<String>,
    /// Name and bars of each series, one bar for each group.
    pub series: Vec<(String, Vec<Bar>)>,
    /// Level lines across.
    pub marks: Vec<Mark>,
}

impl Bars {
    /// Groups without bars.
    pub fn new<S: Into<String>>(y: Axis, groups: impl IntoIterator<Item = S>) -> Self {
        Bars {
            y,
            groups: groups.into_iter().map(Into::into).collect(),
            series: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Adds a series: one bar for each group.
    pub fn series(mut self, name: impl Into<String>, bars: impl IntoIterator<Item = Bar>) -> Self {
        self.series.push((name.into(), bars.into_iter().collect()));
        self
    }

    /// Adds a mark.
    pub fn mark(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }

    pub(super) fn draw(&self, title: &str) -> Canvas {
        let values = self.series.iter().flat_map(|(_, bars)| bars).flat_map(|b| {
            let (low, high) = b.bar.unwrap_or((b.value, b.value));
            [b.value, low, high]
        });
        let (y, width) = scales(&self.y, values.chain(along(&self.marks, false)), true, HEIGHT);
        let slot = width / self.groups.len().max(1) as f64;
        let names: Vec<_> = self
            .groups
            .iter()
            .map(|g| wrap(g, TICK_SIZE, slot - 8.0, 3))
            .collect();
        let legend: Vec<_> = self
            .series
            .iter()
            .map(|(name, _)| (name.as_str(), Swatch::Box))
            .collect();
        let margins = Margins {
            labels: y.label_width(),
            upright_label: true,
            lines: names.iter().map(Vec::len).max().unwrap_or(1),
            level_label: false,
            height: HEIGHT,
        };
        let mut canvas = Canvas::new(title, if legend.len() > 1 { &legend } else { &[] }, &margins);
        canvas.y_axis(&y, &self.y);
        let slot = canvas.width / self.groups.len().max(1) as f64;
        let thick = (0.76 * slot / self.series.len().max(1) as f64).min(60.0);
        let bottom = canvas.top + canvas.height;
        let base = canvas.y(&y, 0.0).min(bottom);
        for (g, name) in names.iter().enumerate() {
            let middle = canvas.left + slot * (g as f64 + 0.5);
            for (n, line) in name.iter().enumerate() {
                canvas
                    .svg
                    .text(middle, bottom + 17.0 + 15.0 * n as f64, "mid", line);
            }
            let all = thick * self.series.len() as f64;
            for (i, (series, bars)) in self.series.iter().enumerate() {
                let Some(bar) = bars.get(g).filter(|b| drawable(b.value)) else {
                    continue;
                };
                let from = middle - all / 2.0 + thick * i as f64;
                let ends = bar.bar.filter(|(low, high)| drawable(*low) && drawable(*high));
                let value = canvas.y(&y, bar.value).clamp(canvas.top, bottom);
                let value = if self.y.shows(bar.value) { value } else { base };
                let mut tip = format!(
                    "{} · {series}\n{}{}",
                    self.groups[g],
                    significant(bar.value),
                    unit(&self.y)
                );
                canvas.svg.start("g", &[("class", &colour(i))]);
                if let Some((low, high)) = ends {
                    tip += &format!("\n{} to {}", significant(low), significant(high));
                }
                canvas.svg.rect(
                    (from, value.min(base)),
                    (thick, (base - value).abs()),
                    "bar",
                    &tip,
                );
                canvas.svg.end("g");
                // the number stands above everything that belongs to the bar, if it is not wider than the bar
                let mut above = value.min(base);
                if let Some(ends) = ends {
                    canvas.svg.start("g", &[("style", "color: var(--ink)")]);
                    whisker(&mut canvas, &y, from + thick / 2.0, ends);
                    canvas.svg.end("g");
                    above = above.min(canvas.y(&y, ends.1).max(canvas.top));
                }
                let label = significant(bar.value);
                if text_width(&label, 11.0) < thick + 8.0 && above - 14.0 > canvas.top - 12.0 {
                    canvas
                        .svg
                        .text(from + thick / 2.0, above - 4.0, "note mid", &label);
                }
            }
        }
        canvas.frame();
        canvas.marks(&self.marks, None, Some(&y));
        if self.groups.is_empty() || self.series.is_empty() {
            canvas.no_data();
        }
        canvas
    }
}
