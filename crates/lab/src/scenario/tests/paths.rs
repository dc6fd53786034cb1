//! Losses of a path over time, from a file beside the scenario.

use super::*;

const SCENARIO: &str = r#"
[run]
duration = "1s"

[[group]]
name = "ap"
protocol.sender = { rate = "24M" }

[[group]]
name = "sta"
placement.at = [10, 0]
protocol.sender = { rate = "24M", tries = 1 }

[[traffic]]
from = "sta"
to = "ap"
octets = 100
pattern.periodic = { period = "10ms" }

[[link]]
from = "sta"
to = "ap"
both_ways = true
path_loss = "walk.csv"
"#;

/// MSDUs that arrive in the second, of a hundred; or what is wrong.
fn delivered(csv: &str) -> Result<u64, String> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("walk.csv"), csv).unwrap();
    let path = dir.path().join("s.toml");
    std::fs::write(&path, SCENARIO).unwrap();
    let scenario = Scenario::open(&path, &[]).map_err(|e| e.to_string())?;
    let mut world = scenario.build(1);
    world.run_until(scenario.duration_ns());
    Ok(world.flow(0).delivered)
}

#[test]
fn a_path_follows_its_trace() {
    let all = delivered("0,60").unwrap();
    assert!((99..=101).contains(&all), "{all}");
    // behind a wall from 0.3 s to 0.7 s
    let some = delivered("time_us,db\n0,60\n300000,150\n700000,60\n").unwrap();
    assert!((all - 41..=all - 39).contains(&some), "{some} of {all}");
    assert_eq!(delivered("0,300").unwrap(), 0);
    // until the first line the medium's own model holds, and at 10 m all arrives
    let late = delivered("500000,300").unwrap();
    assert!((49..=51).contains(&late), "{late}");
}

#[test]
fn what_is_wrong_with_a_trace_is_told_with_its_place() {
    for (csv, says) in [
        ("", "no line of the form"),
        ("0,60\n0,61", "line 2: times must rise"),
        ("0,999", "line 1: db lies"),
    ] {
        let said = delivered(csv).unwrap_err();
        assert!(
            said.contains("s.toml:24:13") && said.contains("walk.csv") && said.contains(says),
            "{said}"
        );
    }
}
