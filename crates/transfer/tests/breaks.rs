//! What becomes of a transfer when something breaks: ends that vanish, others that want the same place, parts that are damaged.

mod common;

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};

use common::*;
use protocols::transport::Failure;
use protocols::transport::wire::{Control, Header};
use radio::Duration;
use transfer::TransferError;
use transfer::flow::{FlowConfig, Variant};
use transfer::secure::Key;
use transfer::send::Content;
use transfer::source::Source;

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
        (Variant::Sdmac, key),
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
    for variant in [Variant::Sdmac, Variant::NewReno] {
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
    for (key, octets) in [(None, 576), (Some(Key::random().unwrap()), 624)] {
        let dir = tempfile::tempdir().unwrap();
        let config = FlowConfig {
            patience: Duration::from_ms(5_000),
            ..small(Variant::Sdmac, key)
        };
        let s = server_with(folder(dir.path()), None, config);
        let stop = never();
        // without the headers of IPv4 and UDP
        let to = narrow(s.address, &stop, octets - 28 - 1, 100);
        let content = Content::File(file_with(dir.path(), &noise(1_000_000, 1)));
        let ended = caller(to, "content", content, &config, &never());
        let (why, _) = ended.recv_timeout(HANGS).expect("it does not wait for ever");
        assert!(
            matches!(why, Err(TransferError::TooNarrow(n)) if n == octets),
            "{why:?}"
        );
        stop.store(true, Ordering::Relaxed);
        s.stop.store(true, Ordering::Relaxed);
    }
}

/// The first sender of a name is not disturbed by the second one, who hears why not.
#[test]
fn two_senders_with_one_name() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(Variant::Sdmac);
    let s = server_with(folder(dir.path()), Some(1), config);
    let (give, take) = mpsc::channel();
    let stream = Content::Stream(Source::new(Slow(take, Vec::new())));
    let first = caller(s.address, "same", stream, &config, &never());
    give.send(vec![b'A'; 100_000]).unwrap();
    while fs::metadata(dir.path().join(".same.sdmac-part")).map_or(0, |m| m.len()) < 100_000 {
        assert!(first.try_recv().is_err(), "the first one goes on");
    }
    let content = Content::File(file_with(dir.path(), &[b'B'; 200_000]));
    let second = caller(s.address, "same", content, &config, &never());
    let (refused, progress) = second.recv_timeout(HANGS).unwrap();
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("refused") && why.contains("--name"), "{why}");
    assert_eq!(progress.done, 0);
    give.send(vec![b'A'; 100_000]).unwrap();
    drop(give);
    first.recv_timeout(HANGS).unwrap().0.unwrap();
    s.thread.join().unwrap().0.unwrap();
    assert!(fs::read(dir.path().join("same")).unwrap() == [b'A'; 200_000]);
}

