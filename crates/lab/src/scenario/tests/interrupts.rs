//! `interrupts`: what holds up the timers of hosts.

use super::*;

/// Eight devices and their controller, each with a slot in each cycle of 4 ms.
const SLOTS: &str = include_str!("../../../../../scenarios/tdma.toml");

/// `scenarios/tdma.toml` with such interrupts at all nodes.
fn held_up(interrupts: &str) -> String {
    SLOTS.replace(
        "host = \"table5\"\n",
        &format!("host = \"table5\"\ninterrupts = {interrupts}\n"),
    )
}

/// Slots that were late, that were slept through, and that were not, in 3 s.
fn slots(interrupts: &str) -> [f64; 3] {
    let scenario = parse(
        &held_up(interrupts),
        &["duration=3s", "schedule.loop.sync_error=3us"],
    );
    let scenario = scenario.unwrap_or_else(|e| panic!("{interrupts}: {e}"));
    let run = run(&scenario, 1, None, &AtomicBool::new(false), |_| {}).unwrap();
    ["late", "lost", "released"].map(|n| run.result.metrics[format!("slots_{n}").as_str()])
}

#[test]
fn what_an_outage_holds_up_is_late_for_its_slot() {
    let [late, lost, released] = slots("{}");
    assert!(
        late + lost < 5.0 && released > 10_000.0,
        "{late} {lost} {released}"
    );
    // 9 nodes, some 2.7 s, once in 100 ms: 240 outages, each of which takes at least the slots of a cycle
    let [late, lost, _] =
        slots("{ others = [{ every = \"100ms\", random = true, takes = [\"9ms\", \"9ms\"] }] }");
    assert!(late + lost > 240.0, "{late} {lost}");
}

/// A guard of some 20 us does not cover timers in steps of 128 us, or a tick of 1 ms.
#[test]
fn timers_in_steps_miss_slots() {
    for interrupts in [
        "{ granularity = \"128us\" }",
        "{ wheel = { hz = 1000, timers = 10, timer = \"1us\" } }",
    ] {
        let [late, lost, released] = slots(interrupts);
        assert!(
            late + lost > 0.3 * released,
            "{interrupts}: {late} {lost} {released}"
        );
    }
    let [late, lost, released] = slots("{ late = [{ probability = 0.1, within = [\"100us\", \"200us\"] }] }");
    let share = (late + lost) / (released + lost);
    assert!((0.05..0.2).contains(&share), "{share}");
}

#[test]
fn what_cannot_be_is_an_error() {
    for (interrupts, why) in [
        (
            "{ late = [{ probability = 0.5, within = [\"2us\", \"1us\"] }] }",
            "1us is less than 2us",
        ),
        (
            "{ late = [{ probability = 0.7, within = [\"1us\", \"2us\"] }, { probability = 0.4, within = [\"1us\", \"2us\"] }] }",
            "add up to 1.1",
        ),
        (
            "{ others = [{ every = \"1ms\", takes = [\"9us\", \"8us\"] }] }",
            "8us is less than 9us",
        ),
        (
            "{ others = [{ every = \"100ns\", takes = [\"1ns\", \"1ns\"] }] }",
            "every 1us or less often",
        ),
        (
            "{ others = [{ every = \"1ms\", takes = [\"1ms\", \"1ms\"] }] }",
            "take the whole processor",
        ),
        (
            "{ wheel = { hz = 1000, tick = \"1ms\" } }",
            "take the whole processor",
        ),
        (
            "{ wheel = { hz = 0 } }",
            "0 is not a whole number from 1 to 10000",
        ),
    ] {
        let error = parse(&held_up(interrupts), &[])
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{interrupts}: {error}");
    }
}
