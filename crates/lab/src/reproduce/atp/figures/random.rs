//! Flows between random nodes over OLSR: figures 5.10 to 5.12 of the thesis.

use super::{BARS, Said, distribution, over_runs};
use crate::mesh::metrics;
use crate::report::Axis;
use crate::report::plot::{Chart, Figure, Mark, Series, Shape, Xy};
use crate::reproduce::atp::field::STARVED_KBPS;
use crate::reproduce::atp::plan::Measured;
use crate::reproduce::atp::{KINDS, Outcome, Scene, What};

/// Numbers of flows, each with its panel of figure 5.10.
const PANELS: [(u32, &str); 6] = [
    (1, "fig5.10-01.svg"),
    (2, "fig5.10-02.svg"),
    (4, "fig5.10-04.svg"),
    (8, "fig5.10-08.svg"),
    (16, "fig5.10-16.svg"),
    (32, "fig5.10-32.svg"),
];
/// The number of flows of which the text says how many starve.
const MANY: u32 = 32;
/// Of them so many with ATP (thesis, section 5.5.1).
const STARVED_BY_ATP: [f64; 2] = [20.0, 30.0];

pub(super) fn figures(m: &Measured, said: &Said) -> Vec<(&'static str, Figure)> {
    let counts = |what: fn(u32) -> What| -> Vec<u32> {
        let counts = PANELS.into_iter().map(|p| p.0);
        let any = |n: &u32| {
            KINDS
                .into_iter()
                .any(|kind| !outcomes(m, what(*n), kind).is_empty())
        };
        counts.filter(any).collect()
    };
    let files = counts(What::Files);
    let panel = |(n, file): (u32, &'static str)| files.contains(&n).then(|| (file, starved(m, n, said)));
    let mut all: Vec<_> = PANELS.into_iter().filter_map(panel).collect();
    for (figure, name, what) in [
        ("5.11", "files", What::Files as fn(u32) -> What),
        ("5.12", "streams of 30 s", What::Streams),
    ] {
        let counts = counts(what);
        if counts.is_empty() {
            continue;
        }
        let (total, utility) = match figure {
            "5.11" => ("fig5.11a.svg", "fig5.11b.svg"),
            _ => ("fig5.12a.svg", "fig5.12b.svg"),
        };
        let axis = Axis::linear("sum of the goodputs (kb/s)");
        let plot = over_flows(m, &counts, what, axis, Outcome::total_kbps);
        let title = format!("Fig. {figure}a: random {name}, all flows together");
        all.push((total, Figure::new(title, Chart::Xy(plot)).how_to_read(BARS)));
        let axis = Axis::linear("sum of the decadic logarithms of the goodputs in kb/s");
        let mut plot = over_flows(m, &counts, what, axis, Outcome::utility);
        let mut words = format!("{BARS} A flow that got nothing counts as one octet in a second.");
        if figure == "5.11" {
            let zero = said.thesis("1-49", "utility of tahoe, 32 flows");
            plot = plot.mark(Mark::y(zero, "thesis: Tahoe with 32 flows"));
            let both = said.both("1-49", "utility of tahoe, 32 flows", "");
            words = format!("{words} Tahoe with 32 flows, thesis: {both}.");
        }
        let title = format!("Fig. {figure}b: random {name}, utility");
        all.push((utility, Figure::new(title, Chart::Xy(plot)).how_to_read(words)));
    }
    all
}

fn outcomes(m: &Measured, what: What, kind: crate::mesh::Kind) -> Vec<&Outcome> {
    m.outcomes(Scene { what, tries: 1, kind })
}

/// How the goodputs of files are distributed, over all runs.
fn starved(m: &Measured, n: u32, said: &Said) -> Figure {
    let mut plot = Xy::new(
        Axis::log("goodput of a flow (kb/s)"),
        Axis::linear("share of flows with at most that").range(0.0, 1.0),
    );
    for kind in KINDS {
        let flows = outcomes(m, What::Files(n), kind)
            .into_iter()
            .flat_map(|o| &o.kbps);
        let kbps = flows.map(|kbps| kbps.max(metrics::STARVED_KBPS)).collect();
        plot = plot.series(distribution(kind.word(), kbps));
    }
    plot = plot.mark(Mark::x(STARVED_KBPS, "starved"));
    let mut words = format!(
        "A flow that got nothing is shown at {} kb/s.",
        metrics::STARVED_KBPS
    );
    if n == MANY {
        let tahoe = said.thesis("1-46", "tahoe");
        plot = plot.mark(Mark::y(tahoe / 100.0, "thesis: Tahoe starves nearly half"));
        let [low, high] = STARVED_BY_ATP;
        for percent in STARVED_BY_ATP {
            plot = plot.mark(Mark::y(
                percent / 100.0,
                format!("thesis: ATP starves {low} to {high} %"),
            ));
        }
        words = format!(
            "{words} Starved by Tahoe, thesis: {}.",
            said.both("1-46", "tahoe", " %")
        );
    }
    let title = format!("Fig. 5.10: random files, flows {n}");
    Figure::new(title, Chart::Xy(plot)).how_to_read(words)
}

fn over_flows(
    m: &Measured,
    counts: &[u32],
    what: fn(u32) -> What,
    axis: Axis,
    of: fn(&Outcome) -> f64,
) -> Xy {
    let mut plot = Xy::new(Axis::log("flows"), axis);
    for kind in KINDS {
        let mut series = Series::new(kind.word(), Shape::LinePoints, []);
        for n in counts {
            let runs: Vec<f64> = outcomes(m, what(*n), kind).into_iter().map(of).collect();
            series.points.extend(over_runs(f64::from(*n), &runs));
        }
        plot = plot.series(series);
    }
    plot
}
