//! A chain of four nodes in a room.

use super::*;
use crate::testing::{Fate, Room};
use crate::transport::wire::OPTION_RAW_DELAY;
use frame::Rate;
use std::vec::Vec;

const fn node(n: usize) -> MacAddr {
    MacAddr::local(n as u32 + 1)
}

fn forwarder(n: usize, nodes: usize) -> Forwarder<4, 8> {
    let bssid = MacAddr::local(99);
    let identity = Identity {
        me: node(n),
        role: crate::mac::data::Role::Direct { bssid },
    };
    let mut f = Forwarder::new(&ForwarderConfig {
        identity,
        how: TxHow::one_shot(Rate::OFDM_6),
        group: TxHow::one_shot(Rate::OFDM_6),
        hop: HopConfig::default(),
        gone_after: Some(3),
    });
    for to in (0..nodes).filter(|to| *to != n) {
        assert!(f.set_route(node(to), node(if to > n { n + 1 } else { n - 1 })));
    }
    f
}

fn chain(nodes: usize) -> Room {
    let mut room = Room::new(1);
    for n in 0..nodes {
        room.add(node(n), move || forwarder(n, nodes));
    }
    room
}

/// Ports 1 and 2, and a packet of ATP.
fn packet(control: Control, options: u8) -> Vec<u8> {
    let header = Packet {
        options,
        sequence: 77,
        ..Packet::new(ProtocolId::Atp, control)
    };
    [&[0, 1, 0, 2][..], &header.octets()].concat()
}

fn delivered(room: &Room) -> Vec<(usize, MacAddr, Packet)> {
    let read = |payload: &[u8]| Packet::parse(&payload[4..]).unwrap().0;
    room.delivered
        .iter()
        .map(|d| (d.node, d.peer, read(&d.payload)))
        .collect()
}

#[test]
fn along_the_chain_and_back() {
    let mut room = chain(4);
    // the first one finds hops that know nothing, the second one what it cost the first
    for n in 0..2u64 {
        room.submit(
            n * 50_000_000,
            0,
            node(3),
            &packet(Control::ACK, OPTION_RAW_DELAY),
            None,
        );
    }
    room.submit(100_000_000, 3, node(0), &packet(Control::SACK_OPT, 0), None);
    room.run_until(200_000_000);
    let got = delivered(&room);
    let ends: Vec<_> = got.iter().map(|(n, peer, p)| (*n, *peer, p.hops)).collect();
    assert_eq!(
        ends,
        [(3, node(0), 3), (3, node(0), 3), (0, node(3), 0)],
        "feedback is not counted"
    );
    assert_eq!(room.delivered[0].payload[..4], [0, 1, 0, 2]);
    let airtime_us = u64::from(frame::ppdu_us(
        Rate::OFDM_6,
        24 + 8 + 20 + 24 + 4,
        frame::Band::Ghz5,
    ));
    let delays: Vec<_> = got.iter().map(|(_, _, p)| u64::from(p.delay_us)).collect();
    assert!(delays[0] == 0 && delays[2] == 0);
    assert!(
        (airtime_us..airtime_us + 200).contains(&delays[1]),
        "{delays:?} {airtime_us}"
    );
    assert_eq!(room.protocol::<Forwarder<4, 8>>(1).counters().forwarded, 3);
    room.close();
}

#[test]
fn the_queue_is_bounded() {
    let mut room = chain(2);
    for n in 0..10 {
        room.submit(1_000 + n, 0, node(1), &packet(Control::ACK, 0), None);
    }
    room.run_until(50_000_000);
    // one on the air and four behind it
    assert_eq!(room.delivered.len(), 5);
    let f = room.protocol::<Forwarder<4, 8>>(0);
    assert_eq!((f.counters().overflowed, f.waiting()), (5, 0));
    assert!(f.hop().delay_us() > 0);
    room.close();
}

