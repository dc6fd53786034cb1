//! `sdmac run`: runs a scenario, once or over a grid of values and seeds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use lab::plan::{self, Point, PointResult};
use lab::report::folder::{Folder, FolderError, Status};
use lab::run::{Run, RunResult};
use lab::scenario::Scenario;
use serde::Serialize;

use crate::ui::{self, Failure, Ui};

/// Run a scenario in the simulator
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac run scenarios/oneshot.toml
  sdmac run scenarios/ns3-saturation.toml --set nodes=50 --set duration=2s --seed 7 --json
  sdmac run scenarios/ns3-saturation.toml --set nodes=1,2,5,10 --seeds 1..5    # 20 runs, means and intervals
  sdmac run scenarios/hidden-nodes.toml --out /tmp/hidden    # air.pcapng, timeline, tables")]
pub struct Args {
    /// Scenario file
    scenario: PathBuf,
    /// Change a value: a short name that the scenario declares, or a dotted path; a list makes one run for each
    #[arg(long = "set", value_name = "KEY=VALUE,...")]
    set: Vec<String>,
    /// Seed, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run with each of these seeds: `1..10` (both included) or `1,2,5`
    #[arg(long, value_name = "LIST", conflicts_with = "seed")]
    seeds: Option<String>,
    /// Runs at the same time; 0: one for each processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// Write capture, timeline, tables and result to this folder
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
    let folder = match &args.out {
        Some(path) => Some(Folder::create(path, args.force).map_err(Failure::input)?),
        None => None,
    };

    let ms = |ns: u64| ns / 1_000_000;
    let progress = ui.progress("simulated time", ms(scenario.duration_ns()).max(1));
    let run = lab::run::run(&scenario, seed, folder.as_ref(), ui.stop(), |ns| {
        progress.set(ms(ns))
    });
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
    if let Some(folder) = &folder {
        let status = if run.result.interrupted {
            Status::Interrupted
        } else {
            Status::Complete
        };
        folder.publish(status, &answer).map_err(Failure::on_the_way)?;
    }
    ui.say(summary(&run))?;
    if let (Some(folder), false) = (&folder, ui.json()) {
        ui.say(format!("Written to {}", folder.path().display()))?;
    }
    ui.answer(&answer)?;
    if let Some(Err(error)) = &run.recorded {
        return Err(Failure::on_the_way(error));
    }
    if run.result.interrupted {
        ui::warn("stopped early: the numbers cover the time until then");
    }
    Ok(ui.exit_code())
}

/// The document of `--json` for several runs.
#[derive(Serialize)]
struct Answers<'a> {
    scenario: String,
    points: &'a [PointResult],
    interrupted: bool,
}

fn many(args: &Args, points: &[Point], seeds: &[u64], ui: &Ui) -> Result<ExitCode, Failure> {
    let folder = match &args.out {
        Some(path) => Some(Folder::create(path, args.force).map_err(Failure::input)?),
        None => None,
    };
    let total = points.len() * seeds.len().max(1);
    let progress = ui.progress("runs", total as u64);
    let trouble = Mutex::new(None);
    let done = |n: u64, point: &Point, result: &RunResult| {
        progress.set(n);
        if let Some(folder) = &folder
            && let Err(e) = write_run(folder, args, point, result)
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
    if let Some(folder) = &folder {
        let status = if interrupted {
            Status::Interrupted
        } else {
            Status::Complete
        };
        folder.publish(status, &answers).map_err(Failure::on_the_way)?;
    }
    ui.say(table(&results))?;
    ui.answer(&answers)?;
    if let Some(e) = trouble.into_inner().expect("no run panics") {
        return Err(Failure::on_the_way(e));
    }
    if interrupted {
        ui::warn("stopped early: the runs that were finished are in the result");
    }
    Ok(ui.exit_code())
}

/// Writes the result of one run of several as soon as there is one.
fn write_run(folder: &Folder, args: &Args, point: &Point, result: &RunResult) -> Result<(), FolderError> {
    let answer = Answer {
        scenario: args.scenario.display().to_string(),
        set: point.iter().map(|c| (c.key.as_str(), c.value.as_str())).collect(),
        result,
    };
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
    let name: String = format!("run-{}.json", words.join("_"))
        .chars()
        .map(plain)
        .collect();
    let text = serde_json::to_vec_pretty(&answer).expect("a result is a struct of plain values");
    folder.write(&name, &text)
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
