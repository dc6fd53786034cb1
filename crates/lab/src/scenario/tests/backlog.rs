//! What waits for slots: queues that have formed, and flows for which there is no room.

use super::*;

const TDMA: &str = include_str!("../../../../../scenarios/tdma.toml");

fn run_of(text: &str, changes: &[&str]) -> RunResult {
    let scenario = parse(text, changes).unwrap_or_else(|e| panic!("{e}"));
    let run = run(&scenario, 1, None, &AtomicBool::new(false), |_| {}).unwrap();
    run.result
}

/// Queues of all nodes work off in shared slots, and no longer life makes that worse: where all went there at once, they would meet
/// for good.
#[test]
fn queues_do_not_jam_shared_slots() {
    let lives = |ms: u32| [0, 1].map(|t| format!("traffic.{t}.lifetime={ms}ms"));
    let of = |ms: u32, more: &[&str]| {
        let lives = lives(ms);
        let lives = lives.iter().map(String::as_str);
        let changes: Vec<&str> = lives.chain(more.iter().copied()).collect();
        run_of(TDMA, &changes)
    };
    let quiet = of(8, &[]);
    assert!(quiet.metrics["latency_p99_us"] < 3_000.0, "{quiet:?}");
    for ms in [8, 16, 40] {
        let lossy = of(ms, &["loss=0.05", "duration=5s"]);
        let [submitted, delivered, lost] =
            ["submitted", "delivered", "confirms_data_lost"].map(|name| lossy.metrics[name]);
        assert!(
            submitted - delivered < 20.0,
            "{ms} ms: {delivered} of {submitted}"
        );
        assert!(
            lost > 0.05 * submitted && lost < 0.07 * submitted,
            "{ms} ms: {lost}"
        );
        assert!(lossy.metrics["latency_p50_us"] < 2_000.0, "{ms} ms");
    }
}

/// With a burst of noise in which nothing gets through.
#[test]
fn a_burst_leaves_no_jam() {
    let noise = "
[[noise]]
at = [1, 1]
tx_dbm = 20
on = \"30ms\"
off = \"1000s\"
start = \"1s\"
random = false
";
    let text = format!("{TDMA}{noise}");
    let lives = [
        "traffic.0.lifetime=40ms",
        "traffic.1.lifetime=40ms",
        "duration=3s",
    ];
    let burst = run_of(&text, &lives);
    let lost = burst.metrics["confirms_data_lost"];
    assert!(lost < 1_000.0, "{lost}");
    assert!(burst.metrics["latency_p50_us"] < 2_000.0, "{burst:?}");
}

/// Each try of a frame with a deadline is a request of its own, and one that failed has second chances all the same.
#[test]
fn deadlines_have_second_chances_in_shared_slots() {
    let edf = "edf={cost=\"200us\",deadline=\"4ms\"}";
    let [controller, devices] = ["controller", "devices"].map(|g| {
        let key = format!("group.{g}.protocol.tdma.");
        format!("{key}{edf}")
    });
    let lossy = ["loss=0.05", "duration=3s"];
    let missed = |changes: &[&str]| {
        let result = run_of(TDMA, changes);
        1.0 - result.metrics["delivered"] / result.metrics["submitted"]
    };
    let with = missed(&[&lossy[..], &[&controller, &devices]].concat());
    let without = missed(&lossy);
    assert!(without < 0.008 && with < 0.008, "{with} and {without}");
}

const OFTEN: &str = r#"
[run]
duration = "2s"
warm_up = "500ms"
[medium]
loss.fixed_power_dbm = -50
[[schedule]]
name = "loop"
cycle = "100ms"
beacon = { from = "c", rate = "6M" }
send = { rate = "24M", qos = true }
[[group]]
name = "c"
protocol.tdma.schedule = "loop"
[[group]]
name = "a"
ap = "c"
protocol.tdma.schedule = "loop"
[[group]]
name = "b"
ap = "c"
protocol.tdma.schedule = "loop"
[[traffic]]
from = "a"
to = "c"
octets = 58
lifetime = "300ms"
pattern.periodic = { period = "2ms" }
[[traffic]]
from = "a"
to = "c"
octets = 58
lifetime = "300ms"
pattern.periodic = { period = "2ms" }
"#;

/// A node holds 64 frames: slots are not so far apart that more wait.
#[test]
fn what_is_admitted_is_held() {
    let result = run_of(OFTEN, &["schedule.loop.admission.must_hold=true"]);
    let [submitted, delivered] = ["submitted", "delivered"].map(|name| result.metrics[name]);
    // those of the last 60 ms are on their way
    assert!(
        submitted == 1_500.0 && delivered >= 1_440.0,
        "{delivered} of {submitted}"
    );
}

/// Who asks for more than a cycle has is named, and takes nothing from others.
#[test]
fn one_hopeless_flow_is_named_and_hurts_nobody_else() {
    let text = format!(
        "{OFTEN}
[[traffic]]
from = \"b\"
to = \"c\"
octets = 58
lifetime = \"20ms\"
pattern.periodic = {{ period = \"300us\" }}
"
    );
    let scenario = parse(&text, &[]).unwrap();
    let reason = scenario.admission()[0].reason.clone().unwrap();
    assert!(
        reason.starts_with("b to c: no room: it needs 334 slots"),
        "{reason}"
    );
    let result = run_of(&text, &[]);
    let hopeless = &result.traffic[2];
    assert!(hopeless.delivered * 10 < hopeless.submitted, "{hopeless:?}");
    for t in &result.traffic[..2] {
        assert!(t.delivered + 40 >= t.submitted, "{t:?}");
    }
}

/// Nobody can promise slots to messages that come at random.
#[test]
fn messages_at_random_are_not_promised_anything() {
    let text = OFTEN.replacen("pattern.periodic = { period", "pattern.poisson = { mean", 1);
    let scenario = parse(&text, &[]).unwrap();
    let answer = &scenario.admission()[0];
    assert_eq!(answer.admitted, None);
    let reason = answer.reason.as_deref().unwrap();
    assert!(reason.contains("come at random"), "{reason}");
    let must_hold = ["schedule.loop.admission.must_hold=true"];
    assert!(parse(&text, &must_hold).is_err());
    // nor to others of such a node: a queue of the first, which live for ever, may fill what it holds
    let patient = text.replacen("lifetime = \"300ms\"\n", "", 1);
    let scenario = parse(&patient, &[]).unwrap();
    let answer = &scenario.admission()[0];
    let reason = answer.reason.as_deref().unwrap();
    assert!(
        answer.admitted.is_none() && reason.contains("may leave no room"),
        "{reason}"
    );
}
