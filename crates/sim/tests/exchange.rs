//! Frame exchanges: ACK timeouts, retries, contention windows, RTS/CTS, NAV.
mod common;

use common::script::{Act, Lab, data, one_shot, send};
use frame::{EdcaParams, MacAddr, Phy, Rate};
use radio::{Attribute, Instant, Outcome, RtsPolicy, Series, SeriesList, TxHow};
use sim::adapter::{AccessRules, AdapterConfig, WindowOnDrop};
use sim::trace::OnAir;
use sim::{LinkLoss, Process};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

fn station(i: u32) -> AdapterConfig {
    AdapterConfig::station(MacAddr::local(i), Phy::A, 5180, false)
}

/// A station that always draws zero.
fn eager(i: u32) -> AdapterConfig {
    let p = EdcaParams {
        aifsn: 2,
        cw_min: 0,
        cw_max: 0,
        txop_us: 0,
    };
    AdapterConfig {
        edca: [p; 5],
        ..station(i)
    }
}

fn all_lost(heard: f64) -> LinkLoss {
    LinkLoss {
        data: Some(Process::Fixed(1.0)),
        response: None,
        heard,
    }
}

fn responses_lost(heard: f64) -> LinkLoss {
    LinkLoss {
        data: None,
        response: Some(Process::Fixed(1.0)),
        heard,
    }
}

/// When a failure is known: at the ACK timeout if no ACK begins, at its end if one begins and is corrupt
/// (the two modes of L_A; SDMAC, Cena et al. 2018, section V).
#[test]
fn the_two_way_timeout_rule() {
    let known = |loss: LinkLoss, back: bool, timeout_us: u32| {
        let mut lab = Lab::near(1);
        let adapter = AdapterConfig {
            ack_timeout_us: timeout_us,
            ..station(0)
        };
        lab.adapter(adapter, vec![(5 * MS, send(1, 0, 0, one_shot()))]);
        lab.node(vec![]);
        let (from, to) = if back { (1, 0) } else { (0, 1) };
        lab.w.set_link_loss(from, to, loss);
        lab.run(10);
        assert_eq!(lab.script(0).outcomes(), [Outcome::NotAcked]);
        (lab.script(0).confirms()[0].0 - 5 * MS) / US
    };
    assert_eq!(known(all_lost(0.0), false, 50), 32 + 50, "the frame is lost");
    assert_eq!(
        known(responses_lost(0.0), true, 50),
        32 + 50,
        "the ACK's preamble is missed"
    );
    assert_eq!(
        known(responses_lost(1.0), true, 50),
        32 + 16 + 28,
        "the ACK is corrupt"
    );
    assert_eq!(
        known(all_lost(1.0), false, 25),
        32 + 25,
        "the timeout that ath9k sets"
    );
    assert_eq!(
        known(responses_lost(1.0), true, 25),
        32 + 16 + 28,
        "begun before the timeout"
    );
}

#[test]
fn a_good_ack_that_ends_after_the_timeout_counts() {
    let mut lab = Lab::near(1);
    let adapter = AdapterConfig {
        ack_timeout_us: 25,
        ..station(0)
    };
    lab.adapter(adapter, vec![(5 * MS, send(1, 0, 0, one_shot()))]);
    lab.node(vec![]);
    lab.run(10);
    assert_eq!(lab.script(0).outcomes(), [Outcome::Acked]);
}

#[test]
fn one_shots_are_sent_once() {
    let mut lab = Lab::near(1);
    lab.node(vec![(5 * MS, send(9, 0, 0, one_shot()))]);
    lab.run(100);
    assert_eq!(lab.starts(0).len(), 1);
    let c = lab.script(0).confirms()[0].1;
    assert_eq!((c.outcome, c.attempts, c.series), (Outcome::NotAcked, 1, 0));
}

#[test]
fn retry_series_with_their_rates() {
    let mut lab = Lab::near(1);
    let rates = [Rate::OFDM_54, Rate::OFDM_24, Rate::OFDM_6];
    let series = [(rates[0], 2), (rates[1], 1), (rates[2], 3)].map(|(rate, tries)| Series { rate, tries });
    let how = one_shot().series(SeriesList::new(&series).unwrap());
    lab.node(vec![(5 * MS, send(9, 0, 0, how))]);
    lab.run(100);
    let sent = lab.of(0, OnAir::Frame);
    let used: Vec<Rate> = sent.iter().map(|s| s.rate).collect();
    assert_eq!(used, [rates[0], rates[0], rates[1], rates[2], rates[2], rates[2]]);
    assert!(!sent[0].is_retry() && sent[1..].iter().all(|s| s.is_retry()));
    // Duration: SIFS + ACK at the response rate of each
    let durations: Vec<u16> = sent.iter().map(|s| s.duration_us()).collect();
    assert_eq!(durations, [44, 44, 44, 60, 60, 60]);
    let c = lab.script(0).confirms()[0].1;
    assert_eq!((c.attempts, c.series, c.rate), (6, 2, Rate::OFDM_6));
}

