//! A few short runs, and what each plot shows of them.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::mesh::Kind;
use crate::report::plot::Chart;
use crate::reproduce::atp::{Bed, Case, LOSS, Plan, Scene, What, page};

const PLAN: Plan = Plan { seed: 7, quick: true };

fn few() -> Measured {
    let shown = [Kind::Default, Kind::Aggressive, Kind::Adaptive].map(Case::shown);
    let far = [2, 5].map(|flows| Case {
        bed: Bed::A(LOSS),
        hops: 6,
        flows,
        kind: Kind::Adaptive,
    });
    let cases: Vec<Case> = shown.into_iter().chain(far).collect();
    let scenes = [What::Stack, What::Files(2), What::Streams(2)].map(|what| Scene {
        what,
        tries: 1,
        kind: Kind::Adaptive,
    });
    PLAN.run_some(&cases, &scenes, 0, &AtomicBool::new(false), &|_| {})
}

/// Series with their numbers of points, and of error bars, and marks.
fn told(file: &str, figure: &Figure) -> String {
    let Chart::Xy(plot) = &figure.chart else {
        panic!("{file} is another kind of plot")
    };
    let mut text = format!("{file}: {}\n", figure.title);
    for s in plot.series.iter().filter(|s| !s.points.is_empty()) {
        let bars = s.points.iter().filter(|p| p.bar.is_some()).count();
        let _ = writeln!(text, "  {}: {} points, {bars} bars", s.name, s.points.len());
    }
    let marks = plot.marks.iter().map(|m| format!("  mark {m:?}\n"));
    text + &marks.collect::<String>()
}

#[test]
fn what_each_plot_shows() {
    let measured = few();
    let all = figures(&measured);
    let text: Vec<String> = all.iter().map(|(file, figure)| told(file, figure)).collect();
    insta::assert_snapshot!(text.concat());
    for (file, figure) in &all {
        let svg = figure.standalone();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{file}");
        roxmltree::Document::parse(&svg).unwrap_or_else(|e| panic!("{file}: {e}"));
    }
    let judged = crate::reproduce::atp::judge(&PLAN, &measured);
    let html = page(&measured, &judged, "1 s").html();
    let xml = html.replace("<!DOCTYPE html>\n", "");
    let lines = xml.lines().filter(|l| !l.starts_with("<meta "));
    let xml = lines.collect::<Vec<_>>().join("\n");
    let document = roxmltree::Document::parse(&xml).unwrap();
    let drawn = document
        .descendants()
        .filter(|n| n.has_tag_name("figure"))
        .count();
    assert_eq!(drawn, all.len());
}

/// Flows over time are what was measured: D fed back is heard as it was said, and later; the spacing follows.
#[test]
fn traces_hold_together() {
    let measured = few();
    for kind in [Kind::Default, Kind::Aggressive, Kind::Adaptive] {
        for n in 0..measured.seeds() {
            let flow = measured.traced(Case::shown(kind), n).unwrap();
            let (said, heard) = (&flow.received.feedback_us, &flow.sent.feedback_us);
            assert!(heard.len() > 2 && heard.len() <= said.len(), "{kind:?} {n}");
            let marks = [&flow.received, &flow.sent].map(|end| end.feedback_marks.len());
            assert_eq!(marks, [said.len(), heard.len()]);
            let mut said = said.iter();
            for (at, us) in heard {
                assert!(
                    said.any(|(then, told)| told == us && then < at),
                    "{kind:?} {n}: {us}"
                );
            }
            let octets: u64 = flow.received.delivered.iter().map(|d| u64::from(d.1)).sum();
            assert_eq!(octets, flow.octets);
            assert!(
                flow.sent
                    .chosen_us
                    .windows(2)
                    .all(|w| w[0].0 <= w[1].0 && w[0].1 != w[1].1)
            );
        }
    }
}

/// Without runs there is nothing to show but axes.
#[test]
fn stopped_before_it_began() {
    let none = PLAN.run(1, &AtomicBool::new(true), &|_| {});
    let all = figures(&none);
    assert!(all.iter().all(|(file, _)| {
        ["5.1.", "5.1_", "5.4", "5.5", "5.6", "5.7"]
            .iter()
            .any(|n| file.contains(n))
    }));
}

#[test]
fn order_and_numbers() {
    assert!(number("fig5.9e.svg") < number("fig5.10-02.svg"));
    assert!(number("fig5.10-02.svg") < number("fig5.10-16.svg"));
    assert!(number("fig5.1.svg") < number("fig5.1_calibrated.svg"));
    assert!(number("fig5.1_calibrated.svg") < number("fig5.2a-delay.svg"));
    assert!(number("fig5.4a.svg") < number("fig5.4a_calibrated.svg"));
    assert_eq!(over_runs(3.0, &[]), None);
    assert_eq!(
        over_runs(3.0, &[1.0, 3.0]),
        Some(Point::with_bar(3.0, 2.0, 1.0, 3.0))
    );
    let shares = distribution("x", vec![5.0, 2.0]);
    let points: Vec<_> = shares.points.iter().map(|p| (p.x, p.y)).collect();
    assert_eq!(points, [(2.0, 0.0), (2.0, 0.5), (5.0, 1.0)]);
    assert_eq!(
        [0.123, 1.26, 545.4].map(|x| Short(x).to_string()),
        ["0.12", "1.3", "545"]
    );
}
