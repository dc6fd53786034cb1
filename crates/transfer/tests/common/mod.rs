//! Both ends of a transfer on this computer, and a bad path between them.
#![allow(dead_code, reason = "not every test uses everything")]

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use protocols::transport::wire::{Control, Header, ProtocolId};
use radio::Duration;
use transfer::call::Seen;
use transfer::flow::{FlowConfig, Variant};
use transfer::send::{Content, Sending};
use transfer::serve::{Told, Until, serve};
use transfer::sink::Place;
use transfer::socket::Socket;
use transfer::{Progress, TransferError};

pub const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

pub fn config(variant: Variant) -> FlowConfig {
    FlowConfig {
        variant,
        spacing: Some(Duration::from_us(100)),
        patience: Duration::from_ms(5_000),
        ..FlowConfig::default()
    }
}

/// Names and ends of transfers.
pub type Ended = Vec<(String, Result<(), String>)>;

/// A receiver in a thread; `ended` collects what it tells.
pub struct Server {
    pub address: SocketAddr,
    pub stop: Arc<AtomicBool>,
    /// Something for each transfer that has ended.
    pub ends: mpsc::Receiver<()>,
    pub thread: thread::JoinHandle<(Result<(), TransferError>, Ended)>,
}

pub fn server(place: Place, count: Option<u64>, variant: Variant) -> Server {
    server_with(place, count, config(variant))
}

pub fn server_with(place: Place, count: Option<u64>, config: FlowConfig) -> Server {
    server_at(LOCAL.into(), place, count, config)
}

pub fn server_at(address: SocketAddr, place: Place, count: Option<u64>, config: FlowConfig) -> Server {
    let socket = Socket::bind(address, config.variant).unwrap();
    let address = socket.address().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let (one_more, ends) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mut ended = Vec::new();
        let tell = |told: Told<'_>| {
            if let Told::Ended { name, result, .. } = told {
                ended.push((name.to_owned(), result.map_err(|e| e.to_string())));
                let _ = one_more.send(());
            }
        };
        let until = count.map_or(Until::Stopped, Until::Whole);
        let result = serve(socket, &config, &place, until, &stopped, tell);
        (result, ended)
    });
    Server {
        address,
        stop,
        ends,
        thread,
    }
}

pub fn folder(path: &Path) -> Place {
    Place::Folder {
        path: path.to_owned(),
        replace: false,
    }
}

