//! Clocks, timers, lost confirms, beacons: what the node sees.
mod common;

use common::script::{Act, Lab, Seen, data, one_shot, send};
use frame::{MacAddr, Phy, Rate};
use radio::{Attribute, Outcome, Queue, Tsf, TxHow};
use sim::adapter::AdapterConfig;
use sim::clock::Clock;
use sim::fault::{HostFaults, Incident};
use sim::host::{HostModel, Knots, Profile, Source};
use sim::medium::Position;
use sim::trace::OnAir;
use sim::{LinkLoss, NodeConfig, Process};
use std::rc::Rc;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

fn station(i: u32) -> AdapterConfig {
    AdapterConfig::station(MacAddr::local(i), Phy::A, 5180, false)
}

fn node(i: u32) -> NodeConfig {
    NodeConfig::ideal(Position::default(), station(i))
}

/// A beacon of 100 TU without elements.
fn beacon(from: u32) -> Vec<u8> {
    let mut f = vec![0x80, 0, 0, 0];
    f.extend_from_slice(&MacAddr::BROADCAST.0);
    f.extend_from_slice(&MacAddr::local(from).0);
    f.extend_from_slice(&MacAddr::local(from).0);
    f.extend_from_slice(&[0, 0]);
    f.extend_from_slice(&[0xee; 8]);
    f.extend_from_slice(&100u16.to_le_bytes());
    f.extend_from_slice(&[0x02, 0]);
    f
}

/// The timestamp is the sender's TSF when its first bit is sent: 20 us of preamble, 2 octets of SERVICE and 24 octets after the start.
#[test]
fn beacons_carry_the_tsf() {
    let mut lab = Lab::near(1);
    let mut sender = station(0);
    sender.tsf = Clock {
        offset_ns: 7 * MS,
        drift_ppb: 20_000,
    };
    let how = TxHow::one_shot(Rate::OFDM_6).queue(Queue::Beacon);
    let plan = (1..=2).map(|i| (i * 500 * MS, Act::Send(beacon(0), how)));
    lab.adapter(sender, plan.collect());
    lab.node(vec![]);
    lab.run(2_000);
    let expected = |at: u64| (7 * MS + at + 54_666 + at / 50_000) / 1_000;
    let seen: Vec<Seen> = lab.script(1).seen.iter().map(|s| s.1.clone()).collect();
    assert_eq!(
        seen,
        [
            Seen::Beacon(expected(500 * MS)),
            Seen::Beacon(expected(1_000 * MS))
        ]
    );
    let on_air = &lab.of(0, OnAir::Frame)[0].frame;
    assert_eq!(on_air[24..32], expected(500 * MS).to_le_bytes());
}

/// Indications carry the receiver's TSF at the start of the frame; setting it and resets move it.
#[test]
fn tsf_of_the_receiver() {
    let mut lab = Lab::near(1);
    let plan = [5, 15, 25, 35].map(|ms| (ms * MS, send(1, 0, ms as u16, one_shot())));
    lab.node(plan.to_vec());
    lab.node(vec![(10 * MS, Act::Set(Attribute::Tsf(Tsf(1_000_000))))]);
    lab.w
        .plan_incident(20 * MS, 1, Incident::AdapterReset { adapter: 0 });
    lab.w.plan_incident(
        30 * MS,
        1,
        Incident::TsfJump {
            adapter: 0,
            to_us: 77,
        },
    );
    lab.run(50);
    let tsf: Vec<u64> = lab
        .script(1)
        .seen
        .iter()
        .filter_map(|s| {
            if let Seen::Frame(_, t) = &s.1 {
                Some(*t)
            } else {
                None
            }
        })
        .collect();
    // the first bit of the MPDU comes 20 us after the preamble's
    assert_eq!(tsf, [5_020, 1_005_020, 5_020, 5_097]);
}

/// A fast clock's timers come early in true time, and all times that the node sees are on its clock.
#[test]
fn drifting_clocks() {
    let mut lab = Lab::near(1);
    let clock = Clock {
        offset_ns: 3 * MS,
        drift_ppb: 1_000_000,
    };
    lab.config(
        NodeConfig { clock, ..node(0) },
        vec![(1_004 * MS, send(1, 0, 0, one_shot()))],
    );
    lab.node(vec![]);
    lab.run(2_000);
    assert_eq!(lab.starts(0), [1_000 * MS]);
    assert_eq!(lab.script(0).confirms()[0].0, clock.show(1_000 * MS + 76 * US));
}

#[test]
fn a_clock_that_jumps_brings_timers_forward() {
    let mut lab = Lab::near(1);
    lab.node(vec![
        (100 * MS, send(1, 0, 0, one_shot())),
        (200 * MS, send(1, 0, 1, one_shot())),
    ]);
    lab.node(vec![]);
    lab.w
        .plan_incident(50 * MS, 0, Incident::ClockJump { ahead_ns: 70 * MS });
    lab.run(500);
    assert_eq!(lab.starts(0), [50 * MS, 130 * MS]);
}

#[test]
fn late_timers() {
    let mut lab = Lab::near(1);
    let faults = HostFaults {
        late_timer: 0.3,
        late_timer_ns: 250 * US,
        ..HostFaults::default()
    };
    let plan: Vec<_> = (1..=1_000)
        .map(|i| (i * MS, send(1, 0, i as u16, one_shot())))
        .collect();
    lab.config(NodeConfig { faults, ..node(0) }, plan);
    lab.node(vec![]);
    lab.run(2_000);
    let late = lab.starts(0).iter().filter(|t| **t % MS == 250 * US).count();
    let prompt = lab.starts(0).iter().filter(|t| **t % MS == 0).count();
    assert_eq!(late + prompt, 1_000);
    assert!((250..350).contains(&late), "{late}");
}

