//! `sdmac measure --confirm all` on a Debian kernel with our module, and on an air that loses: `cargo xtask lab` runs it.

use std::process::Command;

use serde_json::Value;

const FRAMES: u64 = 600;

/// The other station, the air, and what compares. Leaves a document in the folder.
const COMPARING: &str = r#"
"$SDMAC" air "$FOLDER/air.toml" --json > "$FOLDER/air.json" & air=$!
sleep 2
"$SDMAC" measure --iface phy1 --channel 5180 --peer --json > "$FOLDER/peer.json" & peer=$!
sleep 2
"$SDMAC" measure --iface phy0 --channel 5180 --to 02:00:00:00:01:00 --period-us 2000 --rate 24M --count $FRAMES \
    --confirm all --json > "$FOLDER/compared.json"; code=$?
kill -INT $peer; wait $peer; kill -INT $air; wait $air; exit $code
"#;

/// Of five tries four fail, so some frames take all of theirs, and in vain.
const LOSSES: &str = r#"
[run]
duration = "1s"
[medium]
loss.fixed_power_dbm = -50
error = "perfect"
[[group]]
name = "sta"
count = 2
protocol.sender = { rate = "24M" }
[[link]]
from = "sta.0"
to = "sta.1"
data.fixed = 0.75
[[link]]
from = "sta.1"
to = "sta.0"
ack.fixed = 0.2
"#;

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name}: {row:#}"))
}

#[test]
#[ignore = "needs QEMU, Debian's kernel and a compiler for the module: cargo xtask lab"]
fn all_paths_agree_on_an_air_that_loses() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("air.toml"), LOSSES).unwrap();
    let (me, write) = (env!("CARGO_BIN_EXE_sdmac"), folder.to_str().unwrap());
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel");
    let guest = [
        "lab", "run", "--qemu", "standard", "--radios", "2", "--module", module,
    ];
    let done = Command::new(me)
        .args(guest)
        .args(["--write", write, "--", "sh", "-c", COMPARING])
        .envs([("SDMAC", me), ("FOLDER", write), ("FRAMES", &FRAMES.to_string())])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    let text = std::fs::read_to_string(folder.join("compared.json")).unwrap_or_default();
    let told: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}\n{said}"));
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
