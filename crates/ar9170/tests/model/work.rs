//! What goes well.

use ar9170::codec::Firmware;
use ar9170::driver::{Buffers, BusEvent, Config, Counts, Dynamic, Hybrid, Reason, Static};
use ar9170::emulated::{Knobs, Plugged};
use frame::mac::{FrameControl, Header, Kind};
use frame::{EdcaParams, MacAddr, Rate};
use radio::{
    Attribute, BeaconTiming, Duration, Event, Instant, Outcome, Plane, Protocol, Queue, ReceiveFilter,
    Series, SeriesList, TxHow,
};

use crate::air::{
    Air, Computer, ME, Node, PEER, Sends, acked, computer, computer_with, data, eeprom, file, from_peer,
    indication,
};

const MS: fn(u64) -> Duration = Duration::from_ms;
const AT: fn(u64) -> Instant = |ms| Instant::from_us(1_000 * ms);

/// Whole and in its place, in pieces, however long the last one is.
#[test]
fn uploads_the_image() {
    let file = file();
    for octets in [1, 4_095, 4_096, 4_097, 13_376] {
        let image: Vec<u8> = (0..octets)
            .map(|i: u32| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8)
            .collect();
        let firmware = Firmware {
            image: &image,
            ..Firmware::parse(&file).unwrap()
        };
        let idle = Sends::every(MS(1), 0);
        let node = Node::strict(idle.clone()).with_twin(idle);
        let (config, knobs) = (Config::default(), Knobs::default());
        let mut computer: Computer<'_> =
            Plugged::new(firmware, config, eeprom(), knobs, node, Hybrid::default());
        let mut air = Air::new(acked);
        air.run(&mut computer, AT(200));
        assert!(computer.is_up() && computer.image() == image, "{octets}");
        assert_eq!(computer.counts().all_restarts(), 0, "{octets}");
    }
}

#[test]
fn comes_up_and_sends() {
    let file = file();
    let mut computer = computer(
        &file,
        Config::default(),
        Knobs::default(),
        Sends::every(MS(1), 100),
    );
    let mut air = Air::new(acked);
    air.run(&mut computer, AT(500));
    assert!(computer.is_up());
    let (counts, node) = (*computer.counts(), computer.into_protocol());
    let sends = node.inner();
    assert_eq!((sends.outcomes(Outcome::Acked), sends.confirms.len()), (100, 100));
    for (n, confirm) in sends.confirms.iter().enumerate() {
        assert_eq!((confirm.attempts, confirm.rate), (1, Rate::OFDM_6));
        let planes = [Plane::T1, Plane::T4, Plane::T9].map(|p| confirm.stamps.get_host(p));
        assert!(
            planes.iter().all(Option::is_some) && confirm.stamps.in_order(),
            "{n}: {confirm:?}"
        );
    }
    // as it was asked for, and in its order
    let numbers: Vec<_> = air.sent.iter().map(|(_, f, _)| f[25]).collect();
    assert_eq!(numbers, (0..100).collect::<Vec<u8>>());
    assert!(
        air.sent
            .iter()
            .all(|(_, _, how)| how.is_one_shot() && how.queue == Queue::BestEffort)
    );
    let expected = Counts {
        frames: 100,
        commands: counts.commands,
        responses: counts.responses,
        ..Counts::default()
    };
    assert_eq!(counts, expected, "nothing else happened");
    println!("{} commands until it was up and done", counts.commands);
}

