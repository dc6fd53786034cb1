//! A station and two access points in the room, on one channel; what is lost follows from who sends to whom.

mod copies;

use super::gate::Gate;
use super::*;
use crate::mac::beacon::{Beaconer, BeaconerConfig};
use crate::mac::data::Identity;
use crate::mac::edf::cost::CostEstimate;
use crate::mac::edf::{Edf, EdfConfig};
use crate::mac::sender::{Sender, SenderConfig};
use crate::testing::{Attempt, Dice, Fate, Room};
use frame::Rate;
use frame::mac::Kind;
use proptest::prelude::*;
use radio::{AdapterId, Attribute, AttributeName, Msdu, Token, TxHow};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::vec::Vec;

const ME: MacAddr = MacAddr::local(1);
const APS: [MacAddr; 2] = [MacAddr::local(2), MacAddr::local(3)];
const MS: u64 = 1_000_000;
type Station = Roam<Sender>;
type Ap = Beaconer<Gate<Sender>>;

fn ap(me: MacAddr, first_ms: u64) -> Ap {
    let mut config = BeaconerConfig::new(me, Duration::from_ms(100), Rate::OFDM_6);
    config.first = Duration::from_ms(first_ms);
    let sender = Sender::new(SenderConfig::new(Identity::access_point(me), Rate::OFDM_24));
    Beaconer::new(config, Gate::new(me, Rate::OFDM_6, sender))
}

fn station(two: bool) -> Station {
    station_with(two, |_| ())
}

fn station_with(two: bool, change: impl Fn(&mut RoamConfig)) -> Station {
    let second = two.then_some(AdapterId(1));
    let mut config = RoamConfig::new(ME, APS[0], &[5180], (AdapterId(0), second), Rate::OFDM_6);
    change(&mut config);
    let mut sender = SenderConfig::new(Identity::station(ME, APS[0]), Rate::OFDM_24);
    sender.how = TxHow::multi_shot(Rate::OFDM_24, 3);
    Roam::new(config, Sender::new(sender))
}

/// A node whose frames go on the second adapter: the adapters of the room are its channels.
#[derive(Clone, Debug)]
struct Second(Ap);

struct Desk<'a>(&'a mut dyn Radio);

impl Radio for Desk<'_> {
    fn token(&mut self) -> Token {
        self.0.token()
    }
    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.0.request(token, frame, &how.adapter(AdapterId(1)));
    }
    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        self.0.set(token, adapter, attribute);
    }
    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        self.0.get(adapter, name)
    }
    fn abort(&mut self, token: Token) {
        self.0.abort(token);
    }
    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.0.deliver(msdu);
    }
}

impl Protocol for Second {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.0.handle(now, event, &mut Desk(radio));
    }
    fn deadline(&self) -> Option<Instant> {
        self.0.deadline()
    }
}

/// Room with the access points as nodes 0 and 1 and the station as node 2.
fn room(two: bool) -> Room {
    room_with(two, move || station(two))
}

fn room_with(two: bool, station: impl Fn() -> Station + 'static) -> Room {
    let mut room = Room::new(1);
    room.add(APS[0], || ap(APS[0], 3));
    match two {
        true => room.add(APS[1], || Second(ap(APS[1], 53))),
        false => room.add(APS[1], || ap(APS[1], 53)),
    };
    room.add(ME, station);
    room
}

fn is_beacon(x: &Attempt<'_>) -> bool {
    Header::parse(x.frame).unwrap().kind() == Kind::BEACON
}

fn touches(x: &Attempt<'_>, ap: MacAddr) -> bool {
    let h = Header::parse(x.frame).unwrap();
    h.receiver() == ap || h.transmitter() == Some(ap)
}

/// From 600 ms on the station has a frame each 20 ms, of no use after that.
fn each_20_ms(room: &mut Room, count: u64) {
    for i in 0..count {
        let at = (600 + 20 * i) * MS;
        room.submit(at, 2, APS[0], &[i as u8], Some(at + 20 * MS));
    }
}

fn payloads(room: &Room) -> Vec<u8> {
    room.delivered
        .iter()
        .filter(|d| d.node < 2)
        .map(|d| d.payload[0])
        .collect()
}

