//! Both ends on this computer, over real sockets, some with a bad path between them.

mod common;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::*;
use protocols::transport::wire::{BLOCK_OCTETS, Control, Header, MAX_BLOCKS, ProtocolId};
use radio::Duration;
use transfer::TransferError;
use transfer::call::{Done, Feedback, Seen};
use transfer::flow::{FlowConfig, Variant};
use transfer::secure::Key;
use transfer::send::{Content, Sending};
use transfer::serve::{Told, Until, serve};
use transfer::socket::Socket;
use transfer::source::Source;

/// Its time begins with its first datagram, not when somebody began to listen for it.
#[test]
fn waiting_for_a_call_is_no_part_of_a_transfer() {
    let socket = Socket::bind(LOCAL.into(), Variant::ALL[0]).unwrap();
    let address = socket.address().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (place, config) = (folder(dir.path()), config(Variant::ALL[0]));
    let listening = thread::spawn(move || {
        let mut took = Vec::new();
        let tell = |told: Told<'_>| {
            if let Told::Ended { elapsed, .. } = told {
                took.push(elapsed.as_ns());
            }
        };
        let (until, stop) = (Until::Whole(1), AtomicBool::new(false));
        serve(socket, &config, &place, until, &stop, tell).unwrap();
        took
    });
    thread::sleep(std::time::Duration::from_millis(300));
    let begun = std::time::Instant::now();
    let content = Content::File(file_with(dir.path(), &noise(1_000, 2)));
    send(address, "content", content, Variant::ALL[0]).unwrap();
    let took = listening.join().unwrap();
    let all = begun.elapsed().as_nanos() as u64;
    assert!(took.len() == 1 && took[0] < all, "{took:?} of {all} ns");
}

#[test]
fn a_file_arrives_whole_with_every_variant() {
    for variant in Variant::ALL {
        let dir = tempfile::tempdir().unwrap();
        let octets = noise(300_000, 1);
        let s = server(folder(dir.path()), Some(1), variant);
        let file = file_with(&dir.path().join(".").canonicalize().unwrap(), &octets);
        let progress = send(s.address, "content", Content::File(file), variant).unwrap();
        assert_eq!(
            (progress.done, progress.total, progress.resumed),
            (300_000, Some(300_000), 0)
        );
        let (result, ended) = s.thread.join().unwrap();
        result.unwrap();
        assert_eq!(ended, [("content".to_owned(), Ok(()))]);
        assert_eq!(fs::read(dir.path().join("content")).unwrap(), octets, "{variant}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no part is left");
    }
}

/// A file over a path that ATP needs some epochs for: each feedback is seen once, in order.
#[test]
fn feedback_is_seen_as_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let s = server(folder(dir.path()), Some(1), Variant::Aggressive);
    let file = file_with(dir.path(), &noise(2_000_000, 5));
    let mut sending = Sending::new("x", Content::File(file)).unwrap();
    let mut all: Vec<Feedback> = Vec::new();
    let see = |seen| {
        if let Seen::Feedback(feedback) = seen {
            all.push(feedback);
        }
    };
    let config = config(Variant::Aggressive);
    let done = transfer::call::send(s.address, &config, &mut sending, &AtomicBool::new(false), see).unwrap();
    s.thread.join().unwrap().0.unwrap();
    // nobody on the way tells a delay, so the rate follows losses
    assert!(all.len() >= 2, "{all:?}");
    assert!(all.is_sorted_by_key(|f| (f.after, f.resent)), "{all:?}");
    assert!(
        all.iter()
            .all(|f| (f.delay_us, f.hops) == (0, 0) && f.spacing_us > 0)
    );
    assert_eq!(all.last().unwrap().resent, done.progress.resent);
}

