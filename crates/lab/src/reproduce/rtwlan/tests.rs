//! All rows of the paper, from a quick run.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use super::super::Verdict;
use super::super::claims::Kind;
use super::super::estimate::Estimate;
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

#[test]
fn the_number_of_threads_changes_nothing() {
    let one = bed::run(&Experiment::Three.conditions(OFFICE), 3, 50);
    assert_eq!(one, bed::run(&Experiment::Three.conditions(OFFICE), 3, 50));
    let nothing = PLAN.run(1, &AtomicBool::new(true), &|_| {});
    let reproduction = nothing.judge(PLAN);
    assert!(!reproduction.ok && !reproduction.complete);
    serde_json::to_string(&reproduction).unwrap();
}
