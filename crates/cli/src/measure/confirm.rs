//! `sdmac measure --confirm all`: the ways by which outcomes come up, compared on the same frames.

use std::fmt::Write as _;
use std::process::ExitCode;

use lab::measure::adapter::Plan;
use lab::measure::confirm::{Compared, Right, Row, confirms};

use linux::host::EMULATED;
use serde::Serialize;

use super::notes::silence;
use crate::ui::{self, Failure, Ui};

/// The document of `--json`.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    compared: &'a Compared,
    notes: &'a [String],
}

/// Compares. `uncertified`: why the adapter has no certificate, if it has none.
pub(super) fn main(plan: &Plan, uncertified: Option<String>, ui: &Ui) -> Result<ExitCode, Failure> {
    let bar = ui.progress("comparing", u64::from(plan.count));
    let compared = confirms(plan, &|n| bar.set(n.into()), ui.stop());
    bar.finish();
    let compared = compared.map_err(Failure::input)?;
    let notes = notes(&compared, plan, uncertified);
    ui.say(table(&compared, &notes))?;
    ui.answer(&Answer {
        compared: &compared,
        notes: &notes,
    })?;
    if compared.sent + compared.refused < plan.count.into() {
        ui::warn("stopped early: the numbers cover what was sent until then");
    }
    Ok(ui.exit_code())
}

/// What a reader must know before he believes a number.
fn notes(compared: &Compared, plan: &Plan, uncertified: Option<String>) -> Vec<String> {
    let mut notes = Vec::from_iter(uncertified);
    let monitor = || compared.rows.iter().filter(|row| row.path == "monitor");
    let told: u64 = monitor().map(|row| row.told).sum();
    let not_acked: u64 = monitor().map(|row| row.not_acked).sum();
    notes.extend(silence("compared", told - not_acked, not_acked, plan.to));
    if let Some(why) = &compared.no_device {
        notes.push(format!("without the device: {why}"));
    }
    if compared.emulated {
        notes.push(EMULATED.to_owned());
    }
    notes
}

fn table(compared: &Compared, notes: &[String]) -> String {
    let mut t = format!("{} frames at {} MHz", compared.sent, compared.channel_mhz);
    if compared.refused > 0 {
        let _ = write!(t, ", {} more that the kernel did not take", compared.refused);
        for (why, count) in &compared.refusals {
            let _ = write!(t, "\nnot taken, {why}: {count}");
        }
    }
    let _ = writeln!(
        t,
        "\n\n{:10}  {:7} {:>13} {:>6} {:>7} {:>7}  {:>11} {:>11} {:>11}  {:>7} {:>7} {:>7}  {:>11} {:>11} {:>11}",
        "frames",
        "path",
        "told of",
        "twice",
        "no ACK",
        ">1 try",
        "min us",
        "median us",
        "p99 us",
        "min",
        "median",
        "p99",
        "acked",
        "tries",
        "series"
    );
    for row in &compared.rows {
        line(&mut t, row);
    }
    t += "\nmin, median and p99 without a unit are those of the path divided by the monitor's; acked, tries and series: how many\n\
          of those that the monitor told of, too, agree with it. `-`: the path does not tell it, or too few frames carry it.\n";
    for note in notes {
        let _ = writeln!(t, "note: {note}");
    }
    t
}

fn line(t: &mut String, row: &Row) {
    let _ = write!(t, "{:10}  {:7} ", row.frames, row.path);
    if !row.carries {
        t.push_str(if row.path == "device" {
            "is not there\n"
        } else {
            "cannot tell of such frames\n"
        });
        return;
    }
    let us = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| format!("{:.1}", ns / 1e3));
    let ratio = |r: Option<f64>| r.map_or("-".to_owned(), |r| format!("{r:.3}"));
    let right = |r: Option<Right>| r.map_or("-".to_owned(), |r| format!("{}/{}", r.right, r.of));
    let [min, median, p99] = row.to_monitor.unwrap_or_default();
    let _ = writeln!(
        t,
        "{:>13} {:>6} {:>7} {:>7}  {:>11} {:>11} {:>11}  {:>7} {:>7} {:>7}  {:>11} {:>11} {:>11}",
        format!("{}/{}", row.told, row.sent),
        row.told_again,
        row.not_acked,
        row.tried_again.map_or("-".to_owned(), |n| n.to_string()),
        us(row.latency.map(|l| l.min_ns)),
        us(row.latency.map(|l| l.median_ns)),
        us(row.latency.and_then(|l| l.p99_ns)),
        ratio(min),
        ratio(median),
        ratio(p99),
        right(row.acked),
        right(row.tries),
        right(row.series)
    );
}
