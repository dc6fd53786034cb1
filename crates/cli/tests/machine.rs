//! `sdmac doctor` and `sdmac tune` as a user meets them. Nothing of this computer is changed.

use std::process::{Command, Output};

use serde_json::Value;

fn sdmac(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sdmac"))
        .args(args)
        .output()
        .unwrap()
}

fn json(out: &Output) -> Value {
    let text = String::from_utf8(out.stdout.clone()).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

#[test]
fn the_doctor_looks_at_this_computer() {
    let out = sdmac(&["doctor", "--json", "--iface", "lo"]);
    let answer = json(&out);
    let findings = answer["findings"].as_array().unwrap();
    let costs = findings.iter().filter(|f| f["state"] == "costs").count();
    assert_eq!(answer["costs"], costs);
    assert_eq!(out.status.code(), Some(i32::from(costs > 0)));
    for name in [
        "preemption",
        "isolated-cpus",
        "clock-source",
        "adapter-interrupts",
    ] {
        assert!(findings.iter().any(|f| f["name"] == name), "{name}");
    }
    let text = String::from_utf8(sdmac(&["doctor"]).stdout).unwrap();
    assert!(
        text.contains("preemption") && text.contains("sdmac tune --dry-run"),
        "{text}"
    );
}

#[test]
fn a_dry_run_shows_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("tune");
    let journal = journal.to_str().unwrap();
    let out = sdmac(&["tune", "--dry-run", "--json", "--journal", journal]);
    assert_eq!(
        out.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let answer = json(&out);
    assert_eq!(answer["applied"], false);
    for step in answer["steps"].as_array().unwrap() {
        let (what, from) = (step["what"].as_str().unwrap(), step["from"].as_str().unwrap());
        if what.starts_with('/') {
            assert_eq!(std::fs::read_to_string(what).unwrap().trim(), from);
        }
        assert_ne!(step["from"], step["to"]);
    }
    let out = sdmac(&["tune", "--revert", "--journal", journal]);
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(said.contains("Nothing to take back"), "{said}");
    assert!(!std::path::Path::new(journal).exists());
}

#[test]
fn bad_input_gets_a_sentence_and_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("notes");
    std::fs::write(&other, "buy milk\n").unwrap();
    let other = other.to_str().unwrap();
    for (args, says) in [
        (&["doctor", "--iface", "wlan99"][..], "no such interface"),
        (&["doctor", "--iface", "../lo"], "no such interface"),
        (&["tune", "--dry-run", "--iface", "wlan99"], "no such interface"),
        (
            &["tune", "--dry-run", "--app-cpu", "4000"],
            "there is no CPU 4000",
        ),
        (
            &["tune", "--revert", "--journal", other],
            "does not begin with `sdmac-tune 1`",
        ),
        (&["tune", "--revert", "--app-cpu", "0"], "cannot be used with"),
    ] {
        let out = sdmac(args);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
}
