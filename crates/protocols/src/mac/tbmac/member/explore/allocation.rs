//! How soon three hosts have slots, over all that they may draw and all that may be lost: exact, and the worst of what may be captured.

use super::odds::Graph;
use super::*;

/// A round begins, and each host has a slot of its own.
fn all_have_slots(state: &State<3, 3>, _: u32, phase: Phase) -> bool {
    phase == Phase::Events && state.all_have_slots()
}

/// The least probability that one owner and two hosts that ask all have slots when so many rounds are over.
fn all_served(losses: Losses, rounds: u32, per: f64) -> f64 {
    // one more, to see at its beginning who has a slot
    let explorer = Explorer::new(losses, 0, rounds + 1);
    let mut graph = Graph::default();
    graph.extend(&explorer, vec![explorer.settled(1, 3)], all_have_slots);
    let phases = rounds as usize * (3 + 2 + usize::from(explorer.asks)) + 1;
    graph.reached(phases, per, f64::min)[0]
}

/// Two hosts that ask in two slots are alone with p = 1/2, both or none of them: after K rounds of asking and one of agreement all have slots
/// with 1 - (1 - p)^K, exactly.
#[test]
fn without_losses_all_have_slots_as_soon_as_computed() {
    for asked in 1..=13 {
        let (found, computed) = (
            all_served(Losses::Counted, asked + 1, 0.0),
            1.0 - 0.5_f64.powi(asked as i32),
        );
        assert!(
            (found - computed).abs() < 1e-12,
            "{asked}: {found}, computed {computed}"
        );
    }
}

/// All losses of three rounds, of which two have requests that can be answered in time.
#[test]
fn losses_delay_slots() {
    let graph = |per| all_served(Losses::Any, 3, per);
    let served = [0.0, 0.01, 0.1, 0.3].map(graph);
    std::eprintln!("all have slots after three rounds: {served:?}");
    assert!((served[0] - 0.75).abs() < 1e-12, "{served:?}");
    assert!(served.is_sorted_by(|a, b| a > b), "{served:?}");
    // at the least what it is if a single loss spoils all: eight frames at one host each if the first requests are alone, and ten if the
    // second ones are
    for (per, found) in [0.0, 0.01, 0.1, 0.3].into_iter().zip(served) {
        let unspoilt = 0.5 * (1.0_f64 - per).powi(8) + 0.25 * (1.0_f64 - per).powi(10);
        assert!(found >= unspoilt - 1e-12, "{per}: {found}, {unspoilt}");
    }
}