#[test]
fn chains_reach_the_air_and_come_back() {
    fn second_series(_: &[u8], how: &TxHow) -> (Outcome, u16) {
        (Outcome::Acked, how.series.attempts() - 1)
    }
    let s = |rate, tries| Series { rate, tries };
    let list = SeriesList::new(&[s(Rate::OFDM_54, 9), s(Rate::OFDM_6, 3)]).unwrap();
    let how = TxHow::one_shot(Rate::OFDM_54).series(list).queue(Queue::Voice);
    let plan = vec![(MS(0), data(PEER, 1), how)];
    let file = file();
    let sends = Sends {
        plan,
        ..Sends::default()
    };
    let mut computer = computer(&file, Config::default(), Knobs::default(), sends);
    let mut air = Air::new(second_series);
    air.run(&mut computer, AT(200));
    let confirm = computer.protocol().inner().confirms[0];
    assert_eq!(
        (confirm.outcome, confirm.attempts, confirm.series),
        (Outcome::Acked, 11, 1)
    );
    assert_eq!(confirm.rate, Rate::OFDM_6);
    let (_, _, sent) = &air.sent[0];
    assert_eq!((sent.series.attempts(), sent.queue), (12, Queue::Voice));
    assert_eq!(sent.series.at(8).unwrap().1.rate, Rate::OFDM_54);
}

#[test]
fn attributes_reach_the_air() {
    let edca = EdcaParams {
        aifsn: 5,
        cw_min: 7,
        cw_max: 63,
        txop_us: 320,
    };
    let sets = vec![
        Attribute::Channel(5_180),
        Attribute::Bssid(MacAddr::local(9)),
        Attribute::SlotTime(20),
        Attribute::Edca(Queue::Video, edca),
        Attribute::Promiscuous(true),
        Attribute::TxPower(7),
        Attribute::Reception(false),
        Attribute::Reception(true),
        Attribute::CarrierSense(false),
        Attribute::Channel(17),
    ];
    let file = file();
    let sends = Sends {
        sets,
        ..Sends::every(MS(60), 2)
    };
    let mut computer = computer(&file, Config::default(), Knobs::default(), sends);
    let mut air = Air::new(acked);
    air.run(&mut computer, AT(300));
    let sends = computer.protocol().inner();
    let (yes, no) = (true, false);
    assert_eq!(sends.answers, [yes, yes, yes, yes, yes, yes, yes, yes, no, no]);
    for wanted in [
        Attribute::Channel(5_180),
        Attribute::Bssid(MacAddr::local(9)),
        Attribute::SlotTime(20),
        Attribute::Edca(Queue::Video, edca),
        Attribute::Promiscuous(true),
        Attribute::Reception(false),
        Attribute::Reception(true),
        Attribute::TxPower(7),
    ] {
        assert!(
            air.attributes.contains(&wanted),
            "{wanted:?} in {:?}",
            air.attributes
        );
    }
    assert_eq!(sends.outcomes(Outcome::Acked), 2);
}

/// What is heard is as strong as it was on the air on every channel: the noise floor that it is told above is another in each band.
#[test]
fn signals_after_a_change_of_the_band() {
    let file = file();
    let after = |sets: &[Attribute]| {
        let sends = Sends {
            sets: sets.to_vec(),
            ..Sends::default()
        };
        let mut computer = computer(&file, Config::default(), Knobs::default(), sends);
        let mut air = Air::new(acked);
        air.run(&mut computer, AT(100));
        let frame = from_peer(ME, 1);
        computer.handle(air.now, Event::Indication(indication(&frame)), &mut air);
        air.run(&mut computer, AT(200));
        let node = computer.protocol().inner();
        assert_eq!(node.answers, vec![true; sets.len()]);
        node.signals.clone()
    };
    let [low, high] = [Attribute::Channel(2_437), Attribute::Channel(5_180)];
    assert_eq!(after(&[]), [Some(-61)]);
    assert_eq!(after(&[high]), [Some(-61)]);
    assert_eq!(after(&[high, low]), [Some(-61)]);
}

/// A host that takes its time for each turn is told of its answers, too, when nothing else happens.
#[test]
fn a_slow_host_gets_its_answers() {
    let sets = vec![
        Attribute::SlotTime(20),
        Attribute::CarrierSense(false),
        Attribute::SlotTime(9),
    ];
    let file = file();
    let sends = Sends {
        sets,
        ..Sends::default()
    };
    let knobs = Knobs {
        turn_ns: 200_000,
        ..Knobs::default()
    };
    let mut computer = computer(&file, Config::default(), knobs, sends);
    let mut air = Air::new(acked);
    air.run(&mut computer, AT(300));
    assert_eq!(computer.protocol().inner().answers, [true, false, true]);
}

