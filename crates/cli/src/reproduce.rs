//! `sdmac reproduce`: does the experiments of a published paper again and judges every row of its claims.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Instant;

use lab::report::folder::{Folder, FolderError, REPORT, Status};
use lab::reproduce::{Measured, Plan, Reproduction, figures};
use serde::Serialize;

use crate::ui::{self, Failure, Ui};

/// Do the experiments of a paper again and compare
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac reproduce sdmac --quick                     # a part of everything, some seconds
  sdmac reproduce sdmac --out sdmac-2018            # all of it, with report.html and the figures
  sdmac reproduce sdmac --quick --json | jq '.rows[] | select(.ok | not)'")]
pub struct Args {
    /// The paper
    paper: Paper,
    /// A part of each experiment: intervals are wider, and extremes are not judged
    #[arg(long)]
    quick: bool,
    /// Everything random follows from it
    #[arg(long, value_name = "N", default_value_t = 2018, allow_negative_numbers = true)]
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
    let Paper::Sdmac = args.paper;
    let folder = match &args.out {
        Some(path) => Some(Folder::create(path, args.force).map_err(Failure::input)?),
        None => None,
    };
    let plan = Plan {
        seed: args.seed,
        quick: args.quick,
    };
    let begun = Instant::now();
    let progress = ui.progress("transmissions", plan.transmissions());
    let jobs = args.jobs.map_or(0, usize::from);
    let measured = plan.run(jobs, ui.stop(), &|done| progress.set(done));
    progress.finish();
    let seconds = begun.elapsed().as_secs_f64();
    let reproduction = Reproduction::new(plan, &measured);
    let answer = Answer {
        reproduction: &reproduction,
        seconds,
    };
    ui.say(&reproduction)?;
    ui.say(format!("It took {seconds:.1} s."))?;
    if let Some(folder) = &folder {
        write(folder, &answer, &measured).map_err(Failure::on_the_way)?;
        ui.say(format!("Written to {}", folder.path().display()))?;
    }
    ui.answer(&answer)?;
    if ui.stop().load(Ordering::Relaxed) {
        ui::warn("stopped early: rows without a value were not run");
        return Ok(ui.exit_code());
    }
    Ok(ExitCode::from(u8::from(!reproduction.ok)))
}

fn write(folder: &Folder, answer: &Answer<'_>, measured: &Measured) -> Result<(), FolderError> {
    let time = format!("{:.1} s", answer.seconds);
    let page = answer.reproduction.page(measured, &time).html();
    folder.write(REPORT, page.as_bytes())?;
    for (file, figure) in figures(measured) {
        folder.write(file, figure.standalone().as_bytes())?;
    }
    let status = if answer.reproduction.complete {
        Status::Complete
    } else {
        Status::Interrupted
    };
    folder.publish(status, answer)
}
