//! The same plan gives the same runs: with one worker and with two, in debug and release, today and after a refactor.
//! Protocols, adapters, medium and hosts together; the simulator alone has hashes of its own.
//!
//! A change of these hashes is a change of behaviour: say why in the commit that changes them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use lab::plan::{execute, grid};

/// One-shots of a measured host after beacons, 2 s: seeds 1 and 2.
const ONESHOT: [&str; 2] = ["3c78d2dd5f3cf2c6", "bcdf51b696d47758"];
/// EDCA queues of two categories against each other, 300 ms: seeds 1 and 2.
const PRIORITIES: [&str; 2] = ["5e8c8660258f538b", "59011f3aae981509"];

fn hashes(scenario: &str, duration: &str, jobs: usize) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{scenario}.toml"));
    let points = grid(&[format!("duration={duration}")]).unwrap();
    let points = execute(
        &path,
        &points,
        &[1, 2],
        jobs,
        &AtomicBool::new(false),
        |_, _, _| {},
    )
    .unwrap();
    let runs = points.iter().flat_map(|p| &p.runs);
    runs.map(|r| r.trace_hash.clone()).collect()
}

#[test]
fn one_worker_and_two() {
    for jobs in [1, 2] {
        let all = [
            hashes("oneshot", "2s", jobs),
            hashes("edca-priorities", "300ms", jobs),
        ];
        assert_eq!(all, [ONESHOT, PRIORITIES], "{jobs} workers");
    }
}
