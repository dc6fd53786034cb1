//! On Debian's kernel: `sdmac measure --confirm all` with our module on an air that loses, and an air whose radios go.
//! `cargo xtask lab` runs it.

mod guest;

use serde_json::Value;

const FRAMES: u64 = 600;

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name}: {row:#}"))
}

#[test]
#[ignore = "needs QEMU, Debian's kernel and a compiler for the module: cargo xtask lab"]
fn all_paths_agree_on_an_air_that_loses() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel");
    let how = ["--qemu", "standard", "--radios", "2", "--module", module];
    let options = format!("--rate 24M --count {FRAMES} --confirm all");
    // Of five tries four fail, so some frames take all of theirs, and in vain.
    let done = guest::measure_with_losses(folder, &how, (0.75, 0.2), "", &options);
    assert_eq!(done.code, Some(0), "{}", done.said);
    let told = done.document(folder, "measured.json");
    let notes = told["notes"].as_array().unwrap();
    let starts = |with: &str| {
        notes
            .iter()
            .any(|n| n.as_str().is_some_and(|n| n.starts_with(with)))
    };
    assert!(
        starts("no certificate") && starts("this processor is emulated"),
        "{notes:?}"
    );
    assert!(
        !notes.iter().any(|n| n.to_string().contains("nobody answers")),
        "{notes:?}"
    );
    let head = ["emulated", "channel_mhz", "sent", "refused", "no_device"].map(|name| told[name].clone());
    let expect: [Value; 5] = [true.into(), 5180.into(), FRAMES.into(), 0.into(), Value::Null];
    assert_eq!(head, expect);
    let rows = told["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 12, "three kinds of frames on four paths");
    for row in rows {
        assert_eq!(number(row, "sent"), FRAMES / 3, "{row:#}");
        if row["carries"] == false {
            assert_eq!(
                (number(row, "told"), &row["latency"]),
                (0, &Value::Null),
                "{row:#}"
            );
            continue;
        }
        assert_eq!(
            (number(row, "told"), number(row, "told_again")),
            (FRAMES / 3, 0),
            "{row:#}"
        );
        assert!(number(row, "awaited") > 0, "{row:#}");
        let [min, median] = ["min_ns", "median_ns"].map(|name| row["latency"][name].as_f64().unwrap());
        assert!(
            0.0 < min && min <= median && row["latency"]["p99_ns"].is_null(),
            "{row:#}"
        );
        assert_eq!(row["to_monitor"].as_array().map(Vec::len), Some(3), "{row:#}");
        // Some are lost and some are not, and each path says so of the same frames.
        let lost = number(row, "not_acked");
        assert!((1..FRAMES / 3).contains(&lost), "{row:#}");
        let monitor = rows
            .iter()
            .find(|r| r["frames"] == row["frames"] && r["path"] == "monitor");
        assert_eq!(lost, number(monitor.unwrap(), "not_acked"), "{row:#}");
        if !row["tried_again"].is_null() {
            assert!(number(row, "tried_again") > 0, "{row:#}");
        }
        for what in ["acked", "tries", "series"] {
            let right = &row[what];
            assert_eq!(right["right"], right["of"], "{what}: {row:#}");
        }
        let device = row["path"] == "device";
        assert_eq!(device, !row["series"].is_null(), "{row:#}");
        assert_eq!(row["path"] != "monitor", !row["acked"].is_null(), "{row:#}");
    }
    let carried = rows.iter().filter(|row| row["carries"] == true).count();
    assert_eq!(carried, 8);
    println!("{told:#}");
}

/// The module goes while the air is there, which is asked to end only if it has not noticed in a minute.
const UNLOADING: &str = r#"
"$SDMAC" air "$FOLDER/two.toml" 2> "$FOLDER/said" & air=$!
until grep -q Ctrl-C "$FOLDER/said"; do sleep 0.1; done
busybox rmmod mac80211_hwsim || exit 99
(sleep 60; kill -INT $air) 2> /dev/null &
wait $air
"#;

#[test]
#[ignore = "needs QEMU and Debian's kernel: cargo xtask lab"]
fn an_air_ends_when_its_radios_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let group = |name| format!("[[group]]\nname = \"{name}\"\nprotocol.sender = {{ rate = \"24M\" }}\n");
    let air = format!(
        "[run]\nduration = \"1s\"\n[medium]\nloss.fixed_power_dbm = -50\nerror = \"perfect\"\n{}{}",
        group("a"),
        group("b")
    );
    std::fs::write(folder.join("two.toml"), air).unwrap();
    let done = guest::run(folder, &["--qemu", "standard", "--radios", "2"], UNLOADING, &[]);
    let said = std::fs::read_to_string(folder.join("said")).unwrap_or_default();
    assert_eq!(done.code, Some(1), "{said}{}", done.said);
    assert!(
        said.contains("the radios are gone: mac80211_hwsim was unloaded"),
        "{said}"
    );
}
