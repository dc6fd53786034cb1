//! `[[schedule]]`, `tdma`, and flows from one node to each of a group.

use super::*;
use crate::run::Fate;

const SLOTS: &str = r#"
[run]
duration = "1s"
warm_up = "300ms"

[medium]
loss.fixed_power_dbm = -50

[[schedule]]
name = "loop"
cycle = "4ms"
beacon = { from = "controller", rate = "6M", every = 12 }
release = { min = "10us", high = "20us" }
send = { rate = "24M", qos = true }

[[group]]
name = "controller"
clock.drift_within_ppm = 20
protocol.tdma.schedule = "loop"

[[group]]
name = "devices"
count = 8
clock.drift_within_ppm = 20
ap = "controller"
protocol.tdma = { schedule = "loop", hold_back = false }

[[group]]
name = "stranger"
protocol.sender = { rate = "24M" }

[[traffic]]
from = "controller"
to = "devices"
octets = 58
lifetime = "4ms"
pattern.periodic = { period = "4ms" }

[[traffic]]
from = "devices"
to = "controller"
octets = 58
lifetime = "4ms"
pattern.periodic = { period = "4ms", phase.fixed = "1ms" }
"#;

#[test]
fn every_message_has_its_slot() {
    let s = parse(SLOTS, &[]).unwrap();
    assert_eq!((s.flows(), s.flow_ends()), (16, vec![8, 16]));
    assert!(s.sends_without_ack(), "beacons");
    let r = go(SLOTS);
    // what is handed down last may still wait for its slot
    for entry in &r.traffic {
        let waits = entry.submitted - entry.delivered;
        assert!(entry.submitted >= 1_400 && waits <= 8, "{entry:?}");
    }
    for group in &r.groups[..2] {
        let lost = |f| group.confirms.as_ref().unwrap().get(&f).copied().unwrap_or(0);
        assert_eq!(
            lost(Fate::DataLost) + lost(Fate::AckLost) + lost(Fate::Refused),
            0,
            "{group:?}"
        );
        assert_eq!(group.counters.rx_errors, 0, "nothing collides");
    }
    let longest = r.metrics["latency_max_us"];
    assert!(longest < 4_100.0, "{longest}");
}

/// Slots are long enough for RTS and CTS, the exchange begins in time with its RTS, and who watches reckons with it.
#[test]
fn rts_goes_ahead_in_slots_that_leave_it_on() {
    let asks = SLOTS.replacen("qos = true }", "qos = true, rts = true }", 1);
    let said = parse(&asks, &[]).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("add left_on = { rts = true }"), "{said}");
    // with room for EIFS these slots did not fit
    let on = "cycle = \"4ms\"\nleft_on = { rts = true, carrier_sense = false }\nwatch = true";
    // hosts that take no time are on the air when they wake up
    let asks = asks.replacen(
        "min = \"10us\", high = \"20us\"",
        "min = \"0us\", high = \"10us\"",
        1,
    );
    let r = go(&asks.replacen("cycle = \"4ms\"", on, 1));
    for entry in &r.traffic {
        let waits = entry.submitted - entry.delivered;
        assert!(entry.submitted >= 1_400 && waits <= 8, "{entry:?}");
    }
    let late =
        ["slots_late", "slots_overran", "slots_outside", "confirms_expired"].map(|name| r.metrics[name]);
    assert_eq!(late, [0.0; 4]);
    // a CTS and an ACK for each message from the devices
    let (answers, messages) = (r.groups[0].counters.tx_responses, r.traffic[1].delivered);
    assert!(answers >= 2 * messages, "{answers} {messages}");
}

