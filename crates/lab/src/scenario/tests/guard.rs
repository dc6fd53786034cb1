//! `guard_probability`: the guard follows from the hosts, and what it leaves out is counted.

use super::*;

/// Host clocks are network time and exact, so that the release is all there is in a guard.
const LOOP: &str = r#"
[run]
duration = "10s"

[medium]
loss.fixed_power_dbm = -50

[[schedule]]
name = "loop"
cycle = "2ms"
sync_error = "0us"
send = { rate = "24M", qos = true }

[[group]]
name = "controller"
host = "table5"
protocol.tdma.schedule = "loop"

[[group]]
name = "devices"
count = 4
host = "table5"
ap = "controller"
protocol.tdma.schedule = "loop"

[[traffic]]
from = "devices"
to = "controller"
octets = 58
lifetime = "4ms"
pattern.periodic = { period = "2ms" }
"#;

fn with(line: &str) -> String {
    LOOP.replace("sync_error", &format!("{line}\nsync_error"))
}

/// Guard in us, and the share of releases that miss it.
fn guard(text: &str) -> (f64, f64) {
    let scenario = parse(text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let guard = scenario.schedules[0].guard();
    let r = go(text);
    let [late, lost, released] =
        ["late", "lost", "released"].map(|n| r.metrics[format!("slots_{n}").as_str()]);
    let share = (late + lost) / (released + lost);
    (guard.as_ns() as f64 / 1e3, share)
}

#[test]
fn a_lower_probability_makes_a_smaller_guard_and_more_late_frames() {
    let all = [0.9, 0.99, 0.999].map(|p| (p, guard(&with(&format!("guard_probability = {p}")))));
    println!("probability, (guard in us, late): {all:?}");
    for pair in all.windows(2) {
        assert!(pair[0].1.0 < pair[1].1.0, "{all:?}");
    }
    // 20,000 releases or more
    for (p, (_, late)) in all {
        let promised = 1.0 - p;
        let sd = (promised / 20_000.0_f64).sqrt();
        assert!((late - promised).abs() < 0.1 * promised + 4.0 * sd, "{all:?}");
    }
    assert_eq!(guard(LOOP), guard(&with("guard_probability = 0.9999")));
}

#[test]
fn ideal_hosts_need_no_guard_and_what_is_told_counts() {
    let ideal = LOOP.replace("host = \"table5\"\n", "");
    // the slot in which a node starts may be gone already
    let (guard_us, late) = guard(&ideal);
    assert!(guard_us == 0.0 && late < 1e-4, "{guard_us} {late}");
    let told = with("release = { min = \"8.9us\", high = \"28.4us\" }");
    assert_eq!(guard(&told).0, 19.5);
    let both = told.replace("sync_error", "guard_probability = 0.9\nsync_error");
    let error = parse(&both, &[]).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("nothing to compute with guard_probability"),
        "{error}"
    );
    for wrong in ["1", "0.4"] {
        let error = parse(&with(&format!("guard_probability = {wrong}")), &[]);
        let error = error.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("from 0.5 to 0.99999"), "{error}");
    }
}
