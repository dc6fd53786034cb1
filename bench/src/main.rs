//! What ATP over UDP costs next to the kernel's TCP and to QUIC, on this computer with itself, and how evenly packets are spaced:
//! `cargo xtask compare quic`. Prints ratios and distributions, and judges nothing.

mod atp;
mod quic;
mod tcp;

use std::net::Ipv4Addr;

const LOCAL: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
/// What each of them moves.
const OCTETS: usize = 256 << 20;
const BLOCK: usize = 1 << 14;
/// Rounds, in which they take turns; the least of each counts.
const ROUNDS: usize = 5;

/// CPU of the two ends, ns: of the thread that sends, and of the one that receives.
type Cost = [u64; 2];

/// CPU of this thread so far, user and kernel, ns (schedstat of proc(5)).
fn thread_ns() -> u64 {
    let all = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel with schedstat");
    let first = all.split(' ').next().and_then(|n| n.parse().ok());
    first.expect("a number")
}

/// CPU of this thread for what is done.
fn cost(what: impl FnOnce()) -> u64 {
    let before = thread_ns();
    what();
    thread_ns() - before
}

/// Seconds of CPU per gigabyte.
fn per_gigabyte(ns: u64) -> f64 {
    ns as f64 / OCTETS as f64
}

fn key() -> transfer::secure::Key {
    transfer::secure::Key::random().expect("random numbers")
}

fn costs() {
    let all: [(&str, fn() -> Cost); 4] = [
        ("the kernel's TCP", tcp::tcp),
        // as many packets as the processor takes: spacing is no limit
        ("ATP", || atp::atp(1, OCTETS, None).1),
        ("ATP with a key", || atp::atp(1, OCTETS, Some(key())).1),
        ("QUIC (quinn, TLS 1.3)", quic::quic),
    ];
    let mut least = [[u64::MAX / 2; 2]; 4];
    for round in 1..=ROUNDS {
        for ((name, run), least) in all.iter().zip(&mut least) {
            eprintln!("round {round} of {ROUNDS}: {name}");
            let cost = run();
            if cost[0] + cost[1] < least[0] + least[1] {
                *least = cost;
            }
        }
    }
    println!(
        "CPU, s/GB, of the round of {ROUNDS} with the least, {} MiB each:",
        OCTETS >> 20
    );
    println!("  {:26} {:>6} {:>8} {:>5}", "", "sender", "receiver", "both");
    let show = |name: &str, [sends, receives]: [f64; 2]| {
        println!("  {name:26} {sends:6.2} {receives:8.2} {:5.2}", sends + receives);
    };
    let least = least.map(|cost| cost.map(per_gigabyte));
    for ((name, _), cost) in all.iter().zip(least) {
        show(name, cost);
    }
    let [tcp, atp, keyed, quic] = least.map(|cost| cost[0] + cost[1]);
    println!(
        "both ends: ATP / TCP {:.1}, ATP with a key / TCP {:.1}, QUIC / TCP {:.1}",
        atp / tcp,
        keyed / tcp,
        quic / tcp
    );
    println!(
        "both ends: ATP / QUIC {:.2}, ATP with a key / QUIC {:.2}",
        atp / quic,
        keyed / quic
    );
}

fn spacing() {
    let (came, _) = atp::atp(100, 10_000 * 1_448, None);
    let mut gaps: Vec<u64> = came
        .windows(2)
        .map(|w| w[1].since(w[0]).as_ns() / 1_000)
        .collect();
    gaps.sort_unstable();
    let at = |share: f64| gaps[((gaps.len() - 1) as f64 * share) as usize];
    println!(
        "{} packets at 10,000/s, us between two arrivals: min {}, 1 % {}, median {}, 90 % {}, 99 % {}, 99.9 % {}, max {}",
        came.len(),
        at(0.0),
        at(0.01),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    let all = came
        .last()
        .zip(came.first())
        .map_or(0, |(b, a)| b.since(*a).as_ns());
    let mean_us = all as f64 / 1_000.0 / gaps.len() as f64;
    let off = |us: &u64| us.abs_diff(100);
    let error_us = gaps.iter().map(off).sum::<u64>() as f64 / gaps.len() as f64;
    println!("mean {mean_us:.1} us, mean distance from 100 us {error_us:.1} us");
}

fn main() {
    costs();
    spacing();
}
