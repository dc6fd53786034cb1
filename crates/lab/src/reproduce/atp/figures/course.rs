//! One flow of ATP over three hops of testbed A, over time: figures 5.2 and 5.3 of the thesis.

use super::Said;
use crate::mesh::metrics::sliding;
use crate::mesh::{Chain, Ended, Kind};
use crate::report::Axis;
use crate::report::plot::{Chart, Figure, Mark, Point, Series, Shape, Xy};
use crate::reproduce::atp::Case;
use crate::reproduce::atp::feedback::slowest;
use crate::reproduce::atp::plan::Measured;
use crate::reproduce::atp::summary::PACKET_BITS;

/// The window of instantaneous goodput (thesis, section 5.1.1), and from one to the next.
const WINDOW_NS: u64 = 200_000_000;
const STEP_NS: u64 = 20_000_000;
/// What is shown on either side of the feedback that figure 5.3b looks at.
const AROUND_NS: u64 = 100_000_000;

/// A run to be shown.
struct Shown<'m> {
    flow: &'m Ended,
    /// Which one, and why.
    words: String,
}

/// The runs of default ATP with the fastest and the slowest first rate, and those of the others on the same air as the
/// first of these.
pub(super) fn figures(m: &Measured, said: &Said) -> Vec<(&'static str, Figure)> {
    let start = |n: &u64| m.get(Case::shown(Kind::Default), *n)?.start_ratio;
    let mut runs: Vec<u64> = (0..m.seeds()).filter(|n| start(n).is_some()).collect();
    runs.sort_by(|a, b| {
        start(a)
            .partial_cmp(&start(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let (Some(&slow), Some(&fast)) = (runs.first(), runs.last()) else {
        return Vec::new();
    };
    let first_rate = |n: u64, which: &str, theirs: &str| {
        let ratio = start(&n).unwrap_or(0.0);
        format!(
            "Of {} runs that with the {which} first rate: {ratio:.2} times what the flow reached. In the thesis it is too {theirs}.",
            runs.len()
        )
    };
    let shown = |kind, n, words| {
        let flow = m.traced(Case::shown(kind), n)?;
        Some(Shown { flow, words })
    };
    let mut all = Vec::new();
    if let Some(run) = shown(Kind::Default, fast, first_rate(fast, "fastest", "fast")) {
        let title = "Fig. 5.2a: default ATP, fastest first rate";
        all.push(("fig5.2a-goodput.svg", goodput(title, &run)));
        all.push(("fig5.2a-delay.svg", surge(title, &run, said)));
    }
    if let Some(run) = shown(Kind::Default, slow, first_rate(slow, "slowest", "slow")) {
        let title = "Fig. 5.2b: default ATP, slowest first rate";
        all.push(("fig5.2b-goodput.svg", goodput(title, &run)));
        all.push(("fig5.2b-delay.svg", delay(title, &run)));
    }
    let same = || "The same air as in figure 5.2a.".to_owned();
    if let Some(run) = shown(Kind::Aggressive, fast, same()) {
        let title = "Fig. 5.3a: aggressive ATP";
        all.push(("fig5.3a-goodput.svg", goodput(title, &run)));
        all.push(("fig5.3a-delay.svg", delay(title, &run)));
        all.extend(zoomed(&run).map(|figure| ("fig5.3b.svg", figure)));
    }
    if let Some(run) = shown(Kind::Adaptive, fast, same()) {
        let title = "Fig. 5.3c: adaptive ATP";
        all.push(("fig5.3c-goodput.svg", goodput(title, &run)));
        all.push(("fig5.3c-delay.svg", delay(title, &run)));
    }
    all
}

/// Seconds since the call.
fn seconds(ns: u64) -> f64 {
    (ns as f64 - Chain::START_NS as f64) / 1e9
}

fn milliseconds(trace: &[(u64, u32)]) -> impl Iterator<Item = (f64, f64)> {
    trace.iter().map(|(at, us)| (seconds(*at), f64::from(*us) / 1e3))
}

fn time() -> Axis {
    Axis::linear("time since the call (s)")
}

/// Goodput as it is plotted: instant in ns, kb/s of the window before. `delivered`: time in ns, octets.
pub(in crate::reproduce::atp) fn windows(delivered: &[(u64, u32)], span: (u64, u64)) -> Vec<(u64, f64)> {
    sliding(delivered, span, WINDOW_NS, STEP_NS)
}

fn goodput(title: &str, run: &Shown<'_>) -> Figure {
    let end_ns = run.flow.received.delivered.last().map_or(0, |d| d.0);
    let shown = windows(&run.flow.received.delivered, (Chain::START_NS, end_ns));
    let points = shown.into_iter().map(|(at, kbps)| (seconds(at), kbps));
    let series = Series::new("goodput", Shape::Line, points);
    let plot = Xy::new(time(), Axis::linear("goodput of the last 200 ms (kb/s)")).series(series);
    Figure::new(format!("{title}: goodput"), Chart::Xy(plot)).how_to_read(run.words.clone())
}

/// D_max of each packet at the receiver, what it feeds back, and the sender's spacing.
fn delays(run: &Shown<'_>, span: impl Fn(f64) -> bool) -> Xy {
    let (sent, received) = (&run.flow.sent, &run.flow.received);
    let within = |p: &(f64, f64)| span(p.0);
    let d_max = milliseconds(&received.delays_us).filter(within);
    let fed_back = milliseconds(&received.feedback_us).filter(within);
    let chosen = milliseconds(&sent.chosen_us).filter(within);
    Xy::new(time(), Axis::linear("delay (ms)"))
        .series(Series::new("D_max of each packet", Shape::Points, d_max))
        .series(Series::new("D_s of the sender", Shape::Step, chosen))
        .series(Series::new("D fed back", Shape::Points, fed_back))
}

fn delay(title: &str, run: &Shown<'_>) -> Figure {
    Figure::new(format!("{title}: delay"), Chart::Xy(delays(run, |_| true))).how_to_read(run.words.clone())
}

/// With what the thesis says of its run: D_max rises by so much, then the rate falls below that.
fn surge(title: &str, run: &Shown<'_>, said: &Said) -> Figure {
    let (ms, mbps) = (said.thesis("1-24", "d_max"), said.thesis("1-25", "rate"));
    let plot = delays(run, |_| true)
        .mark(Mark::y(ms, format!("thesis: D_max rises by more than {ms} ms")))
        .mark(Mark::y(
            PACKET_BITS / 1e3 / mbps,
            format!("thesis: then D_s is longer than this, {mbps} Mb/s"),
        ));
    let words = format!(
        "{} Medians of our runs: longest D_max {}, lowest rate {}.",
        run.words,
        said.both("1-24", "d_max", " ms"),
        said.both("1-25", "rate", " Mb/s")
    );
    Figure::new(format!("{title}: delay"), Chart::Xy(plot)).how_to_read(words)
}

/// Around the feedback that took longest.
fn zoomed(run: &Shown<'_>) -> Option<Figure> {
    let (sent, came) = slowest(run.flow)?;
    let (from, to) = (seconds(sent.saturating_sub(AROUND_NS)), seconds(came + AROUND_NS));
    let span = |s: f64| (from..=to).contains(&s);
    let mut plot = delays(run, span);
    // the spacing holds from before, and beyond
    let chosen = &run.flow.sent.chosen_us;
    let until = |end: f64| milliseconds(chosen).take_while(|p| p.0 <= end).last();
    let steps = &mut plot.series[1].points;
    steps.splice(..0, until(from).map(|(_, ms)| Point::new(from, ms)));
    steps.extend(until(to).map(|(_, ms)| Point::new(to, ms)));
    let heard = milliseconds(&run.flow.sent.feedback_us).filter(|p| span(p.0));
    plot = plot.series(Series::new("D when it came to the sender", Shape::Points, heard));
    plot.x = time().range(from, to);
    let words = format!(
        "Feedback is sent once in 40 ms and shares the air with the data. Around the one that took longest in this run, {:.0} ms. \
         The thesis shows feedback that came in a cluster, at 0.15 s of one of its runs.",
        (came - sent) as f64 / 1e6
    );
    Some(Figure::new("Fig. 5.3b: aggressive ATP, feedback on its way", Chart::Xy(plot)).how_to_read(words))
}
