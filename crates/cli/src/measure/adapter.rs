//! `sdmac measure --iface`: this computer with an adapter, and the other station of such a measurement.

use std::fmt::Write as _;
use std::process::ExitCode;

use lab::deploy::{UNCERTIFIED, stick_at};
use lab::measure::adapter::{
    Condition, Described, Measured, Plan, Row, Run, describe, figures, listen, measure, page, samples,
};
use lab::measure::host::computer;
use lab::report::folder::{Folder, REPORT, Status, replace};
use linux::host::Load;
use linux::wifi::Seat;
use linux::wifi::certify::Certificate;
use linux::wifi::confirm::Path;
use serde::Serialize;
use serde_json::{Value, json};

use super::notes::notes;
use super::{Args, Confirm, ProbeWay, base, writable};
use crate::certify;
use crate::ui::{self, Failure, Ui};

/// Names of files in the report's folder.
const SAMPLES: &str = "samples.parquet";

/// Is the other station.
pub(super) fn peer(radio: &str, args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let ready = |address: frame::MacAddr, mhz: u16| {
        ui.tell(&format!(
            "hearing at {mhz} MHz; on the other computer: sdmac measure --iface IFACE --channel {mhz} --to {address}"
        ));
    };
    let ear =
        listen(radio, args.channel, args.firmware.as_deref(), ready, ui.stop()).map_err(Failure::input)?;
    let runs: Vec<Told> = ear.runs().into_iter().map(Told::of).collect();
    for run in &runs {
        ui.say(run)?;
    }
    ui.answer(&json!({ "runs": runs }))?;
    // Ctrl-C is how it ends
    Ok(ExitCode::SUCCESS)
}

/// What the other station tells of a run.
#[derive(Serialize)]
struct Told {
    from: String,
    run: u32,
    heard: u32,
    answers: u64,
}

impl Told {
    fn of(run: &Run) -> Told {
        Told {
            from: run.from.to_string(),
            run: run.number,
            heard: run.heard.count(),
            answers: run.answers,
        }
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "from {}: heard {} frames, answered {} questions",
            self.from, self.heard, self.answers
        )
    }
}

/// Measures.
pub(super) fn main(radio: &str, args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let base = base(args)?;
    let certificate = certify::of(radio, args.certificate.as_deref())?;
    let plan = plan(radio, args, certificate.as_ref().ok().map(|(c, _)| c.clone()));
    let uncertified = certificate
        .as_ref()
        .err()
        .filter(|_| stick_at(radio).is_none())
        .map(|why| format!("{UNCERTIFIED}: {why}"));
    if args.confirm == Confirm::All {
        if stick_at(radio).is_some() {
            return Err(Failure::input(
                "a stick (usb:) is driven by this program, so there are no ways of the kernel to compare: leave --confirm out",
            ));
        }
        return super::confirm::main(&plan, uncertified, ui);
    }
    if plan.probes.is_some() || plan.confirm == Path::Device {
        writable(&args.out)?;
    }
    let folder = args.report.as_ref().map(|path| Folder::create(path, args.force));
    let folder = folder.transpose().map_err(Failure::input)?;
    let bar = ui.progress("measuring", 1);
    let progress = |done: u64, all: u64, load: Load| {
        bar.rename(load.name());
        bar.set_of(done, all);
    };
    let measured = measure(&plan, &progress, ui.stop()).map_err(Failure::input)?;
    bar.finish();
    let described = described(&measured, &plan, args, &base)?;
    if let Some(d) = &described {
        replace(&args.out, d.profile.to_toml().as_bytes()).map_err(Failure::on_the_way)?;
    }
    let notes = notes(&measured, &plan, uncertified, described.as_ref());
    let mut text = head(&measured, &plan);
    for condition in &measured.conditions {
        text += &table(condition);
    }
    for note in &notes {
        let _ = writeln!(text, "note: {note}");
    }
    ui.say(text)?;
    if let Some(d) = &described {
        ui.say(format!("{}: profile {}", args.out.display(), d.profile.name))?;
    }
    let answer = answer(
        &measured,
        &plan,
        &notes,
        described.as_ref().map(|_| args.out.display().to_string()),
    );
    if let Some(folder) = &folder {
        write(
            folder,
            &measured,
            &plan,
            &notes,
            certificate.ok().map(|(_, text)| text),
            &answer,
        )
        .map_err(Failure::on_the_way)?;
        ui.say(format!("Report: {}", folder.path().join(REPORT).display()))?;
    }
    ui.answer(&answer)?;
    for c in &measured.conditions {
        let counts = &c.sorting.counts;
        if let Some(sentence) = counts.refusals.warning(c.load.name(), counts.shots) {
            ui::warn(&sentence);
        }
    }
    if measured.conditions.iter().any(|c| c.taken.interrupted) {
        ui::warn("stopped early: the numbers cover what was sent until then");
    }
    Ok(ui.exit_code())
}

