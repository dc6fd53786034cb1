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

/// Every source under every load and with both kinds of scheduling has its counts and its order statistics, or it is said why not. Nothing
/// is said of the times themselves: they are those of whatever else this computer does.
#[test]
fn all_loads_and_fifo_are_measured_or_said_to_be_missing() {
    const LOADS: [&str; 3] = ["network", "io", "timers"];
    const SCHEDS: [&str; 2] = ["other", "fifo"];
    let output = Command::new(env!("CARGO_BIN_EXE_sdmac"))
        .args([
            "timers",
            "--samples=20",
            "--interval-us=1000",
            "--json",
            "--quiet",
        ])
        .arg(format!("--loads={}", LOADS.join(",")))
        .arg(format!("--sched={}", SCHEDS.join(",")))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let [rows, left_out, loads] = ["rows", "left_out", "loads"].map(|key| answer[key].as_array().unwrap());
    // a load, a scheduling or a source as a whole, with its reason
    let is_left_out = |word: &str| {
        let names = |l: &&serde_json::Value| l["part"].as_str().unwrap().contains(word);
        left_out.iter().filter(names).any(|l| l["why"] != "")
    };
    for load in LOADS {
        let report = loads.iter().find(|l| l["load"] == load);
        assert!(
            report.is_some_and(|l| l["failed"].is_null()) || is_left_out(load),
            "{load}: {left_out:?}"
        );
        for (sched, source) in SCHEDS.iter().flat_map(|s| {
            ["sleep", "timerfd", "posix", "epoll", "spin", "hybrid", "etf"].map(|source| (s, source))
        }) {
            let name = format!("{source}, {load}, {sched}");
            let mine: Vec<_> = rows
                .iter()
                .filter(|r| r["source"] == source && r["load"] == load && r["sched"] == *sched)
                .collect();
            let [row] = mine[..] else {
                assert!(
                    mine.is_empty() && [source, load, sched].into_iter().any(is_left_out),
                    "{name}: {left_out:?}"
                );
                continue;
            };
            assert_eq!(
                (&row["deadlines"], &row["interrupted"]),
                (&20.into(), &false.into()),
                "{name}"
            );
            for what in ["lateness", "interval"] {
                let of = |key: &str| row[what][format!("{key}_us")].as_f64().unwrap();
                let order = [of("min"), of("p50"), of("p99"), of("max")];
                assert!(order.is_sorted() && order[0] >= 0.0, "{name}: {order:?}");
                assert!(
                    (order[0]..=order[3]).contains(&of("mean")) && of("sd") >= 0.0,
                    "{name}"
                );
            }
            let count = |what: &str| row[what]["count"].as_u64().unwrap();
            // frames that etf dropped have no lateness
            assert!(
                source == "etf" || (count("lateness"), count("interval")) == (20, 19),
                "{name}"
            );
        }
    }
    assert!(!rows.is_empty(), "{left_out:?}");
}
