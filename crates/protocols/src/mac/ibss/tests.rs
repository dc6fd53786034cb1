//! Stations in a room: every frame arrives, adapters have clocks of their own that cannot be set. What contends for the
//! medium and merges clocks is tried in the simulator.

mod bench;
mod endings;
mod multi_hop;
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

/// In the ATIM window only beacons and ATIMs are on the air; data follows behind it, in the same interval.
#[test]
fn announced_frames_follow_the_window() {
    let mut room = room(3, 20);
    for n in 0..10 {
        room.submit((1_200 + 307 * n) * MS, 0, address(1), b"to one", None);
    }
    room.submit(3_000 * MS, 2, MacAddr::BROADCAST, b"to all", None);
    room.run_until(5_000 * MS);
    let to_one = room.delivered.iter().filter(|d| d.payload == b"to one").count();
    let to_all = room.delivered.iter().filter(|d| d.payload == b"to all").count();
    assert_eq!((to_one, to_all), (10, 2));
    let c = *station(&room, 0).counters();
    assert_eq!((c.atims, c.atims_failed, c.confirms.acked), (10, 0, 10));
    assert_eq!(
        station(&room, 1).counters().atims_heard,
        11,
        "ten for it, one for all"
    );
    // where in its interval each frame was: clocks are true, so TBTTs are multiples
    for flight in &room.flights {
        let into_us = flight.start_ns / 1_000 % 102_400;
        let kind = Header::parse(&flight.frame).unwrap().kind();
        let in_window = into_us < 20 * 1_024;
        match kind {
            Kind::DATA => assert!(!in_window, "data {into_us} us after the TBTT"),
            Kind::ATIM => assert!(in_window, "an ATIM {into_us} us after the TBTT"),
            _ => {}
        }
    }
    room.close();
}

/// Nobody has anything to say: each dozes in all intervals but those in which it sent the beacon.
#[test]
fn who_has_nothing_to_say_dozes() {
    let mut room = room(3, 10);
    room.run_until(10_000 * MS);
    for i in 0..3 {
        let s = station(&room, i);
        let c = s.counters();
        assert!(
            c.intervals > 85 && c.intervals_dozed + c.beacons >= c.intervals - 3,
            "{c:?}"
        );
        let energy = s.energy(room.local(i, 10_000 * MS));
        let all = energy.transmit + energy.receive + energy.listen + energy.doze;
        assert_eq!(all, Duration::from_ms(10_000));
        assert!(energy.doze > Duration::from_ms(4_000), "{energy:?}");
    }
    let awake = IbssConfig {
        power_save: false,
        ..config(0, 10)
    };
    let mut room = Room::new(1);
    room.add(address(0), || Ibss::<8, 200>::new(awake));
    room.run_until(3_000 * MS);
    assert_eq!(
        station(&room, 0).energy(room.local(0, 3_000 * MS)).doze,
        Duration::ZERO
    );
    room.close();
}

/// A host whose timers are up to 4 ms late, and whose adapter takes a millisecond to wake up: 2 TU before a TBTT are too
/// few, and 5 are enough. It tries 4 again after four rounds of 64, and is back after one.
#[test]
fn it_wakes_up_as_early_as_its_host_needs() {
    let run = |adapt_wake_ahead: bool, late_ns: u64| {
        // such hosts know late that another has sent the beacon
        let slow = |i: u32| IbssConfig {
            slot: Duration::from_ms(5),
            cw_min: 7,
            wake_ahead: Duration::from_tu(2),
            adapt_wake_ahead,
            ..config(i, 80)
        };
        let mut room = Room::new(3);
        room.delays.timer_ns = 0..=late_ns;
        // one alone sends all beacons, and does not doze
        for i in 0..2 {
            room.add(address(i), || Ibss::<8, 200>::new(slow(i)));
        }
        room.run_until(100_000 * MS);
        let (s, after) = (station(&room, 0).wake_ahead().as_us() / 1_024, room.now_ns());
        let before = *station(&room, 0).counters();
        room.run_until(after + 200_000 * MS);
        let c = *station(&room, 0).counters();
        room.close();
        assert!(before.wakes > 300, "{before:?}");
        let late = (c.wakes_late - before.wakes_late) * 100 / (c.wakes - before.wakes);
        (s, late)
    };
    let (tu, late) = run(false, 4_000_000);
    assert!(tu == 2 && late > 50, "{tu} TU, {late} % late");
    let (tu, late) = run(true, 4_000_000);
    assert!((4..=5).contains(&tu) && late < 10, "{tu} TU, {late} % late");
    assert_eq!(run(true, 0), (2, 0));
}

