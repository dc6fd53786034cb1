//! `sdmac lab compare`: one scenario in the simulator and on real 802.11 stacks, side by side.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::value_parser;
use lab::plan;
use lab::scenario::Scenario;
use lab::testbed::cache::Cache;
use lab::testbed::compare::{FINEST_LATENCY_US, Numbers, Real, Row, agree, real, simulated, table};
use lab::testbed::run::MAX_RADIOS;
use serde::Serialize;

use super::inside::{self, Inside};
use crate::certify;
use crate::ui::{self, Failure, Ui};

/// Marks the process inside the guest.
const INSIDE: &str = "SDMAC_LAB_COMPARE";

/// Exit code when the two do not agree.
const DISAGREE: u8 = 1;

/// Run a scenario in the simulator and on real 802.11 stacks, and put the numbers side by side
///
/// Each node of the scenario runs as with `sdmac deploy` on a radio of a guest in virtual time, and the scenario is the air
/// between them, as with `sdmac air`. The simulator runs the same file with several seeds: the mean of the runs of the real
/// stacks should lie where that of as many more runs of the simulator would, with 99.9 %. Hosts and clocks of the scenario are models that
/// only the simulator has. Losses are judged by what was submitted before the last tenth of the measured time.
///
/// Exit code: 0 when every row is inside its interval, no request was refused or without a status, and the air was in time; 1 when
/// not, 125 when the lab failed.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac lab compare scenarios/hidden-nodes.toml
  sdmac lab compare scenarios/hidden-nodes.toml --set duration=2s --real-runs 10 --runs 20 --json")]
pub struct Args {
    /// Scenario file, as for `sdmac run`
    scenario: PathBuf,
    /// Change a value: a short name that the scenario declares, or a dotted path
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// First seed, of the real stacks and of the simulator, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Runs of the simulator
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u16).range(2..=1000))]
    runs: u16,
    /// Runs of the real stacks, each in a guest of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=1000))]
    real_runs: u16,
    /// Kill a guest after this time of this computer, in s; 0: never
    #[arg(long, value_name = "S", default_value_t = 600)]
    limit: u64,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Answer<'a> {
    scenario: String,
    seed: u64,
    runs: u16,
    rows: Vec<Row>,
    real: &'a [Real],
}

/// Runs the command.
pub fn main(args: &Args, cache: &Cache, ui: &Ui) -> Result<ExitCode, Failure> {
    let points = plan::grid(&args.set).map_err(Failure::input)?;
    let [changes] = &points[..] else {
        return Err(Failure::input("--set has a list of values: give one value"));
    };
    let scenario = Scenario::open(&args.scenario, changes).map_err(Failure::input)?;
    let seed = args.seed.unwrap_or_else(|| scenario.seed());
    let ms = |ns: u64| ns / 1_000_000;
    if std::env::var_os(INSIDE).is_some() {
        let kept = |radio: &str| Some(certify::of(radio, None).ok()?.ok()?.0);
        let tell = |ns| inside::tell(ms(ns), ms(scenario.duration_ns()));
        let done = real(&scenario, seed, &kept, &tell, ui.stop()).map_err(Failure::on_the_way)?;
        ui.answer(&done)?;
        return Ok(ExitCode::SUCCESS);
    }
    if scenario.radios() > MAX_RADIOS {
        return Err(Failure::input(format!(
            "{} has {} adapters, and a guest has {MAX_RADIOS} radios at most",
            args.scenario.display(),
            scenario.radios()
        )));
    }
    if !scenario.file().output.latency {
        return Err(Failure::input(format!(
            "{} measures no latency: add --set output.latency=true",
            args.scenario.display()
        )));
    }
    let (many, real_many) = (u64::from(args.runs), u64::from(args.real_runs));
    let progress = ui.progress("real stacks", 1);
    let mut real = Vec::new();
    for n in 0..real_many {
        let inside = Inside {
            variable: INSIDE,
            arguments: inner(args, seed.wrapping_add(n)),
            radios: scenario.radios(),
            limit: args.limit,
        };
        let show = |done, total| progress.set_of(n * total + done, real_many * total);
        let Some(run) = inside::answer::<Real>(inside, cache, ui, &show)? else {
            progress.finish();
            return Ok(ui.exit_code());
        };
        real.push(run);
    }
    let mut runs: Vec<Numbers> = Vec::new();
    progress.rename("simulator");
    for n in 0..many {
        progress.set_of(n, many);
        let run = simulated(&scenario, seed.wrapping_add(n), ui.stop()).map_err(Failure::on_the_way)?;
        runs.push(run);
    }
    progress.finish();
    let answer = Answer {
        scenario: args.scenario.display().to_string(),
        seed,
        runs: args.runs,
        rows: table(&real.iter().map(|run| run.numbers).collect::<Vec<_>>(), &runs),
        real: &real,
    };
    ui.say(text(&answer))?;
    ui.answer(&answer)?;
    for sentence in real
        .iter()
        .flat_map(|run| run.refusals.iter().chain(&run.lateness))
    {
        ui::warn(sentence);
    }
    if !agree(&real, &answer.rows) {
        ui::warn(
            "the real stacks and the simulator do not agree: a row is outside its interval or there on one side only, requests were \
             refused or without a status, or the air was late",
        );
        return Ok(ExitCode::from(DISAGREE));
    }
    Ok(ui.exit_code())
}

