//! How the two programs are started for a case, and where their answers are. Everything that depends on the command line or the
//! output of `sdmac` is here.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::measure;
use super::scenario::{Case, Program};

/// Where `sdmac run --json` puts its metrics, in the last line of its output.
const SDMAC_METRICS: &str = "/result/metrics";

/// The folders of this project.
pub(super) struct Folders {
    /// The root of the repository.
    pub root: PathBuf,
    /// What cargo and `peers/ns3/build.sh` compile into.
    pub target: PathBuf,
}

impl Folders {
    /// Those of the clone that this program was built from; `CARGO_TARGET_DIR` is respected.
    pub(super) fn find() -> Folders {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().unwrap_or(root);
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        Folders {
            target: root.join(target),
            root,
        }
    }

    /// Compiles the programs for ns-3 that `scenarios` need.
    pub(super) fn build_ns3(&self, scenarios: &[&str]) -> Result<()> {
        let script = self.root.join("peers/ns3/build.sh");
        let status = Command::new(&script)
            .args(scenarios)
            .env("CARGO_TARGET_DIR", &self.target)
            .status()
            .with_context(|| format!("cannot run {}", script.display()))?;
        ensure!(status.success(), "the programs for ns-3 could not be built");
        Ok(())
    }

    /// True if `sdmac` has this scenario.
    pub(super) fn has_scenario(&self, scenario: &str) -> bool {
        self.root.join(scenario_file(scenario)).exists()
    }

    /// Compiles in release what the programs need: `sdmac` and the program with nothing but its simulator, or an example.
    pub(super) fn build_sdmac(&self, programs: &[Program]) -> Result<()> {
        for program in programs {
            if let Program::Example(name) = program {
                self.build(&["build", "--package", "sdmac-lab", "--example", name])?;
            }
        }
        if !programs.contains(&Program::Sdmac) {
            return Ok(());
        }
        let whole = ["build", "--package", "sdmac"];
        // linked as a small program is shipped, so that its memory is its own and not that of libraries
        let bare = [
            "rustc",
            "--package",
            "sdmac-lab",
            "--example",
            "bare",
            "--",
            "-Ctarget-feature=+crt-static",
            "-Crelocation-model=static",
            "-Clto=fat",
            "-Ccodegen-units=1",
        ];
        self.build(&whole)?;
        self.build(&bare)
    }

    fn build(&self, args: &[&str]) -> Result<()> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args([args[0], "--quiet", "--release"])
            .args(&args[1..])
            .current_dir(&self.root)
            .status()
            .context("cannot run cargo")?;
        ensure!(status.success(), "`cargo {} --release` failed", args.join(" "));
        Ok(())
    }

    /// Runs ns-3.
    pub(super) fn run_ns3(&self, case: &Case, run: u32) -> Result<Run> {
        let mut command = Command::new(self.target.join("peers/ns3").join(case.scenario.name));
        command.args(
            case.parameters
                .iter()
                .map(|(name, value)| format!("--{name}={value}")),
        );
        command.args([format!("--seconds={}", case.seconds), format!("--run={run}")]);
        let finished = measure::run(&mut command)?;
        let answer = last_line(&finished.stdout).with_context(|| case.label())?;
        let number = |key: &str| {
            answer[key]
                .as_f64()
                .with_context(|| format!("ns-3 printed no {key}"))
        };
        Ok(Run {
            simulated_s: number("sim_s")?,
            cpu_s: number("cpu_s")?,
            instructions: Some(number("instructions")?).filter(|count| *count > 0.0),
            max_rss_kb: finished.max_rss_kb,
            metrics: answer["result"].clone(),
        })
    }

    /// Runs `sdmac`. Instructions need a run of their own.
    pub(super) fn run_sdmac(&self, case: &Case, run: u32) -> Result<Run> {
        let finished = measure::run(&mut self.sdmac(case, run))?;
        let answer = last_line(&finished.stdout).context("sdmac")?;
        let metrics = match case.scenario.program {
            Program::Sdmac => answer.pointer(SDMAC_METRICS),
            Program::Example(_) => Some(&answer),
        };
        let Some(metrics) = metrics else {
            bail!("sdmac printed no {SDMAC_METRICS}");
        };
        Ok(Run {
            // a run that ends early says so
            simulated_s: metrics["simulated_s"].as_f64().unwrap_or(case.seconds),
            cpu_s: finished.cpu_s,
            instructions: None,
            max_rss_kb: finished.max_rss_kb,
            metrics: metrics.clone(),
        })
    }

    /// Runs the simulator alone.
    pub(super) fn run_bare(&self, case: &Case, run: u32) -> Result<Run> {
        let mut command = Command::new(self.target.join("release/examples/bare"));
        command
            .current_dir(&self.root)
            .args([scenario_file(case.scenario.name), run.to_string()]);
        for (name, value) in &case.parameters {
            command.arg(format!("{name}={value}"));
        }
        command.arg(format!("duration={}", duration(case.seconds)));
        let finished = measure::run(&mut command)?;
        let answer = last_line(&finished.stdout).context("bare")?;
        let number = |key: &str| {
            answer[key]
                .as_f64()
                .with_context(|| format!("bare printed no {key}"))
        };
        Ok(Run {
            simulated_s: number("simulated_s")?,
            cpu_s: number("cpu_s")?,
            instructions: None,
            max_rss_kb: finished.max_rss_kb,
            metrics: answer.clone(),
        })
    }

    /// Instructions of one run of `sdmac`, where the machine can count them.
    pub(super) fn sdmac_instructions(&self, case: &Case, run: u32) -> Option<f64> {
        measure::instructions(&self.sdmac(case, run))
    }

    fn sdmac(&self, case: &Case, run: u32) -> Command {
        if let Program::Example(name) = case.scenario.program {
            let mut command = Command::new(self.target.join("release/examples").join(name));
            command.current_dir(&self.root).arg(run.to_string());
            for (name, value) in &case.parameters {
                command.arg(format!("{name}={value}"));
            }
            command.arg(format!("duration={:.0}", case.seconds));
            return command;
        }
        let mut command = Command::new(self.target.join("release/sdmac"));
        command
            .current_dir(&self.root)
            .arg("run")
            .arg(scenario_file(case.scenario.name));
        for (name, value) in &case.parameters {
            command.args(["--set", &format!("{name}={value}")]);
        }
        command.args(["--set", &format!("duration={}", duration(case.seconds))]);
        command.args(["--seed", &run.to_string(), "--json"]);
        command
    }
}

