//! The stack of three flows: figures 5.8 and 5.9 of the thesis.

use super::Said;
use crate::mesh::Kind;
use crate::report::Axis;
use crate::report::plot::{Chart, Figure, Mark, Series, Shape, Xy};
use crate::reproduce::atp::field::{self, STACK_STAGGER_NS, WINDOW_NS};
use crate::reproduce::atp::plan::Measured;
use crate::reproduce::atp::{Scene, What};

const FLOWS: [&str; 3] = ["flow 1", "flow 2", "flow 3"];

/// Panel, transport, and the row of Table 5.1, if the thesis has it.
const PANELS: [(&str, Kind, Option<&str>); 5] = [
    ("fig5.9a.svg", Kind::Tahoe, Some("1-39")),
    ("fig5.9b.svg", Kind::Default, Some("1-40")),
    ("fig5.9c.svg", Kind::Aggressive, Some("1-41")),
    ("fig5.9d.svg", Kind::Adaptive, Some("1-42")),
    ("fig5.9e.svg", Kind::Sdmac, None),
];

pub(super) fn figures(m: &Measured, said: &Said) -> Vec<(&'static str, Figure)> {
    let panels = PANELS.into_iter().filter_map(|(file, kind, row)| {
        let scene = Scene {
            what: What::Stack,
            tries: 1,
            kind,
        };
        let runs = m.outcomes(scene);
        Some((file, course(kind, &runs.first()?.course, row, said)))
    });
    let panels: Vec<_> = panels.collect();
    if panels.is_empty() {
        return panels;
    }
    std::iter::once(("fig5.8.svg", places())).chain(panels).collect()
}

/// Where the nodes stand, and the way of each flow.
fn places() -> Figure {
    let net = field::stack(Kind::Default);
    let mut plot = Xy::new(Axis::linear("x (m)"), Axis::linear("y (m)"));
    for (name, demand) in FLOWS.into_iter().zip(&net.demands) {
        let way = (demand.from..=demand.to).map(|node| &net.places[node as usize]);
        plot = plot.series(Series::new(name, Shape::LinePoints, way.map(|p| (p.x, p.y))));
    }
    Figure::new("Fig. 5.8: the stack", Chart::Xy(plot)).how_to_read(
        "Flows go to the right, flow 3 in the middle. The thesis draws its stack without measures, these are assumed.",
    )
}

/// The first run, flow by flow.
fn course(kind: Kind, flows: &[Vec<f64>], row: Option<&str>, said: &Said) -> Figure {
    let window_s = WINDOW_NS as f64 / 1e9;
    let mut plot = Xy::new(
        Axis::linear("time since the first call (s)"),
        Axis::linear("goodput in windows of 200 ms (kb/s)"),
    );
    for (name, kbps) in FLOWS.into_iter().zip(flows) {
        let ends = (1..).map(|n| f64::from(n) * window_s);
        let points = ends.zip(kbps.iter().copied());
        plot = plot.series(Series::new(name, Shape::Line, points));
    }
    let mut words = "The first run.".to_owned();
    if let Some(id) = row {
        let last_s = 2.0 * STACK_STAGGER_NS as f64 / 1e9;
        plot = plot.mark(Mark::x(last_s, "all three"));
        for name in FLOWS {
            let kbps = said.thesis(id, name);
            plot = plot.mark(Mark::y(kbps, format!("thesis, {name}: {kbps}")));
        }
        let kbps = FLOWS.map(|name| format!("{name} {}", said.both(id, name, " kb/s")));
        words = format!(
            "{words} Table 5.1 of the thesis, while all three are there, and our means over the runs: {}.",
            kbps.join(", ")
        );
    }
    Figure::new(format!("Fig. 5.9: the stack, {}", kind.word()), Chart::Xy(plot)).how_to_read(words)
}
