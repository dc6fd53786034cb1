//! `sdmac timers` measures this computer, whoever runs it, and leaves its folder behind.

use std::process::Command;

#[test]
fn a_short_study_has_its_rows_its_choice_and_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("timers");
    let output = Command::new(env!("CARGO_BIN_EXE_sdmac"))
        .args([
            "timers",
            "--samples=30",
            "--loads=idle",
            "--sched=other",
            "--json",
            "--out",
        ])
        .arg(&out)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    for source in ["sleep", "timerfd", "posix", "epoll", "spin", "hybrid"] {
        let mine: Vec<_> = rows.iter().filter(|r| r["source"] == source).collect();
        assert_eq!(mine.len(), 2, "{source}");
        assert!(
            mine.iter()
                .all(|r| r["deadlines"] == 30 && r["lateness"]["count"] == 30)
        );
    }
    let etf = |entry: &serde_json::Value| entry["part"] == "etf" && entry["why"] != "";
    assert!(rows.len() == 14 || answer["left_out"].as_array().unwrap().iter().any(etf));
    assert_eq!(answer["choices"].as_array().unwrap().len(), 2);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Which to take") && page.contains("<svg"));
    assert!(out.join("lateness-250us-idle-other.svg").is_file());
    assert!(out.join("result.json").is_file());
}