pub fn noise(octets: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    (0..octets)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

pub fn send(
    to: SocketAddr,
    name: &str,
    content: Content,
    variant: Variant,
) -> Result<transfer::Progress, TransferError> {
    let mut sending = Sending::new(name, content).unwrap();
    let stop = AtomicBool::new(false);
    let done = transfer::call::send(to, &config(variant), &mut sending, &stop, |_| {})?;
    Ok(done.progress)
}

pub fn file_with(dir: &Path, octets: &[u8]) -> File {
    let path = dir.join("source");
    fs::write(&path, octets).unwrap();
    File::open(path).unwrap()
}

/// Loses one datagram in ten, both ways.
pub fn lossy(to: SocketAddr, stop: &Arc<AtomicBool>) -> SocketAddr {
    between(to, stop, |n, _| n % 10 != 0)
}

/// Loses so many of 1000 datagrams, both ways, without a pattern.
pub fn losing(to: SocketAddr, stop: &Arc<AtomicBool>, loss: u64, seed: u64) -> SocketAddr {
    between(to, stop, move |n, _| {
        let drawn = (u64::from(n) + 1 + (seed << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (drawn ^ drawn >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40 >= (loss << 24) / 1_000
    })
}

/// Drops datagrams of more than `octets`, from the `first` one on.
pub fn narrow(to: SocketAddr, stop: &Arc<AtomicBool>, octets: usize, first: u32) -> SocketAddr {
    between(to, stop, move |n, len| n < first || len <= octets)
}

/// Passes datagrams on between a sender and a receiver, both ways: those of which `passes` says so, by their number and
/// their length.
pub fn between(
    to: SocketAddr,
    stop: &Arc<AtomicBool>,
    passes: impl Fn(u32, usize) -> bool + Send + 'static,
) -> SocketAddr {
    relay(to, stop, move |n, datagram| passes(n, datagram.len()))
}

/// The same; datagrams may be changed on the way.
pub fn relay(
    to: SocketAddr,
    stop: &Arc<AtomicBool>,
    passes: impl Fn(u32, &mut [u8]) -> bool + Send + 'static,
) -> SocketAddr {
    let outside = std::net::UdpSocket::bind(LOCAL_TUPLE).unwrap();
    let inside = std::net::UdpSocket::bind(LOCAL_TUPLE).unwrap();
    let address = outside.local_addr().unwrap();
    for s in [&outside, &inside] {
        s.set_read_timeout(Some(std::time::Duration::from_millis(1)))
            .unwrap();
    }
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let (mut caller, mut n, mut octets) = (None, 0_u32, [0; 2_000]);
        while !stop.load(Ordering::Relaxed) {
            for (a, b) in [(&outside, &inside), (&inside, &outside)] {
                while let Ok((len, from)) = a.recv_from(&mut octets) {
                    n += 1;
                    if std::ptr::eq(a, &outside) {
                        caller = Some(from);
                    }
                    let target = if std::ptr::eq(a, &outside) {
                        Some(to)
                    } else {
                        caller
                    };
                    if let Some(target) = target.filter(|_| passes(n, &mut octets[..len])) {
                        let _ = b.send_to(&octets[..len], target);
                    }
                }
            }
        }
    });
    address
}

/// A call of ATP comes in and is answered, and then nobody is there any more. Tells where that was.
pub fn answers_and_is_gone(socket: std::net::UdpSocket) -> SocketAddr {
    answer(&socket);
    socket.local_addr().unwrap()
}

/// Answers the call of ATP that comes in; tells who has called, and with what it was answered.
pub fn answer(socket: &std::net::UdpSocket) -> (SocketAddr, Header) {
    let mut octets = [0; 2_000];
    let (n, from) = socket.recv_from(&mut octets).unwrap();
    let (call, _) = Header::parse(&octets[..n]).unwrap();
    let answer = Header {
        sequence: 7,
        acknowledgement: call.sequence.wrapping_add(1),
        spacing_us: call.spacing_us,
        ..Header::new(
            call.protocol,
            Control::SYN
                .with(Control::ACK)
                .with(Control::SACK_OPT)
                .with(Control::SACK_REQ),
        )
    };
    socket.send_to(&answer.octets(), from).unwrap();
    (from, answer)
}

/// One of the two directions of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    ToReceiver,
    ToSender,
}

impl Way {
    pub fn back(self) -> Way {
        match self {
            Way::ToReceiver => Way::ToSender,
            Way::ToSender => Way::ToReceiver,
        }
    }
}

/// Somebody between a sender and a receiver, whom `does` tells what to do with each datagram, by its number and its way: it sends what
/// it likes either way.
pub fn middle(
    to: SocketAddr,
    stop: &Arc<AtomicBool>,
    mut does: impl FnMut(u32, Way, &[u8], &dyn Fn(Way, &[u8])) + Send + 'static,
) -> SocketAddr {
    let sockets = [(); 2].map(|()| std::net::UdpSocket::bind(LOCAL_TUPLE).unwrap());
    for s in &sockets {
        s.set_read_timeout(Some(std::time::Duration::from_millis(1)))
            .unwrap();
    }
    let address = sockets[0].local_addr().unwrap();
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        let (mut caller, mut n, mut octets) = (None, 0, [0; 2_000]);
        let [outside, inside] = &sockets;
        while !stop.load(Ordering::Relaxed) {
            for (socket, way) in [(outside, Way::ToReceiver), (inside, Way::ToSender)] {
                while let Ok((len, from)) = socket.recv_from(&mut octets) {
                    n += 1;
                    if way == Way::ToReceiver {
                        caller = Some(from);
                    }
                    let send = |way, datagram: &[u8]| {
                        let _ = match (way, caller) {
                            (Way::ToReceiver, _) => inside.send_to(datagram, to),
                            (Way::ToSender, Some(caller)) => outside.send_to(datagram, caller),
                            (Way::ToSender, None) => Ok(0),
                        };
                    };
                    does(n, way, &octets[..len], &send);
                }
            }
        }
    });
    address
}

