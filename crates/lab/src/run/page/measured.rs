//! What was measured in time: latencies, confirms, the waterfall of the planes.

use std::ops::Range;

use super::{ROWS, left_out, side};
use crate::qualify::text::{count, percent, time};
use crate::report::Axis;
use crate::report::html::{Align, Section, Table};
use crate::report::plot::{Chart, Figure, Series, Stack, Xy};
use crate::run::{EntryResult, Fate, GroupResult, Planes, Run, STRETCHES, Stretch};
use crate::scenario::Scenario;
use crate::stats::{CcdfPoint, Online};

/// Curves in one plot: further ones would look like the first.
const CURVES: usize = 7;
/// Parts of the bars, with their stretches: as many as there are colours.
const BARS: [(&str, Range<usize>); 8] = [
    ("t1-t2", 0..1),
    ("t2-t3", 1..2),
    ("t3-t4", 2..3),
    ("t4-air", 3..4),
    ("air", 4..5),
    ("air-t5", 5..6),
    ("t5-t7", 6..8),
    ("t7-t9", 8..10),
];
pub(super) fn latencies(run: &Run) -> Option<Section> {
    if run.result.traffic.is_empty() {
        return None;
    }
    let mut section = Section::new("Latency");
    if let Some(m) = run.measured.as_ref().filter(|m| m.latency_ns.count() > 0) {
        let mut plot = Xy::new(
            Axis::linear("latency (ms)"),
            Axis::log("share of deliveries that take longer"),
        );
        let name = |e: &EntryResult| format!("{} → {}", e.from, e.to);
        if m.by_entry.len() != 1 {
            plot = plot.series(curve("all", &m.latency_ns));
        }
        for (n, online) in m.by_entry.iter().take(CURVES) {
            plot = plot.series(curve(&name(&run.result.traffic[*n]), online));
        }
        let figure = Figure::new("From submission to delivery", Chart::Xy(plot)).how_to_read(
            "At each latency, the share of deliveries that took longer. What was never delivered is not in it: the \
             table counts it.",
        );
        section = section.figure(figure);
    }
    let columns = [
        "from",
        "to",
        "submitted",
        "delivered",
        "p50",
        "p99",
        "p99.9",
        "max",
    ];
    let mut table = Table::new(columns.into_iter().enumerate().map(|(i, c)| (c, side(i, 2))));
    for e in run.result.traffic.iter().take(ROWS) {
        let quantiles = e.latency_us.map(|q| q.map(|us| time(us * 1e3)));
        let quantiles = quantiles.unwrap_or_else(|| std::array::from_fn(|_| "-".into()));
        let first = [
            e.from.clone(),
            e.to.clone(),
            count(e.submitted),
            count(e.delivered),
        ];
        table = table.row(first.into_iter().chain(quantiles));
    }
    Some(left_out(section.table(table), run.result.traffic.len()))
}

pub(super) fn confirms(run: &Run) -> Option<Section> {
    let groups: Vec<(&GroupResult, _)> = (run.result.groups.iter())
        .filter_map(|g| Some((g, g.confirms.as_ref().filter(|c| !c.is_empty())?)))
        .collect();
    if groups.is_empty() {
        return None;
    }
    let seen = |f: &Fate| groups.iter().any(|(_, c)| c.contains_key(f));
    let fates: Vec<Fate> = Fate::ALL.into_iter().filter(seen).collect();
    let head = [("group", Align::Left)].into_iter();
    let head = head.chain(fates.iter().map(|f| (f.words(), Align::Right)));
    let mut table = Table::new(head.chain([("acked", Align::Right)]));
    for (g, confirms) in &groups {
        let of = |f: &Fate| confirms.get(f).copied().unwrap_or(0);
        let answered = of(&Fate::Acked);
        let asked: u64 = [Fate::Acked, Fate::DataLost, Fate::AckLost].iter().map(of).sum();
        let ratio = if asked > 0 {
            percent(answered as f64 / asked as f64)
        } else {
            "-".into()
        };
        let cells = fates.iter().map(|f| count(of(f)));
        table = table.row([g.name.clone()].into_iter().chain(cells).chain([ratio]));
    }
    let mut section = Section::new("Confirms")
        .paragraph(
            "How requests ended. Of those that got no ACK, L_D are those whose frame arrived in no attempt, and L_A \
             those whose frame had arrived: only its ACK was lost. A sender cannot tell them apart, the simulator can.",
        )
        .table(table);
    if let Some(planes) = run.measured.as_ref().and_then(|m| m.planes.as_ref())
        && !planes.requests.is_empty()
    {
        let mut plot = Xy::new(
            Axis::linear("time from request to confirm (ms)"),
            Axis::log("share that takes longer"),
        );
        for (fate, online) in &planes.requests {
            plot = plot.series(curve(fate.words(), online));
        }
        section = section.figure(
            Figure::new("From request to confirm", Chart::Xy(plot))
                .how_to_read("One curve for each way to end, of requests that were on the air."),
        );
    }
    Some(section)
}

