//! Goodput and unfairness of chains over hops: figures 5.1 and 5.4 to 5.7 of the thesis.

use super::{BARS, Said, distribution, over_runs};
use crate::mesh::Kind;
use crate::report::Axis;
use crate::report::plot::{Chart, Figure, Series, Shape, Xy};
use crate::reproduce::atp::plan::Measured;
use crate::reproduce::atp::summary::Summary;
use crate::reproduce::atp::{Bed, CALIBRATED_LOSS, Case, DEFAULT_TRIES, KINDS, LOSS};

const A: Bed = Bed::A(LOSS);
/// Where the thesis shows distributions.
const FAR: u32 = 6;

pub(super) fn figures(m: &Measured, said: &Said) -> Vec<(&'static str, Figure)> {
    let over = |id, name| said.both(id, name, " %");
    let gains = |value| {
        format!(
            "Thesis, mean over hops: aggressive over default ATP {}, adaptive over default ATP {}, over Tahoe almost {}.",
            over("1-19", value),
            over("1-20", value),
            over("1-21", value)
        )
    };
    let times = |name| said.both("1-34", name, "");
    let fairness = format!(
        "Thesis, with two and five flows: the index of default ATP is that of adaptive ATP times {}, that of Tahoe times {}.",
        times("default"),
        times("tahoe")
    );
    let goodput = |file, title: &str, bed, flows, words: &str| {
        let axis = Axis::linear("mean goodput of a flow (kb/s)");
        (
            file,
            over_hops(m, title, axis, bed, flows, words, Summary::mean_kbps),
        )
    };
    let unfairness = |file, title: &str, bed, flows, words: &str| {
        let axis = Axis::linear("standard deviation over mean");
        (
            file,
            over_hops(m, title, axis, bed, flows, words, |s| s.unfairness),
        )
    };
    let most = "The thesis gives no numbers.";
    let calibrated = |more: &str| {
        let loss = f64::from(CALIBRATED_LOSS) / 10.0;
        format!(
            "Calibrated on Tahoe with one flow: {DEFAULT_TRIES} tries, and links that lose {loss} % of the frames. {more}"
        )
    };
    vec![
        goodput(
            "fig5.1.svg",
            "Fig. 5.1: one flow, testbed A",
            A,
            1,
            &gains("gain"),
        ),
        goodput("fig5.4a.svg", "Fig. 5.4a: two flows, testbed A", A, 2, most),
        far(
            "fig5.4b.svg",
            "Fig. 5.4b: two flows over six hops, testbed A",
            m,
            2,
        ),
        unfairness(
            "fig5.4c.svg",
            "Fig. 5.4c: unfairness of two flows, testbed A",
            A,
            2,
            &fairness,
        ),
        goodput("fig5.5a.svg", "Fig. 5.5a: five flows, testbed A", A, 5, most),
        far(
            "fig5.5b.svg",
            "Fig. 5.5b: five flows over six hops, testbed A",
            m,
            5,
        ),
        unfairness(
            "fig5.5c.svg",
            "Fig. 5.5c: unfairness of five flows, testbed A",
            A,
            5,
            &fairness,
        ),
        goodput(
            "fig5.1_calibrated.svg",
            "Fig. 5.1: one flow, testbed A, calibrated",
            Bed::CalibratedA,
            1,
            &calibrated(&gains("calibrated")),
        ),
        goodput(
            "fig5.4a_calibrated.svg",
            "Fig. 5.4a: two flows, testbed A, calibrated",
            Bed::CalibratedA,
            2,
            &calibrated(most),
        ),
        unfairness(
            "fig5.4c_calibrated.svg",
            "Fig. 5.4c: unfairness of two flows, testbed A, calibrated",
            Bed::CalibratedA,
            2,
            &calibrated(most),
        ),
        goodput(
            "fig5.5a_calibrated.svg",
            "Fig. 5.5a: five flows, testbed A, calibrated",
            Bed::CalibratedA,
            5,
            &calibrated(most),
        ),
        unfairness(
            "fig5.5c_calibrated.svg",
            "Fig. 5.5c: unfairness of five flows, testbed A, calibrated",
            Bed::CalibratedA,
            5,
            &calibrated(most),
        ),
        goodput("fig5.6a.svg", "Fig. 5.6a: one flow, testbed B", Bed::B, 1, most),
        goodput("fig5.6b.svg", "Fig. 5.6b: two flows, testbed B", Bed::B, 2, most),
        goodput("fig5.6c.svg", "Fig. 5.6c: five flows, testbed B", Bed::B, 5, most),
        unfairness(
            "fig5.7a.svg",
            "Fig. 5.7a: unfairness of two flows, testbed B",
            Bed::B,
            2,
            most,
        ),
        unfairness(
            "fig5.7b.svg",
            "Fig. 5.7b: unfairness of five flows, testbed B",
            Bed::B,
            5,
            most,
        ),
    ]
}

fn runs(m: &Measured, case: Case, of: fn(&Summary) -> f64) -> Vec<f64> {
    (0..m.seeds()).filter_map(|n| m.get(case, n).map(of)).collect()
}

fn over_hops(
    m: &Measured,
    title: &str,
    axis: Axis,
    bed: Bed,
    flows: u32,
    words: &str,
    of: fn(&Summary) -> f64,
) -> Figure {
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
            series
                .points
                .extend(over_runs(f64::from(hops), &runs(m, case, of)));
        }
        plot = plot.series(series);
    }
    Figure::new(title, Chart::Xy(plot)).how_to_read(format!("{BARS} {words}"))
}

/// The mean goodputs of the runs over six hops, as a distribution.
fn far(file: &'static str, title: &str, m: &Measured, flows: u32) -> (&'static str, Figure) {
    let x = Axis::linear("mean goodput of a flow (kb/s)");
    let mut plot = Xy::new(x, Axis::linear("share of runs with at most that").range(0.0, 1.0));
    for kind in KINDS {
        let case = |kind: Kind| Case {
            bed: A,
            hops: FAR,
            flows,
            kind,
        };
        plot = plot.series(distribution(kind.word(), runs(m, case(kind), Summary::mean_kbps)));
    }
    (
        file,
        Figure::new(title, Chart::Xy(plot)).how_to_read("One step for each run."),
    )
}
