//! Frames that go on both links while both serve.

use super::*;
use crate::mac::redundancy::trailer::Trailer;
use frame::Wire;
use frame::mac::Data;
use proptest::collection::vec;
use std::collections::BTreeSet;

fn doubled(change: fn(&mut RoamConfig)) -> Station {
    let mut config = RoamConfig::new(
        ME,
        APS[0],
        &[5180],
        (AdapterId(0), Some(AdapterId(1))),
        Rate::OFDM_6,
    );
    config.copies = true;
    change(&mut config);
    let mut sender = SenderConfig::new(Identity::station(ME, APS[0]), Rate::OFDM_24);
    sender.how = TxHow::multi_shot(Rate::OFDM_24, 3);
    Roam::new(config, Sender::new(sender))
}

/// What becomes of data frames of the station: to the old access point, and to the new one.
type Fates = Rc<Cell<(Fate, Fate)>>;

/// The station has left an access point whose beacons it does not hear any more, and that hears it still, in this instant.
fn handed_over(station: impl Fn() -> Station + 'static) -> (Room, MacAddr, Fates) {
    let mut room = room_with(true, station);
    room.run_until(600 * MS);
    let old = room.protocol::<Station>(2).access_point().unwrap();
    let fates = Rc::new(Cell::new((Fate::Arrives, Fate::Arrives)));
    let of = fates.clone();
    room.script(move |x| {
        let h = Header::parse(x.frame).unwrap();
        let data = h.frame_type() == FrameType::Data && x.node == 2;
        match h.receiver() == old {
            _ if is_beacon(x) && touches(x, old) => Fate::DataLost,
            true if data => of.get().0,
            false if data => of.get().1,
            _ => Fate::Arrives,
        }
    });
    let mut ms = 600;
    while room.protocol::<Station>(2).counters().handovers == 0 {
        ms += 1;
        room.run_until(ms * MS);
    }
    (room, old, fates)
}

/// So many messages, one each 4 ms from 1 ms on.
fn each_4_ms(room: &mut Room, count: u64) {
    let from = room.now_ns() + MS;
    for i in 0..count {
        room.submit(from + 4 * i * MS, 2, APS[0], &[i as u8], None);
    }
}

/// Data frames of the station on the air: to whom, number, and whether it is said to be a retry.
fn sent(room: &Room) -> Vec<(MacAddr, u16, bool)> {
    let own = room.flights.iter().filter(|f| f.node == 2);
    own.map(|f| (f, Header::parse(&f.frame).unwrap()))
        .filter(|(_, h)| h.frame_type() == FrameType::Data)
        .map(|(_, h)| (h.receiver(), h.sequence().unwrap().number(), h.is_retry()))
        .collect()
}

#[test]
fn each_goes_on_both_links_until_the_new_one_has_proved_itself() {
    let (mut room, old, _) = handed_over(|| doubled(|_| ()));
    each_4_ms(&mut room, 30);
    room.run_until(room.now_ns() + 200 * MS);
    let c = room.protocol::<Station>(2).counters();
    // the tenth ACK is the last one that counts
    assert_eq!((c.copies, c.duplicates, c.second_chances), (10, 10, 0), "{c:?}");
    let sent = sent(&room);
    assert!(sent.iter().all(|(_, _, retry)| !retry), "{sent:?}");
    let numbers = |ap| -> Vec<u16> {
        let to = sent.iter().filter(|(to, ..)| *to == ap);
        to.map(|(_, number, _)| *number).collect()
    };
    let new = *APS.iter().find(|ap| **ap != old).unwrap();
    assert_eq!(numbers(new), (0..30).collect::<Vec<u16>>());
    assert_eq!(
        numbers(old),
        (0..10).collect::<Vec<u16>>(),
        "by number they are one"
    );
    let confirms = room.protocol::<Station>(2).protocol().counters().confirms;
    assert_eq!((confirms.acked, confirms.total()), (30, 30));
    room.close();
}

#[test]
fn without_copies_each_goes_on_the_new_link() {
    let (mut room, old, _) = handed_over(|| doubled(|c| c.copies = false));
    each_4_ms(&mut room, 30);
    room.run_until(room.now_ns() + 200 * MS);
    let c = room.protocol::<Station>(2).counters();
    assert_eq!((c.copies, c.duplicates), (0, 0));
    assert!(sent(&room).iter().all(|(to, ..)| *to != old));
    room.close();
}