pub(super) fn waterfall(scenario: &Scenario, run: &Run) -> Option<Section> {
    let planes: &Planes = run.measured.as_ref()?.planes.as_ref()?;
    if planes.ways.is_empty() {
        return None;
    }
    let mean = |way: &[Stretch], i: usize| way[i].mean_ns.mean().unwrap_or(0.0);
    let names = planes
        .ways
        .keys()
        .map(|g| scenario.file().group[*g].name.get_ref());
    // what takes no time anywhere is left out
    let seen = |i: &usize| planes.ways.values().any(|way| mean(way, *i) > 0.0);
    let parts: Vec<_> = BARS
        .iter()
        .filter(|(_, stretches)| stretches.clone().any(|i| seen(&i)))
        .collect();
    let mut stack = Stack::new(
        Axis::linear("mean time (µs)"),
        parts.iter().map(|(name, _)| *name),
    );
    for (name, way) in names.clone().zip(planes.ways.values()) {
        let sum = |stretches: &Range<usize>| stretches.clone().map(|i| mean(way, i)).sum::<f64>() / 1e3;
        stack = stack.row(name, parts.iter().map(|(_, stretches)| sum(stretches)));
    }
    let head = [("mean / p99.9", Align::Left)].into_iter();
    let mut table = Table::new(head.chain(names.map(|n| (n.as_str(), Align::Right))));
    for i in (0..STRETCHES.len()).filter(seen) {
        let cell = |way: &Vec<Stretch>| {
            let high = way[i].spread_ns.quantile(0.999).unwrap_or(0);
            format!("{} / {}", time(mean(way, i)), time(high as f64))
        };
        table = table.row(
            [STRETCHES[i].to_owned()]
                .into_iter()
                .chain(planes.ways.values().map(cell)),
        );
    }
    let figure = Figure::new("Where the time of an acknowledged request goes", Chart::Stack(stack)).how_to_read(
        "t1 to t4: from the call to the ring; t4-air: adapter and waiting for the channel, earlier attempts included; \
         air: the last exchange; t5 to t9: from the interrupt back to the caller. A plane that a host does not stamp \
         takes no time here, and what takes none anywhere is left out.",
    );
    let mut section = Section::new("Waterfall of the planes")
        .figure(figure)
        .table(table);
    if planes.left_out > 0 {
        let n = count(planes.left_out);
        section = section.paragraph(format!(
            "{n} requests are left out, because their clock jumped on the way."
        ));
    }
    Some(section)
}

fn curve(name: &str, online: &Online) -> Series {
    Series::ccdf(name, &thin(&online.ccdf()), 1e6)
}

/// At most about 200 points, the tail in full.
fn thin(points: &[CcdfPoint]) -> Vec<CcdfPoint> {
    let mut kept: Vec<CcdfPoint> = Vec::new();
    for (i, c) in points.iter().enumerate() {
        if kept.last().is_none_or(|k| c.p < k.p * 0.96 || c.x > k.x * 1.5) || i + 1 == points.len() {
            kept.push(*c);
        }
    }
    kept
}
