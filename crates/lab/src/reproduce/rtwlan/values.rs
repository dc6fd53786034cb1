//! Our value for every number of every row.

use frame::{Phy, airtime, ppdu_us};

use super::super::claims::Claim;
use super::super::estimate::Estimate;
use super::super::values::Values;
use super::acquisition::{Acquired, Contention};
use super::bed::{Found, Host, rounds};
use super::path::{self, BOUND_US, OCTETS, RATE};
use super::{Experiment, Measured};
use crate::stats::{Running, Sorted};

/// All that the measurements allow. `claims` gives the numbers of the paper to the rows that check its arithmetic.
pub fn of(measured: &Measured, claims: &[Claim]) -> Values {
    let mut values = Values::default();
    bounds(&mut values);
    sums(&mut values, claims);
    benchmark(&mut values, measured.of(Experiment::Benchmark));
    rates(&mut values, measured);
    three(&mut values, measured);
    slots(&mut values, measured.of(Experiment::ThreeTbmac));
    acquisitions(&mut values, &measured.acquired);
    values
}

/// Packets of a run of two hosts.
const RUN: usize = 1_000;

/// Arithmetic mean of samples in ns, us.
fn mean(ns: &[u64]) -> Option<Estimate> {
    let moments: Running = ns.iter().map(|ns| *ns as f64 / 1e3).collect();
    let error = moments.sd()? / (ns.len() as f64).sqrt();
    Some(Estimate::with_error(moments.mean()?, error))
}

/// The same of samples that depend on each other within a run of a [thousand](RUN): its error is that of the means of runs.
fn mean_of_runs(ns: &[u64]) -> Option<Estimate> {
    let runs: Running = ns.chunks(RUN).filter_map(|run| Some(mean(run)?.value)).collect();
    let error = runs.sd()? / (runs.count() as f64).sqrt();
    Some(Estimate::with_error(mean(ns)?.value, error))
}

fn sd(ns: &[u64]) -> Option<f64> {
    ns.iter().map(|ns| *ns as f64 / 1e3).collect::<Running>().sd()
}

fn longest(ns: &[u64]) -> Option<f64> {
    ns.iter().max().map(|ns| *ns as f64 / 1e3)
}

/// Percent of samples for which `is` (of us) holds.
fn percent(ns: &[u64], is: impl Fn(f64) -> bool) -> Option<Estimate> {
    let some = ns.iter().filter(|ns| is(**ns as f64 / 1e3)).count();
    (!ns.is_empty()).then(|| Estimate::counted(some as u64).times(100.0 / ns.len() as f64))
}

/// Percent of packets that this host's answer to has not come.
fn dropped(found: &Found, host: usize) -> Option<Estimate> {
    let host = found.hosts.get(host)?;
    let lost = found.packets - host.round_trip.len() as u64;
    Some(Estimate::counted(lost).times(100.0 / found.packets as f64))
}

/// Section 3.1.3: the times of the standard.
fn bounds(values: &mut Values) {
    let mut exact = |id: &str, name: &str, us: u32| values.put(id, name, Estimate::exact(us.into()));
    let phy = Phy::B;
    let difs = phy.difs_us();
    exact("3-3", "plcp", airtime::preamble_us(RATE));
    exact("3-4", "data", ppdu_us(RATE, OCTETS as u32, phy.band));
    // as the paper reckons: 74 octets are the whole MPDU
    let least = ppdu_us(RATE, 74, phy.band) + difs;
    let backoff = 31 * phy.slot_us;
    exact("3-5", "min", least);
    exact("3-5", "backoff", backoff);
    exact("3-5", "max", least + backoff);
    exact(
        "3-13",
        "mean_with_backoff",
        ppdu_us(RATE, OCTETS as u32, phy.band) + difs + backoff / 2,
    );
}

