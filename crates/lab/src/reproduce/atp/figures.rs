//! Goodput and unfairness over hops: figures 5.1 and 5.4 to 5.7 of the thesis.

use super::plan::Measured;
use super::summary::Summary;
use super::{Bed, Case, KINDS, LOSS};
use crate::report::Axis;
use crate::report::plot::{Chart, Figure, Point, Series, Shape, Xy};

/// The plots, each with the name of its file.
pub fn figures(measured: &Measured) -> Vec<(&'static str, Figure)> {
    let a = Bed::A(LOSS);
    [
        ("fig5.1.svg", "Fig. 5.1: one flow, testbed A", a, 1),
        ("fig5.4a.svg", "Fig. 5.4a: two flows, testbed A", a, 2),
        ("fig5.5a.svg", "Fig. 5.5a: five flows, testbed A", a, 5),
        ("fig5.6a.svg", "Fig. 5.6a: one flow, testbed B", Bed::B, 1),
        ("fig5.6b.svg", "Fig. 5.6b: two flows, testbed B", Bed::B, 2),
        ("fig5.6c.svg", "Fig. 5.6c: five flows, testbed B", Bed::B, 5),
    ]
    .map(|(file, title, bed, flows)| {
        let axis = Axis::linear("mean goodput of a flow (kb/s)");
        (
            file,
            over_hops(measured, title, axis, bed, flows, Summary::mean_kbps),
        )
    })
    .into_iter()
    .chain(
        [
            (
                "fig5.4c.svg",
                "Fig. 5.4c: unfairness of two flows, testbed A",
                a,
                2,
            ),
            (
                "fig5.5c.svg",
                "Fig. 5.5c: unfairness of five flows, testbed A",
                a,
                5,
            ),
            (
                "fig5.7a.svg",
                "Fig. 5.7a: unfairness of two flows, testbed B",
                Bed::B,
                2,
            ),
            (
                "fig5.7b.svg",
                "Fig. 5.7b: unfairness of five flows, testbed B",
                Bed::B,
                5,
            ),
        ]
        .map(|(file, title, bed, flows)| {
            let axis = Axis::linear("standard deviation over mean");
            (
                file,
                over_hops(measured, title, axis, bed, flows, |s| s.unfairness),
            )
        }),
    )
    .collect()
}

fn over_hops(m: &Measured, title: &str, axis: Axis, bed: Bed, flows: u32, of: fn(&Summary) -> f64) -> Figure {
    let mut plot = Xy::new(Axis::linear("hops"), axis);
    for kind in KINDS {
        let mut series = Series::new(kind.word(), Shape::LinePoints, []);
        for hops in m.hops(bed, flows) {
            let case = Case {
                bed,
                hops,
                flows,
                kind,
            };
            let runs: Vec<f64> = (0..m.seeds()).filter_map(|n| m.get(case, n).map(of)).collect();
            if runs.is_empty() {
                continue;
            }
            let n = runs.len() as f64;
            let mean = runs.iter().sum::<f64>() / n;
            let squares: f64 = runs.iter().map(|x| (x - mean) * (x - mean)).sum();
            let deviation = (squares / n).sqrt();
            let point = Point::with_bar(f64::from(hops), mean, mean - deviation, mean + deviation);
            series.points.push(point);
        }
        plot = plot.series(series);
    }
    Figure::new(title, Chart::Xy(plot))
        .how_to_read("Means over the runs; bars: one standard deviation to either side.")
}
