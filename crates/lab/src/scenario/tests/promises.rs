//! What admission does not promise: beside sources that never run dry, beside strangers, and where answers come too late.

use super::*;

/// A device with a message in each cycle and something else to send, on the channel of `stranger`.
fn device(second: &str, stranger: &str) -> String {
    format!(
        r#"
[run]
duration = "1s"
warm_up = "100ms"
[medium]
loss.fixed_power_dbm = -50
[[schedule]]
name = "loop"
cycle = "4ms"
send = {{ rate = "24M", qos = true }}
[[group]]
name = "controller"
protocol.tdma.schedule = "loop"
[[group]]
name = "store"
protocol.tdma.schedule = "loop"
[[group]]
name = "device"
protocol.tdma.schedule = "loop"
{stranger}
[[traffic]]
from = "device"
to = "controller"
octets = 58
lifetime = "4ms"
pattern.periodic = {{ period = "4ms", phase.fixed = "101ms" }}
[[traffic]]
from = "device"
to = "store"
octets = 1400
{second}
"#
    )
}

fn answer(text: &str) -> (Option<bool>, String) {
    let scenario = parse(text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let [answer] = scenario.admission() else {
        panic!("{:?}", scenario.admission())
    };
    (answer.admitted, answer.reason.clone().unwrap_or_default())
}

/// What always waits takes the room that other messages of its node need, too.
#[test]
fn a_source_that_never_runs_dry_leaves_room_or_is_denied() {
    let text = |backlog: u32| device(&format!("pattern.saturated = {{ backlog = {backlog} }}"), "");
    assert_eq!(answer(&text(63)), (Some(true), String::new()));
    let flows = go(&text(63)).traffic;
    assert_eq!(flows[0].delivered, flows[0].submitted);
    let (admitted, why) = answer(&text(64));
    assert!(
        admitted == Some(false) && why.contains("up to 65 messages of its node wait at once"),
        "{why}"
    );
}

/// It hands down a message when one ends at the adapter, which what is dropped before never does.
#[test]
fn a_source_that_would_run_dry_is_an_error() {
    let saturated = device("pattern.saturated = { backlog = 4 }", "");
    let edf = saturated.replace(
        "name = \"device\"\nprotocol.tdma.schedule = \"loop\"",
        "name = \"device\"\nprotocol.tdma = { schedule = \"loop\", edf = { cost = \"200us\", deadline = \"4ms\" } }",
    );
    let dies = saturated.replace("octets = 1400", "octets = 1400\nlifetime = \"10ms\"");
    for (text, why) in [
        (edf, "since edf drops what is late"),
        (dies, "since its messages have a lifetime"),
    ] {
        let said = parse(&text, &[]).unwrap_err().to_string();
        assert!(said.contains(why) && said.contains("pattern.periodic"), "{said}");
    }
}

/// Slots are those of who knows them.
#[test]
fn nothing_is_promised_beside_strangers() {
    let second = "pattern.periodic = { period = \"8ms\" }";
    assert_eq!(answer(&device(second, "")).0, Some(true));
    let neighbour = |channel: u16| {
        format!(
            "[[group]]\nname = \"neighbour\"\nchannel = {channel}\nprotocol.beaconer = {{ interval = \"100ms\", rate = \"6M\", \
             send = {{ rate = \"24M\" }} }}\n"
        )
    };
    let (admitted, why) = answer(&device(second, &neighbour(36)));
    assert!(
        admitted.is_none() && why.contains("\"neighbour\" sends on the same channel"),
        "{why}"
    );
    assert_eq!(answer(&device(second, &neighbour(40))).0, Some(true));
    let foreign = "[[foreign]]\nat = [3, 3]\nwhat.probes = { every = \"20ms\", burst = 2, rate = \"6M\" }\n";
    let (admitted, why) = answer(&device(second, foreign));
    assert!(
        admitted.is_none() && why.contains("strangers send on the same channel"),
        "{why}"
    );
    let must =
        device(second, foreign).replace("cycle = \"4ms\"", "cycle = \"4ms\"\nadmission.must_hold = true");
    let said = parse(&must, &[]).unwrap_err().to_string();
    assert!(said.contains("must hold, and may not"), "{said}");
}

/// Polls are answered, even if those who are polled have nothing to say.
#[test]
fn answers_that_are_never_sent_are_told_of() {
    let text = |within: &str| {
        format!(
            r#"
[run]
duration = "1s"
[medium]
loss.fixed_power_dbm = -50
[[group]]
name = "controller"
protocol.coordinator = {{ attempt = "300us", answer = "200us", deadline = "10ms", attempts = 3, send = {{ rate = "24M" }} }}
[[group]]
name = "device"
ap = "controller"
protocol.responder = {{ coordinator = "controller", within = "{within}", no_backoff_aifsn = 2, send = {{ rate = "24M" }} }}
[[traffic]]
from = "controller"
to = "device"
octets = 58
pattern.periodic = {{ period = "10ms" }}
"#
        )
    };
    assert_eq!(answer(&text("150us")).0, Some(true));
    let (admitted, why) = answer(&text("50us"));
    assert!(admitted == Some(false) && why.contains("within is 50us"), "{why}");
}
