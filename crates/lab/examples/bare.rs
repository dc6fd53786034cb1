//! A scenario with nothing around it: no progress, no statistics, no report. What a program costs that links the
//! simulator alone, as the programs in `peers/ns3` link ns-3; `cargo xtask compare ns3` puts the two side by side.
//!
//! ```sh
//! cargo run --release -p sdmac-lab --example bare -- scenarios/ns3-grid.toml 1 nodes=400 duration=1s
//! ```

use lab::plan;
use lab::scenario::Scenario;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match answer() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            eprintln!("bare: {sentence}");
            ExitCode::from(2)
        }
    }
}

fn answer() -> Result<String, String> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: bare SCENARIO.toml SEED [KEY=VALUE]...";
    let path = args.next().ok_or(usage)?;
    let seed: u64 = args.next().and_then(|s| s.parse().ok()).ok_or(usage)?;
    let set: Vec<String> = args.collect();
    let points = plan::grid(&set).map_err(|e| e.to_string())?;
    let [changes] = &points[..] else {
        return Err("each key takes one value here, not a list".into());
    };
    let scenario = Scenario::open(Path::new(&path), changes).map_err(|e| e.to_string())?;
    let mut world = scenario.build(seed);
    let duration_ns = scenario.duration_ns();
    // what is not needed any more makes room for what is
    drop(scenario);
    let begun = cpu_s();
    world.run_until(duration_ns);
    Ok(format!(
        r#"{{"simulated_s": {}, "cpu_s": {:.6}, "frames_on_air": {}, "trace_hash": "{:016x}"}}"#,
        duration_ns as f64 / 1e9,
        cpu_s() - begun,
        world.frames_on_air(),
        world.trace_hash()
    ))
}

/// CPU time of this process so far, seconds.
fn cpu_s() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}