#[test]
fn lost_frames_are_counted_and_go_once() {
    let mut room = chain(2);
    room.script(|_| Fate::DataLost);
    room.submit(0, 0, node(1), &packet(Control::ACK, 0), None);
    room.run_until(50_000_000);
    assert_eq!((room.flights.len(), room.delivered.len()), (1, 0));
    assert_eq!(room.protocol::<Forwarder<4, 8>>(0).counters().unheard, 1);
    room.close();
}

/// The third node has no way to the fourth: the source is told, once for each packet that is no feedback.
#[test]
fn a_missing_route_is_told() {
    let mut room = Room::new(1);
    for n in 0..3 {
        room.add(node(n), move || {
            let mut f = forwarder(n, 4);
            if n == 2 {
                f.clear_route(node(3));
            }
            f
        });
    }
    room.submit(0, 0, node(3), &packet(Control::ACK, 0), None);
    room.submit(20_000_000, 0, node(3), &packet(Control::SACK_OPT, 0), None);
    // and at the source itself
    room.submit(40_000_000, 2, node(3), &packet(Control::ACK, 0), None);
    room.run_until(80_000_000);
    let got = delivered(&room);
    let notices: Vec<_> = got.iter().map(|(n, peer, p)| (*n, *peer, p.sequence)).collect();
    assert_eq!(notices, [(0, node(3), 77), (2, node(3), 77)]);
    assert!(got.iter().all(|(_, _, p)| p.control == Control::PATH_FAILURE));
    assert_eq!(room.delivered[0].payload[..4], [0, 2, 0, 1], "ports are swapped");
    room.close();
}

/// Neither what a hop says of another path, nor the end of a connection, nor a packet that is not of ATP.
#[test]
fn what_waits_for_no_answer_is_not_told_of_a_missing_route() {
    let other = [
        &[0, 1, 0, 2][..],
        &Packet::new(ProtocolId::Tcp, Control::ACK).octets(),
    ]
    .concat();
    let all = [
        Control::PATH_FAILURE,
        Control::RST,
        Control::RST.with(Control::ACK),
        Control::SACK_OPT,
    ];
    let all = all.map(|control| packet(control, 0));
    for datagram in all.iter().chain([&other]) {
        let mut room = Room::new(1);
        for n in 0..2 {
            room.add(node(n), move || {
                let mut f = forwarder(n, 3);
                if n == 1 {
                    f.clear_route(node(2));
                }
                f
            });
        }
        room.submit(0, 0, node(2), datagram, None);
        // and at the source itself
        room.submit(20_000_000, 1, node(2), datagram, None);
        room.run_until(40_000_000);
        let c = *room.protocol::<Forwarder<4, 8>>(1).counters();
        assert_eq!((room.delivered.len(), c.told, c.unroutable), (0, 0, 2));
        room.close();
    }
}

/// The way from the second node to the third breaks and heals: from the third loss in a row on the source is told, until one is heard.
#[test]
fn a_neighbour_that_is_gone_is_told() {
    let mut room = chain(3);
    room.script(|a| match a.at_ns {
        30_000_000..330_000_000 if a.frame[4..10] == node(2).0 => Fate::DataLost,
        _ => Fate::Arrives,
    });
    for n in 0..10 {
        room.submit(n * 50_000_000, 0, node(2), &packet(Control::ACK, 0), None);
    }
    room.submit(300_000_000, 1, node(2), &packet(Control::ACK, 0), None);
    room.run_until(600_000_000);
    let got = delivered(&room);
    let told = |at| {
        got.iter()
            .filter(|(n, _, p)| *n == at && p.control == Control::PATH_FAILURE)
            .count()
    };
    let arrived = got.iter().filter(|(n, ..)| *n == 2).count();
    let c = *room.protocol::<Forwarder<4, 8>>(1).counters();
    assert_eq!((arrived, told(0), told(1), told(2)), (4, 4, 1, 0), "{got:?}");
    assert_eq!((c.unheard, c.told), (7, 5), "notices themselves get through");
    room.close();
}

