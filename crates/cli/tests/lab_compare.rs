//! `sdmac lab compare` on scenarios of the tree: `cargo xtask lab` runs it.

use std::ops::Range;
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

/// A comparison, and what may be seen in it. Programs take time, which the simulator leaves out.
struct Case {
    scenario: &'static str,
    changes: &'static [&'static str],
    /// Further changes.
    more: &'static [&'static str],
    real_runs: &'static str,
    /// How many frames overlapped in all real runs.
    overlapping: Range<u64>,
    /// By how much a time may be apart.
    slack_us: f64,
    /// Messages that may fare differently, as a share of all.
    slack: f64,
    /// Frames more or less for each message.
    slack_tries: f64,
    /// Rows that the layers of the scenario add.
    of_layers: usize,
}

const CASE: Case = Case {
    scenario: "",
    changes: &["duration=1s", "output.latency=true"],
    more: &[],
    real_runs: "1",
    overlapping: 0..1,
    slack_us: 0.0,
    slack: 0.0,
    slack_tries: 0.0,
    of_layers: 0,
};

impl Case {
    /// One scenario, and one command for both. Gives what it told.
    fn agrees(&self) -> serde_json::Value {
        let told = compared(self.scenario, &[self.changes, self.more].concat(), self.real_runs);
        let rows = told["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 7 + self.of_layers, "{told:#}");
        let holds = |row: &serde_json::Value| {
            let (Some(real), Some(simulator)) = (row["real"].as_f64(), row["simulator"].as_f64()) else {
                return false;
            };
            let slack = match row["name"].as_str().unwrap() {
                // Each change of channel takes the kernel some milliseconds.
                "longest gap, us" => 0.02 * simulator,
                "tries for each MSDU" => self.slack_tries,
                name if name.ends_with("us") => self.slack_us,
                _ => self.slack,
            };
            row["within"] == true || (real - simulator).abs() < slack
        };
        assert!(rows.iter().all(holds), "{told:#}");
        let sum = |what: &str| -> u64 {
            let runs = told["real"].as_array().unwrap();
            runs.iter().map(|run| run[what].as_u64().unwrap()).sum()
        };
        assert_eq!((sum("refused"), sum("unknown")), (0, 0), "{told:#}");
        assert!(self.overlapping.contains(&sum("overlapping")), "{told:#}");
        told
    }
}

#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn contention_and_hidden_stations() {
    Case {
        scenario: "scenarios/hidden-nodes.toml",
        changes: &["duration=3s"],
        real_runs: "3",
        overlapping: 100..u64::MAX,
        ..CASE
    }
    .agrees();
}

#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn losses_in_bursts() {
    Case {
        scenario: "scenarios/gilbert-elliott.toml",
        changes: &["duration=10s", "output.latency=true"],
        real_runs: "3",
        ..CASE
    }
    .agrees();
}

/// Overlaps are those of hosts that ask for a slot, which takes as long as it takes from the round on in which they start: after a
/// second all have one. Each frame is handed to seven hosts before its sender learns of its end.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn hosts_that_agree_on_slots() {
    Case {
        scenario: "scenarios/tbmac.toml",
        changes: &[
            "duration=5s",
            "run.warm_up=1400ms",
            "hosts=8",
            "output.latency=true",
        ],
        real_runs: "3",
        overlapping: 0..u64::MAX,
        slack_us: 12.0,
        ..CASE
    }
    .agrees();
}

/// A robot walks into the next cell, and its messages go over the border. Each frame is handed to up to eight hosts. Less than two
/// rounds of nine hosts are at the ends, on 156 messages: a message more is 0.00003 Mb/s.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn cells_with_gateways() {
    Case {
        scenario: "scenarios/cells.toml",
        changes: &[
            "duration=9s",
            "run.warm_up=1s",
            "speed=8",
            "output.latency=true",
            "traffic.0.pattern={ periodic = { period = \"100ms\", phase = { random = \"100ms\" } } }",
            "traffic.1.pattern={ periodic = { period = \"100ms\", phase = { random = \"100ms\" } } }",
        ],
        real_runs: "2",
        overlapping: 0..u64::MAX,
        slack_us: 12.0,
        slack: 0.0001,
        slack_tries: 0.1,
        of_layers: 1,
        ..CASE
    }
    .agrees();
}

#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn slots_of_a_schedule() {
    Case {
        scenario: "scenarios/tdma.toml",
        slack_us: 5.0,
        of_layers: 1,
        ..CASE
    }
    .agrees();
}

/// Clocks by the beacons of a neighbour. Nothing says where on the clock of the host a cycle begins, so messages come at any time in it,
/// and how many of 3,500 meet a beacon is another number on each computer. A message that comes just when its slot begins has to
/// wait a cycle: if its lifetime were a cycle, too, jitter of microseconds would decide for a whole stream whether anything arrives.
/// Nor does anything say when the neighbour's first beacon comes: clocks are trusted after its third, and the slot that tells of it.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn slots_by_reference_broadcasts() {
    Case {
        scenario: "scenarios/reference.toml",
        changes: &[
            "duration=1100ms",
            "run.warm_up=400ms",
            "output.latency=true",
            "traffic.0.pattern={ periodic = { period = \"4ms\", phase = { random = \"4ms\" } } }",
            "traffic.1.pattern={ periodic = { period = \"4ms\", phase = { random = \"4ms\" } } }",
            "traffic.0.lifetime=6ms",
            "traffic.1.lifetime=6ms",
        ],
        real_runs: "2",
        overlapping: 0..100,
        slack: 0.001,
        slack_tries: 0.007,
        of_layers: 1,
        ..CASE
    }
    .agrees();
}

