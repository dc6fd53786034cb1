//! `sdmac qualify` as a user meets it: bad input, files, JSON.

use std::process::{Command, Output};

const GOOD: [(&str, &str); 4] = [
    ("nodes", "2"),
    ("cycle", "20ms"),
    ("payload", "50"),
    ("miss", "1e-2"),
];

fn run(change: &[(&str, &str)], flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sdmac"));
    command.arg("qualify");
    for (name, value) in GOOD.iter().filter(|(n, _)| !change.iter().any(|(c, _)| c == n)) {
        command.arg(format!("--{name}={value}"));
    }
    for (name, value) in change {
        command.arg(format!("--{name}={value}"));
    }
    command.args(flags).output().unwrap()
}

#[test]
fn bad_input_gets_a_sentence_and_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("old.toml");
    std::fs::write(&old, "format = \"sdmac-host-profile\"\nversion = 7\n").unwrap();
    let bad: [(&str, &str, &str); 27] = [
        ("nodes", "0", "give 1 to 250"),
        ("nodes", "1000000000", "give 1 to 250"),
        ("nodes", "99999999999", "give 1 to 250"),
        ("nodes", "-1", "invalid value"),
        ("cycle", "-4ms", "between 1 ns"),
        ("cycle", "0ms", "between 1 ns"),
        ("cycle", "4", "not a time"),
        ("cycle", "50us", "on the air"),
        ("cycle", "1000s", "at most 10s"),
        ("miss", "0", "between 0 and 1"),
        ("miss", "1", "between 0 and 1"),
        ("miss", "2", "between 0 and 1"),
        ("miss", "nan", "between 0 and 1"),
        ("payload", "0", "1 to 1500"),
        ("payload", "65535", "1 to 1500"),
        ("payload", "-5", "invalid value"),
        ("seed", "-1", "invalid value '-1'"),
        ("miss", "-1e-4", "between 0 and 1"),
        ("offsets", "odd", "none, even or random"),
        ("host", "table6", "table6"),
        ("host", old.to_str().unwrap(), "version 7"),
        ("phy", "ax", "not a PHY"),
        ("rate", "1M", "802.11a has"),
        ("interference", "rain", "not an interference"),
        ("guard-probability", "1", "give 0.5 to 0.99999"),
        ("scheme", "roam+third", "'third' is no layer"),
        ("scheme", "tdma+edf+join", "'join' stands too late"),
    ];
    for (name, value, expected) in bad {
        let out = run(&[(name, value)], &[]);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "--{name} {value}: {said}");
        assert!(said.contains(expected), "--{name} {value}: {said}");
        assert!(out.stdout.is_empty());
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_told_before_the_work() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for path in [file.to_str().unwrap(), "/proc/nowhere"] {
        let out = run(&[("out", path), ("nodes", "200")], &[]);
        assert_eq!(out.status.code(), Some(2));
        assert_eq!(String::from_utf8(out.stderr).unwrap().lines().count(), 1);
    }
}

/// A guard belongs to slots.
#[test]
fn a_guard_without_slots_is_no_option() {
    let out = run(&[("guard-probability", "0.99"), ("scheme", "edca,edf")], &[]);
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("only tdma has a guard"), "{said}");
}

/// The values stand apart from their names, as people write them.
#[test]
fn a_negative_value_is_a_value_and_no_option() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sdmac"));
    command.args(["qualify", "--nodes", "2", "--payload", "50", "--miss", "1e-2"]);
    let out = command.args(["--cycle", "-4ms"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("'-4ms' is not between 1 ns and 1e9 s"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sdmac"));
    command.arg("qualify");
    for (name, value) in GOOD {
        command.arg(format!("--{name}={value}"));
    }
    command.args(["--json", "--quick", "--scheme=edf"]);
    let out = command.stdout(full).output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("cannot write to stdout"), "{said}");
    assert_eq!(said.lines().count(), 1);
}

/// A question for hours, stopped: what there is can be read.
#[cfg(unix)]
#[test]
fn ctrl_c_leaves_readable_results() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sdmac"));
    command.args([
        "qualify",
        "--nodes=8",
        "--cycle=4ms",
        "--payload=50",
        "--miss=1e-9",
    ]);
    command.args(["--max-cycles=1000000000", "--json", "--scheme=edf,tdma"]);
    let child = command
        .arg("--out")
        .arg(&path)
        .stdout(std::process::Stdio::piped());
    let child = child.spawn().unwrap();
    // the folder is opened after the signal is ours, and before the work
    while !path.exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130));
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer["interrupted"], true);
    let result = std::fs::read(path.join("result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(result["status"], "interrupted");
    let page = std::fs::read_to_string(path.join("report.html")).unwrap();
    assert!(page.contains("The run was stopped early."));
}

#[test]
fn json_is_one_document_and_the_folder_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let out = run(&[("out", path.to_str().unwrap())], &["--json", "--quick"]);
    assert_eq!(
        out.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer["schemes"][1]["scheme"], "edf");
    assert_eq!(answer["schemes"][1]["verdict"], "pass");
    assert_eq!(answer["question"]["cycle_ns"], 20_000_000);
    let page = std::fs::read_to_string(path.join("report.html")).unwrap();
    for part in [
        "Verdict",
        "Latency",
        "Waterfall",
        "Air use",
        "Assumptions",
        "<svg",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let result: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path.join("result.json")).unwrap()).unwrap();
    assert_eq!(result["status"], "complete");
    assert_eq!(result["schemes"], answer["schemes"]);
    for scheme in ["edca", "edf", "tdma"] {
        for file in [
            "air.pcapng",
            "timeline.perfetto-trace",
            "deliveries.parquet",
            "confirms.parquet",
        ] {
            let length = std::fs::metadata(path.join(scheme).join(file)).unwrap().len();
            assert!(length > 1_000, "{scheme}/{file}: {length}");
        }
    }
}