/// A lost status: the confirm is `Unknown`, comes after the host's timeout, and has no stamps.
#[test]
fn lost_confirms() {
    let mut lab = Lab::near(1);
    let faults = HostFaults {
        lost_confirm: 0.2,
        ..HostFaults::default()
    };
    let config = NodeConfig {
        faults,
        confirm_timeout_ns: 40 * MS,
        ..node(0)
    };
    let plan: Vec<_> = (1..=1_000)
        .map(|i| (i * MS, send(1, 0, i as u16, one_shot())))
        .collect();
    lab.config(config, plan);
    lab.node(vec![]);
    lab.run(2_000);
    let confirms = lab.script(0).confirms();
    assert_eq!(confirms.len(), 1_000);
    let unknown: Vec<_> = confirms
        .iter()
        .filter(|c| c.1.outcome == Outcome::Unknown)
        .collect();
    assert!((150..250).contains(&unknown.len()), "{}", unknown.len());
    assert!(
        unknown
            .iter()
            .all(|c| c.0 % MS == 76 * US && c.1.stamps == radio::Stamps::NONE)
    );
    assert_eq!(
        lab.script(1).frames(),
        1_000,
        "the frames have arrived all the same"
    );
}

/// One thread takes the confirms: one whose interrupt is faster than that of the frame before waits for it.
#[test]
fn confirms_do_not_overtake_each_other() {
    let mut lab = Lab::near(1);
    let mut profile = Profile::built_in("ideal").unwrap();
    // even between 0 and 500 us
    let knots = Knots {
        points: vec![(0.0, 0.0), (1.0, 500_000.0)],
        mean_ns: None,
    };
    profile.confirm.timeout.isr.source = Source::Knots(knots);
    let host = Some(Rc::new(HostModel::new(&profile).unwrap()));
    // two exchanges per millisecond, at most 201 us apart: broadcasts, which end like a timeout
    let frame = |i: u64| Act::Send(data(None, 0, i as u16, 50), one_shot());
    let plan = (0..200).map(|i| (i / 2 * MS, frame(i)));
    lab.config(NodeConfig { host, ..node(0) }, plan.collect());
    lab.run(200);
    let confirms = lab.script(0).confirms();
    let tokens = confirms.iter().map(|c| c.1.token.0);
    assert!(tokens.eq(1..=200), "in the order of the requests");
    let waited = confirms.windows(2).filter(|w| w[0].0 == w[1].0).count();
    assert!(waited > 10, "{waited} of 100 have waited for the one before");
}

/// Losses of data and of ACKs alone: what the sender and the receiver count differs by the lost ACKs.
#[test]
fn losses_in_one_direction() {
    let run = |data: f64, ack: f64| {
        let mut lab = Lab::near(1);
        let plan: Vec<_> = (1..=2_000)
            .map(|i| (i * MS, send(1, 0, i as u16, one_shot())))
            .collect();
        lab.node(plan);
        lab.node(vec![]);
        let fixed = |p| Some(Process::Fixed(p));
        let rule = |data, response| LinkLoss {
            data,
            response,
            heard: 0.5,
        };
        lab.w.set_link_loss(0, 1, rule(fixed(data), None));
        lab.w.set_link_loss(1, 0, rule(None, fixed(ack)));
        lab.run(2_100);
        let acked = lab.script(0).outcomes().iter().filter(|o| o.is_acked()).count();
        (lab.script(1).frames() as f64 / 2_000.0, acked as f64 / 2_000.0)
    };
    let (got, acked) = run(0.2, 0.0);
    assert!(
        (got - 0.8).abs() < 0.03 && (got - acked).abs() < 1e-9,
        "{got} {acked}"
    );
    let (got, acked) = run(0.0, 0.2);
    assert!(
        (got - 1.0).abs() < 1e-9 && (acked - 0.8).abs() < 0.03,
        "{got} {acked}"
    );
}

/// Two adapters on one node: each has its own queue, channel and counters.
#[test]
fn two_adapters() {
    let mut lab = Lab::near(1);
    let second = AdapterConfig::station(MacAddr::local(100), Phy::A, 5200, false);
    let config = NodeConfig {
        adapters: vec![station(0), second],
        ..node(0)
    };
    let on = |n: u8| TxHow {
        adapter: radio::AdapterId(n),
        ..one_shot()
    };
    let plan = [0, 1, 2].map(|n| (5 * MS, send(1, if n == 1 { 100 } else { 0 }, u16::from(n), on(n))));
    lab.config(config, plan.to_vec());
    let far = AdapterConfig::station(MacAddr::local(1), Phy::A, 5200, false);
    lab.adapter(far, vec![]);
    lab.run(20);
    let mut outcomes = lab.script(0).outcomes();
    outcomes.sort_by_key(|o| format!("{o:?}"));
    let refused = Outcome::Refused(radio::Refusal::NoAdapter);
    assert_eq!(outcomes, [Outcome::Acked, Outcome::NotAcked, refused]);
    assert_eq!(
        (lab.w.counters(0, 0).tx_frames, lab.w.counters(0, 1).tx_acked),
        (1, 1)
    );
}
