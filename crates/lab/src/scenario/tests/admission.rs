//! What is said before a run: slots by period, lifetime and losses, and the tests of EDF.

use proptest::prelude::*;

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
sync_error = "2us"
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
    let (admitted, sentence) = answer(text);
    (admitted.expect("it can be told"), sentence)
}

fn answer(text: &str) -> (Option<bool>, String) {
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
        (
            true,
            "\"loop\": all messages can be in time if no more attempts fail than their per (test: slots)"
                .into()
        )
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
    // it has the slots of its period nevertheless: what it held when the clocks were first trusted, 64 at most, never gets less, and not more
    let endless = go(&hopeless.replacen("lifetime = \"50us\"\n", "", 1));
    let waits: Vec<u64> = endless
        .traffic
        .iter()
        .map(|e| e.submitted - e.delivered)
        .collect();
    assert!((1..=64).contains(&waits[0]) && waits[1] <= 39, "{waits:?}");
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

/// Several nodes have no common queue, so the test of one of them says nothing of what the others do to it.
#[test]
fn several_nodes_on_a_channel_cannot_be_told() {
    let three = DEADLINES
        .replace("name = \"controller\"\n", "name = \"controller\"\ncount = 3\n")
        .replace("name = \"devices\"\ncount = 3", "name = \"devices\"")
        .replace("data.fixed = 0.1", "data.fixed = 0");
    let (admitted, sentence) = answer(&three);
    assert!(
        admitted.is_none() && sentence.contains("cannot be told") && sentence.contains("a queue of its own"),
        "{sentence}"
    );
    // every millisecond two frames of each: they meet, and nothing arrives
    let busy = three.replace("period = \"4ms\"", "period = \"500us\"");
    let (admitted, _) = answer(&busy);
    let ratio = go(&busy).metrics["delivered_ratio"];
    assert!(admitted.is_none() && ratio < 0.5, "{ratio}");
    let other = "\n[[group]]\nname = \"ap\"\nprotocol.beaconer = { interval = \"100ms\", rate = \"6M\", send = { rate = \"24M\" } }\n";
    let (admitted, sentence) = answer(&(DEADLINES.to_owned() + other));
    assert!(
        admitted.is_none() && sentence.contains("\"ap\" sends on the same channel"),
        "{sentence}"
    );
    let elsewhere = other.replace("name = \"ap\"\n", "name = \"ap\"\nchannel = 149\n");
    assert!(said(&(DEADLINES.to_owned() + &elsewhere)).0);
}

#[test]
fn costs_below_the_airtime_are_refused() {
    let cases: &[Case<'_>] = &[
        (
            "octets = 58",
            "octets = 1400",
            &["test.toml:10:25", "200us is less than", "544us"],
        ),
        (
            "cost = \"200us\"",
            "cost = \"95us\"",
            &["95us is less than", "the least is 96us"],
        ),
    ];
    all_broken(DEADLINES, cases);
    let polled = include_str!("../../../../../scenarios/edf.toml");
    let cases: &[Case<'_>] = &[
        (
            "attempt = \"220us\"",
            "attempt = \"99us\"",
            &["99us is less than the longest poll"],
        ),
        (
            "answer = \"250us\"",
            "answer = \"50us\"",
            &["50us is less than the longest answer"],
        ),
    ];
    all_broken(polled, cases);
    assert!(said(polled).0);
    let often = polled.replacen(
        "pattern.periodic = { period = \"4ms\" }",
        "pattern.periodic = { period = \"8ms\" }",
        1,
    );
    let (admitted, sentence) = said(&often);
    assert!(
        !admitted && sentence.contains("not polled as often"),
        "{sentence}"
    );
}

/// What is missed of the messages of one entry, when a run of this text is over; what came last may be under way.
fn missed(text: &str, entry: usize, under_way: u64) -> u64 {
    let entry = go(text).traffic.swap_remove(entry);
    (entry.submitted - entry.delivered).saturating_sub(under_way)
}

/// A message that comes just after a poll waits for the next one, and for the end of that exchange.
#[test]
fn answers_are_in_time_only_with_the_next_poll() {
    let polled = include_str!("../../../../../scenarios/edf.toml").replace("\"20s\"", "\"1s\"");
    assert!(said(&polled).0 && missed(&polled, 1, 8) == 0);
    let of_devices = |key: &str, value: &str| {
        let at = polled.rfind(key).unwrap();
        format!("{}{value}{}", &polled[..at], &polled[at + key.len()..])
    };
    // the last exchange of a cycle ends long after this
    let short = of_devices("lifetime = \"4ms\"", "lifetime = \"1ms\"");
    let (admitted, sentence) = said(&short);
    assert!(
        !admitted
            && sentence.contains(
                "devices to controller: a message may wait 0s for the next poll and 4ms until that is answered, and 1ms is its lifetime"
            ),
        "{sentence}"
    );
    assert!(missed(&short, 1, 8) > 100);
    // a newer one takes its place
    let random = "period = \"4ms\", phase.random = \"4ms\" }";
    let random = polled.replace("period = \"4ms\" }", random);
    for text in [&random, &random.replace("lifetime = \"4ms\"\n", "")] {
        let (admitted, sentence) = said(text);
        assert!(
            !admitted && sentence.contains("poll more often") && sentence.contains("fixed phases"),
            "{sentence}"
        );
        assert!(sentence.contains("wait 4ms for the next poll"), "{sentence}");
    }
    let late = of_devices("period = \"4ms\" }", "period = \"4ms\", phase.fixed = \"1us\" }");
    let (admitted, sentence) = said(&late);
    assert!(
        !admitted && sentence.contains("wait 3.999ms") && !sentence.contains("phases"),
        "{sentence}"
    );
    let slower = |text: &str| {
        let slow = text
            .replace("count = 8", "count = 4")
            .replace("\"4ms\"", "\"3ms\"");
        let at = slow.rfind("lifetime").unwrap();
        slow[..at].to_owned() + &slow[at..].replace("\"3ms\"", "\"6ms\"")
    };
    for text in [&polled, &random] {
        let text = slower(text);
        assert!(said(&text).0 && missed(&text, 1, 4) == 0, "{}", said(&text).1);
    }
    let ends = slower(&polled).replacen("octets = 58", "octets = 58\ncount = 3", 1);
    let (admitted, sentence) = said(&ends);
    assert!(!admitted && sentence.contains("its polls end"), "{sentence}");
    let again = polled.replacen("deadline =", "poll_again = \"1ms\"\ndeadline =", 1);
    let (admitted, sentence) = answer(&again);
    assert!(
        admitted.is_none() && sentence.contains("polls again"),
        "{sentence}"
    );
}

/// A message that is due after the next one goes behind what is due before, and the next one takes its place.
#[test]
fn a_poll_that_may_wait_beyond_its_period_is_overtaken() {
    let polled = include_str!("../../../../../scenarios/edf.toml");
    let before = &polled[..polled.find("[[traffic]]").unwrap()];
    // an exchange is half a millisecond of air, and little else
    let before = before
        .replace("host = \"table5\"\n", "")
        .replace("\"220us\"", "\"225us\"")
        .replace("\"250us\"", "\"255us\"")
        .replace("\"20s\"", "\"1s\"");
    let flow = |device: u32, period: u32, lifetime: u32| {
        format!(
            "[[traffic]]\nfrom = \"controller\"\nto = \"devices.{device}\"\noctets = 430\nlifetime = \"{lifetime}ms\"\npattern.periodic = {{ \
             period = \"{period}ms\" }}\n[[traffic]]\nfrom = \"devices.{device}\"\nto = \"controller\"\noctets = 430\npattern.periodic = {{ period = \
             \"{period}ms\" }}\n"
        )
    };
    let with = |lifetime: u32| {
        let flows = [flow(0, 3, lifetime)]
            .into_iter()
            .chain((1..8).map(|d| flow(d, 5, 5)));
        before.clone() + &flows.collect::<String>()
    };
    let (admitted, sentence) = said(&with(20));
    assert!(
        !admitted && sentence.contains("controller to devices.0: a newer message takes the place"),
        "{sentence}"
    );
    assert!(missed(&with(20), 0, 1) > 10);
    assert!(
        said(&with(3)).0 && missed(&with(3), 0, 1) == 0,
        "{}",
        said(&with(3)).1
    );
}

/// Flows of a node: octets, and periods and lifetimes in units of 100 us.
type Flows = Vec<(u32, u32, u32)>;

/// One to three nodes, what an attempt is said to cost in us, and what else is drawn.
fn sets() -> impl Strategy<Value = (Vec<Flows>, u32, bool, bool, bool)> {
    let flow = (16u32..1400, 8u32..100, 3u32..100);
    let nodes = proptest::collection::vec(proptest::collection::vec(flow, 1..5), 1..4);
    // mostly one node: of several nothing is admitted
    let nodes = nodes.prop_map(|mut nodes| {
        nodes.truncate(if nodes[0].len() > 1 { 1 } else { 3 });
        nodes
    });
    (nodes, 50u32..900, any::<bool>(), any::<bool>(), any::<bool>())
}

/// A flow: octets, its period, lifetime and phase in units of 100 us, and whether the phase is random instead.
type Polled = (u32, u32, Option<u32>, u32, bool);

/// One to four devices, each with its polls and its messages, how much more than they take attempts and answers are said to cost in us, and
/// whether hosts take their time.
fn polled_sets() -> impl Strategy<Value = (Vec<[Polled; 2]>, u32, bool)> {
    let lifetime = |longest| proptest::option::weighted(0.9, 10u32..longest);
    let polls = (24u32..200, 20u32..60, lifetime(60), 0u32..60, any::<bool>());
    let own = (24u32..200, 20u32..160, lifetime(200), 0u32..160, any::<bool>());
    let device = (polls, own, 0u32..4, 0u32..10).prop_map(|(mut polls, mut own, times, beyond)| {
        // mostly polls that are due within their period, and go into that of the messages
        if beyond > 0 {
            polls.2 = Some(polls.2.unwrap_or(60).min(polls.1));
        }
        own.1 = if times > 0 { times * polls.1 } else { own.1 };
        [polls, own]
    });
    (proptest::collection::vec(device, 1..4), 0u32..200, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    /// What is admitted misses nothing when nothing is lost on the air, whatever cost is told, with and without a backoff, on an
    /// ideal host and on one that takes its time.
    #[test]
    fn what_is_admitted_misses_nothing((nodes, cost_us, backoff, slow, host) in sets()) {
        let rate = if slow { "6M" } else { "24M" };
        let aifsn = if backoff { "" } else { "no_backoff_aifsn = 2, " };
        let host = if host { "host = \"table5\"\n" } else { "" };
        let mut text = String::from("[run]\nduration = \"200ms\"\n[medium]\nloss.fixed_power_dbm = -50\n[[group]]\nname = \"to\"\nprotocol = \"sink\"\n");
        for n in 0..nodes.len() {
            text += &format!(
                "[[group]]\nname = \"n{n}\"\n{host}protocol.edf = {{ cost = \"{cost_us}us\", deadline = \"10ms\", {aifsn}send = {{ rate = \"{rate}\", tries = 1 }} }}\n"
            );
        }
        for (n, flows) in nodes.iter().enumerate() {
            for (octets, period, lifetime) in flows {
                text += &format!(
                    "[[traffic]]\nfrom = \"n{n}\"\nto = \"to\"\noctets = {octets}\nlifetime = \"{}us\"\npattern.periodic = {{ period = \"{}us\" }}\n",
                    lifetime.min(period) * 100,
                    period * 100
                );
            }
        }
        let Ok(scenario) = parse(&text, &[]) else {
            // a cost below the airtime
            return Ok(());
        };
        if scenario.admission().iter().all(|a| a.admitted == Some(true)) {
            let run = run(&scenario, 1, None, &AtomicBool::new(false), |_| {}).unwrap().result;
            // the last ones are under way when the run ends
            let waits: u64 = run.traffic.iter().map(|t| (t.submitted - t.delivered).saturating_sub(1)).sum();
            prop_assert_eq!(waits, 0, "{}\n{:?}", text, run.traffic);
        }
    }

    /// The same of what is polled, in both directions, with phases that are known and that are not.
    #[test]
    fn what_is_admitted_misses_no_poll((devices, more_us, host) in polled_sets()) {
        let host = if host { "host = \"table5\"\n" } else { "" };
        let mut text = format!(
            "[run]\nduration = \"300ms\"\n[medium]\nloss.fixed_power_dbm = -50\n[[group]]\nname = \"c\"\n{host}protocol.coordinator = {{ \
             attempt = \"{}us\", answer = \"{}us\", deadline = \"4ms\", no_backoff_aifsn = 1, send = {{ rate = \"24M\", tries = 1 }} }}\n",
            290 + more_us,
            320 + more_us
        );
        for n in 0..devices.len() {
            text += &format!(
                "[[group]]\nname = \"d{n}\"\n{host}protocol.responder = {{ coordinator = \"c\", within = \"180us\", no_backoff_aifsn = 2, send = \
                 {{ rate = \"24M\", tries = 1 }} }}\n"
            );
        }
        for (n, both) in devices.iter().enumerate() {
            let node = format!("d{n}");
            for (way, (octets, period, lifetime, phase, random)) in both.iter().enumerate() {
                let (from, to) = if way == 0 { ("c", node.as_str()) } else { (node.as_str(), "c") };
                let phase = match random {
                    true => format!("phase.random = \"{}us\"", period * 100),
                    false => format!("phase.fixed = \"{}us\"", phase % period * 100),
                };
                text += &format!(
                    "[[traffic]]\nfrom = \"{from}\"\nto = \"{to}\"\noctets = {octets}\n{}pattern.periodic = {{ period = \"{}us\", {phase} }}\n",
                    lifetime.map_or(String::new(), |l| format!("lifetime = \"{}us\"\n", l * 100)),
                    period * 100
                );
            }
        }
        let scenario = parse(&text, &[]).unwrap();
        if scenario.admission()[0].admitted == Some(true) {
            let run = run(&scenario, 1, None, &AtomicBool::new(false), |_| {}).unwrap().result;
            for (n, t) in run.traffic.iter().enumerate() {
                // the last one is under way when the run ends
                prop_assert!(t.submitted - t.delivered <= 1, "{}\n{:?}", text, run.traffic);
                let (longest, lifetime) = (t.latency_us.map_or(0.0, |l| l[3]), devices[n / 2][n % 2].2);
                prop_assert!(longest <= lifetime.map_or(f64::MAX, |l| 100.0 * 1.002 * f64::from(l)), "{}\n{:?}", text, run.traffic);
            }
        }
    }
}

/// What nobody acknowledges goes once: with losses that is not enough, however many tries there are.
#[test]
fn what_is_not_acknowledged_is_not_repeated() {
    let lossy = DEADLINES.replace("octets = 58\n", "octets = 58\nper = 0.1\nmiss = 1e-3\n");
    assert!(said(&lossy).0);
    let rare = lossy.replace("miss = 1e-3", "miss = 0.2");
    for (from, to) in [
        ("qos = true }", "qos = true, ack = false }"),
        ("to = \"devices\"\noctets", "to = \"broadcast\"\noctets"),
    ] {
        let (admitted, sentence) = said(&lossy.replace(from, to));
        assert!(
            !admitted && sentence.contains("nobody acknowledges it"),
            "{sentence}"
        );
        assert!(said(&rare.replace(from, to)).0, "{to}");
    }
}
