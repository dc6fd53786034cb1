//! `sdmac lab compare` on scenarios of the tree: `cargo xtask lab` runs it.

use std::path::Path;
use std::process::Command;

/// What `sdmac lab compare` tells of a scenario of the tree, with so many real runs.
fn compared(scenario: &str, changes: &[&str], real_runs: &str) -> serde_json::Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut words = vec!["lab", "compare", scenario, "--json", "--runs", "20"];
    words.extend(["--real-runs", real_runs]);
    changes.iter().for_each(|change| words.extend(["--set", change]));
    let done = Command::new(env!("CARGO_BIN_EXE_sdmac"))
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{scenario}: {e}: {said}"))
}

/// What of the strangers' scenario is as on Linux: where the adapter does not tell when a frame was on the air, nobody watches slots;
/// and messages that all come and end at one instant would all wait for the one processor of the lab.
const AMONG_STRANGERS: [&str; 4] = [
    "duration=3s",
    "output.latency=true",
    "schedule.loop.watch=false",
    "traffic.0.pattern={ periodic = { period = \"4ms\", phase = { random = \"4ms\" } } }",
];

/// One scenario, and one command for both: contention and hidden stations, hosts that agree on slots, losses in bursts, slots of
/// a schedule, polls, stations that join, overlays that nest, cells with gateways, stations that roam, RSIN; and slots among strangers, with
/// carrier sense and reception off and on. Programs take time,
/// which the simulator leaves out: the last numbers say by how many us a time may be apart, and by how much another value.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn real_stacks_and_the_simulator_give_the_same_numbers() {
    let among = |more: &[&'static str]| [&AMONG_STRANGERS[..], more].concat();
    let on = among(&[
        "reception=true",
        "carrier_sense=true",
        "virtual_carrier_sense=true",
    ]);
    let off = among(&[
        "reception=false",
        "carrier_sense=false",
        "virtual_carrier_sense=false",
    ]);
    let mut deviations = Vec::new();
    for (scenario, changes, real_runs, overlapping, (slack_us, slack)) in [
        (
            "scenarios/hidden-nodes.toml",
            &["duration=3s"][..],
            "5",
            100..u64::MAX,
            (0.0, 0.0),
        ),
        // Overlaps are those of hosts that ask for a slot. Each frame is handed to seven hosts before its sender learns of its end.
        (
            "scenarios/tbmac.toml",
            &["duration=3s", "hosts=8", "output.latency=true"],
            "5",
            0..u64::MAX,
            (12.0, 0.0),
        ),
        (
            "scenarios/gilbert-elliott.toml",
            &["duration=10s", "output.latency=true"],
            "5",
            0..1,
            (0.0, 0.0),
        ),
        (
            "scenarios/tdma.toml",
            &["duration=1s", "output.latency=true"],
            "1",
            0..1,
            (5.0, 0.0),
        ),
        // A poll waits for sixteen exchanges, in which programs take less than a microsecond each.
        (
            "scenarios/edf.toml",
            &["duration=1s", "output.latency=true"],
            "1",
            0..1,
            (16.0, 0.0),
        ),
        // Stations that come, ask for slots, leave, and are out of reach for a while. There is no chance in it, so that no interval is
        // left: a message or two of 950.
        (
            "scenarios/joining.toml",
            &["duration=2s", "output.latency=true"],
            "1",
            0..u64::MAX,
            (8.0, 0.002),
        ),
        // Earliest deadline first over slots over two adapters each, of which one loses half of all frames.
        (
            "scenarios/redundant-slots.toml",
            &["duration=1s", "output.latency=true"],
            "1",
            0..1,
            (12.0, 0.0),
        ),
        // A robot walks into the next cell, and its messages go over the border. Each frame is handed to up to eight hosts.
        (
            "scenarios/cells.toml",
            &[
                "duration=8s",
                "speed=8",
                "output.latency=true",
                "traffic.0.pattern={ periodic = { period = \"100ms\", phase = { random = \"100ms\" } } }",
                "traffic.1.pattern={ periodic = { period = \"100ms\", phase = { random = \"100ms\" } } }",
            ],
            "2",
            0..u64::MAX,
            (12.0, 0.0),
        ),
        // Both hand-overs, and what is missed in them.
        (
            "scenarios/roaming.toml",
            &["output.latency=true"],
            "1",
            0..1,
            (4.0, 0.0),
        ),
        (
            "scenarios/rate.toml",
            &[
                "duration=1s",
                "output.latency=true",
                "group.station.rate_control={ rsin = {} }",
            ],
            "2",
            0..1,
            (0.0, 0.0),
        ),
        (
            "scenarios/tdma-strangers.toml",
            &off,
            "3",
            100..u64::MAX,
            (0.0, 0.0),
        ),
        (
            "scenarios/tdma-strangers.toml",
            &on,
            "3",
            100..u64::MAX,
            (0.0, 0.0),
        ),
    ] {
        let told = compared(scenario, changes, real_runs);
        let rows = told["rows"].as_array().unwrap();
        let of_layers = match scenario {
            "scenarios/cells.toml" => 1,
            "scenarios/roaming.toml" => 3,
            _ => 0,
        };
        assert_eq!(rows.len(), 7 + of_layers, "{scenario}: {told:#}");
        let holds = |row: &serde_json::Value| {
            let (Some(real), Some(simulator)) = (row["real"].as_f64(), row["simulator"].as_f64()) else {
                return false;
            };
            let name = row["name"].as_str().unwrap();
            let slack = match name {
                // Each change of channel takes the kernel some milliseconds.
                "longest gap, us" => 0.02 * simulator,
                _ if name.ends_with("us") => slack_us,
                _ => slack,
            };
            row["within"] == true || (real - simulator).abs() < slack
        };
        assert!(rows.iter().all(holds), "{scenario} {changes:?}: {told:#}");
        let sum = |what: &str| -> u64 {
            let runs = told["real"].as_array().unwrap();
            runs.iter().map(|run| run[what].as_u64().unwrap()).sum()
        };
        assert_eq!((sum("refused"), sum("unknown")), (0, 0), "{scenario}: {told:#}");
        let seen = sum("overlapping");
        assert!(overlapping.contains(&seen), "{scenario}: {told:#}");
        if scenario.contains("strangers") {
            let row = rows
                .iter()
                .find(|r| r["name"].as_str().unwrap().contains("deviation"));
            deviations.extend(row.and_then(|r| r["real"].as_f64()));
        }
    }
    // Who does not listen is punctual; who does waits for strangers: 24 % of the time a frame of theirs is on the air.
    let [off, on] = deviations[..] else {
        panic!("{deviations:?}")
    };
    assert!(off < 40.0 && on > 150.0, "{off} {on}");
}
