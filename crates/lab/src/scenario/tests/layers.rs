//! `redundancy`, `rate_control`, and `edf` of a `tdma`.

use super::*;

const TWO: &str = r#"
[run]
duration = "2s"

[medium]
loss.fixed_power_dbm = -50

[[group]]
name = "controller"
redundancy = {}
protocol.sender = { rate = "24M", tries = 1 }

[[group.adapter]]
channel = 149

[[group]]
name = "device"
redundancy = { copies = "parallel" }
protocol.sender = { rate = "24M", tries = 1 }

[[group.adapter]]
channel = 149

[[traffic]]
from = "device"
to = "controller"
octets = 58
pattern.periodic = { period = "1ms" }
count = 1900

[[link]]
from = "device"
to = "controller"
data.fixed = 1
"#;

fn wrong(from: &str, to: &str) -> String {
    assert!(TWO.contains(from), "{from}");
    parse(&TWO.replacen(from, to, 1), &[]).unwrap_err().to_string()
}

/// The first channel loses everything, and nothing is lost.
#[test]
fn one_of_two_channels_is_enough() {
    for copies in [
        r#"copies = "parallel""#,
        r#"copies = "reactive""#,
        r#"copies.proactive = "300us""#,
    ] {
        let text = TWO.replace(r#"copies = "parallel""#, copies);
        let r = go(&text);
        assert_eq!(
            (r.traffic[0].submitted, r.traffic[0].delivered),
            (1_900, 1_900),
            "{copies}"
        );
    }
    let alone = TWO.replace("redundancy = {}\n", "");
    let alone = alone.replace("redundancy = { copies = \"parallel\" }\n", "");
    assert_eq!(go(&alone).traffic[0].delivered, 0);
}

#[test]
fn layers_that_do_not_fit() {
    let one = wrong("redundancy = {}\n", "");
    assert!(
        one.contains("\"device\" has redundancy and \"controller\" has not: give it to both"),
        "{one}"
    );
    let adapters = wrong("[[group.adapter]]\nchannel = 149\n", "");
    assert!(
        adapters.contains("these are 0 and 1 of 1: add one with [[group.adapter]]"),
        "{adapters}"
    );
    let same = wrong("redundancy = {}", "redundancy = { adapters = [1, 1] }");
    assert!(same.contains("these are 1 and 1 of 2"), "{same}");
    let what = wrong("copies = \"parallel\"", "copies = \"serial\"");
    assert!(what.contains("parallel") && what.contains("proactive"), "{what}");
    let slots = wrong(
        "redundancy = { copies = \"parallel\" }\nprotocol.sender = { rate = \"24M\", tries = 1 }",
        "rate_control = \"minstrel\"\nprotocol.slotted = { slot = \"1ms\", send = { rate = \"24M\" } }",
    );
    assert!(
        slots.contains("rate_control, which goes with sender, sink, beaconer and edf"),
        "{slots}"
    );
}

const SLOTS_OF_TWO: &str = include_str!("../../../../../scenarios/redundant-slots.toml");

/// A copy that comes later has no slot.
#[test]
fn copies_over_slots_go_at_once() {
    let later = SLOTS_OF_TWO.replace(
        "redundancy = {}",
        r#"redundancy = { copies.proactive = "500us" }"#,
    );
    let what = parse(&later, &[]).unwrap_err().to_string();
    assert!(
        what.contains("\"controller\" sends its second copies later") && what.contains("\"reactive\""),
        "{what}"
    );
    let once = SLOTS_OF_TWO.replace("redundancy = {}", r#"redundancy = { copies = "reactive" }"#);
    parse(&once, &[]).unwrap();
}

/// Where slots leave ACKs out, EDF above them waits for none, and repeats nothing.
#[test]
fn edf_repeats_nothing_where_nobody_acknowledges() {
    let text = SLOTS_OF_TWO
        .replace("every = 12 }", "every = 12 }\nleft_on = { acks = false }")
        .replace("duration = \"20s\"", "duration = \"1s\"")
        .replace("data.fixed = 0.5", "data.fixed = 0");
    let r = go(&text);
    let [submitted, delivered] = [
        r.traffic.iter().map(|t| t.submitted).sum::<u64>(),
        r.traffic.iter().map(|t| t.delivered).sum(),
    ];
    assert!(
        delivered <= submitted && delivered + 16 > submitted,
        "{delivered} of {submitted}"
    );
}

/// Frames that arrive in a second and a half from a station at this distance.
fn delivered_from(metres: u32, phy: &str, rate: &str, rule: &str) -> u64 {
    let text = format!(
        r#"
[run]
duration = "2s"
warm_up = "500ms"

[[group]]
name = "ap"
phy = "{phy}"
protocol.sender = {{ rate = "24M" }}

[[group]]
name = "station"
phy = "{phy}"
placement.at = [{metres}, 0]
{rule}
protocol.sender = {{ rate = "{rate}", tries = 7 }}

[[traffic]]
from = "station"
to = "ap"
octets = 1200
pattern.saturated = {{ backlog = 2 }}
"#
    );
    go(&text).traffic[0].delivered
}

const RULES: [&str; 2] = ["rate_control = \"minstrel\"", "rate_control.rsin = {}"];

/// 40 m with exponent 3 leave 21 dB, in 40 MHz 18 dB: the fastest rate is lost, what is chosen is not.
#[test]
fn rates_follow_the_link() {
    for (phy, rate) in [("a", "54M"), ("n5", "mcs7/20"), ("n5", "mcs7/40s")] {
        let fixed = delivered_from(40, phy, rate, "");
        for rule in RULES {
            let chosen = delivered_from(40, phy, rate, rule);
            assert!(
                chosen > 10 * fixed.max(50),
                "{rule} for {rate}: {chosen} against {fixed}"
            );
        }
    }
}

/// Near the access point nothing carries more than the fastest rate, and what is chosen is like the one that was asked for.
#[test]
fn rates_stay_with_what_was_asked_for() {
    for (phy, rate) in [("a", "54M"), ("n5", "54M"), ("n5", "mcs7/20"), ("n5", "mcs7/40s")] {
        let fixed = delivered_from(5, phy, rate, "");
        for rule in RULES {
            let chosen = delivered_from(5, phy, rate, rule);
            assert!(
                chosen * 100 >= fixed * 95,
                "{rule} for {rate}: {chosen} against {fixed}"
            );
        }
    }
}

/// The first adapter of the coordinator, or of all devices, is pulled out for the rest of the run: whoever has another one
/// goes by that. Half of a second of holdover is long over at the end.
#[test]
fn the_clock_of_slots_outlives_an_adapter() {
    let text = |who: &str, adapter: u8, redundancy: &str| {
        format!(
            r#"
[run]
duration = "3s"
warm_up = "500ms"

[medium]
loss.fixed_power_dbm = -50

[[schedule]]
name = "loop"
cycle = "4ms"
beacon = {{ from = "controller", rate = "6M", every = 12, holdover = "500ms" }}
release = {{ min = "10us", high = "20us" }}
sync_error = "2us"
send = {{ rate = "24M", qos = true }}

[[group]]
name = "controller"
clock.drift_within_ppm = 20
{redundancy}
protocol.tdma.schedule = "loop"

[[group.adapter]]
channel = 149

[[group]]
name = "devices"
count = 4
clock.drift_within_ppm = 20
ap = "controller"
{redundancy}
protocol.tdma.schedule = "loop"

[[group.adapter]]
channel = 149

[[traffic]]
from = "devices"
to = "controller"
octets = 58
lifetime = "8ms"
pattern.periodic = {{ period = "4ms", phase.fixed = "2ms" }}

[[incident]]
at = "1s"
node = "{who}"
what = {{ adapter_gone = {adapter} }}
"#
        )
    };
    for who in ["controller", "devices"] {
        for adapter in [0, 1] {
            let r = go(&text(who, adapter, "redundancy = {}"));
            let (submitted, delivered) = (r.metrics["submitted"], r.metrics["delivered"]);
            // in the cycle in which it goes, and what is under way at the end
            assert!(
                submitted > 2_400.0 && delivered + 8.0 >= submitted,
                "{who} {adapter}: {r:?}"
            );
        }
    }
    let alone = go(&text("controller", 0, ""));
    assert!(alone.metrics["delivered_ratio"] < 0.5, "{alone:?}");
    let none = parse(&text("devices", 2, "redundancy = {}"), &[])
        .unwrap_err()
        .to_string();
    assert!(
        none.contains("there is no adapter 2 of \"devices\": it has 2, the first is 0"),
        "{none}"
    );
}

/// Protocols of a group, by their name on the page on overlays.
const PROTOCOLS: [(&str, &str); 12] = [
    ("`sender`", "protocol.sender = { rate = \"24M\" }"),
    ("`sink`", "protocol = \"sink\""),
    (
        "`beaconer`",
        "protocol.beaconer = { interval = \"51.2ms\", rate = \"6M\", send = { rate = \"24M\" } }",
    ),
    (
        "`edf`",
        "protocol.edf = { cost = \"200us\", deadline = \"4ms\", send = { rate = \"24M\" } }",
    ),
    (
        "`coordinator`",
        "protocol.coordinator = { attempt = \"220us\", answer = \"250us\", deadline = \"4ms\", send = { rate = \"24M\", tries = 1 } }",
    ),
    (
        "`responder`",
        "protocol.responder = { coordinator = \"other\", within = \"150us\", send = { rate = \"24M\", tries = 1 } }",
    ),
    ("`tdma`", "protocol.tdma.schedule = \"loop\""),
    (
        "`tbmac`",
        "protocol.tbmac = { payload_octets = 80, release = { high = \"80us\" }, send = { rate = \"24M\" } }",
    ),
    (
        "`tbmac` with `cells`",
        "protocol.tbmac = { payload_octets = 80, release = { high = \"80us\" }, cells = { radius_m = 20, channels = [36, 40, 44], retune = \"200us\" }, send = { rate = \"24M\" } }",
    ),
    (
        "`slotted`",
        "protocol.slotted = { slot = \"500us\", send = { rate = \"24M\" } }",
    ),
    (
        "`oneshot`",
        "protocol.oneshot = { to = \"other\", pace.after_beacon = \"20ms\", send = { rate = \"24M\" } }",
    ),
    (
        "`ibss`",
        "protocol.ibss = { window_tu = 10, send = { rate = \"24M\" } }",
    ),
];

const LAYERS: [&str; 3] = [
    "redundancy = {}",
    "ap = \"other\"\nroam = { access_points = [\"other\"] }",
    "rate_control = \"minstrel\"",
];

/// A node that runs `protocol` over `layers`, with somebody beside it who fits.
fn over(protocol: &str, layers: &[&str]) -> String {
    let other = match protocol.split([' ', '.']).nth(1) {
        Some("tdma") => protocol,
        Some("responder") => PROTOCOLS[4].1,
        _ => PROTOCOLS[2].1,
    };
    let (schedule, traffic) = match protocol.starts_with("protocol.tdma") {
        true => (
            "[[schedule]]\nname = \"loop\"\ncycle = \"4ms\"\nbeacon = { from = \"other\", rate = \"6M\", every = 4 }\nsync_error = \"2us\"\nsend = { rate = \"24M\" }",
            "[[traffic]]\nfrom = \"one\"\nto = \"other\"\noctets = 58\npattern.periodic = { period = \"4ms\" }",
        ),
        false => ("", ""),
    };
    let shared = layers.iter().find(|l| **l == LAYERS[0]).unwrap_or(&"");
    let layers = layers.join("\n");
    let second = "[[group.adapter]]\nchannel = 149";
    format!(
        "[run]\nduration = \"1s\"\n[medium]\nloss.fixed_power_dbm = -50\n{schedule}\n[[group]]\nname = \"other\"\n{shared}\n{other}\n\
         {second}\n[[group]]\nname = \"one\"\n{layers}\n{protocol}\n{second}\n{traffic}\n"
    )
}

/// The page on overlays tells what goes under what.
#[test]
fn what_goes_under_what() {
    let page = include_str!("../../../../../docs/src/overlays.md");
    let cells = |line: &str| -> Vec<String> { line.split('|').map(|c| c.trim().to_owned()).collect() };
    let rows: Vec<_> = page.lines().map(cells).collect();
    for (name, protocol) in PROTOCOLS {
        let row = rows.iter().find(|r| r.len() == 6 && r[1] == name);
        let row = row.unwrap_or_else(|| panic!("{name} is not on the page"));
        for (layer, told) in LAYERS.iter().zip(&row[2..]) {
            let text = over(protocol, &[layer]);
            let said = parse(&text, &[]).err().map(|e| e.to_string());
            match &told[..] {
                "yes" => assert_eq!(said, None, "{text}"),
                "no" => assert!(said.is_some_and(|e| e.contains("which goes with")), "{text}"),
                other => panic!("{name}: {other}"),
            }
        }
        let both = |a: usize, b: usize| parse(&over(protocol, &[LAYERS[a], LAYERS[b]]), &[]).is_ok();
        let [redundancy, roam, rates] = [0, 1, 2].map(|i| row[2 + i] == "yes");
        assert_eq!(both(0, 2), redundancy && rates, "{name}");
        assert_eq!(both(1, 2), roam && rates, "{name}");
        assert!(!both(0, 1), "{name}");
    }
}
