//! profile
#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    s.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (n, t): (u32, f64) = (a[2].parse().unwrap(), a[3].parse().unwrap());
    let c0 = cpu();
    let w = if a[1] == "sat" {
        let mut w = saturation(n, 1, sim::AccessRules::ns3(), 45, -82.0);
        w.run_until((t * 1e9) as u64);
        w
    } else {
        let mut w = grid(n, 1, sim::ErrorModel::Nist);
        w.run_until((t * 1e9) as u64);
        w
    };
    let c = cpu() - c0;
    println!(
        "{:.3} ms cpu/sim-s, {:.1} ns per frame on air, hash {:x}",
        c * 1e3 / t,
        c * 1e9 / w.frames_on_air() as f64,
        w.trace_hash()
    );
}