/// A sender of a stream is killed: who wants its place is told how long it is kept, and gets it then.
#[test]
fn the_place_of_a_stream_that_fell_silent_is_kept_for_a_while() {
    let dir = tempfile::tempdir().unwrap();
    let config = FlowConfig {
        patience: Duration::from_ms(5_000),
        ..config(Variant::Sdmac)
    };
    let s = server_with(folder(dir.path()), Some(1), config);
    let (give, take) = mpsc::channel();
    let stream = Content::Stream(Source::new(Slow(take, Vec::new())));
    let killed = never();
    let gone = Arc::clone(&killed);
    let to = between(s.address, &never(), move |_, _| !gone.load(Ordering::Relaxed));
    let first = caller(to, "same", stream, &config, &never());
    give.send(vec![b'A'; 100_000]).unwrap();
    while fs::metadata(dir.path().join(".same.sdmac-part")).map_or(0, |m| m.len()) < 100_000 {
        assert!(first.try_recv().is_err(), "the first one goes on");
    }
    killed.store(true, Ordering::Relaxed);
    let second = || {
        let content = Content::File(file_with(dir.path(), b"B"));
        let ended = caller(s.address, "same", content, &config, &never());
        ended.recv_timeout(HANGS).unwrap().0
    };
    // at first the first one may still be there, then it has fallen silent, and in the end it is given up
    let mut told = Vec::new();
    while let Err(why) = second() {
        told.push(why.to_string());
        assert!(told.len() < 1_000, "{why}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(
        told.iter()
            .any(|why| why.contains("has been silent for") && why.contains("send it again in")),
        "{told:?}"
    );
    s.thread.join().unwrap().0.unwrap();
    assert_eq!(fs::read(dir.path().join("same")).unwrap(), b"B");
}

/// Two senders of files, both of the same length, at once: one of them goes through whole.
#[test]
fn two_senders_with_one_name_and_one_length() {
    let dir = tempfile::tempdir().unwrap();
    let config = FlowConfig {
        patience: Duration::from_ms(1_000),
        ..config(Variant::Sdmac)
    };
    let s = server_with(folder(dir.path()), None, config);
    let contents = [vec![b'A'; 3_000_000], vec![b'B'; 3_000_000]];
    let callers = contents.each_ref().map(|octets| {
        let content = Content::File(file_with(dir.path(), octets));
        fs::remove_file(dir.path().join("source")).unwrap();
        caller(s.address, "same", content, &config, &never())
    });
    let ends = callers.map(|c| c.recv_timeout(HANGS).unwrap().0);
    let there = fs::read(dir.path().join("same")).unwrap();
    for (end, octets) in ends.iter().zip(&contents) {
        assert_eq!(end.is_ok(), there == *octets, "{ends:?}");
    }
    s.stop.store(true, Ordering::Relaxed);
    s.thread.join().unwrap().0.unwrap_err();
}

/// Nothing is written through a name that somebody has put there.
#[test]
fn a_part_that_leads_elsewhere_is_not_written() {
    type Put = fn(&Path, &Path) -> std::io::Result<()>;
    let ways: [(Put, &str); 2] = [
        (|to, at| std::os::unix::fs::symlink(to, at), "symbolic link"),
        (|to, at| fs::hard_link(to, at), "other names"),
    ];
    for (put, says) in ways {
        let dir = tempfile::tempdir().unwrap();
        let config = config(Variant::Sdmac);
        let of_another = dir.path().join("of another");
        fs::write(&of_another, b"precious").unwrap();
        put(&of_another, &dir.path().join(".content.sdmac-part")).unwrap();
        let s = server_with(folder(dir.path()), None, config);
        let content = Content::File(file_with(dir.path(), b"content"));
        let ended = caller(s.address, "content", content, &config, &never());
        let why = ended.recv_timeout(HANGS).unwrap().0.unwrap_err().to_string();
        assert!(why.contains(says), "{why}");
        assert_eq!(fs::read(&of_another).unwrap(), b"precious");
        assert!(!dir.path().join("content").exists());
        s.stop.store(true, Ordering::Relaxed);
    }
}

/// What another program has done to the part is noticed, although the stream was whole.
#[test]
fn a_part_that_is_changed_meanwhile_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(Variant::Sdmac);
    let s = server_with(folder(dir.path()), None, config);
    let (give, take) = mpsc::channel();
    let stream = Content::Stream(Source::new(Slow(take, Vec::new())));
    let ended = caller(s.address, "content", stream, &config, &never());
    give.send(noise(100_000, 2)).unwrap();
    let part = dir.path().join(".content.sdmac-part");
    while fs::metadata(&part).map_or(0, |m| m.len()) < 100_000 {
        assert!(ended.try_recv().is_err(), "it goes on");
    }
    let file = File::options().write(true).open(&part).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"something else", 1_000).unwrap();
    drop(give);
    let (why, _) = ended.recv_timeout(HANGS).unwrap();
    assert!(matches!(why, Err(TransferError::Damaged)), "{why:?}");
    s.stop.store(true, Ordering::Relaxed);
    let (_, ends) = s.thread.join().unwrap();
    assert!(
        matches!(&ends[..], [(_, Err(why))] if why.contains("damaged")),
        "{ends:?}"
    );
    assert!(!dir.path().join("content").exists());
    assert_eq!(
        fs::metadata(&part).unwrap().len(),
        0,
        "nobody goes on from what is wrong"
    );
}

