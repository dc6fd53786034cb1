//! `sdmac reproduce`: does the experiments of a published paper again and judges every row of its claims.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Instant;

use lab::report::folder::{Folder, FolderError, REPORT, Status};
use lab::report::html::Report;
use lab::report::plot::Figure;
use lab::reproduce::{Plan, Reproduction, atp, contiki80211, figures, rtwlan, tdma};
use serde::Serialize;

use crate::ui::{self, Failure, Ui};

/// Do the experiments of a paper again and compare
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac reproduce sdmac --quick                     # a part of everything, some seconds
  sdmac reproduce sdmac --out sdmac-2018            # all of it, with report.html and the figures
  sdmac reproduce tdma --quick                      # slots of 256 us, predicted from one of the paper's tables
  sdmac reproduce rtwlan --quick                    # two and three hosts, and the same hosts in slots of TBMAC
  sdmac reproduce atp --quick                       # chains of 1, 3 and 6 hops with short files
  sdmac reproduce contiki80211 --quick              # what a microcontroller loses of what an AR9170 says
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
    /// Write report.html, the figures and the result to this folder. A complete result that is there stays until there is another one;
    /// what an incomplete run has is in DIR/partial then
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
    /// Torfs, Blondia: TDMA on commercial off-the-shelf hardware, 2015
    Tdma,
    /// Hughes, Cahill: real-time extensions to the Linux network subsystem (RT-WLAN)
    Rtwlan,
    /// The thesis on ATP in a wireless mesh: chains, stack, random flows
    Atp,
    /// Glaropoulos, Vukadinovic, Mangold: Contiki80211, a link layer for a microcontroller, 2014
    Contiki80211,
}

/// Makes the page of a reproduction that took so long.
type Page = dyn Fn(&Reproduction, &str) -> Report;

/// What was measured, ready to be shown.
struct Done {
    reproduction: Reproduction,
    seconds: f64,
    page: Box<Page>,
    figures: Vec<(&'static str, Figure)>,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    reproduction: &'a Reproduction,
    /// How long it took.
    seconds: f64,
}

/// The body of `result.json`.
#[derive(Serialize)]
struct Kept<'a> {
    #[serde(flatten)]
    answer: &'a Answer<'a>,
    /// Files beside it.
    figures: Vec<&'static str>,
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let out = args.out.as_ref().map(|path| Out::new(path, args.force));
    let out = out.transpose().map_err(Failure::input)?;
    let done = match args.paper {
        Paper::Sdmac => sdmac(args, ui),
        Paper::Tdma => tdma(args, ui),
        Paper::Rtwlan => rtwlan(args, ui),
        Paper::Atp => atp(args, ui),
        Paper::Contiki80211 => contiki80211(args, ui),
    };
    let (reproduction, seconds) = (&done.reproduction, done.seconds);
    let answer = Answer {
        reproduction,
        seconds,
    };
    ui.say(reproduction)?;
    ui.say(format!("It took {seconds:.1} s."))?;
    if let Some(out) = out {
        ui.say(out.write(&answer, &done).map_err(Failure::on_the_way)?)?;
    }
    ui.answer(&answer)?;
    if ui.stop().load(Ordering::Relaxed) {
        ui::warn("stopped early: rows without a value were not run");
        return Ok(ui.exit_code());
    }
    Ok(ExitCode::from(u8::from(!reproduction.ok)))
}

fn sdmac(args: &Args, ui: &Ui) -> Done {
    let plan = Plan {
        seed: args.seed,
        quick: args.quick,
    };
    let run = |jobs, progress: &(dyn Fn(u64) + Sync)| plan.run(jobs, ui.stop(), progress);
    let (measured, seconds) = timed(args, ui, "transmissions", plan.transmissions(), run);
    Done {
        reproduction: Reproduction::new(plan, &measured),
        seconds,
        figures: figures(&measured),
        page: Box::new(move |reproduction, time| reproduction.page(&measured, time)),
    }
}

