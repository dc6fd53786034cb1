//! Dozing: windows, waking up in time, and soft beacons.

use super::*;

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

/// Who would wake up as soon as the window is over, or before that: half of the rest of an interval is for data all the same.
#[test]
fn there_is_time_for_data_however_early_it_wakes_up() {
    for ahead_tu in [40, 79, 80, 90, 10_000] {
        let early = |i: u32| IbssConfig {
            wake_ahead: Duration::from_tu(ahead_tu),
            ..config(i, 20)
        };
        let mut room = room_of(2, early);
        for n in 0..5 {
            room.submit((1_200 + 307 * n) * MS, 0, address(1), b"to one", None);
        }
        room.run_until(4_000 * MS);
        assert_eq!(room.delivered.len(), 5, "{ahead_tu} TU");
        assert_eq!(station(&room, 0).wake_ahead(), Duration::from_tu(40));
        room.close();
    }
}

/// An exchange costs both: of data at 24 Mb/s and its ACK, who sends it sends the one and receives the other.
#[test]
fn acks_are_in_the_ledger() {
    let run = |payload: Option<&[u8]>| {
        let mut room = room(2, 0);
        if let Some(payload) = payload {
            room.submit(1_000 * MS, 0, address(1), payload, None);
        }
        room.run_until(1_015 * MS);
        let energy = [0, 1].map(|i| station(&room, i).energy(room.local(i, 1_015 * MS)));
        room.close();
        energy
    };
    let (quiet, busy) = (run(None), run(Some(&[7; 100])));
    let us = |rate, octets| Duration::from_us(ppdu_us(rate, octets, Band::Ghz5).into());
    // header 24, LLC/SNAP 8, FCS 4
    let (data, ack) = (us(Rate::OFDM_24, 136), us(Rate::OFDM_6, 14));
    let more = |i: usize| {
        let (q, b) = (quiet[i], busy[i]);
        (b.transmit.less(q.transmit), b.receive.less(q.receive))
    };
    assert_eq!(more(0), (data, ack));
    assert_eq!(more(1), (ack, data));
}
