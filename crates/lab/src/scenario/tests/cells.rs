//! `tbmac` and `slotted`.

use super::*;

const CELL: &str = r#"
[run]
duration = "1s"

[[group]]
name = "hosts"
count = 3
phy = "b"
channel = 1
clock = {}
protocol.tbmac = { payload_octets = 20, asks = 4, release = { min = "5us", high = "80us" }, send = { rate = "2M" } }

[[group]]
name = "ap"
protocol.slotted = { slot = "256us", beacon_every = 400, send = { rate = "54M" } }
"#;

#[test]
fn mistakes_are_named() {
    parse(CELL, &[]).unwrap();
    let cases: &[Case<'_>] = &[
        ("asks = 4", "asks = 9", &["a contention period has 1 to 8 slots"]),
        (
            "payload_octets = 20",
            "payload_octets = 2000",
            &["payloads of 1566 octets at most"],
        ),
        (
            "high = \"80us\"",
            "high = \"4us\"",
            &["4us is less than the smallest release, 5us"],
        ),
        (
            "asks = 4",
            "asks = 1, patience = 0",
            &["would collide in all rounds"],
        ),
        ("clock = {}", "clock = { drift_ppm = 3 }", &["know the time"]),
        ("\"256us\"", "\"0s\"", &["slot"]),
        (
            "beacon_every = 400",
            "beacon_every = 1",
            &["beacon_every is 2 or more"],
        ),
        (
            "beacon_every = 400",
            "guard = \"256us\"",
            &["a guard is shorter than its slot of 256us"],
        ),
        ("\"54M\"", "\"55M\"", &["rate"]),
    ];
    all_broken(CELL, cases);
    for enough in ["asks = 1", "asks = 2, patience = 0"] {
        let text = CELL.replace("asks = 4", enough);
        parse(&text, &[]).unwrap_or_else(|e| panic!("{enough}: {e}"));
    }
}

/// What the leaky bucket counts is in the result: with a guard that the host often misses, slots are lost, and their frames go later.
#[test]
fn lost_slots_and_frames_that_went_later_are_counted() {
    let run = |guard: &str| {
        let text = format!(
            "[run]\nduration = \"2s\"\n\n[[group]]\nname = \"ap\"\nhost = \"table5\"\nprotocol.slotted = {{ slot = \"500us\", {guard} \
             send = {{ rate = \"54M\", ack = false, tries = 1 }} }}\n\n[[group]]\nname = \"sta\"\nap = \"ap\"\nprotocol = \"sink\"\n\n\
             [[traffic]]\nfrom = \"ap\"\nto = \"sta\"\noctets = 100\npattern.periodic = {{ period = \"2ms\" }}\n"
        );
        let m = go(&text).metrics;
        ["slots_released", "slots_lost", "slots_carried"].map(|name| m[name])
    };
    let [all, none, nor] = run("");
    assert!(
        (999.0..=1001.0).contains(&all) && none == 0.0 && nor == 0.0,
        "{all} {none} {nor}"
    );
    let [released, lost, carried] = run("guard = \"3us\",");
    println!("{released} {lost} {carried}");
    assert!(carried > 0.0 && lost >= carried, "{lost} {carried}");
    assert!(
        (all - released).abs() <= 2.0,
        "all go in the end: {released} of {all}"
    );
}

#[test]
fn a_slot_has_room_for_the_longest_frame() {
    let flow = "\n[[traffic]]\nfrom = \"ap\"\nto = \"broadcast\"\noctets = 1000\npattern.periodic = { period = \"4ms\" }\n";
    let sends = CELL.replace("rate = \"54M\" }", "rate = \"54M\", broadcast_rate = \"54M\" }") + flow;
    parse(&sends, &[]).unwrap_or_else(|e| panic!("{e}"));
    // 20 us of preamble and 39 symbols
    all_broken(
        &sends,
        &[(
            "\"256us\"",
            "\"175us\"",
            &["a slot of 175us: the shortest is 176us"],
        )],
    );
    parse(&sends.replace("\"256us\"", "\"176us\""), &[]).unwrap_or_else(|e| panic!("{e}"));
}

