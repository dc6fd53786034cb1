//! `edf` above slots: what is said before a run holds, and what cannot be said is not.

use proptest::prelude::*;
use protocols::mac::tdma::schedule::SlotUse;

use super::*;

/// A controller that sends to two nodes, each flow with its octets, period, lifetime (0: none) and phase, in ms, and what is told of EDF.
fn loop_of(flows: &[(usize, u64, u64, u64)], cost_us: u64, deadline_ms: u64) -> String {
    let mut text = format!(
        r#"
[run]
duration = "2s"
warm_up = "400ms"
[medium]
loss.fixed_power_dbm = -50
[[schedule]]
name = "loop"
cycle = "10ms"
beacon = {{ from = "c", rate = "6M", every = 2 }}
release = {{ min = "10us", high = "20us" }}
sync_error = "2us"
send = {{ rate = "24M", qos = true }}
[[group]]
name = "c"
protocol.tdma = {{ schedule = "loop", edf = {{ cost = "{cost_us}us", deadline = "{deadline_ms}ms" }} }}
"#
    );
    for n in 0..3 {
        text += &format!("[[group]]\nname = \"n{n}\"\nap = \"c\"\nprotocol.tdma.schedule = \"loop\"\n");
    }
    for (to, period, lifetime, phase) in flows {
        let lifetime = match lifetime {
            0 => String::new(),
            ms => format!("lifetime = \"{ms}ms\"\n"),
        };
        text += &format!(
            "[[traffic]]\nfrom = \"c\"\nto = \"n{to}\"\noctets = 58\n{lifetime}pattern.periodic = {{ period = \"{period}ms\", phase = {{ random = \"{phase}ms\" }} }}\n"
        );
    }
    text
}

fn says(text: &str) -> Option<bool> {
    parse(text, &[]).unwrap().admission()[0].admitted
}

/// A frame for one node does not hold up one for another, whatever the order of their deadlines is.
#[test]
fn no_receiver_waits_for_another() {
    let flows = [0, 1, 2].map(|n| (n, 10, 10, 10));
    let text = loop_of(&flows, 150, 10);
    assert_eq!(says(&text), Some(true));
    for seed in 0..4 {
        let scenario = parse(&text, &[]).unwrap();
        let result = run(&scenario, seed, None, &AtomicBool::new(false), |_| {})
            .unwrap()
            .result;
        let waits: u64 = (result.traffic.iter())
            .map(|t| (t.submitted - t.delivered).saturating_sub(1))
            .sum();
        assert_eq!(waits, 0, "seed {seed}: {:?}", result.traffic);
    }
}

#[test]
fn what_cannot_be_told_is_not() {
    // two flows to one receiver
    assert_eq!(says(&loop_of(&[(0, 10, 10, 10), (0, 20, 20, 10)], 150, 10)), None);
    // a message comes while the one before waits
    assert_eq!(says(&loop_of(&[(0, 10, 15, 10)], 150, 10)), None);
    // more is asked than a slot takes
    assert_eq!(says(&loop_of(&[(0, 10, 10, 10)], 2_000, 10)), None);
    // what has no lifetime has the deadline
    let scenario = parse(&loop_of(&[(0, 10, 0, 10)], 150, 4), &[]).unwrap();
    assert_eq!(scenario.admission()[0].admitted, Some(true));
    let plan = scenario.plans().next().unwrap().1;
    let of_flow = plan.slots().filter(|s| matches!(s.owner, SlotUse::Flow { .. }));
    let starts: Vec<u64> = of_flow.map(|s| s.start.as_ns()).collect();
    assert!(starts.windows(2).all(|w| w[1] - w[0] < 4_000_000), "{starts:?}");
    assert!(
        starts[0] + 10_000_000 - starts[starts.len() - 1] < 4_000_000,
        "{starts:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    /// What is admitted misses nothing, at whatever moments messages come.
    #[test]
    fn what_is_admitted_above_slots_misses_nothing(
        flows in proptest::collection::vec((0usize..3, 1u64..5, 0u64..6, 0u64..10), 1..5),
        cost_us in 20u64..1_000,
        deadline_ms in 5u64..30,
        seed: u64,
    ) {
        let flows: Vec<_> = (flows.iter())
            .map(|(to, period, lifetime, phase)| (*to, period * 10, lifetime * 8, (*phase).max(1)))
            .collect();
        let text = loop_of(&flows, cost_us, deadline_ms);
        let Ok(scenario) = parse(&text, &[]) else {
            return Ok(());
        };
        if scenario.admission()[0].admitted == Some(true) {
            let result = run(&scenario, seed, None, &AtomicBool::new(false), |_| {}).unwrap().result;
            let waits: u64 = (result.traffic.iter()).map(|t| (t.submitted - t.delivered).saturating_sub(1)).sum();
            prop_assert_eq!(waits, 0, "{}\n{:?}", text, result.traffic);
        }
    }
}

/// A controller and eight devices, on a channel of their own; `faults` of all of them.
fn nine(controller: &str, device: &str, traffic: &str, faults: &str) -> String {
    format!(
        r#"
[run]
duration = "4s"
warm_up = "50ms"
[medium]
loss.fixed_power_dbm = -50
[[group]]
name = "c"
edca = true
{faults}
{controller}
[[group]]
name = "d"
count = 8
edca = true
{faults}
{device}
{traffic}
[[link]]
from = "d"
to = "c"
both_ways = true
data.fixed = 0
"#
    )
}

/// The host finds out after 100 ms that it has lost a status. The others do not wait for so long.
#[test]
fn a_lost_status_costs_hardly_a_message() {
    let flow = |from: &str, to: &str, ms: u32| {
        format!(
            "[[traffic]]\nfrom = \"{from}\"\nto = \"{to}\"\noctets = 58\nlifetime = \"{ms}ms\"\npattern.periodic = {{ period = \"{ms}ms\" }}\n"
        )
    };
    let send = "send = { rate = \"24M\", qos = true, queue = \"voice\", tries";
    let edf = format!(
        "protocol.edf = {{ cost = \"120us\", deadline = \"10ms\", no_backoff_aifsn = 2, {send} = 255 }} }}"
    );
    let coordinator = format!(
        "protocol.coordinator = {{ attempt = \"220us\", answer = \"250us\", deadline = \"4ms\", no_backoff_aifsn = 1, {send} = 1 }} }}"
    );
    let responder = format!(
        "protocol.responder = {{ coordinator = \"c\", within = \"150us\", no_backoff_aifsn = 2, {send} = 1 }} }}"
    );
    let both = flow("c", "d", 4) + &flow("d", "c", 4);
    for (name, controller, device, traffic) in [
        ("edf_silent", &*edf, "protocol = \"sink\"", flow("c", "d", 10)),
        ("polled_silent", &*coordinator, &*responder, both),
    ] {
        let of = |lost: &str| {
            let faults = format!("faults = {{ lost_confirm = {lost} }}");
            let result = go(&nine(controller, device, &traffic, &faults));
            let missed: u64 = result.traffic.iter().map(|t| t.submitted - t.delivered).sum();
            let all: u64 = result.traffic.iter().map(|t| t.submitted).sum();
            (missed, all, result.metrics[name])
        };
        let (missed, _, silent) = of("0");
        assert_eq!((missed, silent), (0, 0.0), "{name}");
        let (missed, all, silent) = of("0.01");
        assert!(silent > 10.0, "{name}: {silent}");
        assert!(missed * 1_000 < all, "{name}: {missed} of {all}");
    }
}