/// Who sent the beacon and has nothing to say dozes as well, and says every 20 ms that there is a network: four times behind
/// a window of 10 TU.
#[test]
fn soft_beacons_tell_of_the_network() {
    // 98 intervals, and 5 ms are left of the last one
    const END: u64 = 10_030 * MS;
    let run = |soft: bool| {
        let mut room = Room::new(1);
        for i in 0..3 {
            let config = IbssConfig {
                soft_beacon: soft.then_some(Duration::from_ms(20)),
                ..config(i, 10)
            };
            room.add(address(i), || Ibss::<8, 200>::new(config));
        }
        for n in 0..10 {
            room.submit((1_000 + 307 * n) * MS, 0, address(1), b"to one", None);
        }
        room.run_until(END);
        room
    };
    let (plain, soft) = (run(false), run(true));
    for room in [&plain, &soft] {
        assert_eq!(room.delivered.len(), 10);
    }
    assert_eq!(station(&plain, 0).counters().soft_windows, 0);
    let doze = |room: &Room, i| station(room, i).energy(room.local(i, END)).doze;
    for i in 0..3 {
        let c = station(&soft, i).counters();
        assert!(c.soft_windows > 15 && c.soft_windows <= c.beacons, "{c:?}");
        assert_eq!(c.soft_beacons, 4 * c.soft_windows);
        let e = station(&soft, i).energy(soft.local(i, END));
        assert_eq!(e.transmit + e.receive + e.listen + e.doze, Duration::from_ns(END));
        assert!(doze(&soft, i) > doze(&plain, i) + Duration::from_ms(1_000));
        assert!(e.transmit > station(&plain, i).energy(plain.local(i, END)).transmit);
    }
    for flight in &soft.flights {
        if Header::parse(&flight.frame).unwrap().kind() == Kind::BEACON {
            let into_us = flight.start_ns / 1_000 % 102_400;
            assert!(into_us < 102_400 - 1_024, "{into_us} us after a TBTT");
        }
    }
    for room in [plain, soft] {
        room.close();
    }
}

/// Somebody who only listens finds a network between two of its TBTTs.
#[test]
fn a_network_is_found_by_its_soft_beacons() {
    let found = |soft: bool| {
        let soft = IbssConfig {
            soft_beacon: soft.then_some(Duration::from_ms(20)),
            ..config(0, 10)
        };
        let mut room = Room::new(1);
        room.add(address(0), || Ibss::<8, 200>::new(soft));
        room.run_until(1_040 * MS);
        let late = IbssConfig {
            scan: Duration::from_ms(70),
            active_scan: false,
            ..config(1, 10)
        };
        room.add(address(1), || Ibss::<8, 200>::new(late));
        room.run_until(1_115 * MS);
        let same = station(&room, 1).network() == station(&room, 0).network();
        room.close();
        same
    };
    assert!(found(true), "TBTTs are at 1024 and 1126 ms");
    assert!(!found(false));
}

/// Who stays awake for data asks for a filter four times in an interval, and lifts it a TU before others may send what it drops; who
/// has sent the beacon hears all behind the window.
#[test]
fn the_filter_follows_the_interval() {
    let run = |filter: bool, window: u16| {
        let mut room = Room::new(1);
        for i in 0..3 {
            let config = IbssConfig {
                receive_filter: filter,
                ..config(i, window)
            };
            room.add(address(i), || Sleeper::new(Ibss::<8, 200>::new(config)));
        }
        for n in 0..60 {
            room.submit((1_010 + 102 * n) * MS, 0, address(1), b"to one", None);
        }
        room.run_until(8_000 * MS);
        room
    };
    let sleeper = |room: &Room, i| room.protocol::<Sleeper<Ibss<8, 200>>>(i).filters.clone();
    let room = run(true, 20);
    assert_eq!(room.delivered.len(), 60);
    let mut parts = [0; 2];
    for i in 0..3 {
        assert_eq!(room.protocol::<Sleeper<Ibss<8, 200>>>(i).missed, 0);
        let filters = sleeper(&room, i);
        for pair in filters[1..].windows(2) {
            let [(from, _, filter), (until, ..)] = pair else {
                unreachable!("windows of two")
            };
            let into = |t: Instant| t.as_ns() / 1_000 % 102_400;
            let (began, part) = match filter {
                ReceiveFilter::All => continue,
                // before the TBTT, or with the doze
                ReceiveFilter::Management => ([102_400 - 512, 20 * 1_024].contains(&into(*from)), 0),
                // half of the wake-ahead behind the end of the window
                _ => (into(*from) == 20 * 1_024 + 512, 1),
            };
            let ended = into(*until) == [19, 99][part] * 1_024;
            // the first one begins where it became a member
            assert!(ended && (began || parts == [0, 0]), "{filter:?} of {i}: {pair:?}");
            parts[part] += 1;
        }
    }
    let c = [0, 1, 2].map(|i| *room.protocol::<Sleeper<Ibss<8, 200>>>(i).station.counters());
    let intervals: u64 = c.iter().map(|c| c.intervals).sum();
    assert!(parts[0] + 3 >= intervals, "{parts:?} in {intervals}");
    // two stay awake for each message, but for the one of them that has sent the beacon
    assert!((40..=120).contains(&parts[1]), "{parts:?}");
    assert!(c.iter().all(|c| c.atims_late == 0));
    room.close();
    for (filter, window) in [(false, 20), (true, 1), (true, 0)] {
        let room = run(filter, window);
        let all = (0..3).flat_map(|i| sleeper(&room, i));
        let managed = all.filter(|f| f.2 == ReceiveFilter::Management);
        assert_eq!(
            managed.count(),
            0,
            "a window of {window} TU is too short, or there is none"
        );
        assert_eq!(
            (0..3)
                .map(|i| room.protocol::<Sleeper<Ibss<8, 200>>>(i).missed)
                .sum::<u64>(),
            0
        );
        room.close();
    }
}

