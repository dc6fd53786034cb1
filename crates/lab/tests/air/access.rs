//! Eight stations that always have something to send, by CSMA: as many collisions as in the simulator.

use super::stations::Shots;
use super::*;
use frame::Rate;
use radio::{Duration, TxHow};

const STATIONS: usize = 8;
const SECONDS: u64 = 2;
const SEEDS: u64 = 20;

const CELL: &str = r#"
[run]
duration = "2s"

[medium]
loss.fixed_power_dbm = -50
error = "perfect"
capture = "none"

[[group]]
name = "sta"
count = 8
protocol.sender = { rate = "24M" }
"#;

fn shots(me: usize, all: &[MacAddr]) -> Shots {
    let how = TxHow::multi_shot(Rate::OFDM_24, 7);
    Shots::new(all[me], all[(me + 1) % STATIONS], how, 3, u32::MAX)
}

/// Share of tries without an ACK, and frames that were acknowledged in a second, in the simulator.
fn simulated(scenario: &Scenario, seed: u64) -> [f64; 2] {
    let all: Vec<_> = (0..STATIONS as u32).map(MacAddr::local).collect();
    let mut world = scenario.build_with(seed, |node, config, _| (config, shots(node as usize, &all)));
    world.run_until(SECONDS * 1_000_000_000);
    let counters = (0..STATIONS as u32).map(|n| world.counters(n, 0));
    let (tries, acked) = counters.fold((0, 0), |a, c| (a.0 + c.tx_frames, a.1 + c.tx_acked));
    [1.0 - acked as f64 / tries as f64, acked as f64 / SECONDS as f64]
}

/// A run of the kernel is one more run of the simulator: it lies in the interval that holds the next run in 99.9 % of
/// all cases, by the runs with other seeds.
#[test]
fn as_many_collisions_as_in_the_simulator() {
    let Some(_lab) = lab(STATIONS) else { return };
    let scenario = scenario(CELL);
    let (done, summary) = under(&scenario, 1, |_| {
        let adapters = radios(STATIONS);
        let all_addresses = addresses(&adapters);
        let until = Host::now() + Duration::from_ms(1_000 * SECONDS);
        let stations = adapters.into_iter().enumerate();
        let stations = stations.map(|(i, a)| (a, shots(i, &all_addresses), ()));
        all(stations.collect(), until)
    });
    let total = summary.total;
    assert_eq!((total.refused, total.forgotten, summary.overflows), (0, 0, 0));
    let told: u64 = done.iter().map(|d| d.protocol.attempts()).sum();
    assert_eq!(told, total.tries, "tries told are tries made");
    let real = [
        1.0 - total.acked as f64 / total.tries as f64,
        total.acked as f64 / SECONDS as f64,
    ];
    let runs: Vec<_> = (1..=SEEDS).map(|seed| simulated(&scenario, seed)).collect();
    let n = SEEDS as f64;
    for (i, what) in ["share of tries without ACK", "frames acknowledged in a second"]
        .into_iter()
        .enumerate()
    {
        let mean = runs.iter().map(|r| r[i]).sum::<f64>() / n;
        let variance = runs.iter().map(|r| (r[i] - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // Student's t with 19 degrees of freedom at 99.9 %, two-sided
        let half = 3.883 * (variance * (1.0 + 1.0 / n)).sqrt();
        eprintln!(
            "{what}: kernel {:.5}, simulator {mean:.5} +- {half:.5} ({} tries)",
            real[i], total.tries
        );
        assert!(
            (real[i] - mean).abs() <= half,
            "{what}: {} is not {mean} +- {half}",
            real[i]
        );
    }
    assert!(total.overlapping > total.tries / 10, "{total:?}");
}