/// What a receiver tells is about the data that come to it, not about the little that it sends.
#[test]
fn a_receiver_tells_of_the_data_that_come() {
    const TWICE: u32 = 5;
    for (variant, spacing) in [
        (Variant::Sdmac, true),
        (Variant::Adaptive, true),
        (Variant::Default, false),
    ] {
        let socket = Socket::bind(LOCAL.into(), variant).unwrap();
        let address = socket.address().unwrap();
        let dir = tempfile::tempdir().unwrap();
        // it would send a packet each 10 ms
        let (place, there) = (
            folder(dir.path()),
            FlowConfig {
                spacing: None,
                ..config(variant)
            },
        );
        let listening = thread::spawn(move || {
            let mut last = None;
            let tell = |told: Told<'_>| {
                if let Told::Ended { progress, .. } = told {
                    last = Some(progress);
                }
            };
            let stop = AtomicBool::new(false);
            serve(socket, &there, &place, Until::Whole(1), &stop, tell).unwrap();
            last.unwrap()
        });
        let stop = Arc::new(AtomicBool::new(false));
        let to = middle(address, &stop, |n, way, datagram, send| {
            send(way, datagram);
            let (_, body) = Header::parse(datagram).unwrap();
            if way == Way::ToReceiver && body.len() > 1_000 && n.is_multiple_of(TWICE) {
                send(way, datagram);
            }
        });
        let file = Content::File(file_with(dir.path(), &noise(300_000, 4)));
        let progress = send(to, "content", file, variant).unwrap();
        let told = listening.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        assert_eq!((told.done, told.packet_octets, told.resent), (300_000, 1_448, 0));
        assert!(told.repeated.is_some_and(|n| n > 5), "{variant}: {told:?}");
        match spacing {
            true => assert!((1..10_000).contains(&told.spacing_us), "{variant}: {told:?}"),
            // the authors' variants do not tell it
            false => assert_eq!(told.spacing_us, 0),
        }
        assert_eq!(progress.repeated, None);
    }
}

/// What a transfer took is told without the second in which a sender of TCP waits for the other end to part.
#[test]
fn a_farewell_is_no_part_of_a_transfer() {
    let dir = tempfile::tempdir().unwrap();
    let s = server(folder(dir.path()), Some(1), Variant::NewReno);
    // what the other end says when all is there does not come
    let stop = Arc::new(AtomicBool::new(false));
    let to = relay(s.address, &stop, |_, datagram| {
        let (header, _) = Header::parse(datagram).unwrap();
        !header.control.has(Control::FIN)
    });
    let mut sending = Sending::new("x", Content::File(file_with(dir.path(), b"x"))).unwrap();
    let begun = std::time::Instant::now();
    let config = config(Variant::NewReno);
    let done = transfer::call::send(to, &config, &mut sending, &AtomicBool::new(false), |_| {}).unwrap();
    let took = std::time::Duration::from_nanos(done.took.as_ns());
    assert!(
        begun.elapsed() - took >= std::time::Duration::from_secs(1),
        "{took:?}"
    );
    s.stop.store(true, Ordering::Relaxed);
    let _ = s.thread.join().unwrap();
    stop.store(true, Ordering::Relaxed);
}

#[test]
fn a_stream_has_no_length_and_an_empty_file_no_content() {
    let dir = tempfile::tempdir().unwrap();
    let s = server(folder(dir.path()), Some(2), Variant::Sdmac);
    let octets = noise(200_001, 2);
    let source = Source::new(std::io::Cursor::new(octets.clone()));
    let progress = send(s.address, "stream", Content::Stream(source), Variant::Sdmac).unwrap();
    assert_eq!((progress.done, progress.total), (200_001, None));
    let empty = file_with(dir.path(), b"");
    send(s.address, "empty", Content::File(empty), Variant::Sdmac).unwrap();
    s.thread.join().unwrap().0.unwrap();
    assert_eq!(fs::read(dir.path().join("stream")).unwrap(), octets);
    assert_eq!(fs::read(dir.path().join("empty")).unwrap(), b"");
}

#[test]
fn what_is_there_is_not_sent_again_unless_it_is_something_else() {
    let octets = noise(400_000, 3);
    for (there, resumed) in [(&octets[..150_000], 150_000), (&noise(150_000, 4)[..], 0)] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".content.sdmac-part"), there).unwrap();
        let s = server(folder(dir.path()), Some(1), Variant::Sdmac);
        let file = file_with(dir.path(), &octets);
        let progress = send(s.address, "content", Content::File(file), Variant::Sdmac).unwrap();
        assert_eq!((progress.resumed, progress.done), (resumed, 400_000));
        s.thread.join().unwrap().0.unwrap();
        assert_eq!(fs::read(dir.path().join("content")).unwrap(), octets);
    }
}

