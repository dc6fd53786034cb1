//! The stick by itself: its own beacons, and its sleep. The driver uses neither of them in full.

use ar9170::codec::register as reg;
use ar9170::codec::stream::{Unit, Units};
use ar9170::codec::{Notice, Order, command};
use ar9170::emulated::{Knobs, Stick};
use frame::MacAddr;
use frame::mac::{FrameControl, Kind};
use radio::{
    AdapterId, Attribute, Beacon, Confirm, Duration, Event, Indication, Instant, Outcome, Stamps, Tsf,
};

use crate::air::{Air, acked, eeprom};

const BSSID: MacAddr = MacAddr::local(9);
const PERIOD_US: u64 = 100 * 1_024;

fn running(air: &mut Air) -> Stick {
    let mut stick = Stick::new(eeprom(), Knobs::default());
    stick.boot();
    let [low, high] = reg::address_words(BSSID.0);
    let settings = Order::write(&[
        (reg::SLOT_TIME, 20 << 10),
        (reg::BSSID, low),
        (reg::BSSID + 4, high),
        (reg::PRE_TBTT, 94 << 16 | 94),
        (reg::BEACON_PERIOD, reg::BEACON_PERIOD_IBSS | 100),
    ]);
    stick.command(settings.octets(), air);
    stick
}

#[test]
fn an_image_has_no_holes() {
    let mut stick = Stick::new(eeprom(), Knobs::default());
    assert!(!stick.control(0x31, 0, &[]), "there is nothing to start");
    assert!(
        !stick.control(0x30, 0x2010, &[1; 4_096]),
        "it does not begin there"
    );
    assert!(stick.control(0x30, 0x2000, &[1; 4_096]));
    assert!(!stick.control(0x30, 0x2020, &[2; 4_096]), "a hole");
    assert!(!stick.control(0x30, 0x2010, &[]), "nothing");
    assert!(stick.control(0x30, 0x2010, &[3; 100]));
    assert!(
        !stick.control(0x30, 0x2011, &[3; 100]),
        "half a piece is the last one"
    );
    assert_eq!(stick.image(), [&[1; 4_096][..], &[3; 100]].concat());
    assert!(stick.control(0x30, 0x2000, &[4; 256]), "from the beginning");
    let more = (1..).take_while(|n| stick.control(0x30, 0x2000 + n, &[4; 256]));
    assert_eq!(more.last(), Some(0x7f), "32 KB");
    assert!(stick.control(0x31, 0, &[]));
}

/// Lets its timer run until `us`; the codes of all events, in their order.
fn until(stick: &mut Stick, air: &mut Air, us: u64) -> Vec<u8> {
    while let Some(due) = stick
        .deadline(air.now, air)
        .filter(|t| *t <= Instant::from_us(us))
    {
        air.now = due;
        stick.tick(due, air);
    }
    air.now = Instant::from_us(us);
    events(stick)
}

fn events(stick: &mut Stick) -> Vec<u8> {
    let transfer = stick.read().unwrap_or_default();
    let blocks = Units::new(&transfer).filter_map(|unit| match unit {
        Unit::Responses(block) => Some(block),
        _ => None,
    });
    let events = blocks.flatten().filter(|r| r.is_event());
    events
        .inspect(|r| assert_ne!(r.notice(), Some(Notice::Unknown)))
        .map(|r| r.code)
        .collect()
}

/// A beacon of 40 octets in its memory, handed over for the next TBTT.
fn submit(stick: &mut Stick, air: &mut Air) {
    const AT: u32 = 0x11_7d80;
    let mut frame = [0; 40];
    frame[..2].copy_from_slice(&FrameControl::new(Kind::BEACON, frame::mac::Flags::NONE).0);
    frame[16..22].copy_from_slice(&BSSID.0);
    let word = |i: usize| u32::from_le_bytes([frame[i], frame[i + 1], frame[i + 2], frame[i + 3]]);
    let words: Vec<_> = (0..40).step_by(4).map(|i| (AT + i as u32, word(i))).collect();
    for some in words.chunks(command::MAX_WRITES) {
        stick.command(Order::write(some).octets(), air);
    }
    stick.command(Order::beacon(0, true, AT, 44).octets(), air);
}

