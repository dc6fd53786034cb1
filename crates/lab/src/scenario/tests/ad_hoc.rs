//! `protocol.ibss`.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::run::run;

const LINE: &str = r#"
[parameters]
line = "group.line.protocol.ibss.line"

[run]
duration = "20s"

[[group]]
name = "line"
count = 5
placement.line = { spacing_m = 30 }
clock = { offset = "3s", drift_ppm = 10 }
protocol.ibss = { window_tu = 10, soft_beacon = "20ms", adapt_wake_ahead = true, line = true, multi_hop = true, send = { rate = "24M" } }

[[group]]
name = "other"
protocol.sender = { rate = "24M" }

[[traffic]]
from = "line.0"
to = "line.4"
octets = 50
pattern.periodic = { period = "1s" }

[[traffic]]
from = "other"
to = "broadcast"
octets = 40
pattern.periodic = { period = "1s" }
"#;

#[test]
fn broken_networks_get_one_sentence() {
    let cases: &[Case<'_>] = &[
        (
            "window_tu = 10",
            "window_tu = 100",
            &["a window of 100 TU leaves nothing of an interval of 100 TU"],
        ),
        (
            "\"20ms\"",
            "\"999us\"",
            &["too short for soft beacons: 1ms or more"],
        ),
        (
            "line = true,",
            "line = true, wake_ahead = \"46081us\",",
            &[
                "46.081ms before a TBTT leaves too little time for data",
                "46.08ms or less",
            ],
        ),
        (
            "line = true,",
            "line = true, slot = \"3.5ms\",",
            &["a slot of 3.5ms does not fit: 1us to 3.413ms, so that 30 of them"],
        ),
        (
            "line = true,",
            "line = true, key = \"00112233445566778899aabbccddeef\",",
            &["this is no key: 32 hexadecimal digits"],
        ),
        (
            "protocol.sender = { rate = \"24M\" }",
            "protocol.ibss = { key = \"00112233445566778899aabbccddeeff\", send = { rate = \"24M\" } }",
            &["the stations of \"line\" have another key or none"],
        ),
        (
            "count = 5",
            "count = 65",
            &["at most 64 stations, this one has 65"],
        ),
        (
            "send = { rate = \"24M\" }",
            "send = { rate = \"24M\", qos = true }",
            &["takes rate, tries and broadcast_rate"],
        ),
        (
            "to = \"line.4\"",
            "to = \"other\"",
            &["from \"line\" to \"other\"", "give both the protocol ibss"],
        ),
        (
            "from = \"other\"\nto = \"broadcast\"",
            "from = \"other\"\nto = \"line.0\"",
            &["from \"other\" to \"line\""],
        ),
        (
            "octets = 50",
            "octets = 1481",
            &["1481 octets are too long", "1480"],
        ),
        (
            "protocol.sender = { rate = \"24M\" }",
            "protocol.ibss = { line = true, send = { rate = \"24M\" } }\n[[traffic]]\nfrom = \"other\"\nto = \"line.0\"\noctets = 40\npattern.periodic = { period = \"1s\" }",
            &["put both into one group"],
        ),
        (
            "multi_hop",
            "multihop",
            &["unknown key `multihop`", "did you mean `multi_hop`"],
        ),
    ];
    all_broken(LINE, cases);
}

/// On Linux's radios its beacons need a timestamp, and a slot as long as its host needs it; others follow no station's clock.
#[test]
fn its_stations_keep_time() {
    let slow = LINE.replace("line = true,", "line = true, slot = \"400us\",");
    let scenario = parse(&slow, &[]).unwrap_or_else(|e| panic!("{e}"));
    let keeps = |name: &str| scenario.station(name, 1).unwrap().keeps_time;
    assert!(keeps("line.0") && keeps("line.4") && !keeps("other"));
    let Program::Relay(station) = scenario.station("line.0", 1).unwrap().program else {
        panic!("a line")
    };
    assert_eq!(station.link().config().slot, radio::Duration::from_us(400));
}

