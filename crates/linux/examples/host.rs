//! Measures this computer and prints a table: `cargo run --release -p sdmac-linux --example host [quick] [SAMPLES]`.

use std::sync::atomic::AtomicBool;

use linux::host::{Measurement, Plan, Work, measure};

fn main() -> Result<(), String> {
    let mut plan = Plan::default();
    for argument in std::env::args().skip(1) {
        match (argument.as_str(), argument.parse()) {
            ("quick", _) => plan = Plan::quick(),
            (_, Ok(samples)) => plan.samples = samples,
            _ => {
                return Err(format!(
                    "{argument} is neither a number of samples nor the word quick"
                ));
            }
        }
    }
    plan.budget = plan.budget.max(plan.duration() * 4);
    let stop = AtomicBool::new(false);
    let progress = |step, total, label: &str| eprint!("\r\x1b[K{step}/{total} {label}");
    let measurement = measure(&plan, &progress, &stop).map_err(|error| error.to_string())?;
    eprintln!();
    print(&measurement);
    Ok(())
}

fn print(measurement: &Measurement) {
    println!("{:#?}", measurement.environment);
    println!(
        "{:?}, frames over {:?}",
        measurement.cpus, measurement.packet_path
    );
    for report in &measurement.load_reports {
        let work = match &report.work {
            Work::Nothing => String::new(),
            Work::Computed { cpus } => format!("{cpus:.2} CPUs computing"),
            Work::Written {
                octets_per_s,
                file_system,
            } => {
                format!(
                    "{:.1} MB/s written and synced to {file_system}",
                    octets_per_s / 1e6
                )
            }
            Work::Sent {
                sent_per_s,
                received_per_s,
                path,
            } => {
                format!("{sent_per_s:.0} frames/s sent, {received_per_s:.0}/s received over {path:?}")
            }
            Work::Woken { per_s } => format!("{per_s:.0} timers/s"),
        };
        let rates = &report.rates;
        println!(
            "{:8} {:5.1} s, CPUs {:3.0} % busy, {:.1} % stolen, {:.0} interrupts/s, {:.0} soft/s, {:.0} switches/s; {work} {}",
            report.load.name(),
            rates.seconds,
            rates.cpu_busy * 100.0,
            rates.cpu_stolen * 100.0,
            rates.interrupts_per_s,
            rates.soft_interrupts_per_s,
            rates.context_switches_per_s,
            report.failed.as_deref().unwrap_or_default(),
        );
    }
    println!(
        "\n{:15} {:8} {:11} {:>7}   min, p50, p99, p99.9, max in us",
        "series", "load", "sched", "samples"
    );
    for series in &measurement.results {
        let mut sorted = series.samples_ns.clone();
        sorted.sort_unstable();
        // The smallest sample that at least this share of all does not exceed.
        let quantile = |per_mille: usize| {
            let rank = (sorted.len() * per_mille).div_ceil(1000).max(1);
            sorted.get(rank - 1).map_or(f64::NAN, |&ns| ns as f64 / 1000.0)
        };
        let scheduler = series.sched.name();
        let columns = [0, 500, 990, 999, 1000].map(|per_mille| format!("{:10.1}", quantile(per_mille)));
        let note = if series.interrupted { " cut short" } else { "" };
        println!(
            "{:15} {:8} {scheduler:11} {:7}{}{note}",
            series.what.name(),
            series.load.name(),
            sorted.len(),
            columns.concat(),
        );
    }
    for left in &measurement.left_out {
        println!(
            "left out: {}: {} (missing: {:?}); {}",
            left.part, left.why, left.missing, left.remedy
        );
    }
}
