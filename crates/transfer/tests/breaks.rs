//! What becomes of a transfer when something breaks.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::*;
use protocols::transport::Failure;
use radio::Duration;
use transfer::TransferError;
use transfer::flow::{FlowConfig, Variant};
use transfer::secure::Key;
use transfer::send::Content;

fn never() -> Arc<AtomicBool> {
    Arc::default()
}

/// A buffer that the content does not fit in.
fn small(variant: Variant, key: Option<Key>) -> FlowConfig {
    FlowConfig {
        buffer_octets: 1 << 16,
        patience: Duration::from_ms(1_000),
        key,
        ..config(variant)
    }
}

#[test]
fn a_receiver_that_vanishes_is_an_error_while_the_buffer_is_full() {
    let octets = noise(1_000_000, 1);
    let key = Some(Key::random().unwrap());
    for (variant, key) in [
        (Variant::Default, None),
        (Variant::Sdmac, None),
        (Variant::Adaptive, key),
        (Variant::NewReno, None),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let config = small(variant, key);
        let s = server_with(folder(dir.path()), None, config);
        let stop = never();
        let to = between(s.address, &stop, |n, _| n < 60);
        let content = Content::File(file_with(dir.path(), &octets));
        let ended = caller(to, "content", content, &config, &never());
        let (why, _) = ended.recv_timeout(HANGS).expect("it does not wait for ever");
        assert!(
            matches!(why, Err(TransferError::Connection(Failure::PeerSilent))),
            "{variant}: {why:?}"
        );
        stop.store(true, Ordering::Relaxed);
        s.stop.store(true, Ordering::Relaxed);
        s.thread.join().unwrap().0.unwrap_err();
    }
}

/// Stops the server when this many datagrams have passed.
#[test]
fn a_receiver_that_resets_is_an_error_while_the_buffer_is_full() {
    for variant in [Variant::Adaptive, Variant::NewReno] {
        let dir = tempfile::tempdir().unwrap();
        let config = small(variant, None);
        let s = server_with(folder(dir.path()), None, config);
        let stop = never();
        let reset = Arc::clone(&s.stop);
        let to = between(s.address, &stop, move |n, _| {
            reset.store(n > 60, Ordering::Relaxed);
            true
        });
        let content = Content::File(file_with(dir.path(), &noise(1_000_000, 1)));
        let ended = caller(to, "content", content, &config, &never());
        let (why, _) = ended.recv_timeout(HANGS).expect("it does not wait for ever");
        assert!(
            matches!(why, Err(TransferError::Connection(Failure::Reset))),
            "{variant}: {why:?}"
        );
        stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_path_that_gets_too_narrow_is_an_error_while_the_buffer_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let config = FlowConfig {
        patience: Duration::from_ms(5_000),
        ..small(Variant::Adaptive, None)
    };
    let s = server_with(folder(dir.path()), None, config);
    let stop = never();
    let to = narrow(s.address, &stop, 300, 100);
    let content = Content::File(file_with(dir.path(), &noise(1_000_000, 1)));
    let ended = caller(to, "content", content, &config, &never());
    let (why, _) = ended.recv_timeout(HANGS).expect("it does not wait for ever");
    assert!(why.unwrap_err().to_string().contains("576 octets"));
    stop.store(true, Ordering::Relaxed);
    s.stop.store(true, Ordering::Relaxed);
}