#[test]
fn names_that_lead_elsewhere_and_files_that_are_there_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("there"), "mine").unwrap();
    let s = server(folder(&inner), None, Variant::Sdmac);
    for (name, reason) in [("../out", "not that of a file"), ("there", "already")] {
        let file = file_with(dir.path(), b"theirs");
        let refused = send(s.address, name, Content::File(file), Variant::Sdmac).unwrap_err();
        assert!(
            matches!(&refused, TransferError::Refused(why) if why.contains(reason)),
            "{refused}"
        );
    }
    s.stop.store(true, Ordering::Relaxed);
    let (result, ended) = s.thread.join().unwrap();
    assert!(matches!(result, Err(TransferError::Stopped)));
    assert!(
        ended.iter().all(|(_, r)| r.is_err()) && ended.len() == 2,
        "{ended:?}"
    );
    assert_eq!(fs::read(inner.join("there")).unwrap(), b"mine");
    assert!(!dir.path().join("out").exists());
}

#[test]
fn nobody_there_is_an_error_and_not_a_wait_for_ever() {
    let to = Socket::bind(LOCAL.into(), Variant::Sdmac)
        .unwrap()
        .address()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut sending = Sending::new("x", Content::File(file_with(dir.path(), b"x"))).unwrap();
    let config = config(Variant::Sdmac);
    let mut call = |to| transfer::call::send(to, &config, &mut sending, &AtomicBool::new(false), |_| {});
    assert!(matches!(call(to), Err(TransferError::NobodyListens(at)) if at == to));
    // nothing of it has gone, so that it can be sent to another address
    let s = server(folder(dir.path()), Some(1), Variant::Sdmac);
    call(s.address).unwrap();
    s.thread.join().unwrap().0.unwrap();
    assert_eq!(fs::read(dir.path().join("x")).unwrap(), b"x");
}

#[test]
fn losses_cost_time_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let octets = noise(200_000, 5);
    let s = server(folder(dir.path()), Some(1), Variant::Sdmac);
    let stop = Arc::new(AtomicBool::new(false));
    let between = lossy(s.address, &stop);
    let file = file_with(dir.path(), &octets);
    let progress = send(between, "content", Content::File(file), Variant::Sdmac).unwrap();
    assert!(progress.resent > 0, "something was lost");
    s.thread.join().unwrap().0.unwrap();
    stop.store(true, Ordering::Relaxed);
    assert_eq!(fs::read(dir.path().join("content")).unwrap(), octets);
}

/// Sends so many octets over a path that loses so many of 1000 datagrams each way, of which no hop tells its delay; tells how that
/// went.
fn over_a_bad_path(variant: Variant, octets: usize, loss: u64, seed: u64, spacing: Duration) -> Done {
    let dir = tempfile::tempdir().unwrap();
    let content = noise(octets, 9);
    let config = FlowConfig {
        spacing: Some(spacing),
        patience: Duration::from_ms(60_000),
        ..config(variant)
    };
    let s = server_with(folder(dir.path()), Some(1), config);
    let stop = Arc::new(AtomicBool::new(false));
    let to = losing(s.address, &stop, loss, seed);
    let file = Content::File(file_with(dir.path(), &content));
    let mut sending = Sending::new("content", file).unwrap();
    let done = transfer::call::send(to, &config, &mut sending, &AtomicBool::new(false), |_| {}).unwrap();
    s.thread.join().unwrap().0.unwrap();
    stop.store(true, Ordering::Relaxed);
    assert_eq!(fs::read(dir.path().join("content")).unwrap(), content);
    done
}

/// Where every other packet is lost, short ones would be lost as well.
#[test]
fn heavy_losses_are_no_reason_for_shorter_packets() {
    let done = over_a_bad_path(Variant::Sdmac, 1_000_000, 500, 0, Duration::from_us(500));
    assert!(done.progress.resent > 300, "{done:?}");
    assert_eq!(done.progress.packet_octets, 1_448, "{done:?}");
}

