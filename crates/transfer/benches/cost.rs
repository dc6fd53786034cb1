//! What ATP over UDP costs next to the kernel's TCP, on this computer with itself, and how evenly packets are spaced:
//! `cargo bench -p sdmac-transfer --bench cost`. Prints ratios and distributions, and judges nothing.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use protocols::transport::{Event, State, Transport};
use radio::{Duration, Instant};
use transfer::flow::{Flow, FlowConfig};
use transfer::secure::Key;
use transfer::socket::{Clock, Socket, new_octets, without_timer_slack};

const LOCAL: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
const OCTETS: usize = 64 << 20;
const BLOCK: usize = 1 << 14;

/// CPU of this process so far, user and kernel, in clock ticks of 10 ms.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .expect("as proc(5) has it")
        .1
        .split(' ')
        .collect();
    [12, 13]
        .iter()
        .map(|i| fields[*i].parse::<u64>().expect("a number"))
        .sum()
}

/// CPU ticks for what is done.
fn cost(what: impl FnOnce()) -> u64 {
    let before = ticks();
    what();
    ticks() - before
}

fn tcp() {
    let listener = TcpListener::bind(LOCAL).expect("a port");
    let to = listener.local_addr().expect("bound");
    let reads = thread::spawn(move || {
        let (mut tcp, _) = listener.accept().expect("a call");
        let (mut block, mut all) = (vec![0; BLOCK], 0);
        while let Ok(n @ 1..) = tcp.read(&mut block) {
            all += n;
        }
        assert_eq!(all, OCTETS);
    });
    let mut tcp = TcpStream::connect(to).expect("somebody there");
    let block = vec![7; BLOCK];
    for _ in 0..OCTETS / BLOCK {
        tcp.write_all(&block).expect("somebody there");
    }
    drop(tcp);
    reads.join().expect("all came");
}

/// One end of a connection without a file: the one that calls writes, the other one reads and notes when packets come.
fn end(
    mut socket: Socket,
    peer: Option<std::net::SocketAddr>,
    config: &FlowConfig,
    octets: usize,
) -> Vec<Instant> {
    without_timer_slack();
    let clock = Clock::default();
    let calls = peer.is_some();
    let (mut flow, mut peer) = (
        if calls {
            Flow::caller(config)
        } else {
            Flow::listener(config)
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

fn atp(spacing_us: u64, octets: usize) -> Vec<Instant> {
    let config = FlowConfig {
        spacing: Some(Duration::from_us(spacing_us)),
        ..FlowConfig::default()
    };
    let socket = Socket::bind(LOCAL.into()).expect("a port");
    let to = socket.address().expect("bound");
    let called = thread::spawn(move || end(socket, None, &config, octets));
    end(Socket::connect(to).expect("a port"), Some(to), &config, octets);
    called.join().expect("all came")
}

/// Sealing and opening of as many octets in packets of full length, without a network.
fn seal() {
    use protocols::transport::wire::{Control, Header, MAX_DATA_OCTETS, ProtocolId};
    use transfer::secure::{Guard, OVERHEAD_OCTETS, Opened};
    let key = Key::random().expect("random numbers");
    let mut a = Guard::caller(&key, Duration::from_ms(1_000)).expect("a key");
    let call = a.call(Instant::ZERO).expect("in time").expect("due").to_vec();
    let (mut b, answer) = Guard::listener(&key, &call).expect("the same key");
    let mut room = new_octets();
    a.open(&answer, &mut room);
    let body = vec![7; MAX_DATA_OCTETS - OVERHEAD_OCTETS];
    let header = Header::new(ProtocolId::Atp, Control::ACK).octets();
    let packet = [&header[..], &body].concat();
    for _ in 0..OCTETS / body.len() {
        let sealed = a.seal(&packet).expect("open");
        assert!(matches!(b.open(sealed, &mut room), Opened::Packet(_)));
    }
}

fn main() {
    let in_tcp = cost(tcp).max(1);
    // as many packets as the processor takes: spacing is no limit
    let in_atp = cost(|| drop(atp(1, OCTETS)));
    let in_seal = cost(seal);
    let mib = OCTETS >> 20;
    println!(
        "CPU for {mib} MiB, both ends: kernel TCP {in_tcp}0 ms, ATP {in_atp}0 ms, sealing alone {in_seal}0 ms"
    );
    println!("ATP / TCP: {:.1}", in_atp as f64 / in_tcp as f64);

    let came = atp(100, 10_000 * 1_448);
    let mut gaps: Vec<u64> = came
        .windows(2)
        .map(|w| w[1].since(w[0]).as_ns() / 1_000)
        .collect();
    gaps.sort_unstable();
    let at = |share: f64| gaps[((gaps.len() - 1) as f64 * share) as usize];
    println!(
        "{} packets at 10,000/s, us between two arrivals: min {}, 1 % {}, median {}, 90 % {}, 99 % {}, 99.9 % {}, max {}",
        came.len(),
        at(0.0),
        at(0.01),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    let all = came
        .last()
        .zip(came.first())
        .map_or(0, |(b, a)| b.since(*a).as_ns());
    println!("mean {:.1} us", all as f64 / 1_000.0 / gaps.len() as f64);
}
