//! Stations in a room: every frame arrives, adapters have clocks of their own that cannot be set. What contends for the
//! medium and merges clocks is tried in the simulator.

mod bench;
mod endings;
mod filter;
mod multi_hop;
mod power_save;
#[cfg(feature = "ccmp")]
mod protected;
mod sleeper;

use super::*;
use crate::testing::{Clock, Fate, Room};
use frame::Wire;
use frame::mac::{Header, Kind};
use frame::mgmt::ProbeResponse;
use radio::Outcome;
use sleeper::Sleeper;
use std::vec;
use std::vec::Vec;

const MS: u64 = 1_000_000;

fn address(i: u32) -> MacAddr {
    MacAddr::local(i)
}

fn config(i: u32, window: u16) -> IbssConfig {
    IbssConfig {
        scan: Duration::from_ms(150 + 200 * u64::from(i)),
        atim_window_tu: window,
        ..IbssConfig::new(address(i), "robots", Rate::OFDM_24)
    }
}

fn room(stations: u32, window: u16) -> Room {
    room_of(stations, |i| config(i, window))
}

fn room_of(stations: u32, config: impl Fn(u32) -> IbssConfig) -> Room {
    let mut room = Room::new(1);
    for i in 0..stations {
        room.add(address(i), || Ibss::<8, 200>::new(config(i)));
    }
    room
}

fn station(room: &Room, i: usize) -> &Ibss<8, 200> {
    room.protocol(i)
}

fn kinds(room: &Room, kind: Kind) -> usize {
    let is = |f: &&crate::testing::Flight| Header::parse(&f.frame).is_ok_and(|h| h.kind() == kind);
    room.flights.iter().filter(is).count()
}

#[test]
fn the_first_creates_and_the_others_join() {
    let mut room = room(3, 0);
    room.run_until(2_000 * MS);
    let network = *station(&room, 0).network().unwrap();
    assert!(!network.bssid.is_group() && network.bssid.0[0] & 2 != 0);
    assert_eq!((network.interval_tu, network.atim_window_tu), (100, 0));
    assert!((1..3).all(|i| station(&room, i).network() == Some(&network)));
    // one beacon in each interval, now from one station, now from another
    let sent: Vec<u64> = (0..3).map(|i| station(&room, i).counters().beacons).collect();
    let intervals = station(&room, 0).counters().intervals;
    let beacons: u64 = sent.iter().sum();
    assert!(
        (intervals..=intervals + 2).contains(&beacons),
        "{sent:?} of {intervals}"
    );
    assert!(sent.iter().filter(|n| **n > 0).count() >= 2, "{sent:?}");
    assert_eq!(station(&room, 0).neighbours().count(), 2);
    room.close();
}

#[test]
fn data_goes_at_once_where_nobody_dozes() {
    let mut room = room(2, 0);
    room.submit(1_000 * MS, 0, address(1), b"hello", None);
    room.submit(1_001 * MS, 1, MacAddr::BROADCAST, b"all", None);
    room.submit(1_002 * MS, 1, address(9), b"nobody", None);
    room.run_until(1_100 * MS);
    let got: Vec<_> = room
        .delivered
        .iter()
        .map(|d| (d.node, d.peer, d.payload.as_slice()))
        .collect();
    assert_eq!(
        got,
        [
            (1, address(0), &b"hello"[..]),
            (0, address(1), b"all"),
            (0, address(1), b"nobody")
        ][..2]
    );
    assert!(room.delivered[0].at_ns < 1_001 * MS);
    assert_eq!(station(&room, 0).counters().confirms.acked, 1);
    assert_eq!((station(&room, 0).waiting(), station(&room, 1).waiting()), (0, 0));
    room.close();
}

#[test]
fn what_is_submitted_before_there_is_a_network_waits() {
    let mut room = room(2, 0);
    room.submit(10 * MS, 1, address(0), b"early", None);
    room.submit(11 * MS, 1, address(0), &[7; 201], None);
    room.run_until(1_000 * MS);
    assert_eq!(room.delivered.len(), 1);
    assert_eq!(station(&room, 1).counters().no_room, 1);
    room.close();
}

