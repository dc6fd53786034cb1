//! `sdmac reproduce` as a user meets it: exit codes, JSON, files, a stop in the middle.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn reproduce(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sdmac"));
    command.arg("reproduce").args(args);
    command
}

/// A quick run, with its folder.
struct Quick {
    path: PathBuf,
    code: Option<i32>,
    said: String,
    answer: Value,
    /// What `path` is in.
    dir: tempfile::TempDir,
}

fn quick(paper: &str) -> Quick {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    quick_to(paper, dir, path)
}

fn quick_to(paper: &str, dir: tempfile::TempDir, path: PathBuf) -> Quick {
    let out = reproduce(&[paper, "--quick", "--json", "--out"])
        .arg(&path)
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let last = text.lines().last().unwrap_or_else(|| panic!("{said}"));
    let answer: Value = serde_json::from_str(last).unwrap();
    assert_eq!(answer["paper"], paper);
    Quick {
        path,
        code: out.status.code(),
        said,
        answer,
        dir,
    }
}

impl Quick {
    fn rows(&self) -> &[Value] {
        self.answer["rows"].as_array().unwrap()
    }

    /// Every row is right.
    fn is_right(&self) {
        assert_eq!(self.code, Some(0), "{}", self.said);
        assert_eq!(self.answer["ok"], true);
    }

    /// Rows that disagree stay, and the exit code says so.
    fn says_what_its_rows_say(&self) {
        let all = self.rows().iter().all(|row| row["ok"] == true);
        assert_eq!(self.answer["ok"], all);
        assert_eq!(self.code, Some(i32::from(!all)));
    }

    /// Each row is in the report.
    fn page_is_whole(&self) {
        let page = std::fs::read_to_string(self.path.join("report.html")).unwrap();
        for row in self.rows() {
            assert!(page.contains(row["id"].as_str().unwrap()), "{row}");
        }
    }

    fn has(&self, files: &[&str]) {
        for file in files {
            assert!(self.path.join(file).exists(), "{file}");
        }
    }
}

/// Exit code 0 means what the help says: each row that was judged is right, or says why it is not.
#[test]
fn every_row_is_right_or_explained_and_the_folder_says_the_same() {
    let run = quick("sdmac");
    assert_eq!(run.code, Some(0), "{}", run.said);
    let rows = run.rows();
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
    run.page_is_whole();
}

/// The chains of the thesis on ATP: rows that disagree stay, and the exit code says so.
#[test]
fn the_exit_code_of_the_chains_is_that_of_their_rows() {
    let run = quick("atp");
    run.says_what_its_rows_say();
    // what is arithmetic is right
    for row in run.rows() {
        assert!(row["kind"] != "exact" || row["verdict"] == "ok", "{row}");
    }
    // our own aims are judged like the rest
    let aims = run.rows().iter().filter(|row| row["kind"] == "ours");
    assert!(aims.clone().count() == 4 && aims.clone().all(|row| row["ours"] != Value::Null));
    run.page_is_whole();
    run.has(&[
        "report.html",
        "fig5.1.svg",
        "fig5.2a-delay.svg",
        "fig5.3b.svg",
        "fig5.9d.svg",
        "fig5.10-32.svg",
        "fig5.12b.svg",
    ]);
}

#[test]
fn the_other_paper_comes_out_too() {
    let run = quick("tdma");
    run.is_right();
    run.page_is_whole();
}

/// Two and three hosts of RT-WLAN: every row, and the figures beside the page.
#[test]
fn the_way_to_the_card_comes_out_too() {
    let run = quick("rtwlan");
    run.is_right();
    run.page_is_whole();
    run.has(&["fig8-software.svg", "fig10-communication.svg", "three-hosts.svg"]);
}

/// The station on a microcontroller: one row is known to disagree in long runs.
#[test]
fn the_exit_code_of_the_microcontroller_is_that_of_its_rows() {
    let run = quick("contiki80211");
    run.says_what_its_rows_say();
    // what is arithmetic is right; what disagrees is late ATIMs alone
    for row in run.rows() {
        assert!(row["kind"] != "exact" || row["verdict"] == "ok", "{row}");
        assert!(row["ok"] == true || row["id"] == "4-15", "{row}");
    }
    run.page_is_whole();
    run.has(&[
        "fig7-memory.svg",
        "fig7-delay.svg",
        "fig8-parsing.svg",
        "fig9-handling.svg",
        "fig10-completions.svg",
        "late-atims.svg",
    ]);
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

/// Days of measurements for this folder, stopped when the file is there.
#[cfg(unix)]
fn stopped(how: &str, path: &Path, when: &Path) -> Output {
    let child = reproduce(&["sdmac", how, "--out"])
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // the folder is opened after the signal is ours, and before the work
    while !when.exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130));
    out
}

/// A complete result stays when another run is stopped, whose rows are beside it, and gives way, with all its figures, to one that is complete.
#[cfg(unix)]
#[test]
fn a_complete_result_gives_way_to_a_complete_one_only() {
    let run = quick("rtwlan");
    let partial = run.path.join("partial");
    let files = ["result.json", "report.html", "fig8-software.svg"];
    let read = || files.map(|file| std::fs::read(run.path.join(file)).unwrap());
    let complete = read();
    let out = stopped("--jobs=1", &run.path, &partial.join("result.json"));
    assert!(read() == complete);
    let said = String::from_utf8(out.stdout).unwrap();
    let says = format!("Written to {}: the complete result in", partial.display());
    assert!(said.contains(&says), "{said}");
    let result: Value = serde_json::from_slice(&std::fs::read(partial.join("result.json")).unwrap()).unwrap();
    assert_eq!(result["status"], "interrupted");
    assert!(partial.join("report.html").exists());
    let run = quick_to("tdma", run.dir, run.path);
    run.page_is_whole();
    let left = std::fs::read_dir(&run.path).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["report.html", "result.json"]);
}

/// Days of measurements, stopped after a moment: the rows that were run are there, the others say that they were not.
#[cfg(unix)]
#[test]
fn ctrl_c_leaves_the_rows_that_were_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let out = stopped("--json", &path, &path);
    let text = String::from_utf8(out.stdout).unwrap();
    let answer: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["ours"].is_null()));
    let result: Value = serde_json::from_slice(&std::fs::read(path.join("result.json")).unwrap()).unwrap();
    assert_eq!(result["status"], "interrupted");
    assert!(path.join("report.html").exists());
}
