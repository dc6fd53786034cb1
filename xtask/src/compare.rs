//! `cargo xtask compare quic`: what ATP costs beside TCP and QUIC (`bench`). `cargo xtask compare ns3`: the same scenarios in ns-3 and in `sdmac`, on the same machine, in turns. Physical results side by
//! side and judged, CPU time, instructions and memory as ratios.
//!
//! The scenarios are in [`scenario`], what is started and read in [`programs`]. `docs/src/peers.md` says what the comparison means.

mod bianchi;
mod judge;
mod measure;
mod programs;
mod report;
mod scenario;

use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;

use judge::Outcome;
use measure::{interrupted, tell};
use programs::Folders;
use scenario::{Case, Program, SCENARIOS};

use crate::workspace::{Workspace, cargo};

/// Options of `cargo xtask compare`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Whom to compare with.
    peer: Peer,
    /// Fewer and shorter cases, one run each: about half a minute of CPU time.
    #[arg(long)]
    quick: bool,
    /// Only these scenarios; `chain` runs only when it is named here.
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(SCENARIOS.each_ref().map(|s| s.name)))]
    scenario: Vec<String>,
    /// Only the cases with these numbers of nodes.
    #[arg(long, value_delimiter = ',')]
    nodes: Vec<u32>,
    /// Runs of each case, each with traffic and random numbers of its own; 3, or 1 with --quick. `chain` scatters widely and wants 10.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: Option<u32>,
    /// One JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

/// Whom to compare with.
#[derive(Clone, Copy, ValueEnum)]
enum Peer {
    /// ns-3 as Debian packages it: the simulator.
    Ns3,
    /// The kernel's TCP and QUIC on this computer: CPU of ATP, and its pacing. No option is for it.
    Quic,
}

/// Runs and prints the comparison. True when `sdmac` was judged and accepted everywhere.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    if let Peer::Quic = options.peer {
        return quic(workspace);
    }
    let folders = Folders::find();
    let cases = options.cases();
    anyhow::ensure!(
        !cases.is_empty(),
        "no case has {:?} nodes: leave --nodes out to see all",
        options.nodes
    );

    let mut names: Vec<&str> = cases.iter().map(|case| case.scenario.name).collect();
    names.dedup();
    folders.build_ns3(&names)?;
    let (ready, mut trouble) = prepare_sdmac(&folders, &names);
    measure::catch_interrupt()?;
    // what a process that does nothing is charged, see `Finished::max_rss_kb`
    let memory_floor_kb = measure::run(&mut Command::new("true"))?.max_rss_kb;

    let runs = options.runs.unwrap_or(if options.quick { 1 } else { 3 });
    let mut outcomes = Vec::new();
    let count = cases.len();
    for (index, case) in cases.into_iter().enumerate() {
        if interrupted() {
            break;
        }
        let place = format!("[{}/{count}]", index + 1);
        let with_sdmac = ready.contains(&case.scenario.name);
        let (outcome, error) = run_case(&folders, case, runs, with_sdmac, &place)?;
        if !outcome.ns3.is_empty() {
            outcomes.push(outcome);
        }
        trouble.extend(error);
    }
    if interrupted() {
        trouble.push("interrupted: not all cases were run".into());
    }

    let rows = judge::rows(&outcomes);
    if options.json {
        println!("{}", report::json(&outcomes, &rows, &trouble, memory_floor_kb));
    } else {
        println!(
            "Results: mean of the runs (least..greatest). An absolute difference is the largest of any run.\n\n{}",
            report::results(&rows)
        );
        println!(
            "Cost of one simulated second, ns-3 / sdmac. Of ns-3 the CPU time is that of Simulator::Run alone; of `sdmac run` that of \
             the whole process; of `bare` that of the simulation alone. Memory is always that of the process.\n\n{}",
            report::costs(&outcomes)
        );
        println!(
            "Memory below {:.1} MB cannot be told apart.",
            memory_floor_kb as f64 / 1024.0
        );
        for trouble in &trouble {
            println!("{trouble}");
        }
    }
    Ok(trouble.is_empty() && judge::accepted(&rows))
}

