//! Who receives what: hidden nodes, capture, interference, channels, noise, rates.
mod common;

use common::script::{Act, Lab, Script, data, one_shot, send};
use frame::{GuardInterval, MacAddr, Phy, Rate, Width};
use radio::{Attribute, Outcome, TxHow};
use sim::adapter::AdapterConfig;
use sim::medium::{Capture, ErrorModel, LossModel, MediumConfig, Position};
use sim::trace::OnAir;
use sim::{NodeConfig, NoiseConfig};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// 0 and 2 do not hear each other; 1 hears 0 at `a` and 2 at `b` dBm.
fn hidden(capture: Capture, error: ErrorModel, a: f64, b: f64) -> Lab {
    let loss = |dbm: f64| 16.0206 - dbm;
    let medium = MediumConfig {
        loss: LossModel::Matrix(vec![
            (0, 1, loss(a)),
            (1, 0, loss(a)),
            (2, 1, loss(b)),
            (1, 2, loss(b)),
        ]),
        capture,
        error,
        ..MediumConfig::default()
    };
    Lab::new(&medium, 1)
}

/// Frames of 0 and 2 to 1, the second one `apart_us` later: which are received.
fn overlap(capture: Capture, a: f64, b: f64, apart_us: u64) -> (bool, bool) {
    let mut lab = hidden(capture, ErrorModel::Nist, a, b);
    let how = TxHow::one_shot(Rate::OFDM_24);
    lab.node(vec![(5 * MS, send(1, 0, 0, how))]);
    lab.node(vec![]);
    lab.node(vec![(5 * MS + apart_us * US, send(1, 2, 0, how))]);
    lab.run(20);
    let first = |n: u32| lab.script(n).outcomes()[0] == Outcome::Acked;
    (first(0), first(2))
}

#[test]
fn hidden_nodes_collide() {
    assert_eq!(overlap(Capture::Sinr, -60.0, -60.0, 10), (false, false));
    // one after the other is fine
    assert_eq!(overlap(Capture::Sinr, -60.0, -60.0, 200), (true, true));
}

#[test]
fn capture_rules() {
    // 30 dB apart
    for (rule, first, second) in [
        (Capture::Sinr, true, false),
        (Capture::None, false, false),
        (Capture::FirstWins(10.0), true, false),
        (Capture::FirstWins(35.0), false, false),
    ] {
        assert_eq!(
            overlap(rule, -50.0, -80.0, 10),
            (first, false),
            "{rule:?}, the strong one first"
        );
        assert_eq!(
            overlap(rule, -80.0, -50.0, 10),
            (false, second),
            "{rule:?}, the weak one first"
        );
    }
    // exactly at the stated ratio
    for (other, survives) in [(-60.1, true), (-59.9, false)] {
        let (first, _) = overlap(Capture::FirstWins(10.0), -50.0, other, 10);
        assert_eq!(first, survives, "{other} dBm against -50");
    }
    let mim = |window_us| Capture::MessageInMessage {
        by_db: 5.0,
        window_us,
    };
    assert_eq!(
        overlap(mim(16), -80.0, -50.0, 10),
        (false, true),
        "the receiver turns to the stronger"
    );
    assert_eq!(overlap(mim(16), -80.0, -50.0, 20), (false, false), "too late");
    assert_eq!(
        overlap(mim(1_000), -80.0, -50.0, 20),
        (false, true),
        "chips that do it at any time"
    );
    assert_eq!(
        overlap(mim(16), -50.0, -48.0, 10),
        (false, false),
        "not strong enough"
    );
}

