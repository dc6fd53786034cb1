//! Lines of stations that relay: in these rooms everybody is heard, and the line is made by the routes.

use super::*;
use crate::mesh::{Relay, RouteTable};
use proptest::prelude::*;

type Node = Sleeper<Relay<8, 200, 8>>;

/// The way from `i` to all others of a line.
fn along(i: u32, stations: u32) -> RouteTable<8> {
    let others = (0..stations).filter(|to| *to != i);
    RouteTable::new(others.map(|to| (address(to), address(if to > i { i + 1 } else { i - 1 }))))
}

fn line(stations: u32, seed: u64, config: impl Fn(u32) -> IbssConfig) -> Room {
    let mut room = Room::new(seed);
    for i in 0..stations {
        room.add(address(i), || {
            Sleeper::new(Relay::<8, 200, 8>::new(config(i), along(i, stations)))
        });
    }
    room
}

fn multi_hop(i: u32, window: u16) -> IbssConfig {
    IbssConfig {
        multi_hop: true,
        ..config(i, window)
    }
}

fn missed(room: &Room, stations: u32) -> u64 {
    (0..stations as usize)
        .map(|i| room.protocol::<Node>(i).missed)
        .sum()
}

/// Interval in which something happened, from the one after `since` on: TBTTs are multiples of 102.4 ms.
fn interval(at_ns: u64, since_ns: u64) -> u64 {
    at_ns / 102_400_000 - since_ns / 102_400_000
}

/// Four hops in one beacon interval, where the standard takes four.
#[test]
fn a_packet_crosses_four_hops_in_one_interval() {
    const AT: u64 = 2_000 * MS;
    for (on, intervals) in [(true, 1), (false, 4)] {
        let config = |i| IbssConfig {
            multi_hop: on,
            ..config(i, 10)
        };
        let mut room = line(5, 1, config);
        room.submit(AT, 0, address(4), b"far", None);
        room.run_until(3_000 * MS);
        assert_eq!(room.delivered.len(), 1);
        assert_eq!(
            interval(room.delivered[0].at_ns, AT),
            intervals,
            "multi-hop: {on}"
        );
        assert_eq!(missed(&room, 5), 0);
        room.close();
    }
}

/// Who is asked, for whom, and how: address 3 names the far end up to the far end, and what goes to all is as ever.
#[test]
fn atims_name_the_far_end() {
    let mut room = line(4, 1, |i| multi_hop(i, 10));
    room.submit(2_000 * MS, 0, address(3), b"far", None);
    room.submit(2_500 * MS, 1, MacAddr::BROADCAST, b"all", None);
    room.run_until(3_000 * MS);
    let bssid = room.protocol::<Node>(0).station.link().network().unwrap().bssid;
    let mut asked = Vec::new();
    for f in &room.flights {
        let h = Header::parse(&f.frame).unwrap();
        match h.kind() {
            Kind::ATIM => asked.push((f.node, h.receiver(), h.address3().unwrap())),
            Kind::DATA => assert_eq!(h.address3(), Some(bssid)),
            _ => {}
        }
    }
    let far = address(3);
    let expected = [
        (0, address(1), far),
        (1, address(2), far),
        (2, far, far),
        (1, MacAddr::BROADCAST, bssid),
    ];
    assert_eq!(asked, expected);
    let asked_on = |i: usize| room.protocol::<Node>(i).station.link().counters().atims_asked_on;
    assert_eq!([0, 1, 2, 3].map(asked_on), [0, 1, 1, 0]);
    assert_eq!(room.delivered.len(), 1 + 3);
    room.close();
}

/// The ATIM of the third station is lost once, with all its tries: the packet waits there, and crosses the rest in the next interval.
#[test]
fn a_way_that_is_half_awake_loses_nothing() {
    let mut room = line(5, 1, |i| multi_hop(i, 10));
    room.script(|a| {
        let is_lost = a.node == 2 && a.frame[0] == 0xd0 && a.at_ns < 2_100 * MS;
        match is_lost || a.node == 2 && a.frame[0] == 0x90 && a.at_ns < 2_100 * MS {
            true => crate::testing::Fate::DataLost,
            false => crate::testing::Fate::Arrives,
        }
    });
    room.submit(2_000 * MS, 0, address(4), b"far", None);
    room.run_until(3_000 * MS);
    assert_eq!(room.delivered.len(), 1);
    assert_eq!(interval(room.delivered[0].at_ns, 2_000 * MS), 2);
    assert_eq!(missed(&room, 5), 0);
    room.close();
}

