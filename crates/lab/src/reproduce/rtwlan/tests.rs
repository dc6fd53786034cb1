//! All rows of the paper, from a quick run.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use super::super::claims::Kind;
use super::super::estimate::Estimate;
use super::super::{Row, Verdict};
use super::bed::Host;
use super::*;

const PLAN: Plan = Plan { seed: 5, quick: true };

fn measured() -> &'static Measured {
    static MEASURED: OnceLock<Measured> = OnceLock::new();
    MEASURED.get_or_init(|| PLAN.run(2, &AtomicBool::new(false), &|_| {}))
}

#[test]
fn every_row_is_right_or_explained() {
    let reproduction = measured().judge(PLAN);
    eprintln!("{reproduction}");
    let wrong: Vec<_> = reproduction
        .rows
        .iter()
        .filter(|r| !r.verdict().is_ok())
        .map(|r| &r.claim.id)
        .collect();
    assert!(reproduction.ok && wrong.is_empty(), "{wrong:?}");
    assert!(reproduction.count(Verdict::Ok) > 15);
}

/// What the paper was written for: neither of two answers at once is lost, and nobody waits for the medium.
#[test]
fn slots_take_away_the_contention_and_its_losses() {
    let lost = |experiment| {
        let found = measured().of(experiment);
        let got = found.hosts[2].round_trip.len() as f64;
        1.0 - got / found.packets as f64
    };
    assert!(lost(Experiment::Three) > 0.5 && lost(Experiment::ThreeBackoff) < 0.15);
    assert_eq!(lost(Experiment::ThreeTbmac), 0.0);
    let hosts = &measured().of(Experiment::ThreeTbmac).hosts;
    assert!(hosts.iter().all(|h| h.waiting.iter().all(|ns| *ns == 0)));
}

#[test]
fn figures_are_there() {
    let files: Vec<_> = measured().figures().iter().map(|(file, _)| *file).collect();
    let expected = [
        "fig8-software.svg",
        "fig9-firmware.svg",
        "fig10-communication.svg",
        "three-hosts.svg",
    ];
    assert_eq!(files, expected);
}

#[test]
fn claims_are_well_formed() {
    let claims = claims();
    let ids: BTreeSet<&str> = claims.iter().map(|c| c.id.as_str()).collect();
    let expected: BTreeSet<String> = (1..=35).map(|i| format!("3-{i}")).collect();
    assert_eq!(ids, expected.iter().map(String::as_str).collect());
    assert_eq!(claims.len(), 35);
    for claim in &claims {
        let id = &claim.id;
        assert!(
            !claim.values.is_empty() || !claim.note.is_empty(),
            "{id} says nothing"
        );
        for (name, why) in &claim.explained {
            let v = claim
                .values
                .iter()
                .find(|v| v.name == *name)
                .expect("it states it");
            let [least, most] = why.between;
            assert!(v.accepted().is_some() && least <= most, "{id} {name}");
        }
        for v in &claim.values {
            let judged = v.accepted().is_some();
            assert!(claim.kind.has_row() || !judged, "{id} is not judged");
            let itself = v.paper.and_then(|paper| v.accepts(&Estimate::exact(paper)));
            let kind = v.kind.unwrap_or(claim.kind);
            // where the paper's own arithmetic is wrong, its number is not accepted
            assert!(itself != Some(false) || kind == Kind::Exact, "{id} {}", v.name);
        }
    }
}

/// Measurements in which every experiment, host and quantity has samples of its own.
fn marked() -> Measured {
    let mut measured = Measured::default();
    for (e, found) in measured.experiments.iter_mut().enumerate() {
        let hosts = if Experiment::ALL[e].is_three() { 3 } else { 2 };
        found.packets = 1_000 + e as u64;
        found.hosts = (0..hosts)
            .map(|host| {
                let samples = |which: u64| {
                    let ns = ((e as u64 * 3 + host) * 7 + which + 1) * 10_007;
                    vec![ns, ns + 1_000, ns + 5_000]
                };
                Host {
                    software: samples(0),
                    firmware: samples(1),
                    communication: samples(2),
                    waiting: samples(3),
                    total: samples(4),
                    access: samples(5),
                    round_trip: samples(6),
                }
            })
            .collect();
    }
    measured
}

