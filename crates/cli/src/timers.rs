//! `sdmac timers`: which timer of this computer fires most evenly, and how late, at the intervals of slots.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::value_parser;
use lab::measure::host::computer;
use lab::measure::timers::{Row, Studied, Study, page, word};
use lab::report::folder::{Folder, FolderError, REPORT, Status};
use linux::host::{Load, LoadReport, Mechanism, Plan, Sched, Work};
use serde_json::{Value, json};

use crate::measure::{load, sched};
use crate::ui::{self, Failure, Ui};

/// Which timer of this computer to take for slots
///
/// Each source of time that user space has waits for deadlines that are exactly one interval apart: sleep (clock_nanosleep),
/// timerfd, posix (timer_create), epoll (epoll_pwait2), spin, hybrid (sleep, and spin for the last 200 us), etf (frames with
/// SO_TXTIME that the kernel sends). Quiet, among ten other timers on the same CPU, under network and I/O load; with ordinary
/// scheduling, and with SCHED_FIFO and locked memory. The statistics of lateness and of intervals, missed deadlines, and
/// which source to take.
///
/// The whole study takes some ten hours; 10000 samples carry a p99.9 and take twelve minutes. Ctrl-C ends it with what there
/// is. What this user may not do, or this kernel does not have, is left out, and it is said why.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac timers --samples 1000 --loads idle,timers     # half a minute to see that it works
  sudo sdmac timers --samples 10000 --out timers      # twelve minutes, with report.html and plots
  sudo sdmac timers --sched fifo+mlock --interval-us 250 --sources timerfd,hybrid
  sdmac timers --samples 1000 --json | jq '.choices'")]
pub struct Args {
    /// Deadlines of each series, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = value_parser!(u32).range(1..=Plan::MAX_SAMPLES as i64))]
    samples: u32,
    /// Intervals in us, each 100 to 1000000
    #[arg(long, value_name = "US", value_delimiter = ',', default_value = "1000,250", value_parser = value_parser!(u32).range(100..=1_000_000))]
    interval_us: Vec<u32>,
    /// Sources: sleep, timerfd, posix, epoll, spin, hybrid, etf [default: all]
    #[arg(long, value_delimiter = ',', value_parser = source)]
    sources: Vec<Mechanism>,
    /// Loads: idle, timers, network, io, cpu [default: the first four]
    #[arg(long, value_delimiter = ',', value_parser = load)]
    loads: Vec<Load>,
    /// Scheduling: other, other+mlock, fifo, fifo+mlock [default: the first and the last]
    #[arg(long, value_delimiter = ',', value_parser = sched)]
    sched: Vec<Sched>,
    /// Write report.html, the plots and the result to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write to the folder even if it holds other files
    #[arg(long, requires = "out")]
    force: bool,
}

fn source(text: &str) -> Result<Mechanism, String> {
    let names = || Mechanism::ALL.map(word).join(", ");
    Mechanism::ALL
        .into_iter()
        .find(|m| word(*m) == text)
        .ok_or_else(|| format!("the sources are {}", names()))
}

impl Args {
    fn study(&self) -> Study {
        let all = Study::default();
        Study {
            samples: self.samples as usize,
            intervals_us: once(&self.interval_us, all.intervals_us),
            sources: once(&self.sources, all.sources),
            loads: once(&self.loads, all.loads),
            sched: once(&self.sched, all.sched),
        }
    }
}

