//! `sdmac atp proxy`: both ends as programs.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::Duration;

use super::{listening, said, sdmac};

/// Nothing here takes so long, unless it hangs.
pub const HANGS: Duration = Duration::from_secs(60);

/// Starts an end of a proxy; tells where it listens.
pub fn end(from: &str, to: &str) -> (Child, String) {
    end_by(sdmac(), from, to, "2s")
}

/// The same, run by this, with so much patience.
fn end_by(mut program: Command, from: &str, to: &str, patience: &str) -> (Child, String) {
    program.args([
        "atp",
        "proxy",
        from,
        to,
        "--patience",
        patience,
        "--spacing",
        "200us",
    ]);
    listening(program)
}

/// Ends it; what else it has said on its standard error.
fn last_words(child: &mut Child) -> String {
    child.kill().unwrap();
    let mut text = String::new();
    child.stderr.as_mut().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// A connection that is open when Ctrl-C comes has carried something, too.
#[test]
fn a_proxy_that_is_stopped_counts_what_is_open() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp:{}", server.local_addr().unwrap());
    let (far, between) = end("atp:127.0.0.1:0", &to);
    let (near, at) = end("tcp:127.0.0.1:0", &format!("atp:{between}"));
    let mut client = TcpStream::connect(at).unwrap();
    client.write_all(b"hello").unwrap();
    let (mut served, _) = server.accept().unwrap();
    served.read_exact(&mut [0; 5]).unwrap();
    for (child, octets) in [
        (near, "5 octets to the other end, 0"),
        (far, "0 octets to the other end, 5"),
    ] {
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let out = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(said.contains("1 connection,") && said.contains(octets), "{said}");
        assert!(!String::from_utf8_lossy(&out.stderr).contains("sending it again"));
    }
}

/// Those for whom there are no descriptors wait, and nobody else is lost for them: (limit - 32) / 3.
#[test]
fn a_proxy_carries_as_many_as_it_has_descriptors_for() {
    const MOST: usize = 8;
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp:{}", server.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let mut stream = stream.unwrap();
            stream.write_all(b"hello").unwrap();
            std::thread::spawn(move || stream.read(&mut [0]));
        }
    });
    // a computer that stands still for two seconds is no reason here
    const PATIENCE: &str = "30s";
    let (mut far, between) = end_by(sdmac(), "atp:127.0.0.1:0", &to, PATIENCE);
    let mut few = Command::new("sh");
    few.args([
        "-c",
        "ulimit -n 57 && exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_sdmac"),
    ]);
    let (mut near, at) = end_by(few, "tcp:127.0.0.1:0", &format!("atp:{between}"), PATIENCE);
    let mut clients: Vec<_> = (0..MOST + 2).map(|_| TcpStream::connect(&at).unwrap()).collect();
    for client in &clients {
        client.set_read_timeout(Some(HANGS)).unwrap();
    }
    let mut greeted = |clients: &mut [TcpStream]| {
        for client in clients {
            if let Err(e) = client.read_exact(&mut [0; 5]) {
                panic!("{e}: {:?}", [&mut near, &mut far].map(last_words));
            }
        }
    };
    greeted(&mut clients[..MOST]);
    for client in &mut clients[MOST..] {
        client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let waits = client.read(&mut [0; 5]).unwrap_err();
        assert_eq!(waits.kind(), ErrorKind::WouldBlock);
        client.set_read_timeout(Some(HANGS)).unwrap();
    }
    let mut late = clients.split_off(MOST);
    drop(clients);
    greeted(&mut late);
    let pid = rustix::process::Pid::from_child(&near);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let out = near.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("10 connections, 2 of them"), "{said}");
    far.kill().unwrap();
    far.wait().unwrap();
}

/// One end is killed: the program at the other one gets an error, and not a stream that looks whole, and not a wait for ever.
#[test]
fn a_proxy_that_is_killed_is_noticed() {
    for kill_far in [true, false] {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = format!("tcp:{}", server.local_addr().unwrap());
        let (mut far, between) = end("atp:127.0.0.1:0", &to);
        let (mut near, at) = end("tcp:127.0.0.1:0", &format!("atp:{between}"));
        let mut client = TcpStream::connect(at).unwrap();
        client.write_all(b"hello").unwrap();
        let (mut served, _) = server.accept().unwrap();
        served.read_exact(&mut [0; 5]).unwrap();
        let (killed, other, waits) = if kill_far {
            (&mut far, &mut near, &mut client)
        } else {
            (&mut near, &mut far, &mut served)
        };
        killed.kill().unwrap();
        killed.wait().unwrap();
        waits.set_read_timeout(Some(HANGS)).unwrap();
        // not `read`: with a time limit, a process that was stopped and goes on gets Interrupted from it
        let error = waits.read_exact(&mut [0; 5]).unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::ConnectionReset,
            "far end killed: {kill_far}"
        );
        let line = said(other);
        // the near end hears from the computer of the far one, if it has asked by then
        let is_told = kill_far && line.contains("nobody listens");
        assert!(is_told || line.contains("silent"), "{line}");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
