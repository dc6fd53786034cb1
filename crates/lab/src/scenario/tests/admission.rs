//! What is said before a run: slots by period, lifetime and losses, and the tests of EDF.

use super::*;

/// One flow of 2 ms among 39 of 20 ms.
const MIXED: &str = r#"
[run]
duration = "1s"
warm_up = "300ms"

[medium]
loss.fixed_power_dbm = -50

[[schedule]]
name = "loop"
cycle = "20ms"
beacon = { from = "controller", rate = "6M", every = 2 }
release = { min = "10us", high = "20us" }
send = { rate = "24M", qos = true }

[[group]]
name = "controller"
protocol.tdma.schedule = "loop"

[[group]]
name = "fast"
ap = "controller"
protocol.tdma.schedule = "loop"

[[group]]
name = "slow"
count = 39
ap = "controller"
protocol.tdma.schedule = "loop"

[[traffic]]
from = "fast"
to = "controller"
octets = 58
lifetime = "2ms"
pattern.periodic = { period = "2ms" }

[[traffic]]
from = "slow"
to = "controller"
octets = 58
lifetime = "20ms"
pattern.periodic = { period = "20ms" }
"#;

/// One node that sends three flows by their deadlines.
const DEADLINES: &str = r#"
[run]
duration = "1s"

[medium]
loss.fixed_power_dbm = -50

[[group]]
name = "controller"
protocol.edf = { cost = "200us", deadline = "4ms", no_backoff_aifsn = 2, send = { rate = "24M", qos = true } }

[[group]]
name = "devices"
count = 3
protocol = "sink"

[[link]]
from = "controller"
to = "devices"
data.fixed = 0.1

[[traffic]]
from = "controller"
to = "devices"
octets = 58
pattern.periodic = { period = "4ms" }
"#;

fn said(text: &str) -> (bool, String) {
    let scenario = parse(text, &[]).unwrap_or_else(|e| panic!("{e}"));
    match scenario.admission() {
        [one] => (one.admitted, one.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fast_flow_among_slow_ones_has_slots_by_its_period() {
    assert_eq!(
        said(MIXED),
        (true, "\"loop\": all messages can be in time (test: slots)".into())
    );
    let r = go(MIXED);
    for entry in &r.traffic {
        let waits = entry.submitted - entry.delivered;
        assert!(entry.submitted > 300 && waits <= 40, "{entry:?}");
    }
    let longest = r.traffic[0].latency_us.unwrap()[3];
    assert!(longest < 2_000.0, "{longest}");
    assert_eq!(r.admission.len(), 1, "the result tells it, too");
}

#[test]
fn what_does_not_fit_is_told_with_its_flow() {
    let often = MIXED.replace("\"2ms\"", "\"250us\"");
    let (admitted, sentence) = said(&often);
    assert!(!admitted && sentence.contains("no room: it needs"), "{sentence}");
    let hopeless = MIXED.replacen("lifetime = \"2ms\"", "lifetime = \"50us\"", 1);
    let (admitted, sentence) = said(&hopeless);
    assert!(
        !admitted && sentence.contains("fast to controller: too slow"),
        "{sentence}"
    );
    // it has the slots of its period nevertheless
    assert!(go(&hopeless.replacen("lifetime = \"50us\"\n", "", 1)).metrics["delivered_ratio"] > 0.98);
    let must = "cycle = \"20ms\"\nadmission = { must_hold = true }";
    assert!(parse(&MIXED.replacen("cycle = \"20ms\"", must, 1), &[]).is_ok());
    let error = parse(&hopeless.replacen("cycle = \"20ms\"", must, 1), &[]).map(|_| ());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("\"loop\" must hold") && error.contains("fast to controller"),
        "{error}"
    );
}

/// Half of the frames are lost on the way from one of two nodes. It has the slots to repeat them that the other one
/// does not need, if the file says so.
#[test]
fn a_lossy_flow_has_slots_for_its_second_chances() {
    let two = MIXED.replace("count = 39", "count = 39\n").replace(
        "lifetime = \"2ms\"\npattern.periodic = { period = \"2ms\" }",
        "lifetime = \"10ms\"\npattern.periodic = { period = \"20ms\" }",
    ) + "\n[[link]]\nfrom = \"fast\"\nto = \"controller\"\ndata.fixed = 0.5\n";
    let told = two.replacen(
        "lifetime = \"10ms\"",
        "lifetime = \"10ms\"\nper = 0.5\nmiss = 0.02",
        1,
    );
    assert!(said(&told).0, "{}", said(&told).1);
    let missed = |text: &str| {
        let text = text.replacen("duration = \"1s\"", "duration = \"8s\"", 1);
        let entry = go(&text).traffic.swap_remove(0);
        entry.submitted - entry.delivered
    };
    let (without, with) = (missed(&two), missed(&told));
    assert!(with * 2 < without, "{with} of {without}");
    // seven tries are not enough for everything
    let never = told.replacen("miss = 0.02", "miss = 0.0001", 1);
    let (admitted, sentence) = said(&never);
    assert!(
        !admitted && sentence.contains("fast to controller: too lossy"),
        "{sentence}"
    );
}

#[test]
fn edf_says_which_test_it_passes() {
    let (admitted, sentence) = said(DEADLINES);
    assert!(admitted && sentence.contains("(test: sporadic)"), "{sentence}");
    let tight = DEADLINES.replace("deadline = \"4ms\"", "deadline = \"500us\"");
    let (admitted, sentence) = said(&tight);
    assert!(
        !admitted && sentence.contains("(test: constrained)"),
        "{sentence}"
    );
    // six retries of 200 us for each of three frames: more than 4 ms
    let lossy = DEADLINES.replace("octets = 58", "octets = 58\nper = 0.1\nmiss = 1.1e-7");
    let (admitted, sentence) = said(&lossy);
    assert!(
        !admitted && sentence.contains("more than the whole channel"),
        "{sentence}"
    );
    let few = lossy.replace("cost = ", "attempts = 3, cost = ");
    let (admitted, sentence) = said(&few);
    assert!(
        !admitted && sentence.contains("3 attempts do not reach"),
        "{sentence}"
    );
    // a pool reserves what all need together
    let pooled = lossy.replace("cost = ", "pool = { share = 0.3, depth = \"600us\" }, cost = ");
    let (admitted, sentence) = said(&pooled);
    assert!(admitted && sentence.contains("(test: pooled)"), "{sentence}");
    let poisson = DEADLINES.replace("periodic = { period", "poisson = { mean");
    let (admitted, sentence) = said(&poisson);
    assert!(!admitted && sentence.contains("no shortest time"), "{sentence}");
}

/// Retries beyond the pool go when nothing else is ready, so with a pool of nothing a crowded cycle is another one.
#[test]
fn the_pool_of_a_scenario_is_that_of_its_nodes() {
    let crowded = DEADLINES
        .replace("count = 3", "count = 16")
        .replace("data.fixed = 0.1", "data.fixed = 0.5");
    let none = crowded.replace("cost = ", "pool = { share = 0, depth = \"0us\" }, cost = ");
    let (with, without) = (go(&crowded), go(&none));
    assert_ne!(with.trace_hash, without.trace_hash);
    assert!(with.metrics["delivered_ratio"] > 0.5 && without.metrics["delivered_ratio"] > 0.5);
    let wrong = crowded.replace("cost = ", "pool = { share = 2, depth = \"0us\" }, cost = ");
    let error = parse(&wrong, &[]).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("2 is not a number from 0 to 1"), "{error}");
}
