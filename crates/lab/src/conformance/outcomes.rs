//! Outcomes, and how frames are sent.

use frame::mac::{Flags, FrameControl, Kind, SequenceControl};
use frame::{MacAddr, Rate};
use radio::{
    AdapterId, AttributeName, Confirm, Duration, Instant, Outcome, Plane, Queue, Refusal, RtsPolicy, TxHow,
};

use super::{Act, Case, Log, Point, Scene, Script, Subject, alone, ensure, meet};

pub(super) const NOW: Duration = Duration::from_ns(0);
pub(super) const MS: fn(u64) -> Duration = Duration::from_ms;

/// A time of the script.
fn at(us: u64) -> Option<Instant> {
    Some(Instant::from_us(us))
}

/// A data frame with its number as sequence number and in its body.
pub(super) fn data(kind: Kind, to: MacAddr, from: MacAddr, number: u16) -> Vec<u8> {
    let mut m = vec![0; 24];
    m[..2].copy_from_slice(&FrameControl::new(kind, Flags::NONE).0);
    m[4..10].copy_from_slice(&to.0);
    m[10..16].copy_from_slice(&from.0);
    m[16..22].copy_from_slice(&from.0);
    m[22..24].copy_from_slice(&SequenceControl::new(number & 0xfff, 0).0.to_le_bytes());
    m.extend(number.to_be_bytes());
    m.extend([0xa5; 48]);
    m
}

pub(super) fn outcomes(log: &Log) -> Vec<Option<Outcome>> {
    (0..log.tokens.len())
        .map(|i| log.confirm(i).map(|c| c.outcome))
        .collect()
}

/// All requests ended like this, after this many attempts.
pub(super) fn all_are(log: &Log, outcome: Outcome, attempts: u16) -> Result<(), String> {
    let is = |c: &&Confirm| c.outcome == outcome && c.attempts == attempts;
    ensure(
        !log.tokens.is_empty() && log.confirms.iter().filter(is).count() == log.tokens.len(),
        format!(
            "expected {outcome:?} after {attempts} attempts, got {:?}",
            log.confirms
        ),
    )
}

/// Requests from the first node at its start.
pub(super) fn requests(
    subject: &mut dyn Subject,
    scene: Scene,
    make: impl Fn(MacAddr, MacAddr) -> Vec<(Vec<u8>, TxHow)>,
) -> Result<[Log; 2], String> {
    let [me, peer] = subject.addresses();
    let sends = make(me, peer)
        .into_iter()
        .map(|(frame, how)| (NOW, Act::Send(frame, how)));
    meet(subject, scene, [Script::new(sends.collect()), Script::default()])
}

