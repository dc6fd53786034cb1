//! `sdmac air` where it cannot be the air. What it does where it can is tested in the lab.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn air(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sdmac"))
        .arg("air")
        .args(args)
        .output()
        .unwrap()
}

fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"))
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn wrong_input_ends_with_2() {
    let hidden = scenario("hidden-nodes");
    let hidden = hidden.to_str().unwrap();
    for (args, part) in [
        (&["nowhere.toml"][..], "nowhere.toml"),
        (&[hidden, "--set", "mean=1ms,2ms"], "one value"),
        (&[hidden, "--set", "no-such-name=1"], "no-such-name"),
    ] {
        let output = air(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(part), "{}", err(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn without_simulated_radios_it_says_so() {
    if Path::new("/sys/module/mac80211_hwsim").exists() {
        return eprintln!("skipped: this kernel has simulated radios");
    }
    let output = air(&[scenario("hidden-nodes").to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("modprobe mac80211_hwsim"),
        "{}",
        err(&output)
    );
    assert!(output.stdout.is_empty());
}
