//! How a receiver ends by itself: with the transfers that were waited for, whoever else is there.

mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use common::*;
use protocols::transport::Failure;
use protocols::transport::wire::{Control, Header};
use radio::Duration;
use transfer::TransferError;
use transfer::flow::{FlowConfig, Variant};
use transfer::secure::Key;
use transfer::send::Content;
use transfer::serve::{Told, Until, serve};
use transfer::socket::Socket;
use transfer::source::Source;

fn never() -> Arc<AtomicBool> {
    Arc::default()
}

/// Nothing here waits for this.
fn patient(key: Option<Key>) -> FlowConfig {
    FlowConfig {
        patience: Duration::from_ms(600_000),
        key,
        ..config(Variant::Sdmac)
    }
}

/// Sends something of the name of its content.
fn send_whole(s: &Server, dir: &Path, name: &str, config: &FlowConfig) -> Result<(), TransferError> {
    let content = Content::File(file_with(dir, name.as_bytes()));
    let ended = caller(s.address, name, content, config, &never());
    ended.recv_timeout(HANGS).expect("it ends").0
}

/// What a thread has to tell in the end.
fn wait_for<T>(thread: thread::JoinHandle<T>) -> T {
    let begun = Instant::now();
    while !thread.is_finished() {
        assert!(begun.elapsed() < HANGS, "it does not end");
        thread::sleep(std::time::Duration::from_millis(10));
    }
    thread.join().unwrap()
}

/// Whether the server has ended.
fn wait_for_end(s: Server) -> Ended {
    let (result, ended) = wait_for(s.thread);
    result.unwrap();
    ended
}

#[test]
fn after_the_last_transfer_nobody_is_taken_in() {
    for key in [None, Some(Key::random().unwrap())] {
        let (dir, config) = (tempfile::tempdir().unwrap(), patient(key));
        let s = server_with(folder(dir.path()), Some(1), config);
        send_whole(&s, dir.path(), "first", &config).unwrap();
        let late = FlowConfig {
            patience: Duration::from_ms(5_000),
            ..config
        };
        let why = send_whole(&s, dir.path(), "second", &late).unwrap_err();
        if key.is_none() {
            // his call was answered, or it was not
            let reset = matches!(why, TransferError::Connection(Failure::Reset));
            assert!(reset || matches!(why, TransferError::NobodyListens(_)), "{why}");
        }
        assert_eq!(wait_for_end(s), [("first".to_owned(), Ok(()))]);
        assert!(!dir.path().join("second").exists());
    }
}

#[test]
fn an_open_connection_that_says_nothing_does_not_hold_the_end_up() {
    let (dir, config) = (tempfile::tempdir().unwrap(), patient(None));
    let s = server_with(folder(dir.path()), Some(1), config);
    let mute = open_and_say_nothing(s.address);
    send_whole(&s, dir.path(), "content", &config).unwrap();
    assert_eq!(wait_for_end(s), [("content".to_owned(), Ok(()))]);
    drop(mute);
}

/// A stream in the middle, and the channel that has more of it; what it has sent is written.
fn half_a_stream(
    dir: &Path,
    to: std::net::SocketAddr,
    config: &FlowConfig,
) -> (Outcome, mpsc::Sender<Vec<u8>>) {
    let (give, take) = mpsc::channel();
    let stream = Content::Stream(Source::new(Slow(take, Vec::new())));
    let ended = caller(to, "half", stream, config, &never());
    give.send(noise(100_000, 2)).unwrap();
    while fs::metadata(dir.join(".half.sdmac-part")).map_or(0, |m| m.len()) < 100_000 {
        assert!(ended.try_recv().is_err(), "it goes on");
    }
    (ended, give)
}

