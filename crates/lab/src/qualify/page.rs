//! The answer as a page: banner, tail of the latencies, waterfall, air use, what everything rests on.

use super::answer::{Answer, Latency, Result};
use super::table::has_unasked;
use super::tally::PLANE_NAMES;
use super::text::{count, percent, probability, time};
use crate::report::Axis;
use crate::report::html::{Align, Banner, Cell, Report, Section, Table};
use crate::report::plot::{Chart, Figure, Mark, Series, Stack, Xy};
use crate::stats::{CcdfPoint, Verdict};

/// The latencies are shown in ms.
const NS_PER_MS: f64 = 1e6;

/// The page. `command` is how to get it again.
pub fn page(a: &Answer, command: &str) -> Report {
    let q = &a.question;
    let best = [Verdict::Pass, Verdict::Undecided, Verdict::Fail]
        .into_iter()
        .find(|v| a.schemes.iter().any(|r| r.verdict == *v));
    Report {
        title: format!(
            "{} nodes, cycle {}, {} octets: at most {} missed?",
            q.nodes,
            time(q.cycle_ns as f64),
            q.payload_octets,
            probability(q.miss)
        ),
        subtitle: format!(
            "802.11{} at {}, host {}, {}, seed {}, sdmac {}",
            q.phy,
            q.rate,
            q.host,
            q.offsets.words(),
            q.seed,
            env!("CARGO_PKG_VERSION")
        ),
        banner: best.map(|verdict| Banner {
            verdict,
            text: a.recommendation.clone(),
        }),
        sections: vec![
            verdicts(a),
            latencies(a),
            waterfall(a),
            air(a),
            assumptions(a, command),
        ],
        footer: if a.interrupted {
            "The run was stopped early.".into()
        } else {
            String::new()
        },
    }
}

fn verdicts(a: &Answer) -> Section {
    let mut table = Table::new([
        ("scheme", Align::Left),
        ("verdict", Align::Centre),
        ("missed", Align::Right),
        ("95 % interval", Align::Right),
        ("messages", Align::Right),
        ("cycles", Align::Right),
        ("shortest cycle", Align::Right),
    ]);
    for r in &a.schemes {
        table = table.row([
            Cell::from(r.scheme.word()),
            r.verdict.into(),
            r.miss_probability.map_or("-".into(), probability).into(),
            r.interval
                .map_or("not run".into(), |i| {
                    format!("{} to {}", probability(i.low), probability(i.high))
                })
                .into(),
            count(r.messages).into(),
            count(r.cycles).into(),
            r.shortest.map_or("-".into(), |s| time(s.cycle_ns as f64)).into(),
        ]);
    }
    let mut section = Section::new("Verdict").table(table);
    for r in &a.schemes {
        section = section.paragraph(format!("{}: {} {}", r.scheme.word(), r.why, r.advice.join(" ")));
        if let Some(s) = &r.slots {
            section = section.values([
                ("slot", time(s.slot_ns as f64)),
                ("guard", time(s.guard_ns as f64)),
                ("release, smallest", time(s.release_min_ns as f64)),
                ("release, high", time(s.release_high_ns as f64)),
                (
                    "error of the clocks",
                    format!(
                        "{}, measured over {} beacons at p{}",
                        time(s.sync_error_ns as f64),
                        count(s.sync_beacons),
                        s.quantile * 100.0
                    ),
                ),
                (
                    "guard probability, late frames",
                    format!(
                        "{}, {}",
                        s.quantile,
                        s.late_share.map_or("not run".into(), probability)
                    ),
                ),
                ("slots per message", s.rounds.to_string()),
                ("shared slots", s.shared.to_string()),
            ]);
            if let Some(j) = &s.joining {
                section = section.paragraph(super::table::joining(j));
            }
        }
    }
    for (scheme, told) in (a.schemes.iter()).map(|r| (r.scheme.word(), r.overlay.sentences())) {
        if !told.is_empty() {
            section = section.paragraph(format!("{scheme}: {}", told.join(" ")));
        }
    }
    for (scheme, h) in (a.schemes.iter()).filter_map(|r| Some((r, r.hand_overs.as_ref()?))) {
        let text = super::table::hand_overs(h, scheme.misses);
        section = section.paragraph(format!("{}: {text}", scheme.scheme.word()));
    }
    let said = a
        .schemes
        .iter()
        .filter_map(|r| Some((r.scheme.word(), r.admission.as_ref()?)));
    for (scheme, admission) in said {
        section = section.paragraph(format!("{scheme}, without a run: {}", admission.sentence()));
    }
    section.table(causes(a))
}