fn tdma(args: &Args, ui: &Ui) -> Done {
    let plan = tdma::Plan {
        seed: args.seed,
        quick: args.quick,
    };
    let run = |jobs, progress: &(dyn Fn(u64) + Sync)| plan.run(jobs, ui.stop(), progress);
    let (measured, seconds) = timed(args, ui, "transmissions", plan.transmissions(), run);
    Done {
        reproduction: measured.judge(plan),
        seconds,
        figures: Vec::new(),
        page: Box::new(move |reproduction, time| measured.page(reproduction, time)),
    }
}

fn rtwlan(args: &Args, ui: &Ui) -> Done {
    let plan = rtwlan::Plan {
        seed: args.seed,
        quick: args.quick,
    };
    let run = |jobs, progress: &(dyn Fn(u64) + Sync)| plan.run(jobs, ui.stop(), progress);
    let (measured, seconds) = timed(args, ui, "pieces", plan.pieces(), run);
    Done {
        reproduction: measured.judge(plan),
        seconds,
        figures: measured.figures(),
        page: Box::new(move |reproduction, time| measured.page(reproduction, time)),
    }
}

fn atp(args: &Args, ui: &Ui) -> Done {
    let plan = atp::Plan {
        seed: args.seed,
        quick: args.quick,
    };
    let run = |jobs, progress: &(dyn Fn(u64) + Sync)| plan.run(jobs, ui.stop(), progress);
    let (measured, seconds) = timed(args, ui, "runs", plan.runs(), run);
    Done {
        reproduction: atp::judge(&plan, &measured),
        seconds,
        figures: atp::figures(&measured),
        page: Box::new(move |reproduction, time| atp::page(&measured, reproduction, time)),
    }
}

fn contiki80211(args: &Args, ui: &Ui) -> Done {
    let plan = contiki80211::Plan {
        seed: args.seed,
        quick: args.quick,
    };
    let run = |jobs, progress: &(dyn Fn(u64) + Sync)| plan.run(jobs, ui.stop(), progress);
    let (measured, seconds) = timed(args, ui, "pieces", plan.pieces(), run);
    Done {
        reproduction: measured.judge(plan),
        seconds,
        figures: measured.figures(),
        page: Box::new(move |reproduction, time| measured.page(reproduction, time)),
    }
}

/// Runs the experiments of a plan and tells how long they took.
fn timed<M>(
    args: &Args,
    ui: &Ui,
    what: &str,
    all: u64,
    run: impl FnOnce(usize, &(dyn Fn(u64) + Sync)) -> M,
) -> (M, f64) {
    let begun = Instant::now();
    let progress = ui.progress(what, all);
    let jobs = args.jobs.map_or(0, usize::from);
    let measured = run(jobs, &|done| progress.set(done));
    progress.finish();
    (measured, begun.elapsed().as_secs_f64())
}

/// The folder of `--out`, and the one inside it, where a complete result stays until there is another one.
struct Out {
    folder: Folder,
    beside: Option<Folder>,
}

impl Out {
    fn new(path: &Path, force: bool) -> Result<Out, FolderError> {
        let folder = Folder::keeping(path, force)?;
        let beside = folder.keeps().then(|| folder.beside()).transpose()?;
        Ok(Out { folder, beside })
    }

    /// Says where it is.
    fn write(self, answer: &Answer<'_>, done: &Done) -> Result<String, FolderError> {
        fill(self.beside.as_ref().unwrap_or(&self.folder), answer, done)?;
        let place = self.folder.path().display();
        match self.beside {
            Some(partial) if !answer.reproduction.complete => {
                let partial = partial.path().display();
                return Ok(format!(
                    "Written to {partial}: the complete result in {place} stays"
                ));
            }
            Some(whole) => self.folder.take(whole)?,
            None => {}
        }
        Ok(format!("Written to {place}"))
    }
}

fn fill(folder: &Folder, answer: &Answer<'_>, done: &Done) -> Result<(), FolderError> {
    let time = format!("{:.1} s", answer.seconds);
    let page = (done.page)(answer.reproduction, &time).html();
    folder.write(REPORT, page.as_bytes())?;
    for (file, figure) in &done.figures {
        folder.write(file, figure.standalone().as_bytes())?;
    }
    let status = if answer.reproduction.complete {
        Status::Complete
    } else {
        Status::Interrupted
    };
    let figures = done.figures.iter().map(|(file, _)| *file).collect();
    folder.publish(status, &Kept { answer, figures })
}
