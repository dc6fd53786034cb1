//! A few short runs, and the form of the claims.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::reproduce::claims::Kind as Form;
use crate::reproduce::estimate::Estimate;
use crate::reproduce::rows::Verdict;

const PLAN: Plan = Plan { seed: 7, quick: true };

fn few(jobs: usize) -> Measured {
    let cases = KINDS.map(|kind| Case {
        bed: Bed::A(LOSS),
        hops: 1,
        flows: 2,
        kind,
    });
    PLAN.run_some(&cases, &[], jobs, &AtomicBool::new(false), &|_| {})
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let one = few(1);
    assert!(one.complete && one.frames > 10_000 && one.seeds() == PLAN.seeds());
    assert_eq!(one, few(3));
    let judged = judge(&PLAN, &one);
    let row = judged.rows.iter().find(|r| r.claim.id == "1-31").unwrap();
    assert!(
        row.numbers[..3]
            .iter()
            .all(|n| n.ours.is_some_and(|o| o.is_bounded()))
    );
    let missing = judged.rows.iter().find(|r| r.claim.id == "1-20").unwrap();
    assert_eq!(missing.numbers[0].verdict, Verdict::Missing, "was not run");
}

#[test]
fn stopped_before_it_began() {
    let measured = PLAN.run(1, &AtomicBool::new(true), &|_| {});
    assert!(!measured.complete && measured.seeds() == 0);
    // what needs no run is there all the same
    let judged = judge(&PLAN, &measured);
    for row in judged.rows.iter().filter(|r| r.claim.kind == Form::Exact) {
        assert_eq!(row.verdict(), Verdict::Ok, "{:?}", row.numbers);
    }
    let verdict = |id: &str| judged.rows.iter().find(|r| r.claim.id == id).unwrap().verdict();
    assert_eq!(
        [
            verdict("1-53"),
            verdict("1-54"),
            verdict("ours-1"),
            verdict("ours-3")
        ],
        [
            Verdict::Ok,
            Verdict::NotJudged,
            Verdict::Missing,
            Verdict::Missing
        ]
    );
}

#[test]
fn sizes() {
    let full = Plan { quick: false, ..PLAN };
    assert_eq!(
        (full.cases().len(), full.scenes().len()),
        ((5 * 3 * 6 + 3 * 5) * 6, (6 + 6 + 1) * 6 * 2 + 2 + 1)
    );
    assert_eq!(
        (PLAN.cases().len(), PLAN.scenes().len(), PLAN.runs()),
        (270, 51, 1605)
    );
}

/// The table of the book on which the loss of the links is read off: one flow over A by tries and loss.
#[test]
#[ignore = "a measurement of some minutes: cargo test -p sdmac-lab --lib calibration -- --ignored --nocapture"]
fn calibration() {
    const PER_MILLE: [(u8, u16); 6] = [(1, 0), (1, 50), (4, 50), (6, 185), (7, 50), (7, CALIBRATED_LOSS)];
    let plan = Plan {
        quick: false,
        seed: 2018,
    };
    for (tries, loss) in PER_MILLE {
        let mean = |kind, hops: u32| {
            let case = Case {
                bed: Bed::A(loss),
                hops,
                flows: 1,
                kind,
            };
            let runs = 0..plan.seeds();
            let kbps = runs.clone().map(|n| {
                let seed = sim::rng::mix3(plan.seed, u64::from(hops) << 8 | 1, n);
                let chain = crate::mesh::chain::Chain {
                    tries,
                    ..case.chain(plan.octets(), 120)
                };
                chain.run(seed, &AtomicBool::new(false)).0[0].goodput_kbps()
            });
            kbps.sum::<f64>() / runs.count() as f64
        };
        let means: Vec<[f64; 4]> = (1..=6)
            .map(|hops| [Kind::Tahoe, Kind::Default, Kind::Aggressive, Kind::Adaptive].map(|k| mean(k, hops)))
            .collect();
        let gain = |of: usize, over: usize| {
            let ratios = means.iter().map(|m| m[of] / m[over]);
            100.0 * (ratios.sum::<f64>() / means.len() as f64 - 1.0)
        };
        let gains = [gain(1, 0), gain(2, 1), gain(3, 1), gain(3, 0)];
        println!("{tries} tries, loss {loss} of 1000: {gains:.0?}");
        let is_calibrated = tries == DEFAULT_TRIES && loss == CALIBRATED_LOSS;
        assert!(!is_calibrated || (12.0..32.0).contains(&gains[0]), "{gains:?}");
    }
}

/// Each has an id of its own, says something, is not judged where it must not be, and is satisfied by the thesis.
#[test]
fn every_claim_is_well_formed() {
    let of_thesis = (1..=54).map(|n| format!("1-{n}"));
    let of_us = (1..=4).map(|n| format!("ours-{n}"));
    let expected: BTreeSet<String> = of_thesis.chain(of_us).collect();
    let claims = [atp_claims(), aims()].concat();
    let ids: BTreeSet<String> = claims.iter().map(|c| c.id.clone()).collect();
    assert!(ids.len() == claims.len() && ids == expected, "{ids:?}");
    let ours = |c: &Claim| c.kind == Form::Ours;
    assert!(claims.iter().all(|c| ours(c) == c.id.starts_with("ours-")));
    for claim in &claims {
        let id = &claim.id;
        assert!(
            !claim.values.is_empty() || !claim.note.is_empty(),
            "{id} says nothing"
        );
        let has = |name: &String| claim.values.iter().any(|v| v.name == *name);
        assert!(
            claim.explained.keys().all(has),
            "{id} explains what it does not state"
        );
        for v in &claim.values {
            assert!(
                claim.kind.has_row() || v.accepted().is_none(),
                "{id} is not judged"
            );
            let itself = v.paper.and_then(|p| v.accepts(&Estimate::exact(p)));
            assert_ne!(itself, Some(false), "{id} {}", v.name);
        }
    }
}
