//! Our value for every number of every row.

use super::super::estimate::Estimate;
use super::super::values::Values;
use super::bus::{Found, KINDS, wire_ns};
use super::psm::Seen;
use super::queue::{Fate, Load, WINDOWS_MS};
use super::{Bus, Measured, OTHER_NETWORKS, SEARCH_NS};

/// Clock of the microcontroller, MHz.
const MHZ: f64 = 84.0;

/// All that the measurements allow.
pub fn of(measured: &Measured) -> Values {
    let mut values = Values::default();
    arithmetic(&mut values);
    super::instructions::put(&mut values);
    parsing(&mut values, measured);
    buffers(&mut values, measured);
    filtering(&mut values, measured);
    priorities(&mut values, measured);
    chains(&mut values, measured);
    super::hosts::put(&mut values, measured);
    values
}

fn arithmetic(values: &mut Values) {
    let mut exact = |id: &str, name: &str, value: f64| values.put(id, name, Estimate::exact(value));
    let octets = 16.0 * 2.0 * 2.0;
    exact("4-2", "memory", octets);
    exact("4-2", "share", octets / 96.0);
    // cycles of an access from the slow copy, of which the fast one makes a quarter
    let cycles = 40.0 * MHZ / 1_000.0;
    exact("4-3", "words", 1_000.0 / 4.0 * cycles / MHZ);
    exact("4-4", "tick", 1_000.0 / MHZ);
    let [long, short, commands] = KINDS.map(|(_, lengths)| {
        let count = lengths.clone().count() as f64;
        lengths.map(|octets| wire_ns(octets) as f64).sum::<f64>() / count
    });
    exact("4-17", "long over commands", long / commands);
    exact("4-17", "short over commands", short / commands);
    exact("4-17", "longest", wire_ns(2_048) as f64 / 1e3);
}

/// A share in per cent, with the error of its count.
pub(super) fn percent(count: u64, of: u64) -> Option<Estimate> {
    (of > 0).then(|| Estimate::counted(count).times(100.0 / of as f64))
}

fn parsing(values: &mut Values, measured: &Measured) {
    let lost = |found: &Found, parser: usize| percent(found.lost[parser], found.responses);
    let mean = |found: &Found| Estimate::exact(found.parse_ns / found.transfers as f64 / 1e3);
    if let Some(first) = measured.bus(Bus::First) {
        values.put("4-9", "lost", lost(first, 0));
        values.put("4-9", "delay", mean(first));
    }
    if let Some(search) = measured.bus(Bus::Search) {
        values.put(
            "4-9",
            "behind another, in interrupts of the search",
            lost(search, 0),
        );
        values.put("4-10", "lost", lost(search, 1));
        values.put("4-10", "ours", lost(search, 2));
        values.put("4-10", "delay", mean(search));
        let [bare, framed] = [search.bare, search.framed].map(|[n, ns]| ns / n / 1e3);
        values.put("4-8", "responses", Estimate::exact(bare));
        values.put("4-8", "frames", Estimate::exact(framed));
        values.put("4-8", "ratio", Estimate::exact(framed / bare));
        let share = search.framed[1] / (search.framed_isr_ns);
        values.put("4-8", "share", Estimate::exact(share * 100.0));
        values.put("4-8", "per octet", Estimate::exact(SEARCH_NS));
        let online = search.framed_isr_ns / search.framed[0];
        values.put("4-11", "ratio", Estimate::exact(Load::FITTED.service_ns / online));
    }
}

fn buffers(values: &mut Values, measured: &Measured) {
    let all = [Bus::Static, Bus::Search, Bus::Hybrid].map(|b| measured.bus(b));
    let [Some(fixed), Some(dynamic), Some(hybrid)] = all else {
        return;
    };
    for (name, found) in [("static", fixed), ("dynamic", dynamic), ("hybrid", hybrid)] {
        let mut put =
            |what: &str, value| values.put("4-7", &format!("{name} {what}"), Estimate::exact(value));
        put("delay", found.mean_isr_ns() / 1e3);
        put("memory", found.held / 1e3);
        put("most", found.most as f64 / 1e3);
    }
    let mut ratio = |name: &str, a: f64, b: f64| values.put("4-7", name, Estimate::exact(a / b));
    ratio(
        "hybrid over static, delay",
        hybrid.mean_isr_ns(),
        fixed.mean_isr_ns(),
    );
    ratio(
        "dynamic over hybrid, delay",
        dynamic.mean_isr_ns(),
        hybrid.mean_isr_ns(),
    );
    ratio("hybrid over dynamic, memory", hybrid.held, dynamic.held);
    ratio("static over hybrid, memory", fixed.held, hybrid.held);
}