/// Where the scenario says no slot, one on a radio is as long as a host there needs it, and they end within the window.
#[test]
fn beacons_on_a_radio_have_time() {
    let slot = |parameters: &str| {
        let text = LINE.replace("window_tu = 10,", parameters);
        let scenario = parse(&text, &[]).unwrap_or_else(|e| panic!("{e}"));
        let Program::Relay(station) = scenario.station("line.0", 1).unwrap().program else {
            panic!("a line")
        };
        station.link().config().slot.as_us()
    };
    let phy = frame::Phy::A;
    let most = |tu: u64| tu * 1_024 / u64::from(2 * phy.cw_min);
    for (parameters, wanted) in [
        ("window_tu = 20,", 400),
        ("window_tu = 10,", most(10)),
        ("window_tu = 0, interval_tu = 15,", 400),
        ("window_tu = 0, interval_tu = 5,", most(5)),
        ("window_tu = 20, slot = \"9us\",", 9),
    ] {
        assert_eq!(slot(parameters), wanted, "{parameters}");
    }
}

/// With a key messages arrive as without one, their frames are longer, and a node on a radio is told another first number. The
/// filter is handed on.
#[test]
fn a_key_protects_a_line() {
    let key = "line = true, receive_filter = true, key = \"00112233445566778899AABBCCDDEEFF\",";
    let scenario = parse(&LINE.replace("line = true,", key), &[]).unwrap_or_else(|e| panic!("{e}"));
    let Program::Relay(mut station) = scenario.station("line.0", 1).unwrap().program else {
        panic!("a line")
    };
    let config = station.link().config();
    let secret = config.secret.unwrap();
    assert_eq!((secret.key[1], secret.key[15], secret.first_pn), (0x11, 0xff, 1));
    assert!(config.receive_filter);
    station.link_mut().number_packets_from(9);
    assert!(
        !format!("{:?}", scenario.file()).contains("112233"),
        "it is not printed"
    );
    let go = |scenario: &Scenario| {
        run(scenario, 1, None, &AtomicBool::new(false), |_| {})
            .unwrap()
            .result
    };
    let plain = go(&parse(LINE, &[]).unwrap_or_else(|e| panic!("{e}")));
    let sealed = go(&scenario);
    assert_eq!(sealed.traffic[0].delivered, plain.traffic[0].delivered);
    assert_ne!(sealed.trace_hash, plain.trace_hash);
}

/// The time of all stations is accounted for on their own clocks, and the line is what carries the messages.
#[test]
fn numbers_of_a_line() {
    let go = |changes: &[&str]| {
        let scenario = parse(LINE, changes).unwrap_or_else(|e| panic!("{e}"));
        run(&scenario, 1, None, &AtomicBool::new(false), |_| {})
            .unwrap()
            .result
    };
    let m = go(&[]);
    assert_eq!(m.traffic[0].delivered, 20);
    // who has the way for another announces it on: three in between
    assert_eq!(m.metrics["ibss_atims_asked_on"], 60.0);
    let doze = m.metrics["ibss_doze_ratio"];
    assert!((0.5..0.95).contains(&doze), "{doze}");
    // 20 s between those of dozing and of listening only, at 10 and 800 mW
    let joules = m.metrics["ibss_joules"];
    let expected = 20.0 * (0.01 * doze + 0.8 * (1.0 - doze));
    assert!((joules - expected).abs() < 0.2, "{joules} J, {expected} J");
    assert_eq!(m.metrics["ibss_wakes_late_ratio"], 0.0);
    // a radio that costs as much in each state
    let power = LINE.replace(
        "send = {",
        "power = { transmit_mw = 400, receive_mw = 400, listen_mw = 400, doze_mw = 400 }, send = {",
    );
    let scenario = parse(&power, &[]).unwrap_or_else(|e| panic!("{e}"));
    let m = run(&scenario, 1, None, &AtomicBool::new(false), |_| {}).unwrap();
    let joules = m.result.metrics["ibss_joules"];
    assert!((joules - 8.0).abs() < 1e-3, "{joules} J");
    // nobody hears the far end
    let m = go(&["line=false"]);
    assert_eq!(m.traffic[0].delivered, 0);
    assert!(m.metrics["ibss_atims_failed"] > 0.0 && m.metrics["ibss_expired"] > 0.0);
}