/// Slow hosts hear of an ATIM when its window is over, and later still that it was acknowledged. So something will come.
#[test]
fn a_late_atim_ends_the_doze() {
    let mut room = Room::new(1);
    room.delays.indicate_ns = 4_000_000..=4_000_000;
    room.delays.confirm_ns = 6_000_000..=6_000_000;
    for i in 0..2 {
        // the second one hardly ever gets to send a beacon, for which it would stay awake
        let config = IbssConfig {
            slot: Duration::from_us([9, 1_000][i as usize]),
            cw_min: 31,
            ..config(i, 3)
        };
        room.add(address(i), || Sleeper::new(Ibss::<8, 200>::new(config)));
    }
    for n in 0..20 {
        room.submit((1_200 + 307 * n) * MS, 0, address(1), b"to one", None);
    }
    room.run_until(8_000 * MS);
    let receiver: &Sleeper<Ibss<8, 200>> = room.protocol(1);
    let c = receiver.station.counters();
    assert!(c.intervals_dozed > 0 && c.atims_heard == 20, "{c:?}");
    assert_eq!(c.atims_late, 20);
    assert_eq!((receiver.missed, room.delivered.len()), (0, 20));
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

#[cfg(feature = "ccmp")]
mod protected {
    use super::super::super::ccmp::Secret;
    use super::*;

    fn with_key(config: IbssConfig, key: Option<u8>) -> IbssConfig {
        let secret = key.map(|octet| Secret {
            key: [octet; 16],
            id: 0,
            first_pn: 1,
        });
        IbssConfig { secret, ..config }
    }

    fn room(keys: &[Option<u8>]) -> Room {
        let mut room = Room::new(1);
        for (i, key) in (0..).zip(keys) {
            let config = with_key(config(i, 0), *key);
            room.add(address(i), || Ibss::<8, 200>::new(config));
        }
        room
    }

    #[test]
    fn who_has_the_key_reads_it() {
        let mut room = room(&[Some(7), Some(7), Some(8), None]);
        for n in 0..5 {
            room.submit((3_000 + n) * MS, 0, address(1), b"a secret", None);
        }
        room.submit(3_010 * MS, 0, MacAddr::BROADCAST, b"for all", None);
        room.submit(3_020 * MS, 1, address(0), &[7; 200], None);
        room.run_until(3_500 * MS);
        assert_eq!(room.delivered.len(), 7, "those with the key, and nobody else");
        assert!(room.delivered.iter().all(|d| d.node < 2));
        let readable = |f: &crate::testing::Flight| f.frame.windows(6).any(|w| w == b"secret");
        assert!(!room.flights.iter().any(readable));
        let seen = |i| *station(&room, i).protected().unwrap();
        assert_eq!((seen(0).sealed, seen(0).opened), (6, 1));
        assert_eq!((seen(1).sealed, seen(1).opened), (1, 6));
        // another key shows at the first frame only: its beacons look the same. What is for one station is told to that one alone
        assert_eq!((seen(2).opened, seen(2).mic_failures), (0, 1));
        // without a key it is another network altogether
        let network = |i| station(&room, i).network().unwrap().bssid;
        assert!(network(0) == network(1) && network(0) != network(3));
        assert!(station(&room, 3).protected().is_none());
        room.close();
    }

    /// Frames that cannot be protected end, and the numbers of packets go on from where they are told to.
    #[test]
    fn packet_numbers_are_used_up() {
        use crate::mac::ccmp::packet_number;
        let last = (1 << 48) - 1;
        let mut room = Room::new(1);
        for i in 0..2 {
            room.add(address(i), || {
                let mut station = Ibss::<8, 200>::new(with_key(config(i, 0), Some(7)));
                station.number_packets_from(last);
                station
            });
        }
        for n in 0..3 {
            room.submit((3_000 + n) * MS, 0, address(1), b"a secret", None);
        }
        room.run_until(3_500 * MS);
        let sent = room.flights.iter().filter_map(|f| packet_number(&f.frame));
        assert_eq!(sent.collect::<Vec<_>>(), [last]);
        let c = station(&room, 0).counters();
        assert_eq!(
            (c.unprotected, station(&room, 0).waiting(), room.delivered.len()),
            (2, 0, 1)
        );
        room.close();
    }
}
