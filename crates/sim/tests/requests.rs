//! What becomes of requests: duplicates, abort, expiry, full queues, resets, a receiver that turns away.
mod common;

use common::script::{Act, Lab, data, one_shot, send};
use frame::{MacAddr, Phy, Rate};
use radio::{Attribute, Instant, Outcome, Queue, Refusal, TxHow};
use sim::adapter::AdapterConfig;
use sim::fault::Incident;
use sim::trace::OnAir;
use sim::{LinkLoss, Process};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

fn station(i: u32) -> AdapterConfig {
    AdapterConfig::station(MacAddr::local(i), Phy::A, 5180, false)
}

fn responses_lost(heard: f64) -> LinkLoss {
    LinkLoss {
        data: None,
        response: Some(Process::Fixed(1.0)),
        heard,
    }
}

#[test]
fn duplicates_are_acknowledged_and_dropped() {
    let mut lab = Lab::near(1);
    lab.node(vec![
        (5 * MS, send(1, 0, 7, TxHow::multi_shot(Rate::OFDM_54, 3))),
        (9 * MS, send(1, 0, 7, one_shot())),
    ]);
    lab.node(vec![]);
    lab.w.set_link_loss(1, 0, responses_lost(0.0));
    lab.run(20);
    assert_eq!(lab.of(1, OnAir::Ack).len(), 4);
    // the one at 9 ms has no retry bit: it is a new frame
    assert_eq!(lab.script(1).frames(), 2);
    assert_eq!(lab.w.counters(1, 0).rx_duplicates, 2);
}

#[test]
fn abort_in_every_stage() {
    let run = |at: u64, how: TxHow| {
        let mut lab = Lab::near(1);
        lab.node(vec![
            (5 * MS + 10 * US, send(9, 0, 0, how)),
            (at, Act::Abort(0)),
            (60 * MS, Act::Abort(0)),
        ]);
        lab.node(vec![(
            5 * MS,
            Act::Send(data(None, 1, 0, 1500), TxHow::one_shot(Rate::OFDM_6)),
        )]);
        lab.run(100);
        let (t, c) = lab.script(0).confirms()[0];
        assert_eq!(lab.script(0).confirms().len(), 1);
        (t, c.outcome, c.attempts, lab.starts(0).len())
    };
    let seven = TxHow::multi_shot(Rate::OFDM_54, 7);
    let later = seven.not_before(Instant::from_ns(20 * MS));
    assert_eq!(
        run(6 * MS, later),
        (20 * MS, Outcome::Aborted, 0, 0),
        "on its way"
    );
    assert_eq!(run(6 * MS, seven), (6 * MS, Outcome::Aborted, 0, 0), "in backoff");
    let (_, outcome, attempts, on_air) = run(50 * MS, seven);
    assert_eq!((outcome, attempts, on_air), (Outcome::NotAcked, 7, 7), "too late");
}

/// An abort while the frame is on the air ends the request after that attempt.
#[test]
fn abort_on_air() {
    let mut lab = Lab::near(1);
    lab.node(vec![
        (5 * MS, send(9, 0, 0, TxHow::multi_shot(Rate::OFDM_54, 7))),
        (5 * MS + 10 * US, Act::Abort(0)),
        (6 * MS, send(9, 0, 1, one_shot())),
    ]);
    lab.run(50);
    assert_eq!(lab.starts(0).len(), 2);
    assert_eq!(lab.script(0).outcomes(), [Outcome::Aborted, Outcome::NotAcked]);
    assert_eq!(lab.script(0).confirms()[0].0, 5 * MS + 82 * US);
}

#[test]
fn expiry_and_not_before() {
    let mut lab = Lab::near(1);
    let at = |us: u64| Instant::from_ns(5 * MS + us * US);
    lab.node(vec![
        (5 * MS + 10 * US, send(1, 0, 0, one_shot().expires(at(40)))),
        (
            10 * MS,
            send(1, 0, 1, one_shot().expires(Instant::from_ns(10 * MS))),
        ),
        (
            20 * MS,
            send(1, 0, 2, one_shot().not_before(Instant::from_ns(30 * MS))),
        ),
    ]);
    lab.node(vec![(5 * MS, Act::Send(data(None, 1, 0, 50), one_shot()))]);
    lab.run(50);
    assert_eq!(
        lab.script(0).outcomes(),
        [Outcome::Expired, Outcome::Acked, Outcome::Acked]
    );
    assert_eq!(
        lab.starts(0),
        [10 * MS, 30 * MS],
        "at the expiry itself it may still start"
    );
}

