//! `sdmac atp send` from a named pipe.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use super::{receiver, sdmac};

/// A pipe that nobody opens at its other end is waited for until the user has enough of it. Once somebody does it is a stream.
#[test]
fn a_named_pipe_waits_for_its_other_end() {
    let dir = tempfile::tempdir().unwrap();
    let [pipe, file] = ["pipe", "file"].map(|name| dir.path().join(name));
    std::fs::write(&file, "content").unwrap();
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    let [pipe, file] = [&pipe, &file].map(|path| path.to_str().unwrap());
    let send = |arguments: &[&str], address: &str| {
        sdmac()
            .args(["atp", "send"])
            .args(arguments)
            .arg(address)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    for arguments in [&[pipe][..], &[file, "--key", pipe], &[file, "--trace", pipe]] {
        let mut child = send(arguments, "127.0.0.1:9");
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let waits = said.next().unwrap().unwrap();
        assert!(waits.contains("pipe: waits for somebody"), "{waits}");
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        let why = said.next().unwrap().unwrap();
        assert!(why.contains("nobody had opened"), "{why}");
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
    let there = tempfile::tempdir().unwrap();
    let (receiver, address) = receiver(there.path(), &["--once"]);
    let mut sender = send(&[pipe], &address);
    // who opens it without waiting is told whether the sender has
    let open = || {
        std::fs::OpenOptions::new()
            .write(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(pipe)
    };
    let mut end = loop {
        match open() {
            Ok(end) => break end,
            Err(e) => assert!(sender.try_wait().unwrap().is_none(), "{e}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    end.write_all(b"content").unwrap();
    drop(end);
    assert!(sender.wait_with_output().unwrap().status.success());
    assert!(receiver.wait_with_output().unwrap().status.success());
    assert_eq!(
        std::fs::read_to_string(there.path().join("pipe")).unwrap(),
        "content"
    );
}