#[test]
fn it_is_let_in_and_data_go_both_ways_under_one_name() {
    let mut room = room(false);
    room.submit(400 * MS, 2, APS[0], &[7], None);
    room.run_until(500 * MS);
    assert_eq!(payloads(&room), [7]);
    let present = room.protocol::<Station>(2).access_point().unwrap();
    let other = APS.iter().position(|ap| *ap == present).unwrap();
    room.submit(500 * MS, other, ME, &[9], None);
    room.run_until(600 * MS);
    let up = room.delivered.last().unwrap();
    assert_eq!((up.node, &up.payload[..1]), (2, &[9][..]));
    let counters = room.protocol::<Station>(2).counters();
    assert_eq!(
        (counters.joined, counters.handovers, counters.missed_else),
        (1, 0, 0)
    );
    room.close();
}

/// The access point falls silent: what is sent in the meantime is missed with one adapter, and counted. With two, the
/// station finds out as late, but listens already. Neither looks at failures.
#[test]
fn what_a_hand_over_costs_is_counted() {
    let mut gaps = Vec::new();
    for two in [false, true] {
        let mut room = room_with(two, move || station_with(two, |c| c.failed = (0, 0)));
        // its ACK is where the gap begins
        room.submit(550 * MS, 2, APS[0], &[100], None);
        room.run_until(600 * MS);
        let old = room.protocol::<Station>(2).access_point().unwrap();
        room.script(move |x| {
            if touches(x, old) {
                Fate::DataLost
            } else {
                Fate::Arrives
            }
        });
        each_20_ms(&mut room, 100);
        room.run_until(3_000 * MS);
        let s = room.protocol::<Station>(2);
        assert_eq!(s.counters().handovers, 1, "{two}");
        assert_ne!(s.access_point(), Some(old));
        let missed = s.counters().missed_in_handover;
        let arrived = payloads(&room).len() as u64;
        assert!(
            missed > 10 && missed + arrived == 101,
            "{two}: {missed} and {arrived}"
        );
        gaps.push(s.counters().longest_gap_ns);
        room.close();
    }
    assert!(gaps[1] < gaps[0], "{gaps:?}");
}

/// Each access point counts its own frames, so after a hand-over numbers come that were heard from the one before. What is sent again
/// there is new all the same; and what is sent again by the same one, since its ACK was lost, is not.
#[test]
fn what_comes_down_after_a_hand_over_is_no_duplicate() {
    for two in [false, true] {
        let mut room = room(two);
        room.run_until(600 * MS);
        let old = room.protocol::<Station>(2).access_point().unwrap();
        let old = APS.iter().position(|ap| *ap == old).unwrap();
        let send = |room: &mut Room, ap: usize, from_ms: u64, first: u8| {
            for n in 0..30 {
                let at = (from_ms + 10 * u64::from(n)) * MS;
                room.submit(at, ap, ME, &[first + n], None);
            }
        };
        let lose_first = |x: &Attempt<'_>, fate| {
            let data = Header::parse(x.frame).unwrap().frame_type() == FrameType::Data;
            if data && x.node < 2 && x.before == 0 {
                fate
            } else {
                Fate::Arrives
            }
        };
        room.script(move |x| lose_first(x, Fate::AckLost));
        send(&mut room, old, 600, 0);
        room.run_until(1_000 * MS);
        room.script(move |x| {
            if touches(x, APS[old]) {
                Fate::DataLost
            } else {
                lose_first(x, Fate::DataLost)
            }
        });
        room.run_until(3_000 * MS);
        let new = room.protocol::<Station>(2).access_point();
        assert_eq!(new, Some(APS[1 - old]));
        send(&mut room, 1 - old, 3_000, 100);
        room.run_until(3_500 * MS);
        let down = room.delivered.iter().filter(|d| d.node == 2);
        let down: Vec<u8> = down.map(|d| d.payload[0]).collect();
        let all: Vec<u8> = (0..30).chain(100..130).collect();
        assert_eq!(down, all, "two adapters: {two}");
        room.close();
    }
}

/// What is sent to the present one is lost, and its beacons are heard, or it falls silent: the station goes to the other one, and does
/// not come back at once, although that may be as strong.
#[test]
fn frames_that_fail_make_it_leave_although_beacons_are_heard() {
    for (two, silent) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut room = room(two);
        room.submit(550 * MS, 2, APS[0], &[100], None);
        room.run_until(600 * MS);
        let old = room.protocol::<Station>(2).access_point().unwrap();
        room.script(move |x| match touches(x, old) && (silent || !is_beacon(x)) {
            true => Fate::DataLost,
            false => Fate::Arrives,
        });
        each_20_ms(&mut room, 100);
        room.run_until(3_000 * MS);
        let s = room.protocol::<Station>(2);
        let c = s.counters();
        assert_eq!((c.handovers, c.given_up), (1, 1), "{two} {silent}: {c:?}");
        assert_ne!(s.access_point(), Some(old));
        // eight frames until it knows, then what is listened for
        let listening = 2 * 110 / 20 + 2;
        assert!(
            (8..=8 + listening).contains(&c.missed_in_handover),
            "{two} {silent}: {c:?}"
        );
        assert_eq!(c.missed_in_handover + payloads(&room).len() as u64, 101);
        room.close();
    }
}