/// A frame near the limit of its rate is lost to noise as often, whether or not something very weak overlaps its end.
#[test]
fn weak_interference_at_the_end_does_not_heal_a_weak_frame() {
    let delivered = |interferer: bool| {
        let loss = |dbm: f64| 16.0206 - dbm;
        let medium = MediumConfig {
            // 54 Mb/s at 21 dB over the noise; the other is 7 dB below the noise
            loss: LossModel::Matrix(vec![(0, 1, loss(-72.9)), (2, 1, loss(-100.9))]),
            ..MediumConfig::default()
        };
        let mut lab = Lab::new(&medium, 3);
        let how = TxHow::one_shot(Rate::OFDM_54).no_ack();
        let plan = |from: u32, octets: usize, phase: u64| -> Vec<(u64, Act)> {
            let frame = |i: u64| data(None, from, i as u16, octets);
            (0..2_000)
                .map(|i| (i * MS + phase, Act::Send(frame(i), how)))
                .collect()
        };
        lab.node(plan(0, 1_400, 100 * US));
        lab.node(vec![]);
        // 232 us on the air; this one begins 12 us before its end
        lab.node(if interferer {
            plan(2, 200, 320 * US)
        } else {
            vec![]
        });
        lab.run(2_100);
        lab.script(1).frames() as f64 / 2_000.0
    };
    let (alone, disturbed) = (delivered(false), delivered(true));
    assert!((0.05..0.95).contains(&alone), "{alone}");
    // the last twentieth of the frame has 0.8 dB less
    assert!(
        disturbed < alone + 0.03 && disturbed > alone - 0.2,
        "{alone} {disturbed}"
    );
}

/// Signals below the detection threshold add up as interference.
#[test]
fn far_interference_adds_up() {
    let lost = |interferers: u32, dbm: f64| {
        let mut pairs = vec![(0, 1, 16.0206 + 75.0)];
        pairs.extend((2..2 + interferers).map(|i| (i, 1, 16.0206 - dbm)));
        let medium = MediumConfig {
            loss: LossModel::Matrix(pairs),
            ..MediumConfig::default()
        };
        let mut lab = Lab::new(&medium, 1);
        let how = TxHow::one_shot(Rate::OFDM_54).no_ack();
        lab.node(vec![(
            5 * MS,
            Act::Send(data(None, 0, 0, 200), TxHow::one_shot(Rate::OFDM_12)),
        )]);
        lab.node(vec![]);
        for i in 0..interferers {
            lab.node(vec![(5 * MS, Act::Send(data(None, i + 2, 0, 1_500), how))]);
        }
        lab.run(10);
        lab.script(1).frames() == 0
    };
    // 12 Mb/s needs about 6 dB
    assert!(!lost(1, -86.0), "11 dB");
    assert!(lost(20, -86.0), "-2 dB together");
    assert!(!lost(20, -102.0), "below the floor they are left out");
}

#[test]
fn channels_are_separate_and_retuning_loses_what_comes_in() {
    let mut lab = Lab::near(1);
    lab.node(vec![
        (
            5 * MS,
            Act::Send(data(None, 0, 0, 1_000), TxHow::one_shot(Rate::OFDM_6)),
        ),
        (8 * MS, Act::Send(data(None, 0, 1, 50), one_shot())),
        (9 * MS, Act::Send(data(None, 0, 2, 50), one_shot())),
    ]);
    lab.node(vec![
        (5 * MS + 300 * US, Act::Set(Attribute::Channel(5200))),
        (8 * MS + 500 * US, Act::Set(Attribute::Channel(5180))),
    ]);
    // on the other channel nothing of it is heard, and the medium is idle
    let other = AdapterConfig::station(MacAddr::local(2), Phy::A, 5200, false);
    lab.adapter(
        other,
        vec![(5 * MS + 20 * US, Act::Send(data(None, 2, 0, 50), one_shot()))],
    );
    lab.run(20);
    assert_eq!(lab.script(1).frames(), 1);
    assert_eq!(lab.starts(2), [5 * MS + 20 * US]);
    assert_eq!(lab.script(2).frames(), 0);
}

/// Who comes to a channel in the middle of a strong frame finds it busy by energy, cannot decode it, and waits.
#[test]
fn retuning_into_a_frame() {
    let mut lab = Lab::near(1);
    lab.node(vec![(
        5 * MS,
        Act::Send(data(None, 0, 0, 1_000), TxHow::one_shot(Rate::OFDM_6)),
    )]);
    let other = AdapterConfig::station(MacAddr::local(1), Phy::A, 5200, false);
    lab.adapter(
        other,
        vec![
            (5 * MS + 300 * US, Act::Set(Attribute::Channel(5180))),
            (5 * MS + 400 * US, Act::Send(data(None, 1, 0, 50), one_shot())),
        ],
    );
    lab.run(20);
    let end = lab.of(0, OnAir::Frame)[0].end;
    let start = lab.starts(1)[0];
    assert!(
        start >= end + 34 * US && (start - end - 34 * US).is_multiple_of(9 * US),
        "{start} {end}"
    );
    assert_eq!(lab.script(1).frames(), 0);
}

