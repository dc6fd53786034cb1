//! Stations with a key.

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
