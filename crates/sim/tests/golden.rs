//! The same seed gives the same run: in debug and release, on one thread and two, today and after a refactor.
//!
//! A change of these hashes is a change of behaviour: say why in the commit that changes them.
mod common;

use common::*;
use frame::{AccessCategory, MacAddr, Rate};
use radio::{RtsPolicy, TxHow};
use sim::adapter::{AccessRules, AdapterConfig};
use sim::clock::Clock;
use sim::fault::HostFaults;
use sim::host::{HostModel, Profile};
use sim::medium::{ErrorModel, MediumConfig, Position};
use sim::traffic::{Pattern, Traffic};
use sim::{LinkLoss, NodeConfig, NoiseConfig, Process, World};
use std::rc::Rc;

const SATURATION: u64 = 0x2e88_c7c7_5ecb_bc3f;
const GRID: u64 = 0xc79d_0b6e_778f_5268;
const EVERYTHING: u64 = 0xfc68_631b_d744_1bf4;

fn run_saturation() -> u64 {
    let mut w = saturation(10, 1, AccessRules::standard(&frame::Phy::A), 50, -62.0);
    w.run_until(1_000_000_000);
    w.trace_hash()
}

fn run_grid() -> u64 {
    let mut w = grid(100, 1, ErrorModel::Nist);
    w.run_until(500_000_000);
    w.trace_hash()
}

/// Faults, noise, RTS, lossy links, drifting clocks, EDCA, two channels and real hosts at once.
fn run_everything() -> u64 {
    let mut w = World::new(&MediumConfig::default(), 42);
    let hosts = ["table4-baseline-io", "table5"].map(|name| {
        let profile = Profile::built_in(name).expect("a built-in profile");
        Rc::new(HostModel::new(&profile).expect("it is calibrated"))
    });
    for i in 0..12 {
        let mhz = if i % 3 == 0 { 5200 } else { 5180 };
        let mut adapter = AdapterConfig::station(MacAddr::local(i), frame::Phy::A, mhz, true);
        adapter.rts_threshold = 500;
        let faults = HostFaults {
            lost_confirm: 0.01,
            late_timer: 0.1,
            late_timer_ns: 300_000,
        };
        let clock = Clock {
            offset_ns: u64::from(i) * 1_000_000,
            drift_ppb: i64::from(i) * 3_000 - 15_000,
        };
        let at = Position::new(f64::from(i % 4) * 9.0, f64::from(i / 4) * 11.0);
        let config = NodeConfig {
            host: Some(Rc::clone(&hosts[i as usize % 2])),
            faults,
            clock,
            ..NodeConfig::ideal(at, adapter)
        };
        let mut how = TxHow::multi_shot(Rate::OFDM_24, 4);
        if i % 5 == 0 {
            how.rts = RtsPolicy::Always;
        }
        w.add_node(config, Plain::new(MacAddr::local(i), how));
    }
    for i in 0..12u32 {
        let traffic = Traffic {
            to: MacAddr::local((i + 3) % 12),
            category: AccessCategory::BestEffort,
            octets: 100 + 100 * i as usize,
            pattern: Pattern::Poisson { mean_ns: 4_000_000 },
            lifetime_ns: None,
            count: None,
        };
        w.add_traffic(i, traffic);
        let loss = LinkLoss {
            data: Some(Process::GilbertElliott {
                good_ns: 5e7,
                bad_ns: 5e6,
                good_loss: 0.01,
                bad_loss: 0.8,
            }),
            response: Some(Process::Fixed(0.02)),
            heard: 0.3,
        };
        w.set_link_loss(i, (i + 3) % 12, loss);
    }
    w.add_noise(&NoiseConfig {
        position: Position::new(5.0, 5.0),
        mhz: 5180,
        tx_dbm: 0.0,
        on_ns: 400_000,
        off_ns: 9_000_000,
        random: true,
        start_ns: 0,
    });
    w.plan_move(300_000_000, 4, Position::new(60.0, 60.0));
    w.run_until(1_000_000_000);
    assert!(w.frames_on_air() > 1_000);
    w.trace_hash()
}

#[test]
fn hashes() {
    let all = [run_saturation(), run_grid(), run_everything()];
    assert_eq!(all, [SATURATION, GRID, EVERYTHING], "{all:#018x?}");
}

#[test]
fn two_threads() {
    let both = [0, 1].map(|_| std::thread::spawn(|| [run_saturation(), run_grid(), run_everything()]));
    let [a, b] = both.map(|t| t.join().unwrap());
    assert_eq!(a, b);
    assert_eq!(a, [run_saturation(), run_grid(), run_everything()]);
}
