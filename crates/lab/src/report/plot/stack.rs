//! Horizontal bars made of parts: where the time goes, plane by plane.

use super::super::scale::{Along, Axis, Scale, TICK_SIZE, drawable, significant};
use super::super::svg::{fit, text_width};
use super::canvas::{Canvas, Margins, Swatch, WIDTH, colour};
use super::{Mark, along, unit};

const ROW: f64 = 40.0;
const WIDEST_NAME: f64 = 170.0;

/// One horizontal bar.
#[derive(Clone, Debug, PartialEq)]
pub struct StackRow {
    /// Its name, left of the axis.
    pub name: String,
    /// Where its first part begins; 0 for most.
    pub start: f64,
    /// Lengths of its parts, in the order of the legend. One that is not finite or negative counts as 0.
    pub parts: Vec<f64>,
}

/// Rows over a common linear axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// The horizontal axis.
    pub x: Axis,
    /// Names of the parts.
    pub parts: Vec<String>,
    /// Top to bottom.
    pub rows: Vec<StackRow>,
    /// Upright lines across.
    pub marks: Vec<Mark>,
}

impl Stack {
    /// An axis and the names of the parts, without rows.
    pub fn new<S: Into<String>>(x: Axis, parts: impl IntoIterator<Item = S>) -> Self {
        Stack {
            x,
            parts: parts.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Adds a row that starts at 0.
    pub fn row(mut self, name: impl Into<String>, parts: impl IntoIterator<Item = f64>) -> Self {
        self.rows.push(StackRow {
            name: name.into(),
            start: 0.0,
            parts: parts.into_iter().collect(),
        });
        self
    }

    /// Adds a mark.
    pub fn mark(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }

    pub(super) fn draw(&self, title: &str) -> Canvas {
        let clean = |v: &f64| if drawable(*v) { v.max(0.0) } else { 0.0 };
        let total = |row: &StackRow| row.parts.iter().map(clean).sum::<f64>();
        let start = |row: &StackRow| if drawable(row.start) { row.start } else { 0.0 };
        let names: Vec<_> = self
            .rows
            .iter()
            .map(|r| fit(&r.name, TICK_SIZE, WIDEST_NAME))
            .collect();
        let labels = names
            .iter()
            .map(|n| text_width(n, TICK_SIZE))
            .fold(20.0, f64::max);
        let ends = self.rows.iter().flat_map(|r| [start(r), start(r) + total(r)]);
        // room for the totals right of the bars
        let longest = ends.clone().fold(0.0, f64::max);
        let ends = ends.chain([longest * 1.09]).chain(along(&self.marks, true));
        let x = Scale::new(&self.x, ends, true, Along::Horizontal(WIDTH - 34.0 - labels));
        let legend: Vec<_> = self.parts.iter().map(|p| (p.as_str(), Swatch::Box)).collect();
        let margins = Margins {
            labels,
            upright_label: false,
            lines: 1,
            level_label: true,
            height: (ROW * self.rows.len() as f64).max(ROW) + 26.0,
        };
        let mut canvas = Canvas::new(title, &legend, &margins);
        canvas.x_axis(&x, &self.x);
        let mut ends_of_rows = Vec::new();
        for (r, row) in self.rows.iter().enumerate() {
            // the first label of a mark needs the strip above the rows
            let top = canvas.top + 20.0 + ROW * r as f64 + 4.0;
            let thick = ROW - 10.0;
            canvas
                .svg
                .text(canvas.left - 8.0, top + thick / 2.0 + 4.0, "far", &names[r]);
            let mut from = start(row);
            for (i, value) in row.parts.iter().map(clean).enumerate() {
                let (left, right) = (canvas.x(&x, from), canvas.x(&x, from + value));
                let amount = significant(value) + &unit(&self.x);
                let tip = format!(
                    "{} · {}\n{amount}, from {} to {}",
                    row.name,
                    self.parts.get(i).map_or("", String::as_str),
                    significant(from),
                    significant(from + value)
                );
                canvas.svg.start("g", &[("class", &colour(i))]);
                canvas.svg.rect((left, top), (right - left, thick), "bar", &tip);
                canvas.svg.end("g");
                let label = significant(value);
                if text_width(&label, 11.0) + 4.0 < right - left {
                    canvas.svg.text(
                        (left + right) / 2.0,
                        top + thick / 2.0 + 4.0,
                        "inside mid",
                        &label,
                    );
                }
                from += value;
            }
            ends_of_rows.push((canvas.x(&x, from) + 6.0, top + thick / 2.0 + 4.0, total(row)));
        }
        canvas.frame();
        canvas.marks(&self.marks, Some(&x), None);
        // over the lines of the marks
        for (at, base, total) in ends_of_rows {
            canvas.svg.text(at, base, "note", &significant(total));
        }
        if self.rows.is_empty() {
            canvas.no_data();
        }
        canvas
    }
}