/// What is below would go on whatever channel it listens on next: it has its confirms first, and nothing more is sent.
#[test]
fn with_one_adapter_it_does_not_leave_with_frames_below() {
    for failed in [(8, 10), (0, 0)] {
        let mut room = room_with(false, move || station_with(false, move |c| c.failed = failed));
        room.run_until(600 * MS);
        let old = room.protocol::<Station>(2).access_point().unwrap();
        room.script(move |x| match touches(x, old) {
            true => Fate::DataLost,
            false => Fate::Arrives,
        });
        for i in 0..1_000 {
            room.submit((600 + i) * MS, 2, APS[0], &[i as u8; 1_400], None);
        }
        let (mut left, mut busy) = (false, false);
        for ms in 600..3_000 {
            for tenth in 0..10 {
                room.run_until(ms * MS + tenth * MS / 10);
                let link = room.protocol::<Station>(2).links[0];
                busy |= link.joined() == Some(old) && link.flying > 0;
                left |= link.joined().is_none();
                assert!(
                    link.joined().is_some() || link.flying == 0,
                    "at {ms} ms, {failed:?}"
                );
            }
        }
        assert!(busy && left, "{failed:?}");
        assert_eq!(room.protocol::<Station>(2).counters().handovers, 1);
        room.close();
    }
}

/// Where frames fail at all access points it changes once in each rest, and not with each eight frames.
#[test]
fn who_finds_no_better_one_does_not_go_round_in_circles() {
    for two in [false, true] {
        let mut room = room(two);
        room.run_until(600 * MS);
        room.script(move |x| {
            let data = Header::parse(x.frame).unwrap().frame_type() == FrameType::Data;
            if data { Fate::DataLost } else { Fate::Arrives }
        });
        each_20_ms(&mut room, 1_000);
        room.run_until(21_000 * MS);
        let c = room.protocol::<Station>(2).counters();
        assert!((4..=5).contains(&c.given_up), "{two}: {c:?}");
        room.close();
    }
}

/// All access points fall silent, or their beacons alone are heard by a station that does not look at failures: what is lost from
/// then on is counted although nothing is acknowledged any more.
#[test]
fn what_is_lost_in_an_outage_without_end_is_counted() {
    for beacons in [false, true] {
        let mut room = room_with(false, || station_with(false, |c| c.failed = (0, 0)));
        room.submit(550 * MS, 2, APS[0], &[100], None);
        room.run_until(600 * MS);
        room.script(move |x| match beacons && is_beacon(x) {
            true => Fate::Arrives,
            false => Fate::DataLost,
        });
        each_20_ms(&mut room, 100);
        room.run_until(3_000 * MS);
        let c = room.protocol::<Station>(2).counters();
        assert_eq!(c.missed_in_handover + c.missed_else, 100, "{c:?}");
        assert_eq!(c.missed_else > c.missed_in_handover, beacons, "{c:?}");
        // it looks for somebody until now
        assert_eq!(c.longest_gap_ns > 2_000 * MS, !beacons, "{c:?}");
        room.close();
    }
}

/// Deadlines above try a message in several requests, and give it up without one where nothing goes: what was missed are messages
/// all the same.
#[test]
fn under_deadlines_messages_are_missed_and_not_attempts() {
    let mut room = Room::new(1);
    room.add(APS[0], || ap(APS[0], 3));
    room.add(APS[1], || ap(APS[1], 53));
    room.add(ME, || {
        let mut sender = SenderConfig::new(Identity::station(ME, APS[0]), Rate::OFDM_24);
        sender.how = TxHow::multi_shot(Rate::OFDM_24, 3);
        let cost = CostEstimate::fixed(Duration::from_us(300));
        let config = EdfConfig::new(cost, Duration::from_ms(100));
        let station = RoamConfig::new(ME, APS[0], &[5180], (AdapterId(0), None), Rate::OFDM_6);
        let given_up = |edf: &Edf<Sender>| edf.counters().dropped + edf.counters().exhausted;
        let mut roam = Roam::<_>::new(station, Edf::<_>::new(config, Sender::new(sender)));
        roam.count_by(given_up);
        roam
    });
    room.submit(550 * MS, 2, APS[0], &[100], None);
    room.run_until(600 * MS);
    let old = room.protocol::<Roam<Edf<Sender>>>(2).access_point().unwrap();
    room.script(move |x| match touches(x, old) {
        true => Fate::DataLost,
        false => Fate::Arrives,
    });
    each_20_ms(&mut room, 100);
    room.run_until(3_000 * MS);
    let c = room.protocol::<Roam<Edf<Sender>>>(2).counters();
    let arrived = payloads(&room).len() as u64;
    assert_eq!((c.handovers, c.missed_else), (1, 0), "{c:?}");
    assert_eq!(c.missed_in_handover + arrived, 101, "{c:?}");
    assert!(c.missed_in_handover > 0, "{c:?}");
    room.close();
}