#[test]
#[ignore = "a measurement: cargo test --release -p sdmac-transfer --test loopback bad_path -- --ignored --nocapture"]
fn what_a_bad_path_leaves() {
    const OCTETS: usize = 400_000;
    const RUNS: usize = 9;
    for loss in [0, 20, 40, 100, 300, 500] {
        for variant in [Variant::Sdmac, Variant::Adaptive] {
            // they wait most of the time, so all at once
            let one = |seed| over_a_bad_path(variant, OCTETS, loss, seed, Duration::from_ms(10));
            let mut rows: Vec<_> = thread::scope(|scope| {
                let runs: Vec<_> = (0..RUNS as u64)
                    .map(|seed| scope.spawn(move || one(seed)))
                    .collect();
                runs.into_iter().map(|run| run.join().unwrap()).collect()
            });
            rows.sort_by_key(|done| done.took);
            let mbps = |done: &Done| OCTETS as f64 * 8e3 / done.took.as_ns() as f64;
            let median = &rows[RUNS / 2];
            println!(
                "{variant}, {loss} of 1000 lost each way: {:.2} Mb/s ({:.2} to {:.2}), {} sent again",
                mbps(median),
                mbps(&rows[RUNS - 1]),
                mbps(&rows[0]),
                median.progress.resent
            );
        }
    }
}

/// A path that drops what is too long for it, at once or after a while, and says nothing: the file goes in shorter packets.
#[test]
fn a_black_hole_for_long_packets_costs_time_and_nothing_else() {
    let octets = noise(300_000, 7);
    let key = Some(Key::random().unwrap());
    for (most, first, variant, key) in [
        (1_250, 0, Variant::Sdmac, None),
        (600, 0, Variant::Sdmac, key),
        (1_000, 100, Variant::Aggressive, None),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let config = FlowConfig {
            key,
            ..config(variant)
        };
        let s = server_with(folder(dir.path()), Some(1), config);
        let stop = Arc::new(AtomicBool::new(false));
        let to = narrow(s.address, &stop, most, first);
        let file = Content::File(file_with(dir.path(), &octets));
        let mut sending = Sending::new("content", file).unwrap();
        let done = transfer::call::send(to, &config, &mut sending, &AtomicBool::new(false), |_| {}).unwrap();
        assert!(done.progress.resent > 0, "something was dropped");
        s.thread.join().unwrap().0.unwrap();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(fs::read(dir.path().join("content")).unwrap(), octets);
    }
}

/// Where not even short packets get through, both ends say so, and end.
#[test]
fn a_black_hole_for_every_packet_is_an_error_and_not_a_wait_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let s = server(folder(dir.path()), None, Variant::Sdmac);
    let stop = Arc::new(AtomicBool::new(false));
    let to = narrow(s.address, &stop, 300, 100);
    let file = Content::File(file_with(dir.path(), &noise(300_000, 8)));
    let why = send(to, "content", file, Variant::Sdmac).unwrap_err();
    assert!(matches!(why, TransferError::TooNarrow(576)), "{why}");
    assert!(why.to_string().contains("576 octets"), "{why}");
    s.ends.recv().unwrap();
    s.stop.store(true, Ordering::Relaxed);
    stop.store(true, Ordering::Relaxed);
    let (_, ended) = s.thread.join().unwrap();
    assert!(
        matches!(&ended[..], [(name, Err(_))] if name == "content"),
        "{ended:?}"
    );
}

/// Datagrams of strangers: half of them noise, half with a header of ours and any flags, of which `allowed` may be set.
fn strange(n: usize, allowed: Control) -> Vec<u8> {
    let body = noise(n % 1_400, n as u64);
    if n.is_multiple_of(2) {
        return body;
    }
    let drawn = noise(4, n as u64 + 7);
    let control = Control(u16::from_be_bytes([drawn[0], drawn[1]]) & allowed.0);
    let protocol = [ProtocolId::Atp, ProtocolId::Tcp][usize::from(drawn[2] % 2)];
    let mut header = Header {
        hops: drawn[3],
        sequence: n as u32,
        acknowledgement: n as u32 * 3,
        ..Header::new(protocol, control)
    };
    let mut octets = body.len();
    if header.is_feedback() {
        octets = octets / BLOCK_OCTETS % (MAX_BLOCKS + 1) * BLOCK_OCTETS;
        header.size = octets as u16;
    }
    let datagram = [&header.octets()[..], &body[..octets]].concat();
    Header::parse(&datagram).unwrap();
    datagram
}

