//! Figures 7 and 8 from our runs, and the late ATIMs of Table II.

use super::queue::WINDOWS_MS;
use super::{Bus, Measured};
use crate::report::Axis;
use crate::report::plot::{Bar, Bars, Chart, Figure, Series, Shape, Xy};

/// The plots, each with the name of its file; those without samples are left out.
pub fn figures(measured: &Measured) -> Vec<(&'static str, Figure)> {
    let mut all = Vec::new();
    let policies = [Bus::Static, Bus::Hybrid, Bus::Search].map(|b| measured.bus(b));
    if let [Some(fixed), Some(hybrid), Some(dynamic)] = policies {
        let names = ["static", "hybrid", "dynamic"];
        let found = [fixed, hybrid, dynamic];
        let memory = Bars::new(Axis::linear("memory held, mean (kB)"), names)
            .series("ours", found.map(|f| Bar::new(f.held / 1e3)));
        let delay = Bars::new(Axis::linear("interrupt, mean (µs)"), names)
            .series("ours", found.map(|f| Bar::new(f.mean_isr_ns() / 1e3)));
        all.push((
            "fig7-memory.svg",
            Figure::new("Fig. 7: memory", Chart::Bars(memory)),
        ));
        all.push(("fig7-delay.svg", Figure::new("Fig. 7: delay", Chart::Bars(delay))));
        let parts = [dynamic.bare, dynamic.framed].map(|[n, ns]| Bar::new(ns / n / 1e3));
        let parsing = Bars::new(
            Axis::linear("parsing, mean (µs)"),
            ["responses alone", "with frames"],
        )
        .series("search", parts);
        all.push((
            "fig8-parsing.svg",
            Figure::new("Fig. 8: parsing", Chart::Bars(parsing)),
        ));
    }
    if measured.open.atims > 0 {
        let points = |late: [f64; 3]| WINDOWS_MS.map(|ms| ms as f64).into_iter().zip(late);
        let share = |fate: &super::Fate, i: usize| fate.late[i] as f64 / fate.atims.max(1) as f64 * 100.0;
        let open = [0, 1, 2].map(|i| share(&measured.open, i));
        let filtered = [0, 1, 2].map(|i| share(&measured.filtered[0][i], i));
        let series = [
            ("no filter, paper", [5.54, 0.91, 0.01]),
            ("no filter, ours", open),
            ("filter, paper", [0.05, 0.01, 0.0]),
            ("filter, ours", filtered),
        ];
        let plot = Xy::new(
            Axis::linear("ATIM window (ms)"),
            Axis::log("late ATIMs (%)").range(1e-3, 10.0),
        );
        let plot = series.into_iter().fold(plot, |plot, (name, late)| {
            plot.series(Series::new(name, Shape::LinePoints, points(late)))
        });
        all.push((
            "late-atims.svg",
            Figure::new("Table II: late ATIMs", Chart::Xy(plot)),
        ));
    }
    all
}
