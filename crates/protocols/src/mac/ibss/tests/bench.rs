//! One station at a radio that notes what it is asked: what it does event by event.

use super::*;
use frame::airtime::timestamp_ns;
use frame::mac::header::set_timestamp_us;
use radio::{BeaconTiming, Indication, Outcome, Plane, SetAnswer, Stamps, TxHow};

/// The network of the others, and its beacons.
const NET: Network = Network {
    bssid: address_of_net(),
    interval_tu: 50,
    atim_window_tu: 10,
};
const RATE: Rate = Rate::OFDM_6;

const fn address_of_net() -> MacAddr {
    MacAddr::local(77)
}

/// What it was asked.
#[derive(Default)]
struct Desk {
    now: Instant,
    tokens: u64,
    requests: Vec<(Token, Vec<u8>)>,
    sets: Vec<Attribute>,
    answers: Vec<SetAnswer>,
    /// Its TSF less the host's clock, us.
    ahead_us: i64,
    /// What it follows, if it is an adapter that can.
    follows: Option<BeaconTiming>,
    /// Its receiver cannot be turned off.
    always_hears: bool,
}

impl Desk {
    fn tsf(&self) -> Tsf {
        Tsf(self.now.as_ns() / 1_000).plus(self.ahead_us)
    }
}

impl Radio for Desk {
    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    fn request(&mut self, token: Token, frame: &[u8], _: &TxHow) {
        self.requests.push((token, frame.to_vec()));
    }

    fn set(&mut self, token: Token, _: AdapterId, attribute: Attribute) {
        match attribute {
            Attribute::Tsf(tsf) => self.ahead_us += tsf.minus(self.tsf()),
            Attribute::BeaconTiming(timing) => self.follows = Some(timing),
            _ => {}
        }
        self.sets.push(attribute);
        let refused = self.always_hears && attribute == Attribute::Reception(false);
        let result = if refused {
            Err(radio::SetError::NotSupported)
        } else {
            Ok(())
        };
        self.answers.push(SetAnswer { token, result });
    }

    fn get(&self, _: AdapterId, name: AttributeName) -> Option<Attribute> {
        match name {
            AttributeName::Tsf => Some(Attribute::Tsf(self.tsf())),
            AttributeName::BeaconTiming => self.follows.map(Attribute::BeaconTiming),
            _ => None,
        }
    }

    fn abort(&mut self, _: Token) {}

    fn deliver(&mut self, _: Msdu<'_>) {}
}

struct Bench {
    station: Ibss<4, 200>,
    desk: Desk,
}

impl Bench {
    /// A station that looks for a network for ever, on an adapter that follows it or not.
    fn new(follows: bool) -> Bench {
        let config = IbssConfig {
            scan: Duration::from_ms(100_000),
            active_scan: false,
            ..config(1, 0)
        };
        let mut bench = Bench {
            station: Ibss::new(config),
            desk: Desk {
                follows: follows.then(BeaconTiming::default),
                ..Desk::default()
            },
        };
        bench.tell(Instant::ZERO, Event::Start);
        bench
    }

    fn tell(&mut self, now: Instant, event: Event<'_>) {
        self.desk.now = now;
        self.station.handle(now, event, &mut self.desk);
        while let Some(answer) = self.desk.answers.pop() {
            self.station.handle(now, Event::Set(answer), &mut self.desk);
        }
    }

    /// Its timers until then.
    fn pass(&mut self, until: Instant) {
        while let Some(due) = self.station.deadline().filter(|t| *t <= until) {
            self.tell(due.max(self.desk.now), Event::Timer);
        }
        self.desk.now = until;
    }