/// A whole queue that has expired behind a busy medium goes at one stroke.
#[test]
fn a_full_queue_expires() {
    let mut lab = Lab::near(1);
    let how = one_shot().expires(Instant::from_ns(6 * MS));
    let mut plan: Vec<_> = (0..200)
        .map(|i| (5 * MS + 10 * US + i, send(1, 0, i as u16, how)))
        .collect();
    plan.push((5 * MS + 20 * US, send(1, 0, 999, one_shot())));
    lab.node(plan);
    lab.node(vec![(
        5 * MS,
        Act::Send(data(None, 1, 0, 1500), TxHow::one_shot(Rate::OFDM_6)),
    )]);
    lab.run(50);
    let outcomes = lab.script(0).outcomes();
    assert!(outcomes[..200].iter().all(|o| *o == Outcome::Expired));
    assert_eq!((outcomes.len(), outcomes[200]), (201, Outcome::Acked));
}

/// As Linux has it: what came before its lifetime was over goes on, whatever becomes of the lifetime, and so does what somebody
/// wants back. What comes too late does not set out.
#[test]
fn an_adapter_that_takes_nothing_back() {
    let mut lab = Lab::near(1);
    let adapter = AdapterConfig {
        takes_back: false,
        ..station(0)
    };
    let until = |ms| one_shot().expires(Instant::from_ns(ms * MS));
    let plan = vec![
        (5 * MS + 10 * US, send(1, 0, 0, until(6))),
        (5 * MS + 10 * US, send(1, 0, 1, one_shot())),
        (6 * MS, Act::Abort(1)),
        (6 * MS + 500 * US, send(1, 0, 2, until(6))),
    ];
    lab.adapter(adapter, plan);
    // On the air until 7 ms.
    lab.node(vec![(
        5 * MS,
        Act::Send(data(None, 1, 0, 1500), TxHow::one_shot(Rate::OFDM_6)),
    )]);
    lab.run(50);
    let ends: Vec<_> = (lab.script(0).confirms().iter())
        .map(|(t, c)| (*t >= 7 * MS, c.outcome, c.attempts))
        .collect();
    assert_eq!(
        ends,
        [
            (false, Outcome::Expired, 0),
            (true, Outcome::Acked, 1),
            (true, Outcome::Acked, 1)
        ]
    );
}

/// The strength in a confirm is that of the ACK as it arrived, not that of the frame: 60 dB are lost there and 75 on the way back, and both
/// send with 16 dBm. An adapter that does not measure it tells nothing, and says so.
#[test]
fn confirms_tell_how_strong_the_ack_was() {
    use radio::{AdapterId, AttributeName};
    let medium = sim::MediumConfig {
        loss: sim::LossModel::Matrix(vec![(0, 1, 60.0), (1, 0, 75.0)]),
        ..Default::default()
    };
    for ack_signal in [true, false] {
        let mut lab = Lab::new(&medium, 1);
        let adapter = AdapterConfig {
            ack_signal,
            ..station(0)
        };
        let nobody = send(9, 0, 1, one_shot());
        lab.adapter(
            adapter,
            vec![(5 * MS, send(1, 0, 0, one_shot())), (6 * MS, nobody)],
        );
        lab.node(vec![]);
        let ask = |_: &mut _, _, radio: &mut dyn radio::Radio| {
            radio.get(AdapterId::FIRST, AttributeName::Capabilities)
        };
        let told = lab.w.act(0, ask);
        let Some(Attribute::Capabilities(can)) = told else {
            panic!("{told:?}");
        };
        assert_eq!(can.ack_signal, ack_signal);
        lab.run(20);
        let ends: Vec<_> = (lab.script(0).confirms().iter())
            .map(|(_, c)| (c.outcome, c.ack_signal_dbm))
            .collect();
        let strength = ack_signal.then_some(-59);
        assert_eq!(ends, [(Outcome::Acked, strength), (Outcome::NotAcked, None)]);
    }
}

