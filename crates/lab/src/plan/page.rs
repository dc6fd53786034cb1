//! A plan as a page: each metric over the points of the grid, each run, and all that is needed to run it again.

use std::collections::BTreeMap;

use super::{Average, PointResult};
use crate::qualify::text::count;
use crate::report::folder::RESULT;
use crate::report::html::{Align, Report, Section, Table};
use crate::report::plot::{Bar, Bars, Chart, Figure, Point, Series, Shape, Xy};
use crate::report::{Axis, significant};
use crate::run::page::{About, again, parameters, title};
use crate::scenario::Scenario;
use crate::scenario::units::Time;

/// Metrics that are plotted and stand in tables, with their words; the others are in the files.
const SHOWN: [(&str, &str); 10] = [
    ("throughput_mbps", "throughput (Mb/s)"),
    ("delivered_ratio", "delivered (share)"),
    ("collision_probability", "collision probability"),
    ("latency_p50_us", "latency p50 (µs)"),
    ("latency_p99_us", "latency p99 (µs)"),
    ("latency_max_us", "latency max (µs)"),
    ("confirm_mean_us", "request to confirm (µs)"),
    ("access_us", "access (µs)"),
    ("air_use_ratio", "air use (ratio)"),
    ("measurements_acked_ratio", "measurements acked (share)"),
];
/// Points side by side as bars.
const MOST_BARS: usize = 24;
/// Curves in one plot.
const CURVES: usize = 8;
/// Rows of a table.
const ROWS: usize = 500;

/// The page of several runs. `files` are those of the single runs, in their order.
pub fn page(about: &About<'_>, scenario: &Scenario, points: &[PointResult], files: &[String]) -> Report {
    let runs: usize = points.iter().map(|p| p.runs.len()).sum();
    let shown: Vec<(&str, &str)> = SHOWN
        .into_iter()
        .filter(|(metric, _)| points.iter().any(|p| p.metrics.contains_key(metric)))
        .collect();
    let mut sections = vec![means(points, &shown)];
    sections.extend(plots(points, &shown));
    sections.push(each(points, &shown));
    sections.extend(parameters(about.description));
    let links = files.iter().take(ROWS).map(|f| (f.as_str(), ""));
    let links = [(RESULT, "all numbers, for programs")].into_iter().chain(links);
    sections.push(Section::new("Files").files(links));
    sections.push(again(about));
    Report {
        title: title(scenario, about),
        subtitle: format!(
            "{}, {} points, {} runs, sdmac {}",
            about.file,
            count(points.len() as u64),
            count(runs as u64),
            env!("CARGO_PKG_VERSION")
        ),
        banner: None,
        sections,
        footer: String::new(),
    }
}

/// Keys whose value is not the same everywhere.
fn varying(points: &[PointResult]) -> Vec<&str> {
    let Some(first) = points.first() else {
        return Vec::new();
    };
    let differs = |key: &&String| points.iter().any(|p| p.set.get(*key) != first.set.get(*key));
    first.set.keys().filter(differs).map(String::as_str).collect()
}

fn values<'p>(point: &'p PointResult, keys: &[&str]) -> Vec<&'p str> {
    let value = |key: &&str| point.set.get(*key).map_or("", String::as_str);
    keys.iter().map(value).collect()
}

fn name(point: &PointResult, keys: &[&str]) -> String {
    let pairs = keys.iter().zip(values(point, keys));
    let words: Vec<String> = pairs.map(|(k, v)| format!("{k}={v}")).collect();
    words.join(" ")
}

fn means(points: &[PointResult], shown: &[(&str, &str)]) -> Section {
    let keys = varying(points);
    let head = keys
        .iter()
        .map(|k| (*k, Align::Left))
        .chain([("runs", Align::Right)]);
    let mut table = Table::new(head.chain(shown.iter().map(|(_, words)| (*words, Align::Right))));
    for p in points.iter().take(ROWS) {
        let cells = shown.iter().map(|(metric, _)| match p.metrics.get(metric) {
            Some(Average {
                mean,
                plus_minus: Some(x),
            }) => format!("{} ± {}", significant(*mean), significant(*x)),
            Some(Average { mean, .. }) => significant(*mean),
            None => "-".into(),
        });
        let first = values(p, &keys).into_iter().map(str::to_owned);
        table = table.row(first.chain([count(p.runs.len() as u64)]).chain(cells));
    }
    let section = Section::new("Result").table(table);
    let section = left_out(section, points.len());
    section.paragraph("Means over the seeds; ± is half the 95 % interval of the mean.")
}