/// Two rows say the same of the same samples only if one of them names the other; else it looks as if more had been measured.
#[test]
fn rows_share_no_samples_unless_they_say_so() {
    let rows = marked().judge(PLAN).rows;
    let sampled = |row: &Row| -> Vec<(String, Estimate)> {
        let numbers = row.numbers.iter().filter_map(|n| Some((n.name.clone(), n.ours?)));
        numbers.filter(|(_, ours)| ours.low < ours.high).collect()
    };
    let mut met = 0;
    for (i, a) in rows.iter().enumerate() {
        for b in &rows[i + 1..] {
            for (x, ours) in sampled(a) {
                for (y, theirs) in sampled(b) {
                    met += 1;
                    let share =
                        (ours.value - theirs.value).abs() < 1e-6 && (ours.high - theirs.high).abs() < 1e-6;
                    let [a_id, b_id] = [a, b].map(|r| r.claim.id.as_str());
                    let says = a.claim.note.contains(b_id) || b.claim.note.contains(a_id);
                    // none and all look the same, whatever was counted
                    let counted = [0.0, 100.0].contains(&ours.value);
                    assert!(!share || says || counted, "{a_id} {x} and {b_id} {y}");
                }
            }
        }
    }
    assert!(met > 500, "{met}");
}

/// What is fitted at 3 ms is only taken over at 5 ms.
#[test]
fn the_office_at_5_ms_has_the_others_of_3_ms_and_packets_of_its_own() {
    let [three, five] = [Experiment::Office, Experiment::Office5].map(|e| e.conditions(0.01));
    assert_eq!((three.period_ns, five.period_ns), (3_000_000, 5_000_000));
    assert_eq!(three.delayed, five.delayed);
    let late = |e: Experiment| {
        let all = &measured().of(e).hosts[0].communication;
        all.iter().filter(|ns| **ns as f64 / 1e3 > path::BOUND_US).count() as f64 / all.len() as f64
    };
    // answers to late packets meet no other packet
    assert!(late(Experiment::Office5) < late(Experiment::Office));
}

/// The round trips are those that were simulated: not what the paper's own parts add up to.
#[test]
fn round_trips_are_simulated() {
    let reproduction = measured().judge(PLAN);
    for (id, experiment) in [("3-16", Experiment::Every5), ("3-18", Experiment::Every3)] {
        let row = reproduction.rows.iter().find(|r| r.claim.id == id).unwrap();
        let number = |name: &str| row.numbers.iter().find(|n| n.name == name).unwrap();
        for place in ["bi", "h", "w"] {
            assert_eq!(number(&format!("rtt_{place}")).kind, Kind::Emergent, "{id}");
            assert_eq!(number(&format!("rtt_sum_{place}")).kind, Kind::Exact, "{id}");
        }
        let trips = &measured().of(experiment).hosts[1].round_trip;
        let mean = trips.iter().map(|ns| *ns as f64 / 1e3).sum::<f64>() / trips.len() as f64;
        let ours = number("rtt_bi").ours.unwrap();
        assert!(
            (ours.value - mean).abs() < 1e-6 && ours.low < ours.high,
            "{id} {ours:?}"
        );
    }
}

/// More is asked for than the air carries, so that how long the originator's packets wait is a matter of how long one looks.
#[test]
fn at_1500_us_the_wait_grows_with_the_run() {
    let wait = |packets: u64| {
        let found = bed::run(&Experiment::Every1500.conditions(OFFICE), 7, packets);
        let all = &found.hosts[0].communication;
        all.iter().sum::<u64>() as f64 / 1e3 / all.len() as f64
    };
    let (short, long) = (wait(500), wait(4_000));
    assert!(long > 2.0 * short, "{short} {long}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let one = bed::run(&Experiment::Three.conditions(OFFICE), 3, 50);
    assert_eq!(one, bed::run(&Experiment::Three.conditions(OFFICE), 3, 50));
    let nothing = PLAN.run(1, &AtomicBool::new(true), &|_| {});
    let reproduction = nothing.judge(PLAN);
    assert!(!reproduction.ok && !reproduction.complete);
    serde_json::to_string(&reproduction).unwrap();
}
