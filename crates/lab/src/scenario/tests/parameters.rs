//! Short names of values, places, and waits that never end: mistakes that would only show in what is missing.

use super::*;

#[test]
fn short_names_lead_somewhere() {
    let cases: &[Case<'_>] = &[
        (
            "group.stations.count",
            "group.stations.coumt",
            &["3:9", "`nodes` leads nowhere", "did you mean `count`"],
        ),
        (
            "group.stations.count",
            "group.station.count",
            &["`nodes` leads nowhere", "there is no `station`"],
        ),
        (
            "group.stations.count",
            "runs.seed",
            &["`nodes` leads nowhere", "did you mean `run`"],
        ),
        (
            "group.stations.count",
            "traffic.1.octets",
            &["`nodes` leads nowhere", "there is no `1`"],
        ),
        (
            "group.stations.count",
            "count",
            &["`nodes` leads nowhere", "unknown key `count`"],
        ),
    ];
    all_broken(GOOD, cases);
    // what is left out has a default, and so has a section
    for path in [
        "run.warm_up",
        "medium.seed_of_nothing",
        "group.ap.rts_octets",
        "group.stations.protocol.sender.broadcast_rate",
        "group.stations.placement",
        "group.0.name",
        "link.0.data",
    ] {
        let there = parse(&GOOD.replacen("group.stations.count", path, 1), &[]).is_ok();
        assert_eq!(there, !path.contains("nothing"), "{path}");
    }
}

#[test]
fn places_are_places() {
    let cases: &[Case<'_>] = &[
        (
            "placement.grid = { spacing_m = 5 }",
            "placement.at = [2]",
            &["invalid length 1, expected a place in metres, [2, 0.5]"],
        ),
        (
            "placement.grid = { spacing_m = 5 }",
            "placement.at = [2, 3, 4]",
            &["invalid length 3, expected a place in metres"],
        ),
        (
            "placement.grid = { spacing_m = 5 }",
            "placement.at = \"here\"",
            &["expected a place in metres"],
        ),
        (
            "placement.grid = { spacing_m = 5 }",
            "placement.at = [1e300, 0]",
            &["1e300 is not a number from -1000000 to 1000000"],
        ),
        (
            "placement.grid = { spacing_m = 5 }",
            "placement.circle = { radius_m = -10 }",
            &["-10 is not a number from 0 to 1000000"],
        ),
        (
            "placement.grid = { spacing_m = 5 }",
            "placement.positions = [[1, 2], [3], [4, 5]]",
            &["expected a place in metres"],
        ),
    ];
    all_broken(GOOD, cases);
}

const AFTER_BEACONS: &str = r#"
[run]
duration = "1s"

[[group]]
name = "ap"
protocol.beaconer = { interval = "100ms", rate = "6M", send = { rate = "24M" } }

[[group]]
name = "station"
ap = "ap"
protocol.oneshot = { to = "ap", pace.after_beacon = "20ms", send = { rate = "54M", tries = 1 } }
"#;

#[test]
fn a_task_that_would_never_measure_is_told() {
    parse(AFTER_BEACONS, &[]).unwrap();
    let cases: &[Case<'_>] = &[
        ("ap = \"ap\"\n", "", &["11:53", "needs an access point"]),
        (
            "ap = \"ap\"\n",
            "ap = \"station\"\n",
            &["11:6", "\"station\" sends no beacons"],
        ),
        (
            "\"20ms\"",
            "\"1s\"",
            &["12:53", "1s after a beacon is after the end of the run, 1s"],
        ),
    ];
    all_broken(AFTER_BEACONS, cases);
}