/// Slots between the attempts of frames that are never answered, one list per attempt number.
fn draws(rules: AccessRules, frames: u16, tries: u8) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new(); usize::from(tries)];
    for seed in 0..60 {
        let mut lab = Lab::near(seed);
        let adapter = AdapterConfig { rules, ..station(0) };
        let how = TxHow::multi_shot(Rate::OFDM_54, tries);
        let plan = (0..frames).map(|i| (5 * MS, send(9, 0, i, how)));
        lab.adapter(adapter, plan.collect());
        lab.run(1_000);
        let sent = lab.of(0, OnAir::Frame);
        for pair in sent.windows(2) {
            // the space is counted from the end of the frame, the countdown not before the timeout
            let from = pair[0].end + 50 * US;
            assert_eq!((pair[1].start - from) % (9 * US), 0);
            all[usize::from(pair[1].attempt) - 1].push((pair[1].start - from) / (9 * US));
        }
    }
    all
}

/// CW doubles from 15 to 1023 with each failure and goes back to CWmin with the next frame.
#[test]
fn contention_window() {
    let all = draws(AccessRules::standard(&Phy::A), 3, 8);
    for (attempt, draws) in all.iter().enumerate() {
        let cw = (16u64 << attempt).min(1024) - 1;
        let max = *draws.iter().max().unwrap();
        assert!(max <= cw && max > cw * 7 / 10, "attempt {attempt}: {max} of {cw}");
        let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
        assert!(
            (mean / (cw as f64 / 2.0) - 1.0).abs() < 0.2,
            "attempt {attempt}: {mean}"
        );
    }
}

/// The variant of ns-3.44 and later: the window survives a drop and goes back one failure later.
#[test]
fn contention_window_kept_on_drop() {
    let rules = AccessRules {
        window_on_drop: WindowOnDrop::Keep,
        ..AccessRules::standard(&Phy::A)
    };
    let all = draws(rules, 2, 7);
    assert!(
        *all[0].iter().max().unwrap() > 700,
        "the next frame starts with CWmax"
    );
    assert!(
        *all[1].iter().max().unwrap() <= 31,
        "and goes back at its first failure"
    );
}

#[test]
fn no_ack_and_group_frames_are_sent_once_and_confirmed_at_their_end() {
    let mut lab = Lab::near(1);
    let many = TxHow::multi_shot(Rate::OFDM_54, 7);
    lab.node(vec![
        (5 * MS, send(9, 0, 0, many.no_ack())),
        (6 * MS, Act::Send(data(None, 0, 1, 50), many)),
    ]);
    lab.node(vec![]);
    lab.run(10);
    assert_eq!(lab.starts(0), [5 * MS, 6 * MS]);
    let confirms = lab.script(0).confirms();
    assert_eq!(
        confirms.iter().map(|c| c.0).collect::<Vec<_>>(),
        [5 * MS + 32 * US, 6 * MS + 32 * US]
    );
    assert!(
        confirms
            .iter()
            .all(|c| c.1.outcome == Outcome::NotAcked && c.1.attempts == 1)
    );
    let group = &lab.of(0, OnAir::Frame)[1];
    assert_eq!(group.duration_us(), 0);
    assert!(lab.of(1, OnAir::Ack).is_empty());
    assert_eq!(lab.script(1).frames(), 1);
}

/// RTS, CTS, frame and ACK follow each other after SIFS; each announces what is left.
#[test]
fn rts_cts() {
    let mut lab = Lab::near(1);
    let how = TxHow {
        rts: RtsPolicy::Always,
        ..one_shot()
    };
    lab.node(vec![(5 * MS, send(1, 0, 0, how))]);
    lab.node(vec![]);
    lab.run(10);
    let air = lab.air.borrow();
    let all: Vec<(OnAir, u64, u16)> = air
        .sent
        .iter()
        .map(|s| (s.what, (s.start - 5 * MS) / US, s.duration_us()))
        .collect();
    // RTS and CTS at 24 Mb/s take 28 us
    let expected = [
        (OnAir::Rts, 0, 3 * 16 + 28 + 32 + 28),
        (OnAir::Cts, 44, 2 * 16 + 32 + 28),
        (OnAir::Frame, 88, 44),
        (OnAir::Ack, 136, 0),
    ];
    assert_eq!(all, expected);
}

#[test]
fn the_rts_threshold() {
    let mut lab = Lab::near(1);
    let adapter = AdapterConfig {
        rts_threshold: 77,
        ..station(0)
    };
    // 24 + 49 + 4 octets are not above it, one more is
    let sized = |n| Act::Send(data(Some(1), 0, 0, n), one_shot());
    lab.adapter(adapter, vec![(5 * MS, sized(49)), (6 * MS, sized(50))]);
    lab.node(vec![]);
    lab.run(10);
    let rts: Vec<u64> = lab.of(0, OnAir::Rts).iter().map(|s| s.start).collect();
    assert_eq!(rts, [6 * MS]);
}