/// Rows that follow from other numbers of the paper.
fn sums(values: &mut Values, claims: &[Claim]) {
    let paper = |id: &str, name: &str| {
        let claim = claims.iter().find(|c| c.id == id);
        let value = claim.and_then(|c| c.values.iter().find(|v| v.name == name));
        value.and_then(|v| v.paper).unwrap_or(f64::NAN)
    };
    let mut exact = |id: &str, name: &str, value: f64| values.put(id, name, Estimate::exact(value));
    let accumulated = paper("3-6", "mean") + paper("3-8", "mean");
    exact("3-12", "sum", accumulated + paper("3-9", "mean"));
    exact(
        "3-19",
        "deviation",
        paper("3-17", "queued_h") - paper("3-6", "mean"),
    );
    exact("3-21", "sum", accumulated);
    let first = paper("3-5", "max") + accumulated;
    exact("3-22", "total", first);
    exact("3-22", "return", 2.0 * first);
    for (parts, totals) in [("3-15", "3-16"), ("3-17", "3-18")] {
        let queued = if parts == "3-15" { "3-14" } else { "3-17" };
        for place in ["bi", "h", "w"] {
            let part = |id: &str, name: &str| paper(id, &format!("{name}_{place}"));
            let total = part(queued, "queued") + part(parts, "alloc") + part(parts, "ev_tx");
            exact(totals, &format!("total_{place}"), total);
            let way = 2.0 * (part(totals, "total") + path::receive_us());
            exact(totals, &format!("rtt_sum_{place}"), way);
        }
    }
    let ev_tx = ["bi", "h", "w"].map(|place| paper("3-23", &format!("ev_tx_{place}")));
    exact("3-25", "longer", ev_tx[0] - paper("3-9", "mean"));
    exact("3-25", "worst", ev_tx[2] - paper("3-9", "mean"));
    let totals = ["bi", "h", "w"].map(|place| paper("3-23", &format!("total_{place}")));
    exact("3-25", "total", totals.iter().sum::<f64>() / 3.0);
    exact(
        "3-26",
        "within",
        paper("3-23", "queued_bi") - paper("3-6", "mean"),
    );
}

fn benchmark(values: &mut Values, found: &Found) {
    let [originator, answering] = &found.hosts[..] else {
        return;
    };
    let Host {
        software,
        firmware,
        communication,
        total,
        ..
    } = originator;
    values.put("3-6", "mean", mean(software));
    let off = |middle: f64, by: f64| move |us: f64| (us - middle).abs() > by;
    values.put("3-7", "share", percent(software, off(path::SOFTWARE_US, 30.0)));
    values.put("3-8", "mean", mean(firmware));
    values.put(
        "3-8",
        "share",
        percent(firmware, |us| us > path::FIRMWARE_US + 50.0),
    );
    values.put("3-9", "mean", mean(communication));
    values.put("3-10", "share", percent(communication, |us| us > BOUND_US));
    for (name, ns) in [
        ("software", software),
        ("firmware", firmware),
        ("communication", communication),
    ] {
        let sorted = Sorted::new(ns.clone());
        for (quantile, p) in [("p50", 0.5), ("p99", 0.99)] {
            let us = sorted.quantile(p).map(|ns| Estimate::exact(ns as f64 / 1e3));
            values.put("3-35", &format!("{name}_{quantile}"), us);
        }
    }
    let not = dropped(found, 1);
    values.put("3-11", "delivered", not.map(|e| Estimate::exact(100.0) - e));
    values.put("3-11", "rtt", mean(&answering.round_trip));
    let middle = mean(total);
    values.put("3-12", "mean", middle);
    let share = middle.and_then(|m| percent(total, off(m.value, 300.0)));
    values.put("3-12", "share", share);
    values.put("3-13", "share", percent(&originator.waiting, |us| us > 0.0));
}

/// Tables 1 and 2. The open space and the home are nobody else on the channel; the office is others that delay 2.5 % at 3 ms,
/// and the same others at 5 ms.
fn rates(values: &mut Values, measured: &Measured) {
    let [every5, office5, every3, office, every1500] = [
        Experiment::Every5,
        Experiment::Office5,
        Experiment::Every3,
        Experiment::Office,
        Experiment::Every1500,
    ]
    .map(|e| measured.of(e));
    let of = |found: &Found, which: fn(&Host) -> &Vec<u64>| mean(which(found.hosts.first()?));
    for ([queued, parts, trips], free, others) in [
        (["3-14", "3-15", "3-16"], every5, office5),
        (["3-17", "3-17", "3-18"], every3, office),
    ] {
        for place in ["bi", "h", "w"] {
            let found = if place == "w" { others } else { free };
            values.put(queued, &format!("queued_{place}"), of(found, |h| &h.software));
            values.put(parts, &format!("alloc_{place}"), of(found, |h| &h.firmware));
            values.put(parts, &format!("ev_tx_{place}"), of(found, |h| &h.communication));
            let answering = found.hosts.get(1);
            values.put(
                trips,
                &format!("rtt_{place}"),
                answering.and_then(|h| mean(&h.round_trip)),
            );
        }
        let longer = of(others, |h| &h.communication).zip(of(free, |h| &h.communication));
        values.put(parts, "w_over_bi", longer.map(|(with, without)| with - without));
    }
    if let Some(host) = office.hosts.first() {
        values.put("3-20", "share", percent(&host.communication, |us| us > BOUND_US));
        // the longest of each thousand, as the paper has it
        let each: Vec<u64> = host
            .communication
            .chunks(RUN)
            .filter_map(|c| c.iter().copied().max())
            .collect();
        values.put("3-20", "worst", mean(&each));
    }
    let longer = of(office, |h| &h.communication).zip(of(every3, |h| &h.communication));
    values.put("3-20", "deviation", longer.map(|(with, without)| with - without));
    for (name, found) in [
        ("every_5", every5),
        ("every_3", every3),
        ("every_1500", every1500),
    ] {
        values.put("3-27", name, dropped(found, 1));
    }
    let often = every1500
        .hosts
        .first()
        .and_then(|h| mean_of_runs(&h.communication));
    let longer = often.zip(of(every5, |h| &h.communication));
    values.put("3-27", "longer", longer.map(|(often, seldom)| often - seldom));
    let waited = every1500
        .hosts
        .first()
        .and_then(|h| percent(&h.waiting, |us| us > 0.0));
    values.put("3-27", "waited", waited);
}

