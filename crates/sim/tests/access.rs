//! When frames start: interframe spaces, backoff, freezing, priorities (802.11a: slot 9, SIFS 16, DIFS 34 us).
//!
//! A one-shot of 50 octets at 54 Mb/s takes 32 us, its ACK at 24 Mb/s 28 us; delays are 0 where all are in one place.
mod common;

use common::script::{Act, Lab, Seen, data, one_shot, send};
use frame::{EdcaParams, MacAddr, Phy, Rate};
use radio::{Attribute, Outcome, Queue, TxHow};
use sim::adapter::{AccessRules, AdapterConfig, Immediate};
use sim::medium::{LossModel, MediumConfig};
use sim::trace::OnAir;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

fn station(i: u32) -> AdapterConfig {
    AdapterConfig::station(MacAddr::local(i), Phy::A, 5180, false)
}

fn edca(i: u32) -> AdapterConfig {
    AdapterConfig::station(MacAddr::local(i), Phy::A, 5180, true)
}

/// Parameters that always draw zero.
fn no_backoff(aifsn: u8) -> EdcaParams {
    EdcaParams {
        aifsn,
        cw_min: 0,
        cw_max: 0,
        txop_us: 0,
    }
}

#[test]
fn immediate_access_takes_no_time() {
    let mut lab = Lab::near(1);
    lab.node(vec![(5 * MS, send(1, 0, 0, one_shot()))]);
    lab.node(vec![]);
    lab.run(10);
    assert_eq!(lab.starts(0), [5 * MS]);
    let ack = &lab.of(1, OnAir::Ack)[0];
    assert_eq!((ack.start, ack.end), (5 * MS + 48 * US, 5 * MS + 76 * US));
    assert_eq!(lab.script(0).outcomes(), [Outcome::Acked]);
    assert_eq!(lab.script(0).confirms()[0].0, 5 * MS + 76 * US);
}

/// ns-3 counts a DIFS from the arrival: 34.000 us in its one-shot scenario.
#[test]
fn the_ns3_variant_waits_for_difs_from_the_arrival() {
    let mut lab = Lab::near(1);
    let adapter = AdapterConfig {
        rules: AccessRules::ns3(),
        ..station(0)
    };
    assert_eq!(adapter.rules.immediate, Immediate::AfterSpaceFromArrival);
    lab.adapter(adapter, vec![(5 * MS, send(1, 0, 0, one_shot()))]);
    lab.node(vec![]);
    lab.run(10);
    assert_eq!(lab.starts(0), [5 * MS + 34 * US]);
}

/// In ns-3 the frame of an idle station never draws a backoff, however often the medium turns busy before its DIFS is over.
#[test]
fn the_ns3_variant_draws_no_backoff_after_an_arrival_at_rest() {
    // others send at 5.010 ms and at 5.052 ms, for 32 us each: within the DIFS after the arrival, and within the next one
    let start = |rules, arrival_us: u64, seed| {
        let mut lab = Lab::near(seed);
        let adapter = AdapterConfig { rules, ..station(0) };
        lab.adapter(
            adapter,
            vec![(5 * MS + arrival_us * US, send(1, 0, 0, one_shot()))],
        );
        for at in [10, 52] {
            let mut other = station(at);
            other.edca = [no_backoff(2); 5];
            let off = (0, Act::Set(Attribute::CarrierSense(false)));
            let one = Act::Send(data(None, 1, 0, 50), one_shot());
            lab.adapter(other, vec![off, (5 * MS + u64::from(at) * US, one)]);
        }
        lab.run(10);
        lab.starts(0)[0]
    };
    let waits = |rules, arrival_us| -> std::collections::BTreeSet<u64> {
        let first = 5 * MS + (52 + 32 + 34) * US;
        (0..16)
            .map(|seed| (start(rules, arrival_us, seed) - first) / (9 * US))
            .collect()
    };
    assert_eq!(waits(AccessRules::ns3(), 0), [0].into());
    let standard = AccessRules {
        immediate: Immediate::AtOnce,
        ..AccessRules::ns3()
    };
    assert_eq!(start(standard, 0, 1), 5 * MS, "it was idle for long enough");
    // 3 us after the first one of the others: for the standard that is no rest
    assert!(waits(standard, 45).len() > 4, "{:?}", waits(standard, 45));
    assert_eq!(waits(AccessRules::ns3(), 45), [0].into());
}

