//! What a study of timers shows: tables for a terminal, figures, and a page.

use std::fmt::Write as _;

use linux::host::{EMULATED, Load, Sched, Work};

use super::super::host::computer;
use super::{Row, Statistics, Studied, Study};
use crate::report::Axis;
use crate::report::html::{Align, Report, Section, Table};
use crate::report::plot::{Chart, Figure, Histogram, Mark, Series, Xy};
use crate::stats::Sorted;

/// Points of a CCDF for each factor of ten.
const PER_DECADE: u32 = 40;
/// Columns of the statistics.
const COLUMNS: [&str; 7] = ["min", "median", "mean", "sd", "p99", "p99.9", "max"];

/// One series for the figures: load, scheduling, source, lateness and intervals in ns.
pub(super) type Body = (Load, Sched, &'static str, Sorted<u64>, Sorted<u64>);

/// The figures of one interval: for each load and scheduling a histogram of the intervals, and who is late by how much.
pub(super) fn figures(interval_us: u32, bodies: &[Body]) -> Vec<(String, Figure)> {
    let mut figures = Vec::new();
    let mut conditions: Vec<(Load, Sched)> = bodies.iter().map(|b| (b.0, b.1)).collect();
    conditions.sort();
    conditions.dedup();
    for (load, sched) in conditions {
        let here = || {
            bodies
                .iter()
                .filter(|b| (b.0, b.1) == (load, sched) && !b.4.is_empty())
        };
        if here().next().is_none() {
            continue;
        }
        let under = format!("{interval_us} us, {load}, {sched}");
        let file = format!("{interval_us}us-{load}-{sched}.svg");
        let sorted: Vec<(&str, &Sorted<u64>)> = here().map(|b| (b.2, &b.4)).collect();
        let histogram = Histogram::new(Axis::linear("interval (µs)"), &sorted, 1e3)
            .mark(Mark::x(f64::from(interval_us), "asked for"));
        figures.push((
            format!("interval-{file}"),
            Figure::new(format!("Intervals, {under}"), Chart::Histogram(histogram))
                .how_to_read("From one wake-up to the next; narrower is better."),
        ));
        let mut plot = Xy::new(
            Axis::log("lateness (µs)"),
            Axis::log("share above").range(1e-6, 1.0),
        );
        for (_, _, source, lateness, _) in here() {
            plot = plot.series(Series::ccdf(*source, &lateness.ccdf(PER_DECADE), 1e3));
        }
        figures.push((
            format!("lateness-{file}"),
            Figure::new(format!("Lateness, {under}"), Chart::Xy(plot))
                .how_to_read("How many wake-ups are later than so much; further left is better."),
        ));
    }
    figures
}

fn numbers(s: Option<&Statistics>) -> [String; 7] {
    let us = |us: f64| format!("{us:.2}");
    let Some(s) = s else {
        return std::array::from_fn(|_| "-".into());
    };
    [
        us(s.min_us),
        us(s.p50_us),
        us(s.mean_us),
        us(s.sd_us),
        us(s.p99_us),
        s.p999_us.map_or("-".into(), us),
        us(s.max_us),
    ]
}

/// One of the two bodies of statistics of a row.
type Of = fn(&Row) -> Option<&Statistics>;

/// Both with their headings.
const TABLES: [(&str, Of); 2] = [
    ("Lateness, us", |r| r.lateness.as_ref()),
    ("Interval, us", |r| r.interval.as_ref()),
];

/// What a reader must know beside the numbers.
pub fn notes(studied: &Studied) -> Vec<String> {
    let mut notes = Vec::new();
    if studied.environment.is_emulated() {
        notes.push(EMULATED.into());
    }
    for [part, why, remedy] in &studied.left_out {
        let mut note = format!("{part} was not measured: {}", why.trim_end_matches('.'));
        if !remedy.is_empty() {
            note += &format!("; {remedy}");
        }
        notes.push(note);
    }
    for (interval_us, report) in &studied.loads {
        if let Some(why) = &report.failed {
            notes.push(format!(
                "the {} load failed at {interval_us} us: {why}",
                report.load
            ));
        }
    }
    if studied.environment.load_average_percent.is_some_and(|l| l > 50) {
        notes.push("other programs were busy when this began, so idle was not idle".into());
    }
    let few = |r: &Row| r.lateness.is_some_and(|s| s.p999_us.is_none());
    if studied.rows.iter().any(few) {
        notes.push("fewer than 10000 samples carry no p99.9; ask for more with --samples".into());
    }
    if !studied.complete {
        notes.push(
            "stopped early: what is missing was not measured, and a row that is cut short holds fewer".into(),
        );
    }
    notes
}

/// The tables and the choice, for a terminal.
pub fn text(studied: &Studied) -> String {
    let mut t = format!("{}\n", computer(&studied.environment));
    for (heading, of) in TABLES {
        let _ = write!(
            t,
            "\n{heading}\n{:8} {:>8} {:8} {:11} {:>9} {:>8}",
            "source", "interval", "load", "sched", "deadlines", "missed"
        );
        for column in COLUMNS {
            let _ = write!(t, " {column:>9}");
        }
        t.push('\n');
        for r in &studied.rows {
            let _ = write!(
                t,
                "{:8} {:>8} {:8} {:11} {:>9} {:>8}",
                r.source, r.interval_us, r.load, r.sched, r.deadlines, r.missed
            );
            for number in numbers(of(r)) {
                let _ = write!(t, " {number:>9}");
            }
            t.push_str(if r.interrupted { "  cut short\n" } else { "\n" });
        }
    }
    t.push('\n');
    for c in studied.choices() {
        let _ = writeln!(
            t,
            "{} us: take {} with {}: {}.",
            c.interval_us, c.source, c.sched, c.reason
        );
    }
    for note in notes(studied) {
        let _ = writeln!(t, "note: {note}");
    }
    t
}

/// The page of a study.
pub fn page(study: &Study, studied: &Studied, took: &str) -> Report {
    let mut first = Section::new("Which to take");
    for c in studied.choices() {
        first = first.paragraph(format!(
            "{} us: {} with {}: {}.",
            c.interval_us, c.source, c.sched, c.reason
        ));
    }
    for note in notes(studied) {
        first = first.paragraph(note);
    }
    let cpu = studied.cpus.map_or("-".into(), |c| c.measured.to_string());
    let mut facts = vec![
        ("Computer".to_owned(), computer(&studied.environment)),
        ("CPU of the measured thread".to_owned(), cpu),
        ("Deadlines of each series".to_owned(), study.samples.to_string()),
    ];
    for (interval_us, report) in &studied.loads {
        if let Some(work) = work(&report.work) {
            facts.push((format!("Load {} at {interval_us} us", report.load), work));
        }
    }
    let mut sections = vec![first.values(facts)];
    for (heading, of) in TABLES {
        let head = [
            ("source", Align::Left),
            ("interval", Align::Right),
            ("load", Align::Left),
        ];
        let head = head.into_iter().chain([
            ("sched", Align::Left),
            ("deadlines", Align::Right),
            ("missed", Align::Right),
        ]);
        let mut table = Table::new(head.chain(COLUMNS.map(|c| (c, Align::Right))))
            .caption("Missed: late by an interval or more, or a frame that etf has dropped.");
        for r in &studied.rows {
            let cells = [
                r.source.to_owned(),
                r.interval_us.to_string(),
                r.load.to_owned(),
                r.sched.to_owned(),
                r.deadlines.to_string(),
                r.missed.to_string(),
            ];
            table = table.row(cells.into_iter().chain(numbers(of(r))));
        }
        sections.push(Section::new(heading).table(table));
    }
    let mut plots = Section::new("Plots");
    for (_, figure) in &studied.figures {
        plots = plots.figure(figure.clone());
    }
    sections.push(plots);
    Report {
        title: "Which timer of this computer?".into(),
        subtitle: format!("{took}, sdmac {}", env!("CARGO_PKG_VERSION")),
        sections,
        ..Report::default()
    }
}

fn work(work: &Work) -> Option<String> {
    Some(match work {
        Work::Nothing => return None,
        Work::Computed { cpus } => format!("{cpus:.2} CPUs computing"),
        Work::Written {
            octets_per_s,
            file_system,
        } => format!(
            "{:.1} MB/s written and synced to {file_system}",
            octets_per_s / 1e6
        ),
        Work::Sent { sent_per_s, path, .. } => format!("{sent_per_s:.0} frames/s over {path:?}"),
        Work::Woken { per_s } => format!("{per_s:.0} timers/s"),
    })
}
