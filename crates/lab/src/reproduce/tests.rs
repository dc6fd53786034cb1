//! The quick reproduction with a fixed seed: what CI runs on every change.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    for row in &reproduction.rows {
        assert!(
            row.verdict().is_ok(),
            "{} {:?}\n{reproduction}",
            row.claim.id,
            row.verdict()
        );
    }
    assert!(reproduction.ok && reproduction.complete);
}