/// Noise above the energy threshold holds the medium; weaker noise only disturbs.
#[test]
fn external_noise() {
    let start = |tx_dbm: f64| {
        let mut lab = Lab::new(
            &MediumConfig {
                loss: LossModel::LogDistance {
                    at_1m_db: 46.6777,
                    exponent: 3.0,
                    shadowing_db: 0.0,
                },
                ..MediumConfig::default()
            },
            1,
        );
        lab.node(vec![(
            5 * MS + 500 * US,
            Act::Send(data(None, 0, 0, 50), one_shot()),
        )]);
        lab.w.add_noise(&NoiseConfig {
            position: Position::new(1.0, 0.0),
            mhz: 5180,
            tx_dbm,
            on_ns: MS,
            off_ns: 100 * MS,
            random: false,
            start_ns: 5 * MS,
        });
        lab.run(20);
        lab.starts(0)[0]
    };
    let busy = start(0.0);
    assert!((6 * MS + 34 * US..6 * MS + 200 * US).contains(&busy), "{busy}");
    assert_eq!(start(-30.0), 5 * MS + 500 * US);
}

/// A move takes a node out of reach and back.
#[test]
fn moves() {
    let mut lab = Lab::new(&MediumConfig::default(), 1);
    let plan = (0..3).map(|i| {
        (
            i * 10 * MS + MS,
            send(1, 0, i as u16, TxHow::one_shot(Rate::OFDM_6)),
        )
    });
    lab.node(plan.collect());
    let away = NodeConfig::ideal(
        Position::new(20.0, 0.0),
        AdapterConfig::station(MacAddr::local(1), Phy::A, 5180, false),
    );
    lab.config(away, vec![]);
    lab.w.plan_move(10 * MS, 1, Position::new(500.0, 0.0));
    lab.w.plan_move(20 * MS, 1, Position::new(0.0, 20.0));
    lab.run(50);
    use Outcome::{Acked, NotAcked};
    assert_eq!(lab.script(0).outcomes(), [Acked, NotAcked, Acked]);
}

/// 40 MHz HT with short guard interval and the rates of 802.11b: durations and ACKs are theirs.
#[test]
fn other_rates() {
    let exchange = |phy: Phy, mhz: u16, rate: Rate| {
        let mut lab = Lab::near(1);
        let station = |i| AdapterConfig::station(MacAddr::local(i), phy, mhz, false);
        lab.adapter(
            station(0),
            vec![(
                5 * MS,
                Act::Send(data(Some(1), 0, 0, 1_500), TxHow::one_shot(rate)),
            )],
        );
        lab.adapter(station(1), vec![]);
        lab.run(30);
        assert_eq!(lab.script(0).outcomes(), [Outcome::Acked], "{rate}");
        let (d, a) = (&lab.of(0, OnAir::Frame)[0], &lab.of(1, OnAir::Ack)[0]);
        (
            (d.end - d.start) / US,
            (a.start - d.end) / US,
            (a.end - a.start) / US,
        )
    };
    // 1528 octets: 192 + 8 * 1528 / 11 = 1303.3; the ACK at 11 Mb/s would take 203 us, but the basic rates end at 2 Mb/s
    assert_eq!(exchange(Phy::B, 2412, Rate::DSSS_11), (1_304, 10, 248));
    assert_eq!(exchange(Phy::B, 2412, Rate::DSSS_1), (192 + 12_224, 10, 304));
    // HT40 MCS 7, short guard interval: 36 + 4 ceil(3.6 * 23 / 4); a legacy ACK at 24 Mb/s
    let ht = Rate::Ht(
        frame::rate::Mcs::new(7).unwrap(),
        Width::Mhz40,
        GuardInterval::Short,
    );
    assert_eq!(exchange(Phy::N5, 5180, ht), (36 + 84, 16, 28));
    // 6 us of signal extension at 2.4 GHz
    assert_eq!(exchange(Phy::G, 2412, Rate::OFDM_54), (254, 10, 34));
}

/// A protocol cannot break the world by visiting every frequency there is.
#[test]
fn every_channel() {
    let mut lab = Lab::near(1);
    let plan = (2_400..5_999u16).map(|mhz| (u64::from(mhz) * US, Act::Set(Attribute::Channel(mhz))));
    lab.node(plan.collect());
    lab.run(10);
    let script: &Script = lab.script(0);
    assert_eq!(script.seen.len(), 3_599);
}
