//! The quick reproduction with a fixed seed: what CI runs on every change.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use serde_json::Value as Json;

use super::*;

const PLAN: Plan = Plan {
    seed: 2018,
    quick: true,
};

/// One run for all tests.
fn measured() -> &'static Measured {
    static MEASURED: OnceLock<Measured> = OnceLock::new();
    MEASURED.get_or_init(|| PLAN.run(0, &AtomicBool::new(false), &|_| {}))
}

fn reproduction() -> Reproduction {
    Reproduction::new(PLAN, measured())
}

#[test]
fn all_rows_are_within_tolerance_or_explained() {
    let reproduction = reproduction();
    println!("{reproduction}");
    let wrong: Vec<_> = reproduction
        .rows
        .iter()
        .filter(|r| !r.verdict().is_ok())
        .collect();
    assert!(
        wrong.is_empty(),
        "{:?}",
        wrong.iter().map(|r| &r.claim.id).collect::<Vec<_>>()
    );
    assert!(reproduction.ok && reproduction.complete);
}

/// The file is read here without our own types: what is not setup or hardware must have a row, and each of its
/// values with a tolerance must have a value of ours.
#[test]
fn no_claim_is_forgotten() {
    let file: toml::Table = include_str!("../../../../papers/sdmac/claims.toml")
        .parse()
        .unwrap();
    let reproduction = reproduction();
    let mut expected = BTreeSet::new();
    for claim in file["claim"].as_array().unwrap() {
        let (id, kind) = (claim["id"].as_str().unwrap(), claim["kind"].as_str().unwrap());
        if ["setup", "hardware"].contains(&kind) {
            continue;
        }
        expected.insert(id);
        let row = reproduction.rows.iter().find(|r| r.claim.id == id);
        let row = row.unwrap_or_else(|| panic!("{id} has no row"));
        let values = claim.get("values").and_then(|v| v.as_array());
        for value in values.into_iter().flatten() {
            let tolerance = ["within", "within_percent", "at_least", "at_most"];
            if tolerance.iter().any(|t| value.get(t).is_some()) {
                let name = value["name"].as_str().unwrap();
                let number = row.numbers.iter().find(|n| n.name == name).unwrap();
                assert!(number.ours.is_some(), "{id} {name} has no value of ours");
                assert!(!number.tolerance.is_empty());
            }
        }
    }
    let rows: BTreeSet<&str> = reproduction.rows.iter().map(|r| r.claim.id.as_str()).collect();
    assert_eq!(rows, expected);
    assert_eq!(expected.len(), 65);
}

/// Numbered in a row; each says something, is not judged where it must not be, and is satisfied by what the paper says.
#[test]
fn every_claim_is_well_formed() {
    let claims = sdmac_claims();
    let numbers: Vec<u32> = claims
        .iter()
        .map(|claim| claim.id.strip_prefix("0-").unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers, (1..=75).collect::<Vec<_>>());
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
            assert!(v.unit.as_ref().is_none_or(|unit| !unit.is_empty()), "{id}");
            assert!(
                claim.kind.has_row() || v.accepted().is_none(),
                "{id} has a tolerance and is not judged"
            );
            let itself = v
                .paper
                .and_then(|paper| v.accepts(&estimate::Estimate::exact(paper)));
            assert_ne!(itself, Some(false), "{id} {}", v.name);
        }
    }
}

/// A reason does not excuse everything: every value that is explained can still be wrong.
#[test]
fn explanations_have_bounds() {
    let mut explained = 0;
    for claim in sdmac_claims() {
        for (name, why) in &claim.explained {
            explained += 1;
            let [least, most] = why.between;
            assert!(least < most && most - least < 2.0, "{} {name}", claim.id);
            let v = claim.values.iter().find(|v| v.name == *name).unwrap();
            for (ours, covered) in [
                (least, true),
                (most, true),
                (least - 0.01, false),
                (most + 0.01, false),
            ] {
                assert_eq!(why.covers(ours), covered, "{} {name} {ours}", claim.id);
            }
            assert!(v.accepted().is_some(), "{} {name} is not judged", claim.id);
        }
    }
    assert_eq!(explained, 4);
}

#[test]
fn kinds_and_verdicts() {
    let mut text = String::new();
    for row in &reproduction().rows {
        let (claim, verdict) = (&row.claim, row.verdict().word());
        writeln!(text, "{} {} {verdict}", claim.id, claim.kind.word()).unwrap();
    }
    insta::assert_snapshot!(text);
}

#[test]
fn json_has_its_shape() {
    let json = serde_json::to_value(reproduction()).unwrap();
    assert_eq!(json["paper"], "sdmac");
    assert_eq!(
        (&json["ok"], &json["complete"], &json["quick"]),
        (&true.into(), &true.into(), &true.into())
    );
    let rows = json["rows"].as_array().unwrap();
    let row = |id: &str| rows.iter().find(|r| r["id"] == id).unwrap();
    for row in rows {
        for name in ["id", "where", "what", "kind", "verdict", "note"] {
            assert!(row[name].is_string(), "{name} of {row}");
        }
        assert!(row["ok"].is_boolean());
        for name in ["paper", "ours", "tolerance", "interval", "unit"] {
            assert!(row.get(name).is_some(), "{name} of {row}");
        }
    }
    // one value stands alone, several go by name
    assert_eq!(
        (&row("0-5")["paper"], &row("0-5")["ours"]),
        (&36.0.into(), &36.0.into())
    );
    assert_eq!(row("0-5")["tolerance"], "± 0");
    let total = row("0-52");
    assert_eq!(
        (&total["kind"], &total["paper"]["a.mean"]),
        (&"emergent".into(), &42.483.into())
    );
    assert!((total["ours"]["a.mean"].as_f64().unwrap() - 42.483).abs() < 0.01);
    assert_eq!(total["interval"]["a.mean"].as_array().unwrap().len(), 2);
    assert_eq!(row("0-74")["ours"], Json::Null);
}

#[test]
fn the_table_fits_into_120_columns_and_the_page_has_its_figures() {
    let reproduction = reproduction();
    let text = reproduction.to_string();
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    assert!(text.contains("  0-52  T_SDMAC"), "{text}");
    let page = reproduction.page(figures(measured()), "no time at all").html();
    assert_eq!(page.matches("<figure").count(), figures(measured()).len());
    assert!(page.contains("0-73 throughput_ratio disagrees: The adapter doubles"));
    for (file, figure) in figures(measured()) {
        roxmltree::Document::parse(&figure.standalone()).unwrap_or_else(|e| panic!("{file}: {e}"));
    }
}

/// What was stopped has rows without values, and says so.
#[test]
fn stopped_early() {
    let nothing = PLAN.run(1, &AtomicBool::new(true), &|_| {});
    let reproduction = Reproduction::new(PLAN, &nothing);
    assert!(!reproduction.ok && !reproduction.complete);
    assert_eq!(reproduction.rows.len(), 65);
    let text = reproduction.to_string();
    assert!(
        text.contains("missing") && text.contains("Stopped early"),
        "{text}"
    );
    serde_json::to_string(&reproduction).unwrap();
    reproduction.page(figures(&nothing), "").html();
}
