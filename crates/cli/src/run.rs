//! `sdmac run`: runs a scenario, once or over a grid of values and seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use lab::plan::{self, Point, PointResult};
use lab::report::folder::{Folder, FolderError, REPORT, Status};
use lab::run::page::About;
use lab::run::{ClockError, Run, RunResult};
use lab::scenario::{Description, Scenario};
use serde::Serialize;

use crate::ui::{self, Failure, Ui};

/// Run a scenario in the simulator
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac run scenarios/oneshot.toml
  sdmac run scenarios/ns3-saturation.toml --set nodes=50 --set duration=2s --seed 7 --json
  sdmac run scenarios/ns3-saturation.toml --set nodes=1,2,5,10 --seeds 1..5    # 20 runs, means and intervals
  sdmac run scenarios/hidden-nodes.toml --out /tmp/hidden    # report.html, air.pcapng, timeline, tables")]
pub struct Args {
    /// Scenario file
    scenario: PathBuf,
    /// Change a value: a short name that the scenario declares, or a dotted path; a list makes one run for each
    #[arg(long = "set", value_name = "KEY=VALUE,...")]
    set: Vec<String>,
    /// Seed, in place of the scenario's
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Run with each of these seeds: `1..10` (both included) or `1,2,5`
    #[arg(long, value_name = "LIST", conflicts_with = "seed")]
    seeds: Option<String>,
    /// Runs at the same time; 0: one for each processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Write report.html, capture, timeline, tables and result to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write to the folder even if it holds other files
    #[arg(long, requires = "out")]
    force: bool,
}

/// The document of `--json`, and the body of `result.json`.
#[derive(Serialize)]
struct Answer<'a> {
    scenario: String,
    set: BTreeMap<&'a str, &'a str>,
    result: &'a RunResult,
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let points = plan::grid(&args.set).map_err(Failure::input)?;
    let seeds = match (&args.seeds, args.seed) {
        (Some(list), _) => plan::seeds(list).map_err(Failure::input)?,
        (None, seed) => seed.into_iter().collect(),
    };
    match &points[..] {
        [point] if seeds.len() <= 1 => single(args, point, seeds.first().copied(), ui),
        _ => many(args, &points, &seeds, ui),
    }
}

fn single(args: &Args, changes: &Point, seed: Option<u64>, ui: &Ui) -> Result<ExitCode, Failure> {
    let scenario = Scenario::open(&args.scenario, changes).map_err(Failure::input)?;
    let seed = seed.unwrap_or_else(|| scenario.seed());
    let out = Out::open(args, changes)?;
    let folder = out.as_ref().map(|o| &o.folder);

    let ms = |ns: u64| ns / 1_000_000;
    let progress = ui.progress("simulated time", ms(scenario.duration_ns()).max(1));
    let run = lab::run::run(&scenario, seed, folder, ui.stop(), |ns| progress.set(ms(ns)));
    progress.finish();
    let run = run.map_err(Failure::on_the_way)?;

    let answer = Answer {
        scenario: args.scenario.display().to_string(),
        set: changes
            .iter()
            .map(|c| (c.key.as_str(), c.value.as_str()))
            .collect(),
        result: &run.result,
    };
    if let Some(out) = &out {
        let page = out.about(args, |about| lab::run::page::page(about, &scenario, &run));
        out.write(run.result.interrupted, &answer, &page.html())?;
    }
    ui.say(summary(&run))?;
    if let Some(out) = &out {
        ui.say(out.sentence())?;
    }
    ui.answer(&answer)?;
    if let Some(Err(error)) = &run.recorded {
        return Err(Failure::on_the_way(error));
    }
    warn_of([&run.result]);
    if run.result.interrupted {
        ui::warn("stopped early: the numbers cover the time until then");
    }
    Ok(ui.exit_code())
}

/// Where everything goes that is asked for with `--out`.
struct Out {
    folder: Folder,
    /// Taken before the run: the file may change while it goes on.
    description: Description,
}

