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

/// CPU of this process so far, user and kernel, in clock ticks of 10 ms.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .expect("as proc(5) has it")
        .1
        .split(' ')
        .collect();
    [12, 13]
        .iter()
        .map(|i| fields[*i].parse::<u64>().expect("a number"))
        .sum()
}

/// CPU ticks for what is done.
fn cost(what: impl FnOnce()) -> u64 {
    let before = ticks();
    what();
    ticks() - before
}

/// Seconds of CPU per gigabyte.
fn per_gigabyte(ticks: u64) -> f64 {
    ticks as f64 / 100.0 / (OCTETS as f64 / 1e9)
}

fn costs() {
    let all: [(&str, fn()); 4] = [
        ("the kernel's TCP", tcp::tcp),
        // as many packets as the processor takes: spacing is no limit
        ("ATP", || drop(atp::atp(1, OCTETS))),
        ("sealing and opening alone", atp::seal),
        ("QUIC (quinn, TLS 1.3)", quic::quic),
    ];
    let mut least = [u64::MAX; 4];
    for round in 1..=ROUNDS {
        for ((name, run), least) in all.iter().zip(&mut least) {
            eprintln!("round {round} of {ROUNDS}: {name}");
            *least = (*least).min(cost(run).max(1));
        }
    }
    let [tcp, atp, seal, quic] = least.map(per_gigabyte);
    println!("CPU of both ends, s/GB, the least of {ROUNDS} rounds of {} MiB:", OCTETS >> 20);
    for ((name, _), ticks) in all.iter().zip(least) {
        println!("  {name:26} {:.2}", per_gigabyte(ticks));
    }
    println!("ATP / TCP {:.1}, QUIC / TCP {:.1}", atp / tcp, quic / tcp);
    println!("ATP / QUIC {:.2}, ATP with a key / QUIC {:.2}", atp / quic, (atp + seal) / quic);
}

fn spacing() {
    let came = atp::atp(100, 10_000 * 1_448);
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
    println!("mean {:.1} us", all as f64 / 1_000.0 / gaps.len() as f64);
}

fn main() {
    costs();
    spacing();
}