/// Hosts that do not agree on the rounds hear each other at the wrong time, and nobody gets a slot.
#[test]
fn one_cell_has_one_kind_of_rounds_and_a_slot_for_each_host() {
    let two = |more: &str, payload: &str| {
        let group = CELL[CELL.find("[[group]]").unwrap()..CELL.find("[[group]]\nname = \"ap\"").unwrap()]
            .replace("hosts", "others");
        let group = group.replace("count = 3", more);
        CELL.to_owned() + &group.replace("payload_octets = 20", payload)
    };
    parse(&two("count = 13", "payload_octets = 20"), &[]).unwrap_or_else(|e| panic!("{e}"));
    let says = |text: &str| parse(text, &[]).map(|_| ()).unwrap_err().to_string();
    let differ = says(&two("count = 13", "payload_octets = 30"));
    assert!(
        differ.contains("\"others\" and \"hosts\" share a cell"),
        "{differ}"
    );
    let many = says(&two("count = 14", "payload_octets = 20"));
    assert!(many.contains("16 slots") && many.contains("17 hosts"), "{many}");
    let elsewhere = two("count = 16", "payload_octets = 30").replacen("channel = 1\n", "channel = 6\n", 1);
    parse(&elsewhere, &[]).unwrap_or_else(|e| panic!("{e}"));
}

const CELLS: &str = include_str!("../../../../../scenarios/cells.toml");

#[test]
fn cells_that_cannot_be_are_told() {
    for (from, to, says) in [
        ("radius_m = 40", "radius_m = 0.5", "1m at least"),
        (
            "channels = [1, 6, 11]",
            "channels = [1, 6, 6]",
            "two are the same",
        ),
        (
            "channels = [1, 6, 11]",
            "channels = [1, 6, 36]",
            "not all of these channels",
        ),
        ("channels = [1, 6, 11]", "channels = [1, 6]", "3"),
    ] {
        let said = broken(CELLS, from, to);
        assert!(said.contains(says), "{to}: {said}");
    }
}

/// The robot is heard at the desk, and the desk by the robot, from its own cell, from the next one, and from the third.
#[test]
fn a_robot_walks_through_three_cells() {
    let delivered = |seconds: u64| {
        let s = parse(CELLS, &[&format!("duration={seconds}s")]).unwrap();
        let mut world = s.build(1);
        world.run_until(seconds * 1_000_000_000);
        [world.flow(0).delivered, world.flow(1).delivered]
    };
    // borders are at 34.6 m, after 17.6 s, and at 103.9 m, after 52.3 s
    let (first, second, third) = (delivered(17), delivered(52), delivered(69));
    assert!(first.iter().all(|n| *n >= 160), "{first:?}");
    for flow in 0..2 {
        let over_the_border = second[flow] - first[flow];
        assert!(over_the_border >= 330, "{first:?} {second:?}");
        assert!(third[flow] - second[flow] >= 155, "{second:?} {third:?}");
    }
}

/// A channel is as wide as the widest rate on it.
#[test]
fn channels_are_as_wide_as_their_rates() {
    use frame::rate::Width;
    let wide = CELL
        .replace("rate = \"54M\"", "rate = \"mcs5/40\"")
        .replace("name = \"ap\"", "name = \"ap\"\nphy = \"n5\"");
    let (narrow, wide) = (parse(CELL, &[]).unwrap(), parse(&wide, &[]).unwrap());
    assert_eq!([2412, 5180].map(|mhz| narrow.width(mhz)), [Width::Mhz20; 2]);
    assert_eq!(
        [2412, 5180].map(|mhz| wide.width(mhz)),
        [Width::Mhz20, Width::Mhz40]
    );
    assert_eq!((wide.nodes(), wide.radios()), (4, 4));
}

/// A message that no slot of its host has room for would be dropped without a word.
#[test]
fn a_message_fits_its_slot() {
    let flow = |octets: u32| {
        format!(
            "{CELL}\n[[traffic]]\nfrom = \"hosts\"\nto = \"broadcast\"\noctets = {octets}\npattern.periodic = {{ period = \"50ms\" }}\n"
        )
    };
    // with LLC and SNAP
    parse(&flow(28), &[]).unwrap_or_else(|e| panic!("{e}"));
    let sentence = parse(&flow(29), &[]).map(|_| ()).unwrap_err().to_string();
    let says = "a message of 21 octets (without LLC/SNAP) does not fit a slot of \"hosts\", whose payload_octets is 20";
    assert!(sentence.contains(says), "{sentence}");
}
