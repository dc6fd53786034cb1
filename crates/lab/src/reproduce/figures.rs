//! Figures 5 and 6 of the SDMAC paper from our samples.

use super::bed::Span;
use super::counts::Counts;
use super::estimate::Estimate;
use super::plan::Measured;
use crate::report::Axis;
use crate::report::plot::{Chart, Figure, Mark, Series, Shape, Xy};

/// Points of a CCDF for each factor of ten.
const PER_DECADE: u32 = 60;

/// The plots, each with the name of its file.
pub fn figures(measured: &Measured) -> Vec<(&'static str, Figure)> {
    let mut all = vec![("fig5.svg", payload(measured))];
    let panels = [
        ("fig6a-request.svg", "T_sw_req", Span::Request),
        ("fig6b-hardware.svg", "T_hw", Span::Hardware),
        ("fig6c-confirm.svg", "T_sw_con", Span::Confirm),
        ("fig6d-sdmac.svg", "T_SDMAC", Span::Sdmac),
    ];
    all.extend(panels.map(|(file, name, span)| (file, outcomes(measured, name, span))));
    all
}

type Statistic = fn(&Counts) -> Option<Estimate>;

/// T_SDMAC over the payload.
fn payload(measured: &Measured) -> Figure {
    let statistics: [(&str, Statistic); 4] = [
        ("99.9 %", |c| c.quantile(0.999)),
        ("99 %", |c| c.quantile(0.99)),
        ("mean", Counts::mean),
        ("minimum", |c| c.min(c.count())),
    ];
    let mut plot = Xy::new(Axis::linear("payload (octets)"), Axis::linear("T_SDMAC (µs)"));
    for (name, of) in statistics {
        let points = measured.by_payload().filter_map(|(octets, sets)| {
            let us = of(sets.acked.of(Span::Sdmac))?.value;
            Some((f64::from(octets), us))
        });
        plot = plot.series(Series::new(name, Shape::LinePoints, points.collect::<Vec<_>>()));
    }
    plot = plot.mark(Mark::x(500.0, "500 octets"));
    Figure::new("Fig. 5: T_SDMAC and the payload", Chart::Xy(plot)).how_to_read(
        "The adapter fetches up to 500 octets before it starts; longer frames are fetched while they are sent.",
    )
}

/// The complementary distribution functions of one span by outcome.
fn outcomes(measured: &Measured, name: &str, span: Span) -> Figure {
    let sets = [
        ("A", &measured.week().acked),
        ("L_D", &measured.data_lost().data_lost),
        ("L_A", &measured.ack_lost().ack_lost),
    ];
    let label = format!("{name} (µs)");
    let mut plot = Xy::new(Axis::linear(label), Axis::log("share above").range(1e-7, 1.0));
    for (set, samples) in sets {
        plot = plot.series(Series::ccdf(set, &samples.of(span).ccdf(PER_DECADE), 1e3));
    }
    Figure::new(format!("Fig. 6: {name} by outcome"), Chart::Xy(plot)).how_to_read(
        "A: acked; L_D: data lost; L_A: ACK lost. L_D and L_A are from beds in which every frame, and every ACK, \
         is lost.",
    )
}
