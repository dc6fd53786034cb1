//! How payloads end: at their receiver, and for the layer above.

use super::*;

/// Its ACKs are lost until the interval is over: in the next one it goes again, and is known as what was heard before.
#[test]
fn a_frame_that_goes_on_in_the_next_interval_is_delivered_once() {
    let mut room = room_of(2, |i| IbssConfig {
        tries: 255,
        rate: Rate::OFDM_6,
        ..config(i, 20)
    });
    room.script(|a| {
        let data = Header::parse(a.frame).is_ok_and(|h| h.kind() == Kind::DATA);
        match data && a.at_ns < 1_330 * MS {
            true => Fate::AckLost,
            false => Fate::Arrives,
        }
    });
    room.submit(1_200 * MS, 0, address(1), &[1; 200], None);
    room.run_until(2_000 * MS);
    let sent = *station(&room, 0).counters();
    assert_eq!((sent.confirms.expired, sent.confirms.acked), (1, 1), "{sent:?}");
    assert_eq!(room.delivered.len(), 1);
    room.close();
}

/// The layer above is told of each payload that was taken, once, and how it ended.
#[test]
fn every_payload_ends_once() {
    #[derive(Default)]
    struct Above(Vec<Ended>);
    impl Routing for Above {
        fn destination(&self, next: MacAddr, _: &[u8]) -> MacAddr {
            next
        }
        fn next_hop(&self, _: MacAddr) -> Option<MacAddr> {
            None
        }
        fn ended(&mut self, ended: Ended) {
            self.0.push(ended);
        }
    }
    let mut room = Room::new(1);
    for i in 0..2 {
        let short = IbssConfig {
            lifetime_intervals: 3,
            ..config(i, 20)
        };
        room.add(address(i), || {
            Ibss::<4, 200, _>::with_routing(short, Above::default())
        });
    }
    room.script(|a| match a.frame[4..10] == address(9).0 {
        true => crate::testing::Fate::DataLost,
        false => crate::testing::Fate::Arrives,
    });
    room.submit(1_500 * MS, 0, address(1), &[0; 201], None);
    room.submit(1_501 * MS, 0, address(1), b"taken", None);
    room.submit(1_502 * MS, 0, address(9), b"never announced", None);
    room.submit(1_503 * MS, 0, MacAddr::BROADCAST, b"all", None);
    room.run_until(3_000 * MS);
    let told = |room: &Room| {
        let station: &Ibss<4, 200, Above> = room.protocol(0);
        let all = station.routing().0.iter();
        all.map(|e| (e.number, e.to, e.outcome, e.attempts))
            .collect::<Vec<_>>()
    };
    let mut first = told(&room);
    first.sort_by_key(|e| e.0);
    let acked = (0, address(1), Outcome::Acked, 1);
    let over = (1, address(9), Outcome::Expired, 0);
    let group = (2, MacAddr::BROADCAST, Outcome::NotAcked, 1);
    assert_eq!(first, [acked, over, group]);
    assert_eq!(room.protocol::<Ibss<4, 200, Above>>(0).waiting(), 0);
    room.close();
}