#[test]
fn circles_end() {
    let mut room = Room::new(1);
    for n in 0..2 {
        room.add(node(n), move || {
            let mut f = forwarder(n, 2);
            assert!(f.set_route(node(9), node(1 - n)));
            f
        });
    }
    room.submit(0, 0, node(9), &packet(Control::ACK, 0), None);
    room.run_until(500_000_000);
    assert_eq!(room.flights.len(), usize::from(MOST_HOPS));
    room.close();
}

/// A radio by hand: what was requested last, and for how long its medium was busy so far.
#[derive(Default)]
struct Ear {
    tokens: u64,
    frame: Vec<u8>,
    busy_time_us: u64,
}

impl Radio for Ear {
    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }
    fn request(&mut self, _: Token, frame: &[u8], _: &TxHow) {
        self.frame = frame.into();
    }
    fn set(&mut self, _: Token, _: AdapterId, _: Attribute) {}
    fn get(&self, _: AdapterId, name: AttributeName) -> Option<Attribute> {
        let counters = radio::Counters {
            busy_time_us: self.busy_time_us,
            ..radio::Counters::default()
        };
        (name == AttributeName::Counters).then_some(Attribute::Counters(counters))
    }
    fn abort(&mut self, _: Token) {}
    fn deliver(&mut self, _: Msdu<'_>) {}
}

/// Sends a packet each 200 ms, each of which ends so after 1 ms; between two of them the medium is busy for so long. Tells the delay that
/// the last one has learnt, in microseconds.
fn learnt_us(outcome: Outcome, busy_ms: u64) -> u32 {
    let mut f = forwarder(0, 2);
    let mut ear = Ear::default();
    for ms in [0, 200, 400] {
        let at = |ms: u64| Instant::from_us(1_000 * ms);
        let payload = packet(Control::ACK, 0);
        f.handle(at(ms), Event::Submit(Msdu::new(node(1), &payload)), &mut ear);
        let confirm = Confirm::without_air(Token(ear.tokens), outcome, Rate::OFDM_6);
        f.handle(at(ms + 1), Event::Confirm(confirm), &mut ear);
        ear.busy_time_us += 1_000 * busy_ms;
    }
    let (_, packet) = ear.frame.split_last_chunk::<PACKET_OCTETS>().unwrap();
    Packet::parse(packet).unwrap().0.delay_us
}

#[test]
fn a_failed_frame_counts_as_one_that_arrives() {
    let all = [
        Outcome::Acked,
        Outcome::NotAcked,
        Outcome::Expired,
        Outcome::Unknown,
    ];
    assert_eq!(all.map(|outcome| learnt_us(outcome, 100)), [1_000, 1_000, 0, 0]);
}

/// A node whose ACK was lost hears the frame again. The datagram goes on, or up, once.
#[test]
fn what_comes_again_goes_on_once() {
    for (to, [forwarded, delivered]) in [(2, [1, 0]), (1, [0, 1])] {
        let mut ear = Ear::default();
        let payload = packet(Control::ACK, 0);
        forwarder(0, 3).handle(
            Instant::ZERO,
            Event::Submit(Msdu::new(node(to), &payload)),
            &mut ear,
        );
        let mut frame = core::mem::take(&mut ear.frame);
        let mut f = forwarder(1, 3);
        for retry in [0, 8, 8] {
            frame[1] = frame[1] & !8 | retry;
            let heard = radio::Indication {
                frame: &frame,
                rate: Rate::OFDM_6,
                signal_dbm: None,
                tsf: None,
                adapter: AdapterId(0),
                stamps: radio::Stamps::NONE,
            };
            f.handle(Instant::ZERO, Event::Indication(heard), &mut ear);
        }
        let c = f.counters();
        assert_eq!(
            ([c.forwarded, c.delivered], f.waiting()),
            ([forwarded, delivered], 0)
        );
    }
}

/// Where others talk packets will meet them, and nothing is to be multiplied.
#[test]
fn a_channel_on_which_others_talk_is_not_idle() {
    let shares = [0, 9, 11, 200].map(|busy_ms| learnt_us(Outcome::Acked, busy_ms));
    assert_eq!(shares, [3_000, 3_000, 1_000, 1_000]);
}