#[test]
fn a_beacon_at_the_tbtt_after_a_delay() {
    let mut air = Air::new(acked);
    let mut stick = running(&mut air);
    assert_eq!(
        until(&mut stick, &mut air, 94 * 1_024 - 1),
        [0xcf],
        "it has started, no more"
    );
    assert_eq!(
        until(&mut stick, &mut air, PERIOD_US - 1),
        [0xc0],
        "before the TBTT"
    );
    submit(&mut stick, &mut air);
    assert!(air.sent.is_empty());
    until(&mut stick, &mut air, PERIOD_US + 100);
    let (at, frame, how) = air.sent.pop().expect("the beacon");
    assert_eq!(
        (at, frame.len(), frame[0]),
        (Instant::from_us(PERIOD_US), 40, 0x80)
    );
    let delay = how.not_before.expect("a delay").since(at);
    assert!(delay <= Duration::from_us(30 * 20), "{delay:?}");
    let token = radio::Token(u64::MAX);
    let other = Confirm::without_air(token, Outcome::NotAcked, how.series.as_slice()[0].rate);
    stick.air(Event::Confirm(other), &mut air);
    assert_eq!(events(&mut stick), [0; 0], "not its own");
    let (_, own) = air.pending.pop_first().expect("the beacon ends");
    stick.air(Event::Confirm(own), &mut air);
    assert_eq!(events(&mut stick), [0xc2], "a beacon went out");
    // without another one handed over there is none at the next TBTT
    until(&mut stick, &mut air, 2 * PERIOD_US + 1_000);
    assert!(air.sent.is_empty());
}

/// A beacon of its network comes first: the clock is adopted, and its own beacon is given up.
#[test]
fn it_follows_a_later_clock() {
    let mut air = Air::new(acked);
    let mut stick = running(&mut air);
    let mut frame = [0; 40];
    frame[0] = 0x80;
    let received = |frame, tsf| Indication {
        frame,
        rate: frame::Rate::OFDM_6,
        signal_dbm: Some(-50),
        tsf: Some(Tsf(tsf)),
        adapter: AdapterId::FIRST,
        stamps: Stamps::NONE,
    };
    frame[16..22].copy_from_slice(&BSSID.0);
    for (timestamp, ahead) in [(1_000 + 32 + 500, Some(500)), (1_000, None)] {
        air.now = Instant::from_us(1_100);
        air.attributes.clear();
        let beacon = Beacon {
            bssid: BSSID,
            timestamp: Tsf(timestamp),
            interval_tu: 100,
            received: received(&frame, 1_000),
        };
        stick.air(Event::Beacon(beacon), &mut air);
        let expected: Vec<_> = ahead
            .map(|us| Attribute::Tsf(Tsf(1_100 + us)))
            .into_iter()
            .collect();
        assert_eq!(air.attributes, expected);
    }
}

/// Asleep for two intervals: it says so before each TBTT, and is awake at the second.
#[test]
fn it_sleeps_as_long_as_it_is_told() {
    let mut air = Air::new(acked);
    let mut stick = running(&mut air);
    stick.command(Order::power_save(command::SLEEP | 2).octets(), &mut air);
    assert_eq!(air.attributes.last(), Some(&Attribute::Reception(false)));
    until(&mut stick, &mut air, PERIOD_US);
    assert_eq!(air.attributes.last(), Some(&Attribute::Reception(false)));
    assert_eq!(until(&mut stick, &mut air, 2 * PERIOD_US), [0xc0]);
    assert_eq!(air.attributes.last(), Some(&Attribute::Reception(true)));
}
