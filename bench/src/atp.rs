//! ATP over UDP, both ends on threads of this process.

use std::net::SocketAddr;
use std::thread;

use protocols::transport::wire::{Control, Header, MAX_DATA_OCTETS, ProtocolId};
use protocols::transport::{Event, State, Transport};
use radio::{Duration, Instant};
use transfer::flow::{Flow, FlowConfig};
use transfer::secure::{Guard, Key, OVERHEAD_OCTETS, Opened};
use transfer::socket::{Clock, Socket, new_octets, without_timer_slack};

use crate::{BLOCK, Cost, LOCAL, OCTETS, cost, thread_ns};

/// One end of a connection without a file: the one that calls writes, the other one reads and notes when packets come.
fn end(mut socket: Socket, peer: Option<SocketAddr>, config: &FlowConfig, octets: usize) -> Vec<Instant> {
    without_timer_slack();
    let clock = Clock::default();
    let calls = peer.is_some();
    let to = peer.unwrap_or(LOCAL.into());
    let (mut flow, mut peer) = (
        if calls {
            Flow::caller(config, to)
        } else {
            Flow::listener(config, to)
        },
        peer,
    );
    let (mut room, mut block) = (new_octets(), vec![7; BLOCK]);
    let (mut moved, mut came) = (0, Vec::with_capacity(octets / 1_000));
    if let Some(to) = peer {
        flow.handle(clock.now(), Event::Start, &mut socket.path(to, None));
    }
    loop {
        while let Some((datagram, from)) = socket.receive(&mut room) {
            peer = Some(from);
            if !calls {
                came.push(clock.now());
            }
            flow.handle(
                clock.now(),
                Event::Indication(datagram),
                &mut socket.path(from, None),
            );
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
            flow.handle(now, Event::Timer, &mut socket.path(to, None));
        }
        match flow.state() {
            State::Lingering | State::Closed => break,
            State::Failed(why) => panic!("{why}"),
            _ => socket.wait(clock.now(), flow.deadline(), Duration::from_ms(100)),
        }
    }
    assert_eq!(moved, octets);
    came
}

/// Moves so many octets, begun with this spacing, and tells when packets came.
pub fn atp(spacing_us: u64, octets: usize) -> (Vec<Instant>, Cost) {
    let config = FlowConfig {
        spacing: Some(Duration::from_us(spacing_us)),
        ..FlowConfig::default()
    };
    let socket = Socket::bind(LOCAL.into(), config.variant).expect("a port");
    let to = socket.address().expect("bound");
    let called = thread::spawn(move || (end(socket, None, &config, octets), thread_ns()));
    let socket = Socket::connect(to, config.variant).expect("a port");
    let sends = cost(|| drop(end(socket, Some(to), &config, octets)));
    let (came, receives) = called.join().expect("all came");
    (came, [sends, receives])
}

/// Packets that are sealed, and then opened, between two looks at the clock.
const BATCH: usize = 10_000;

/// Sealing and opening of as many octets in packets of full length, without a network.
pub fn seal() -> Cost {
    let key = Key::random().expect("random numbers");
    let mut a = Guard::caller(&key, Duration::from_ms(1_000)).expect("a key");
    let call = a.call(Instant::ZERO).expect("in time").expect("due").to_vec();
    let (mut b, answer) = Guard::listener(&key, &call).expect("the same key");
    let mut room = new_octets();
    a.open(&answer, &mut room);
    let body = vec![7; MAX_DATA_OCTETS - OVERHEAD_OCTETS];
    let header = Header::new(ProtocolId::Atp, Control::ACK).octets();
    let packet = [&header[..], &body].concat();
    let mut all = Cost::default();
    let mut batch = vec![Vec::with_capacity(2 * packet.len()); BATCH];
    for _ in 0..OCTETS / body.len() / BATCH {
        all[0] += cost(|| {
            for sealed in &mut batch {
                sealed.clear();
                sealed.extend_from_slice(a.seal(&packet).expect("open"));
            }
        });
        all[1] += cost(|| {
            for sealed in &batch {
                assert!(matches!(b.open(sealed, &mut room), Opened::Packet(_)));
            }
        });
    }
    all
}