fn plots(points: &[PointResult], shown: &[(&str, &str)]) -> Option<Section> {
    let keys = varying(points);
    let (along, others) = keys.split_last()?;
    let numbers: Option<Vec<f64>> = points.iter().map(|p| number(p.set.get(*along)?)).collect();
    let unit = if points
        .iter()
        .any(|p| p.set.get(*along).is_some_and(|v| Time::parse(v).is_some()))
    {
        " (ms)"
    } else {
        ""
    };
    let mut section = Section::new("Plots");
    let several = points.iter().any(|p| p.runs.len() > 1);
    let mut drawn = 0;
    for (metric, words) in shown {
        let mean = |p: &PointResult| p.metrics.get(metric).copied();
        let chart = if let Some(x) = &numbers {
            let mut curves: BTreeMap<String, Vec<Point>> = BTreeMap::new();
            for (p, x) in points.iter().zip(x) {
                let Some(a) = mean(p) else { continue };
                let point = match a.plus_minus {
                    Some(half) => Point::with_bar(*x, a.mean, a.mean - half, a.mean + half),
                    None => Point::new(*x, a.mean),
                };
                curves.entry(name(p, others)).or_default().push(point);
            }
            let mut plot = Xy::new(Axis::linear(format!("{along}{unit}")), Axis::linear(*words));
            for (name, mut points) in curves.into_iter().take(CURVES) {
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                plot = plot.series(Series {
                    name,
                    shape: Shape::LinePoints,
                    points,
                });
            }
            Chart::Xy(plot)
        } else if points.len() <= MOST_BARS {
            let bar = |p: &PointResult| match mean(p) {
                Some(a) => Bar {
                    value: a.mean,
                    bar: a.plus_minus.map(|half| (a.mean - half, a.mean + half)),
                },
                None => Bar::new(f64::NAN),
            };
            let names = points.iter().map(|p| values(p, &keys).join(" "));
            let bars = Bars::new(Axis::linear(*words), names);
            Chart::Bars(bars.series(*metric, points.iter().map(bar)))
        } else {
            continue;
        };
        section = section.figure(Figure::new(*words, chart).how_to_read(match several {
            true => format!("{metric}, with the 95 % interval of its mean over the seeds."),
            false => format!("{metric}."),
        }));
        drawn += 1;
    }
    (drawn > 0).then_some(section)
}

/// A value as a number; durations in ms.
fn number(value: &str) -> Option<f64> {
    let time = || Time::parse(value).map(|t| t.0 as f64 / 1e6);
    value.parse().ok().filter(|x: &f64| x.is_finite()).or_else(time)
}

fn each(points: &[PointResult], shown: &[(&str, &str)]) -> Section {
    let keys = varying(points);
    let head = keys
        .iter()
        .map(|k| (*k, Align::Left))
        .chain([("seed", Align::Right)]);
    let head = head.chain(shown.iter().map(|(_, words)| (*words, Align::Right)));
    let mut table = Table::new(head.chain([("trace hash", Align::Left)]));
    let runs = || points.iter().flat_map(|p| p.runs.iter().map(move |r| (p, r)));
    for (p, run) in runs().take(ROWS) {
        let cells = shown.iter().map(|(metric, _)| {
            let value = run.metrics.get(metric);
            value.map_or("-".into(), |x| significant(*x))
        });
        let first = values(p, &keys).into_iter().map(str::to_owned);
        let row = first.chain([run.seed.to_string()]).chain(cells);
        table = table.row(row.chain([run.trace_hash.clone()]));
    }
    left_out(Section::new("Each run").table(table), runs().count())
}

fn left_out(section: Section, rows: usize) -> Section {
    if rows <= ROWS {
        return section;
    }
    let more = count((rows - ROWS) as u64);
    section.paragraph(format!(
        "{more} more rows are left out here; all are in {RESULT}."
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::plan::{execute, grid};
    use crate::scenario::Description;

    fn html(set: &[&str]) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/ns3-saturation.toml");
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        let points = grid(&set).unwrap();
        let results = execute(
            &path,
            &points,
            &[1, 2, 3],
            2,
            &AtomicBool::new(false),
            |_, _, _| {},
        )
        .unwrap();
        let scenario = Scenario::open(&path, &points[0]).unwrap();
        let about = About {
            file: "ns3-saturation.toml",
            command: "sdmac run",
            description: &Description::open(&path, &[]).unwrap(),
        };
        page(&about, &scenario, &results, &["run-a.json".into()]).html()
    }

    #[test]
    fn numbers_become_curves_and_words_become_bars() {
        let grid = html(&["nodes=1,4", "duration=20ms"]);
        for part in [
            "2 points, 6 runs",
            "<th>nodes</th>",
            "throughput (Mb/s)",
            "±",
            "trace hash",
            "./run-a.json",
        ] {
            assert!(grid.contains(part), "{part}");
        }
        assert!(
            !grid.contains("<th>duration</th>"),
            "what is the same everywhere is no column"
        );
        assert!(grid.matches("<figure>").count() >= 3);
        let words = html(&["medium.preset=ns3,standard", "duration=20ms", "nodes=2"]);
        assert!(words.contains(">standard</t"), "names below the bars");
        let seeds = html(&["duration=20ms", "nodes=2"]);
        assert!(!seeds.contains("<figure>"), "one point is no curve");
    }

    #[test]
    fn values_that_are_numbers() {
        assert_eq!(
            ["5", "2ms", "1s", "0.5"].map(number),
            [5.0, 2.0, 1_000.0, 0.5].map(Some)
        );
        assert_eq!(["ns3", "nan", ""].map(number), [None; 3]);
    }
}
