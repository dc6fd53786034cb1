//! What does not fit is said before a run, and what fits arrives.

use super::*;

/// A controller and devices, with these protocols and flows.
fn two(controller: &str, devices: &str, count: u32, flows: &[(&str, &str, u32, u32)]) -> String {
    let mut text = format!(
        r#"
[run]
duration = "1s"
warm_up = "100ms"
[medium]
loss.fixed_power_dbm = -50
[[group]]
name = "c"
{controller}
[[group]]
name = "d"
count = {count}
placement.circle = {{ radius_m = 5 }}
{devices}
"#
    );
    for (from, to, octets, ms) in flows {
        text += &format!(
            "[[traffic]]\nfrom = \"{from}\"\nto = \"{to}\"\noctets = {octets}\nlifetime = \"{ms}ms\"\npattern.periodic = {{ period = \"{ms}ms\", phase.fixed = \"110ms\" }}\n"
        );
    }
    text
}

/// The only answer before a run, and whether all arrived.
fn answer(text: &str) -> (Option<bool>, String, bool) {
    let scenario = parse(text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let [answer] = scenario.admission() else {
        panic!("{:?}", scenario.admission());
    };
    let (admitted, reason) = (answer.admitted, answer.reason.clone().unwrap_or_default());
    let result = go(text);
    let all = result.traffic.iter().all(|t| t.delivered == t.submitted);
    (admitted, reason, all)
}

const POLLS: &str = "protocol.coordinator = { attempt = \"220us\", answer = \"250us\", deadline = \"20ms\", no_backoff_aifsn = 1, send = { rate = \"24M\", tries = 1 } }";

/// Devices that answer like this.
fn answers(within: &str, more: &str) -> String {
    format!(
        "protocol.responder = {{ coordinator = \"c\", within = \"{within}\"{more}, send = {{ rate = \"24M\", tries = 1 }} }}"
    )
}

#[test]
fn messages_that_are_too_long_are_errors() {
    let edf = "protocol.edf = { cost = \"1ms\", deadline = \"10ms\", send = { rate = \"24M\", tries = 9 } }";
    let pair = "redundancy = {}\nprotocol.sender = { rate = \"24M\" }\n[[group.adapter]]\nchannel = 149";
    let polls = &POLLS.replace("220us", "2ms").replace("250us", "2ms");
    let answers = &answers("900us", ", no_backoff_aifsn = 2");
    for (controller, devices, from, to, most, who) in [
        (edf, "protocol = \"sink\"", "c", "d", 1_574, "edf"),
        (pair, pair, "c", "d", 1_574, "redundancy"),
        (polls, answers, "c", "d", 1_508, "coordinator"),
        (polls, answers, "d", "c", 1_508, "responder"),
    ] {
        let text = |octets| {
            two(
                controller,
                devices,
                1,
                &[("c", "d", 58, 10), (from, to, octets, 20)][usize::from(from == "c")..],
            )
        };
        let sentence = parse(&text(most + 1), &[]).map(|_| ()).unwrap_err().to_string();
        let says = format!(
            "{who} holds MSDUs of at most {most} octets, these have {}",
            most + 1
        );
        assert!(sentence.contains(&says), "{sentence}");
        let result = go(&text(most));
        assert!(
            result
                .traffic
                .iter()
                .all(|t| t.delivered >= t.submitted - 1 && t.submitted > 20),
            "{who}: {:?}",
            result.traffic
        );
    }
}

/// With more nodes than a coordinator had places for once.
#[test]
fn many_nodes_are_polled() {
    let text = two(
        POLLS,
        &answers("150us", ", no_backoff_aifsn = 2"),
        40,
        &[("c", "d", 58, 20)],
    );
    assert_eq!(answer(&text), (Some(true), String::new(), true));
}

/// An answer has to begin within the time that it is told.
#[test]
fn answers_need_time_to_begin() {
    for (within, more, good) in [
        ("150us", "", false),
        ("213us", "", true),
        ("30us", ", no_backoff_aifsn = 2", false),
        ("80us", ", no_backoff_aifsn = 2", true),
    ] {
        let text = two(
            POLLS,
            &answers(within, more),
            1,
            &[("c", "d", 58, 10), ("d", "c", 58, 20)],
        );
        let text = text.replace("\"220us\", answer = \"250us\"", "\"1500us\", answer = \"1500us\"");
        let (admitted, reason, all) = answer(&text);
        assert_eq!(admitted, Some(good), "{within}{more}: {reason}");
        // with a backoff few are so late
        assert!(all == good || more.is_empty(), "{within}{more}");
        assert!(good || reason.contains("an answer may begin"), "{reason}");
    }
}

/// Without beacons for longer than that nobody sends.
#[test]
fn a_holdover_is_two_beacons_at_least() {
    let scheduled = "protocol.tdma.schedule = \"loop\"";
    let text = |every: u32| {
        format!(
            "[[schedule]]\nname = \"loop\"\ncycle = \"4ms\"\nbeacon = {{ from = \"c\", rate = \"6M\", every = {every} }}\nsync_error = \"2us\"\nsend = {{ rate = \"24M\" }}\n"
        ) + &two(scheduled, scheduled, 2, &[("d", "c", 58, 8)])
    };
    parse(&text(125), &[]).unwrap();
    let sentence = parse(&text(126), &[]).map(|_| ()).unwrap_err().to_string();
    assert!(
        sentence.contains("a beacon each 504ms, and holdover is 1s"),
        "{sentence}"
    );
}

/// What a station has for all goes to its access point, in slots for that.
#[test]
fn a_station_has_slots_for_what_is_for_all() {
    let scheduled = "protocol.tdma.schedule = \"loop\"";
    let slots = "[[schedule]]\nname = \"loop\"\ncycle = \"4ms\"\nsend = { rate = \"24M\" }\n";
    let station = format!("ap = \"c\"\n{scheduled}");
    let text = slots.to_owned()
        + &two(
            scheduled,
            &station,
            2,
            &[("d", "broadcast", 58, 8), ("d", "c", 58, 8)],
        );
    let scenario = parse(&text, &[]).unwrap();
    assert_eq!(scenario.admission()[0].admitted, Some(true));
    let result = go(&text);
    let long = parse(&text.replace("octets = 58", "octets = 1575"), &[]);
    let sentence = long.map(|_| ()).unwrap_err().to_string();
    assert!(
        sentence.contains("a slot holds MSDUs of at most 1574 octets, these have 1575"),
        "{sentence}"
    );
    for t in &result.traffic {
        assert!(t.submitted > 200 && t.delivered >= t.submitted - 2, "{t:?}");
    }
}

/// A host that takes longer than its rounds know is told of, with what to give.
#[test]
fn rounds_know_their_hosts() {
    let text = |release: &str| {
        format!(
            r#"
[run]
duration = "4s"
warm_up = "3s"
[medium]
loss.fixed_power_dbm = -50
[[group]]
name = "hosts"
count = 4
host = "table5"
protocol.tbmac = {{ payload_octets = 60{release}, send = {{ rate = "24M" }} }}
[[traffic]]
from = "hosts"
to = "broadcast"
octets = 58
pattern.periodic = {{ period = "40ms" }}
"#
        )
    };
    let scenario = parse(&text(""), &[]).unwrap();
    let [answer] = scenario.admission() else {
        panic!("{:?}", scenario.admission());
    };
    let reason = answer.reason.as_ref().unwrap();
    assert_eq!((answer.test, answer.admitted), ("rounds", Some(false)));
    let release = reason.split("give ").last().unwrap();
    let told = text(&format!(", {release}"));
    assert_eq!(parse(&told, &[]).unwrap().admission(), []);
    let late = |text: &str| go(text).metrics["tbmac_overruns"];
    assert!(late(&text("")) > 10.0 && late(&told) <= 1.0);
}

/// So do slots: what they are told is either what their hosts take, or told of with what to give.
#[test]
fn slots_know_their_hosts() {
    let text = |host: &str, release: &str| {
        format!(
            r#"
[run]
duration = "2s"
[medium]
loss.fixed_power_dbm = -50
[[group]]
name = "a"
count = 2
host = "{host}"
protocol.tdma = {{ schedule = "s" }}
[[group]]
name = "b"
protocol = "sink"
[[schedule]]
name = "s"
cycle = "10ms"
{release}
send = {{ rate = "24M" }}
[[traffic]]
from = "a"
to = "b"
octets = 58
pattern.periodic = {{ period = "10ms" }}
"#
        )
    };
    let answers = |host: &str, release: &str| parse(&text(host, release), &[]).unwrap().admission().to_vec();
    let [slots] = &answers("table5", "")[..] else {
        panic!("not measured")
    };
    assert_eq!((slots.test, slots.admitted), ("slots", Some(true)));
    let [_, told] = &answers("table5", "release = { high = \"2us\" }")[..] else {
        panic!("not told of")
    };
    assert_eq!((told.test, told.admitted), ("release", Some(false)));
    let right = told.reason.as_ref().unwrap().split("give ").last().unwrap();
    assert_eq!(answers("table5", right).len(), 1, "{right}");
    assert_eq!(answers("ideal", right)[1].test, "release", "they begin too early");
    assert_eq!(answers("ideal", "release = { high = \"2us\" }").len(), 1);
}

/// A copy that comes late is a copy, and so are those of many.
#[test]
fn copies_count_once_however_late_and_of_however_many() {
    let pair = "redundancy = {}\nprotocol.sender = { rate = \"24M\" }\n[[group.adapter]]\nchannel = 149";
    let sink = "redundancy = {}\nprotocol = \"sink\"\n[[group.adapter]]\nchannel = 149";
    let flow =
        |count: u32, ms: u32| two(sink, pair, count, &[("d", "c", 58, ms)]).replace("lifetime", "# lifetime");
    let noise = "[[noise]]\nat = [1, 1]\ntx_dbm = 16\non = \"700ms\"\noff = \"300ms\"\n";
    for text in [flow(1, 1_000).replace("\"1s\"", "\"12s\"") + noise, flow(80, 100)] {
        let result = go(&text);
        assert!(result.metrics["copies_dropped"] > 8.0);
        for t in &result.traffic {
            assert!(t.delivered <= t.submitted, "{t:?}");
        }
    }
}

/// Where each slot has its message, those that piled up before the clock was trusted would be at the edge of their lifetime for good: what is
/// too late takes no slot, nothing comes late, and shared slots work off what is left.
#[test]
fn what_is_too_late_takes_no_slot() {
    let text = r#"
[run]
duration = "2s"
warm_up = "500ms"
[medium]
loss.fixed_power_dbm = -50
[[schedule]]
name = "loop"
cycle = "2ms"
beacon = { from = "c", rate = "6M", every = 12 }
send = { rate = "24M", qos = true }
left_on = { reception = false }
[[group]]
name = "c"
host = "table5"
clock.drift_within_ppm = 20
protocol.tdma = { schedule = "loop" }
[[group]]
name = "d"
count = 2
host = "table5"
clock.drift_within_ppm = 20
ap = "c"
protocol.tdma = { schedule = "loop" }
[[traffic]]
from = "d"
to = "c"
octets = 1500
lifetime = "6ms"
pattern.periodic = { period = "2ms", phase.fixed = "1306us" }
"#;
    let result = go(text);
    let t = &result.traffic[0];
    assert!(t.delivered + 10 >= t.submitted && t.submitted > 1_400, "{t:?}");
    assert!(
        result.metrics["latency_max_us"] <= 6_000.0,
        "{}",
        result.metrics["latency_max_us"]
    );
    let lives = ["traffic.0.lifetime=16ms", "traffic.1.lifetime=16ms"];
    let scenario = parse(include_str!("../../../../../scenarios/tdma.toml"), &lives).unwrap();
    let run = run(&scenario, 1, None, &AtomicBool::new(false), |_| {}).unwrap();
    let p99_us = run.result.metrics["latency_p99_us"];
    assert!(p99_us < 3_000.0, "{p99_us}");
}
