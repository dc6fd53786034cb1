//! Our value for every number of every row.

use frame::{Phy, Rate};

use super::super::claims::Claim;
use super::super::counts::Counts;
use super::super::estimate::Estimate;
use super::super::values::Values;
use super::calibrate::{BINS, RECEIVED};
use super::link::{Arrivals, BEACON_EVERY, OCTETS, SLOT_NS, rate};
use super::timers::{Load, PHASES, RUNS, SAMPLES, Timer, categories};
use super::{Ablation, Measured};

/// The slot, us.
const SLOT_US: f64 = SLOT_NS as f64 / 1e3;

/// All that the measurements allow. `claims` gives the numbers of the paper to the rows that check its arithmetic.
pub fn of(measured: &Measured, claims: &[Claim]) -> Values {
    let mut values = Values::default();
    arithmetic(&mut values, claims);
    timers(&mut values, measured);
    tests(&mut values, measured);
    ablations(&mut values, measured);
    values
}

fn arithmetic(values: &mut Values, claims: &[Claim]) {
    let mut exact = |id: &str, name: &str, value: f64| values.put(id, name, Estimate::exact(value));
    exact("2-21", "bandwidth", OCTETS as f64 * 8.0 / SLOT_US);
    exact("2-22", "beacon", f64::from(BEACON_EVERY) * SLOT_US / 1e3);
    let least = (1..1_500).find(|octets| frame::ppdu_us(Rate::OFDM_6, *octets, Phy::N5.band) > 256);
    exact("2-23", "octets", f64::from(least.unwrap_or(0)));
    // QoS header, LLC/SNAP and FCS
    let octets = OCTETS as u32 + 26 + 8 + 4;
    let ppdu = frame::ppdu_us(rate(), octets, Phy::N5.band);
    exact("2-24", "ppdu", f64::from(ppdu + Phy::N5.difs_us()));
    exact("2-14", "interrupts", 1e6 / 125.0);
    let paper = |id: &str, name: &str| {
        let claim = claims.iter().find(|c| c.id == id)?;
        claim.values.iter().find(|v| v.name == name)?.paper
    };
    let beyond = |table: &str| {
        let bins = &BINS[6..];
        let all = bins
            .iter()
            .map(|(from, to)| paper(table, &format!("{from}-{to}")));
        all.map(|n| n.unwrap_or(0.0)).sum::<f64>()
    };
    exact("2-30", "share", beyond("2-29") / RECEIVED as f64 * 100.0);
    exact("2-33", "share", beyond("2-32") / 233_938.0 * 100.0);
    exact("2-37", "share", beyond("2-29") / RECEIVED as f64 * 100.0);
    let loss = |lost: Option<f64>, received: Option<f64>| Some(lost? / (lost? + received?) * 100.0);
    let of_sent = loss(paper("2-34", "lost"), paper("2-34", "received"));
    values.put("2-34", "of_sent", of_sent.map(Estimate::exact));
}

fn timers(values: &mut Values, measured: &Measured) {
    for (n, jiffies) in categories().into_iter().enumerate() {
        values.put("2-5", &format!("n{n}"), Estimate::exact(jiffies as f64));
    }
    for hz in [100, 250, 300, 1_000] {
        let period = measured.timer(250, Timer::Wheel(hz), Load::Quiet, RUNS).mean();
        values.put("2-5", &format!("period_250_at_{hz}"), period);
    }
    for period in [250, 1_000] {
        let mean = measured.timer(period, Timer::Beacon, Load::Quiet, RUNS).mean();
        values.put("2-6", &format!("period_{period}"), mean);
    }
    let sd = |load| {
        let runs = if load == Load::TenTimers { PHASES } else { RUNS };
        measured.timer(1_000, Timer::High, load, runs).sd()
    };
    values.put("2-13", "quiet", sd(Load::Quiet));
    values.put("2-13", "network", sd(Load::Network));
    values.put("2-13", "ten_timers", sd(Load::TenTimers));
    let difference = |a: Load, b: Load| Some(sd(a)? - sd(b)?);
    values.put("2-13", "ten_over_quiet", difference(Load::TenTimers, Load::Quiet));
    values.put(
        "2-14",
        "network_over_quiet",
        difference(Load::Network, Load::Quiet),
    );
    values.put(
        "2-14",
        "ten_over_network",
        difference(Load::TenTimers, Load::Network),
    );
    largest_deviations(values, measured);
    let quiet = measured.timer(1_000, Timer::High, Load::Quiet, RUNS);
    let off = |(ns, _): &(u64, u64)| ns.abs_diff(1_000_000) > 2_000;
    let late = quiet.iter().filter(off).map(|(_, times)| times).sum();
    let of_500000 = (quiet.count() > 0).then(|| paired(late).times(5e5 / quiet.count() as f64));
    values.put("2-9", "of_500000", of_500000);
    let printing = measured.timer(1_000, Timer::High, Load::Printing, 1);
    let longest = printing
        .max(printing.count())
        .map(|e| Estimate::exact(e.value / 1e3 - 1.0));
    values.put("2-10", "outage", longest.filter(|e| e.value > 1.0));
    values.put("2-18", "blocked", longest.filter(|e| e.value > 1.0));
}

