//! Power save over several hops: ten stations in a line with light traffic, and that nothing is lost because its receiver
//! dozes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use lab::run::run;
use lab::scenario::{Change, Scenario};
use proptest::prelude::*;

/// Ten stations, of which each hears its neighbours; six of them have a message over four hops every five seconds or so.
fn ten(changes: &[&str], seed: u64) -> BTreeMap<&'static str, f64> {
    let mut text = String::from(
        r#"
        [parameters]
        window = "group.line.protocol.ibss.window_tu"
        multi_hop = "group.line.protocol.ibss.multi_hop"
        soft_beacon = "group.line.protocol.ibss.soft_beacon"
        loss = "medium.loss"
        duration = "run.duration"

        [run]
        duration = "300s"

        [[group]]
        name = "line"
        count = 10
        placement.line = { spacing_m = 30 }
        clock.drift_within_ppm = 20
        protocol.ibss = { line = true, send = { rate = "24M" } }
        "#,
    );
    for from in 0..6 {
        text += &format!(
            "[[traffic]]\nfrom = \"line.{from}\"\nto = \"line.{}\"\noctets = 50\npattern.poisson = {{ mean = \"5s\" }}\n",
            from + 4
        );
    }
    let changes: Vec<Change> = changes.iter().map(|c| Change::parse(c).unwrap()).collect();
    let scenario = Scenario::parse(Path::new("ten.toml"), &text, &changes).unwrap_or_else(|e| panic!("{e}"));
    let run = run(&scenario, seed, None, &AtomicBool::new(false), |_| {}).unwrap();
    run.result.metrics
}

/// The table of the book.
#[test]
fn ten_stations_over_four_hops() {
    let rows: [(&str, &[&str]); 6] = [
        ("always on", &["window=0"]),
        ("standard, 10 TU", &["window=10"]),
        ("multi-hop, 10 TU", &["window=10", "multi_hop=true"]),
        (
            "multi-hop, 10 TU, soft beacons",
            &["window=10", "multi_hop=true", "soft_beacon=20ms"],
        ),
        (
            "standard, 10 TU, soft beacons",
            &["window=10", "soft_beacon=20ms"],
        ),
        (
            "multi-hop, 20 TU, soft beacons",
            &["window=20", "multi_hop=true", "soft_beacon=20ms"],
        ),
    ];
    let measured = rows.map(|(name, changes)| {
        let m = ten(changes, 1);
        let ms = |key: &str| m[key] / 1e3;
        println!(
            "{name:32} sent {} delivered {} p50 {:.1} ms p99 {:.1} ms doze {:.1} % {:.1} J, not acked {} expired {} atims {} failed {} asked on {} beacons {} soft {}",
            m["submitted"],
            m["delivered"],
            ms("latency_p50_us"),
            ms("latency_p99_us"),
            100.0 * m["ibss_doze_ratio"],
            m["ibss_joules"],
            m["confirms_data_lost"] + m["confirms_ack_lost"],
            m["ibss_expired"],
            m["ibss_atims"],
            m["ibss_atims_failed"],
            m["ibss_atims_asked_on"],
            m["ibss_beacons"],
            m["ibss_soft_beacons"],
        );
        m
    });
    let [on, standard, multi_hop, soft, ..] = &measured;
    let p50 = |m: &BTreeMap<_, f64>| m["latency_p50_us"];
    assert!(p50(on) < 10_000.0 && p50(standard) > 3.0 * 102_400.0);
    assert!(p50(multi_hop) < 1.25 * 102_400.0);
    assert!(on["ibss_doze_ratio"] == 0.0 && standard["ibss_doze_ratio"] > 0.25);
    assert!(multi_hop["ibss_doze_ratio"] > standard["ibss_doze_ratio"]);
    assert!(soft["ibss_doze_ratio"] > 0.75);
    // what was sent in the last second may be on its way
    for m in &measured {
        assert!(m["submitted"] - m["delivered"] <= 4.0, "{m:?}");
        assert_eq!((m["ibss_expired"], m["ibss_no_room"]), (0.0, 0.0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Where everybody hears everybody and nothing is lost to noise, every frame that was announced is acknowledged.
    #[test]
    fn nothing_is_lost_to_a_doze(seed in 0_u64..1_000_000, window in 2_u16..30, multi_hop: bool, soft: bool) {
        let window = format!("window={window}");
        let multi_hop = format!("multi_hop={multi_hop}");
        let mut changes = vec![window.as_str(), &multi_hop, "loss={ fixed_power_dbm = -50 }", "duration=30s"];
        if soft {
            changes.push("soft_beacon=20ms");
        }
        let m = ten(&changes, seed);
        prop_assert_eq!(m["confirms_data_lost"], 0.0, "{:?}", m);
        prop_assert_eq!((m["ibss_expired"], m["ibss_no_room"]), (0.0, 0.0));
        prop_assert!(m["submitted"] - m["delivered"] <= 5.0, "{:?}", m);
    }
}
