//! Basic rates, and nodes with several adapters.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::run::{Run, run};

/// Two devices on two channels, and a controller that is on both.
const TWO: &str = r#"
[run]
duration = "500500us"

[medium]
loss.fixed_power_dbm = -50

[[group]]
name = "controller"
basic_rates = ["6M", "12M"]
protocol.sender = { rate = "24M" }

[[group.adapter]]
channel = 44
basic_rates = ["6M"]

[[group]]
name = "left"
protocol.sender = { rate = "24M" }

[[group]]
name = "right"
protocol.sender = { rate = "24M", adapter = 1 }

[[group.adapter]]
channel = 44
tx_dbm = 10

[[traffic]]
from = "left"
to = "controller"
octets = 100
pattern.periodic = { period = "1ms" }

[[traffic]]
from = "right"
to = "controller"
octets = 100
pattern.periodic = { period = "1ms" }
"#;

fn go(text: &str) -> Run {
    let scenario = parse(text, &[]).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, 1, None, &AtomicBool::new(false), |_| {}).unwrap()
}

#[test]
fn a_node_is_on_the_channels_of_all_its_adapters() {
    let r = go(TWO);
    for entry in &r.result.traffic {
        assert!(entry.delivered >= 500, "{entry:?}");
    }
    let [controller, left, right] = [0, 1, 2].map(|n| &r.counters[n]);
    assert_eq!([controller.len(), left.len(), right.len()], [2, 1, 2]);
    assert_eq!(controller[0].rx_frames, left[0].tx_frames);
    assert_eq!(controller[1].rx_frames, right[1].tx_frames);
    assert_eq!(right[0].tx_frames, 0, "its protocol picks the other one");
    assert_eq!(r.result.metrics["confirms_not_acked"], 0.0);
    assert_eq!(
        r.result.groups[0].counters.rx_frames,
        left[0].tx_frames + right[1].tx_frames
    );
}

/// ACKs to frames at 24 Mb/s: 12 Mb/s with [6, 12] takes 32 us, 6 Mb/s takes 44 us, and the PHY's own 24 Mb/s 28 us.
#[test]
fn basic_rates_decide_the_rate_of_acks() {
    let per_ack = |text: &str| {
        let r = go(text);
        [0, 1].map(|a| r.counters[0][a].tx_time_us as f64 / r.counters[0][a].tx_responses as f64)
    };
    assert_eq!(per_ack(TWO), [32.0, 44.0]);
    let usual = TWO.replace("basic_rates = [\"6M\", \"12M\"]\n", "");
    assert_eq!(per_ack(&usual), [28.0, 44.0]);
}

/// Pairs of the matrix are nodes, whatever the number of their adapters.
#[test]
fn losses_of_pairs_hold_for_all_adapters() {
    let pairs = "loss.pairs = [{ a = \"controller\", b = \"right\", db = 70 }]";
    let r = go(&TWO.replace("loss.fixed_power_dbm = -50", pairs));
    assert_eq!(r.result.traffic[0].delivered, 0, "left is out of sight");
    assert!(r.result.traffic[1].delivered >= 500);
}

#[test]
fn broken_adapters_get_one_sentence() {
    all_broken(
        TWO,
        &[
            (
                "[\"6M\", \"12M\"]",
                "[\"6M\", \"13M\"]",
                &["test.toml:10:22", "\"13M\" is not a rate"],
            ),
            (
                "[\"6M\", \"12M\"]",
                "[\"6M\", \"11M\"]",
                &["10:22", "802.11a has no rate 11M", "54M"],
            ),
            ("[\"6M\", \"12M\"]", "[]", &["10:15", "at least one"]),
            ("[\"6M\", \"12M\"]", "\"6M\"", &["10:15"]),
            (
                "[\"6M\", \"12M\"]",
                "[\"mcs0/20\"]\nphy = \"n5\"",
                &["10:16", "mcs0/20 cannot be a basic rate", "1M to 54M"],
            ),
            (
                "channel = 44\nbasic_rates",
                "channel = 6\nbasic_rates",
                &["14:11", "802.11a has no channel 6", "32 to 177"],
            ),
            (
                "channel = 44\nbasic_rates",
                "channel = 36\nbasic_rates",
                &[
                    "14:11",
                    "two adapters of \"controller\"",
                    "5180 MHz",
                    "a channel of its own",
                ],
            ),
            (
                "channel = 44\nbasic_rates",
                "basic_rates",
                &["missing field `channel`"],
            ),
            (
                "channel = 44\nbasic_rates",
                "channel = 44\nphy = \"b\"\nbasic_rates",
                &["802.11b has no channel 44", "1 to 14"],
            ),
            ("tx_dbm = 10", "power = 10", &["unknown key `power`", "`tx_dbm`"]),
            (
                "adapter = 1 }",
                "adapter = 2 }",
                &["23:45", "no adapter 2", "adapters 0 to 1"],
            ),
            (
                "adapter = 1 }",
                "adapter = 9 }",
                &["23:45", "9 is not a whole number from 0 to 7"],
            ),
            (
                "name = \"left\"\nprotocol.sender = { rate = \"24M\" }",
                "name = \"left\"\nprotocol.sender = { rate = \"24M\", adapter = 1 }",
                &["19:45", "\"left\" have only adapter 0"],
            ),
        ],
    );
    let further: String = (0..8)
        .map(|n| format!("[[group.adapter]]\nchannel = {}\n", 100 + 4 * n))
        .collect();
    let many = TWO.replacen("[[group.adapter]]\nchannel = 44\n", &further, 1);
    let sentence = parse(&many, &[]).unwrap_err().to_string();
    assert!(sentence.contains("at most 8 adapters"), "{sentence}");
}
