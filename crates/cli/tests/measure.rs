//! `sdmac measure --host` writes what `sdmac qualify --host` reads, whoever runs it.

use std::process::{Command, Output};

fn sdmac(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sdmac"))
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn a_measured_profile_can_be_qualified() {
    let dir = tempfile::tempdir().unwrap();
    for base in ["table5", "table4-optimised-io"] {
        let profile = dir.path().join(format!("{base}.toml"));
        let profile = profile.to_str().unwrap();
        let measured = sdmac(&[
            "measure",
            "--host",
            "--quick",
            "--loads=idle",
            "--base",
            base,
            "--out",
            profile,
        ]);
        let said = String::from_utf8_lossy(&measured.stderr);
        assert_eq!(measured.status.code(), Some(0), "{said}");
        let question = [
            "--nodes=2",
            "--cycle=20ms",
            "--payload=50",
            "--miss=1e-2",
            "--scheme=edf",
            "--quick",
        ];
        let qualified = sdmac(&[&["qualify", "--host", profile][..], &question].concat());
        let said = String::from_utf8_lossy(&qualified.stderr);
        assert!(matches!(qualified.status.code(), Some(0 | 1)), "{base}: {said}");
        assert!(
            said.contains("rests on 40 samples"),
            "few samples are said: {said}"
        );
    }
}

/// No file may grow beyond 512 octets here, which is what a disk that gets full looks like.
#[test]
fn an_old_profile_survives_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let profile = dir.path().join("host.toml");
    std::fs::write(&profile, "the old one").unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_sdmac"))
        .args(["measure", "--host", "--quick", "--loads=idle", "--out"])
        .arg(&profile)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cannot write") && said.contains("host.toml"),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(&profile).unwrap(), "the old one");
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing else is left"
    );
}