/// A frame that comes when the medium has been idle for less than DIFS goes when DIFS is over, without a backoff.
#[test]
fn idle_for_less_than_the_interframe_space() {
    for seed in 0..8 {
        let mut lab = Lab::near(seed);
        // 1 sends to everybody: 5 ms to 5 ms + 32 us
        lab.node(vec![(5 * MS + 42 * US, send(1, 0, 0, one_shot()))]);
        lab.node(vec![(
            5 * MS,
            Act::Send(data(None, 1, 0, 50), TxHow::one_shot(Rate::OFDM_54)),
        )]);
        lab.run(10);
        assert_eq!(lab.starts(0), [5 * MS + (32 + 34) * US]);
    }
}

#[test]
fn a_busy_medium_costs_a_backoff() {
    let mut draws = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let mut lab = Lab::near(seed);
        lab.node(vec![(5 * MS + 20 * US, send(1, 0, 0, one_shot()))]);
        lab.node(vec![(5 * MS, Act::Send(data(None, 1, 0, 50), one_shot()))]);
        lab.run(10);
        let waited = lab.starts(0)[0] - (5 * MS + 66 * US);
        assert_eq!(waited % (9 * US), 0);
        draws.insert(waited / (9 * US));
    }
    assert_eq!(draws, (0..=15).collect(), "uniform in 0..=CWmin");
}

/// The rest of a post-backoff is waited for; once it has run out, access is immediate.
#[test]
fn post_backoff() {
    let end = 5 * MS + 76 * US;
    let mut waits = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let mut lab = Lab::near(seed);
        lab.node(vec![
            (5 * MS, send(1, 0, 0, one_shot())),
            (end + 100 * US, send(1, 0, 1, one_shot())),
            (8 * MS, send(1, 0, 2, one_shot())),
        ]);
        lab.node(vec![]);
        lab.run(10);
        let starts = lab.starts(0);
        let at = starts[1];
        // 100 us after the exchange: 34 us of DIFS and 7.33 slots are over
        if at == end + 100 * US {
            waits.insert(0);
        } else {
            assert_eq!((at - end - 34 * US) % (9 * US), 0);
            waits.insert((at - end - 34 * US) / (9 * US));
        }
        assert_eq!(starts[2], 8 * MS);
    }
    assert_eq!(waits, [0, 8, 9, 10, 11, 12, 13, 14, 15].into());
}

/// A frozen countdown goes on where it stopped, less the whole idle slots before the medium turned busy.
#[test]
fn freezing() {
    for seed in 0..50 {
        let run = |second: bool| {
            let mut lab = Lab::near(seed);
            lab.node(vec![(5 * MS + 20 * US, send(1, 0, 0, one_shot()))]);
            // 5 ms .. 5.032 ms: 0 draws a backoff, to count from 5.066 ms on
            lab.node(vec![(5 * MS, Act::Send(data(None, 1, 0, 50), one_shot()))]);
            // 5.066 + 4 slots and a bit: the fifth slot does not count
            let t = 5 * MS + (66 + 4 * 9 + 2) * US;
            let other = if second {
                vec![(t, Act::Send(data(None, 2, 0, 50), one_shot()))]
            } else {
                vec![]
            };
            lab.node(other);
            lab.run(10);
            lab.starts(0)[0]
        };
        let slots = (run(false) - (5 * MS + 66 * US)) / (9 * US);
        // sensed 8 us after its start, which is in the sixth slot (index 5)
        let passed = 5;
        let end = 5 * MS + (66 + 38 + 32) * US;
        let expected = if slots <= passed {
            5 * MS + 66 * US + slots * 9 * US
        } else {
            end + 34 * US + (slots - passed) * 9 * US
        };
        assert_eq!(run(true), expected, "{slots} slots");
    }
}

