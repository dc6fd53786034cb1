//! A station and two access points in the room, on one channel; what is lost follows from who sends to whom.

use super::gate::Gate;
use super::*;
use crate::mac::beacon::{Beaconer, BeaconerConfig};
use crate::mac::data::{ETHERTYPE_PAYLOAD, Framer, Identity, Received};
use crate::mac::sender::{Sender, SenderConfig};
use crate::testing::{Attempt, Dice, Fate, Room};
use frame::Rate;
use proptest::prelude::*;
use radio::{AdapterId, Attribute, AttributeName, Msdu, Token, TxHow};
use std::cell::Cell;
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
    let second = two.then_some(AdapterId(1));
    let config = RoamConfig::new(ME, APS[0], &[5180], (AdapterId(0), second), Rate::OFDM_6);
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
    let mut room = Room::new(1);
    room.add(APS[0], || ap(APS[0], 3));
    match two {
        true => room.add(APS[1], || Second(ap(APS[1], 53))),
        false => room.add(APS[1], || ap(APS[1], 53)),
    };
    room.add(ME, move || station(two));
    room
}

fn touches(x: &Attempt<'_>, ap: MacAddr) -> bool {
    let h = Header::parse(x.frame).unwrap();
    h.receiver() == ap || h.transmitter() == Some(ap)
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
    let counters = *room.protocol::<Station>(2).counters();
    assert_eq!(
        (counters.joined, counters.handovers, counters.missed_else),
        (1, 0, 0)
    );
    room.close();
}

