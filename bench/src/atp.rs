//! ATP over UDP, both ends on threads of this process.

use std::net::SocketAddr;
use std::thread;

use protocols::transport::wire::HEADER_OCTETS;
use protocols::transport::{Event, Path, State, Transport};
use radio::{Duration, Instant};
use transfer::flow::{Flow, FlowConfig};
use transfer::secure::{Guard, Key, Opened};
use transfer::socket::{Clock, Ends, Octets, Socket, new_octets, without_timer_slack};

use crate::{BLOCK, Cost, LOCAL, cost, thread_ns};

/// When packets of data were handed to the kernel, and when they were taken from it.
pub struct Seen {
    pub sent: Vec<Instant>,
    pub came: Vec<Instant>,
    pub cost: Cost,
}

/// A path that notes when packets with content go.
struct Noted<'a, P> {
    path: P,
    clock: &'a Clock,
    times: &'a mut Vec<Instant>,
}

impl<P: Path> Path for Noted<'_, P> {
    fn request(&mut self, packet: &[u8]) {
        if packet.len() > HEADER_OCTETS {
            self.times.push(self.clock.now());
        }
        self.path.request(packet);
    }
}

/// A packet for the connection, out of a datagram. With a key the listener's guard begins with the first call, and the answer to it goes
/// out here.
fn unseal<'a>(
    socket: &mut Socket,
    guard: &mut Option<Guard>,
    key: Option<&Key>,
    (datagram, from): (&'a [u8], Ends),
    room: &'a mut Octets,
) -> Option<&'a [u8]> {
    let Some(key) = key else {
        return Some(datagram);
    };
    let Some(open) = guard else {
        let (open, answer) = Guard::listener(key, datagram)?;
        socket.send(from, &answer);
        *guard = Some(open);
        return None;
    };
    match open.open(datagram, room) {
        Opened::Packet(octets) => Some(&room[..octets]),
        _ => None,
    }
}

/// One end of a connection without a file: the one that calls writes and notes when packets go, the other one reads and notes when they
/// come. Sealed if the configuration has a key.
fn end(mut socket: Socket, peer: Option<SocketAddr>, config: &FlowConfig, octets: usize) -> Vec<Instant> {
    without_timer_slack();
    let clock = &Clock::default();
    let calls = peer.is_some();
    let key = config.key.as_ref();
    let mut guard = key
        .filter(|_| calls)
        .map(|key| Guard::caller(key, config.patience).expect("random numbers"));
    let to = peer.unwrap_or(LOCAL.into());
    let (mut flow, mut peer) = (
        if calls {
            Flow::caller(config, to)
        } else {
            Flow::listener(config, to)
        },
        peer.map(Ends::from),
    );
    let (mut room, mut opened, mut block) = (new_octets(), new_octets(), vec![7; BLOCK]);
    let (mut moved, mut came) = (0, Vec::with_capacity(octets / 1_000));
    let mut sent = Vec::with_capacity(octets / 1_000);
    let mut started = false;
    loop {
        if let Some(to) = peer.filter(|_| calls && !started) {
            if let Some(guard) = &mut guard
                && let Some(call) = guard.call(clock.now()).expect("somebody answers")
            {
                socket.send(to, call);
            }
            if guard.as_ref().is_none_or(Guard::is_open) {
                flow.handle(clock.now(), Event::Start, &mut socket.path(to, guard.as_mut()));
                started = true;
            }
        }
        while let Some((datagram, from)) = socket.receive(&mut room) {
            peer = Some(from);
            let packet = unseal(&mut socket, &mut guard, key, (datagram, from), &mut opened);
            let Some(packet) = packet else {
                continue;
            };
            if packet.len() > HEADER_OCTETS {
                came.push(clock.now());
            }
            let (path, times) = (socket.path(from, guard.as_mut()), &mut sent);
            let path = &mut Noted { path, clock, times };
            flow.handle(clock.now(), Event::Indication(packet), path);
        }
        let now = clock.now();
        if calls {
            while moved < octets {
                let n = flow.write(now, &block[..BLOCK.min(octets - moved)]);
                moved += n;
                if n == 0 {
                    break;
                }
            }
            if moved == octets {
                flow.finish(now);
            }
        } else {
            while let n @ 1.. = flow.read(now, &mut block) {
                moved += n;
            }
            if flow.is_exhausted() {
                flow.finish(now);
            }
        }
        if let Some(to) = peer.filter(|_| flow.deadline().is_some_and(|t| t <= now)) {
            let (path, times) = (socket.path(to, guard.as_mut()), &mut sent);
            flow.handle(clock.now(), Event::Timer, &mut Noted { path, clock, times });
        }
        match flow.state() {
            State::Lingering | State::Closed => break,
            State::Failed(why) => panic!("{why}"),
            _ => socket.wait(clock.now(), flow.deadline(), Duration::from_ms(100)),
        }
    }
    assert_eq!(moved, octets);
    if calls { sent } else { came }
}

/// Moves so many octets, begun with this spacing.
pub fn atp(spacing_us: u64, octets: usize, key: Option<Key>) -> Seen {
    let config = FlowConfig {
        spacing: Some(Duration::from_us(spacing_us)),
        key,
        ..FlowConfig::default()
    };
    let socket = Socket::bind(LOCAL.into(), config.variant).expect("a port");
    let to = socket.address().expect("bound");
    let theirs = config;
    let called = thread::spawn(move || (end(socket, None, &theirs, octets), thread_ns()));
    let socket = Socket::connect(to, config.variant).expect("a port");
    let mut sent = Vec::new();
    let sends = cost(|| sent = end(socket, Some(to), &config, octets));
    let (came, receives) = called.join().expect("all came");
    let cost = [sends, receives];
    Seen { sent, came, cost }
}
