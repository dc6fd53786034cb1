//! `sdmac lab chain`: files over several hops of real 802.11 stacks, and over those of the simulator.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::value_parser;
use lab::plan;
use lab::report::significant;
use lab::scenario::Scenario;
use lab::testbed::cache::Cache;
use lab::testbed::chain::{self, Case, Outcome, Real, Row, TOLERANCE, Transport, sending, simulated, table};
use serde::Serialize;

use super::inside::{self, Inside};
use super::this_program;
use crate::ui::{self, Failure, Ui};

/// Marks the process inside the guest.
const INSIDE: &str = "SDMAC_LAB_CHAIN";
/// Exit code when a file did not arrive as it was sent, or the simulator does not agree.
const DISAGREE: u8 = 1;
/// Files at once at most: as many connections as `sdmac atp recv` has.
const MOST_FLOWS: i64 = 64;

/// What --quick runs.
const QUICK_OCTETS: u64 = 200_000;
const OCTETS: u64 = 2_000_000;

/// Carry files over a chain of real 802.11 stacks by ATP and by the kernel's TCP, and over the same chain in the simulator
///
/// Each node of the scenario is a radio in a network namespace of its own, in an ad hoc network of Linux's, in a guest in virtual
/// time; the scenario is the air. Each node forwards by static routes. ATP is `sdmac atp` at the ends and `sdmac hop` at each node, with
/// delays measured from what the radio reports; CUBIC and BBR are the kernel's. Every file is compared with what was sent. The
/// simulator runs the same transports, but the kernel's, on its own mesh in the same scenario, with the same seeds.
///
/// Exit code: 0 when every file arrived as it was sent, and the mean goodput of each case is within 15 % of the simulator's; 1
/// when not, 125 when the lab failed.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac lab chain scenarios/atp-chain.toml
  sdmac lab chain scenarios/atp-chain.toml --quick
  sdmac lab chain scenarios/atp-chain.toml --set nodes=3 --transport adaptive,bbr --flows 1 --runs 5 --json")]
pub struct Args {
    /// Scenario file: one group of nodes, each a neighbour of the next
    scenario: PathBuf,
    /// Change a value: a short name that the scenario declares, or a dotted path
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of the first run, in place of the scenario's; each further run has the next one
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Runs of each case, on each side [default: 3, with --quick 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// What carries the files: default, aggressive, adaptive, sdmac (ATP), newreno (TCP behind the header of ATP), cubic, bbr (the
    /// kernel's TCP) [default: all but newreno]
    #[arg(long = "transport", value_name = "NAME", value_delimiter = ',')]
    transports: Vec<Transport>,
    /// Files at once, 1 to 64 [default: 1,2,5, with --quick 1,2]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = value_parser!(u32).range(1..=MOST_FLOWS))]
    flows: Vec<u32>,
    /// Octets of each file, up to 100,000,000 [default: 2000000, with --quick 200000]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=100_000_000))]
    octets: Option<u64>,
    /// With --json: for each run what every sender of ATP was told and when, on both sides
    #[arg(long)]
    trace: bool,
    /// Short files, few flows, and one run of each case
    #[arg(long)]
    quick: bool,
    /// Kill a guest after this time of this computer, in s; 0: never
    #[arg(long, value_name = "S", default_value_t = 600)]
    limit: u64,
}

impl Args {
    fn cases(&self) -> Vec<Case> {
        let transports = match &self.transports[..] {
            [] => Transport::ALL
                .into_iter()
                .filter(|t| *t != Transport::NewReno)
                .collect(),
            some => some.to_vec(),
        };
        let flows = match (&self.flows[..], self.quick) {
            ([], true) => vec![1, 2],
            ([], false) => vec![1, 2, 5],
            (some, _) => some.to_vec(),
        };
        let octets = self
            .octets
            .unwrap_or(if self.quick { QUICK_OCTETS } else { OCTETS });
        let of = |transport| {
            flows.iter().map(move |flows| Case {
                transport,
                flows: *flows,
                octets,
            })
        };
        transports.into_iter().flat_map(of).collect()
    }

    fn runs(&self) -> u16 {
        self.runs.unwrap_or(if self.quick { 1 } else { 3 })
    }

