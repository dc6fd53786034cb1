//! Figures 8 to 10 of the paper from our samples, and the communication latency among three hosts, with the card's own access and
//! in slots.

use super::bed::Host;
use super::{Experiment, Measured};
use crate::report::Axis;
use crate::report::plot::{Chart, Figure, Histogram, Series, Xy};
use crate::stats::Sorted;

/// Points of a CCDF for each factor of ten.
const PER_DECADE: u32 = 60;

/// The plots, each with the name of its file; those without samples are left out.
pub fn figures(measured: &Measured) -> Vec<(&'static str, Figure)> {
    let mut all = Vec::new();
    if let Some(host) = measured.of(Experiment::Benchmark).hosts.first() {
        let panels: [(&str, &str, &Vec<u64>); 3] = [
            ("fig8-software.svg", "software latency", &host.software),
            ("fig9-firmware.svg", "firmware latency", &host.firmware),
            (
                "fig10-communication.svg",
                "communication latency",
                &host.communication,
            ),
        ];
        for (file, name, ns) in panels {
            let sorted = Sorted::new(ns.clone());
            let histogram = Histogram::new(Axis::linear(format!("{name} (µs)")), &[("ours", &sorted)], 1e3);
            all.push((
                file,
                Figure::new(format!("Benchmark: {name}"), Chart::Histogram(histogram)),
            ));
        }
    }
    let mut plot = Xy::new(
        Axis::linear("from the card to the beginning on the air (µs)"),
        Axis::log("share above").range(1e-4, 1.0),
    );
    let mut any = false;
    for (experiment, names) in [
        (Experiment::Three, ["A, immediate access", "B, immediate access"]),
        (Experiment::ThreeTbmac, ["A, TBMAC", "B, TBMAC"]),
    ] {
        let hosts: &[Host] = &measured.of(experiment).hosts;
        for (host, name) in hosts.iter().skip(1).zip(names) {
            let waiting = Sorted::new(host.waiting.clone());
            any |= !waiting.is_empty();
            plot = plot.series(Series::ccdf(name, &waiting.ccdf(PER_DECADE), 1e3));
        }
    }
    if any {
        let figure = Figure::new("Three hosts: waiting for the medium", Chart::Xy(plot)).how_to_read(
            "In slots of TBMAC nobody waits for the medium at all: both curves are a point at 0.",
        );
        all.push(("three-hosts.svg", figure));
    }
    all
}