/// A frame that closely follows another one of its node draws from the contention window where that is left on, and its slot has room for it.
#[test]
fn slots_hold_the_contention_window_that_is_left_on() {
    let slow = SLOTS
        .replace("\"4ms\"", "\"10ms\"")
        .replacen("every = 12", "every = 4", 1);
    // hosts that take no time are on the air when they wake up
    let slow = slow.replacen(
        "min = \"10us\", high = \"20us\"",
        "min = \"0us\", high = \"10us\"",
        1,
    );
    let with = |key: &str| slow.replacen("cycle", &format!("sync_error = \"2us\"\n{key}\ncycle"), 1);
    let guard_us = |text: &str| parse(text, &[]).unwrap().schedules[0].guard().as_ns() / 1_000;
    let on = with("left_on = { backoff = true }");
    let edca = on.replace("clock.drift", "edca = true\nclock.drift");
    let patient = edca.replace("clock.drift", "queue.voice = { aifsn = 7 }\nclock.drift");
    for (text, window_us) in [(&with(""), 0), (&on, 15 * 9), (&edca, 3 * 9), (&patient, 3 * 9)] {
        let r = go(text);
        assert_eq!(r.admission[0].admitted, Some(true), "{:?}", r.admission);
        let late = ["slots_late", "slots_lost", "confirms_expired"].map(|name| r.metrics[name]);
        assert_eq!(late, [0.0; 3], "{text}");
        for entry in &r.traffic {
            let waits = entry.submitted - entry.delivered;
            assert!(entry.submitted >= 500 && waits <= 8, "{entry:?}");
        }
        assert_eq!(guard_us(text), 12 + window_us);
    }
    let cycle_us = |text: &str| {
        let s = parse(text, &[]).unwrap();
        let slots: Vec<_> = s.plans().next().unwrap().1.slots().copied().collect();
        slots[2].start.less(slots[1].start).as_ns() / 1_000
    };
    // the AIFS of the queue, and not that of the schedule
    assert_eq!(cycle_us(&patient), cycle_us(&edca) + 5 * 9);
}

/// What an adapter cannot take back is on the air when strangers leave it free, and counted by who sent it and by who hears it.
#[test]
fn frames_that_are_not_taken_back_are_counted() {
    let watched = SLOTS.replacen("cycle = \"4ms\"", "cycle = \"4ms\"\nwatch = true", 1);
    let stranger =
        "[[foreign]]\nat = [5, 5]\nwhat.load = { octets = 500, mean = \"3.3ms\", rate = \"6M\" }\n";
    // hosts that take no time are on the air when they wake up
    let punctual = watched.replacen(
        "min = \"10us\", high = \"20us\"",
        "min = \"0us\", high = \"10us\"",
        1,
    );
    let watched = format!("{punctual}{stranger}");
    let of = |text: &str| {
        let r = go(text);
        ["slots_late", "slots_overran", "slots_outside"].map(|name| r.metrics[name])
    };
    let [late, overran, outside] = of(&watched);
    assert!(
        late > 100.0 && (overran, outside) == (0.0, 0.0),
        "{late} {overran} {outside}"
    );
    // the controller's are still taken back
    let kept = "ap = \"controller\"\ntakes_back = false";
    let [fewer, overran, outside] = of(&watched.replace("ap = \"controller\"", kept));
    assert!(
        fewer < late && overran > 50.0 && outside > 50.0,
        "{fewer} {overran} {outside}"
    );
    let error = parse(
        &SLOTS.replacen("cycle = \"4ms\"", "cycle = \"4ms\"\nseen_within = \"9us\"", 1),
        &[],
    );
    let error = error.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("add watch = true"), "{error}");
}

/// Without beacons the host clocks are network time: exact ones do, drifting ones do not.
#[test]
fn without_beacons_clocks_must_be_exact() {
    let beacon = "beacon = { from = \"controller\", rate = \"6M\", every = 12 }\n";
    let exact = SLOTS
        .replace(beacon, "")
        .replace("clock.drift_within_ppm = 20\n", "");
    let errors = |text: &str| -> u64 { go(text).groups.iter().map(|g| g.counters.rx_errors).sum() };
    assert_eq!(errors(&exact), 0);
    let drifting = exact.replacen("count = 8\n", "count = 8\nclock.drift_within_ppm = 1000\n", 1);
    assert!(errors(&drifting) > 0);
}

#[test]
fn slots_are_as_long_as_the_slowest_ack_needs() {
    let slow = SLOTS.replace(
        "name = \"controller\"\n",
        "name = \"controller\"\nbasic_rates = [\"6M\"]\n",
    );
    let fits = |text: &str, cycle: &str| {
        parse(
            &text.replace("\"4ms\"\nbeacon", &format!("{cycle:?}\n{DEAF}beacon")),
            &[],
        )
    };
    const DEAF: &str = "left_on = { carrier_sense = false }\n";
    // 16 slots and a beacon; an ACK takes 44 us instead of 28 us at 6 Mb/s, as that of EIFS does where the carrier is sensed
    assert!(fits(SLOTS, "2500us").is_ok());
    assert!(fits(&slow, "2500us").is_err());
    assert!(fits(&slow, "2700us").is_ok());
}

