//! Scenarios of the tree on real stacks, as they are and only shorter: whatever their protocols send, the kernel sends it as
//! asked.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use lab::deploy::Run;
use lab::testbed::compare::stations;

/// A file of `scenarios/` with changes.
fn of_tree(name: &str, changes: &[&str]) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"));
    let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
    Scenario::open(&file, &lab::plan::grid(&changes).unwrap()[0]).unwrap_or_else(|e| panic!("{e}"))
}

/// All nodes, on the first radios. So many slots may be over when a node wakes up for them: what is due at all nodes at one instant
/// waits for the one processor of the lab.
fn deployed(scenario: &Scenario, overruns: u64) -> (Vec<Run>, Summary) {
    let radios: Vec<String> = (0..scenario.radios()).map(|i| format!("phy{i}")).collect();
    let never = AtomicBool::new(false);
    let (runs, summary) = under(scenario, 1, |switches| {
        stations(
            scenario,
            1,
            (&radios, switches),
            &|_| None,
            &AtomicU64::new(0),
            &never,
        )
    });
    let runs = runs.unwrap_or_else(|e| panic!("{e}"));
    for run in &runs {
        let r = &run.done.requests;
        assert_eq!(
            (r.refused, r.unknown, run.done.refusal()),
            (0, 0, None),
            "{:?}",
            run.done
        );
    }
    let late = |run: &Run| {
        let of_slots = run.done.slots.map_or(0, |s| s.overruns + s.late);
        of_slots + run.done.cell.map_or(0, |c| c.overruns + c.late)
    };
    let all: u64 = runs.iter().map(late).sum();
    assert!(
        all <= overruns,
        "{:?}",
        runs.iter().find_map(|r| r.done.lateness())
    );
    assert_eq!(summary.total.refused, 0, "{summary:?}");
    (runs, summary)
}

fn sum(runs: &[Run], of: fn(&Run) -> u64) -> u64 {
    runs.iter().map(of).sum()
}

/// Hosts that agree on slots: each has one of its own, and whatever is submitted from then on arrives at all others.
#[test]
fn hosts_agree_on_slots() {
    let Some(_lab) = lab(8) else { return };
    // In the first 60 rounds, 1.4 s, they come to their slots.
    let scenario = of_tree("tbmac", &["hosts=8", "duration=4s", "run.warm_up=1400ms"]);
    let (runs, summary) = deployed(&scenario, 3);
    let cells: Vec<_> = runs
        .iter()
        .map(|r| r.done.cell.expect("it is in a cell"))
        .collect();
    let slots: BTreeSet<_> = cells.iter().filter_map(|c| c.slot).collect();
    assert_eq!(slots.len(), 8, "{summary:?}: {cells:?}");
    assert!(cells.iter().all(|c| c.granted == c.lost + 1), "{cells:?}");
    // Where several ask, or were promised one slot, frames overlap. All begin at one instant, so that is often at first; from then
    // on nothing does, or it would not arrive.
    let counts = &summary.total;
    assert!(
        counts.tries > 1_000 && 3 * counts.overlapping < counts.tries,
        "{counts:?}: {cells:?}"
    );
    let (mut judged, mut arrived) = (0, 0);
    for (flow, numbers) in runs.iter().flat_map(|r| &r.judged) {
        judged += 7 * numbers.len() as u64;
        arrived += sum_of(&runs, *flow, numbers);
    }
    assert!(judged > 7 * 8 * 5, "{judged}");
    assert_eq!(arrived, judged);
}

fn sum_of(runs: &[Run], flow: u32, numbers: &std::ops::Range<u32>) -> u64 {
    runs.iter().map(|r| r.arrived.count(flow, numbers.clone())).sum()
}

/// A frame at 40 MHz in each slot, on a channel that is as wide.
#[test]
fn slots_at_40_mhz() {
    let Some(_lab) = lab(3) else { return };
    let scenario = of_tree("slotted", &["duration=200ms"]);
    let (runs, summary) = deployed(&scenario, 0);
    let released = sum(&runs, |r| r.done.requests.sent);
    assert!(released > 750, "781 slots: {released}");
    let delivered = runs[1].done.delivered["0"];
    assert!(delivered > 740, "{delivered}: {summary:?}");
}

/// Two radios for each node, and a copy of each message on both.
#[test]
fn copies_on_two_radios() {
    let Some(_lab) = lab(8) else { return };
    let changes = ["copies=parallel", "duration=400ms", "group.devices.count=3"];
    let scenario = of_tree("redundancy", &changes);
    assert_eq!((scenario.nodes(), scenario.radios()), (4, 8));
    let (runs, summary) = deployed(&scenario, 0);
    let submitted = sum(&runs, |r| r.done.submitted.values().sum());
    let delivered = sum(&runs, |r| r.done.delivered.values().sum());
    assert!(submitted >= 3 * 99, "{submitted}");
    assert!(delivered + 3 >= submitted, "{delivered} of {submitted}");
    let second = summary.nodes.iter().filter(|n| n.seat.adapter == 1);
    let copies: u64 = second.map(|n| n.counts.frames).sum();
    assert!(copies >= submitted - 3, "{copies} on the second channel");
}

/// One of a station's adapters goes down in the middle of the run, whichever: its frames are refused from then on, and what goes over
/// the other one arrives.
#[test]
fn the_other_adapter_carries_on() {
    let Some(_lab) = lab(8) else { return };
    let changes = ["copies=parallel", "duration=400ms", "group.devices.count=3"];
    let scenario = of_tree("redundancy", &changes);
    // the controller has the first two radios, and the first device the next
    for dies in [2, 3] {
        let radios: Vec<String> = (0..scenario.radios()).map(|i| format!("phy{i}")).collect();
        let (ran_ns, never, over) = (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
        let (runs, summary) = under(&scenario, 1, |switches| {
            std::thread::scope(|scope| {
                let killer = scope.spawn(|| {
                    while ran_ns.load(Ordering::Relaxed) < 200_000_000 && !over.load(Ordering::Relaxed) {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    take_down(&radios[dies])
                });
                let runs = stations(&scenario, 1, (&radios, switches), &|_| None, &ran_ns, &never);
                over.store(true, Ordering::Relaxed);
                assert!(killer.join().unwrap() > 0, "it had an interface");
                runs.unwrap_or_else(|e| panic!("{e}"))
            })
        });
        // about half of the device's hundred messages had one copy only, the other one was refused
        let refused: Vec<u64> = runs.iter().map(|r| r.done.requests.refused).collect();
        assert!((40..=60).contains(&refused[1]), "{refused:?}: {summary:?}");
        assert_eq!((refused[0], refused[2], refused[3]), (0, 0, 0));
        let judged = runs.iter().flat_map(|r| &r.judged);
        for (flow, numbers) in judged.filter(|(_, numbers)| !numbers.is_empty()) {
            let arrived = sum_of(&runs, *flow, numbers);
            assert_eq!(
                arrived,
                numbers.len() as u64,
                "flow {flow} without {}",
                radios[dies]
            );
        }
    }
}

/// Takes all interfaces of a radio down: how many it had.
fn take_down(radio: &str) -> usize {
    let all = std::fs::read_dir(format!("/sys/class/ieee80211/{radio}/device/net")).unwrap();
    let down = |entry: std::io::Result<std::fs::DirEntry>| {
        let flags = entry.unwrap().path().join("flags");
        std::fs::write(flags, "0x0").unwrap();
    };
    all.map(down).count()
}