/// What one run gave and what it cost.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// Simulated time, seconds.
    pub simulated_s: f64,
    /// CPU time, seconds: of the whole process for `sdmac run`, of the simulation alone for the others.
    pub cpu_s: f64,
    /// User-mode instructions, over the same part of the process.
    pub instructions: Option<f64>,
    /// Largest resident set of the process, in units of 1024 octets.
    pub max_rss_kb: u64,
    metrics: Value,
}

impl Run {
    /// One result, if the program reported it.
    pub(super) fn metric(&self, name: &str) -> Option<f64> {
        self.metrics[name].as_f64()
    }

    #[cfg(test)]
    pub(super) fn of(simulated_s: f64, cpu_s: f64, max_rss_kb: u64, metrics: Value) -> Run {
        Run {
            simulated_s,
            cpu_s,
            instructions: None,
            max_rss_kb,
            metrics,
        }
    }
}

/// The scenario for `sdmac`, relative to the root.
pub(super) fn scenario_file(scenario: &str) -> String {
    format!("scenarios/ns3-{scenario}.toml")
}

/// `10s`, or `200ms` when it is not a whole number of seconds.
fn duration(seconds: f64) -> String {
    if seconds.fract() == 0.0 {
        format!("{seconds}s")
    } else {
        format!("{:.0}ms", seconds * 1e3)
    }
}

/// The last line of an output, as JSON.
fn last_line(stdout: &str) -> Result<Value> {
    let line = stdout.lines().rev().find(|line| !line.trim().is_empty());
    serde_json::from_str(line.context("printed nothing")?).context("printed no JSON in its last line")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::scenario::SCENARIOS;

    /// Folders with a `sdmac` that is this shell script.
    fn folders_with(script: &str) -> (tempfile::TempDir, Folders) {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("release/sdmac");
        std::fs::create_dir(root.path().join("release")).unwrap();
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let folders = Folders {
            root: root.path().to_owned(),
            target: root.path().to_owned(),
        };
        (root, folders)
    }

    fn grid() -> Case {
        Case {
            scenario: &SCENARIOS[2],
            parameters: vec![("nodes", 400)],
            seconds: 0.5,
        }
    }

    #[test]
    fn sdmac_is_asked_for_the_case_and_its_metrics_are_read() {
        let (_root, folders) = folders_with(
            r#"echo "progress"; echo "{\"result\": {\"metrics\": {\"delivered_ratio\": 0.5, \"words\": \"$*\"}}}""#,
        );
        let run = folders.run_sdmac(&grid(), 3).unwrap();
        assert_eq!(run.metric("delivered_ratio"), Some(0.5));
        assert_eq!(run.metric("goodput_mbps"), None);
        assert_eq!(run.simulated_s, 0.5);
        assert_eq!(
            run.metrics["words"],
            "run scenarios/ns3-grid.toml --set nodes=400 --set duration=500ms --seed 3 --json"
        );
    }

    #[test]
    fn trouble_with_sdmac_is_told() {
        for (script, message) in [
            ("echo 'no such key: nodes' >&2; exit 2", "no such key: nodes"),
            ("echo '{}'", "/result/metrics"),
            ("echo done", "no JSON"),
            ("true", "printed nothing"),
        ] {
            let (_root, folders) = folders_with(script);
            let error = format!("{:#}", folders.run_sdmac(&grid(), 1).unwrap_err());
            assert!(error.contains(message), "{script}: {error}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration(10.0), "10s");
        assert_eq!(duration(0.2), "200ms");
        assert_eq!(duration(51.2), "51200ms");
    }

    #[test]
    fn the_last_line_counts() {
        assert_eq!(last_line("warning\n{\"a\": 1}\n\n").unwrap()["a"], 1);
        assert!(last_line("").unwrap_err().to_string().contains("nothing"));
        assert!(
            last_line("{\"a\": 1}\nbye")
                .unwrap_err()
                .to_string()
                .contains("no JSON")
        );
    }

    #[test]
    fn every_default_scenario_has_a_program() {
        let folders = Folders::find();
        for scenario in &SCENARIOS {
            let source = folders
                .root
                .join("peers/ns3")
                .join(scenario.name)
                .with_extension("cc");
            assert!(source.exists(), "{}", source.display());
        }
    }

    #[test]
    fn a_missing_scenario_is_noticed() {
        assert!(!Folders::find().has_scenario("none"));
    }
}