#[test]
fn broken_schedules_get_one_sentence() {
    let many = format!("count = {}", 130);
    let held = format!("count = {}", 65);
    all_broken(
        SLOTS,
        &[
            (
                "cycle = \"4ms\"",
                "cycle = \"1ms\"",
                &["11:9", "too short", "the shortest is"],
            ),
            ("cycle = \"4ms\"", "cycle = \"0s\"", &["11:9", "longer than 0s"]),
            (
                "cycle = \"4ms\"",
                "cycles = \"4ms\"",
                &["unknown key `cycles`", "did you mean `cycle`?"],
            ),
            ("cycle = \"4ms\"\n", "", &["missing field `cycle`"]),
            (
                "name = \"loop\"\n",
                "name = \"lop\"\n",
                &["19:26", "no schedule \"loop\"", "did you mean \"lop\"?"],
            ),
            (
                "{ from = \"controller\", rate",
                "{ from = \"stranger\", rate",
                &["12:19", "\"stranger\" does not run \"loop\""],
            ),
            (
                "{ from = \"controller\", rate",
                "{ from = \"devices\", rate",
                &["12:19", "group of 8 nodes"],
            ),
            (
                "rate = \"6M\"",
                "rate = \"11M\"",
                &["12:40", "802.11a has no rate 11M", "6M, 9M"],
            ),
            (
                "every = 12",
                "every = 0",
                &["12:54", "0 is not a whole number from 1 to 65535"],
            ),
            (
                "high = \"20us\"",
                "high = \"5us\"",
                &["13:34", "5us is less than the smallest release, 10us"],
            ),
            (
                "high = \"20us\"",
                "hi = \"20us\"",
                &["unknown key `hi`", "`high`"],
            ),
            (
                "{ rate = \"24M\", qos = true }",
                "{ rate = \"11M\", qos = true }",
                &["14:17", "no rate 11M"],
            ),
            (
                "qos = true }",
                "qos = true, adapter = 1 }",
                &["14:46", "no adapter 1", "only adapter 0"],
            ),
            (
                "{ schedule = \"loop\", hold_back",
                "{ schedule = \"lop\", hold_back",
                &["26:30", "no schedule \"lop\"", "did you mean \"loop\"?"],
            ),
            (
                "hold_back = false",
                "hold = false",
                &["unknown key `hold`", "`hold_back`"],
            ),
            ("count = 8", &many, &["at most 128 slots", "130"]),
            ("count = 8", &held, &["at most 64 frames"]),
            (
                "to = \"devices\"\noctets = 58",
                "to = \"devices\"\noctets = 2000",
                &["33:8", "at most 1574 octets", "2000"],
            ),
            (
                "ap = \"controller\"\n",
                "ap = \"controller\"\nphy = \"g\"\n",
                &["10:8", "different PHYs"],
            ),
            (
                "to = \"devices\"\n",
                "to = \"controller\"\n",
                &["would send to itself"],
            ),
        ],
    );
    let twice = format!("{SLOTS}\n[[schedule]]\nname = \"loop\"\ncycle = \"4ms\"\nsend.rate = \"24M\"\n");
    let sentence = parse(&twice, &[]).unwrap_err().to_string();
    assert!(sentence.contains("another schedule \"loop\""), "{sentence}");
    let idle = format!("{SLOTS}\n[[schedule]]\nname = \"idle\"\ncycle = \"4ms\"\nsend.rate = \"24M\"\n");
    let sentence = parse(&idle, &[]).unwrap_err().to_string();
    assert!(sentence.contains("no group runs \"idle\""), "{sentence}");
    let silent = SLOTS
        .replace("from = \"devices\"", "from = \"stranger\"")
        .replace(
            "from = \"controller\"\nto = \"devices\"",
            "from = \"stranger\"\nto = \"devices\"",
        );
    let sentence = parse(&silent, &[]).unwrap_err().to_string();
    assert!(
        sentence.contains("no [[traffic]] from the groups that run it"),
        "{sentence}"
    );
}