pub(super) const ALL: &[Case] = &[
    Case {
        name: "outcome acked, and the frame is heard as it was sent",
        needs: &[Point::Acked, Point::Header],
        run: |subject| {
            let [me, peer] = subject.addresses();
            let rates = [Rate::OFDM_6, Rate::OFDM_24, Rate::OFDM_54];
            let [log, other] = requests(subject, Scene::default(), |me, peer| {
                let frame = |(n, rate): (usize, &Rate)| {
                    (data(Kind::DATA, peer, me, n as u16), TxHow::one_shot(*rate))
                };
                rates.iter().enumerate().map(frame).collect()
            })?;
            all_are(&log, Outcome::Acked, 1)?;
            let told: Vec<Rate> = log.confirms.iter().map(|c| c.rate).collect();
            let heard: Vec<Rate> = other.heard.iter().map(|h| h.1).collect();
            ensure(
                told == rates && heard == rates,
                format!("told {told:?}, heard {heard:?}"),
            )?;
            for (n, (frame, _)) in other.heard.iter().enumerate() {
                let sent = data(Kind::DATA, peer, me, n as u16);
                // Duration is the adapter's.
                ensure(
                    frame[..2] == sent[..2] && frame[4..] == sent[4..],
                    format!("frame {n} was changed"),
                )?;
            }
            Ok(Vec::new())
        },
    },
    Case {
        name: "outcome not acked: nobody is there, nobody is asked",
        needs: &[Point::NotAcked, Point::NoAck],
        run: |subject| {
            let (how, absent) = (subject.how(), subject.absent());
            let [log, other] = requests(subject, Scene::default(), |me, peer| {
                vec![
                    (data(Kind::DATA, absent, me, 1), how),
                    (data(Kind::DATA, peer, me, 2), how.no_ack()),
                    (
                        data(Kind::DATA, MacAddr::BROADCAST, me, 3),
                        TxHow::multi_shot(Rate::OFDM_6, 4),
                    ),
                ]
            })?;
            all_are(&log, Outcome::NotAcked, 1)?;
            ensure(
                other.heard.len() == 2,
                format!("{} heard of 2", other.heard.len()),
            )?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "outcome not acked after all tries",
        needs: &[Point::NotAcked, Point::AllTries],
        run: |subject| {
            let absent = subject.absent();
            let [log, _] = requests(subject, Scene::default(), |me, _| {
                vec![(
                    data(Kind::DATA, absent, me, 1),
                    TxHow::multi_shot(Rate::OFDM_6, 7),
                )]
            })?;
            all_are(&log, Outcome::NotAcked, 7)?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "outcome refused, with its reason and without a frame",
        needs: &[Point::Refused],
        run: |subject| {
            let how = subject.how();
            let [log, other] = requests(subject, Scene::default(), |me, peer| {
                let frame = || data(Kind::DATA, peer, me, 1);
                vec![
                    (Vec::new(), how),
                    (vec![0x08; 5], how),
                    (vec![0x08; radio::MAX_FRAME_OCTETS + 1], how),
                    (frame(), how.adapter(AdapterId(7))),
                ]
            })?;
            use Refusal::{BadFrame, NoAdapter};
            let expect = [BadFrame, BadFrame, BadFrame, NoAdapter].map(|why| Some(Outcome::Refused(why)));
            ensure(outcomes(&log) == expect, format!("{:?}", outcomes(&log)))?;
            ensure(
                log.confirms.iter().all(|c| c.attempts == 0),
                "attempts of a refused frame",
            )?;
            ensure(other.heard.is_empty(), "a refused frame was heard")?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "outcome refused, since there is no more room",
        needs: &[Point::Refused],
        run: |subject| {
            let how = subject.how();
            let scene = Scene {
                outstanding: Some(4),
                ..Scene::default()
            };
            let [log, other] = requests(subject, scene, |me, peer| {
                (0..20).map(|n| (data(Kind::DATA, peer, me, n), how)).collect()
            })?;
            let acked = log
                .confirms
                .iter()
                .filter(|c| c.outcome == Outcome::Acked)
                .count();
            let full = Outcome::Refused(Refusal::QueueFull);
            let refused = log.confirms.iter().filter(|c| c.outcome == full).count();
            ensure(
                acked >= 4 && refused > 0 && acked + refused == 20,
                format!("{:?}", outcomes(&log)),
            )?;
            ensure(
                other.heard.len() == acked,
                format!("{} heard, {acked} acked", other.heard.len()),
            )?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "outcome aborted, and nothing is heard",
        needs: &[Point::Aborted],
        run: |subject| {
            let how = subject.how();
            let [me, peer] = subject.addresses();
            let held = how.not_before(Instant::from_us(50_000));
            let plan = vec![
                (NOW, Act::Send(data(Kind::DATA, peer, me, 1), held)),
                (NOW, Act::Send(data(Kind::DATA, peer, me, 2), held)),
                (NOW, Act::Abort(0)),
                (MS(20), Act::Abort(1)),
            ];
            let [log, other] = meet(subject, Scene::default(), [Script::new(plan), Script::default()])?;
            all_are(&log, Outcome::Aborted, 0)?;
            ensure(other.heard.is_empty(), "an aborted frame was heard")?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "outcome expired, and what is in time is sent, and not before its time",
        needs: &[Point::Expired],
        run: |subject| {
            let how = subject.how();
            let [log, other] = requests(subject, Scene::default(), |me, peer| {
                let how = |from, to| TxHow {
                    not_before: at(from),
                    expires: at(to),
                    ..how
                };
                vec![
                    (data(Kind::DATA, peer, me, 1), how(20_000, 19_000)),
                    (data(Kind::DATA, peer, me, 2), how(30_000, 90_000)),
                ]
            })?;
            let expect = [Outcome::Expired, Outcome::Acked].map(Some);
            ensure(outcomes(&log) == expect, format!("{:?}", outcomes(&log)))?;
            ensure(
                log.confirm(0).is_some_and(|c| c.attempts == 0),
                "attempts of an expired frame",
            )?;
            ensure(
                other.heard.len() == 1,
                format!("{} heard of 1", other.heard.len()),
            )?;
            // The last plane that the host stamps is after the time to wait for.
            let stamps = &log.confirm(1).ok_or("no confirm")?.stamps;
            let [t1, t9] = [Plane::T1, Plane::T9].map(|p| stamps.get_host(p));
            let waited = t1.zip(t9).is_none_or(|(t1, t9)| t9.since(t1) >= MS(29));
            ensure(waited, format!("too early: {stamps:?}"))?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "RTS goes ahead or is refused, and an expiry is about the start of the exchange",
        needs: &[Point::Expired, Point::Header],
        run: |subject| {
            let how = TxHow {
                rts: RtsPolicy::Always,
                ..subject.how()
            };
            let [me, peer] = subject.addresses();
            // some end before they could begin, some while they are on their way, the last ones never
            let send = |n: u16| {
                let begins = Duration::from_us(5_000 * u64::from(n));
                let patience = Duration::from_us(if n < 30 { 40 * u64::from(n) } else { 200_000 });
                let how = how.expires(Instant::ZERO + begins + patience);
                (begins, Act::Send(data(Kind::DATA, peer, me, n), how))
            };
            let scripts = [Script::new((0..40).map(send).collect()), Script::default()];
            let [log, other] = meet(subject, Scene::default(), scripts)?;
            let refused = Outcome::Refused(Refusal::NotSupported);
            let cannot = outcomes(&log).iter().all(|o| *o == Some(refused));
            if cannot && other.heard.is_empty() {
                return Ok(vec!["RTS".into()]);
            }
            let ended = |c: &&Confirm| match c.outcome {
                Outcome::Acked => c.attempts == 1,
                Outcome::Expired => c.attempts == 0,
                _ => false,
            };
            ensure(
                log.confirms.iter().filter(ended).count() == 40,
                format!("{:?}", log.confirms),
            )?;
            let acked = outcomes(&log)
                .iter()
                .filter(|o| **o == Some(Outcome::Acked))
                .count();
            let last = (30..40).all(|n| log.confirm(n).is_some_and(|c| c.outcome == Outcome::Acked));
            ensure(last, format!("what had time was not sent: {:?}", outcomes(&log)))?;
            ensure(
                other.heard.len() == acked,
                format!("{} heard, {acked} acked", other.heard.len()),
            )?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "outcome unknown, where the status is lost",
        needs: &[Point::Unknown],
        run: |subject| {
            let how = subject.how();
            let scene = Scene {
                loses_statuses: true,
                ..Scene::default()
            };
            let [log, _] = requests(subject, scene, |me, peer| {
                (0..3).map(|n| (data(Kind::DATA, peer, me, n), how)).collect()
            })?;
            let unknown = outcomes(&log).iter().all(|o| *o == Some(Outcome::Unknown));
            ensure(unknown && log.tokens.len() == 3, format!("{:?}", outcomes(&log)))?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "the planes that the host says it stamps are stamped",
        needs: &[Point::Acked],
        run: |subject| {
            let how = subject.how();
            let [me, peer] = subject.addresses();
            let plan = vec![
                (NOW, Act::Get(AttributeName::Capabilities)),
                (NOW, Act::Send(data(Kind::DATA, peer, me, 1), how)),
            ];
            let log = alone(subject, plan)?;
            let Some(radio::Attribute::Capabilities(can)) = log.value(AttributeName::Capabilities) else {
                return Err("a host has to tell its capabilities".into());
            };
            let confirm = log.confirm(0).ok_or("no confirm")?;
            let stamped = |p: &Plane| confirm.stamps.get_host(*p).is_some();
            let (sees, blind): (Vec<Plane>, Vec<Plane>) = Plane::ALL.into_iter().partition(|p| can.sees(*p));
            let missing: Vec<_> = sees.iter().filter(|p| !stamped(p)).collect();
            ensure(missing.is_empty(), format!("not stamped: {missing:?}"))?;
            let extra: Vec<_> = blind.iter().filter(|p| stamped(p)).collect();
            ensure(extra.is_empty(), format!("stamped against its word: {extra:?}"))?;
            Ok(blind.iter().map(|p| format!("{p:?}")).collect())
        },
    },
    Case {
        name: "a beacon is told as a beacon",
        needs: &[Point::Beacon],
        run: |subject| {
            let how = subject.how();
            let [log, other] = requests(subject, Scene::default(), |me, _| {
                let mut beacon = data(Kind::BEACON, MacAddr::BROADCAST, me, 1);
                beacon.truncate(24);
                beacon.extend([0; 8]);
                beacon.extend([100, 0, 1, 0, 0, 0]); // 100 TU, an access point, no name.
                vec![(beacon, how.queue(Queue::Beacon))]
            })?;
            all_are(&log, Outcome::NotAcked, 1)?;
            let interval: Vec<u16> = other.beacons.iter().map(|b| b.1).collect();
            ensure(
                interval == [100] && other.heard.is_empty(),
                format!("heard {interval:?}"),
            )?;
            Ok(Vec::new())
        },
    },
];