/// Table 3, and what it rests on.
fn three(values: &mut Values, measured: &Measured) {
    let found = measured.of(Experiment::Three);
    for (host, name) in [(1, "a"), (2, "b")] {
        let Some(h) = found.hosts.get(host) else { return };
        let with = |what: &str| format!("{what}_{name}");
        values.put("3-28", &with("queued"), mean(&h.software));
        values.put("3-29", &with("ev_tx"), mean(&h.communication));
        values.put("3-29", &with("total"), mean(&h.total));
        let rest: Vec<u64> = h
            .firmware
            .iter()
            .zip(&h.communication)
            .map(|(f, c)| f + c)
            .collect();
        values.put("3-29", &with("alloc_and_ev_tx"), mean(&rest));
        values.put("3-30", &with("rtt"), mean(&h.round_trip));
        values.put("3-31", &with("dropped"), dropped(found, host));
        for (what, experiment) in [
            ("with_backoff", Experiment::ThreeBackoff),
            ("without_capture", Experiment::ThreeNoCapture),
            ("wide_firmware", Experiment::ThreeWide),
        ] {
            values.put("3-31", &with(what), dropped(measured.of(experiment), host));
        }
    }
    let trip = |host: usize| mean(&found.hosts.get(host)?.round_trip);
    values.put("3-30", "a_after_b", trip(1).zip(trip(2)).map(|(a, b)| a - b));
    let either = dropped(found, 1).zip(dropped(found, 2)).map(|(a, b)| a + b);
    values.put("3-31", "either", either);
    let spread = |e: Experiment, host: usize| sd(&measured.of(e).hosts.get(host)?.communication);
    let two = spread(Experiment::Every5, 1);
    let three = spread(Experiment::Three, 2);
    values.put("3-32", "sd_three", three.map(Estimate::exact));
    values.put("3-32", "sd_two", two.map(Estimate::exact));
}

/// The same hosts in slots of TBMAC.
fn slots(values: &mut Values, found: &Found) {
    if found.packets == 0 {
        return;
    }
    let rounds = rounds();
    let us = |d: radio::Duration| d.as_ns() as f64 / 1e3;
    // what comes when the host has just woken up for its slot waits for the way to the air and a round; then the slot, and the
    // way of the confirm
    let wait = us(rounds.lead()) + us(rounds.length());
    let bound = wait + us(rounds.slot()) + path::receive_us();
    let access = found
        .hosts
        .iter()
        .filter_map(|h| longest(&h.access))
        .fold(0.0, f64::max);
    values.put("3-33", "round", Estimate::exact(us(rounds.length())));
    values.put("3-33", "longest_access", Estimate::exact(access));
    values.put("3-33", "of_bound", Estimate::exact(access / bound));
    let waits = found
        .hosts
        .iter()
        .filter_map(|h| longest(&h.waiting))
        .fold(0.0, f64::max);
    values.put("3-34", "longest_wait", Estimate::exact(waits));
    values.put("3-34", "release_jitter", Estimate::exact(us(rounds.guard())));
    values.put("3-34", "dropped_a", dropped(found, 1));
    values.put("3-34", "dropped_b", dropped(found, 2));
    let trips = found
        .hosts
        .iter()
        .filter_map(|h| longest(&h.round_trip))
        .fold(0.0, f64::max);
    values.put("3-34", "longest_rtt", Estimate::exact(trips));
}

/// How soon hosts come to a slot of TBMAC, and what was computed.
fn acquisitions(values: &mut Values, acquired: &[Acquired; Contention::ALL.len()]) {
    for (contention, found) in Contention::ALL.into_iter().zip(acquired) {
        let rounds = found.rounds_until(0.001);
        let computed = contention.rounds_until(0.001);
        let Contention { hosts, asks } = contention;
        values.put("3-33", &format!("rounds_{hosts}_in_{asks}"), rounds);
        let share = rounds.map(|r| r.times(1.0 / computed));
        values.put("3-33", &format!("of_computed_{hosts}_in_{asks}"), share);
    }
    let undue: u64 = acquired.iter().map(|a| a.undue).sum();
    let any = acquired.iter().any(|a| a.tries() > 0);
    values.put("3-33", "undue", any.then(|| Estimate::exact(undue as f64)));
}
