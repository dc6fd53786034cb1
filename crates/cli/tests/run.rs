//! `sdmac run` as people and programs see it: output, exit codes, folders, Ctrl-C.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn sdmac(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sdmac"));
    command.args(args);
    command
}

fn scenario(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios")
        .join(name);
    path.display().to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn last_json(output: &Output) -> Value {
    serde_json::from_str(text(&output.stdout).lines().last().unwrap()).unwrap()
}

#[test]
fn json_is_the_last_line_and_follows_from_the_seed() {
    let path = scenario("ns3-saturation.toml");
    let args = [
        "run",
        &path,
        "--set",
        "nodes=3",
        "--set",
        "duration=100ms",
        "--seed",
        "7",
        "--json",
    ];
    let (a, b) = (sdmac(&args).output().unwrap(), sdmac(&args).output().unwrap());
    assert_eq!(a.status.code(), Some(0), "{}", text(&a.stderr));
    assert_eq!(a.stdout, b.stdout);
    assert_eq!(text(&a.stderr), "");
    let answer = last_json(&a);
    let throughput = answer["result"]["metrics"]["throughput_mbps"].as_f64().unwrap();
    assert!((20.0..35.0).contains(&throughput), "{throughput}");
    assert_eq!(answer["result"]["trace_hash"].as_str().unwrap().len(), 16);
    assert_eq!(answer["set"]["nodes"], "3");
}

#[test]
fn bad_input_is_one_sentence_and_exit_code_2() {
    let path = scenario("ns3-saturation.toml");
    for (args, says) in [
        (vec!["run", "no-such-file.toml"], "cannot read the scenario"),
        (vec!["run", &path, "--set", "node=3"], "did you mean `nodes`?"),
        (vec!["run", &path, "--set", "nodes=0"], "from 1 to 10000"),
        (vec!["run", &path, "--set", "nodes"], "KEY=VALUE"),
        (vec!["run", &path, "--seeds", "5..1"], "--seeds 5..1"),
    ] {
        let output = sdmac(&args).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(
            stderr.starts_with("sdmac: ") && stderr.contains(says),
            "{args:?}: {stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn a_folder_holds_everything() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let path = scenario("oneshot.toml");
    let args = [
        "run",
        &path,
        "--set",
        "duration=1s",
        "--out",
        out.to_str().unwrap(),
    ];
    let output = sdmac(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("measurements"));
    for file in [
        "air.pcapng",
        "timeline.perfetto-trace",
        "confirms.parquet",
        "deliveries.parquet",
        "report.html",
    ] {
        assert!(out.join(file).metadata().unwrap().len() > 100, "{file}");
    }
    let result: Value = serde_json::from_slice(&std::fs::read(out.join("result.json")).unwrap()).unwrap();
    assert_eq!(result["status"], "complete");
    assert!(result["result"]["metrics"]["measurements"].as_f64().unwrap() > 5.0);
}

#[test]
fn grids_give_means_and_files() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let path = scenario("ns3-saturation.toml");
    let mut args = vec!["run", &path, "--set", "nodes=1,3", "--set", "duration=50ms"];
    args.extend([
        "--seeds",
        "1..3",
        "--jobs",
        "2",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ]);
    let output = sdmac(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer = last_json(&output);
    let point = &answer["points"][1];
    assert_eq!(point["set"]["nodes"], "3");
    assert_eq!(point["runs"].as_array().unwrap().len(), 3);
    assert!(
        point["metrics"]["throughput_mbps"]["plus_minus"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    let run = out.join("run-nodes=3_duration=50ms_seed=2.json");
    let run: Value = serde_json::from_slice(&std::fs::read(run).unwrap()).unwrap();
    assert_eq!(run["result"], point["runs"][1]);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("./run-nodes%3D3_duration%3D50ms_seed%3D2.json"));
}

/// Starts a run without an end; the folder is there once the signals are ours.
fn endless(mut command: Command, out: &Path) -> Child {
    let path = scenario("oneshot.toml");
    let child = command
        .args(["run", &path, "--set", "duration=1000h", "--out"])
        .arg(out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !out.join("result.json").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    child
}

fn kill(child: &Child, signal: &str) {
    let killed = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
}

#[test]
fn ctrl_c_keeps_what_there_is_and_so_do_sigterm_and_sighup() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        // what these tests ignore, for nohup has started them, their children ignore, too
        if signal == "-HUP" && ignores_hup(std::process::id()) {
            continue;
        }
        let child = endless(sdmac(&[]), &out);
        kill(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(130),
            "{signal}: {}",
            text(&output.stderr)
        );
        let result: Value = serde_json::from_slice(&std::fs::read(out.join("result.json")).unwrap()).unwrap();
        assert_eq!(result["status"], "interrupted", "{signal}");
        assert!(out.join("air.pcapng").metadata().unwrap().len() > 100);
        for entry in std::fs::read_dir(&out).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.ends_with(".tmp"), "{signal}: {name} was left");
        }
    }
}

/// Whether a process ignores SIGHUP, which is inherited.
fn ignores_hup(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}

/// `nohup sdmac run ...` outlives its terminal.
#[test]
fn a_sighup_that_is_ignored_stays_ignored() {
    let place = tempfile::tempdir().unwrap();
    let mut nohup = Command::new("sh");
    nohup.args([
        "-c",
        "trap '' HUP; exec \"$0\" \"$@\"",
        env!("CARGO_BIN_EXE_sdmac"),
    ]);
    let child = endless(nohup, &place.path().join("out"));
    let ignored = ignores_hup(child.id());
    kill(&child, "-TERM");
    let output = child.wait_with_output().unwrap();
    assert!(ignored);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
}

#[test]
fn schema_and_completions_are_printed() {
    let schema = sdmac(&["schema"]).output().unwrap();
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    assert!(schema["properties"]["group"].is_object());
    let script = sdmac(&["completions", "bash"]).output().unwrap();
    assert!(text(&script.stdout).contains("_sdmac"));
}