/// A receiver that is stopped before the sender has parted tells what it has told the sender.
#[test]
fn who_is_stopped_behind_the_verdict_tells_it() {
    for damaged in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let config = config(Variant::Sdmac);
        let s = server_with(folder(dir.path()), None, config);
        let open = never();
        let to = relay(s.address, &open, |_, datagram| {
            let (header, _) = Header::parse(datagram).unwrap();
            !header.control.has(Control::FIN) && !header.control.has(Control::RST)
        });
        let (give, take) = mpsc::channel();
        let stream = Content::Stream(Source::new(Slow(take, Vec::new())));
        let ended = caller(to, "content", stream, &config, &never());
        give.send(noise(100_000, 2)).unwrap();
        let part = dir.path().join(".content.sdmac-part");
        while fs::metadata(&part).map_or(0, |m| m.len()) < 100_000 {
            assert!(ended.try_recv().is_err(), "it goes on");
        }
        if damaged {
            let file = File::options().write(true).open(&part).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"something else", 1_000).unwrap();
        }
        drop(give);
        let (result, _) = ended.recv_timeout(HANGS).unwrap();
        assert_eq!(result.is_err(), damaged, "{result:?}");
        s.stop.store(true, Ordering::Relaxed);
        let (_, ends) = s.thread.join().unwrap();
        let [(_, told)] = &ends[..] else {
            panic!("{ends:?}");
        };
        assert!(
            told.as_ref().is_err_and(|why| why.contains("damaged")) || !damaged && told.is_ok(),
            "{told:?}"
        );
        assert_eq!(dir.path().join("content").exists(), !damaged);
        open.store(true, Ordering::Relaxed);
    }
}

/// A sender that was killed sends the same file again: it goes on, and the receiver does not wait for the dead one.
#[test]
fn a_sender_that_begins_anew_takes_the_place_of_its_former_self() {
    let dir = tempfile::tempdir().unwrap();
    let octets = noise(600_000, 3);
    let config = FlowConfig {
        patience: Duration::from_ms(600_000),
        ..config(Variant::Sdmac)
    };
    let s = server_with(folder(dir.path()), Some(1), config);
    let killed = never();
    let passed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&passed);
    let to = between(s.address, &killed, move |n, _| {
        count.store(n, Ordering::Relaxed);
        n < 300
    });
    let gives_up = never();
    let content = || Content::File(file_with(dir.path(), &octets));
    let former = caller(to, "content", content(), &config, &gives_up);
    while passed.load(Ordering::Relaxed) < 300 {
        assert!(former.try_recv().is_err(), "it goes on");
    }
    let (result, progress) = caller(s.address, "content", content(), &config, &never())
        .recv_timeout(HANGS)
        .unwrap();
    result.unwrap();
    assert!(progress.resumed > 0 && progress.done == 600_000, "{progress:?}");
    for _ in 0..2 {
        s.ends.recv_timeout(HANGS).expect("nobody waits for the dead");
    }
    let (result, ends) = s.thread.join().unwrap();
    result.unwrap();
    assert!(
        matches!(&ends[..], [(_, Err(why)), (_, Ok(()))] if why.contains("again")),
        "{ends:?}"
    );
    assert_eq!(fs::read(dir.path().join("content")).unwrap(), octets);
    killed.store(true, Ordering::Relaxed);
    gives_up.store(true, Ordering::Relaxed);
}

/// The digest of a part takes hours; meanwhile everything else goes on.
#[test]
fn a_long_part_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(Variant::Sdmac);
    let part = File::create(dir.path().join(".long.sdmac-part")).unwrap();
    part.set_len(1 << 42).unwrap();
    let s = server_with(folder(dir.path()), None, config);
    let gives_up = never();
    let content = Content::File(file_with(dir.path(), b"long"));
    let long = caller(s.address, "long", content, &config, &gives_up);
    while s.ends.try_recv().is_ok() {}
    std::thread::sleep(std::time::Duration::from_millis(200));
    let content = Content::File(file_with(dir.path(), b"short"));
    let short = caller(s.address, "short", content, &config, &never());
    short.recv_timeout(HANGS).expect("it does not wait").0.unwrap();
    assert!(long.try_recv().is_err());
    gives_up.store(true, Ordering::Relaxed);
    assert!(matches!(
        long.recv_timeout(HANGS).unwrap().0,
        Err(TransferError::Stopped)
    ));
    s.stop.store(true, Ordering::Relaxed);
    s.thread.join().unwrap().0.unwrap_err();
}

