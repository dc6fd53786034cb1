//! What holds for any octets: for the tests of this crate and for the fuzzer.
#![allow(dead_code)]

use protocols::transport::atp::{Config, Connection};
use protocols::transport::wire::{BLOCK_OCTETS, Header, MAX_PACKET_OCTETS, blocks, pass};
use protocols::transport::{Buffers, Event, Path, Sent, Transport};
use radio::Instant;

/// What is accepted says the same when it is written again, and a hop changes what it may and nothing else.
pub fn try_packet(octets: &[u8]) {
    let Ok((header, body)) = Header::parse(octets) else {
        return;
    };
    let again = [&header.octets()[..], body].concat();
    assert_eq!(Header::parse(&again), Ok((header, body)));
    assert!(!header.is_feedback() || blocks(body).count() * BLOCK_OCTETS == body.len());
    let mut passed = octets.to_vec();
    if pass(&mut passed, |_| 7) {
        let (after, rest) = Header::parse(&passed).expect("still a packet");
        let raised = Header {
            delay_us: header.delay_us.max(7),
            hops: header.hops.saturating_add(1),
            ..header
        };
        assert_eq!((after, rest), (raised, body));
    } else {
        assert_eq!(passed, octets);
    }
}

#[derive(Default)]
struct Sheet(Vec<Vec<u8>>);

impl Path for Sheet {
    fn request(&mut self, datagram: &[u8]) {
        assert!(datagram.len() <= MAX_PACKET_OCTETS);
        self.0.push(datagram.to_vec());
    }
}

/// Two ends that are connected and exchange datagrams, with others in between: pieces of `octets`, each behind its
/// length. They may break the connection, and do nothing else.
pub fn try_connection(mut octets: &[u8]) {
    let buffers = || Buffers {
        send: [0; 4_000],
        receive: [0; 4_000],
        sent: [Sent::default(); 8],
    };
    let config = Config {
        initial_number: u32::MAX - 9,
        ..Config::adaptive()
    };
    let mut ends: [Connection<_, _, 4>; 2] = [
        Connection::caller(&config, buffers()),
        Connection::listener(&config, buffers()),
    ];
    ends[0].write(Instant::ZERO, &[1; 3_000]);
    ends[1].write(Instant::ZERO, &[2; 3_000]);
    let mut sheet = Sheet::default();
    ends[0].handle(Instant::ZERO, Event::Start, &mut sheet);
    let mut waiting = [std::mem::take(&mut sheet.0), Vec::new()];
    let mut ms = 0;
    for _ in 0..200 {
        ms += 3;
        let now = Instant::from_us(ms * 1_000);
        for end in 0..2 {
            let mut incoming = std::mem::take(&mut waiting[end]);
            if let Some((&length, rest)) = octets.split_first() {
                let piece;
                (piece, octets) = rest.split_at(rest.len().min(length.into()));
                incoming.push(piece.to_vec());
            }
            for datagram in &incoming {
                ends[end].handle(now, Event::Indication(datagram), &mut sheet);
            }
            ends[end].handle(now, Event::Timer, &mut sheet);
            let mut out = [0; 700];
            ends[end].read(now, &mut out);
            waiting[1 - end].append(&mut sheet.0);
        }
    }
}