#[test]
fn who_still_sends_is_reset_and_what_has_arrived_is_kept() {
    for key in [None, Some(Key::random().unwrap())] {
        let (dir, config) = (tempfile::tempdir().unwrap(), patient(key));
        let s = server_with(folder(dir.path()), Some(1), config);
        let (half, give) = half_a_stream(dir.path(), s.address, &config);
        send_whole(&s, dir.path(), "whole", &config).unwrap();
        let why = half.recv_timeout(HANGS).expect("it hears so").0.unwrap_err();
        assert!(matches!(why, TransferError::Connection(Failure::Reset)), "{why}");
        let ended = wait_for_end(s);
        let [(first, Ok(())), (second, Err(why))] = &ended[..] else {
            panic!("{ended:?}")
        };
        assert_eq!((&first[..], &second[..]), ("whole", "half"));
        assert!(why.contains("not waited for") && why.contains("kept"), "{why}");
        let part = fs::read(dir.path().join(".half.sdmac-part")).unwrap();
        assert!(part == noise(100_000, 2));
        drop(give);
    }
}

#[test]
fn another_sender_that_was_killed_is_not_waited_for() {
    let (dir, config) = (tempfile::tempdir().unwrap(), patient(None));
    let s = server_with(folder(dir.path()), Some(1), config);
    let killed = never();
    let gone = Arc::clone(&killed);
    let to = between(s.address, &never(), move |_, _| !gone.load(Ordering::Relaxed));
    let (_half, _give) = half_a_stream(dir.path(), to, &config);
    killed.store(true, Ordering::Relaxed);
    send_whole(&s, dir.path(), "whole", &config).unwrap();
    let ended = wait_for_end(s);
    assert!(matches!(&ended[..], [(_, Ok(())), (_, Err(_))]), "{ended:?}");
}