/// An access point that is heard and does not answer is asked three times before the station listens again.
#[test]
fn who_does_not_answer_is_asked_three_times() {
    let mut room = room(false);
    let asked = Rc::new(RefCell::new(Vec::new()));
    let of = asked.clone();
    room.script(move |x| {
        if Header::parse(x.frame).unwrap().kind() != Kind::AUTHENTICATION {
            return Fate::Arrives;
        }
        if x.before == 0 {
            of.borrow_mut().push(x.at_ns);
        }
        Fate::DataLost
    });
    room.run_until(3_000 * MS);
    let asked = asked.borrow();
    let apart: Vec<u64> = asked.windows(2).map(|w| (w[1] - w[0]) / MS).collect();
    // an answer is awaited for 20 ms; it listens for 110 ms
    for three in apart.chunks_exact(3) {
        assert!(
            three[..2].iter().all(|ms| (19..30).contains(ms)) && three[2] >= 110,
            "{apart:?}"
        );
    }
    let c = room.protocol::<Station>(2).counters();
    assert!(apart.len() >= 30, "{apart:?}");
    assert_eq!(c.joined, 0, "{c:?}");
    room.close();
}

/// A frame that fails on the way between two links goes on the other one.
#[test]
fn a_second_chance_on_the_other_link() {
    let mut room = room(true);
    let dead = Rc::new(Cell::new(None));
    let of = dead.clone();
    // the present access point falls silent; data is submitted closely enough to fail around the change
    room.script(move |x| match of.get() {
        Some(ap) if touches(x, ap) => Fate::DataLost,
        _ => Fate::Arrives,
    });
    room.run_until(600 * MS);
    dead.set(room.protocol::<Station>(2).access_point());
    for i in 0..200u64 {
        let at = (600 + 5 * i) * MS;
        room.submit(at, 2, APS[0], &[i as u8], Some(at + 100 * MS));
    }
    room.run_until(2_500 * MS);
    let c = room.protocol::<Station>(2).counters();
    assert_eq!(c.handovers, 1);
    assert!(
        payloads(&room).len() as u64 + c.missed_in_handover + c.missed_else >= 200,
        "{c:?}"
    );
    room.close();
}

/// A radio that notes which channels it is asked for, and whether a station asks an access point.
#[derive(Default)]
struct Tuner {
    tokens: u64,
    tuned: Vec<(Token, u16)>,
    asked: bool,
}

impl Radio for Tuner {
    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }
    fn request(&mut self, _: Token, _: &[u8], _: &TxHow) {
        self.asked = true;
    }
    fn set(&mut self, token: Token, _: AdapterId, attribute: Attribute) {
        if let Attribute::Channel(mhz) = attribute {
            self.tuned.push((token, mhz));
        }
    }
    fn get(&self, _: AdapterId, _: AttributeName) -> Option<Attribute> {
        None
    }
    fn abort(&mut self, _: Token) {}
    fn deliver(&mut self, _: Msdu<'_>) {}
}

