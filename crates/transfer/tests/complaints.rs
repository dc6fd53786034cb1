//! What the network says of the other end, and when it is believed.

mod common;

use std::fs;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use common::*;
use radio::Duration;
use transfer::TransferError;
use transfer::flow::{FlowConfig, Variant};
use transfer::send::Content;
use transfer::source::Source;

/// A router that starts anew says for a moment that nobody listens. A stream on which nothing goes is silent anyhow.
#[test]
fn one_complaint_of_the_network_ends_no_stream() {
    let config = FlowConfig {
        patience: Duration::from_ms(8_000),
        ..config(Variant::Sdmac)
    };
    let dir = tempfile::tempdir().unwrap();
    let s = server_with(folder(dir.path()), Some(1), config);
    let (stop, closed) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let opens = || {
        let socket = UdpSocket::bind(LOCAL_TUPLE).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    let (front, back) = (opens(), opens());
    let to = front.local_addr().unwrap();
    back.connect(s.address).unwrap();
    let (ends, is_closed) = (Arc::clone(&stop), Arc::clone(&closed));
    let relay = std::thread::spawn(move || {
        let (mut front, mut sender, mut octets) = (Some(front), None, [0; 2_048]);
        while !ends.load(Ordering::Relaxed) {
            if is_closed.load(Ordering::Relaxed) {
                front = None;
            } else if front.is_none() {
                front = UdpSocket::bind(to)
                    .ok()
                    .filter(|f| f.set_nonblocking(true).is_ok());
            }
            while let Some((n, from)) = front.as_ref().and_then(|f| f.recv_from(&mut octets).ok()) {
                sender = Some(from);
                let _ = back.send(&octets[..n]);
            }
            while let Ok(n) = back.recv(&mut octets) {
                if let Some((front, sender)) = front.as_ref().zip(sender) {
                    let _ = front.send_to(&octets[..n], sender);
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    let (give, take) = mpsc::channel();
    let stream = Content::Stream(Source::new(Slow(take, Vec::new())));
    let ended = caller(to, "log", stream, &config, &Arc::default());
    give.send(noise(10_000, 1)).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    // it asks for a sign of life after 4 s of silence, and each second from then on
    closed.store(true, Ordering::Relaxed);
    std::thread::sleep(std::time::Duration::from_millis(4_300));
    closed.store(false, Ordering::Relaxed);
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    give.send(noise(10_000, 2)).unwrap();
    drop(give);
    ended.recv_timeout(HANGS).expect("it ends").0.unwrap();
    s.thread.join().unwrap().0.unwrap();
    stop.store(true, Ordering::Relaxed);
    relay.join().unwrap();
    let whole = [noise(10_000, 1), noise(10_000, 2)].concat();
    assert!(fs::read(dir.path().join("log")).unwrap() == whole);
}

/// Patience may end before the network has said so for long enough.
#[test]
fn a_silence_that_the_network_explains_is_explained() {
    let config = FlowConfig {
        patience: Duration::from_ms(5_500),
        ..config(Variant::Sdmac)
    };
    let dir = tempfile::tempdir().unwrap();
    let s = server_with(folder(dir.path()), Some(1), config);
    let gone = Arc::<AtomicBool>::default();
    let to = between(s.address, &gone, |_, _| true);
    let (give, take) = mpsc::channel();
    let stream = Content::Stream(Source::new(Slow(take, Vec::new())));
    let ended = caller(to, "log", stream, &config, &Arc::default());
    give.send(noise(10_000, 1)).unwrap();
    while fs::metadata(dir.path().join(".log.sdmac-part")).map_or(0, |m| m.len()) < 10_000 {
        assert!(ended.try_recv().is_err(), "it goes on");
    }
    // nothing is on the way any more
    std::thread::sleep(std::time::Duration::from_millis(1_000));
    gone.store(true, Ordering::Relaxed);
    let why = ended.recv_timeout(HANGS).expect("it ends").0.unwrap_err();
    assert!(matches!(why, TransferError::Gone(at) if at == to), "{why}");
    s.stop.store(true, Ordering::Relaxed);
    let _ = s.thread.join().unwrap();
    drop(give);
}