#[test]
fn frames_for_nobody_are_given_up() {
    let mut room = room(1, 10);
    room.script(|a| match a.frame[4..10] == address(9).0 {
        true => crate::testing::Fate::DataLost,
        false => crate::testing::Fate::Arrives,
    });
    room.submit(1_000 * MS, 0, address(9), b"who?", None);
    room.submit(1_000 * MS, 0, address(9), b"soon", Some(1_300 * MS));
    room.run_until(4_000 * MS);
    let s = station(&room, 0);
    assert_eq!(
        (s.waiting(), s.counters().expired, s.counters().confirms.total()),
        (0, 2, 0)
    );
    assert!(
        (9..=11).contains(&s.counters().atims_failed),
        "{:?}",
        s.counters()
    );
    room.close();
}

#[test]
fn the_last_to_send_a_beacon_answers_probes() {
    let mut room = room(2, 0);
    let mut out = [0; network::MAX_OCTETS];
    let asker = IbssConfig::new(address(7), "robots", Rate::OFDM_6);
    let nowhere = Network {
        bssid: MacAddr::BROADCAST,
        interval_tu: 0,
        atim_window_tu: 0,
    };
    let probe = network::emit(network::Kind::ProbeRequest, &asker, &nowhere, 1, &mut out).to_vec();
    for i in 0..2 {
        room.hear(1_550 * MS, i, &probe, Rate::OFDM_6);
    }
    room.run_until(1_600 * MS);
    assert_eq!(kinds(&room, Kind::PROBE_RESPONSE), 1);
    let answer = room.flights.iter().find(|f| f.frame[0] == 0x50).unwrap();
    let response = ProbeResponse::parse(&answer.frame).unwrap();
    assert_eq!(response.header.destination, address(7));
    assert!(network::read(&answer.frame, &asker).is_some());
    // the other one is asked by its name
    let [first, other] = match response.header.source == address(0) {
        true => [address(0), address(1)],
        false => [address(1), address(0)],
    };
    let mut directed = probe.clone();
    directed[4..10].copy_from_slice(&other.0);
    for i in 0..2 {
        room.hear(1_610 * MS, i, &directed, Rate::OFDM_6);
    }
    room.run_until(1_640 * MS);
    let answers = room.flights.iter().filter(|f| f.frame[0] == 0x50);
    let sources: Vec<_> = answers
        .map(|f| ProbeResponse::parse(&f.frame).unwrap().header.source)
        .collect();
    assert_eq!(sources, [first, other]);
    room.close();
}

/// Of two networks of one name the one whose clock is behind joins the other, and never the other way round.
#[test]
fn networks_merge_towards_the_later_clock() {
    let mut room = Room::new(1);
    let ahead = Clock {
        offset_ns: 5_000_000_000,
        ppb: 0,
    };
    let alone = |i: u32| IbssConfig {
        active_scan: false,
        scan: Duration::from_ms(1),
        ..config(i, 0)
    };
    room.add_with_clocks(address(0), Clock::default(), Clock::default(), || {
        Ibss::<8, 200>::new(alone(0))
    });
    room.add_with_clocks(address(1), Clock::default(), ahead, || {
        Ibss::<8, 200>::new(alone(1))
    });
    room.run_until(1_000 * MS);
    let [behind, before] = [0, 1].map(|i| station(&room, i));
    assert_eq!(behind.network(), before.network());
    assert!(behind.counters().merges >= 1);
    assert_eq!(before.counters().merges, 0);
    room.close();
}

#[test]
fn any_frame_is_taken() {
    let mut room = room(2, 10);
    let mut frames: Vec<Vec<u8>> = (0..255_u8)
        .map(|i| (0..i).map(|k| i.wrapping_mul(k) ^ 0x80).collect())
        .collect();
    let mut out = [0; network::MAX_OCTETS];
    let net = Network {
        bssid: address(5),
        interval_tu: 65_535,
        atim_window_tu: 65_534,
    };
    for interval_tu in [0, 1, 65_535] {
        let net = Network { interval_tu, ..net };
        frames.push(network::emit(network::Kind::Beacon, &config(7, 0), &net, 1, &mut out).to_vec());
    }
    for (i, frame) in frames.iter().enumerate() {
        room.hear((1_000 + i as u64) * MS, i % 2, frame, Rate::OFDM_6);
    }
    room.run_until(3_000 * MS);
    room.close();
}
