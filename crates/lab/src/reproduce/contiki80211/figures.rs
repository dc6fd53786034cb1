//! Figures 7 to 10 from our runs, and the late ATIMs of Table II.

use super::bus::{KINDS, wire_ns};
use super::queue::{Load, WINDOWS_MS};
use super::{Bus, Measured};
use crate::report::Axis;
use crate::report::plot::{Bar, Bars, Chart, Figure, Series, Shape, Xy};
use crate::stats::Sorted;

/// Points of a curve for each factor of ten.
const PER_DECADE: u32 = 60;

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
        let parts = [dynamic.framed_isr_ns / dynamic.framed[0], Load::FITTED.service_ns];
        let handling = Bars::new(
            Axis::linear("handling of a frame, mean (µs)"),
            ["interrupt", "scheduler"],
        )
        .series("ours", parts.map(|ns| Bar::new(ns / 1e3)));
        let figure = Figure::new("Fig. 9: within and outside of the interrupt", Chart::Bars(handling))
            .how_to_read("The interrupt of a transfer with a frame, by the search; the scheduler's time is the one that was fitted to Table II.");
        all.push(("fig9-handling.svg", figure));
    }
    all.push(("fig10-completions.svg", completions()));
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

/// All lengths of a kind are as likely as each other.
fn completions() -> Figure {
    let plot = Xy::new(
        Axis::linear("from the post to the completion, on the wire (µs)"),
        Axis::log("share above").range(1e-3, 1.0),
    );
    let plot = KINDS.into_iter().fold(plot, |plot, (name, lengths)| {
        let wire_us = Sorted::new(lengths.map(|octets| wire_ns(octets) as f64 / 1e3).collect());
        plot.series(Series::ccdf(name, &wire_us.ccdf(PER_DECADE), 1.0))
    });
    Figure::new("Fig. 10: completions of the USB by length", Chart::Xy(plot)).how_to_read(
        "Time on the wire at 480 Mb/s, and nothing that hosts add. The paper bounds completions by 16 µs, which 2 KB alone exceed.",
    )
}
