//! `sdmac atp`: two programs, one file.

mod addresses;
mod input;
#[path = "../namespaces/mod.rs"]
mod namespaces;
#[path = "../hop/network.rs"]
mod network;
mod pipe;
mod proxy;
mod together;
mod vanished;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use protocols::transport::wire::{Control, Header, ProtocolId};

fn sdmac() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sdmac"))
}

/// The next line that a program says on its standard error.
fn said(child: &mut std::process::Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    line
}

/// Starts a receiver; tells where it waits.
fn receiver(dir: &std::path::Path, more: &[&str]) -> (std::process::Child, String) {
    receiver_at("127.0.0.1:0", dir, more)
}

fn receiver_at(listen: &str, dir: &std::path::Path, more: &[&str]) -> (std::process::Child, String) {
    let mut program = sdmac();
    program
        .args(["atp", "recv", "--listen", listen])
        .args(more)
        .current_dir(dir);
    listening(program)
}

/// Starts a program; tells where it says that it listens.
fn listening(mut program: Command) -> (std::process::Child, String) {
    let mut child = program
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = said(&mut child);
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    (child, address)
}

#[test]
fn a_file_arrives_and_both_say_so() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = here.path().join("data.bin");
    std::fs::write(&file, [7; 100_000]).unwrap();
    let (child, address) = receiver(there.path(), &[]);
    let sent = sdmac()
        .args(["atp", "send", "--json", "--spacing", "200us"])
        .arg(&file)
        .arg(&address)
        .output()
        .unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    let said: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!(
        (&said["octets"], &said["failed"]),
        (&100_000.into(), &serde_json::Value::Null)
    );
    let received = child.wait_with_output().unwrap();
    assert!(received.status.success());
    assert_eq!(
        std::fs::read(there.path().join("data.bin")).unwrap(),
        [7; 100_000]
    );
}

/// The other end gets a name that it can show, and this one says which.
#[test]
fn a_name_that_is_no_text_is_not_changed_in_silence() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = here.path().join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::write(&file, "x").unwrap();
    for (name, arrives) in [(None, "caf\u{fffd}"), (Some("cafe"), "cafe")] {
        let (child, address) = receiver(there.path(), &[]);
        let sent = sdmac()
            .args(["atp", "send"])
            .args(name.map(|name| format!("--name={name}")))
            .arg(&file)
            .arg(&address)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&sent.stderr);
        assert!(sent.status.success(), "{said}");
        assert_eq!(
            said.contains("goes as 'caf\u{fffd}'"),
            name.is_none(),
            "{name:?}: {said}"
        );
        assert!(child.wait_with_output().unwrap().status.success());
        assert!(there.path().join(arrives).exists(), "{arrives}");
    }
}

#[test]
fn a_stream_goes_through_a_pipe() {
    let there = tempfile::tempdir().unwrap();
    let (child, address) = receiver(there.path(), &["--stdout"]);
    let sent = Command::new("sh")
        .args(["-c", "printf 'one two three' | \"$0\" atp send - \"$1\""])
        .arg(env!("CARGO_BIN_EXE_sdmac"))
        .arg(&address)
        .output()
        .unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert_eq!(child.wait_with_output().unwrap().stdout, b"one two three");
}

#[test]
fn a_key_that_is_printed_for_machines_is_a_document() {
    let out = sdmac().args(["atp", "key", "--json"]).output().unwrap();
    let said: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(said["key"].as_str().map(str::len), Some(64), "{said}");
}