fn filtering(values: &mut Values, measured: &Measured) {
    let overflow = |fate: &Fate| percent(fate.lost, fate.frames);
    let late = |fate: &Fate, i: usize| match fate.late_share(i)? {
        (share, error) if error > 0.0 => Some(Estimate::with_error(share * 100.0, error * 100.0)),
        _ => percent(fate.late[i], fate.atims),
    };
    let [filtered, others @ ..] = &measured.filtered;
    values.put("4-12", "overflow", overflow(&filtered[1]));
    values.put("4-13", "overflow", overflow(&measured.open));
    let lost = |which| {
        let found: &Found = measured.bus(which)?;
        percent(found.lost[1], found.responses)
    };
    values.put("4-12", "lost", lost(Bus::Filter));
    values.put("4-13", "lost", lost(Bus::Search));
    for (i, ms) in WINDOWS_MS.iter().enumerate() {
        let name = format!("{ms} ms");
        values.put("4-14", &name, late(&filtered[i], i));
        values.put("4-15", &name, late(&measured.open, i));
        for (networks, fates) in OTHER_NETWORKS.iter().zip(others) {
            values.put(
                "4-14",
                &format!("{name}, {networks} networks"),
                late(&fates[i], i),
            );
        }
    }
    let fewer = late(&measured.open, 0)
        .zip(late(&filtered[0], 0))
        .map(|(open, filtered)| Estimate::exact(open.value / filtered.value.max(1e-9)));
    values.put("4-14", "fewer", fewer);
    let own = super::own_stack::fewer(&measured.own);
    values.put("4-14", "fewer, own stack", own.map(Estimate::exact));
}

fn priorities(values: &mut Values, measured: &Measured) {
    for (id, which) in [("4-19", Bus::High), ("4-20", Bus::Search)] {
        if let Some(found) = measured.bus(which) {
            values.put(id, "grouped", percent(found.grouped, found.transfers));
            values.put(id, "timeouts", percent(found.completions_lost, found.commands));
        }
    }
    if let Some(found) = measured.bus(Bus::Search) {
        let lost = percent(found.completions_lost, found.commands);
        values.put("4-18", "lost", lost.map(|e| e.times(0.01)));
    }
}

fn chains(values: &mut Values, measured: &Measured) {
    let mean = |all: &[f64]| {
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        let square = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (all.len() > 1).then(|| Estimate::with_error(mean, (square / n).sqrt()))
    };
    let [awake, saving, multi_hop] = &measured.chains;
    let arrived = |seen: &Seen| Estimate::exact(seen.intervals.len() as f64 / seen.messages as f64 * 100.0);
    if let Some(intervals) = mean(&multi_hop.intervals) {
        values.put("4-23", "multi-hop", intervals);
        values.put("4-23", "multi-hop, doze", Estimate::exact(multi_hop.doze * 100.0));
        values.put("4-23", "multi-hop, arrived", arrived(multi_hop));
    }
    if let Some((standard, always)) = mean(&saving.intervals).zip(mean(&awake.intervals)) {
        values.put("4-23", "standard", standard);
        values.put("4-23", "awake", always);
        values.put("4-23", "doze", Estimate::exact(saving.doze * 100.0));
        values.put("4-23", "arrived", arrived(saving));
        values.put(
            "4-23",
            "doze gained",
            Estimate::exact((multi_hop.doze - saving.doze) * 100.0),
        );
        values.put("4-24", "delay", Estimate::exact(standard.value / always.value));
        values.put("4-24", "energy", Estimate::exact(saving.joules / awake.joules));
    }
    if let Some(energy) = super::ieee802154::energy(saving) {
        let mut put = |name: &str, value| values.put("4-24", name, Estimate::exact(value));
        put("802.15.4", energy.always_mj / energy.ours_mj);
        put("ours, of an octet", energy.ours_mj);
        put("802.15.4, of an octet", energy.always_mj);
        put("802.15.4 with superframes, of an octet", energy.superframes_mj);
        put("802.15.4, a hop alone", energy.hop);
    }
}
