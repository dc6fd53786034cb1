//! `sdmac measure --host`: what this computer is like, as a table and as a profile for the simulator.

use std::fmt::Write as _;
use std::process::ExitCode;

use lab::measure::host::{Condition, SAMPLES_FOR_P999, computer, profile, rows};
use lab::report::folder::replace;
use linux::host::{EMULATED, Load, Measurement, Plan, Sched, measure};
use serde_json::json;

use super::{Args, base, writable};
use crate::ui::{Failure, Ui};

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let base = base(args)?;
    writable(&args.out)?;
    let mut loads = match &args.loads[..] {
        [] => Load::COMPUTER.to_vec(),
        loads => loads.to_vec(),
    };
    if !loads.contains(&args.profile_of) {
        loads.push(args.profile_of);
    }
    let mut plan = if args.quick {
        Plan::quick()
    } else {
        Plan {
            samples: args.samples.map_or(Plan::default().samples, |n| n as usize),
            ..Plan::default()
        }
    };
    plan.period_us = args.period_us.unwrap_or(1_000);
    plan.loads = loads;
    plan.budget = plan.budget.max(plan.duration() * 4);
    let bar = ui.progress("measuring", 1_000);
    let step = |done: usize, total: usize, _: &str| bar.set((done * 1_000 / total.max(1)) as u64);
    let measurement = measure(&plan, &step, ui.stop()).map_err(Failure::input)?;
    bar.finish();
    let condition = condition(args, &measurement);
    let described = match condition {
        Some(c) => profile(&measurement, c, &base).map_err(|e| {
            Failure::on_the_way(format!(
                "the measured profile has no model, which is a mistake of sdmac: {e}"
            ))
        })?,
        None => None,
    };
    let written = match described {
        Some(d) => {
            replace(&args.out, d.profile.to_toml().as_bytes()).map_err(Failure::on_the_way)?;
            Some(d)
        }
        None => None,
    };
    ui.say(table(&measurement))?;
    match (&written, condition) {
        (Some(d), Some(c)) => {
            ui.say(format!(
                "{}: profile {} ({})",
                args.out.display(),
                d.profile.name,
                c.name()
            ))?;
            if let Some(note) = &d.note {
                ui.say(note)?;
            }
        }
        _ => ui.say("No profile was written: nothing was measured that it could hold.")?,
    }
    ui.answer(&json!({
        "computer": computer(&measurement.environment),
        "emulated": measurement.environment.is_emulated(),
        "note": written.as_ref().and_then(|d| d.note.as_deref()),
        "profile": written.as_ref().map(|_| args.out.display().to_string()),
        "rows": rows(&measurement),
        "left_out": measurement.left_out.iter().map(|l| json!({
            "part": l.part.to_string(), "why": l.why, "missing": l.missing, "remedy": l.remedy,
        })).collect::<Vec<_>>(),
    }))?;
    Ok(ui.exit_code())
}

/// The condition to describe: as asked for, else the most determinate of those measured.
fn condition(args: &Args, m: &Measurement) -> Option<Condition> {
    let measured = Condition::measured(m);
    let mine = measured.into_iter().filter(|c| c.load == args.profile_of);
    mine.filter(|c| args.sched.is_none_or(|sched| c.sched == sched))
        .max_by_key(|c| Sched::ALL.iter().position(|s| *s == c.sched))
}

fn table(m: &Measurement) -> String {
    let mut t = format!("{}\n\n", computer(&m.environment));
    let _ = writeln!(
        t,
        "{:15} {:8} {:11} {:>8}  {:>9} {:>9} {:>9} {:>9} {:>9}  us",
        "what", "load", "sched", "samples", "min", "p50", "p99", "p99.9", "max"
    );
    let rows = rows(m);
    for r in &rows {
        let p999 = r.p999_us.map_or("-".into(), |us| format!("{us:.1}"));
        let _ = writeln!(
            t,
            "{:15} {:8} {:11} {:>8}  {:>9.1} {:>9.1} {:>9.1} {p999:>9} {:>9.1}{}",
            r.what,
            r.load,
            r.sched,
            r.samples,
            r.min_us,
            r.p50_us,
            r.p99_us,
            r.max_us,
            if r.interrupted { "  cut short" } else { "" }
        );
    }
    let _ = writeln!(
        t,
        "fifo: SCHED_FIFO; other: ordinary scheduling; mlock: memory locked (mlockall)"
    );
    for l in &m.left_out {
        let _ = writeln!(
            t,
            "left out: {}: {}; {}",
            l.part,
            l.why.trim_end_matches('.'),
            l.remedy
        );
    }
    for report in &m.load_reports {
        if let Some(why) = &report.failed {
            let _ = writeln!(t, "the {} load failed: {why}", report.load.name());
        }
    }
    if m.environment.is_emulated() {
        let _ = writeln!(t, "note: {EMULATED}");
    }
    if m.environment.load_average_percent.is_some_and(|l| l > 50) {
        let _ = writeln!(
            t,
            "note: other programs were busy when this began, so idle was not idle"
        );
    }
    if rows.iter().any(|r| r.samples < SAMPLES_FOR_P999) {
        let _ = writeln!(
            t,
            "note: fewer than {SAMPLES_FOR_P999} samples carry no p99.9; ask for more with --samples"
        );
    }
    t
}