/// What is done is what has arrived, not what waits in a buffer; and how far it came is told in the end.
#[test]
fn progress_counts_what_has_arrived() {
    for variant in [Variant::Sdmac, Variant::NewReno] {
        let dir = tempfile::tempdir().unwrap();
        let config = FlowConfig {
            buffer_octets: 1 << 20,
            // many epochs until the path is cut
            spacing: Some(Duration::from_ms(1)),
            ..small(variant, None)
        };
        let s = server_with(folder(dir.path()), None, config);
        let stop = never();
        let to = between(s.address, &stop, |n, _| n < 200);
        let content = Content::File(file_with(dir.path(), &noise(1_000_000, 1)));
        let ended = caller(to, "content", content, &config, &never());
        let (result, progress) = ended.recv_timeout(HANGS).unwrap();
        result.unwrap_err();
        assert!(
            (1_000..300_000).contains(&progress.done),
            "{variant}: {progress:?}"
        );
        stop.store(true, Ordering::Relaxed);
        s.stop.store(true, Ordering::Relaxed);
    }
}

/// The reader of the other end delays, too, and hops delay what comes back; but D is the delay of hops on the way there.
#[test]
fn the_delay_is_that_of_hops_on_the_way_there() {
    const THERE_US: u32 = 3_000;
    const BACK_US: u32 = 9_000;
    for hops in [0, 2] {
        let dir = tempfile::tempdir().unwrap();
        let config = config(Variant::Sdmac);
        let s = server_with(folder(dir.path()), Some(1), config);
        let stop = never();
        let to = middle(s.address, &stop, move |_, way, datagram, send| {
            let (mut header, body) = Header::parse(datagram).unwrap();
            if hops > 0 && !header.is_feedback() {
                let there = matches!(way, Way::ToReceiver);
                header.hops += hops;
                header.delay_us = header.delay_us.max(if there { THERE_US } else { BACK_US });
            }
            send(way, &[&header.octets(), body].concat());
        });
        let content = Content::File(file_with(dir.path(), &noise(100_000, 1)));
        let ended = caller(to, "content", content, &config, &never());
        let (result, progress) = ended.recv_timeout(HANGS).unwrap();
        result.unwrap();
        match hops {
            0 => assert_eq!(progress.delay_us, 0),
            _ => assert!((THERE_US..BACK_US).contains(&progress.delay_us), "{progress:?}"),
        }
        stop.store(true, Ordering::Relaxed);
        s.thread.join().unwrap().0.unwrap();
    }
}