/// Makes a connection on which nothing is said; tells what its next packet begins with.
pub fn open_and_say_nothing(to: SocketAddr) -> (std::net::UdpSocket, Header) {
    let (socket, heard) = call_and_say_nothing(to);
    socket.send(&heard.octets()).unwrap();
    (socket, heard)
}

/// Makes a call, and says nothing when it is answered; tells what the next packet begins with.
pub fn call_and_say_nothing(to: SocketAddr) -> (std::net::UdpSocket, Header) {
    const FIRST: u32 = 1_000;
    let socket = std::net::UdpSocket::bind(LOCAL_TUPLE).unwrap();
    socket.connect(to).unwrap();
    socket.set_read_timeout(Some(HANGS)).unwrap();
    let call = Header {
        sequence: FIRST,
        spacing_us: 40_000,
        ..Header::new(ProtocolId::Atp, Control::SYN.with(Control::SACK_REQ))
    };
    socket.send(&call.octets()).unwrap();
    let mut octets = [0; 2_000];
    let n = socket.recv(&mut octets).unwrap();
    let (answer, _) = Header::parse(&octets[..n]).unwrap();
    assert!(answer.control.has(Control::SYN.with(Control::ACK)), "{answer:?}");
    let heard = Header {
        sequence: FIRST + 1,
        acknowledgement: answer.sequence.wrapping_add(1),
        ..Header::new(ProtocolId::Atp, Control::SACK_OPT.with(Control::ACK))
    };
    (socket, heard)
}

/// Whether a reset is among the datagrams that have come. All of them have, since who sent them has ended.
pub fn was_reset(socket: &std::net::UdpSocket) -> bool {
    socket.set_nonblocking(true).unwrap();
    let mut octets = [0; 2_000];
    // also an error that says that nobody listens any more
    std::iter::from_fn(|| match socket.recv(&mut octets) {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => None,
        received => Some(received.is_ok_and(|n| {
            let header = Header::parse(&octets[..n]).map(|(header, _)| header);
            header.is_ok_and(|header| header.control.has(Control::RST))
        })),
    })
    .any(|reset| reset)
}

pub const LOCAL_TUPLE: (&str, u16) = ("127.0.0.1", 0);

/// Nothing here takes as long; what hangs fails.
pub const HANGS: std::time::Duration = std::time::Duration::from_secs(60);

/// What a sender tells in the end: how that was, and how far it was then.
pub type Outcome = mpsc::Receiver<(Result<(), TransferError>, Progress)>;

/// A sender in a thread of its own; tells how it has ended, and how far it was then.
pub fn caller(
    to: SocketAddr,
    name: &str,
    content: Content,
    config: &FlowConfig,
    stop: &Arc<AtomicBool>,
) -> Outcome {
    let (tell, ended) = mpsc::channel();
    let mut sending = Sending::new(name, content).unwrap();
    let (config, stop) = (*config, Arc::clone(stop));
    thread::spawn(move || {
        let mut last = Progress::default();
        let result = transfer::call::send(to, &config, &mut sending, &stop, |seen| {
            if let Seen::Progress(p) = seen {
                last = p;
            }
        });
        let _ = tell.send((result.map(|done| last = done.progress), last));
    });
    ended
}

/// Gives what comes through a channel, until its other end is dropped.
pub struct Slow(pub mpsc::Receiver<Vec<u8>>, pub Vec<u8>);

impl Read for Slow {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.1.is_empty() {
            self.1 = self.0.recv().unwrap_or_default();
        }
        let n = self.1.len().min(out.len());
        out[..n].copy_from_slice(&self.1[..n]);
        self.1.drain(..n);
        Ok(n)
    }
}