/// Sends 2,000 of these to a receiver.
fn bother(to: std::net::SocketAddr, allowed: Control) -> std::net::UdpSocket {
    let stranger = std::net::UdpSocket::bind(LOCAL_TUPLE).unwrap();
    stranger.set_nonblocking(true).unwrap();
    for n in 0..2_000 {
        stranger.send_to(&strange(n, allowed), to).unwrap();
        if n % 50 == 0 {
            // so that they are heard, and do not only fill the buffer of the kernel
            thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    stranger
}

/// Everything that a stranger was answered.
fn answers(stranger: &std::net::UdpSocket) -> Vec<Vec<u8>> {
    let mut octets = [0; 2_000];
    std::iter::from_fn(|| stranger.recv(&mut octets).ok().map(|n| octets[..n].to_vec())).collect()
}

const ANY: Control = Control(u16::MAX);
const NO_CALL: Control = Control(!Control::SYN.0);

/// Without a key whoever calls is answered; who does not hears no more than that there is no such connection.
#[test]
fn strangers_who_do_not_call_are_turned_away_and_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let s = server(folder(dir.path()), Some(1), Variant::Sdmac);
    let stranger = bother(s.address, NO_CALL);
    // one that calls, and goes on with anything
    bother(s.address, ANY);
    let callers = [ProtocolId::Atp, ProtocolId::Tcp].map(|protocol| {
        let caller = std::net::UdpSocket::bind(LOCAL_TUPLE).unwrap();
        let call = Header::new(protocol, Control::SYN).octets();
        caller.send_to(&call, s.address).unwrap();
        caller
    });
    let file = file_with(dir.path(), b"content");
    send(s.address, "content", Content::File(file), Variant::Sdmac).unwrap();
    s.thread.join().unwrap().0.unwrap();
    assert_eq!(fs::read(dir.path().join("content")).unwrap(), b"content");
    let turned_away = answers(&stranger);
    assert!(!turned_away.is_empty());
    for answer in turned_away {
        let (header, body) = Header::parse(&answer).unwrap();
        assert_eq!(header.control, Control::RST.with(Control::ACK));
        // no shorter packet exists: he cannot have others hear more than he sends
        assert!(body.is_empty(), "{header:?}");
    }
    let flags = [Control::SYN, Control::RST].map(|flag| flag.with(Control::ACK));
    for (caller, expected) in callers.iter().zip(flags) {
        caller.set_nonblocking(true).unwrap();
        let answers = answers(caller);
        let (header, body) = Header::parse(&answers[0]).unwrap();
        assert!(header.control.has(expected) && body.is_empty(), "{header:?}");
    }
}

#[test]
fn with_a_key_everything_goes_through_and_without_it_nothing() {
    let key = Key::random().unwrap();
    for variant in [Variant::Sdmac, Variant::NewReno] {
        let dir = tempfile::tempdir().unwrap();
        let keyed = |key| FlowConfig {
            key: Some(key),
            patience: Duration::from_ms(20_000),
            ..config(variant)
        };
        let octets = noise(200_000, 6);
        let s = server_with(folder(dir.path()), Some(1), keyed(key));
        let stop = Arc::new(AtomicBool::new(false));
        let between = lossy(s.address, &stop);
        let give = |to, config: &FlowConfig| {
            let file = Content::File(file_with(dir.path(), &octets));
            let mut sending = Sending::new("content", file).unwrap();
            transfer::call::send(to, config, &mut sending, &AtomicBool::new(false), |_| {})
        };
        let other = FlowConfig {
            patience: Duration::from_ms(1_500),
            ..keyed(Key([7; 32]))
        };
        let wrong = give(s.address, &other).unwrap_err();
        assert!(matches!(wrong, TransferError::Unanswered(_)), "{wrong}");
        let stranger = bother(s.address, ANY);
        give(between, &keyed(key)).unwrap();
        s.thread.join().unwrap().0.unwrap();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(fs::read(dir.path().join("content")).unwrap(), octets, "{variant}");
        assert_eq!(answers(&stranger), Vec::<Vec<u8>>::new(), "{variant}");
    }
}