/// A missing CTS costs a try, but no frame goes on the air.
#[test]
fn rts_without_an_answer() {
    let mut lab = Lab::near(1);
    let how = TxHow {
        rts: RtsPolicy::Always,
        ..TxHow::multi_shot(Rate::OFDM_54, 3)
    };
    lab.node(vec![(5 * MS, send(9, 0, 0, how))]);
    lab.run(100);
    assert_eq!((lab.of(0, OnAir::Rts).len(), lab.starts(0).len()), (3, 0));
    let c = lab.script(0).confirms()[0].1;
    assert_eq!((c.outcome, c.attempts), (Outcome::NotAcked, 0));
}

/// `expires` is about the first frame of an exchange: what begins with its RTS in time goes on, and what would begin again does not.
#[test]
fn an_exchange_that_begins_in_time_is_not_expired_by_its_rts() {
    let how = |expires_us: u64, tries| TxHow {
        rts: RtsPolicy::Always,
        ..TxHow::multi_shot(Rate::OFDM_54, tries).expires(Instant::from_ns(5 * MS + expires_us * US))
    };
    // the RTS takes 28 us, the frame begins after 88
    let mut lab = Lab::near(1);
    lab.node(vec![(5 * MS, send(1, 0, 0, how(0, 1)))]);
    lab.node(vec![]);
    lab.run(10);
    assert_eq!(lab.starts(0), [5 * MS + 88 * US]);
    assert_eq!(lab.script(0).outcomes(), [Outcome::Acked]);
    // nobody answers, and the second RTS would be too late
    let mut lab = Lab::near(1);
    lab.node(vec![(5 * MS, send(9, 0, 0, how(30, 7)))]);
    lab.run(100);
    assert_eq!((lab.of(0, OnAir::Rts).len(), lab.starts(0).len()), (1, 0));
    assert_eq!(lab.script(0).outcomes(), [Outcome::Expired]);
}

/// 0 sends to 1; 2 hears 0 but not 1, and defers by the Duration of what it has heard.
fn third_party(how: TxHow, nav: bool, answer: bool) -> u64 {
    let mut lab = Lab::near(1);
    lab.adapter(eager(0), vec![(5 * MS, send(1, 0, 0, how))]);
    lab.node(vec![(4 * MS, Act::Set(Attribute::AckGeneration(true)))]);
    lab.adapter(
        eager(2),
        vec![
            (4 * MS, Act::Set(Attribute::VirtualCarrierSense(nav))),
            (5 * MS + 10 * US, Act::Send(data(None, 2, 0, 50), one_shot())),
        ],
    );
    lab.w.plan_loss(0, 1, 2, f64::INFINITY);
    if !answer {
        lab.w.set_link_loss(0, 1, all_lost(0.0));
    }
    lab.run(20);
    (lab.starts(2)[0] - 5 * MS) / US
}

#[test]
fn nav() {
    assert_eq!(
        third_party(one_shot(), true, true),
        32 + 16 + 28 + 34,
        "until the end of the ACK"
    );
    assert_eq!(third_party(one_shot(), false, true), 32 + 34, "NAV off");
    let rts = TxHow {
        rts: RtsPolicy::Always,
        ..one_shot()
    };
    assert_eq!(
        third_party(rts, true, true),
        28 + 136 + 34,
        "an RTS reserves the whole exchange"
    );
}

/// A NAV set by an RTS ends if no frame begins within 2 SIFS + CTS + RX-START-Delay + 2 slots.
#[test]
fn the_nav_of_an_rts_is_given_up() {
    let rts = TxHow {
        rts: RtsPolicy::Always,
        ..TxHow::one_shot(Rate::OFDM_6)
    };
    // RTS at 6 Mb/s: 52 us, CTS 44 us
    assert_eq!(third_party(rts, true, false), 52 + 2 * 16 + 44 + 25 + 2 * 9 + 34);
    let whole = 52 + (3 * 16 + 44 + 128 + 44) + 34;
    assert_eq!(third_party(rts, true, true), whole, "not if the frame follows");
}

/// A station whose NAV is set does not answer an RTS.
#[test]
fn no_cts_during_nav() {
    let mut lab = Lab::near(1);
    let rts = |rate| TxHow {
        rts: RtsPolicy::Always,
        ..TxHow::one_shot(rate)
    };
    lab.adapter(eager(0), vec![(5 * MS, send(1, 0, 0, rts(Rate::OFDM_6)))]);
    lab.node(vec![]);
    lab.node(vec![]);
    // 3 does not hear 0 and 1, and calls 2 while these two have the medium
    lab.node(vec![(5 * MS + 200 * US, send(2, 3, 0, rts(Rate::OFDM_54)))]);
    for i in 0..2 {
        lab.w.plan_loss(0, i, 3, f64::INFINITY);
        lab.w.plan_loss(0, 3, i, f64::INFINITY);
    }
    // 2 has heard the RTS only; of the rest nothing reaches it
    lab.w.plan_loss(5 * MS + 60 * US, 1, 2, f64::INFINITY);
    lab.w.plan_loss(5 * MS + 150 * US, 0, 2, 150.0);
    lab.run(20);
    assert!(!lab.of(3, OnAir::Rts).is_empty() && lab.of(2, OnAir::Cts).is_empty());
}