/// A beacon that comes up while the channel is being changed was on the old one, and a radio that takes its time for the change
/// listens on the new one for as long as any other.
#[test]
fn a_slow_change_of_channel_misleads_nobody() {
    const CHANNELS: [u16; 2] = [5180, 5745];
    let config = RoamConfig::new(ME, APS[0], &CHANNELS, (AdapterId(0), None), Rate::OFDM_6);
    let (dwell, slow) = (config.dwell, Duration::from_ms(30));
    let sender = Sender::new(SenderConfig::new(Identity::station(ME, APS[0]), Rate::OFDM_6));
    let mut roam: Roam<Sender> = Roam::new(config, sender);
    let mut radio = Tuner::default();
    let answer = |token| {
        Event::Set(radio::SetAnswer {
            token,
            result: Ok(()),
        })
    };
    let mut beacon = [0; 36];
    beacon[0] = 0x80;
    beacon[16..22].copy_from_slice(&APS[0].0);
    let heard = Event::Beacon(radio::Beacon {
        bssid: APS[0],
        timestamp: radio::Tsf(0),
        interval_tu: 100,
        received: Indication {
            frame: &beacon,
            adapter: AdapterId(0),
            rate: Rate::OFDM_6,
            signal_dbm: Some(-50),
            stamps: radio::Stamps::default(),
            tsf: None,
        },
    });
    let mut now = Instant::from_us(1);
    roam.handle(now, Event::Start, &mut radio);
    roam.handle(now, answer(radio.tuned[0].0), &mut radio);
    now += dwell;
    roam.handle(now, Event::Timer, &mut radio);
    assert_eq!(radio.tuned.last().unwrap().1, CHANNELS[1]);
    // still on the first channel
    roam.handle(now + Duration::from_ms(1), heard, &mut radio);
    now += slow;
    roam.handle(now, answer(radio.tuned[1].0), &mut radio);
    assert_eq!(roam.deadline(), Some(now + dwell), "all of its time");
    // this one has been on its way up for longer than the answer
    roam.handle(now + Duration::from_us(300), heard, &mut radio);
    now += dwell;
    roam.handle(now, Event::Timer, &mut radio);
    assert!(!radio.asked, "it does not know where that access point is");
    assert_eq!(radio.tuned.last().unwrap().1, CHANNELS[0]);
}

/// Beacons of an access point on an adapter, of this strength.
fn hears(roam: &mut Station, now: Instant, (ap, adapter): (MacAddr, u8), dbm: i8, radio: &mut Tuner) {
    let mut beacon = [0; 36];
    beacon[0] = 0x80;
    beacon[16..22].copy_from_slice(&ap.0);
    let received = Indication {
        frame: &beacon,
        adapter: AdapterId(adapter),
        rate: Rate::OFDM_6,
        signal_dbm: Some(dbm),
        stamps: radio::Stamps::default(),
        tsf: None,
    };
    let heard = radio::Beacon {
        bssid: ap,
        timestamp: radio::Tsf(0),
        interval_tu: 100,
        received,
    };
    roam.handle(now, Event::Beacon(heard), radio);
}

/// When a station whose present access point is at -70 dBm asks another one that is at -60 dBm for so long, and at -70 dBm before and after.
fn asks_at(strong_ms: core::ops::Range<u64>) -> Option<u64> {
    let mut roam = station(true);
    let mut radio = Tuner::default();
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    roam.links[0].join(APS[0], at(0));
    roam.candidates.heard(APS[0], 0, -70, at(0));
    roam.handle(at(0), Event::Start, &mut radio);
    for ms in 1..3_000 {
        if ms % 50 == 0 {
            let other = if strong_ms.contains(&ms) { -60 } else { -70 };
            hears(&mut roam, at(ms), (APS[0], 0), -70, &mut radio);
            hears(&mut roam, at(ms), (APS[1], 1), other, &mut radio);
        }
        for (token, _) in core::mem::take(&mut radio.tuned) {
            let result = Ok(());
            roam.handle(at(ms), Event::Set(radio::SetAnswer { token, result }), &mut radio);
        }
        if roam.deadline().is_some_and(|t| t <= at(ms)) {
            roam.handle(at(ms), Event::Timer, &mut radio);
        }
        if radio.asked {
            return Some(ms);
        }
    }
    None
}

/// 500 ms: it looks at who is better when it has listened on a channel, each 110 ms.
#[test]
fn who_is_better_has_to_be_so_for_a_while() {
    let asked = asks_at(1_000..3_000).unwrap();
    assert!((1_500..1_900).contains(&asked), "{asked}");
    assert_eq!(asks_at(1_000..1_400), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Laws hold whatever is lost; `close` replays the tapes.
    #[test]
    fn any_losses(seed: u64, two: bool, share in 0u64..80, submits in proptest::collection::vec((0u64..1_500, any::<bool>()), 0..60)) {
        let mut room = room(two);
        let mut dice = Dice::new(seed);
        room.script(move |_| match dice.within(0..=99) {
            x if x < share => Fate::DataLost,
            x if x < share + 10 => Fate::AckLost,
            _ => Fate::Arrives,
        });
        for (at, timed) in submits {
            room.submit(at * MS, 2, APS[0], &[1], timed.then_some((at + 30) * MS));
        }
        room.run_until(2_000 * MS);
        room.close();
    }
}