fn causes(a: &Answer) -> Table {
    let names = a.schemes.first().map(|r| r.causes.named().map(|(name, _)| name));
    let head = names.into_iter().flatten().map(|name| (name, Align::Right));
    let mut table = Table::new(std::iter::once(("misses because", Align::Left)).chain(head));
    for r in &a.schemes {
        let numbers = r.causes.named().map(|(_, n)| count(n));
        table = table.row([r.scheme.word().to_owned()].into_iter().chain(numbers));
    }
    table
}

fn latencies(a: &Answer) -> Section {
    let mut plot = Xy::new(
        Axis::linear("latency (ms)"),
        Axis::log("share of messages that take longer"),
    );
    for r in a.schemes.iter().filter(|r| !r.ccdf.is_empty()) {
        plot = plot.series(Series::ccdf(
            r.scheme.word(),
            &points(r, a.question.cycle_ns as f64),
            NS_PER_MS,
        ));
    }
    plot = plot.mark(Mark::x(a.question.cycle_ns as f64 / NS_PER_MS, "deadline"));
    plot = plot.mark(Mark::y(a.question.miss, "target"));
    let figure = Figure::new("Latency of all messages, both ways", Chart::Xy(plot)).how_to_read(
        "A curve must be below the target where it crosses the deadline. Messages that never arrive keep a curve up.",
    );
    let columns = ["", "lost", "mean", "p50", "p99", "p99.9", "p99.99", "max"];
    let align = |i| if i == 0 { Align::Left } else { Align::Right };
    let mut table = Table::new(columns.into_iter().enumerate().map(|(i, c)| (c, align(i))));
    for r in &a.schemes {
        for (way, l) in [("down", &r.down), ("up", &r.up)] {
            table = table.row(row(&format!("{} {way}", r.scheme.word()), l));
        }
    }
    Section::new("Latency").figure(figure).table(table)
}

/// At most about 200 points, the tail in full. What never arrived keeps the curve up at least to the deadline.
fn points(r: &Result, deadline_ns: f64) -> Vec<CcdfPoint> {
    let mut kept: Vec<CcdfPoint> = Vec::new();
    for (i, c) in r.ccdf.iter().enumerate() {
        let far = kept.last().is_none_or(|k| c.p < k.p * 0.94);
        if far || i + 1 == r.ccdf.len() {
            kept.push(*c);
        }
    }
    if let Some(last) = kept.last().copied().filter(|c| c.p > 0.0 && c.x < deadline_ns) {
        kept.push(CcdfPoint {
            x: deadline_ns,
            ..last
        });
    }
    kept
}

fn row(name: &str, l: &Latency) -> Vec<String> {
    let ns = |x: Option<u64>| x.map_or("lost".into(), |x| time(x as f64));
    vec![
        name.to_owned(),
        count(l.lost),
        l.mean_ns.map_or("-".into(), time),
        ns(l.p50_ns),
        ns(l.p99_ns),
        ns(l.p99_9_ns),
        ns(l.p99_99_ns),
        ns(l.max_ns),
    ]
}

/// Bars of the waterfall, each with the stretches that it sums up: the host before the air, the adapter, the host
/// after it.
const BARS: [(&str, std::ops::Range<usize>); 5] = [
    ("t1-t4", 0..3),
    ("t4-air", 3..4),
    ("air", 4..5),
    ("air-t5", 5..6),
    ("t5-t9", 6..10),
];

fn waterfall(a: &Answer) -> Section {
    let ran: Vec<_> = a.schemes.iter().filter(|r| r.messages > 0).collect();
    let mut stack = Stack::new(Axis::linear("mean time (µs)"), BARS.map(|(name, _)| name));
    for r in &ran {
        let us = |range: std::ops::Range<usize>| -> f64 {
            r.waterfall[range].iter().filter_map(|s| s.mean_ns).sum::<f64>() / 1e3
        };
        stack = stack.row(r.scheme.word(), BARS.map(|(_, range)| us(range)));
    }
    let head = ran
        .iter()
        .map(|r| (format!("{}, mean / p99.9", r.scheme.word()), Align::Right));
    let mut table = Table::new(std::iter::once((String::from("planes"), Align::Left)).chain(head));
    for (i, name) in PLANE_NAMES.into_iter().enumerate() {
        let cells = ran
            .iter()
            .map(|r| match (r.waterfall[i].mean_ns, r.waterfall[i].p99_9_ns) {
                (Some(mean), Some(high)) => format!("{} / {}", time(mean), time(high as f64)),
                _ => "-".into(),
            });
        table = table.row(std::iter::once(name.to_owned()).chain(cells));
    }
    let figure = Figure::new("Where the time of an acknowledged request goes", Chart::Stack(stack)).how_to_read(
        "t1 to t4: from the call to the ring; t4-air: adapter and waiting for the channel, earlier tries included; air: \
         the last exchange; t5 to t9: from the interrupt back to the caller.",
    );
    Section::new("Waterfall of the planes")
        .figure(figure)
        .table(table)
}