/// EDCA variant: the frozen counter is decremented at the end of AIFS, so access comes one slot earlier.
#[test]
fn countdown_at_the_end_of_the_space() {
    for seed in 0..20 {
        let start = |early: bool| {
            let mut lab = Lab::near(seed);
            let mut adapter = station(0);
            adapter.rules.countdown_at_space_end = early;
            lab.adapter(adapter, vec![(5 * MS + 20 * US, send(1, 0, 0, one_shot()))]);
            lab.node(vec![(5 * MS, Act::Send(data(None, 1, 0, 50), one_shot()))]);
            lab.run(10);
            lab.starts(0)[0]
        };
        let (late, early) = (start(false), start(true));
        let zero = late == 5 * MS + 66 * US;
        assert_eq!(late - early, if zero { 0 } else { 9 * US });
    }
}

/// EIFS (94 us) after a frame with errors; a right frame ends the obligation; the option switches it off.
#[test]
fn eifs() {
    let first = |eifs: bool, good_after: bool| {
        let mut lab = Lab::near(3);
        let mut adapter = AdapterConfig {
            edca: [no_backoff(2); 5],
            ..station(0)
        };
        adapter.rules.eifs = eifs;
        lab.adapter(adapter, vec![(5 * MS + 20 * US, send(1, 0, 0, one_shot()))]);
        lab.node(vec![(5 * MS, Act::Send(data(None, 1, 0, 50), one_shot()))]);
        let good = (5 * MS + 50 * US, Act::Send(data(None, 2, 0, 50), one_shot()));
        // carrier sense off, so that it comes within the EIFS of the other
        let off = (0, Act::Set(Attribute::CarrierSense(false)));
        lab.node(if good_after { vec![off, good] } else { vec![] });
        let corrupt = sim::LinkLoss {
            data: Some(sim::Process::Fixed(1.0)),
            response: None,
            heard: 1.0,
        };
        lab.w.set_link_loss(1, 0, corrupt);
        lab.run(10);
        (lab.starts(0)[0] - (5 * MS + 32 * US)) / US
    };
    assert_eq!(first(true, false), 94);
    assert_eq!(first(false, false), 34);
    assert_eq!(first(true, true), 18 + 32 + 34);
}

/// Without carrier sense the medium is idle all the time, behind a frame with errors, too.
#[test]
fn without_carrier_sense_there_is_no_eifs() {
    for (on, expected_us) in [(true, 32 + 94), (false, 40)] {
        let mut lab = Lab::near(3);
        let adapter = AdapterConfig {
            edca: [no_backoff(2); 5],
            ..station(0)
        };
        let sense = (0, Act::Set(Attribute::CarrierSense(on)));
        let behind = (5 * MS + 40 * US, send(1, 0, 0, one_shot()));
        lab.adapter(adapter, vec![sense, behind]);
        lab.node(vec![(5 * MS, Act::Send(data(None, 1, 0, 50), one_shot()))]);
        lab.node(vec![]);
        let corrupt = sim::LinkLoss {
            data: Some(sim::Process::Fixed(1.0)),
            response: None,
            heard: 1.0,
        };
        lab.w.set_link_loss(1, 0, corrupt);
        lab.run(10);
        assert_eq!(lab.starts(0)[0], 5 * MS + expected_us * US, "{on}");
    }
}

/// A station that is about to send cannot be stopped any more: sensing takes CCA time plus turnaround (8 us).
#[test]
fn two_can_start_within_the_sensing_time() {
    for (apart_us, collide) in [(7, true), (8, false)] {
        let mut lab = Lab::near(1);
        lab.node(vec![(5 * MS, send(2, 0, 0, one_shot()))]);
        lab.node(vec![(5 * MS + apart_us * US, send(2, 1, 0, one_shot()))]);
        lab.node(vec![]);
        lab.run(20);
        let second = lab.starts(1)[0];
        assert_eq!(second == 5 * MS + apart_us * US, collide, "{apart_us} us");
    }
}