/// Whichever link fails, the request ends with the ACK of the other one, and what that one would still try is taken back.
#[test]
fn one_ack_is_enough() {
    for old_fails in [false, true] {
        let (mut room, old, fates) = handed_over(|| doubled(|c| c.acks = u16::MAX));
        fates.set(match old_fails {
            true => (Fate::DataLost, Fate::Arrives),
            false => (Fate::Arrives, Fate::DataLost),
        });
        let from = room.now_ns();
        let before = room.confirms.len();
        each_4_ms(&mut room, 20);
        room.run_until(from + 90 * MS);
        let c = room.protocol::<Station>(2).counters();
        assert_eq!((c.copies, c.duplicates), (20, 0), "{old_fails}: {c:?}");
        assert_eq!(c.missed_in_handover + c.missed_else, 0, "{c:?}");
        assert_eq!(c.second_chances, 0, "it was on both");
        let failing = |(to, ..): &&(MacAddr, u16, bool)| (*to == old) == old_fails;
        let tries = sent(&room).iter().filter(failing).count();
        // the second try is on the air when the ACK of the other link is told, and the third one is taken back
        assert!((20..=40).contains(&tries), "{old_fails}: {tries}");
        let aborted = room.confirms[before..].iter();
        let aborted = aborted.filter(|(n, _, c)| *n == 2 && c.outcome == Outcome::Aborted);
        assert_eq!(aborted.count(), 20);
        let confirms = room.protocol::<Station>(2).protocol().counters().confirms;
        assert_eq!((confirms.acked, confirms.total()), (20, 20));
        room.close();
    }
}

#[test]
fn a_request_whose_copies_both_fail_is_missed_once() {
    let (mut room, _, fates) = handed_over(|| doubled(|_| ()));
    fates.set((Fate::DataLost, Fate::DataLost));
    each_4_ms(&mut room, 10);
    room.run_until(room.now_ns() + 90 * MS);
    let c = room.protocol::<Station>(2).counters();
    assert_eq!((c.copies, c.duplicates, c.second_chances), (10, 0, 0), "{c:?}");
    assert_eq!(c.missed_in_handover + c.missed_else, 10, "{c:?}");
    let confirms = room.protocol::<Station>(2).protocol().counters().confirms;
    assert_eq!((confirms.not_acked, confirms.total()), (10, 10));
    // three tries on each link
    assert_eq!(confirms.attempts, 60);
    room.close();
}

/// The same messages come down through both access points, under one number; one that has no number cannot be told from another.
#[test]
fn what_comes_down_through_both_is_handed_up_once() {
    for (copies, numbered) in [(true, true), (true, false), (false, true)] {
        let (mut room, old, _) = handed_over(move || {
            doubled(match copies {
                true => |_| (),
                false => |c| c.copies = false,
            })
        });
        let old = APS.iter().position(|ap| *ap == old).unwrap();
        let from = room.now_ns() + MS;
        for n in 0..20u16 {
            let mut message = [7; 10].to_vec();
            if numbered {
                // behind LLC and SNAP
                let trailer = Trailer { sequence: n, lan: 0 };
                message.extend(trailer.octets(message.len() + 8).unwrap());
            }
            let at = from + 4 * u64::from(n) * MS;
            // each seventh does not come through one of them
            let through = |ap: u16| n % 7 != ap;
            if through(0) {
                room.submit(at, old, ME, &message, None);
            }
            if through(1) {
                room.submit(at + 3 * MS, 1 - old, ME, &message, None);
            }
        }
        room.run_until(from + 90 * MS);
        let up: Vec<_> = room.delivered.iter().filter(|d| d.node == 2).collect();
        let c = room.protocol::<Station>(2).counters();
        let once = copies && numbered;
        let all = if once { (20, 14) } else { (34, 0) };
        assert_eq!((up.len(), c.repeated), all, "{copies} {numbered}");
        let octets = 10 + if numbered && !copies { 6 } else { 0 };
        assert!(
            up.iter().all(|d| d.payload.len() == octets),
            "{copies} {numbered}"
        );
        room.close();
    }
}