/// A receiver that was killed is missed by its computer, or by who listens in its place, long before patience has an end.
#[test]
fn a_receiver_that_is_gone_is_told_of() {
    let config = FlowConfig {
        patience: Duration::from_ms(300_000),
        ..config(Variant::Sdmac)
    };
    for again in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let socket = std::net::UdpSocket::bind(LOCAL_TUPLE).unwrap();
        let content = Content::File(file_with(dir.path(), &noise(100_000, 1)));
        let ended = caller(
            socket.local_addr().unwrap(),
            "content",
            content,
            &config,
            &never(),
        );
        let address = answers_and_is_gone(socket);
        let s = again.then(|| server_at(address, folder(dir.path()), None, config));
        let why = ended.recv_timeout(HANGS).unwrap().0.unwrap_err();
        let expected = match again {
            true => matches!(why, TransferError::Connection(Failure::Reset)),
            false => matches!(why, TransferError::Gone(at) if at == address),
        };
        assert!(expected, "{again}: {why}");
        if let Some(s) = s {
            s.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Who answers a call and resets it at once has not refused it.
#[test]
fn a_reset_behind_the_answer_is_no_refusal() {
    for _ in 0..30 {
        let dir = tempfile::tempdir().unwrap();
        let socket = std::net::UdpSocket::bind(LOCAL_TUPLE).unwrap();
        let content = Content::File(file_with(dir.path(), b"x"));
        let to = socket.local_addr().unwrap();
        let ended = caller(to, "x", content, &config(Variant::Sdmac), &never());
        let (from, answer) = answer(&socket);
        let reset = Header {
            control: Control::RST.with(Control::ACK),
            sequence: answer.sequence + 1,
            ..answer
        };
        socket.send_to(&reset.octets(), from).unwrap();
        let why = ended.recv_timeout(HANGS).unwrap().0.unwrap_err();
        assert!(matches!(why, TransferError::Connection(Failure::Reset)), "{why}");
    }
}

/// Nobody says that nobody is there.
#[test]
fn patience_holds_for_calls() {
    let key = Some(Key::random().unwrap());
    for (variant, key) in [
        (Variant::Sdmac, None),
        (Variant::NewReno, None),
        (Variant::Sdmac, key),
    ] {
        let mute = std::net::UdpSocket::bind(LOCAL_TUPLE).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let config = FlowConfig {
            patience: Duration::from_ms(300),
            ..small(variant, key)
        };
        let content = Content::File(file_with(dir.path(), b"x"));
        let to = mute.local_addr().unwrap();
        let ended = caller(to, "content", content, &config, &never());
        let why = ended.recv_timeout(HANGS).unwrap().0.unwrap_err();
        let expected = match key {
            None => matches!(why, TransferError::Connection(Failure::NoAnswer)),
            Some(_) => matches!(why, TransferError::Unanswered(_)),
        };
        assert!(expected, "{variant}: {why}");
    }
}

/// ATP calls somebody who speaks TCP, or the other way round: both learn it at once.
#[test]
fn another_variant_is_an_error_that_says_so() {
    let keys = [None, Some(Key::random().unwrap())];
    for key in keys {
        for (here, there) in [
            (Variant::NewReno, Variant::Sdmac),
            (Variant::Default, Variant::Tahoe),
        ] {
            let config = |variant| FlowConfig {
                patience: Duration::from_ms(600_000),
                ..small(variant, key)
            };
            let dir = tempfile::tempdir().unwrap();
            let s = server_with(folder(dir.path()), Some(1), config(there));
            let content = || Content::File(file_with(dir.path(), b"x"));
            let ended = caller(s.address, "x", content(), &config(here), &never());
            let why = ended.recv_timeout(HANGS).expect("it does not wait").0;
            let why = why.unwrap_err().to_string();
            assert!(why.contains("--variant"), "{why}");
            // and nobody else is harmed
            let ended = caller(s.address, "x", content(), &config(there), &never());
            ended.recv_timeout(HANGS).unwrap().0.unwrap();
            s.thread.join().unwrap().0.unwrap();
        }
    }
}

/// Who is stopped says what becomes of what has arrived.
#[test]
fn a_receiver_that_is_stopped_tells_of_its_transfers() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(Variant::Sdmac);
    let s = server_with(folder(dir.path()), Some(1), config);
    let (give, take) = mpsc::channel();
    let stream = Content::Stream(Source::new(Slow(take, Vec::new())));
    let ended = caller(s.address, "content", stream, &config, &never());
    give.send(noise(100_000, 2)).unwrap();
    let part = dir.path().join(".content.sdmac-part");
    while fs::metadata(&part).map_or(0, |m| m.len()) < 100_000 {
        assert!(ended.try_recv().is_err(), "it goes on");
    }
    s.stop.store(true, Ordering::Relaxed);
    let (result, ends) = s.thread.join().unwrap();
    assert!(matches!(result, Err(TransferError::Stopped)));
    assert!(
        matches!(&ends[..], [(name, Err(why))] if name == "content" && why.contains("kept")),
        "{ends:?}"
    );
}
