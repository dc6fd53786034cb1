//! `cargo xtask test`: everything CI runs, in order, the same on a laptop.
//!
//! A step that fails does not stop the others, unless they need what it makes. A step that cannot run here says why.

pub(crate) mod binaries;
mod c;
mod counts;
mod firmware;
mod lab;
mod lanes;
mod steps;
pub(crate) mod tools;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// Options of `cargo xtask test`.
#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Run only these steps, with commas between them.
    #[arg(long, value_name = "STEP,STEP", value_delimiter = ',')]
    only: Vec<String>,
    /// Also what takes long and seldom tells anything new: before a release.
    #[arg(long, conflicts_with = "only")]
    all: bool,
    /// Name the steps and run nothing.
    #[arg(long)]
    list: bool,
}

/// Runs the step `lab` alone. True when it did not fail.
pub(crate) fn lab(workspace: &Workspace) -> Result<bool> {
    let only = vec!["lab".to_owned()];
    run(
        workspace,
        &Options {
            only,
            ..Options::default()
        },
    )
}

/// One thing CI runs.
struct Step {
    name: &'static str,
    what: &'static str,
    /// A step before this one that makes what this one needs.
    needs: Option<&'static str>,
    /// Left to `--all`, and to who names it.
    rare: bool,
    run: fn(&Workspace) -> Result<Outcome>,
}

/// How a step ended that did not fail; a failure is an `Err`.
enum Outcome {
    /// Done, with a remark for the table, which may be empty.
    Done(String),
    /// Done but for a part that could not run here; which and why, and what would make it run.
    Partly {
        /// What was done, for the table.
        remark: String,
        /// What was not, and why.
        skipped: String,
    },
    /// It could not run here; why, and what would make it run.
    Skipped(String),
}

impl Step {
    const fn new(name: &'static str, what: &'static str, run: fn(&Workspace) -> Result<Outcome>) -> Step {
        Step {
            name,
            what,
            needs: None,
            rare: false,
            run,
        }
    }

    const fn needs(self, step: &'static str) -> Step {
        Step {
            needs: Some(step),
            ..self
        }
    }

    const fn rare(self) -> Step {
        Step { rare: true, ..self }
    }
}

/// All steps, in an order that tells of simple mistakes early.
#[rustfmt::skip]
const STEPS: &[Step] = &[
    Step::new("fmt", "the code is formatted", steps::fmt),
    Step::new("tidy", "cargo xtask tidy", steps::tidy),
    Step::new("typos", "spelling, where `typos` is installed", steps::typos),
    Step::new("build", "the workspace and its tests build", steps::build),
    Step::new("clippy", "no lint of clippy or rustc, all targets", steps::clippy).needs("build"),
    Step::new("test", "all tests and doc tests, debug", steps::test).needs("build"),
    Step::new("long", "a day under TDMA, an hour of overlays among faults, the deepest exploration", steps::long).needs("build").rare(),
    Step::new("doc", "the API documentation builds without a warning", steps::doc).needs("build"),
    Step::new("thumb", "the no_std crates build for a Cortex-M3", steps::thumb).needs("build"),
    Step::new("golden", "golden trace hashes in release; `test` has them in debug", steps::golden).needs("build").rare(),
    Step::new("readme", "the commands of README.md run", steps::readme).needs("build"),
    Step::new("release", "the same in release, as README.md has them", steps::release).needs("build").rare(),
    Step::new("hop", "20,000 packets a second through `sdmac hop` in network namespaces", steps::hop).needs("build").rare(),
    Step::new("lab", "the 802.11 stack of Linux in virtual time, see `cargo xtask lab`", steps::lab).needs("build"),
    Step::new("lab-more", "the same on other kernels, and on drivers with and without a rate table", steps::lab_more).needs("build").rare(),
    Step::new("firmware", "the firmware fits its memory, and boards with it talk in QEMU", firmware::firmware).needs("build"),
    Step::new("c", "C programs over the bindings, here and on a Cortex-M3; headers that fit", c::c).needs("build"),
    Step::new("deny", "licences, sources and bans of the dependencies", steps::deny),
    Step::new("miri", "tests of `frame` and `radio` under miri", steps::miri).needs("build"),
    Step::new("fuzz", "each fuzz target for a few seconds", steps::fuzz).needs("build"),
    Step::new("book", "the book builds, where `mdbook` is installed", steps::book),
];