#[test]
fn with_a_key_of_its_own_making() {
    let there = tempfile::tempdir().unwrap();
    let path = there.path().join("key");
    let made = sdmac().args(["atp", "key"]).arg(&path).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "others can read it");
    let path = path.to_str().unwrap();
    let (child, address) = receiver(there.path(), &["--key", path]);
    let sent = sdmac()
        .args(["atp", "send", path, &address, "--name", "copy", "--key", path])
        .output()
        .unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert!(!String::from_utf8_lossy(&sent.stderr).contains("chmod"));
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(
        std::fs::read(there.path().join("copy")).unwrap(),
        std::fs::read(path).unwrap()
    );
    // a key that others can read is taken, and the user hears of it
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let sent = sdmac()
        .args([
            "atp",
            "send",
            path,
            "127.0.0.1:9",
            "--key",
            path,
            "--patience",
            "200ms",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(said.contains(&format!("chmod 600 {path}")), "{said}");
}

/// Who calls with another key hears nothing, and whoever waits is told why.
#[test]
fn a_call_with_another_key_is_told_of() {
    let there = tempfile::tempdir().unwrap();
    let key = |name| {
        let path = there.path().join(name).to_str().unwrap().to_owned();
        assert!(sdmac().args(["atp", "key", &path]).status().unwrap().success());
        path
    };
    let (mine, other) = (key("mine"), key("other"));
    let (mut child, address) = receiver(there.path(), &["--key", &mine]);
    let mut sender = sdmac()
        .args(["atp", "send", &mine, &address, "--key", &other])
        .spawn()
        .unwrap();
    let line = said(&mut child);
    assert!(line.contains("it calls with another key"), "{line}");
    for child in [&mut sender, &mut child] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// Waits until a file has so many octets.
fn wait_for_octets(path: &std::path::Path, octets: u64) {
    let has = || std::fs::metadata(path).map_or(0, |m| m.len());
    for _ in 0..6_000 {
        if has() >= octets {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{} has {} octets", path.display(), has());
}

/// A sender of what is given to its standard input.
fn stream_sender(address: &str, more: &[&str]) -> std::process::Child {
    sdmac()
        .args(["atp", "send", "-", address])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// As a proxy does.
#[test]
fn a_receiver_listens_at_a_name() {
    let there = tempfile::tempdir().unwrap();
    let (mut child, address) = receiver_at("localhost:0", there.path(), &[]);
    let at: std::net::SocketAddr = address.parse().unwrap();
    assert!(at.ip().is_loopback(), "{at}");
    let mut sender = stream_sender(&address, &[]);
    drop(sender.stdin.take());
    assert!(sender.wait().unwrap().success());
    assert!(child.wait().unwrap().success());
}

/// `--once` ends with the first transfer: well, or with the reason if it broke off.
#[test]
fn a_receiver_for_one_transfer() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = here.path().join("data.bin");
    std::fs::write(&file, [7; 10_000]).unwrap();
    let file = file.to_str().unwrap();
    let (child, address) = receiver(there.path(), &["--once"]);
    let sent = sdmac().args(["atp", "send", file, &address]).output().unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert!(child.wait_with_output().unwrap().status.success());

    // it is there already
    let (child, address) = receiver(there.path(), &["--once"]);
    let sent = sdmac().args(["atp", "send", file, &address]).output().unwrap();
    assert_eq!(sent.status.code(), Some(1));
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("data.bin from 127.0.0.1") && said.contains("not taken"),
        "{said}"
    );

    // a sender that is killed in the middle
    let (child, address) = receiver(there.path(), &["--once", "--patience", "1s"]);
    let mut sender = stream_sender(&address, &["--name", "x"]);
    let mut input = sender.stdin.take().unwrap();
    input.write_all(&[7; 20_000]).unwrap();
    wait_for_octets(&there.path().join(".x.sdmac-part"), 20_000);
    sender.kill().unwrap();
    sender.wait().unwrap();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("x from 127.0.0.1") && said.contains("silent"),
        "{said}"
    );
}

/// The transfer that was waited for is whole: a sender that was killed costs neither time nor the exit code.
#[test]
fn the_exit_code_is_that_of_the_transfer_that_was_waited_for() {
    for more in [&["--once"], &["--count=1"]] {
        let there = tempfile::tempdir().unwrap();
        let (child, address) = receiver(there.path(), more);
        let mut killed = stream_sender(&address, &["--name", "x"]);
        let mut input = killed.stdin.take().unwrap();
        input.write_all(&[7; 20_000]).unwrap();
        wait_for_octets(&there.path().join(".x.sdmac-part"), 20_000);
        killed.kill().unwrap();
        killed.wait().unwrap();
        let begun = std::time::Instant::now();
        let mut whole = stream_sender(&address, &["--name", "y"]);
        drop(whole.stdin.take());
        assert!(whole.wait().unwrap().success());
        let out = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(0), "{more:?}: {said}");
        assert!(begun.elapsed().as_secs() < 30, "it waited for the other one");
        assert!(said.contains("not waited for"), "{said}");
    }
}

/// Who is declined beside the transfer that is waited for is spoken of.
#[test]
fn a_receiver_for_one_transfer_tells_of_others() {
    let there = tempfile::tempdir().unwrap();
    let (child, address) = receiver(there.path(), &["--once"]);
    let mut first = stream_sender(&address, &["--name", "x"]);
    let mut input = first.stdin.take().unwrap();
    input.write_all(&[7; 20_000]).unwrap();
    wait_for_octets(&there.path().join(".x.sdmac-part"), 20_000);
    let second = stream_sender(&address, &["--name", "x"]);
    assert_eq!(second.wait_with_output().unwrap().status.code(), Some(1));
    drop(input);
    assert!(first.wait().unwrap().success());
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("sends 'x' just now"), "{said}");
}

