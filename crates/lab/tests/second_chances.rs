//! What second chances that are shared buy: a pool for the retries of one node, and shared slots of a schedule.
//!
//! The tables of the book: `cargo test -p sdmac-lab --test second_chances -- --nocapture`.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use lab::run::RunResult;
use lab::scenario::{Change, Scenario};

fn run(file: &str, changes: &[String]) -> RunResult {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(file);
    let changes: Vec<_> = changes.iter().map(|c| Change::parse(c).unwrap()).collect();
    let scenario = Scenario::open(&path, &changes).unwrap_or_else(|e| panic!("{e}"));
    lab::run::run(&scenario, 1, None, &AtomicBool::new(false), |_| {})
        .unwrap()
        .result
}

/// Share of messages that missed, by entry of `[[traffic]]`.
fn missed(r: &RunResult, to: &str) -> f64 {
    let entry = r.traffic.iter().find(|t| t.to == to).unwrap();
    1.0 - entry.delivered as f64 / entry.submitted as f64
}

/// The same flows over the same links. What admission says of them, and whose first attempts find no time.
#[test]
fn a_pool_keeps_first_attempts_from_harm() {
    println!(
        "| lost on the way to the far ones | missed there: plain | pooled | missed near by: plain | pooled |"
    );
    println!("|---|---|---|---|---|");
    let mut near_by = Vec::new();
    for loss in [0.0, 0.5, 0.7, 0.8, 0.9] {
        let changes = [
            format!("plain_loss={loss}"),
            format!("pooled_loss={loss}"),
            "duration=4s".into(),
        ];
        let r = run("retry-pool.toml", &changes);
        let of = |to| missed(&r, to);
        let [plain_far, pooled_far, plain, pooled] =
            ["plain_far", "pooled_far", "plain_near", "pooled_near"].map(of);
        println!(
            "| {loss} | {:.2} % | {:.2} % | {:.2} % | {:.2} % |",
            plain_far * 100.0,
            pooled_far * 100.0,
            plain * 100.0,
            pooled * 100.0
        );
        let admitted: Vec<_> = r.admission.iter().map(|a| (a.of.as_str(), a.admitted)).collect();
        assert_eq!(
            admitted,
            [("plain", Some(false)), ("pooled", Some(true))],
            "{:?}",
            r.admission
        );
        // 12,000 messages near by in 4 s; the last ones may be on their way when the run ends
        assert!(
            pooled < 2.0 / 1_000.0,
            "what is admitted has its first attempts: {pooled}"
        );
        near_by.push(plain);
    }
    assert!(near_by[0] < 2.0 / 1_000.0, "nothing is lost: {near_by:?}");
    assert!(near_by[3] > 0.02 && near_by[4] > near_by[3], "{near_by:?}");
}

/// One slot for each message, and what is left of the cycle is shared by those whose frames failed. With one try there are no second chances.
#[test]
fn shared_slots_make_good_what_is_lost() {
    println!("| frames lost | missed with one try | with shared slots |");
    println!("|---|---|---|");
    for loss in [0.01, 0.05, 0.1, 0.2] {
        let of = |tries: u32| {
            let changes = [
                format!("loss={loss}"),
                "duration=4s".into(),
                format!("schedule.loop.send.tries={tries}"),
            ];
            let r = run("tdma.toml", &changes);
            let submitted: u64 = r.traffic.iter().map(|t| t.submitted).sum();
            let delivered: u64 = r.traffic.iter().map(|t| t.delivered).sum();
            1.0 - delivered as f64 / submitted as f64
        };
        let (once, shared) = (of(1), of(7));
        println!(
            "| {:.0} % | {:.2} % | {:.2} % |",
            loss * 100.0,
            once * 100.0,
            shared * 100.0
        );
        // 14,800 messages
        assert!((once - loss).abs() < 0.1 * loss + 0.003, "{once}");
        assert!(shared < 0.5 * once, "{shared} of {once}");
    }
}