/// A second copy over a second adapter when the first has failed, or after a millisecond. Copies on two channels overlap.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn proactive_redundancy() {
    Case {
        scenario: "scenarios/redundancy.toml",
        changes: &[
            "duration=1s",
            "output.latency=true",
            "group.controller.redundancy.copies={ proactive = \"1ms\" }",
            "group.devices.redundancy.copies={ proactive = \"1ms\" }",
        ],
        real_runs: "2",
        overlapping: 100..u64::MAX,
        ..CASE
    }
    .agrees();
}

/// A poll waits for sixteen exchanges, in which programs take less than a microsecond each.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn polls() {
    Case {
        scenario: "scenarios/edf.toml",
        slack_us: 16.0,
        ..CASE
    }
    .agrees();
}

/// Stations that come, ask for slots, leave, and are out of reach for a while. There is no chance in it, so that no interval is
/// left: a message or two of 950, with all of their tries.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn stations_that_join() {
    Case {
        scenario: "scenarios/joining.toml",
        changes: &["duration=2s", "output.latency=true"],
        overlapping: 0..u64::MAX,
        slack_us: 8.0,
        slack: 0.002,
        slack_tries: 7.0 * 0.002,
        of_layers: 1,
        ..CASE
    }
    .agrees();
}

/// Earliest deadline first over slots over two adapters each, of which one loses half of all frames.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn overlays_that_nest() {
    Case {
        scenario: "scenarios/redundant-slots.toml",
        slack_us: 12.0,
        of_layers: 1,
        ..CASE
    }
    .agrees();
}

/// Both hand-overs, and what is missed in them.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn stations_that_roam() {
    Case {
        scenario: "scenarios/roaming.toml",
        changes: &["output.latency=true"],
        slack_us: 4.0,
        of_layers: 3,
        ..CASE
    }
    .agrees();
}

/// Two messages of 1254 are under way when the time ends.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn rates_by_rsin() {
    Case {
        scenario: "scenarios/rate.toml",
        changes: &[
            "duration=1s",
            "output.latency=true",
            "group.station.rate_control={ rsin = {} }",
        ],
        real_runs: "2",
        slack_tries: 0.002,
        ..CASE
    }
    .agrees();
}

/// Announcements in ATIM windows, and payloads behind them: five radios in a line, over four hops. A station knows of another's beacon
/// after 200 us, so a slot is that long on both sides. Nobody turns a receiver off: an adapter of mac80211_hwsim cannot.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn power_save_over_four_hops() {
    let median_us = |multi_hop| {
        let changes = &["duration=60s", "group.line.protocol.ibss.slot=200us", multi_hop];
        let told = compared("scenarios/mhpsm.toml", changes, "2");
        let rows = told["rows"].as_array().unwrap();
        let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
        for name in [
            "throughput, Mb/s",
            "MSDUs lost",
            "tries for each MSDU",
            "latency, median, us",
            "latency, p99, us",
        ] {
            assert!(row(name)["within"] == true, "{name}: {told:#}");
        }
        assert_eq!(row("MSDUs lost")["real"], 0.0, "{told:#}");
        row("latency, median, us")["real"].as_f64().unwrap()
    };
    let (at_once, hop_by_hop) = (median_us("multi_hop=true"), median_us("multi_hop=false"));
    // one beacon interval at most, and one for each hop but the first and less
    assert!(
        at_once < 102_400.0 && hop_by_hop > 2.5 * 102_400.0,
        "{at_once} {hop_by_hop}"
    );
}

/// What of the strangers' scenario is as on Linux: the host tells when a frame was on the air, by when it has seen it;
/// and messages that all come and end at one instant would all wait for the one processor of the lab.
/// Runs of three seconds among strangers are few: where all listen, a share of 0.03 may fare differently.
const AMONG_STRANGERS: Case = Case {
    scenario: "scenarios/tdma-strangers.toml",
    changes: &[
        "duration=3s",
        "output.latency=true",
        "schedule.loop.seen_within=20us",
        "traffic.0.pattern={ periodic = { period = \"4ms\", phase = { random = \"4ms\" } } }",
    ],
    real_runs: "3",
    overlapping: 100..u64::MAX,
    slack: 0.03,
    of_layers: 1,
    ..CASE
};

/// Who does not listen is punctual; who does waits for strangers: 24 % of the time a frame of theirs is on the air.
#[test]
#[ignore = "needs the lab's kernel: cargo xtask lab"]
fn slots_among_strangers() {
    let deviation_us_and_missed = |more| {
        let told = Case {
            more,
            ..AMONG_STRANGERS
        }
        .agrees();
        println!("{:#}", told["rows"]);
        let rows = told["rows"].as_array().unwrap();
        ["deviation", "slots"].map(|name| {
            let row = rows.iter().find(|r| r["name"].as_str().unwrap().contains(name));
            row.and_then(|r| r["real"].as_f64()).unwrap()
        })
    };
    let off = deviation_us_and_missed(&[
        "reception=false",
        "carrier_sense=false",
        "virtual_carrier_sense=false",
    ]);
    let on = deviation_us_and_missed(&[
        "reception=true",
        "carrier_sense=true",
        "virtual_carrier_sense=true",
    ]);
    assert!(off[0] < 40.0 && on[0] > 150.0, "{off:?} {on:?}");
    // the guard's probability is 0.9999
    assert!(off[1] <= 1e-3 && on[1] > 0.02, "{off:?} {on:?}");
}