/// What of everything on the air the protocol is told with a filter; the stick acknowledges the rest, too.
fn told(filter: Option<ReceiveFilter>) -> Vec<Kind> {
    let file = file();
    let sends = Sends {
        sets: filter.map(Attribute::ReceiveFilter).into_iter().collect(),
        ..Sends::default()
    };
    let mut computer = computer(&file, Config::default(), Knobs::default(), sends);
    let mut air = Air::new(acked);
    air.run(&mut computer, AT(100));
    for (kind, to) in [
        (Kind::DATA, ME),
        (Kind::DATA, MacAddr::BROADCAST),
        (Kind::BEACON, MacAddr::BROADCAST),
        (Kind::ATIM, ME),
        (Kind::PROBE_REQUEST, MacAddr::BROADCAST),
        (Kind::DATA, PEER),
    ] {
        let mut frame = from_peer(to, 0);
        frame[..2].copy_from_slice(&FrameControl::new(kind, frame::mac::Flags::NONE).0);
        air.now += MS(2);
        computer.handle(air.now, Event::Indication(indication(&frame)), &mut air);
        let until = air.now + MS(1);
        air.run(&mut computer, until);
    }
    let until = air.now + MS(100);
    air.run(&mut computer, until);
    let node = computer.protocol().inner();
    assert!(node.answers.iter().all(|well| *well));
    let kind = |f: &Vec<u8>| Header::parse(f).unwrap().kind();
    node.heard.iter().map(kind).collect()
}

#[test]
fn the_stick_tells_what_the_filter_lets_pass() {
    let all = [
        Kind::DATA,
        Kind::DATA,
        Kind::BEACON,
        Kind::ATIM,
        Kind::PROBE_REQUEST,
    ];
    assert_eq!(told(None), all);
    assert_eq!(told(Some(ReceiveFilter::All)), all);
    assert_eq!(told(Some(ReceiveFilter::Management)), all[2..]);
    assert_eq!(told(Some(ReceiveFilter::Data)), [all[0], all[1], all[4]]);
    assert_eq!(told(Some(ReceiveFilter::Unicast)), [all[0]]);
}

/// A stick that is brought up again has the filter that it had.
#[test]
fn a_restart_keeps_the_filter() {
    let file = file();
    let sends = Sends {
        sets: vec![Attribute::ReceiveFilter(ReceiveFilter::Management)],
        ..Sends::default()
    };
    let mut computer = computer(&file, Config::default(), Knobs::default(), sends);
    let mut air = Air::new(acked);
    air.run(&mut computer, AT(100));
    // a watchdog event: length, code, sequence, extra
    let event = [16, 0, 0, 0x4e]
        .into_iter()
        .chain([0xff; 12])
        .chain([0, 0xc6, 0, 0]);
    let event: Vec<u8> = event.collect();
    computer.disturb(air.now, BusEvent::Received(&event));
    computer.handle(air.now, Event::Timer, &mut air);
    assert!(!computer.is_up());
    air.run(&mut computer, AT(300));
    assert!(computer.is_up() && computer.counts().restarts.iter().sum::<u64>() == 1);
    let frame = from_peer(ME, 0);
    computer.handle(air.now, Event::Indication(indication(&frame)), &mut air);
    air.run(&mut computer, AT(400));
    assert!(computer.protocol().inner().heard.is_empty());
}

/// Frames that come every 50 us: how many the protocol hears, and what the driver has counted.
fn hears(knobs: Knobs, frames: u16, buffers: impl Buffers) -> (usize, Counts) {
    let file = file();
    let mut computer = computer_with(&file, Config::default(), knobs, Sends::default(), buffers);
    let mut air = Air::new(acked);
    air.run(&mut computer, AT(100));
    for number in 0..frames {
        let frame = from_peer(ME, number);
        air.now += Duration::from_us(50);
        computer.handle(air.now, Event::Indication(indication(&frame)), &mut air);
    }
    let until = air.now + MS(500);
    air.run(&mut computer, until);
    let heard = &computer.protocol().inner().heard;
    let numbers: Vec<u16> = heard.iter().map(|f| u16::from_be_bytes([f[24], f[25]])).collect();
    assert!(numbers.is_sorted(), "in their order");
    assert_eq!(air.delivered, heard.len());
    (heard.len(), *computer.counts())
}