/// Makes a request for each message, and asks some of them back: those of which the payload says so, after so many microseconds.
#[derive(Clone, Debug, Default)]
struct Fickle {
    open: BTreeSet<Token>,
    back: Vec<(Instant, Token)>,
    made: usize,
    confirmed: usize,
    acked: u64,
}

impl Protocol for Fickle {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Submit(msdu) => {
                let mut mpdu = [0; 64];
                let n = Data::to_ap(APS[0], ME, APS[0], msdu.payload)
                    .emit(&mut mpdu)
                    .unwrap();
                let token = radio.token();
                radio.request(token, &mpdu[..n], &TxHow::multi_shot(Rate::OFDM_24, 3));
                self.open.insert(token);
                self.made += 1;
                let us = u64::from(msdu.payload[0]) * 10;
                if us > 0 {
                    self.back.push((now + Duration::from_us(us), token));
                }
            }
            Event::Confirm(c) => {
                assert!(self.open.remove(&c.token), "not open, or not for the second time");
                self.confirmed += 1;
                self.acked += u64::from(c.outcome.is_acked());
            }
            Event::Timer => {
                let due = |(at, _): &(Instant, Token)| *at <= now;
                for (_, token) in self.back.iter().copied().filter(|b| due(b)) {
                    radio.abort(token);
                }
                self.back.retain(|b| !due(b));
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.back.iter().map(|(at, _)| *at).min()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever is lost, refused or asked back, each request has one confirm, and what is told of copies adds up.
    #[test]
    fn each_request_ends_once(
        seed: u64,
        share in 0u64..70,
        times in vec((0u64..1_500_000, prop_oneof![Just(0u8), 1u8..60]), 0..80),
        burst in 0u64..40,
    ) {
        let mut room = Room::new(seed);
        room.add(APS[0], || ap(APS[0], 3));
        room.add(APS[1], || Second(ap(APS[1], 53)));
        room.add(ME, || {
            let mut config = RoamConfig::new(ME, APS[0], &[5180], (AdapterId(0), Some(AdapterId(1))), Rate::OFDM_6);
            // hand-overs come often and both links serve for long
            (config.copies, config.lost, config.overlap, config.rest) =
                (true, Duration::from_ms(150), Duration::from_ms(300), Duration::from_ms(50));
            Roam::<Fickle>::new(config, Fickle::default())
        });
        room.delays.confirm_ns = 5_000..=400_000;
        let mut dice = Dice::new(seed);
        room.script(move |_| match dice.within(0..=99) {
            x if x < share => Fate::DataLost,
            x if x < share + 5 => Fate::AckLost,
            x if x < share + 10 => Fate::ConfirmLost,
            x if x < share + 13 => Fate::Reset,
            _ => Fate::Arrives,
        });
        let made = times.len() + burst as usize;
        for (us, back) in times {
            room.submit(us * 1_000, 2, APS[0], &[back; 20], None);
        }
        for n in 0..burst {
            room.submit(700 * MS + n, 2, APS[0], &[(n % 3) as u8; 20], None);
        }
        // what is held back while nobody lets it in waits for that
        room.run_until(2_500 * MS);
        room.script(|_| Fate::Arrives);
        room.run_until(4_000 * MS);
        let roam = room.protocol::<Roam<Fickle>>(2);
        let (c, above) = (roam.counters(), roam.protocol());
        prop_assert_eq!((above.made, above.confirmed), (made, made), "{:?}", above.open);
        prop_assert!(c.duplicates <= c.copies && c.duplicates <= above.acked, "{:?}", c);
        room.close();
    }
}

/// What is below on the old link would go on whatever channel it listens on next.
#[test]
fn the_old_link_stays_until_its_last_frame_is_over() {
    let (mut room, old, fates) = handed_over(|| doubled(|c| c.acks = 1));
    fates.set((Fate::DataLost, Fate::Arrives));
    let links = |room: &Room| {
        let station = room.protocol::<Station>(2);
        (station.links[station.primary], station.links[1 - station.primary])
    };
    each_4_ms(&mut room, 1);
    while links(&room).0.acks == 0 {
        room.run_until(room.now_ns() + 1_000);
    }
    let (_, behind) = links(&room);
    assert_eq!((behind.flying, behind.joined()), (1, Some(old)));
    room.run_until(room.now_ns() + 10 * MS);
    let (_, behind) = links(&room);
    assert_eq!((behind.flying, behind.joined()), (0, None));
    room.close();
}