fn plan(radio: &str, args: &Args, certificate: Option<Certificate>) -> Plan {
    let mut loads = args.loads.clone();
    if !loads.contains(&args.profile_of) {
        loads.insert(0, args.profile_of);
    }
    Plan {
        radio: radio.to_owned(),
        channel_mhz: args.channel,
        to: args.to.expect("clap asks for it"),
        rate: args.rate,
        payload: args.payload,
        period_us: args.period_us.unwrap_or(5_000),
        count: args.samples.unwrap_or(10_000),
        loads,
        probes: args.probes.map(ProbeWay::way),
        confirm: match args.confirm {
            Confirm::One(path) => path,
            Confirm::All => Path::Monitor,
        },
        seat: Seat {
            cpu: args.cpu,
            fifo: args.fifo,
            lock_memory: args.fifo.is_some(),
        },
        certificate,
        firmware: args.firmware.clone(),
    }
}

fn described(
    measured: &Measured,
    plan: &Plan,
    args: &Args,
    base: &sim::host::Profile,
) -> Result<Option<Described>, Failure> {
    let Some(condition) = measured.conditions.iter().find(|c| c.load == args.profile_of) else {
        return Ok(None);
    };
    let what = format!(
        "{} of {} ({}), load {}{}, {} octets at {}",
        condition.sorting.counts.shots,
        plan.radio,
        measured.driver,
        condition.load.name(),
        if plan.seat.fifo.is_some() {
            ", SCHED_FIFO and locked memory"
        } else {
            ""
        },
        plan.payload,
        plan.rate,
    );
    let found = describe(
        &condition.sorting,
        base,
        &measured.environment,
        measured.emulated,
        &what,
    );
    found.map_err(|e| {
        Failure::on_the_way(format!(
            "the measured profile has no model, which is a mistake of sdmac: {e}"
        ))
    })
}

fn head(measured: &Measured, plan: &Plan) -> String {
    let functions: Vec<String> = measured
        .functions
        .iter()
        .map(|(plane, function)| format!("{plane} {function}"))
        .collect();
    let mut text = format!("{}\n", computer(&measured.environment));
    let _ = writeln!(
        text,
        "{} ({}) at {} MHz, {} octets at {} every {} us, to {}",
        plan.radio, measured.driver, measured.channel_mhz, plan.payload, plan.rate, plan.period_us, plan.to
    );
    if !functions.is_empty() {
        let _ = writeln!(text, "probes: {}", functions.join(", "));
    }
    text
}

