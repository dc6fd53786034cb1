//! All rows of the paper, from a quick run.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use super::super::Verdict;
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
    assert!(reproduction.count(Verdict::Ok) > 20);
}

#[test]
fn claims_are_well_formed() {
    let claims = claims();
    let ids: BTreeSet<&str> = claims.iter().map(|c| c.id.as_str()).collect();
    let expected: BTreeSet<String> = (1..=43).map(|i| format!("2-{i}")).collect();
    assert_eq!(ids, expected.iter().map(String::as_str).collect());
    assert_eq!(claims.len(), 43);
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
            assert!(v.accepted().is_some() && least < most, "{id} {name}");
        }
        for v in &claim.values {
            let judged = v.accepted().is_some();
            assert!(claim.kind.has_row() || !judged, "{id} is not judged");
            let itself = v.paper.and_then(|paper| v.accepts(&Estimate::exact(paper)));
            let kind = v.kind.unwrap_or(claim.kind);
            // where the paper's own arithmetic is wrong, its number is not accepted
            assert!(
                itself != Some(false) || kind == super::super::claims::Kind::Exact,
                "{id} {}",
                v.name
            );
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let tiny = link::run(&Ablation::Reception.conditions(), 3, 4_000);
    assert_eq!(tiny, link::run(&Ablation::Reception.conditions(), 3, 4_000));
    let nothing = PLAN.run(1, &AtomicBool::new(true), &|_| {});
    let reproduction = nothing.judge(PLAN);
    assert!(!reproduction.ok && !reproduction.complete);
    serde_json::to_string(&reproduction).unwrap();
}