/// What the program inside is told.
fn inner(args: &Args, seed: u64) -> Vec<String> {
    let mut list = vec!["lab".to_owned(), "compare".to_owned()];
    list.push(args.scenario.display().to_string());
    for change in &args.set {
        list.extend(["--set".to_owned(), change.clone()]);
    }
    list.extend(["--seed".to_owned(), seed.to_string()]);
    list
}

fn text(a: &Answer<'_>) -> String {
    let number = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), lab::report::significant);
    let mut lines = vec![format!(
        "{:<22}{:>14}{:>14}{:>14}",
        "", "real stack", "simulator", "+-"
    )];
    for row in &a.rows {
        lines.push(format!(
            "{:<22}{:>14}{:>14}{:>14}{}",
            row.name,
            number(row.real),
            number(row.simulator),
            number(row.plus_minus),
            if row.within == Some(false) {
                "   outside"
            } else {
                ""
            }
        ));
    }
    lines.push(format!(
        "runs of the real stacks: {}, of the simulator: {}; +- holds the mean of as many more of the simulator with 99.9 %, and is at \
         least a thousandth of the mean, of latencies {FINEST_LATENCY_US:.1} us (steps of the lab's clock and timers)",
        a.real.len(),
        a.runs
    ));
    let sum = |of: fn(&Real) -> u64| a.real.iter().map(of).sum::<u64>();
    lines.push(format!(
        "{} of {} frames on the air overlapped another; the kernel was told of nothing later than {} us",
        sum(|run| run.overlapping),
        sum(|run| run.tries),
        lab::report::significant(a.real.iter().map(|run| run.latest_us).fold(0.0, f64::max))
    ));
    // The same radios in each run.
    if let Some(one) = a.real.first().filter(|run| run.certified < run.radios) {
        lines.push(format!(
            "{} of {} radios have no certificate that the guest can see: one-shot is not proven on them; it sees those of this \
             kernel in $XDG_STATE_HOME/sdmac/certificates, made by sdmac certify beside sdmac air in a guest with --write",
            one.radios - one.certified,
            one.radios
        ));
    }
    let (unknown, refused) = (sum(|run| run.unknown), sum(|run| run.refused));
    if unknown + refused > 0 {
        lines.push(format!(
            "{unknown} requests ended without a status, {refused} were refused"
        ));
    }
    lines.join("\n")
}