    /// What the program inside is told of one run.
    fn inner(&self, case: &Case, seed: u64) -> Vec<String> {
        let mut list = vec![
            "lab".to_owned(),
            "chain".to_owned(),
            self.scenario.display().to_string(),
        ];
        for change in &self.set {
            list.extend(["--set".to_owned(), change.clone()]);
        }
        let values = [
            ("--seed", seed.to_string()),
            ("--transport", case.transport.name().to_owned()),
            ("--flows", case.flows.to_string()),
            ("--octets", case.octets.to_string()),
        ];
        list.extend(
            values
                .into_iter()
                .flat_map(|(name, value)| [name.to_owned(), value]),
        );
        list
    }
}

/// One run, on both sides.
#[derive(Serialize)]
struct Run<'a> {
    #[serde(flatten)]
    case: Case,
    seed: u64,
    real: &'a Real,
    simulator: Option<&'a Outcome>,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Answer<'a> {
    scenario: String,
    hops: u32,
    seed: u64,
    rows: &'a [Row],
    runs: Vec<Run<'a>>,
}

/// Runs the command.
pub fn main(args: &Args, cache: &Cache, ui: &Ui) -> Result<ExitCode, Failure> {
    let points = plan::grid(&args.set).map_err(Failure::input)?;
    let [changes] = &points[..] else {
        return Err(Failure::input("--set has a list of values: give one value"));
    };
    let scenario = Scenario::open(&args.scenario, changes).map_err(Failure::input)?;
    sending(&scenario).map_err(|e| Failure::input(format!("{}: {e}", args.scenario.display())))?;
    let seed = args.seed.unwrap_or_else(|| scenario.seed());
    let cases = args.cases();
    if std::env::var_os(INSIDE).is_some() {
        let done = chain::real(&scenario, &cases[0], seed, &this_program()?, ui.stop());
        ui.answer(&done.map_err(Failure::on_the_way)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let total = cases.len() as u64 * u64::from(args.runs());
    let progress = ui.progress("runs", total);
    let mut runs: BTreeMap<Case, Vec<(Real, Option<Outcome>)>> = BTreeMap::new();
    // by seeds first, so that what was stopped has something of each case
    let all = (0..u64::from(args.runs())).flat_map(|n| cases.iter().map(move |c| (*c, seed.wrapping_add(n))));
    for (done, (case, seed)) in all.enumerate() {
        progress.set(done as u64);
        let inside = Inside {
            variable: INSIDE,
            arguments: args.inner(&case, seed),
            radios: scenario.nodes(),
            limit: args.limit,
        };
        let Some(mut real) = inside::answer::<Real>(inside, cache, ui, &|_, _| ())? else {
            break;
        };
        let mut simulator = simulated(&scenario, &case, seed, ui.stop()).map_err(Failure::on_the_way)?;
        if ui.stop().load(Ordering::Relaxed) {
            break;
        }
        if !args.trace {
            real.outcome.feedback.clear();
            simulator.iter_mut().for_each(|s| s.feedback.clear());
        }
        runs.entry(case).or_default().push((real, simulator));
    }
    progress.finish();
    let rows = table(&runs);
    let each = runs.iter().flat_map(|(case, list)| {
        (0..).zip(list).map(move |(n, (real, simulator))| Run {
            case: *case,
            seed: seed.wrapping_add(n),
            real,
            simulator: simulator.as_ref(),
        })
    });
    ui.say(text(scenario.nodes() - 1, &rows))?;
    ui.answer(&Answer {
        scenario: args.scenario.display().to_string(),
        hops: scenario.nodes() - 1,
        seed,
        rows: &rows,
        runs: each.collect(),
    })?;
    for (case, list) in &runs {
        for why in list.iter().flat_map(|(real, _)| &real.failures) {
            ui::warn(&format!("{}, {} flows: {why}", case.transport, case.flows));
        }
    }
    if rows
        .iter()
        .any(|row| !row.is_whole() || row.within == Some(false))
    {
        ui::warn(&format!(
            "a file did not arrive, or the simulator does not agree within {} %",
            TOLERANCE * 100.0
        ));
        return Ok(ExitCode::from(DISAGREE));
    }
    Ok(ui.exit_code())
}

fn text(hops: u32, rows: &[Row]) -> String {
    let both = |of: &dyn Fn(&chain::Side) -> f64, row: &Row| {
        let simulator = row
            .simulator
            .as_ref()
            .map_or("-".to_owned(), |s| significant(of(s)));
        format!("{:>9}{simulator:>10}", significant(of(&row.real)))
    };
    let mut lines = vec![
        format!(
            "{:<12}{:>5}{:>19}{:>7}{:>19}{:>19}{:>9}",
            "", "flows", "goodput, kb/s", "ratio", "unfairness", "sent again", "whole"
        ),
        format!(
            "{:<17}{}{:>7}{}{}",
            "", "     real simulator", "", "     real simulator", "     real simulator"
        ),
    ];
    for row in rows {
        lines.push(format!(
            "{:<12}{:>5}{}{:>7}{}{}{:>9}{}",
            row.case.transport.name(),
            row.case.flows,
            both(&|s| s.goodput_kbps.mean, row),
            row.ratio.map_or("-".to_owned(), |r| format!("{r:.3}")),
            both(&|s| s.unfairness.mean, row),
            both(&|s| s.resent.mean, row),
            format!("{}/{}", row.real.whole, row.runs * row.case.flows as usize),
            if row.within == Some(false) {
                "   outside"
            } else {
                ""
            }
        ));
    }
    lines.push(format!(
        "{hops} hops, {} runs of each case; goodput: mean of the flows of a run, from call to last octet; unfairness: their standard \
         deviation over their mean; whole: files that arrived as they were sent, over real kernels",
        rows.first().map_or(0, |row| row.runs)
    ));
    lines.join("\n")
}