/// The same cell with an access point that knows nothing of slots: its beacons are what the clocks are compared by.
#[test]
fn clocks_can_follow_the_beacons_of_others() {
    let other = "every = 12, reference = \"other\" }";
    let text = SLOTS.replacen("every = 12 }", other, 1)
        + "\n[[group]]\nname = \"other\"\nprotocol.beaconer = { interval = \"102.4ms\", rate = \"6M\", send = { rate = \"6M\" } }\n";
    // a line through its beacons needs some of them
    let text = text.replacen("warm_up = \"300ms\"", "warm_up = \"500ms\"", 1);
    let result = go(&text);
    assert!(result.metrics["delivered_ratio"] > 0.98, "{:?}", result.metrics);
    let alone = text.replacen(
        "protocol.beaconer = { interval = \"102.4ms\", rate = \"6M\", send = { rate = \"6M\" } }",
        "protocol.sender = { rate = \"6M\" }",
        1,
    );
    let said = parse(&alone, &[]).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("a reference runs beaconer"), "{said}");
    let joined = text.replacen("cycle = \"4ms\"", "cycle = \"4ms\"\njoin = {}", 1);
    let said = parse(&joined, &[]).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("keep one of them"), "{said}");
    let deaf = text.replacen("cycle = \"4ms\"", "cycle = \"4ms\"\nleft_on.reception = false", 1);
    let said = parse(&deaf, &[]).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("nobody hears the reference"), "{said}");
    // the neighbour's beacons hold up what is not taken back; hosts that take no time are on the air when they wake up
    let kept = text
        .replacen(
            "min = \"10us\", high = \"20us\"",
            "min = \"0us\", high = \"10us\"",
            1,
        )
        .replacen("cycle = \"4ms\"", "cycle = \"4ms\"\nwatch = true", 1)
        .replacen("count = 8\n", "count = 8\ntakes_back = false\n", 1);
    let counted = |text: &str| ["slots_outside", "slots_told"].map(|name| go(text).metrics[name]);
    assert_eq!(counted(&kept.replacen("takes_back = false\n", "", 1)), [0.0, 0.0]);
    let [outside, told] = counted(&kept);
    assert!(outside > 0.0 && told > 0.0, "{outside} {told}");
    // nobody hears it: the clock of the controller is the time, and no other one can be trusted
    let far = text.replacen("name = \"other\"", "name = \"other\"\nchannel = 149", 1);
    let far = go(&far);
    let of = |n: usize| far.traffic[n].delivered;
    assert!(of(0) > 900 && of(1) == 0, "{} {}", of(0), of(1));
}

/// A second schedule, for a group of its own.
fn beside(channel: &str) -> String {
    let other = "[[schedule]]\nname = \"other\"\ncycle = \"4ms\"\nsend = { rate = \"24M\" }\n\n[[schedule]]\nname = \"loop\"";
    let group = "\n[[group]]\nname = \"a\"\nCH\nprotocol.tdma.schedule = \"other\"\n\n[[group]]\nname = \"b\"\nCH\nprotocol.sender = { rate = \"24M\" }\n\n[[traffic]]\nfrom = \"a\"\nto = \"b\"\noctets = 58\npattern.periodic = { period = \"4ms\" }\n";
    SLOTS.replacen("[[schedule]]\nname = \"loop\"", other, 1) + &group.replace("CH", channel)
}

#[test]
fn two_schedules_on_one_channel_are_refused() {
    let error = parse(&beside(""), &[]).map(|_| ()).unwrap_err().to_string();
    for part in [
        "test.toml:15:8",
        "\"loop\" is on a channel of \"other\" (line 10)",
    ] {
        assert!(error.contains(part), "{error}");
    }
    parse(&beside("channel = 149"), &[]).unwrap_or_else(|e| panic!("{e}"));
    let pairs = |a: &str| {
        format!(
            "loss.pairs = [{{ a = \"a\", b = \"b\", db = 60 }}, {{ a = \"{a}\", b = \"controller\", db = 60 }}]"
        )
    };
    let apart = beside("").replace("loss.fixed_power_dbm = -50", &pairs("devices.0"));
    parse(&apart, &[]).unwrap_or_else(|e| panic!("{e}"));
    let meet = beside("").replace("loss.fixed_power_dbm = -50", &pairs("a"));
    assert!(parse(&meet, &[]).is_err());
}
