//! TCP NewReno over a chain of `scenarios/ns3-chain.toml`, as `peers/ns3/chain.cc` has it in ns-3; `cargo xtask compare ns3
//! --scenario chain` puts the two side by side.
//!
//! ```sh
//! cargo run --release -p sdmac-lab --example chain -- 1 hops=3 rate=6 flows=1
//! ```

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use frame::Rate;
use lab::mesh::{Chain, Kind};
use lab::plan;
use lab::scenario::Scenario;
use sim::rng::mix3;

/// Octets of each connection.
const OCTETS: u64 = 2_000_000;
/// From when they call, each up to 10 ms later, as in ns-3.
const FROM_NS: u64 = 1_000_000_000;

fn main() -> ExitCode {
    match answer() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            eprintln!("chain: {sentence}");
            ExitCode::from(2)
        }
    }
}

fn answer() -> Result<String, String> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: chain SEED hops=1..6 rate=6|24 flows=N [duration=SECONDS]";
    let seed: u64 = args.next().and_then(|s| s.parse().ok()).ok_or(usage)?;
    let (mut hops, mut mbps, mut flows, mut seconds) = (2, 6, 1, 600);
    for arg in args {
        let (key, value) = arg.split_once('=').ok_or(usage)?;
        let number = value.parse().map_err(|_| usage)?;
        match key {
            "hops" => hops = number,
            "rate" => mbps = number,
            "flows" => flows = number,
            "duration" => seconds = number,
            _ => return Err(usage.into()),
        }
    }
    if !(1..=6).contains(&hops) {
        return Err("a chain has 1 to 6 hops".into());
    }
    let rate = Rate::parse(&format!("{mbps}M")).ok_or("rate is 6, 9, 12, 18, 24, 36, 48 or 54")?;
    let set = [format!("rate={mbps}M"), format!("control=[\"{mbps}M\"]")];
    let points = plan::grid(&set).map_err(|e| e.to_string())?;
    let changes = points.first().ok_or("no such point")?;
    let path = Path::new("scenarios/ns3-chain.toml");
    let scenario = Scenario::open(path, changes).map_err(|e| e.to_string())?;
    let chain = Chain {
        hops: scenario.nodes() - 1,
        flows,
        kind: Kind::NewReno,
        rate,
        tries: 7,
        // these three are the scenario's
        tx_dbm: 0.0,
        spacing_m: 0.0,
        loss: 0.0,
        octets: OCTETS,
        most_seconds: u64::from(seconds),
    };
    let mut net = chain.net();
    net.greetings.clear();
    for (flow, demand) in (0..).zip(&mut net.demands) {
        demand.to = hops;
        demand.start_ns = FROM_NS + mix3(seed, flow, 4) % 10_000 * 1_000;
    }
    let ran = net.run_in(&scenario, seed, &AtomicBool::new(false));
    let ends = net.demands.iter().zip(&ran.flows);
    let last_s = ends
        .map(|(demand, flow)| (demand.start_ns - FROM_NS) as f64 / 1e9 + flow.seconds)
        .fold(0.0, f64::max);
    let octets: u64 = ran.flows.iter().map(|f| f.octets).sum();
    Ok(format!(
        r#"{{"simulated_s": {last_s}, "goodput_mbps": {}, "frames_on_air": {}, "complete": {}}}"#,
        octets as f64 * 8e-6 / last_s,
        ran.frames,
        ran.flows.iter().all(|f| f.done)
    ))
}