/// The access point falls silent: what is sent in the meantime is missed with one adapter, and counted. With two, the
/// station finds out as late, but listens already.
#[test]
fn what_a_hand_over_costs_is_counted() {
    let mut gaps = Vec::new();
    for two in [false, true] {
        let mut room = room(two);
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
        for i in 0..100u64 {
            let at = (600 + 20 * i) * MS;
            room.submit(at, 2, APS[0], &[i as u8], Some(at + 20 * MS));
        }
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
    let c = *room.protocol::<Station>(2).counters();
    assert_eq!(c.handovers, 1);
    assert!(
        payloads(&room).len() as u64 + c.missed_in_handover + c.missed_else >= 200,
        "{c:?}"
    );
    room.close();
}

/// A station with two adapters that goes from one access point to the other and back whenever it has listened to the other one.
fn restless(room: &mut Room) {
    room.add(APS[0], || ap(APS[0], 3));
    room.add(APS[1], || Second(ap(APS[1], 53)));
    room.add(ME, || {
        let adapters = (AdapterId(0), Some(AdapterId(1)));
        let config = RoamConfig {
            better_db: 0,
            hold: Duration::ZERO,
            ..RoamConfig::new(ME, APS[0], &[5180], adapters, Rate::OFDM_6)
        };
        let mut sender = SenderConfig::new(Identity::station(ME, APS[0]), Rate::OFDM_24);
        sender.how = TxHow::multi_shot(Rate::OFDM_24, 3);
        Roam::<Sender>::new(config, Sender::new(sender))
    });
}

/// Receivers of each payload's frames, by number, of those that were on the air to both.
fn on_both(room: &Room) -> Vec<u8> {
    let to = |ap: MacAddr| -> std::collections::BTreeSet<u8> {
        let data = room.flights.iter().filter(|f| f.node == 2);
        let parsed = data.filter_map(|f| {
            let h = Header::parse(&f.frame).ok()?;
            (h.frame_type() == FrameType::Data && h.receiver() == ap).then(|| *f.frame.last().unwrap())
        });
        parsed.collect()
    };
    to(APS[0]).intersection(&to(APS[1])).copied().collect()
}

/// While there are two links each frame goes on both. It is acked when one copy is, told once, and missed if both fail.
#[test]
fn in_the_overlap_each_frame_goes_on_both_links() {
    for lost in [&[][..], &APS[..1], &APS[1..], &APS[..]] {
        let mut room = Room::new(1);
        restless(&mut room);
        let until = 1_600 * MS;
        room.script(move |x| {
            let data = Header::parse(x.frame).unwrap().frame_type() == FrameType::Data;
            match data && x.at_ns < until && lost.iter().any(|ap| touches(x, *ap)) {
                true => Fate::DataLost,
                false => Fate::Arrives,
            }
        });
        for i in 0..200u8 {
            let at = (600 + 5 * u64::from(i)) * MS;
            room.submit(at, 2, APS[0], &[i], Some(at + 100 * MS));
        }
        // the ACK with which the counting ends
        room.submit(2_000 * MS, 2, APS[0], &[200], None);
        room.run_until(2_100 * MS);
        let c = *room.protocol::<Station>(2).counters();
        assert!(c.handovers >= 4, "{c:?}");
        let twice = on_both(&room);
        let arrived: std::collections::BTreeSet<u8> = payloads(&room).into_iter().collect();
        let missed = c.missed_in_handover + c.missed_else;
        assert_eq!(arrived.len() as u64 + missed, 201, "{lost:?}: {c:?}");
        // second chances are on both links, too, one after the other
        assert_eq!(
            twice.len() as u64,
            c.duplicated + c.second_chances,
            "{lost:?}: {c:?}"
        );
        assert!(c.duplicated >= 40, "{lost:?}: {c:?}");
        if lost.len() < 2 {
            assert!(twice.iter().all(|i| arrived.contains(i)), "{lost:?}");
        }
        match lost {
            [] => assert_eq!(c.twice, c.duplicated),
            // the last one, if it met an overlap
            _ => assert!(c.twice <= 1, "{lost:?}: {c:?}"),
        }
        let sent = room.protocol::<Station>(2).protocol().counters();
        assert_eq!(sent.confirms.total(), 201, "each is told once");
        assert_eq!(sent.confirms.acked, arrived.len() as u64, "{lost:?}");
        room.close();
    }
}

/// What comes down on both links with one number in its trailer goes up once, without it.
#[test]
fn of_two_copies_that_come_down_one_goes_up() {
    /// Notes what is in the frames that it is told.
    #[derive(Default)]
    struct Ears(Vec<(MacAddr, Vec<u8>)>);
    impl Protocol for Ears {
        fn handle(&mut self, _: Instant, event: Event<'_>, _: &mut dyn Radio) {
            if let Event::Indication(i) = event {
                let r = Received::parse(i.frame).unwrap();
                self.0.push((r.transmitter, r.payload.to_vec()));
            }
        }
        fn deadline(&self) -> Option<Instant> {
            None
        }
    }
    let adapters = (AdapterId(0), Some(AdapterId(1)));
    let config = RoamConfig::new(ME, APS[0], &[5180], adapters, Rate::OFDM_6);
    let mut roam: Roam<Ears> = Roam::new(config, Ears::default());
    let now = Instant::from_us(1);
    for (link, ap) in roam.links.iter_mut().zip(APS) {
        link.state = State::Joined { ap, since: now };
    }
    let mut down = |k: usize, payload: &[u8], sequence: Option<u16>| {
        let mut payload = payload.to_vec();
        let copy = sequence.map(|sequence| Trailer {
            sequence,
            lan: k as u8,
        });
        payload.extend(copy.and_then(|c| c.octets(8 + payload.len())).iter().flatten());
        let mut framer = Framer::new(Identity::access_point(APS[k]), true, ETHERTYPE_PAYLOAD);
        let mut out = [0; 100];
        let frame = framer.frame(ME, frame::AccessCategory::Voice, false, &[], &payload, &mut out);
        let heard = Indication {
            frame: frame.unwrap(),
            adapter: AdapterId(k as u8),
            rate: Rate::OFDM_6,
            signal_dbm: None,
            stamps: radio::Stamps::default(),
            tsf: None,
        };
        roam.handle(now, Event::Indication(heard), &mut Tuner::default());
    };
    down(0, b"one", Some(7));
    down(1, b"one", Some(7));
    down(1, b"two", Some(8));
    down(0, b"three", None);
    down(1, b"three", None);
    let heard: Vec<_> = roam.protocol().0.iter().map(|(_, p)| &p[..]).collect();
    assert_eq!(heard, [&b"one"[..], b"two", b"three", b"three"]);
    assert!(
        roam.protocol().0.iter().all(|(from, _)| *from == APS[0]),
        "one name"
    );
    assert_eq!(roam.counters().dropped, 1);
}

/// What was asked for and is not wanted any more is asked back on both links.
#[test]
fn what_is_not_wanted_any_more_is_recalled_on_both_links() {
    const TOKEN: Token = Token(77);
    /// Asks for one frame and takes it back.
    struct Fickle;
    impl Protocol for Fickle {
        fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
            match event {
                Event::Submit(_) => {
                    let mut frame = [0; 60];
                    frame[..2].copy_from_slice(&[0x08, 0x01]);
                    frame[4..10].copy_from_slice(&APS[0].0);
                    frame[10..16].copy_from_slice(&ME.0);
                    radio.request(TOKEN, &frame, &TxHow::one_shot(Rate::OFDM_6));
                }
                Event::Timer => radio.abort(TOKEN),
                _ => {}
            }
        }
        fn deadline(&self) -> Option<Instant> {
            Some(Instant::ZERO)
        }
    }
    let adapters = (AdapterId(0), Some(AdapterId(1)));
    let config = RoamConfig::new(ME, APS[0], &[5180], adapters, Rate::OFDM_6);
    let mut roam: Roam<Fickle> = Roam::new(config, Fickle);
    let now = Instant::from_us(1);
    for (link, ap) in roam.links.iter_mut().zip(APS) {
        link.state = State::Joined { ap, since: now };
    }
    let mut radio = Tuner::default();
    roam.handle(now, Event::Submit(Msdu::new(APS[0], &[1])), &mut radio);
    assert_eq!(radio.sent, [(Token(1), 0), (Token(2), 1)]);
    roam.handle(now, Event::Timer, &mut radio);
    assert!(radio.aborted.contains(&Token(1)) && radio.aborted.contains(&Token(2)));
    let asked_back = radio.aborted.len();
    roam.handle(now, Event::Timer, &mut radio);
    assert_eq!(
        radio.aborted.len(),
        asked_back + 1,
        "the table asks, and nobody else"
    );
}

/// A radio that notes which channels it is asked for, and whether a station asks an access point.
#[derive(Default)]
struct Tuner {
    tokens: u64,
    tuned: Vec<(Token, u16)>,
    asked: bool,
    sent: Vec<(Token, u8)>,
    aborted: Vec<Token>,
}

impl Radio for Tuner {
    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }
    fn request(&mut self, token: Token, _: &[u8], how: &TxHow) {
        self.asked = true;
        self.sent.push((token, how.adapter.0));
    }
    fn set(&mut self, token: Token, _: AdapterId, attribute: Attribute) {
        if let Attribute::Channel(mhz) = attribute {
            self.tuned.push((token, mhz));
        }
    }
    fn get(&self, _: AdapterId, _: AttributeName) -> Option<Attribute> {
        None
    }
    fn abort(&mut self, token: Token) {
        self.aborted.push(token);
    }
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
    now += dwell;
    roam.handle(now, Event::Timer, &mut radio);
    assert!(!radio.asked, "it does not know where that access point is");
    assert_eq!(radio.tuned.last().unwrap().1, CHANNELS[0]);
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