/// Whoever else is there then.
#[test]
fn a_receiver_for_one_transfer_says_once_why_it_ends() {
    let there = tempfile::tempdir().unwrap();
    let (child, address) = receiver(there.path(), &["--once"]);
    let mut senders = ["x", "y"].map(|name| {
        let mut sender = stream_sender(&address, &["--name", name]);
        let mut input = sender.stdin.take().unwrap();
        input.write_all(&[7; 20_000]).unwrap();
        wait_for_octets(&there.path().join(format!(".{name}.sdmac-part")), 20_000);
        (sender, input)
    });
    let pid = rustix::process::Pid::from_child(&senders[0].0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    let times = |name: &str| said.matches(&format!("{name} from 127.0.0.1:")).count();
    assert_eq!((times("x"), times("y")), (1, 1), "{said}");
    assert!(said.trim_end().ends_with("has reset the connection"), "{said}");
    for (sender, _) in &mut senders {
        sender.wait().unwrap();
    }
}

/// What was declined once is not missing when it has come.
#[test]
fn what_was_declined_may_be_sent_again() {
    let there = tempfile::tempdir().unwrap();
    let (child, address) = receiver(there.path(), &["--count=1"]);
    let sender = || stream_sender(&address, &["--name", "x"]);
    let mut first = sender();
    let mut input = first.stdin.take().unwrap();
    input.write_all(&[7; 20_000]).unwrap();
    wait_for_octets(&there.path().join(".x.sdmac-part"), 20_000);
    assert_eq!(sender().wait_with_output().unwrap().status.code(), Some(1));
    let pid = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    first.wait().unwrap();
    // the receiver may not have heard that the first one is gone
    let begun = std::time::Instant::now();
    while !sender().wait_with_output().unwrap().status.success() {
        assert!(begun.elapsed().as_secs() < 60, "it is not taken");
    }
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("sends 'x' just now"), "{said}");
}

/// Standard output is the content's, so what is said for machines stands beside it.
#[test]
fn standard_output_leaves_the_document_to_standard_error() {
    let there = tempfile::tempdir().unwrap();
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let child = sdmac()
        .args(["atp", "recv", "--stdout", "--json", "--listen", &address])
        .current_dir(there.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let sent = loop {
        let mut sender = stream_sender(&address, &["--json"]);
        let mut input = sender.stdin.take().unwrap();
        // nobody may listen yet
        let _ = input.write_all(b"one two three");
        drop(input);
        let out = sender.wait_with_output().unwrap();
        if out.status.success() {
            break out;
        }
    };
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.stdout, b"one two three");
    let received: serde_json::Value = serde_json::from_slice(&out.stderr).unwrap();
    let sent: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    for transfer in [&received["transfers"][0], &sent] {
        assert_eq!(transfer["octets"], 13, "{transfer}");
        // no hop has told
        assert!(transfer["delay_us"].is_null(), "{transfer}");
    }
}

/// Standard output carries one stream; who comes second is told so.
#[test]
fn standard_output_is_for_one() {
    let there = tempfile::tempdir().unwrap();
    let (child, address) = receiver(there.path(), &["--stdout"]);
    let mut first = stream_sender(&address, &[]);
    let mut input = first.stdin.take().unwrap();
    input.write_all(b"one ").unwrap();
    let mut child = child;
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 4]).unwrap();
    let second = sdmac()
        .args(["atp", "send", "-", &address, "--name", "other"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("standard output carries"), "{said}");
    input.write_all(b"two").unwrap();
    drop(input);
    assert!(first.wait().unwrap().success());
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"two");
    child.wait().unwrap();
}

