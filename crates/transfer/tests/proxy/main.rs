//! TCP connections through both ends of a proxy, all on this computer.

#[path = "../common/mod.rs"]
mod common;
mod ends;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time;

use common::{HANGS, narrow};
use protocols::transport::Failure;
use protocols::transport::wire::{Control, Header};
use radio::Duration;
use transfer::TransferError;
use transfer::flow::{FlowConfig, Variant};
use transfer::proxy::{BUFFER_OCTETS, Ended, MAX_CONNECTIONS, enter, leave};
use transfer::secure::Key;
use transfer::socket::Socket;

const LOCAL: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

fn config(key: Option<Key>) -> FlowConfig {
    FlowConfig {
        spacing: Some(Duration::from_us(100)),
        patience: Duration::from_ms(3_000),
        key,
        buffer_octets: BUFFER_OCTETS,
        ..FlowConfig::default()
    }
}

/// Both ends, in threads.
struct Proxy {
    at: SocketAddr,
    stop: [Arc<AtomicBool>; 2],
    threads: Vec<JoinHandle<()>>,
    ended: [Receiver<Ended>; 2],
}

impl Proxy {
    fn new(to: SocketAddr, keys: [Option<Key>; 2]) -> Proxy {
        Proxy::with_path(to, keys, |to, _| to)
    }

    /// With something between the two ends, which `path` puts in front of an address.
    fn with_path(
        to: SocketAddr,
        keys: [Option<Key>; 2],
        path: impl FnOnce(SocketAddr, &Arc<AtomicBool>) -> SocketAddr,
    ) -> Proxy {
        Proxy::with_addresses(vec![to], keys, |to, stop| vec![path(to, stop)])
    }

    /// With several addresses of the server, and of the end where connections leave.
    fn with_addresses(
        to: Vec<SocketAddr>,
        keys: [Option<Key>; 2],
        path: impl FnOnce(SocketAddr, &Arc<AtomicBool>) -> Vec<SocketAddr>,
    ) -> Proxy {
        let stop = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let listener = TcpListener::bind(LOCAL).unwrap();
        let socket = Socket::bind(LOCAL.into(), Variant::Sdmac).unwrap();
        let (at, between) = (listener.local_addr().unwrap(), socket.address().unwrap());
        let ((tell_enter, entered), (tell_leave, left)) = (channel(), channel());
        let between = path(between, &stop[0]);
        let [enters, leaves] = stop.clone();
        let [a, b] = keys.map(config);
        let threads = vec![
            thread::spawn(move || {
                let tell = |ended| drop(tell_enter.send(ended));
                enter(&listener, &between, &a, &enters, tell).unwrap();
            }),
            thread::spawn(move || leave(socket, &to, &b, &leaves, |ended| drop(tell_leave.send(ended)))),
        ];
        Proxy {
            at,
            stop,
            threads,
            ended: [entered, left],
        }
    }

    fn connect(&self) -> TcpStream {
        let tcp = TcpStream::connect(self.at).unwrap();
        tcp.set_read_timeout(Some(HANGS)).unwrap();
        tcp
    }