#[test]
fn a_full_queue_refuses() {
    let mut lab = Lab::near(1);
    let adapter = AdapterConfig {
        queue_limit: 3,
        ..station(0)
    };
    lab.adapter(
        adapter,
        (0..6).map(|i| (5 * MS, send(1, 0, i, one_shot()))).collect(),
    );
    lab.node(vec![]);
    lab.run(50);
    let refused = Outcome::Refused(Refusal::QueueFull);
    let outcomes = lab.script(0).outcomes();
    assert_eq!(outcomes.iter().filter(|o| **o == refused).count(), 3);
    assert_eq!(outcomes.iter().filter(|o| o.is_acked()).count(), 3);
}

/// A reset ends what is queued and what is on the air; the adapter works on.
#[test]
fn adapter_reset() {
    let mut lab = Lab::near(1);
    lab.node(vec![
        (5 * MS, send(9, 0, 0, TxHow::multi_shot(Rate::OFDM_6, 7))),
        (5 * MS, send(1, 0, 1, one_shot())),
        (5 * MS, send(1, 0, 2, one_shot().queue(Queue::Voice))),
        (7 * MS, send(1, 0, 3, one_shot())),
    ]);
    lab.node(vec![]);
    lab.w
        .plan_incident(5 * MS + 200 * US, 0, Incident::AdapterReset { adapter: 0 });
    lab.run(50);
    let outcomes = lab.script(0).outcomes();
    assert_eq!(outcomes.iter().filter(|o| **o == Outcome::Aborted).count(), 3);
    assert_eq!(lab.script(0).outcomes()[3], Outcome::Acked);
}

/// An adapter that is pulled out: what it had is aborted, what comes later is refused, it hears and acknowledges nothing, and
/// nobody can switch it on again.
#[test]
fn adapter_gone() {
    let mut lab = Lab::near(1);
    lab.node(vec![
        (5 * MS, send(1, 0, 0, one_shot())),
        (10 * MS, send(9, 0, 1, TxHow::multi_shot(Rate::OFDM_6, 7))),
        (20 * MS, send(1, 0, 2, one_shot())),
        (25 * MS, Act::Set(Attribute::Reception(true))),
    ]);
    lab.node(vec![
        (4 * MS, send(0, 1, 0, one_shot())),
        (30 * MS, send(0, 1, 1, one_shot())),
    ]);
    lab.w
        .plan_incident(10 * MS + 200 * US, 0, Incident::AdapterGone { adapter: 0 });
    lab.run(50);
    let gone = Outcome::Refused(radio::Refusal::NoAdapter);
    assert_eq!(lab.script(0).outcomes(), [Outcome::Acked, Outcome::Aborted, gone]);
    assert_eq!(lab.script(1).outcomes(), [Outcome::Acked, Outcome::NotAcked]);
    assert_eq!(lab.script(0).frames(), 1);
}

/// The receiver is switched off, or retuned, while the ACK comes in after the timeout: the attempt has failed.
#[test]
fn turning_away_from_an_ack() {
    for act in [Attribute::Reception(false), Attribute::Channel(5200)] {
        let mut lab = Lab::near(1);
        let adapter = AdapterConfig {
            ack_timeout_us: 25,
            ..station(0)
        };
        lab.adapter(
            adapter,
            vec![
                (5 * MS, send(1, 0, 0, one_shot())),
                // the ACK goes from 48 to 76 us, the timeout is at 57 us
                (5 * MS + 60 * US, Act::Set(act)),
                (6 * MS, send(1, 0, 1, one_shot())),
            ],
        );
        lab.node(vec![]);
        lab.run(50);
        let (t, c) = lab.script(0).confirms()[0];
        assert_eq!((t, c.outcome), (5 * MS + 60 * US, Outcome::NotAcked));
        assert_eq!(lab.script(0).confirms().len(), 2);
    }
}

/// A deaf adapter hears no frames for it but still gets the ACKs of its own.
#[test]
fn reception_off() {
    let mut lab = Lab::near(1);
    lab.node(vec![
        (0, Act::Set(Attribute::Reception(false))),
        (5 * MS, send(1, 0, 0, one_shot())),
    ]);
    lab.node(vec![(7 * MS, send(0, 1, 0, one_shot()))]);
    lab.run(20);
    assert_eq!(lab.script(0).outcomes(), [Outcome::Acked]);
    assert_eq!(
        (lab.script(0).frames(), lab.script(1).outcomes()),
        (0, vec![Outcome::NotAcked])
    );
}