/// Runs the chosen steps and prints the table. True when none failed.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    if options.list {
        for step in STEPS {
            let rare = if step.rare { ", with --all" } else { "" };
            println!("{:<9}{}{rare}", step.name, step.what);
        }
        return Ok(true);
    }
    let reports = run_steps(workspace, &choose(STEPS, &options.only, options.all)?);
    print!("\n{}", summary(&reports));
    Ok(!reports.iter().any(|report| matches!(report.end, End::Failed(_))))
}

/// The steps named in `only`, in our order; when it is empty, those of each run, or `all`.
fn choose<'a>(steps: &'a [Step], only: &[String], all: bool) -> Result<Vec<&'a Step>> {
    if let Some(unknown) = only
        .iter()
        .find(|name| !steps.iter().any(|step| step.name == *name))
    {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("no step `{unknown}`: there are {}", names.join(", "));
    }
    Ok(steps
        .iter()
        .filter(|step| match only {
            [] => all || !step.rare,
            _ => only.iter().any(|name| name == step.name),
        })
        .collect())
}

/// What became of one step.
struct Report {
    name: &'static str,
    end: End,
    took: Duration,
}

enum End {
    Done(String),
    Partly { remark: String, skipped: String },
    Skipped(String),
    Failed(String),
}

fn run_steps(workspace: &Workspace, steps: &[&Step]) -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        println!("\n== {}/{} {}: {}", index + 1, steps.len(), step.name, step.what);
        let start = Instant::now();
        let failed = |need: &&str| {
            reports
                .iter()
                .any(|r| r.name == *need && matches!(r.end, End::Failed(_)))
        };
        let end = match step.needs.filter(failed) {
            Some(need) => End::Skipped(format!("it needs `{need}`, which failed")),
            None => match (step.run)(workspace) {
                Ok(Outcome::Done(remark)) => End::Done(remark),
                Ok(Outcome::Partly { remark, skipped }) => End::Partly { remark, skipped },
                Ok(Outcome::Skipped(why)) => End::Skipped(why),
                Err(error) => End::Failed(format!("{error:#}")),
            },
        };
        match &end {
            End::Done(_) => {}
            End::Partly { skipped, .. } => println!("skipped in part: {skipped}"),
            End::Skipped(why) => println!("skipped: {why}"),
            End::Failed(why) => println!("FAILED: {why}"),
        }
        reports.push(Report {
            name: step.name,
            end,
            took: start.elapsed(),
        });
    }
    reports
}

