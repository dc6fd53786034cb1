//! Several sources on one station: each saturated one keeps its own backlog, and no confirm of another one fills it.

use std::path::Path;

use lab::scenario::Scenario;
use sim::traffic::FlowCounts;

/// What a station hands down to another in 200 ms, with these sources of a category and a pattern each.
fn sources(adapter: &str, list: &[(&str, &str)]) -> Vec<FlowCounts> {
    let mut text = format!(
        "[run]\nduration = \"200ms\"\n[[group]]\nname = \"c\"\nedca = true\nprotocol.sender = {{ rate = \"24M\" }}\n\
         [[group]]\nname = \"n\"\nedca = true\n{adapter}\nprotocol.sender = {{ rate = \"24M\", tries = 7, qos = true }}\n"
    );
    for (category, pattern) in list {
        text += &format!(
            "[[traffic]]\nfrom = \"n\"\nto = \"c\"\noctets = 64\ncategory = \"{category}\"\npattern.{pattern}\n"
        );
    }
    let scenario = Scenario::parse(Path::new("sources.toml"), &text, &[]).unwrap();
    let mut world = scenario.build(1);
    world.run_until(scenario.duration_ns());
    (0..list.len() as u32).map(|flow| world.flow(flow)).collect()
}

const SATURATED: &str = "saturated = { backlog = 4 }";

#[test]
fn two_saturated_sources_share_by_their_categories_and_not_by_their_order() {
    let first = sources("", &[("voice", SATURATED), ("video", SATURATED)]);
    let last = sources("", &[("video", SATURATED), ("voice", SATURATED)]);
    for (voice, video) in [(first[0], first[1]), (last[1], last[0])] {
        assert!(voice.delivered > video.delivered, "{voice:?} {video:?}");
        assert!(video.delivered > 50, "{video:?}");
        for flow in [voice, video] {
            assert!((1..=8).contains(&(flow.submitted - flow.delivered)), "{flow:?}");
        }
    }
}

#[test]
fn confirms_of_a_periodic_source_fill_nobody_s_backlog() {
    let flows = sources(
        "",
        &[
            ("voice", "periodic = { period = \"500us\" }"),
            ("video", SATURATED),
        ],
    );
    assert_eq!(flows[0].submitted, 401, "at 0, 500 us, ... 200 ms");
    assert!(flows[1].submitted - flows[1].delivered <= 8, "{:?}", flows[1]);
}

#[test]
fn a_queue_that_is_full_does_not_stop_time() {
    let flow = sources("queue_limit = 2", &[("video", SATURATED)])[0];
    assert!(flow.delivered > 100, "{flow:?}");
    // two of the four find room; the others try again once a millisecond
    assert!(flow.submitted < flow.delivered + 2 * 200 + 8, "{flow:?}");
}
