//! How a connection ends at one side, and what the other one hears of it.

use super::common::between;
use super::*;

/// A reset on one side, by either program, is one on the other: nobody takes a part for the whole.
#[test]
fn resets_are_passed_on_both_ways() {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let proxy = Proxy::new(listener.local_addr().unwrap(), [None; 2]);
    for client_resets in [true, false] {
        let mut client = proxy.connect();
        client.write_all(b"hello").unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(HANGS)).unwrap();
        server.read_exact(&mut [0; 5]).unwrap();
        let (resets, mut waits) = if client_resets {
            (client, server)
        } else {
            (server, client)
        };
        rustix::net::sockopt::set_socket_linger(&resets, Some(time::Duration::ZERO)).unwrap();
        drop(resets);
        let error = waits.read(&mut [0; 5]).unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::ConnectionReset,
            "client resets: {client_resets}"
        );
        for ended in &proxy.ended {
            assert!(ended.recv_timeout(HANGS).unwrap().result.is_err());
        }
    }
    proxy.end();
}

/// A program that has sent everything and is gone before it has arrived, as after the minute for which its kernel keeps what it has closed.
#[test]
fn what_was_sent_arrives_whole_though_its_program_is_gone() {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let passes = Arc::new(AtomicBool::new(true));
    let path = Arc::clone(&passes);
    let proxy = Proxy::with_path(listener.local_addr().unwrap(), [None; 2], |to, stop| {
        between(to, stop, move |_, _| path.load(Ordering::Relaxed))
    });
    let mut client = proxy.connect();
    client.write_all(b"!").unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.read_exact(&mut [0]).unwrap();
    passes.store(false, Ordering::Relaxed);
    let content = noise(100_000, 7);
    server.write_all(&content).unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    // the proxy takes all of it, ...
    thread::sleep(time::Duration::from_millis(300));
    rustix::net::sockopt::set_socket_linger(&server, Some(time::Duration::ZERO)).unwrap();
    drop(server);
    // ... and looks at a connection that is no more
    thread::sleep(time::Duration::from_millis(1_200));
    passes.store(true, Ordering::Relaxed);
    let mut got = Vec::new();
    client.read_to_end(&mut got).unwrap();
    assert!(got == content, "{} octets", got.len());
    drop(client);
    for ended in &proxy.ended {
        ended.recv_timeout(HANGS).unwrap().result.unwrap();
    }
    proxy.end();
}

#[test]
fn nobody_at_the_other_side_is_a_reset() {
    let to = TcpListener::bind(LOCAL).unwrap().local_addr().unwrap();
    let proxy = Proxy::new(to, [None; 2]);
    let error = proxy.connect().read(&mut [0; 5]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let why = proxy.ended[1].recv_timeout(HANGS).unwrap().result.unwrap_err();
    assert!(why.to_string().contains("refused"), "{why}");
    proxy.end();
}