    /// A beacon of `network` that the host had at `seen`, of which it is told at `now`.
    fn hear(&mut self, network: &Network, timestamp: Tsf, seen: Instant, now: Instant) {
        self.pass(now);
        let other = config(2, 0);
        let mut out = [0; network::MAX_OCTETS];
        let mut frame = network::emit(network::Kind::Beacon, &other, network, 1, &mut out).to_vec();
        set_timestamp_us(&mut frame, timestamp.0).unwrap();
        let mut stamps = Stamps::NONE;
        stamps.host(Plane::T8, seen);
        stamps.host(Plane::T9, now);
        let indication = Indication {
            frame: &frame,
            rate: RATE,
            signal_dbm: None,
            tsf: None,
            adapter: AdapterId::FIRST,
            stamps,
        };
        self.tell(now, Event::Indication(indication));
    }

    /// The open request of this kind, if there is one.
    fn open(&self, kind: Kind) -> Option<Token> {
        let (token, frame) = self.desk.requests.last()?;
        (Header::parse(frame).unwrap().kind() == kind).then_some(*token)
    }

    fn acked(&mut self, token: Token) {
        let confirm = Confirm {
            attempts: 1,
            ..Confirm::without_air(token, Outcome::Acked, RATE)
        };
        self.tell(self.desk.now, Event::Confirm(confirm));
    }
}

const US: fn(u64) -> Instant = Instant::from_us;

/// What the timestamp is ahead of the begin of a beacon.
fn up_to_timestamp_us() -> i64 {
    (timestamp_ns(RATE) / 1_000) as i64
}

#[test]
fn the_adapter_is_told_which_network_it_follows() {
    let mut bench = Bench::new(true);
    bench.hear(&NET, Tsf(9_000_000), US(1_000), US(1_200));
    assert_eq!(bench.station.network(), Some(&NET));
    let timing = |n: &Network| {
        Attribute::BeaconTiming(BeaconTiming {
            interval_tu: n.interval_tu,
            atim_window_tu: n.atim_window_tu,
        })
    };
    let sets = core::mem::take(&mut bench.desk.sets);
    assert!(matches!(sets[..], [Attribute::Bssid(_), Attribute::Tsf(_), _]));
    assert_eq!((sets[0], sets[2]), (Attribute::Bssid(NET.bssid), timing(&NET)));
    // its hardware does this
    bench.hear(&NET, Tsf(9_100_000), US(2_000), US(2_100));
    assert_eq!(
        (bench.station.counters().adoptions, bench.desk.sets.len()),
        (0, 0)
    );
    let other = Network {
        bssid: MacAddr::local(78),
        interval_tu: 200,
        atim_window_tu: 0,
    };
    bench.hear(&other, Tsf(20_000_000), US(3_000), US(3_100));
    assert_eq!(bench.station.network(), Some(&other));
    assert_eq!(bench.desk.sets.last(), Some(&timing(&other)));
    bench.station.leave(US(4_000), &mut bench.desk);
    assert_eq!(bench.desk.follows, Some(BeaconTiming::default()));
}

/// A host that keeps the time of its adapter: it has what the beacon said when the beacon came, and by that its next TBTT.
#[test]
fn where_the_host_keeps_the_time_it_follows() {
    let mut bench = Bench::new(false);
    let clock = |seen: Instant, bench: &Bench| {
        let ago = bench.desk.now.since(seen).as_us() as i64;
        bench.desk.tsf().plus(-ago)
    };
    for (timestamp, seen, now) in [(9_000_000, 1_000, 1_200), (9_003_000, 2_000, 2_700)] {
        bench.hear(&NET, Tsf(timestamp), US(seen), US(now));
        let expected = Tsf(timestamp).plus(-up_to_timestamp_us());
        assert_eq!(clock(US(seen), &bench), expected);
        let interval = u64::from(NET.interval_tu) * 1_024;
        let tbtt_us = bench.desk.ahead_us.unsigned_abs() + bench.station.deadline().unwrap().as_ns() / 1_000;
        assert_eq!(tbtt_us % interval, 0);
    }
    assert_eq!(bench.station.counters().adoptions, 1);
    // an earlier one is nothing
    bench.hear(&NET, Tsf(9_000_000), US(3_000), US(3_200));
    assert_eq!(bench.station.counters().adoptions, 1);
}

/// Two stations whose clocks agree, on a medium that takes no time: neither sets the other ahead.
#[test]
fn clocks_that_agree_stay_as_they_are() {
    let mut bench = Bench::new(false);
    bench.hear(&NET, Tsf(9_000_000), US(1_000), US(1_200));
    let ahead = bench.desk.ahead_us;
    for n in 1..20 {
        let seen = US(1_000 + n * 51_200);
        let theirs = Tsf(seen.as_ns() / 1_000).plus(ahead + up_to_timestamp_us());
        bench.hear(&NET, theirs, seen, seen + Duration::from_us(n * 10));
    }
    assert_eq!(
        (bench.station.counters().adoptions, bench.desk.ahead_us),
        (0, ahead)
    );
}

/// A data frame that is still with the adapter at the end of a window: it is not put to sleep under it.
#[test]
fn it_stays_awake_while_a_data_frame_is_below() {
    let mut bench = Bench::new(true);
    bench.hear(&NET, Tsf(9_000_000), US(1_000), US(1_000));
    let to = MacAddr::local(2);
    bench.tell(US(1_100), Event::Submit(Msdu::new(to, b"to one")));
    let ahead = bench.desk.ahead_us;
    // to the next TBTT, and another's beacon there
    let beacon = |bench: &mut Bench| {
        let tbtt = bench.station.tbtt;
        let theirs = Tsf(tbtt.as_ns() / 1_000).plus(ahead);
        bench.hear(&NET, theirs, tbtt, tbtt);
        tbtt
    };
    let behind = |tbtt: Instant| tbtt + Duration::from_tu(NET.atim_window_tu.into());
    let tbtt = beacon(&mut bench);
    let atim = bench.open(Kind::ATIM).expect("it is announced");
    bench.acked(atim);
    bench.pass(behind(tbtt));
    let data = bench.open(Kind::DATA).expect("it follows the window");
    let tbtt = beacon(&mut bench);
    bench.pass(behind(tbtt));
    assert!(!bench.station.is_dozing());
    bench.acked(data);
    let tbtt = beacon(&mut bench);
    bench.pass(behind(tbtt));
    assert!(bench.station.is_dozing());
}

/// An adapter that cannot be put to sleep: nobody says that it was.
#[test]
fn a_doze_that_is_refused_is_none() {
    for always_hears in [false, true] {
        let mut bench = Bench::new(true);
        bench.desk.always_hears = always_hears;
        bench.hear(&NET, Tsf(9_000_000), US(1_000), US(1_000));
        let ahead = bench.desk.ahead_us;
        for _ in 0..10 {
            let tbtt = bench.station.tbtt;
            let theirs = Tsf(tbtt.as_ns() / 1_000).plus(ahead);
            bench.hear(&NET, theirs, tbtt, tbtt);
            bench.pass(tbtt + Duration::from_tu(NET.atim_window_tu.into()));
            assert_eq!(bench.station.is_dozing(), !always_hears);
        }
        let (counters, energy) = (bench.station.counters(), bench.station.energy(bench.desk.now));
        let dozed = if always_hears { 0 } else { 10 };
        assert_eq!(counters.intervals_dozed, dozed);
        assert_eq!(energy.doze > Duration::ZERO, !always_hears, "{energy:?}");
    }
}

/// Who has been told which network is its own joins no other of the name.
#[test]
fn only_the_network_that_it_was_told_of_is_joined() {
    let mut bench = Bench::new(false);
    bench.station.config.bssid = Some(MacAddr::local(78));
    bench.hear(&NET, Tsf(9_000_000), US(1_000), US(1_200));
    assert_eq!(bench.station.network(), None);
    let ours = Network {
        bssid: MacAddr::local(78),
        ..NET
    };
    bench.hear(&ours, Tsf(9_000_000), US(2_000), US(2_200));
    assert_eq!(bench.station.network(), Some(&ours));
}