fn summary(reports: &[Report]) -> String {
    let mut text = String::from("step      result   seconds  remark\n");
    for report in reports {
        let (result, remark) = match &report.end {
            End::Done(remark) => ("ok", remark.clone()),
            End::Partly { remark, skipped } => ("in part", format!("NOT RUN: {skipped}; run: {remark}")),
            End::Skipped(why) => ("skipped", why.clone()),
            End::Failed(why) => ("FAILED", why.lines().next().unwrap_or("").to_owned()),
        };
        let line = format!(
            "{:<9} {result:<8} {:>7.1}  {remark}",
            report.name,
            report.took.as_secs_f64()
        );
        text += line.trim_end();
        text.push('\n');
    }
    // last, where it is seen without looking for it
    for report in reports {
        if let End::Failed(why) = &report.end
            && let Some((_, more)) = why.split_once('\n')
        {
            text += &format!("\n{} FAILED:\n{more}\n\n", report.name);
        }
    }
    let count = |is_it: fn(&End) -> bool| reports.iter().filter(|report| is_it(&report.end)).count();
    let seconds: f64 = reports.iter().map(|report| report.took.as_secs_f64()).sum();
    text + &format!(
        "{} steps in {seconds:.0} s: {} ok, {} in part, {} skipped, {} failed\n",
        reports.len(),
        count(|end| matches!(end, End::Done(_))),
        count(|end| matches!(end, End::Partly { .. })),
        count(|end| matches!(end, End::Skipped(_))),
        count(|end| matches!(end, End::Failed(_))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Step = Step::new("good", "", |_| Ok(Outcome::Done("7 tests".to_owned())));
    const BAD: Step = Step::new("bad", "", |_| bail!("exit code 1"));
    const ABSENT: Step = Step::new("absent", "", |_| Ok(Outcome::Skipped("no tool".to_owned())));

    fn workspace() -> Workspace {
        Workspace::parse(r#"{"workspace_root": "/w", "target_directory": "/w/target", "packages": []}"#)
            .unwrap()
    }

    #[test]
    fn a_failure_stops_only_what_needs_it() {
        const AFTER_BAD: Step = Step::new("after", "", |_| unreachable!()).needs("bad");
        let reports = run_steps(&workspace(), &[&BAD, &AFTER_BAD, &GOOD, &ABSENT]);
        assert!(matches!(&reports[0].end, End::Failed(why) if why == "exit code 1"));
        assert!(matches!(&reports[1].end, End::Skipped(why) if why == "it needs `bad`, which failed"));
        assert!(matches!(&reports[2].end, End::Done(_)));
        assert!(matches!(&reports[3].end, End::Skipped(why) if why == "no tool"));
    }

    #[test]
    fn a_step_runs_when_what_it_needs_was_not_chosen() {
        const AFTER_GOOD: Step = Step::new("after", "", |_| Ok(Outcome::Done(String::new()))).needs("good");
        assert!(matches!(
            run_steps(&workspace(), &[&AFTER_GOOD])[0].end,
            End::Done(_)
        ));
    }

    #[test]
    fn the_table_names_every_step_and_counts() {
        let report = |name, end| Report {
            name,
            end,
            took: Duration::from_millis(1500),
        };
        let table = summary(&[
            report("good", End::Done("7 tests".to_owned())),
            report(
                "half",
                End::Partly {
                    remark: "3 tests".to_owned(),
                    skipped: "4 guests, no QEMU".to_owned(),
                },
            ),
            report("absent", End::Skipped("no tool".to_owned())),
            report("bad", End::Failed("exit code 1".to_owned())),
            report(
                "worse",
                End::Failed("1 of 2 tests failed: a\n  a\n    panicked at 3:5".to_owned()),
            ),
        ]);
        assert_eq!(
            table,
            "step      result   seconds  remark\n\
             good      ok           1.5  7 tests\n\
             half      in part      1.5  NOT RUN: 4 guests, no QEMU; run: 3 tests\n\
             absent    skipped      1.5  no tool\n\
             bad       FAILED       1.5  exit code 1\n\
             worse     FAILED       1.5  1 of 2 tests failed: a\n\n\
             worse FAILED:\n  a\n    panicked at 3:5\n\n\
             5 steps in 8 s: 1 ok, 1 in part, 1 skipped, 2 failed\n"
        );
    }

    #[test]
    fn only_chooses_in_our_order_and_refuses_what_is_not_there() {
        let steps = [GOOD, BAD, ABSENT.rare()];
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            choose(&steps, &only, false).map(|steps| steps.iter().map(|step| step.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["good", "bad"]);
        assert_eq!(names(&["absent"]).unwrap(), ["absent"]);
        assert_eq!(choose(&steps, &[], true).unwrap().len(), 3);
        assert_eq!(names(&["bad", "good"]).unwrap(), ["good", "bad"]);
        assert_eq!(
            names(&["ugly"]).unwrap_err().to_string(),
            "no step `ugly`: there are good, bad, absent"
        );
    }

    #[test]
    fn needs_point_back() {
        for (index, step) in STEPS.iter().enumerate() {
            assert!(
                step.needs
                    .is_none_or(|need| STEPS[..index].iter().any(|earlier| earlier.name == need)),
                "{}",
                step.name
            );
        }
    }
}