fn air(a: &Answer) -> Section {
    let mut stack = Stack::new(
        Axis::linear("share of time (%)").range(0.0, 100.0),
        ["data", "ACK", "overhead", "foreign"],
    );
    let mut table = Table::new([
        ("", Align::Left),
        ("data", Align::Right),
        ("ACK", Align::Right),
        ("overhead", Align::Right),
        ("foreign", Align::Right),
        ("frames per message", Align::Right),
        ("collided", Align::Right),
        ("disturbed", Align::Right),
    ]);
    for r in a.schemes.iter().filter(|r| r.messages > 0) {
        let u = &r.air;
        let shares = [u.data, u.ack, u.overhead, u.foreign];
        stack = stack.row(r.scheme.word(), shares.map(|s| s * 100.0));
        let [data, ack, overhead, foreign] = shares.map(percent);
        let frames = format!("{:.2}", u.frames_per_message);
        let (collided, disturbed) = (percent(u.collided_frames), percent(u.disturbed_frames));
        table = table.row([
            r.scheme.word(),
            data,
            ack,
            overhead,
            foreign,
            frames,
            collided,
            disturbed,
        ]);
    }
    let figure = Figure::new("What is on the air", Chart::Stack(stack))
        .how_to_read("Overhead is what carries no message: polls, empty answers, beacons. The rest is idle, backoff included.");
    Section::new("Air use")
        .figure(figure)
        .table(table)
        .table(tries(a))
}

fn tries(a: &Answer) -> Table {
    let head = [
        ("tries on the air", Align::Left),
        ("all", Align::Right),
        ("acked (A)", Align::Right),
        ("data lost (L_D)", Align::Right),
        ("ACK lost (L_A)", Align::Right),
        ("arrived, no ACK asked for", Align::Right),
    ];
    // as in the table of the terminal
    let shown = head.len() - usize::from(!has_unasked(a));
    let mut table = Table::new(head.into_iter().take(shown));
    for r in a.schemes.iter().filter(|r| r.messages > 0) {
        let t = &r.tries;
        let cell = |n: u64| {
            format!(
                "{} ({})",
                count(n),
                probability(n as f64 / t.count().max(1) as f64)
            )
        };
        let cells = [
            r.scheme.word(),
            count(t.count()),
            cell(t.acked),
            cell(t.data_lost),
            cell(t.ack_lost),
            cell(t.unasked),
        ];
        table = table.row(cells.into_iter().take(shown));
    }
    table
}

fn assumptions(a: &Answer, command: &str) -> Section {
    let numbered = (1..)
        .zip(&a.assumptions)
        .map(|(i, text)| (i.to_string(), text.clone()));
    Section::new("Assumptions").values(numbered).verbatim(command)
}

#[cfg(test)]
mod tests {
    use super::super::{Question, Setting, qualify};
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// The axis is in ms: a cycle of 4 ms ends where its ticks say, not twelve powers of ten away.
    #[test]
    fn the_deadline_stands_on_the_axis_of_the_latencies() {
        let stop = AtomicBool::new(false);
        let setting = Setting {
            jobs: 1,
            stop: &stop,
            progress: &|_| {},
        };
        let q = Question {
            nodes: 2,
            miss: 0.1,
            max_cycles: Some(200),
            quick: true,
            ..Question::example()
        };
        let answer = qualify(&q, &setting).unwrap();
        let page = page(&answer, "").html();
        assert!(page.contains(">latency (ms)<"), "no power of ten beside the unit");
        let mut r = answer.schemes[1].clone();
        r.ccdf = vec![CcdfPoint { x: 1e6, p: 0.25 }];
        let points = points(&r, 4e6);
        assert_eq!(points.last().map(|c| (c.x, c.p)), Some((4e6, 0.25)));
    }
}