/// Both queues end their countdown at once: the higher one goes, the lower one draws from a doubled window and
/// has lost no attempt, even if it has only one.
#[test]
fn internal_collisions() {
    let mut draws = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let mut lab = Lab::near(seed);
        let mut adapter = edca(0);
        adapter.edca[Queue::Voice.index()] = no_backoff(2);
        adapter.edca[Queue::Background.index()] = EdcaParams {
            cw_max: 15,
            ..no_backoff(2)
        };
        let how = |q| one_shot().queue(q);
        // both arrive while 1 sends, and draw zero
        lab.adapter(
            adapter,
            vec![
                (5 * MS + 10 * US, send(1, 0, 0, how(Queue::Background))),
                (5 * MS + 12 * US, send(1, 0, 1, how(Queue::Voice))),
            ],
        );
        lab.node(vec![(5 * MS, Act::Send(data(None, 1, 0, 50), one_shot()))]);
        lab.run(10);
        let sent = lab.of(0, OnAir::Frame);
        let sequence = |i: usize| u16::from_le_bytes([sent[i].frame[22], sent[i].frame[23]]) >> 4;
        assert_eq!((sent[0].start, sequence(0)), (5 * MS + 66 * US, 1));
        assert_eq!((sequence(1), sent[1].attempt, sent[1].is_retry()), (0, 1, false));
        assert_eq!(lab.script(0).outcomes(), [Outcome::Acked, Outcome::Acked]);
        draws.insert((sent[1].start - 5 * MS) / US - (66 + 76 + 34));
    }
    assert_eq!(draws, [0, 9].into(), "CW is 1 after 0");
}

/// Voice before best effort of another station: AIFS 34 against 43 us.
#[test]
fn priorities() {
    let mut lab = Lab::near(5);
    let mut with = |i: u32, q: Queue, aifsn| {
        let mut a = edca(i);
        a.edca[q.index()] = no_backoff(aifsn);
        lab.adapter(a, vec![(5 * MS + 10 * US, send(2, i, 0, one_shot().queue(q)))]);
    };
    with(0, Queue::BestEffort, 3);
    with(1, Queue::Voice, 2);
    lab.node(vec![(5 * MS, Act::Send(data(None, 2, 0, 50), one_shot()))]);
    lab.run(10);
    assert_eq!(lab.starts(1), [5 * MS + (32 + 34) * US]);
    assert_eq!(
        lab.starts(0),
        [5 * MS + (32 + 34 + 32 + 16 + 28 + 43) * US],
        "frozen before its countdown began, its zero stays"
    );
}

/// Within a TXOP the next frame follows SIFS after the ACK, as long as its exchange fits.
#[test]
fn txop_bursts() {
    // one exchange takes 76 us; with SIFS between them two take 168 us and three 260 us
    for (txop_us, starts) in [
        (167, [0, 110, 220, 330]),
        (168, [0, 92, 202, 294]),
        (259, [0, 92, 202, 294]),
        (260, [0, 92, 184, 294]),
    ] {
        let mut lab = Lab::near(5);
        let mut a = edca(0);
        a.edca[Queue::Voice.index()] = EdcaParams {
            txop_us,
            ..no_backoff(2)
        };
        let how = one_shot().queue(Queue::Voice);
        let plan = (0..4).map(|i| (5 * MS, send(1, 0, i, how))).collect();
        lab.adapter(a, plan);
        lab.node(vec![]);
        lab.run(10);
        let relative: Vec<u64> = lab.starts(0).iter().map(|t| (t - 5 * MS) / US).collect();
        assert_eq!(relative, starts, "TXOP of {txop_us} us");
    }
}

/// A TXOP that ends early because the queue is empty does not shorten the next one.
#[test]
fn every_access_has_a_whole_txop() {
    let mut lab = Lab::near(5);
    let mut a = edca(0);
    a.edca[Queue::Voice.index()] = EdcaParams {
        txop_us: 300,
        ..no_backoff(2)
    };
    let how = one_shot().queue(Queue::Voice);
    let mut plan = vec![(5 * MS, send(1, 0, 0, how))];
    plan.extend((1..4).map(|i| (5 * MS + 200 * US, send(1, 0, i, how))));
    lab.adapter(a, plan);
    lab.node(vec![]);
    lab.run(10);
    let relative: Vec<u64> = lab.starts(0).iter().map(|t| (t - 5 * MS) / US).collect();
    assert_eq!(relative, [0, 200, 292, 384]);
}