/// Deviations of intervals: one that comes late makes two of them, so chance is in half of their number.
fn paired(count: u64) -> Estimate {
    Estimate {
        value: count as f64,
        ..Estimate::counted(count / 2).times(2.0)
    }
}

/// By how much an interval differs from the mean at most, with ten timers beside.
fn largest_deviations(values: &mut Values, measured: &Measured) {
    let largest = |period: u64, timer: Timer| {
        let all = measured.timer(period, timer, Load::TenTimers, RUNS);
        let (mean, max, min) = (all.mean()?, all.max(SAMPLES)?, all.min(SAMPLES)?);
        let (above, below) = (max - mean, mean - min);
        Some(if above.value < below.value { below } else { above })
    };
    for period in [250, 1_000] {
        values.put("2-8", &format!("us_{period}"), largest(period, Timer::High));
        values.put("2-11", &format!("us_{period}"), largest(period, Timer::Beacon));
    }
}

/// Share of intervals that deviate from the slot by `from` us or more and less than `to`.
fn between(intervals: &Counts, from: f64, to: f64) -> u64 {
    let off = |ns: u64| (ns as f64 / 1e3 - SLOT_US).abs();
    let inside = intervals.iter().filter(|(ns, _)| (from..to).contains(&off(*ns)));
    inside.map(|(_, times)| times).sum()
}

fn tests(values: &mut Values, measured: &Measured) {
    let [hour, minute, five] = &measured.tests;
    for (arrivals, id, bins, scale) in [
        (hour, "2-27", Some("2-29"), 1.0 / measured.share),
        (minute, "2-31", Some("2-32"), 1.0),
        (five, "2-35", None, 1.0),
    ] {
        if arrivals.received > 0 {
            test(values, arrivals, id, bins, scale);
        }
    }
    if hour.received > 0 {
        let scale = 1.0 / measured.share;
        let slots = (hour.received + hour.lost) as f64 * scale;
        values.put("2-25", "slots", Estimate::exact(slots));
        values.put("2-25", "missed", Estimate::counted(hour.lost).times(scale));
        values.put("2-26", "mean", hour.intervals.mean());
        let beyond = paired(between(&hour.intervals, 10.0, f64::INFINITY));
        let share = beyond.times(100.0 / hour.intervals.count() as f64);
        values.put("2-36", "share", share);
        values.put("2-28", "within_4", within_4(&hour.intervals));
    }
    if minute.received > 0 {
        values.put("2-31", "missed", Estimate::counted(minute.lost));
        values.put("2-33", "within_4", within_4(&minute.intervals));
        let beyond = paired(between(&minute.intervals, 10.0, f64::INFINITY));
        values.put(
            "2-33",
            "ours",
            beyond.times(100.0 / minute.intervals.count() as f64),
        );
    }
    if five.received > 0 {
        let sent = (five.received + five.lost) as f64;
        values.put("2-34", "loss", Estimate::counted(five.lost).times(100.0 / sent));
    }
}

fn within_4(intervals: &Counts) -> Estimate {
    let beyond = paired(between(intervals, 4.0, f64::INFINITY)).times(100.0 / intervals.count() as f64);
    Estimate::exact(100.0) - beyond
}

fn test(values: &mut Values, arrivals: &Arrivals, id: &str, bins: Option<&str>, scale: f64) {
    let intervals = &arrivals.intervals;
    let like = (intervals.count() as f64 * scale) as u64;
    values.put(id, "mean", intervals.mean());
    values.put(id, "sd", intervals.sd());
    values.put(id, "min", intervals.min(like));
    values.put(id, "max", intervals.max(like));
    values.put(id, "received", Estimate::counted(arrivals.received).times(scale));
    for (from, to) in BINS {
        if let Some(bins) = bins {
            let count = paired(between(intervals, f64::from(from), f64::from(to)));
            values.put(bins, &format!("{from}-{to}"), count.times(scale));
        }
    }
}

fn ablations(values: &mut Values, measured: &Measured) {
    let longest = |which: Ablation| {
        let waits = &measured.ablation(which).waits;
        waits.max(waits.count()).map(|e| Estimate::exact(e.value))
    };
    values.put("2-38", "off", longest(Ablation::Off));
    values.put("2-38", "on_6M", longest(Ablation::Reception));
    values.put("2-38", "on_1M", longest(Ablation::SlowReception));
    values.put("2-40", "in_slots", longest(Ablation::Off));
    values.put("2-40", "own_timer", longest(Ablation::OwnBeacons));
    let behind = [Ablation::BeaconsFirst, Ablation::SlowReception].map(longest);
    let longer = behind[0].zip(behind[1]).map(|(first, in_line)| first - in_line);
    values.put("2-40", "behind_probe", longer);
    for (name, which) in [
        ("off", Ablation::Off),
        ("carrier_sense", Ablation::CarrierSense),
        ("virtual_carrier_sense", Ablation::VirtualCarrierSense),
        ("backoff", Ablation::Backoff),
        ("rts", Ablation::Rts),
        ("acks", Ablation::Acks),
    ] {
        values.put("2-39", name, longest(which));
    }
}