    fn end(self) {
        for stop in &self.stop {
            stop.store(true, Ordering::Relaxed);
        }
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

fn noise(octets: usize, seed: u32) -> Vec<u8> {
    common::noise(octets, u64::from(seed))
}

/// Octets up and down of a connection.
fn sizes(n: u32) -> (usize, usize) {
    const SIZES: [usize; 7] = [0, 1, 100, 1_449, 20_000, 90_000, 200_000];
    (SIZES[n as usize % 7], SIZES[n as usize / 7 % 7])
}

/// A server: reads a number, then what belongs to it until its end, while it sends what belongs to it. A client that
/// goes away ends its connection, and that is all.
fn server() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let at = listener.local_addr().unwrap();
    let wrong = Arc::new(Mutex::new(Vec::new()));
    let wrongs = Arc::clone(&wrong);
    thread::spawn(move || {
        for tcp in listener.incoming() {
            let wrongs = Arc::clone(&wrongs);
            thread::spawn(move || serve(tcp?, &wrongs));
        }
    });
    (at, wrong)
}

fn serve(mut tcp: TcpStream, wrongs: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut number = [0; 4];
    tcp.read_exact(&mut number)?;
    let n = u32::from_be_bytes(number);
    let mut other = tcp.try_clone()?;
    let writes = thread::spawn(move || {
        other.write_all(&noise(sizes(n).1, !n))?;
        other.shutdown(Shutdown::Write)
    });
    let mut got = Vec::new();
    tcp.read_to_end(&mut got)?;
    if got != noise(sizes(n).0, n) {
        wrongs.lock().unwrap().push(format!("{n}: {} octets", got.len()));
    }
    writes.join().expect("no panic")
}

#[test]
fn a_hundred_connections_at_once_both_ways() {
    let (to, wrong) = server();
    let proxy = Proxy::new(to, [None; 2]);
    let clients: Vec<_> = (0..100)
        .map(|n: u32| {
            let mut tcp = proxy.connect();
            thread::spawn(move || {
                let mut other = tcp.try_clone().unwrap();
                let writes = thread::spawn(move || {
                    other.write_all(&n.to_be_bytes()).unwrap();
                    other.write_all(&noise(sizes(n).0, n)).unwrap();
                    other.shutdown(Shutdown::Write).unwrap();
                });
                let mut got = Vec::new();
                tcp.read_to_end(&mut got).unwrap();
                writes.join().unwrap();
                assert!(got == noise(sizes(n).1, !n), "{n}: {} octets", got.len());
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    for ended in &proxy.ended {
        for _ in 0..100 {
            let ended = ended.recv_timeout(HANGS).unwrap();
            assert!(ended.result.is_ok(), "{ended:?}");
        }
    }
    assert!(wrong.lock().unwrap().is_empty(), "{wrong:?}");
    proxy.end();
}

#[test]
fn half_closed_with_a_key_and_not_without() {
    let key = Key([9; 32]);
    for (keys, works) in [([Some(key); 2], true), ([Some(key), None], false)] {
        let (to, wrong) = server();
        let proxy = Proxy::new(to, keys);
        let mut tcp = proxy.connect();
        tcp.write_all(&3_u32.to_be_bytes()).unwrap();
        // the server's direction is empty and ends first; ours goes on
        let mut got = Vec::new();
        let read = tcp.read_to_end(&mut got);
        assert_eq!(read.is_ok(), works, "{read:?}");
        if works {
            tcp.write_all(&noise(sizes(3).0, 3)).unwrap();
            tcp.shutdown(Shutdown::Write).unwrap();
            for ended in &proxy.ended {
                let ended = ended.recv_timeout(HANGS).unwrap();
                assert!(ended.result.is_ok(), "{ended:?}");
            }
        }
        assert!(got.is_empty() && wrong.lock().unwrap().is_empty());
        proxy.end();
    }
}

/// An end where connections leave, to nobody: where it is, what stops it, and what it tells.
fn leaving() -> (SocketAddr, impl FnOnce(), Receiver<Ended>) {
    let leaves = Socket::bind(LOCAL.into(), Variant::Sdmac).unwrap();
    let at = leaves.address().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let (tell, ended) = channel();
    let thread = thread::spawn(move || {
        let tell = |ended| drop(tell.send(ended));
        leave(leaves, &[at], &config(None), &stopped, tell);
    });
    let end = move || {
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap();
    };
    (at, end, ended)
}

/// Who was called does not say that his call was refused.
#[test]
fn a_caller_that_resets_at_once_has_refused_nothing() {
    let (at, end, ended) = leaving();
    // both come before it looks, or they do not
    for _ in 0..100 {
        let (caller, heard) = common::open_and_say_nothing(at);
        let reset = Header {
            control: Control::RST.with(Control::ACK),
            ..heard
        };
        caller.send(&reset.octets()).unwrap();
        let why = ended.recv_timeout(HANGS).unwrap().result.unwrap_err();
        assert!(!matches!(why, TransferError::NotTaken(_)), "{why}");
    }
    end();
}

/// An end that is stopped refuses no call, and a call is no connection that it could tell of.
#[test]
fn who_calls_one_that_is_stopped_is_not_refused() {
    let (at, end, ended) = leaving();
    let (caller, _) = common::call_and_say_nothing(at);
    end();
    assert!(!common::was_reset(&caller));
    let told = ended.try_recv();
    assert!(told.is_err(), "{told:?}");
}

/// A far end that resets right behind its answer has refused nothing.
#[test]
fn a_reset_behind_the_answer_is_no_refusal() {
    for _ in 0..30 {
        let far = std::net::UdpSocket::bind(LOCAL).unwrap();
        let to = far.local_addr().unwrap();
        let listener = TcpListener::bind(LOCAL).unwrap();
        let at = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, ended) = channel();
        let entering = thread::spawn(move || {
            let tell = |ended| drop(tell.send(ended));
            enter(&listener, &[to], &config(None), &stopped, tell).unwrap();
        });
        let _client = TcpStream::connect(at).unwrap();
        let (from, answer) = common::answer(&far);
        let reset = Header {
            control: Control::RST.with(Control::ACK),
            sequence: answer.sequence + 1,
            ..answer
        };
        far.send_to(&reset.octets(), from).unwrap();
        let why = ended.recv_timeout(HANGS).unwrap().result.unwrap_err();
        assert!(matches!(why, TransferError::Connection(Failure::Reset)), "{why}");
        stop.store(true, Ordering::Relaxed);
        entering.join().unwrap();
    }
}

/// The computer of a far end that was killed says so, long before patience has an end, or when it has.
#[test]
fn a_far_end_that_is_gone_is_told_of() {
    for patience_ms in [600_000, 2_500] {
        a_far_end_is_gone(Duration::from_ms(patience_ms));
    }
}

fn a_far_end_is_gone(patience: Duration) {
    let far = std::net::UdpSocket::bind(LOCAL).unwrap();
    let to = far.local_addr().unwrap();
    let listener = TcpListener::bind(LOCAL).unwrap();
    let at = listener.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let (tell, ended) = channel();
    let entering = thread::spawn(move || {
        let config = FlowConfig {
            patience,
            ..config(None)
        };
        let tell = |ended| drop(tell.send(ended));
        enter(&listener, &[to], &config, &stopped, tell).unwrap();
    });
    let mut client = TcpStream::connect(at).unwrap();
    client.write_all(b"hello").unwrap();
    common::answers_and_is_gone(far);
    let why = ended.recv_timeout(HANGS).expect("it does not wait").result;
    assert!(
        matches!(why, Err(TransferError::FarGone(peer)) if peer == to),
        "{why:?}"
    );
    let error = client.read(&mut [0; 5]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    stop.store(true, Ordering::Relaxed);
    entering.join().unwrap();
}

/// What has gone through open connections counts, too.
#[test]
fn who_is_stopped_tells_of_open_connections() {
    let listener = TcpListener::bind(LOCAL).unwrap();
    for stopped in [0, 1] {
        let proxy = Proxy::new(listener.local_addr().unwrap(), [None; 2]);
        let mut client = proxy.connect();
        client.write_all(b"hello").unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.read_exact(&mut [0; 5]).unwrap();
        server.write_all(b"yes").unwrap();
        client.read_exact(&mut [0; 3]).unwrap();
        proxy.stop[stopped].store(true, Ordering::Relaxed);
        let told = [stopped, 1 - stopped].map(|end| proxy.ended[end].recv_timeout(HANGS).unwrap());
        assert!(matches!(told[0].result, Err(TransferError::Stopped)), "{told:?}");
        for (end, told) in [stopped, 1 - stopped].into_iter().zip(told) {
            assert_eq!(told.octets, [(5, 3), (3, 5)][end], "{end}: {told:?}");
        }
        let Proxy {
            stop, threads, ended, ..
        } = proxy;
        stop[1 - stopped].store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(ended.iter().all(|ended| ended.try_recv().is_err()), "each once");
    }
}

/// A path between the ends that drops long packets without a word: both directions go on in shorter ones.
#[test]
fn a_black_hole_for_long_packets_costs_time_and_nothing_else() {
    const N: u32 = 6 * 7 + 6; // the longest, both ways
    let (to, wrong) = server();
    let proxy = Proxy::with_path(to, [None; 2], |to, stop| narrow(to, stop, 1_250, 0));
    let tcp = proxy.connect();
    let mut other = tcp.try_clone().unwrap();
    let writes = thread::spawn(move || {
        other.write_all(&N.to_be_bytes()).unwrap();
        other.write_all(&noise(sizes(N).0, N)).unwrap();
        other.shutdown(Shutdown::Write).unwrap();
    });
    let mut got = Vec::new();
    { tcp }.read_to_end(&mut got).unwrap();
    writes.join().unwrap();
    assert!(got == noise(sizes(N).1, !N), "{} octets", got.len());
    for ended in &proxy.ended {
        ended.recv_timeout(HANGS).unwrap().result.unwrap();
    }
    assert!(wrong.lock().unwrap().is_empty(), "{wrong:?}");
    proxy.end();
}

/// Where not even short packets pass, the program gets a reset, and the end that knows why says so.
#[test]
fn a_black_hole_for_every_packet_is_a_reset() {
    let (to, _) = server();
    let proxy = Proxy::with_path(to, [None; 2], |to, stop| narrow(to, stop, 300, 100));
    let mut tcp = proxy.connect();
    let writes = thread::spawn(move || tcp.write_all(&noise(10_000_000, 1)));
    let mut whys = proxy.ended.iter().map(|ended| {
        let result = ended.recv_timeout(HANGS).unwrap().result;
        result.unwrap_err().to_string()
    });
    assert!(whys.any(|why| why.contains("576 octets")));
    // the error of a socket is told once, to whoever asks first
    writes.join().unwrap().unwrap_err();
    proxy.end();
}

/// A name has addresses where nobody is, or where nobody answers, on both sides: the one behind them is found, and nothing that
/// the program has written by then is lost.
#[test]
fn the_address_that_answers_is_found() {
    let nobody = TcpListener::bind(LOCAL).unwrap().local_addr().unwrap();
    let closed = std::net::UdpSocket::bind(LOCAL).unwrap().local_addr().unwrap();
    let mute = std::net::UdpSocket::bind(LOCAL).unwrap();
    let silent = mute.local_addr().unwrap();
    let key = Some(Key([9; 32]));
    for keys in [[None; 2], [key; 2]] {
        let (to, wrong) = server();
        let proxy = Proxy::with_addresses(vec![nobody, to], keys, |to, _| vec![closed, silent, to]);
        let mut tcp = proxy.connect();
        tcp.write_all(&4_u32.to_be_bytes()).unwrap();
        tcp.write_all(&noise(sizes(4).0, 4)).unwrap();
        tcp.shutdown(Shutdown::Write).unwrap();
        let mut got = Vec::new();
        tcp.read_to_end(&mut got).unwrap();
        assert_eq!(got, noise(sizes(4).1, !4));
        for ended in &proxy.ended {
            ended.recv_timeout(HANGS).unwrap().result.unwrap();
        }
        assert!(wrong.lock().unwrap().is_empty(), "{wrong:?}");
        proxy.end();
    }
}

/// None of them answers: the last one is told.
#[test]
fn addresses_where_nobody_is() {
    let nobody = || TcpListener::bind(LOCAL).unwrap().local_addr().unwrap();
    let (first, last) = (nobody(), nobody());
    let proxy = Proxy::with_addresses(vec![first, last], [None; 2], |to, _| vec![to]);
    proxy.connect().read(&mut [0; 5]).unwrap_err();
    let why = proxy.ended[1].recv_timeout(HANGS).unwrap().result.unwrap_err();
    assert!(why.to_string().contains(&last.to_string()), "{why}");
    proxy.end();
}

/// Patience holds for calls, too, and another variant is told at once.
#[test]
fn a_call_that_nobody_takes_is_a_reset() {
    let mute = std::net::UdpSocket::bind(LOCAL).unwrap();
    let config = |variant, patience_ms| FlowConfig {
        variant,
        patience: Duration::from_ms(patience_ms),
        ..config(None)
    };
    let leaves = Socket::bind(LOCAL.into(), Variant::Sdmac).unwrap();
    let speaks_atp = leaves.address().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let other = config(Variant::Sdmac, 3_000);
    let leaving = thread::spawn(move || leave(leaves, &[speaks_atp], &other, &stopped, drop));
    for (to, patience_ms, expected) in [
        (mute.local_addr().unwrap(), 300, "nobody answered"),
        (speaks_atp, 600_000, "--variant"),
    ] {
        let listener = TcpListener::bind(LOCAL).unwrap();
        let at = listener.local_addr().unwrap();
        let (tell, ended) = channel();
        let enters = Arc::clone(&stop);
        let config = config(Variant::NewReno, patience_ms);
        thread::spawn(move || {
            enter(&listener, &[to], &config, &enters, |ended| drop(tell.send(ended))).unwrap();
        });
        let mut client = TcpStream::connect(at).unwrap();
        let why = ended.recv_timeout(HANGS).expect("it does not wait").result;
        let why = why.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
        let error = client.read(&mut [0; 5]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    stop.store(true, Ordering::Relaxed);
    leaving.join().unwrap();
}

/// The writer stops when all buffers between are full, and goes on when the reader does.
#[test]
fn a_slow_reader_stops_the_writer() {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let proxy = Proxy::new(listener.local_addr().unwrap(), [None; 2]);
    let mut client = proxy.connect();
    client.set_nonblocking(true).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let (block, mut written, mut idle) = (noise(10_000, 1), 0, 0);
    while idle < 20 {
        match client.write(&block) {
            Ok(n) => (written, idle) = (written + n, 0),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::WouldBlock);
                idle += 1;
                thread::sleep(time::Duration::from_millis(10));
            }
        }
        assert!(written < 100_000_000, "nothing stops it");
    }
    client.shutdown(Shutdown::Write).unwrap();
    let mut got = 0;
    let mut octets = vec![0; 1 << 16];
    loop {
        match server.read(&mut octets).unwrap() {
            0 => break,
            n => got += n,
        }
    }
    assert_eq!(got, written);
    proxy.end();
}

/// Ten thousand connections, opened and dropped at once, some before they are through: no more memory than for those that may
/// be open at a time, and the next one works.
#[test]
#[ignore = "takes a minute; in the step `long`"]
fn ten_thousand_connections_opened_and_dropped() {
    let resident_kib = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let (to, _) = server();
    let proxy = Proxy::new(to, [None; 2]);
    let (mut most, mut ended) = (0, 0);
    for n in 0..10_000_u32 {
        let mut tcp = proxy.connect();
        if n % 2 == 0 {
            tcp.write_all(&n.to_be_bytes()).unwrap();
        }
        drop(tcp);
        ended += proxy.ended[0].try_iter().count();
        most = most.max(resident_kib());
    }
    while ended < 10_000 {
        proxy.ended[0].recv_timeout(HANGS).unwrap();
        ended += 1;
    }
    println!("{most} KiB resident at most, {} in the end", resident_kib());
    // four buffers of the transport, two of 16 KiB at each end, and records
    let most_kib = (MAX_CONNECTIONS * (4 * BUFFER_OCTETS / 1_024 + 4 * 16 + 64)) as u64;
    assert!(most < most_kib, "{most} KiB");
    let mut tcp = proxy.connect();
    tcp.write_all(&4_u32.to_be_bytes()).unwrap();
    tcp.write_all(&noise(sizes(4).0, 4)).unwrap();
    tcp.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    tcp.read_to_end(&mut got).unwrap();
    assert_eq!(got, noise(sizes(4).1, !4));
    proxy.end();
}
