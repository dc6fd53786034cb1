//! Plots as inline SVG: curves, histograms, bars and stacks, in one look.
//!
//! The drawing has no colours of its own: classes are styled by the page ([`super::html`]), or by the style sheet
//! that [`Figure::standalone`] puts into the file. All sizes are in the units of a drawing 720 wide.

mod bars;
mod canvas;
mod histogram;
mod stack;
mod xy;

pub use bars::{Bar, Bars};
pub use histogram::Histogram;
pub use stack::{Stack, StackRow};
pub use xy::{Point, Series, Shape, Xy};

use super::scale::Axis;

/// Style sheet of the classes that drawings use.
pub(super) const STYLE: &str = include_str!("plot.css");

/// A plot with its words.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What is shown, in a few words.
    pub title: String,
    /// How to read it: one or two sentences below the plot; empty for none.
    pub how_to_read: String,
    /// The plot.
    pub chart: Chart,
}

/// A kind of plot.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Curves and points over two axes.
    Xy(Xy),
    /// How often values occur.
    Histogram(Histogram),
    /// Bars side by side.
    Bars(Bars),
    /// Horizontal bars made of parts that follow each other.
    Stack(Stack),
}

impl Figure {
    /// A figure without reading help.
    pub fn new(title: impl Into<String>, chart: Chart) -> Self {
        Figure {
            title: title.into(),
            how_to_read: String::new(),
            chart,
        }
    }

    /// Adds the reading help.
    pub fn how_to_read(mut self, text: impl Into<String>) -> Self {
        self.how_to_read = text.into();
        self
    }

    /// The drawing as an `svg` element for a page that has the style sheet.
    pub fn svg(&self) -> String {
        self.draw("")
    }

    /// The drawing as a file of its own, with its style sheet inside.
    pub fn standalone(&self) -> String {
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", self.draw(STYLE))
    }

    fn draw(&self, style: &str) -> String {
        let canvas = match &self.chart {
            Chart::Xy(chart) => chart.draw(&self.title),
            Chart::Histogram(chart) => chart.draw(&self.title),
            Chart::Bars(chart) => chart.draw(&self.title),
            Chart::Stack(chart) => chart.draw(&self.title),
        };
        canvas.finish(style)
    }
}

/// A line across the plot with a label: a deadline, a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    at: f64,
    label: String,
    upright: bool,
}

impl Mark {
    /// An upright line at this x.
    pub fn x(at: f64, label: impl Into<String>) -> Self {
        Mark {
            at,
            label: label.into(),
            upright: true,
        }
    }

    /// A level line at this y.
    pub fn y(at: f64, label: impl Into<String>) -> Self {
        Mark {
            upright: false,
            ..Mark::x(at, label)
        }
    }
}

/// Values of the marks that lie along one axis, so that the axis holds them.
fn along(marks: &[Mark], upright: bool) -> impl Iterator<Item = f64> {
    marks.iter().filter(move |m| m.upright == upright).map(|m| m.at)
}

/// The words of a label before its unit: "latency" of "latency (µs)".
fn quantity(axis: &Axis) -> &str {
    axis.label.split(" (").next().unwrap_or_default()
}

/// The unit of a label with a space before it: " µs" of "latency (µs)"; empty when it has none.
fn unit(axis: &Axis) -> String {
    match axis
        .label
        .rsplit_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
    {
        Some(unit) => format!(" {unit}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
