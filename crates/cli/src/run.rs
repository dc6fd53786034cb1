//! `sdmac run`: runs a scenario, once or over a grid of values and seeds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use lab::report::folder::{Folder, Status};
use lab::run::{Run, RunResult};
use lab::scenario::{Change, Scenario};
use serde::Serialize;

use crate::ui::{self, Failure, Ui};

/// Run a scenario in the simulator
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac run scenarios/oneshot.toml
  sdmac run scenarios/ns3-saturation.toml --set nodes=50 --set duration=2s --seed 7 --json
  sdmac run scenarios/hidden-nodes.toml --out /tmp/hidden    # air.pcapng, timeline, tables")]
pub struct Args {
    /// Scenario file
    scenario: PathBuf,
    /// Change a value: a short name that the scenario declares, or a dotted path
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
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
    let mut changes = Vec::with_capacity(args.set.len());
    for text in &args.set {
        changes.push(Change::parse(text).ok_or_else(|| {
            Failure::input(format!(
                "--set {text}: write KEY=VALUE, for example --set duration=10s"
            ))
        })?);
    }
    let scenario = Scenario::open(&args.scenario, &changes).map_err(Failure::input)?;
    let seed = args.seed.unwrap_or_else(|| scenario.seed());
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