/// A server that ends with the first transfer, whole or not, and where it is.
fn serve_one(
    dir: &Path,
    config: FlowConfig,
    told: impl FnMut(Told<'_>) + Send + 'static,
) -> (std::net::SocketAddr, thread::JoinHandle<()>) {
    let socket = Socket::bind(LOCAL.into(), config.variant).unwrap();
    let to = socket.address().unwrap();
    let place = folder(dir);
    let serving = thread::spawn(move || serve(socket, &config, &place, Until::One, &never(), told).unwrap());
    (to, serving)
}

#[test]
fn who_has_offered_nothing_is_no_transfer() {
    let (dir, config) = (tempfile::tempdir().unwrap(), patient(None));
    let (tell, told) = mpsc::channel();
    let (to, serving) = serve_one(dir.path(), config, move |told| match told {
        Told::NoOffer { why, .. } => tell.send(why.to_string()).unwrap(),
        Told::Progress { name, .. } | Told::Ended { name, .. } => assert_eq!(name, "content"),
        Told::TurnedAway { .. } | Told::Enough => {}
    });
    let silent = open_and_say_nothing(to);
    let (resets, header) = open_and_say_nothing(to);
    let reset = Header {
        control: Control::RST.with(Control::ACK),
        ..header
    };
    resets.send(&reset.octets()).unwrap();
    let why = told.recv_timeout(HANGS).expect("it is told of");
    assert!(why.contains("reset"), "{why}");
    assert!(!serving.is_finished(), "it was no transfer");
    let content = Content::File(file_with(dir.path(), b"content"));
    let ended = caller(to, "content", content, &config, &never());
    ended.recv_timeout(HANGS).expect("it ends").0.unwrap();
    serving.join().unwrap();
    drop(silent);
}

/// A stranger who sends something of the same name must not end the transfer that has the name.
#[test]
fn who_is_declined_ends_nobody_elses_transfer() {
    let (dir, config) = (tempfile::tempdir().unwrap(), patient(None));
    let (tell, told) = mpsc::channel();
    let (to, serving) = serve_one(dir.path(), config, move |told| {
        if let Told::Ended { result, .. } = told {
            tell.send(result.map_err(|why| why.to_string())).unwrap();
        }
    });
    let (half, give) = half_a_stream(dir.path(), to, &config);
    let content = Content::File(file_with(dir.path(), b"something else"));
    let other = caller(to, "half", content, &config, &never());
    let why = other.recv_timeout(HANGS).expect("it ends").0.unwrap_err();
    assert!(why.to_string().contains("sends 'half' just now"), "{why}");
    assert!(told.recv_timeout(HANGS).unwrap().is_err());
    give.send(noise(1_000, 3)).unwrap();
    drop(give);
    half.recv_timeout(HANGS).expect("it ends").0.unwrap();
    assert_eq!(told.recv_timeout(HANGS), Ok(Ok(())));
    serving.join().unwrap();
}

/// Of two that are declined neither is another transfer for the other one, even if both end in the same turn.
#[test]
fn two_that_are_declined_at_once_end_it() {
    let (dir, config) = (tempfile::tempdir().unwrap(), patient(None));
    let (busy, is_busy) = mpsc::channel();
    let (go, goes) = mpsc::channel();
    let (to, serving) = serve_one(dir.path(), config, move |told| {
        if let Told::NoOffer { .. } = told {
            busy.send(()).unwrap();
            goes.recv_timeout(HANGS).unwrap();
        }
    });
    let (mute, header) = open_and_say_nothing(to);
    let (hold, held) = mpsc::channel();
    let stop = never();
    let senders = ["a", "b"].map(|name| {
        fs::write(dir.path().join(name), b"is there").unwrap();
        let (release, released) = mpsc::channel();
        let hold = hold.clone();
        // their last words come while the receiver is busy
        let path = middle(to, &stop, move |_, way, datagram, send| {
            let (header, _) = Header::parse(datagram).unwrap();
            let last = way == Way::ToReceiver && header.control.has(Control::RST);
            if last {
                hold.send(()).unwrap();
                released.recv_timeout(HANGS).unwrap();
            }
            send(way, datagram);
            if last {
                hold.send(()).unwrap();
            }
        });
        let content = Content::File(file_with(dir.path(), b"content"));
        (caller(path, name, content, &config, &never()), release)
    });
    let both = || (0..2).for_each(|_| held.recv_timeout(HANGS).unwrap());
    both();
    let reset = Header {
        control: Control::RST.with(Control::ACK),
        ..header
    };
    mute.send(&reset.octets()).unwrap();
    is_busy.recv_timeout(HANGS).unwrap();
    for (ended, release) in senders {
        let why = ended.recv_timeout(HANGS).expect("it ends").0.unwrap_err();
        assert!(matches!(why, TransferError::Refused(_)), "{why}");
        release.send(()).unwrap();
    }
    both();
    go.send(()).unwrap();
    wait_for(serving);
    stop.store(true, Ordering::Relaxed);
}

/// His call was answered already, so he is told that nobody takes what he sends, and not left to a silence.
#[test]
fn who_has_called_just_before_the_end_is_reset() {
    let (dir, config) = (tempfile::tempdir().unwrap(), patient(None));
    let (enough, is_enough) = mpsc::channel();
    let (go, goes) = mpsc::channel();
    let (to, serving) = serve_one(dir.path(), config, move |told| {
        if let Told::Enough = told {
            enough.send(()).unwrap();
            goes.recv_timeout(HANGS).unwrap();
        }
    });
    let (caller, heard) = call_and_say_nothing(to);
    let content = Content::File(file_with(dir.path(), b"content"));
    let ended = common::caller(to, "content", content, &config, &never());
    is_enough.recv_timeout(HANGS).expect("it has come");
    caller.send(&heard.octets()).unwrap();
    go.send(()).unwrap();
    wait_for(serving);
    assert!(was_reset(&caller));
    ended.recv_timeout(HANGS).expect("it ends").0.unwrap();
}

/// A caller would take a reset for the answer of one who does not speak his transport.
#[test]
fn who_calls_one_that_is_stopped_is_not_refused() {
    let (dir, config) = (tempfile::tempdir().unwrap(), patient(None));
    let s = server_with(folder(dir.path()), None, config);
    let (caller, _) = call_and_say_nothing(s.address);
    s.stop.store(true, Ordering::Relaxed);
    let (result, ended) = wait_for(s.thread);
    assert!(matches!(result, Err(TransferError::Stopped)), "{result:?}");
    assert!(ended.is_empty() && !was_reset(&caller), "{ended:?}");
}
