//! `sdmac tune`: the recipe for a deterministic computer, as far as it can be applied while the system runs.

use std::path::PathBuf;
use std::process::ExitCode;

use linux::machine::Tree;
use linux::machine::journal::{DEFAULT_PATH, Journal};
use linux::machine::tune::{Done, Recipe, Step, apply, is_root, plan, revert};
use serde_json::json;

use crate::doctor;
use crate::ui::{Failure, Ui};

/// Give the application and the driver a CPU each, keep everything else away, and stop what saves power
///
/// The optimised configuration of the SDMAC paper, as far as it can be applied without a new boot: frequency, sleep
/// states, real-time throttling, timers, interrupts, priority of the adapter's interrupt threads. What was there is
/// noted first; --revert makes it so again, and a new boot does as well. What needs a boot parameter, sdmac doctor tells.
/// Exit code: 0 if all was done, 1 if the kernel refused something.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac tune --dry-run
  sudo sdmac tune --iface wlan1
  sudo sdmac tune --iface wlan1 --app-cpu 1 --driver-cpu 3
  sudo sdmac tune --revert")]
pub struct Args {
    /// The network interface whose adapter counts
    #[arg(long, value_name = "IFACE")]
    iface: Option<String>,
    /// CPU of the application: an isolated one, or the last one
    #[arg(long, value_name = "CPU")]
    app_cpu: Option<usize>,
    /// CPU of the driver and of the adapter's interrupts: the next one
    #[arg(long, value_name = "CPU")]
    driver_cpu: Option<usize>,
    /// Only say what would be changed
    #[arg(long)]
    dry_run: bool,
    /// Make everything as it was
    #[arg(long, conflicts_with_all = ["iface", "app_cpu", "driver_cpu"])]
    revert: bool,
    /// Where it is noted what was there
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH)]
    journal: PathBuf,
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let tree = Tree::default();
    let mut journal = Journal::open(&args.journal)
        .map_err(|e| Failure::input(format!("{}: {e}", args.journal.display())))?;
    if args.revert {
        return back(args, &tree, &mut journal, ui);
    }
    let network = doctor::network(&tree, args.iface.as_deref())?;
    let recipe = Recipe::new(&tree, args.app_cpu, args.driver_cpu, network).map_err(Failure::input)?;
    let steps = plan(&tree, &recipe);
    let cpus = format!(
        "CPU {} for the application, CPU {} for the driver.",
        recipe.application, recipe.driver
    );
    if args.dry_run || steps.is_empty() {
        for step in &steps {
            ui.say(line(step))?;
        }
        ui.say(match steps.len() {
            0 => format!("Nothing is left to change. {cpus}"),
            n => format!("{n} changes; nothing was changed. {cpus}"),
        })?;
        ui.answer(&json!({
            "format": "sdmac-tune/1", "applied": false, "application_cpu": recipe.application, "driver_cpu": recipe.driver,
            "steps": steps.iter().map(|s| json!({ "what": s.what, "from": s.from, "to": s.to, "why": s.why })).collect::<Vec<_>>(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    may_write(args)?;
    let done = apply(&tree, &steps, &mut journal).map_err(|e| noted(args, &e))?;
    let refused = report(&done, ui)?;
    ui.say(format!(
        "{} of {} changes made. {cpus} `sdmac tune --revert` takes them back.",
        done.len() - refused,
        done.len()
    ))?;
    answer(
        ui,
        &done,
        json!({ "application_cpu": recipe.application, "driver_cpu": recipe.driver }),
    )?;
    Ok(ExitCode::from(u8::from(refused > 0)))
}

fn back(args: &Args, tree: &Tree, journal: &mut Journal, ui: &Ui) -> Result<ExitCode, Failure> {
    if journal.entries().is_empty() {
        ui.say(format!(
            "Nothing to take back: {} holds no changes.",
            args.journal.display()
        ))?;
        answer(ui, &[], json!({}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.dry_run {
        let lines: Vec<String> = journal.entries().iter().rev().map(ToString::to_string).collect();
        ui.say(lines.join("\n"))?;
        ui.answer(&json!({ "format": "sdmac-tune/1", "applied": false, "steps": lines }))?;
        return Ok(ExitCode::SUCCESS);
    }
    may_write(args)?;
    let done = revert(tree, journal).map_err(|e| noted(args, &e))?;
    let refused = report(&done, ui)?;
    ui.say(format!(
        "{} of {} are as they were.",
        done.len() - refused,
        done.len()
    ))?;
    answer(ui, &done, json!({}))?;
    Ok(ExitCode::from(u8::from(refused > 0)))
}

fn may_write(args: &Args) -> Result<(), Failure> {
    if is_root() {
        return Ok(());
    }
    let look = if args.revert {
        ""
    } else {
        ", or look first with --dry-run"
    };
    Err(Failure::input(format!(
        "tune writes to files of the kernel that belong to root: run it with sudo{look}"
    )))
}

fn noted(args: &Args, error: &std::io::Error) -> Failure {
    Failure::on_the_way(format!(
        "{}: what was there cannot be noted, so nothing more was changed: {error}",
        args.journal.display()
    ))
}

fn line(step: &Step) -> String {
    format!("{}: {} -> {} ({})", step.what, step.from, step.to, step.why)
}

/// Says what became of each; how many were refused.
fn report(done: &[Done], ui: &Ui) -> Result<usize, Failure> {
    let mut refused = 0;
    for d in done {
        match &d.refused {
            None => ui.say(format!("{} = {}", d.what, d.to))?,
            Some(e) => {
                refused += 1;
                ui.tell(&format!("{}: the kernel refuses {} ({e})", d.what, d.to));
            }
        }
    }
    Ok(refused)
}

fn answer(ui: &Ui, done: &[Done], more: serde_json::Value) -> Result<(), Failure> {
    let steps: Vec<_> = done
        .iter()
        .map(
            |d| json!({ "what": d.what, "to": d.to, "refused": d.refused.as_ref().map(ToString::to_string) }),
        )
        .collect();
    let mut document = json!({ "format": "sdmac-tune/1", "applied": true, "steps": steps });
    if let (Some(document), Some(more)) = (document.as_object_mut(), more.as_object()) {
        document.extend(more.clone());
    }
    ui.answer(&document)
}
