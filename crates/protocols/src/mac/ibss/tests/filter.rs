//! What a slow host hears: the receive filter, and ATIMs that it hears when their window is over.

use super::*;

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