impl Out {
    fn open(args: &Args, changes: &Point) -> Result<Option<Out>, Failure> {
        let Some(path) = &args.out else { return Ok(None) };
        Ok(Some(Out {
            description: Description::open(&args.scenario, changes).map_err(Failure::input)?,
            folder: Folder::create(path, args.force).map_err(Failure::input)?,
        }))
    }

    fn about<T>(&self, args: &Args, page: impl FnOnce(&About<'_>) -> T) -> T {
        page(&About {
            file: &args.scenario.display().to_string(),
            command: &std::env::args().collect::<Vec<_>>().join(" "),
            description: &self.description,
        })
    }

    fn write(&self, interrupted: bool, answer: &impl Serialize, page: &str) -> Result<(), Failure> {
        let status = if interrupted {
            Status::Interrupted
        } else {
            Status::Complete
        };
        let written = self.folder.write(REPORT, page.as_bytes());
        written.map_err(Failure::on_the_way)?;
        self.folder.publish(status, answer).map_err(Failure::on_the_way)
    }

    fn sentence(&self) -> String {
        format!("Report: {}", self.folder.path().join(REPORT).display())
    }
}

/// The document of `--json` for several runs.
#[derive(Serialize)]
struct Answers<'a> {
    scenario: String,
    points: &'a [PointResult],
    interrupted: bool,
}

fn many(args: &Args, points: &[Point], seeds: &[u64], ui: &Ui) -> Result<ExitCode, Failure> {
    // the grid has no changes in common but those that all points have
    let same = |change: &&lab::scenario::Change| points.iter().all(|p| p.contains(change));
    let common: Point = points[0].iter().filter(same).cloned().collect();
    let out = Out::open(args, &common)?;
    let total = points.len() * seeds.len().max(1);
    let progress = ui.progress("runs", total as u64);
    let trouble = Mutex::new(None);
    let done = |n: u64, point: &Point, result: &RunResult| {
        progress.set(n);
        if let Some(out) = &out
            && let Err(e) = write_run(&out.folder, args, point, result)
        {
            trouble.lock().expect("no run panics").get_or_insert(e);
        }
    };
    let results = plan::execute(&args.scenario, points, seeds, args.jobs, ui.stop(), done);
    progress.finish();
    let results = results.map_err(Failure::input)?;
    let interrupted = results.iter().map(|p| p.runs.len()).sum::<usize>() < total;
    let answers = Answers {
        scenario: args.scenario.display().to_string(),
        points: &results,
        interrupted,
    };
    if let Some(out) = &out {
        let scenario = Scenario::open(&args.scenario, &points[0]).map_err(Failure::input)?;
        let pairs = points.iter().zip(&results);
        let files: Vec<String> = pairs
            .flat_map(|(p, r)| r.runs.iter().map(|run| run_file(p, run)))
            .collect();
        let page = out.about(args, |about| plan::page::page(about, &scenario, &results, &files));
        out.write(interrupted, &answers, &page.html())?;
    }
    ui.say(table(&results))?;
    if let Some(out) = &out {
        ui.say(out.sentence())?;
    }
    ui.answer(&answers)?;
    if let Some(e) = trouble.into_inner().expect("no run panics") {
        return Err(Failure::on_the_way(e));
    }
    warn_of(results.iter().flat_map(|p| &p.runs));
    if interrupted {
        ui::warn("stopped early: the runs that were finished are in the result");
    }
    Ok(ui.exit_code())
}

/// Says what was known before: which messages cannot be in time, and where that cannot be told. And of each schedule the worst of what was
/// seen: clocks further apart than its slots allow for.
fn warn_of<'r>(results: impl IntoIterator<Item = &'r RunResult> + Clone) {
    let all = results.clone().into_iter().flat_map(|r| &r.admission);
    let denied: BTreeSet<_> = all
        .filter(|a| a.admitted != Some(true))
        .map(ToString::to_string)
        .collect();
    denied.iter().for_each(|sentence| ui::warn(sentence));
    let mut worst: BTreeMap<&str, &ClockError> = BTreeMap::new();
    for clocks in results
        .into_iter()
        .flat_map(|r| &r.clocks)
        .filter(|c| c.is_beyond())
    {
        let seen = worst.entry(&clocks.schedule).or_insert(clocks);
        if clocks.observed_us > seen.observed_us {
            *seen = clocks;
        }
    }
    worst.values().for_each(|clocks| ui::warn(&clocks.to_string()));
}