/// Builds and runs `bench`, which says what it measures and judges nothing.
fn quic(workspace: &Workspace) -> Result<bool> {
    let manifest = workspace.root.join("bench/Cargo.toml");
    let mut command = Command::new(cargo());
    command
        .args(["run", "--release", "--manifest-path"])
        .arg(manifest);
    Ok(command.status().context("cargo cannot be started")?.success())
}

impl Options {
    fn cases(&self) -> Vec<Case> {
        let wanted = |name: &str, by_default: bool| {
            if self.scenario.is_empty() {
                by_default
            } else {
                self.scenario.iter().any(|s| s == name)
            }
        };
        SCENARIOS
            .iter()
            .filter(|scenario| wanted(scenario.name, scenario.by_default))
            .flat_map(|scenario| scenario.cases(self.quick))
            .filter(|case| self.nodes.is_empty() || self.nodes.contains(&case.nodes()))
            .collect()
    }
}

/// The scenarios that `sdmac` can run, and what is in the way of the others.
fn prepare_sdmac<'a>(folders: &Folders, names: &[&'a str]) -> (Vec<&'a str>, Vec<String>) {
    let (ready, missing): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| folders.has_scenario(name));
    let needed = SCENARIOS.iter().filter(|s| ready.contains(&s.name));
    let programs: Vec<Program> = needed.map(|s| s.program).collect();
    if let Err(error) = folders.build_sdmac(&programs) {
        return (Vec::new(), vec![format!("sdmac: not built: {error:#}")]);
    }
    let state = if ready.is_empty() {
        "not built"
    } else {
        "not run everywhere"
    };
    let no_file = |name| format!("sdmac: {state}: there is no {}", programs::scenario_file(name));
    (ready, missing.into_iter().map(no_file).collect())
}

/// ns-3 and `sdmac` in turns, so that what else the machine does hits both. Trouble with `sdmac` is told and leaves the runs of ns-3
/// standing.
fn run_case(
    folders: &Folders,
    case: Case,
    runs: u32,
    with_sdmac: bool,
    place: &str,
) -> Result<(Outcome, Option<String>)> {
    let mut outcome = Outcome {
        case,
        ns3: Vec::new(),
        sdmac: Vec::new(),
        sdmac_instructions: None,
        bare: Vec::new(),
    };
    let mut trouble = None;
    for run in 1..=runs {
        tell(&format!(
            "{place} {}, run {run} of {runs}: ns-3 ...",
            outcome.case.label()
        ));
        let ns3 = folders.run_ns3(&outcome.case, run);
        if interrupted() {
            break;
        }
        let ns3 = ns3?;
        tell(&format!(" {:.2} CPU s", ns3.cpu_s));
        let sdmac = with_sdmac.then(|| {
            let sdmac = folders.run_sdmac(&outcome.case, run)?;
            let bare = match outcome.case.scenario.program {
                Program::Sdmac => Some(folders.run_bare(&outcome.case, run)?),
                Program::Example(_) => None,
            };
            anyhow::Ok((sdmac, bare))
        });
        if interrupted() {
            break;
        }
        outcome.ns3.push(ns3);
        match sdmac {
            None => tell("\n"),
            Some(Ok((sdmac, bare))) => {
                tell(&format!(", sdmac {:.3} CPU s\n", sdmac.cpu_s));
                outcome.sdmac.push(sdmac);
                outcome.bare.extend(bare);
            }
            Some(Err(error)) => {
                tell(&format!(", sdmac failed: {error:#}\n"));
                trouble = trouble.or(Some(format!("{}: {error:#}", outcome.case.label())));
            }
        }
    }
    if interrupted() {
        tell("\n");
    } else if !outcome.sdmac.is_empty() && outcome.ns3.iter().any(|run| run.instructions.is_some()) {
        outcome.sdmac_instructions = folders.sdmac_instructions(&outcome.case, 1);
    }
    Ok((outcome, trouble))
}