/// A station without a way on says so, and routes in a circle end: each is asked for the same once.
#[test]
fn ways_that_lead_nowhere() {
    let mut room = Room::new(1);
    let circle = |i: u32| RouteTable::<8>::new([(address(9), address((i + 1) % 3))]);
    for i in 0..3 {
        room.add(address(i), || {
            Sleeper::new(Relay::<8, 200, 8>::new(multi_hop(i, 20), circle(i)))
        });
    }
    let lost = |_: u32| RouteTable::<8>::new([]);
    room.add(address(3), || {
        Sleeper::new(Relay::<8, 200, 8>::new(multi_hop(3, 20), lost(3)))
    });
    room.submit(2_000 * MS, 0, address(9), b"round", None);
    room.run_until(2_140 * MS);
    // TBTTs are at 2048 and 2150 ms
    let atims = room
        .flights
        .iter()
        .filter(|f| f.frame[0] == 0x90 && f.start_ns > 2_000 * MS);
    assert_eq!(atims.count(), 3);
    let mut out = [0; network::MAX_OCTETS];
    let bssid = room.protocol::<Node>(3).station.link().network().unwrap().bssid;
    let net = Network {
        bssid,
        interval_tu: 100,
        atim_window_tu: 20,
    };
    for a3 in [address(77), MacAddr::BROADCAST, MacAddr::ZERO] {
        let kind = network::Kind::Atim(address(3), a3);
        let atim = network::emit(kind, &config(8, 20), &net, 1, &mut out).to_vec();
        room.hear(2_155 * MS, 3, &atim, Rate::OFDM_6);
    }
    room.run_until(2_240 * MS);
    let c = room.protocol::<Node>(3).station.link().counters();
    assert_eq!((c.atims_heard, c.atims_unrouted, c.atims_asked_on), (3, 3, 0));
    room.close();
}

/// What goes where, when: the message, from and to.
fn traffic(stations: u32) -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
    proptest::collection::vec((2_000..4_000_u64, 0..stations, 0..=stations), 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Nothing is sent to a station that dozes: with short windows and long ones, soft beacons or none, over one hop or several,
    /// on hosts of any speed. All laws hold.
    #[test]
    fn nobody_misses_a_frame(
        seed: u64, window in 1_u16..40, traffic in traffic(5), switches: [bool; 3], slow_ns in 0_u64..200_000,
    ) {
        let [multi_hop, soft, adapt_wake_ahead] = switches;
        let config = |i| IbssConfig {
            multi_hop,
            soft_beacon: soft.then_some(Duration::from_ms(7)),
            adapt_wake_ahead,
            seed,
            ..config(i, window)
        };
        let mut room = line(5, seed, config);
        room.delays.request_ns = 10_000..=10_000 + slow_ns;
        room.delays.indicate_ns = 5_000..=5_000 + slow_ns / 10;
        // who is told that he was heard is later than who heard
        room.delays.confirm_ns = 50_000 + slow_ns / 10..=50_000 + slow_ns;
        for (at, from, to) in traffic {
            if to != from {
                let to = if to == 5 { MacAddr::BROADCAST } else { address(to) };
                room.submit(at * MS, from as usize, to, b"some", None);
            }
        }
        room.run_until(6_000 * MS);
        prop_assert_eq!(missed(&room, 5), 0);
        room.close();
    }
}

/// An ATIM that would end behind the window is not begun: whom it is for may doze by then. Here one was due 6 us before the end, and the
/// window of its receiver ended earlier.
#[test]
fn an_atim_ends_within_the_window() {
    const SEED: u64 = 7_685_322_263_442_537_878;
    let mut room = line(5, SEED, |i| IbssConfig {
        seed: SEED,
        ..config(i, 28)
    });
    room.delays.request_ns = 10_000..=192_077;
    room.delays.indicate_ns = 5_000..=23_207;
    room.delays.confirm_ns = 68_207..=232_077;
    for (at, from, to) in [(2_180, 3, 2), (2_589, 1, 2), (2_691, 2, 3)] {
        room.submit(at * MS, from, address(to), b"some", None);
    }
    room.run_until(4_000 * MS);
    assert_eq!((missed(&room, 5), room.delivered.len()), (0, 3));
    room.close();
}