fn table(condition: &Condition) -> String {
    let c = &condition.sorting.counts;
    let mut t = format!(
        "\nload {}: {} frames, {} acked, {} not acked, {} left out ({} foreign frames), {} refused, {} without outcome, {} with \
         all nine planes\n",
        condition.load.name(),
        c.shots,
        c.acked,
        c.not_acked,
        c.discarded,
        c.foreign,
        c.refused,
        c.without_outcome,
        c.full
    );
    for (reason, count) in c.refusals.iter() {
        let _ = writeln!(t, "refused, {reason:?}: {count}");
    }
    let _ = writeln!(
        t,
        "{:3}  {:16} {:13} {:>8}  {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  us",
        "set", "what", "planes", "samples", "mean", "s", "min", "p99", "p99.9", "p99.99", "max"
    );
    for row in condition.sorting.rows() {
        let some = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{us:.3}"));
        let Row {
            set,
            what,
            planes,
            samples,
            mean_us,
            sd_us,
            min_us,
            max_us,
            ..
        } = &row;
        let _ = writeln!(
            t,
            "{:3}  {what:16} {planes:13} {samples:>8}  {mean_us:>9.3} {sd_us:>9.3} {min_us:>9.3} {:>9} {:>9} {:>9} {max_us:>9.3}",
            set.name(),
            some(row.p99_us),
            some(row.p99_9_us),
            some(row.p99_99_us),
        );
    }
    t
}

fn answer(measured: &Measured, plan: &Plan, notes: &[String], profile: Option<String>) -> Value {
    let condition = |c: &Condition| {
        json!({
            "load": c.load.name(),
            "interrupted": c.taken.interrupted,
            "told_by_peer": c.taken.heard.is_some(),
            "counts": c.sorting.counts,
            "air": c.sorting.air,
            "rows": c.sorting.rows(),
        })
    };
    json!({
        "computer": computer(&measured.environment),
        "emulated": measured.emulated,
        "radio": plan.radio,
        "driver": measured.driver,
        "channel_mhz": measured.channel_mhz,
        "to": plan.to.to_string(),
        "rate": plan.rate.to_string(),
        "payload": plan.payload,
        "period_us": plan.period_us,
        "probes": measured.functions.iter()
            .map(|(plane, function)| json!({ "plane": plane.to_string(), "function": function }))
            .collect::<Vec<_>>(),
        "lost_hits": measured.lost_hits,
        "conditions": measured.conditions.iter().map(condition).collect::<Vec<_>>(),
        "notes": notes,
        "profile": profile,
    })
}

fn write(
    folder: &Folder,
    measured: &Measured,
    plan: &Plan,
    notes: &[String],
    certificate: Option<String>,
    answer: &Value,
) -> Result<(), String> {
    let failed = |e: lab::report::folder::FolderError| e.to_string();
    let facts = [
        ("computer", computer(&measured.environment)),
        ("radio", format!("{} ({})", plan.radio, measured.driver)),
        ("channel", format!("{} MHz", measured.channel_mhz)),
        (
            "frames",
            format!(
                "{} octets at {} every {} us, to {}",
                plan.payload, plan.rate, plan.period_us, plan.to
            ),
        ),
    ];
    let conditions: Vec<_> = measured
        .conditions
        .iter()
        .map(|c| (c.load.name(), &c.sorting))
        .collect();
    let report = page("The way of a frame, and back", &facts, notes, &conditions);
    folder.write(REPORT, report.html().as_bytes()).map_err(failed)?;
    for (load, sorting) in &conditions {
        for (file, figure) in figures(load, sorting) {
            folder
                .write(&file, figure.standalone().as_bytes())
                .map_err(failed)?;
        }
    }
    let taken: Vec<_> = measured
        .conditions
        .iter()
        .map(|c| (c.load.name(), &c.taken))
        .collect();
    let file = folder.file(SAMPLES).map_err(failed)?;
    let file = samples(file, &taken).map_err(|e| format!("{SAMPLES}: {e}"))?;
    folder.commit(file).map_err(failed)?;
    if let Some(text) = certificate {
        folder.write(certify::FILE, text.as_bytes()).map_err(failed)?;
    }
    let interrupted = measured.conditions.iter().any(|c| c.taken.interrupted);
    let status = if interrupted {
        Status::Interrupted
    } else {
        Status::Complete
    };
    folder.publish(status, answer).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_no_quotes() {
        let told = Told {
            from: "02:00:00:00:01:00".into(),
            run: 1,
            heard: 3,
            answers: 2,
        };
        assert_eq!(
            told.to_string(),
            "from 02:00:00:00:01:00: heard 3 frames, answered 2 questions"
        );
    }
}
