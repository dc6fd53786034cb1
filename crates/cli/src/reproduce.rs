//! `sdmac reproduce`: does the experiments of a published paper again and judges every row of its claims.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Instant;

use lab::report::folder::{Folder, FolderError, REPORT, Status};
use lab::report::plot::Figure;
use lab::reproduce::{Plan, Reproduction, atp, figures};
use serde::Serialize;

use crate::ui::{self, Failure, Ui};

/// Do the experiments of a paper again and compare
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac reproduce sdmac --quick                     # a part of everything, some seconds
  sdmac reproduce sdmac --out sdmac-2018            # all of it, with report.html and the figures
  sdmac reproduce atp --quick                       # chains of 1, 3 and 6 hops with short files
  sdmac reproduce sdmac --quick --json | jq '.rows[] | select(.ok | not)'")]
pub struct Args {
    /// The paper
    paper: Paper,
    /// A part of each experiment: intervals are wider, and extremes are not judged
    #[arg(long)]
    quick: bool,
    /// Everything random follows from it
    #[arg(long, value_name = "N", default_value_t = 2018)]
    seed: u64,
    /// Threads; the numbers do not depend on it [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Write report.html, the figures and the result to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write to the folder even if it holds other files
    #[arg(long, requires = "out")]
    force: bool,
}

/// Papers that can be done again.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Paper {
    /// Cena, Scanzio, Valenzano: SDMAC, 2018
    Sdmac,
    /// The thesis on ATP in a wireless mesh: its chains
    Atp,
}

/// The document of `--json`, and the body of `result.json`.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    reproduction: &'a Reproduction,
    /// How long it took.
    seconds: f64,
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let folder = match &args.out {
        Some(path) => Some(Folder::create(path, args.force).map_err(Failure::input)?),
        None => None,
    };
    let begun = Instant::now();
    let (reproduction, figures) = match args.paper {
        Paper::Sdmac => sdmac(args, ui),
        Paper::Atp => chains(args, ui),
    };
    let seconds = begun.elapsed().as_secs_f64();
    let answer = Answer {
        reproduction: &reproduction,
        seconds,
    };
    ui.say(&reproduction)?;
    ui.say(format!("It took {seconds:.1} s."))?;
    if let Some(folder) = &folder {
        write(folder, &answer, figures).map_err(Failure::on_the_way)?;
        ui.say(format!("Written to {}", folder.path().display()))?;
    }
    ui.answer(&answer)?;
    if ui.stop().load(Ordering::Relaxed) {
        ui::warn("stopped early: rows without a value were not run");
        return Ok(ui.exit_code());
    }
    Ok(ExitCode::from(u8::from(!reproduction.ok)))
}

/// Rows, and the plots with the names of their files.
type Outcome = (Reproduction, Vec<(&'static str, Figure)>);

fn sdmac(args: &Args, ui: &Ui) -> Outcome {
    let plan = Plan {
        seed: args.seed,
        quick: args.quick,
    };
    let progress = ui.progress("transmissions", plan.transmissions());
    let jobs = args.jobs.map_or(0, usize::from);
    let measured = plan.run(jobs, ui.stop(), &|done| progress.set(done));
    progress.finish();
    (Reproduction::new(plan, &measured), figures(&measured))
}

fn chains(args: &Args, ui: &Ui) -> Outcome {
    let plan = atp::Plan {
        seed: args.seed,
        quick: args.quick,
    };
    let progress = ui.progress("runs", plan.runs());
    let jobs = args.jobs.map_or(0, usize::from);
    let measured = plan.run(jobs, ui.stop(), &|done| progress.set(done));
    progress.finish();
    (atp::judge(&plan, &measured), atp::figures(&measured))
}

fn write(
    folder: &Folder,
    answer: &Answer<'_>,
    figures: Vec<(&'static str, Figure)>,
) -> Result<(), FolderError> {
    let time = format!("{:.1} s", answer.seconds);
    for (file, figure) in &figures {
        folder.write(file, figure.standalone().as_bytes())?;
    }
    let page = answer.reproduction.page(figures, &time).html();
    folder.write(REPORT, page.as_bytes())?;
    let status = if answer.reproduction.complete {
        Status::Complete
    } else {
        Status::Interrupted
    };
    folder.publish(status, answer)
}
