//! Runs of small scenarios: their fates and their pages.

use std::path::Path;

use super::page::{About, page};
use super::*;
use crate::scenario::Description;

const LOSSY: &str = r#"
title = "Losses both ways"

[parameters]
tries = "group.sta.protocol.oneshot.send.tries"

[run]
duration = "4s"

[[group]]
name = "ap"
protocol.sender = { rate = "24M" }

[[group]]
name = "sta"
placement.at = [2, 0]
host = "table5"
protocol.oneshot = { to = "ap", pace.every = "10ms", send = { rate = "54M", tries = 1 } }

[[link]]
from = "sta"
to = "ap"
data.fixed = 0.2

[[link]]
from = "ap"
to = "sta"
ack.fixed = 0.3
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(Path::new("test.toml"), text, &[]).unwrap_or_else(|e| panic!("{e}"))
}

fn go(scenario: &Scenario, folder: Option<&Folder>) -> Run {
    run(scenario, 1, folder, &AtomicBool::new(false), |_| {}).unwrap()
}

/// More comes than the air carries, so a queue is left from the warm-up: what arrives of it is none of what was submitted after it.
#[test]
fn what_was_submitted_before_the_warm_up_is_not_delivered_after_it() {
    let text = r#"
[run]
duration = "4s"
warm_up = "990ms"

[[group]]
name = "ap"
protocol = "sink"

[[group]]
name = "sta"
ap = "ap"
queue_limit = 2000
protocol.sender.rate = "12M"

[[traffic]]
from = "sta"
to = "ap"
octets = 1400
count = 1000
pattern.periodic = { period = "1ms" }
"#;
    let scenario = scenario(text);
    let stopped = AtomicBool::new(false);
    let early = run(&scenario, 1, None, &stopped, |ns| {
        stopped.store(ns > 1_030_000_000, Ordering::Relaxed);
    });
    for (run, delivered) in [(early.unwrap(), 0_u32), (go(&scenario, None), 10)] {
        let m = &run.result.metrics;
        assert_eq!((m["submitted"], m["delivered"]), (10.0, f64::from(delivered)));
        assert_eq!(m["delivered_ratio"], f64::from(delivered) / 10.0);
        assert_eq!(run.result.traffic[0].delivered, u64::from(delivered));
        assert!(
            m["throughput_mbps"] > 0.4,
            "the queue was sent all the same: {m:?}"
        );
    }
}

/// What the receiver's adapter counts agrees with what the fates say arrived.
#[test]
fn lost_data_and_lost_acks_are_told_apart() {
    let r = go(&scenario(LOSSY), None).result;
    let (ap, confirms) = (&r.groups[0], r.groups[1].confirms.as_ref().unwrap());
    let [acked, data_lost, ack_lost] = [Fate::Acked, Fate::DataLost, Fate::AckLost].map(|f| confirms[&f]);
    assert_eq!(acked + data_lost + ack_lost, 400);
    assert_eq!(ap.counters.rx_frames, acked + ack_lost);
    assert_eq!(r.metrics["confirms_not_acked"], (data_lost + ack_lost) as f64);
    // 20 % and 24 % of 400, within five standard deviations
    assert!(
        (40..=120).contains(&data_lost) && (53..=139).contains(&ack_lost),
        "{data_lost} {ack_lost}"
    );
}

/// With several tries a request ends without ACK only if all of them did, and its data has nearly always arrived.
#[test]
fn one_arrival_of_several_tries_is_enough() {
    let text = LOSSY
        .replace("tries = 1", "tries = 3")
        .replace("data.fixed = 0.2", "data.fixed = 0.5");
    let r = go(&scenario(&text), None).result;
    let confirms = r.groups[1].confirms.as_ref().unwrap();
    let (data_lost, ack_lost) = (confirms[&Fate::DataLost], confirms[&Fate::AckLost]);
    let received = r.groups[0].counters.rx_frames - r.groups[0].counters.rx_duplicates;
    assert_eq!(received, confirms[&Fate::Acked] + ack_lost);
    assert!(data_lost > 0 && ack_lost > 0, "{confirms:?}");
}

#[test]
fn frames_that_ask_for_no_ack_are_neither() {
    let text = LOSSY.replace("tries = 1", "tries = 1, ack = false");
    let r = go(&scenario(&text), None).result;
    assert_eq!(
        r.groups[1].confirms.as_ref().unwrap().keys().collect::<Vec<_>>(),
        [&Fate::Unasked]
    );
}

#[test]
fn a_page_shows_everything_that_was_measured() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::create(place.path().join("out"), false).unwrap();
    let text = format!(
        "{LOSSY}\n[[group]]\nname = \"other\"\nprotocol.sender.rate = \"24M\"\n\n[[traffic]]\nfrom = \"other\"\n\
         to = \"ap\"\noctets = 64\npattern.periodic.period = \"5ms\"\n"
    );
    let path = place.path().join("s.toml");
    std::fs::write(&path, &text).unwrap();
    let scenario = Scenario::open(&path, &[]).unwrap();
    let run = go(&scenario, Some(&folder));
    let about = About {
        file: "s.toml",
        command: "sdmac run s.toml --out out",
        description: &Description::open(&path, &[]).unwrap(),
    };
    let html = page(&about, &scenario, &run).html();
    for part in [
        "<h1>Losses both ways</h1>",
        "s.toml, 3 nodes, 4s simulated, seed 1",
        "group.sta.protocol.oneshot.send.tries",
        "From submission to delivery",
        "L_A, ACK lost",
        "t4-air",
        "href=\"./air.pcapng\"",
        "href=\"./confirms.parquet\"",
        "sdmac run s.toml --out out",
        "pace.every = &quot;10ms&quot;",
        &run.result.trace_hash,
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(
        html.matches("<figure>").count(),
        3,
        "latency, requests, waterfall"
    );
    // the planes add up to the way from t1 to t9
    let planes = run.measured.as_ref().unwrap().planes.as_ref().unwrap();
    let way: f64 = planes.ways[&1].iter().map(|s| s.mean_ns.mean().unwrap()).sum();
    let acked = &planes.requests[&Fate::Acked];
    let (low, high) = (acked.quantile(0.0).unwrap(), acked.quantile(1.0).unwrap());
    assert!(
        (low as f64 * 0.999..high as f64).contains(&way),
        "{low} {way} {high}"
    );
    assert_eq!(planes.left_out, 0);
}

#[test]
fn without_a_folder_nothing_is_kept_for_a_page() {
    let run = go(&scenario(LOSSY), None);
    assert!(run.measured.unwrap().planes.is_none());
}
