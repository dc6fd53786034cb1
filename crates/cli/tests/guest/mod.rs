//! What tests of adapters in guests of the lab share: a guest that runs a script, the documents that it leaves in a folder,
//! and two stations on an air that loses.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A guest after its script.
pub struct Guest {
    /// Exit code of the script.
    pub code: Option<i32>,
    /// What it said on stderr.
    pub said: String,
}

/// Runs a script in a guest, which may write to `folder`. In the script `$SDMAC` is the program, `$FOLDER` the folder, and
/// certificates are kept there, too: what the user of these tests has kept is none of their business.
pub fn run(folder: &Path, how: &[&str], script: &str, more: &[(&str, &str)]) -> Guest {
    let (me, write) = (env!("CARGO_BIN_EXE_sdmac"), folder.to_str().unwrap());
    let done = Command::new(me)
        .args(["lab", "run"])
        .args(how)
        .args(["--write", write, "--", "sh", "-c", script])
        .envs([("SDMAC", me), ("FOLDER", write), ("XDG_STATE_HOME", write)])
        .envs(more.iter().copied())
        .output()
        .unwrap();
    Guest {
        code: done.status.code(),
        said: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

impl Guest {
    /// A document that the script has left.
    pub fn document(&self, folder: &Path, name: &str) -> Value {
        let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}: {text}\n{}", self.said))
    }
}

/// Measures over a simulated adapter on an air that loses these shares of data and of ACKs: `sdmac measure` with `options`, to
/// a station that listens. The documents are `measured.json` and `peer.json`.
pub fn measure_with_losses(
    folder: &Path,
    how: &[&str],
    (data, ack): (f64, f64),
    before: &str,
    options: &str,
) -> Guest {
    let air = format!(
        "[run]\nduration = \"1s\"\n[medium]\nloss.fixed_power_dbm = -50\nerror = \"perfect\"\n\
         [[group]]\nname = \"sta\"\ncount = 2\nprotocol.sender = {{ rate = \"24M\" }}\n\
         [[link]]\nfrom = \"sta.0\"\nto = \"sta.1\"\ndata.fixed = {data}\n\
         [[link]]\nfrom = \"sta.1\"\nto = \"sta.0\"\nack.fixed = {ack}\n"
    );
    std::fs::write(folder.join("air.toml"), air).unwrap();
    let script = r#"
"$SDMAC" air "$FOLDER/air.toml" --json > "$FOLDER/air.json" & air=$!
sleep 2
"$SDMAC" measure --iface phy1 --channel 5180 --peer --json > "$FOLDER/peer.json" & peer=$!
sleep 2
$BEFORE "$SDMAC" measure --iface phy0 --channel 5180 --to 02:00:00:00:01:00 --period-us 2000 --json $OPTIONS \
    > "$FOLDER/measured.json"; code=$?
kill -INT $peer; wait $peer; kill -INT $air; wait $air; exit $code
"#;
    run(folder, how, script, &[("BEFORE", before), ("OPTIONS", options)])
}
