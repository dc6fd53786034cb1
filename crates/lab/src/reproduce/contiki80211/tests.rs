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

/// What is not right is explained, or at the edge.
#[test]
fn every_row_is_right_or_explained_or_at_the_edge_as_the_page_says() {
    let reproduction = measured().judge(PLAN);
    eprintln!("{reproduction}");
    let numbers = || {
        let all = reproduction.rows.iter();
        all.flat_map(|r| r.numbers.iter().map(|n| (r.claim.id.as_str(), n)))
    };
    let with = |verdict| {
        let of = numbers().filter(move |(_, n)| n.verdict == verdict);
        of.map(|(id, n)| format!("{id} {}", n.name)).collect::<Vec<_>>()
    };
    // of the last the error of a quick run reaches the tolerance, and that of a full one does not
    assert_eq!(with(Verdict::Edge), ["4-14 10 ms", "4-15 40 ms"]);
    assert_eq!(with(Verdict::Wrong), [""; 0]);
    assert_eq!(with(Verdict::Missing), [""; 0]);
    assert_eq!(
        with(Verdict::Explained),
        [
            "4-7 dynamic over hybrid, own code",
            "4-14 fewer, own stack",
            "4-19 grouped",
            "4-20 timeouts"
        ]
    );
    let tallies = reproduction.verdicts;
    assert!(tallies.predicted.within < tallies.predicted.told() && reproduction.ok);
}

/// A reason holds for what was seen, and not for any miss: windows are narrow, begin above nothing, and end where it is no miss.
#[test]
fn explanations_have_bounds() {
    for claim in claims() {
        for (name, why) in &claim.explained {
            let [least, most] = why.between;
            assert!(0.0 < least && least < most, "{} {name}", claim.id);
            assert!(most < 5.0 * least, "{} {name}: {least} to {most}", claim.id);
        }
    }
}

#[test]
fn claims_are_well_formed() {
    let claims = claims();
    let ids: BTreeSet<&str> = claims.iter().map(|c| c.id.as_str()).collect();
    let expected: BTreeSet<String> = (1..=24).map(|i| format!("4-{i}")).collect();
    assert_eq!(ids, expected.iter().map(String::as_str).collect());
    assert_eq!(claims.len(), 24);
    for claim in &claims {
        let id = &claim.id;
        let has = |name: &String| claim.values.iter().any(|v| v.name == *name);
        assert!(
            claim.explained.keys().all(has),
            "{id} explains what it does not state"
        );
        assert!(
            !claim.values.is_empty() || !claim.note.is_empty(),
            "{id} says nothing"
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

#[test]
fn the_number_of_threads_changes_nothing() {
    let once = || Bus::Search.run(100, 3);
    assert_eq!(once(), once());
    let nothing = PLAN.run(1, &AtomicBool::new(true), &|_| {});
    let reproduction = nothing.judge(PLAN);
    assert!(!reproduction.ok && !reproduction.complete);
    let exact = reproduction.rows.iter().find(|r| r.claim.id == "4-2").unwrap();
    assert_eq!(exact.verdict(), Verdict::Ok);
    // what follows from lengths alone
    let plots: Vec<_> = nothing.figures().into_iter().map(|(file, _)| file).collect();
    assert_eq!(plots, ["fig10-completions.svg"]);
    serde_json::to_string(&reproduction).unwrap();
}

/// Each figure of the paper on what was measured there is drawn, once.
#[test]
fn figures_7_to_10_are_drawn() {
    let all: Vec<_> = measured().figures();
    for figure in [
        "fig7-memory",
        "fig7-delay",
        "fig8-parsing",
        "fig9-handling",
        "fig10-completions",
        "late-atims",
    ] {
        let of = all.iter().filter(|(file, _)| *file == format!("{figure}.svg"));
        let drawn: Vec<_> = of.map(|(_, plot)| plot.standalone()).collect();
        assert!(matches!(&drawn[..], [svg] if svg.contains("<svg")), "{figure}");
    }
}

/// Without others that hold the processor and without a parser that takes time, nothing is grouped.
#[test]
fn a_fast_host_groups_nothing() {
    let setting = Setting {
        load: Load::FITTED,
        networks: 0,
        others: None,
        follows: 0.0,
        parser: Parser::First,
        policy: Policy::Static,
        filter: Some(0),
    };
    let found = bus::run(&setting, Dynamic::<32_768>::default(), 200, 1);
    assert_eq!(found.responses, 200 * 9);
    assert!(found.grouped * 100 < found.transfers, "{found:?}");
    assert_eq!(found.lost[1..], [0, 0]);
}