#[test]
fn hears_and_delivers() {
    let (heard, counts) = hears(Knobs::default(), 200, Hybrid::<16, 8_192>::default());
    assert_eq!((heard, counts.indications, counts.overflows), (200, 200, 0));
}

/// A host that is slower than what comes. With buffers for frames it reads all, and loses those that it has no room
/// for. With buffers for transfers, taken before the read is posted, it loses nothing: the stick keeps what the host
/// cannot take, and loses what it cannot keep.
#[test]
fn a_slow_host_and_three_memories() {
    let knobs = Knobs {
        turn_ns: 200_000,
        ..Knobs::default()
    };
    let few = [
        hears(knobs, 15, Static::<16, 200>::default()),
        hears(knobs, 15, Dynamic::<3_200>::default()),
        hears(knobs, 15, Hybrid::<16, 8_192>::default()),
    ];
    assert!(
        few.iter()
            .all(|(heard, counts)| (*heard, counts.overflows) == (15, 0))
    );
    let many = [
        hears(knobs, 1_000, Static::<16, 200>::default()),
        hears(knobs, 1_000, Dynamic::<3_200>::default()),
        hears(knobs, 1_000, Hybrid::<16, 8_192>::default()),
    ];
    let [fixed, dynamic, hybrid] = many.map(|(heard, counts)| (heard as u64, counts.overflows));
    println!("of 1000 (heard, lost by the host): static {fixed:?}, dynamic {dynamic:?}, hybrid {hybrid:?}");
    assert!(fixed.1 > 0 && dynamic.1 > 0);
    assert_eq!((fixed.0 + fixed.1, dynamic.0 + dynamic.1), (1_000, 1_000));
    assert!(hybrid.0 < 1_000 && hybrid.1 == 0);
    // in the same memory more frames fit where each takes what it needs
    assert!(dynamic.0 > fixed.0);
}

/// Ten intervals of 20 TU: the stick speaks before each TBTT, and the driver reads the TSF.
#[test]
fn before_each_tbtt_the_tsf_is_read() {
    let beacons = BeaconTiming {
        interval_tu: 20,
        atim_window_tu: 0,
    };
    let file = file();
    let sends = Sends {
        sets: vec![Attribute::BeaconTiming(beacons)],
        ..Sends::default()
    };
    let mut computer = computer(&file, Config::default(), Knobs::default(), sends);
    let mut air = Air::new(acked);
    air.run(&mut computer, AT(100));
    let before = *computer.counts();
    let until = air.now + Duration::from_tu(200);
    air.run(&mut computer, until);
    let after = *computer.counts();
    assert_eq!(
        (
            after.commands - before.commands,
            after.responses - before.responses
        ),
        (10, 20)
    );
    assert_eq!(after.restarts_for(Reason::LostResponse), 0);
}

/// A firmware with fewer descriptors than the driver has room for requests: what is too much is refused, and nothing
/// waits for ever.
#[test]
fn few_descriptors() {
    let how = TxHow::one_shot(Rate::OFDM_6);
    let plan = (0..60).map(|n| (MS(0), data(PEER, n), how)).collect();
    let file = ar9170::codec::firmware::with_descriptors(16);
    let sends = Sends {
        plan,
        ..Sends::default()
    };
    let mut computer = computer(&file, Config::default(), Knobs::default(), sends);
    let mut air = Air::new(acked);
    air.run(&mut computer, AT(300));
    let sends = computer.protocol().inner();
    let full = Outcome::Refused(radio::Refusal::QueueFull);
    assert_eq!((sends.outcomes(Outcome::Acked), sends.outcomes(full)), (16, 44));
}