/// What was stopped says how far it came, and what is kept, to people and to machines.
#[test]
fn who_is_stopped_tells_how_far_it_came() {
    const OCTETS: u64 = 1_000_000; // many epochs long
    for json in [false, true] {
        let there = tempfile::tempdir().unwrap();
        // with --json nobody tells the port
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let mut receiver = sdmac()
            .args(["atp", "recv", "--listen", &address])
            .args(json.then_some("--json"))
            .current_dir(there.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut sender = loop {
            let more = ["--name", "x", "--json", "--spacing", "200us"];
            let mut sender = stream_sender(&address, &more);
            std::thread::sleep(std::time::Duration::from_millis(500));
            // nobody listens yet
            if sender.try_wait().unwrap().is_none() {
                break sender;
            }
        };
        let mut input = sender.stdin.take().unwrap();
        input.write_all(&vec![7; OCTETS as usize]).unwrap();
        wait_for_octets(&there.path().join(".x.sdmac-part"), OCTETS);
        let pid = rustix::process::Pid::from_child(&receiver);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let mut said = String::new();
        receiver.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let out = receiver.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(130), "{said}");
        if json {
            let said: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
            let transfer = &said["transfers"][0];
            assert_eq!(transfer["octets"], OCTETS, "{said}");
            assert!(transfer["failed"].as_str().unwrap().contains("kept"), "{said}");
            // what the sender tells and what has come twice, not what this end would send
            let spacing = transfer["spacing_us"].as_u64();
            assert!(spacing.is_some_and(|us| us < 10_000), "{said}");
            assert!(
                transfer["repeated"].is_u64() && transfer.get("resent").is_none(),
                "{said}"
            );
        } else {
            assert!(said.contains("kept"), "{said}");
        }
        let out = sender.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(1));
        let said: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        // the last ones may not have been acknowledged
        let octets = said["octets"].as_u64().unwrap();
        assert!((1..=OCTETS).contains(&octets), "{said}");
    }
}

/// A browser that went astray has sent nothing that could be missing.
#[test]
fn who_has_offered_nothing_does_not_count() {
    for more in [&["--once"], &["--count=1"]] {
        let there = tempfile::tempdir().unwrap();
        let (mut child, address) = receiver(there.path(), more);
        let (mut stranger, at) = proxy::end("tcp:127.0.0.1:0", &format!("atp:{address}"));
        let mut browser = std::net::TcpStream::connect(at).unwrap();
        browser.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let line = said(&mut child);
        assert!(line.contains("sdmac: a connection from 127.0.0.1:"), "{line}");
        let mut whole = stream_sender(&address, &["--name", "y"]);
        drop(whole.stdin.take());
        assert!(whole.wait().unwrap().success(), "{more:?}");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{more:?}");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}

/// Who brings many connections about and says nonsense on them does not fill the terminal.
#[test]
fn strangers_are_told_of_once_a_second() {
    const STRANGERS: usize = 30;
    let there = tempfile::tempdir().unwrap();
    let (child, address) = receiver(there.path(), &["--count=0"]);
    let begun = std::time::Instant::now();
    for _ in 0..STRANGERS {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(&address).unwrap();
        let hangs = std::time::Duration::from_secs(60);
        socket.set_read_timeout(Some(hangs)).unwrap();
        let mut header = Header {
            sequence: 1_000,
            spacing_us: 40_000,
            ..Header::new(ProtocolId::Atp, Control::SYN.with(Control::SACK_REQ))
        };
        socket.send(&header.octets()).unwrap();
        let mut octets = [0; 2_000];
        let n = socket.recv(&mut octets).unwrap();
        let (answer, _) = Header::parse(&octets[..n]).unwrap();
        header.control = Control::ACK;
        header.sequence += 1;
        header.acknowledgement = answer.sequence.wrapping_add(1);
        socket
            .send(&[&header.octets()[..], b"nonsense"].concat())
            .unwrap();
        // the receiver resets it, which may come behind other answers
        loop {
            let n = socket.recv(&mut octets).unwrap();
            let (answer, _) = Header::parse(&octets[..n]).unwrap();
            if answer.control.has(Control::RST) {
                break;
            }
        }
    }
    let seconds = begun.elapsed().as_secs() as usize;
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    let lines = said.matches("a connection from 127.0.0.1:").count();
    assert!((1..=2 + seconds).contains(&lines), "{seconds} s: {said}");
}
