//! `sdmac atp` with input that makes no sense.

use super::sdmac;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn bad_input_gets_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x");
    std::fs::write(&file, "x").unwrap();
    let file = file.to_str().unwrap();
    let folder = dir.path().to_str().unwrap();
    let long = "x".repeat(256);
    // octets that are no text are three each when they are sent
    let unreadable = OsStr::from_bytes(&[0xff; 100]);
    std::fs::write(dir.path().join(unreadable), "x").unwrap();
    let out = sdmac()
        .args(["atp", "send"])
        .arg(dir.path().join(unreadable))
        .arg("127.0.0.1:9")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.code() == Some(2) && said.contains("300 octets"),
        "{said}"
    );
    let cases: [(&[&str], i32, &str); 20] = [
        (
            &["proxy", "tcp:127.0.0.1:0", "tcp:127.0.0.1:9"],
            2,
            "make no proxy",
        ),
        (&["proxy", "tcp:127.0.0.1:0", "atp:127.0.0.1"], 2, "has no port"),
        (&["send", file, "127.0.0.1:9", "--key", file], 2, "is no key"),
        // has no end
        (
            &["send", file, "127.0.0.1:9", "--key", "/dev/zero"],
            2,
            "/dev/zero is no key",
        ),
        (&["send", file, "127.0.0.1:0"], 2, "port 0"),
        (&["proxy", "tcp:127.0.0.1:0", "atp:127.0.0.1:0"], 2, "port 0"),
        (&["send", file, "127.0.0.1"], 2, "has no port"),
        (&["send", folder, "127.0.0.1:9"], 2, "is a folder"),
        (&["send", "nowhere", "127.0.0.1:9"], 2, "nowhere: No such file"),
        (
            &["send", file, "127.0.0.1:9", "--name", "a/b"],
            2,
            "no name for a file",
        ),
        (
            &["send", file, "127.0.0.1:9", "--name", &long],
            2,
            "the name has 256 octets",
        ),
        (
            &["send", file, "127.0.0.1:9", "--variant", "reno"],
            2,
            "the variants are",
        ),
        (&["send", file, "127.0.0.1:9"], 1, "nobody listens at 127.0.0.1:9"),
        (&["recv", "127.0.0.1:9"], 2, "--listen 127.0.0.1:9"),
        (&["key", "x"], 2, "x is there already"),
        (&["recv", "--dir", "nowhere"], 2, "nowhere is no folder"),
        (
            &["send", file, "127.0.0.1:9", "--spacing", "1.1s"],
            2,
            "--spacing 1.1 s: no packet waits for longer than 1 s",
        ),
        (&["recv", "--listen", "127.0.0.1"], 2, "'127.0.0.1' has no port"),
        (&["recv", "--spacing", "1e9s"], 2, "give 1s at most"),
        (
            &["recv", "--listen", "192.0.2.1:1"],
            2,
            "cannot listen at 192.0.2.1:1",
        ),
    ];
    for (args, code, expected) in cases {
        let out = sdmac()
            .args(["--json", "atp"])
            .args(args)
            .current_dir(folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        // of what has not begun there is no document
        assert_eq!(out.stdout.is_empty(), code == 2, "{args:?}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}
