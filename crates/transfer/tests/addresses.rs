//! Who waits at all addresses of this computer answers from the one that is called: callers hear nobody else.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::*;
use protocols::transport::wire::{Control, Header, ProtocolId};
use transfer::flow::{FlowConfig, Variant};
use transfer::proxy::{BUFFER_OCTETS, enter, leave};
use transfer::secure::Key;
use transfer::send::{Content, Sending};
use transfer::socket::Socket;

/// Where somebody waits, and where he is called. To 127.0.0.1, where callers are, the kernel sends from 127.0.0.1.
const CALLS: [(&str, &str); 4] = [
    ("0.0.0.0:0", "127.0.0.2"),
    ("[::]:0", "127.0.0.2"),
    ("[::]:0", "::ffff:127.0.0.2"),
    ("[::]:0", "::1"),
];

/// Those of [`CALLS`] that this computer has addresses for.
fn calls() -> impl Iterator<Item = (SocketAddr, SocketAddr)> {
    let six = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    if !six {
        eprintln!("skipped: no [::1] here");
    }
    let can = move |(at, _): &(&str, &str)| six || !at.starts_with('[');
    let read = |(at, to): (&str, &str)| (at.parse().unwrap(), SocketAddr::new(to.parse().unwrap(), 0));
    CALLS.into_iter().filter(can).map(read)
}

fn at_port_of(mut to: SocketAddr, listens: SocketAddr) -> SocketAddr {
    to.set_port(listens.port());
    to
}

fn config_with(key: Option<Key>) -> FlowConfig {
    FlowConfig {
        key,
        ..config(Variant::Sdmac)
    }
}

const KEYS: [Option<Key>; 2] = [None, Some(Key([7; 32]))];

#[test]
fn a_file_arrives_at_each_address() {
    let octets = noise(50_000, 1);
    for ((at, to), key) in calls().flat_map(|call| KEYS.map(|key| (call, key))) {
        let dir = tempfile::tempdir().unwrap();
        let s = server_at(at, folder(dir.path()), Some(1), config_with(key));
        let to = at_port_of(to, s.address);
        let content = Content::File(file_with(dir.path(), &octets));
        let mut sending = Sending::new("content", content).unwrap();
        let stop = AtomicBool::new(false);
        let sent = transfer::call::send(to, &config_with(key), &mut sending, &stop, |_| {});
        assert!(sent.is_ok(), "{at} at {to}: {sent:?}");
        s.thread.join().unwrap().0.unwrap();
        assert_eq!(fs::read(dir.path().join("content")).unwrap(), octets);
    }
}

#[test]
fn a_proxy_is_reached_at_each_address() {
    for ((at, to), key) in calls().flat_map(|call| KEYS.map(|key| (call, key))) {
        let config = FlowConfig {
            buffer_octets: BUFFER_OCTETS,
            ..config_with(key)
        };
        let server = TcpListener::bind(LOCAL_TUPLE).unwrap();
        let served = server.local_addr().unwrap();
        let far = Socket::bind(at, config.variant).unwrap();
        let to = at_port_of(to, far.address().unwrap());
        let near = TcpListener::bind(LOCAL_TUPLE).unwrap();
        let mut client = TcpStream::connect(near.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(HANGS)).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stops = [(); 2].map(|()| Arc::clone(&stop));
        let [one, other] = stops;
        let threads = [
            thread::spawn(move || leave(far, &[served], &config, &one, |_| {})),
            thread::spawn(move || enter(&near, &[to], &config, &other, |_| {}).unwrap()),
        ];
        let echo = thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut octets = [0; 5];
            stream.read_exact(&mut octets).unwrap();
            stream.write_all(&octets).unwrap();
        });
        client.write_all(b"hello").unwrap();
        let mut octets = [0; 5];
        let came = client.read_exact(&mut octets);
        assert!(came.is_ok() && octets == *b"hello", "{at} at {to}: {came:?}");
        echo.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

/// Who is no guest hears so from the address that he has called.
#[test]
fn strangers_are_reset_from_the_address_that_they_call() {
    for (at, to) in calls() {
        let dir = tempfile::tempdir().unwrap();
        let s = server_at(at, folder(dir.path()), None, config(Variant::Sdmac));
        let to = at_port_of(to, s.address);
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let stranger = UdpSocket::bind(any).unwrap();
        stranger.connect(to).unwrap();
        stranger.set_read_timeout(Some(HANGS / 20)).unwrap();
        let data = Header {
            acknowledgement: 7,
            ..Header::new(ProtocolId::Atp, Control::ACK)
        };
        let mut of_one_gone = data.octets().to_vec();
        of_one_gone.push(1);
        stranger.send(&of_one_gone).unwrap();
        let mut octets = [0; 100];
        let heard = stranger.recv(&mut octets);
        let Ok(n) = heard else {
            panic!("{at} at {to}: {heard:?}")
        };
        let (reset, _) = Header::parse(&octets[..n]).unwrap();
        assert!(reset.control.has(Control::RST), "{reset:?}");
        s.stop.store(true, Ordering::Relaxed);
        let _ = s.thread.join().unwrap();
    }
}
