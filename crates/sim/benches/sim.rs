//! What the simulator costs: the event queue, one exchange, and the scenarios that other simulators are timed with.
//!
//! `cargo bench -p sdmac-sim`. Scenarios are stepped through a fixed stretch of virtual time after a warm-up; the
//! items are frames on the air, so that the throughput column reads frames per second of CPU.
#[path = "../tests/common/mod.rs"]
mod common;

use common::*;
use divan::Bencher;
use divan::counter::ItemsCount;
use frame::{AccessCategory, MacAddr, Rate};
use radio::TxHow;
use sim::adapter::AccessRules;
use sim::medium::{ErrorModel, MediumConfig, Position};
use sim::queue::Queue;
use sim::rng::{Cause, Stream};
use sim::traffic::{Pattern, Traffic};
use sim::{NodeConfig, World};

fn main() {
    divan::main();
}

/// A queue of `n` entries within 10 ms.
fn filled(n: u64) -> (Queue<u64>, Stream) {
    let (mut q, mut dice) = (Queue::default(), Stream::new(1, 2, Cause::Traffic));
    for i in 0..n {
        q.push(dice.below(10_000_000), 0, i);
    }
    (q, dice)
}

#[divan::bench(args = [1_000, 100_000])]
fn queue_pop_and_push(b: Bencher<'_, '_>, n: u64) {
    let (mut q, mut dice) = filled(n);
    b.counter(ItemsCount::new(1u32)).bench_local(|| {
        let (now, event) = q.pop_until(u64::MAX).unwrap();
        q.push(now + 1 + dice.below(10_000_000), 0, event);
    });
}

#[divan::bench(args = [1_000, 100_000])]
fn queue_push_and_cancel(b: Bencher<'_, '_>, n: u64) {
    let (mut q, mut dice) = filled(n);
    b.counter(ItemsCount::new(1u32)).bench_local(|| {
        let h = q.push(dice.below(10_000_000), 0, 0);
        assert!(q.cancel(h));
    });
}

/// Steps a world through `step_ms` per iteration, in items of frames on the air.
fn step<P: radio::Protocol>(b: Bencher<'_, '_>, mut w: World<P>, step_ms: u64) {
    let mut until = 200_000_000;
    w.run_until(until);
    let before = w.frames_on_air();
    w.run_until(until + 50 * step_ms * 1_000_000);
    until += 50 * step_ms * 1_000_000;
    let frames = (w.frames_on_air() - before) / 50;
    b.counter(ItemsCount::new(frames)).bench_local(|| {
        until += step_ms * 1_000_000;
        w.run_until(until);
    });
}

/// Two nodes; one one-shot a millisecond. An iteration is ten exchanges: frame, ACK, confirm and indication.
#[divan::bench]
fn one_shot_exchange(b: Bencher<'_, '_>) {
    step(b, neighbourhood(2, 0), 10);
}

#[divan::bench(args = [10, 50], sample_count = 20)]
fn saturated(b: Bencher<'_, '_>, stations: u32) {
    step(b, saturation(stations, 1, AccessRules::ns3(), 45, -82.0), 20);
}

#[divan::bench(args = [100, 400, 1_000], sample_count = 10)]
fn grid_of(b: Bencher<'_, '_>, nodes: u32) {
    step(b, grid(nodes, 1, ErrorModel::Nist), 5);
}

/// `near` nodes in one room, one of which sends a one-shot a millisecond; `far` silent ones out of reach.
fn neighbourhood(near: u32, far: u32) -> World<Plain> {
    let mut w = World::new(&MediumConfig::default(), 1);
    let how = TxHow::one_shot(Rate::OFDM_24);
    for i in 0..near + far {
        let at = if i < near {
            Position::new(f64::from(i), 0.0)
        } else {
            Position::new(1e5 + 50.0 * f64::from(i % 100), 50.0 * f64::from(i / 100))
        };
        let adapter = station(i, AccessRules::standard(&frame::Phy::A));
        w.add_node(NodeConfig::ideal(at, adapter), Plain::new(MacAddr::local(i), how));
    }
    w.add_traffic(
        0,
        Traffic {
            to: MacAddr::local(1),
            category: AccessCategory::BestEffort,
            octets: 50,
            pattern: Pattern::Periodic {
                period_ns: 1_000_000,
                phase_ns: 0,
            },
            lifetime_ns: None,
            count: None,
        },
    );
    w
}

/// The cost of an exchange (an iteration is ten, heard by ten nodes) does not grow with the nodes out of its reach.
#[divan::bench(args = [0, 20, 200, 2_000])]
fn ten_near_and_far(b: Bencher<'_, '_>, far: u32) {
    step(b, neighbourhood(10, far), 10);
}