/// What was given, each once and in that order; else what is usual.
fn once<T: Copy + PartialEq>(given: &[T], usual: Vec<T>) -> Vec<T> {
    let mut all = Vec::new();
    for one in given {
        if !all.contains(one) {
            all.push(*one);
        }
    }
    if all.is_empty() { usual } else { all }
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let folder = match &args.out {
        Some(path) => Some(Folder::create(path, args.force).map_err(Failure::input)?),
        None => None,
    };
    let study = args.study();
    ui.tell(&format!(
        "{} series of {} deadlines take about {}; Ctrl-C ends it with what there is by then.",
        study.series(),
        study.samples,
        spoken(study.duration())
    ));
    let begun = Instant::now();
    let bar = ui.progress("series", study.series() as u64);
    let studied = study.run(ui.stop(), &|done| bar.set(done as u64));
    bar.finish();
    let studied = studied.map_err(Failure::input)?;
    let took = spoken(begun.elapsed());
    ui.say(page::text(&studied))?;
    let answer = answer(&study, &studied);
    if let Some(folder) = &folder {
        write(folder, &study, &studied, &took, &answer).map_err(Failure::on_the_way)?;
        ui.say(format!("Report: {}", folder.path().join(REPORT).display()))?;
    }
    ui.answer(&answer)?;
    if !studied.complete {
        ui::warn("stopped early: the numbers cover what was measured until then");
    }
    Ok(ui.exit_code())
}

fn spoken(time: Duration) -> String {
    let s = time.as_secs();
    match s {
        0..100 => format!("{s} s"),
        100..6_000 => format!("{} min", s.div_ceil(60)),
        _ => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
    }
}

fn write(
    folder: &Folder,
    study: &Study,
    studied: &Studied,
    took: &str,
    answer: &Value,
) -> Result<(), FolderError> {
    folder.write(REPORT, page::page(study, studied, took).html().as_bytes())?;
    for (file, figure) in &studied.figures {
        folder.write(file, figure.standalone().as_bytes())?;
    }
    let status = match studied.complete {
        true => Status::Complete,
        false => Status::Interrupted,
    };
    folder.publish(status, answer)
}

fn answer(study: &Study, studied: &Studied) -> Value {
    let rows: &[Row] = &studied.rows;
    json!({
        "computer": computer(&studied.environment),
        "emulated": studied.environment.is_emulated(),
        "cpu": studied.cpus.map(|c| c.measured),
        "samples": study.samples,
        "rows": rows,
        "choices": studied.choices(),
        "loads": studied.loads.iter().map(|(us, report)| ran(*us, report)).collect::<Vec<_>>(),
        "left_out": studied.left_out.iter().map(|[part, why, remedy]| json!({
            "part": part, "why": why, "remedy": remedy,
        })).collect::<Vec<_>>(),
    })
}

fn ran(interval_us: u32, report: &LoadReport) -> Value {
    let timers = match report.work {
        Work::Woken { per_s } => Some(per_s),
        _ => None,
    };
    json!({
        "interval_us": interval_us, "load": report.load.name(), "failed": report.failed,
        "seconds": report.rates.seconds, "interrupts_per_s": report.rates.interrupts_per_s,
        "context_switches_per_s": report.rates.context_switches_per_s,
        "cpu_busy": report.rates.cpu_busy, "timers_per_s": timers,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Alone {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(line: &str) -> Result<Study, String> {
        let words = std::iter::once("timers").chain(line.split_whitespace());
        let alone = Alone::try_parse_from(words).map_err(|e| e.to_string())?;
        Ok(alone.args.study())
    }

    #[test]
    fn the_whole_study_unless_less_is_asked_for() {
        assert_eq!(parsed("").unwrap().series(), Study::default().series());
        let less =
            parsed("--samples 9 --interval-us 250 --sources epoll,epoll,spin --loads timers --sched fifo")
                .unwrap();
        assert_eq!((less.series(), less.samples), (2, 9));
        assert_eq!(less.duration(), Duration::from_micros(2 * 9 * 250));
    }

    #[test]
    fn a_mistake_is_named_with_what_is_allowed() {
        for (line, part) in [
            (
                "--sources hpet",
                "sleep, timerfd, posix, epoll, spin, hybrid, etf",
            ),
            ("--interval-us 50", "100"),
            ("--samples 0", "1"),
            ("--loads rain", "timers"),
            ("--force", "--out"),
        ] {
            let said = parsed(line).unwrap_err();
            assert!(said.contains(part), "{line}: {said}");
        }
    }

    #[test]
    fn durations_are_spoken() {
        let all = [35, 725, 35_000].map(|s| spoken(Duration::from_secs(s)));
        assert_eq!(all, ["35 s", "13 min", "9 h 43 min"]);
    }
}