/// Frames that expect no ACK follow each other after SIFS in a TXOP.
#[test]
fn txop_without_acks() {
    let mut lab = Lab::near(5);
    let mut a = edca(0);
    a.edca[Queue::Voice.index()] = EdcaParams {
        txop_us: 1504,
        ..no_backoff(2)
    };
    let how = one_shot().queue(Queue::Voice);
    let plan = (0..3).map(|i| (5 * MS, Act::Send(data(None, 0, i, 50), how)));
    lab.adapter(a, plan.collect());
    lab.node(vec![]);
    lab.run(10);
    let relative: Vec<u64> = lab.starts(0).iter().map(|t| (t - 5 * MS) / US).collect();
    assert_eq!(relative, [0, 48, 96]);
}

/// The beacon queue waits PIFS only and goes before everything else.
#[test]
fn the_beacon_queue_goes_first() {
    let mut lab = Lab::near(5);
    let mut a = edca(0);
    a.edca[Queue::Voice.index()] = no_backoff(1);
    lab.adapter(
        a,
        vec![
            (5 * MS + 10 * US, send(1, 0, 0, one_shot().queue(Queue::Voice))),
            (
                5 * MS + 12 * US,
                Act::Send(data(None, 0, 1, 50), one_shot().queue(Queue::Beacon)),
            ),
        ],
    );
    lab.node(vec![(5 * MS, Act::Send(data(None, 1, 0, 50), one_shot()))]);
    lab.run(10);
    let sent = lab.of(0, OnAir::Frame);
    assert_eq!(sent[0].start, 5 * MS + (32 + 25) * US, "PIFS");
    assert_eq!(sent[0].frame[4], 0xff, "the frame of the beacon queue");
    assert_eq!(sent[1].start, sent[0].end + 25 * US);
}

/// Without carrier sense a frame starts although the medium is busy, but not while a frame is being received.
#[test]
fn carrier_sense_off() {
    // 2 arrives with -54 dBm and is received; 1 with -85 dBm is not even noticed
    let medium = MediumConfig {
        loss: LossModel::Matrix(vec![(1, 0, 101.0), (0, 1, 101.0), (2, 0, 70.0), (0, 2, 70.0)]),
        energy_dbm: -62.0,
        ..MediumConfig::default()
    };
    let quiet = one_shot().no_ack();
    let run = |from: u32, off: bool| {
        let mut lab = Lab::new(&medium, 1);
        let set = if off {
            vec![(0, Act::Set(Attribute::CarrierSense(false)))]
        } else {
            vec![]
        };
        let plan = set
            .into_iter()
            .chain([(5 * MS + 20 * US, Act::Send(data(None, 0, 0, 50), quiet))]);
        lab.adapter(
            AdapterConfig {
                edca: [no_backoff(2); 5],
                ..station(0)
            },
            plan.collect(),
        );
        for i in 1..3 {
            let plan = (5 * MS, Act::Send(data(None, i, 0, 50), quiet));
            lab.node(if i == from { vec![plan] } else { vec![] });
        }
        lab.run(10);
        let frames = lab.script(0).frames();
        (lab.starts(0)[0] - 5 * MS, frames)
    };
    assert_eq!(
        run(2, false),
        ((32 + 34) * US, 1),
        "with carrier sense: after DIFS"
    );
    let (start, frames) = run(2, true);
    assert!(
        (32 * US..33 * US).contains(&start),
        "at the end of the reception: {start}"
    );
    assert_eq!(frames, 1, "what was being received is received");
    assert_eq!(run(1, true), (20 * US, 0), "what is not received blocks nothing");
}

/// Carrier sense switched on again in the middle of a frame finds the medium busy.
#[test]
fn carrier_sense_on_again() {
    let mut lab = Lab::near(1);
    lab.adapter(
        AdapterConfig {
            edca: [no_backoff(2); 5],
            ..station(0)
        },
        vec![
            (0, Act::Set(Attribute::CarrierSense(false))),
            (5 * MS + 20 * US, Act::Set(Attribute::CarrierSense(true))),
            (5 * MS + 25 * US, Act::Send(data(None, 0, 0, 50), one_shot())),
        ],
    );
    lab.node(vec![(5 * MS, Act::Send(data(None, 1, 0, 50), one_shot()))]);
    lab.run(10);
    assert_eq!(lab.starts(0), [5 * MS + (32 + 34) * US]);
    let sets = lab.script(0).seen.iter().filter(|s| s.1 == Seen::Set(Ok(())));
    assert_eq!(sets.count(), 2);
}
