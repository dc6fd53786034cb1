//! `sdmac reproduce` as a user meets it: exit codes, JSON, files, a stop in the middle.

use std::process::{Command, Stdio};

use serde_json::Value;

fn reproduce(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sdmac"));
    command.arg("reproduce").args(args);
    command
}

/// Exit code 0 means what the help says: each row that was judged is right, or says why it is not.
#[test]
fn every_row_is_right_or_explained_and_the_folder_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let out = reproduce(&["sdmac", "--quick", "--json", "--out"])
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(
        out.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let text = String::from_utf8(out.stdout).unwrap();
    let answer: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(answer["paper"], "sdmac");
    let rows = answer["rows"].as_array().unwrap();
    assert!(rows.len() > 60, "{}", rows.len());
    for row in rows {
        let kinds = ["exact", "calibrated", "emergent", "qualitative"];
        assert!(kinds.contains(&row["kind"].as_str().unwrap()), "{}", row["kind"]);
        assert!(row["id"].as_str().unwrap().starts_with("0-"));
        for key in ["what", "paper", "ours", "tolerance", "ok", "note"] {
            assert!(row.get(key).is_some(), "{} has no {key}", row["id"]);
        }
        let explained = row["note"].as_str().is_some_and(|note| !note.is_empty());
        assert!(row["ok"] != false || explained, "{row}");
    }
    let page = std::fs::read_to_string(path.join("report.html")).unwrap();
    for id in rows.iter().filter_map(|row| row["id"].as_str()) {
        assert!(page.contains(id), "{id} is not in the report");
    }
}

/// The chains of the thesis on ATP: rows that disagree stay, and the exit code says so.
#[test]
fn the_exit_code_of_the_chains_is_that_of_their_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let out = reproduce(&["atp", "--quick", "--json", "--out"])
        .arg(&path)
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let answer: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    let all = rows.iter().all(|row| row["ok"] == true);
    assert_eq!((&answer["paper"], &answer["ok"]), (&"atp".into(), &all.into()));
    assert_eq!(out.status.code(), Some(i32::from(!all)));
    // what is arithmetic is right
    for id in ["1-26", "1-43"] {
        let row = rows.iter().find(|row| row["id"] == id).unwrap();
        assert_eq!(row["verdict"], "ok", "{row}");
    }
    for file in [
        "report.html",
        "fig5.1.svg",
        "fig5.2a-delay.svg",
        "fig5.3b.svg",
        "fig5.9d.svg",
        "fig5.10-32.svg",
        "fig5.12b.svg",
    ] {
        assert!(path.join(file).exists(), "{file}");
    }
}

#[test]
fn the_other_paper_comes_out_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let out = reproduce(&["tdma", "--quick", "--json", "--out"])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let text = String::from_utf8(out.stdout).unwrap();
    let answer: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&answer["paper"], &answer["ok"]), (&"tdma".into(), &true.into()));
    let page = std::fs::read_to_string(path.join("report.html")).unwrap();
    for row in answer["rows"].as_array().unwrap() {
        assert!(page.contains(row["id"].as_str().unwrap()), "{row}");
    }
}

/// Two and three hosts of RT-WLAN: every row, and the figures beside the page.
#[test]
fn the_way_to_the_card_comes_out_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let out = reproduce(&["rtwlan", "--quick", "--json", "--out"])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let text = String::from_utf8(out.stdout).unwrap();
    let answer: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&answer["paper"], &answer["ok"]),
        (&"rtwlan".into(), &true.into())
    );
    let page = std::fs::read_to_string(path.join("report.html")).unwrap();
    for row in answer["rows"].as_array().unwrap() {
        assert!(page.contains(row["id"].as_str().unwrap()), "{row}");
    }
    for file in ["fig8-software.svg", "fig10-communication.svg", "three-hosts.svg"] {
        assert!(path.join(file).exists(), "{file}");
    }
}

/// The station on a microcontroller: the exit code is that of the rows, of which one is known to disagree in long runs.
#[test]
fn the_exit_code_of_the_microcontroller_is_that_of_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let out = reproduce(&["contiki80211", "--quick", "--json", "--out"])
        .arg(&path)
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let answer: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    let all = rows.iter().all(|row| row["ok"] == true);
    assert_eq!(
        (&answer["paper"], &answer["ok"]),
        (&"contiki80211".into(), &all.into())
    );
    assert_eq!(out.status.code(), Some(i32::from(!all)));
    // what is arithmetic is right, and what was fitted fits; what disagrees is late ATIMs alone
    for row in rows {
        let id = row["id"].as_str().unwrap();
        assert!(row["kind"] != "exact" || row["verdict"] == "ok", "{row}");
        assert!(row["ok"] == true || id == "4-15", "{row}");
    }
    let page = std::fs::read_to_string(path.join("report.html")).unwrap();
    assert!(rows.iter().all(|row| page.contains(row["id"].as_str().unwrap())));
    for file in [
        "fig7-memory.svg",
        "fig7-delay.svg",
        "fig8-parsing.svg",
        "fig9-handling.svg",
        "fig10-completions.svg",
        "late-atims.svg",
    ] {
        assert!(path.join(file).exists(), "{file}");
    }
}

#[test]
fn bad_input_gets_a_sentence_and_exit_code_2() {
    for (args, says) in [
        (&["wifi7"][..], "sdmac"),
        (&["sdmac", "--seed=-1"], "invalid value"),
        (&["sdmac", "--jobs=0"], "jobs"),
        (&["sdmac", "--quick", "--out=/proc/nowhere"], "/proc/nowhere"),
    ] {
        let out = reproduce(args).output().unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
        assert!(out.stdout.is_empty());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let out = reproduce(&["sdmac", "--quick", "--json"])
        .stdout(full)
        .output()
        .unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write to stdout"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Days of measurements, stopped after a moment: the rows that were run are there, the others say that they were not.
#[cfg(unix)]
#[test]
fn ctrl_c_leaves_the_rows_that_were_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let child = reproduce(&["sdmac", "--json", "--out"])
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
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
    let text = String::from_utf8(out.stdout).unwrap();
    let answer: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["ours"].is_null()));
    let result: Value = serde_json::from_slice(&std::fs::read(path.join("result.json")).unwrap()).unwrap();
    assert_eq!(result["status"], "interrupted");
    assert!(path.join("report.html").exists());
}