/// Writes the result of one run of several as soon as there is one.
fn write_run(folder: &Folder, args: &Args, point: &Point, result: &RunResult) -> Result<(), FolderError> {
    let answer = Answer {
        scenario: args.scenario.display().to_string(),
        set: point.iter().map(|c| (c.key.as_str(), c.value.as_str())).collect(),
        result,
    };
    let text = serde_json::to_vec_pretty(&answer).expect("a result is a struct of plain values");
    folder.write(&run_file(point, result), &text)
}

/// Name of the file of one run of several.
fn run_file(point: &Point, result: &RunResult) -> String {
    let words: Vec<String> = (point.iter().map(|c| format!("{}={}", c.key, c.value)))
        .chain([format!("seed={}", result.seed)])
        .collect();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "=._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name = format!("run-{}.json", words.join("_"));
    name.chars().map(plain).collect()
}

/// For each point a block: its values, then each metric with its mean and interval.
fn table(points: &[PointResult]) -> String {
    let mut text = String::new();
    for point in points {
        let set: Vec<String> = point.set.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let runs = point.runs.len();
        let plural = if runs == 1 { "" } else { "s" };
        text += &format!("{} ({runs} run{plural})\n", set.join(" "));
        let width = point.metrics.keys().map(|k| k.len()).max().unwrap_or(0);
        for (name, average) in &point.metrics {
            let interval = average.plus_minus.map(|x| format!(" +- {}", number(x)));
            text += &format!(
                "  {name:width$}  {}{}\n",
                number(average.mean),
                interval.unwrap_or_default()
            );
        }
    }
    text + "+- is half the 95 % interval of the mean"
}

fn summary(run: &Run) -> String {
    let metrics = &run.result.metrics;
    let width = metrics.keys().map(|k| k.len()).max().unwrap_or(0);
    let lines = metrics
        .iter()
        .map(|(name, value)| format!("{name:width$}  {}", number(*value)));
    let mut lines: Vec<String> = lines.collect();
    lines.push(format!("{:width$}  {}", "trace_hash", run.result.trace_hash));
    for t in &run.result.traffic {
        let counts = match &t.to[..] {
            "broadcast" => format!("{} messages, {} delivered", t.submitted, t.delivered),
            _ => format!("{} of {} delivered", t.delivered, t.submitted),
        };
        let latency = t.latency_us.map(|q| {
            let [p50, p99, p999, max] = q.map(number);
            format!(", latency {p50} us, 99 % below {p99} us, 99.9 % below {p999} us, longest {max} us")
        });
        lines.push(format!(
            "{} -> {}: {counts}{}",
            t.from,
            t.to,
            latency.unwrap_or_default()
        ));
    }
    let admitted = run.result.admission.iter().filter(|a| a.admitted == Some(true));
    lines.extend(admitted.map(ToString::to_string));
    lines.extend(run.result.slots.iter().map(ToString::to_string));
    let agreed = run.result.clocks.iter().filter(|c| !c.is_beyond());
    lines.extend(agreed.map(ToString::to_string));
    lines.join("\n")
}

/// Six significant digits at most, no trailing zeros.
fn number(x: f64) -> String {
    if x.fract() == 0.0 && x.abs() < 1e15 {
        return format!("{x}");
    }
    let digits = (5 - x.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{x:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (x, text) in [
            (0.0, "0"),
            (30.0, "30"),
            (25.123_456_789, "25.1235"),
            (0.000_123_456_7, "0.000123457"),
            (1_234_567.8, "1234568"),
        ] {
            assert_eq!(number(x), text);
        }
    }
}
