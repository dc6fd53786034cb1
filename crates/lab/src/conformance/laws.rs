//! The seven laws. The law checker watches every case; these are about them.

use frame::Rate;
use frame::mac::{Header, Kind};
use radio::checked::MAX_ACTIONS;
use radio::{Duration, Instant, Outcome, Refusal};

use super::outcomes::{MS, NOW, all_are, data, outcomes, requests};
use super::{Act, Case, Point, Scene, Script, alone, ensure, meet};

pub(super) const ALL: &[Case] = &[
    Case {
        name: "law 1: each of many requests gets one confirm, however it ends",
        needs: &[Point::Refused, Point::Aborted, Point::Expired],
        run: |subject| {
            let (how, absent) = (subject.how(), subject.absent());
            let [me, peer] = subject.addresses();
            let mut plan = Vec::new();
            for number in 0..40_u16 {
                let frame = |to| data(Kind::DATA, to, me, number);
                let act = match number % 5 {
                    0 => Act::Send(frame(peer), how),
                    1 => Act::Send(frame(absent), how),
                    2 => Act::Send(Vec::new(), how),
                    3 => Act::Send(frame(peer), how.not_before(Instant::from_us(40_000))),
                    _ => {
                        let late = how.not_before(Instant::from_us(9_000));
                        Act::Send(frame(peer), late.expires(Instant::from_us(8_000)))
                    }
                };
                plan.push((NOW, act));
            }
            plan.extend((0..40).filter(|n| n % 5 == 3).map(|n| (NOW, Act::Abort(n))));
            let log = alone(subject, plan)?;
            ensure(
                log.confirms.len() == 40,
                format!("{} confirms of 40", log.confirms.len()),
            )?;
            let expect = |n: usize| match n % 5 {
                0 => Outcome::Acked,
                1 => Outcome::NotAcked,
                2 => Outcome::Refused(Refusal::BadFrame),
                3 => Outcome::Aborted,
                _ => Outcome::Expired,
            };
            let got = outcomes(&log);
            let wrong = (0..40).find(|n| got[*n] != Some(expect(*n)));
            ensure(
                wrong.is_none(),
                format!("request {wrong:?} ended otherwise: {got:?}"),
            )?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "laws 1 and 2: taking back what has ended, or twice, does nothing",
        needs: &[],
        run: |subject| {
            let how = subject.how();
            let [me, peer] = subject.addresses();
            let plan = vec![
                (NOW, Act::Send(data(Kind::DATA, peer, me, 1), how)),
                (NOW, Act::Send(Vec::new(), how)),
                (NOW, Act::Abort(1)),
                (MS(100), Act::Abort(0)),
                (MS(100), Act::Abort(0)),
            ];
            let log = alone(subject, plan)?;
            let expect = [Outcome::Acked, Outcome::Refused(Refusal::BadFrame)].map(Some);
            ensure(outcomes(&log) == expect, format!("{:?}", outcomes(&log)))?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "laws 3 and 4: timers come, none of them early, and time goes forward",
        needs: &[],
        run: |subject| {
            let times = [1, 2, 3, 1_000, 1_001, 20_000, 250_000].map(Duration::from_us);
            let log = alone(subject, times.map(|t| (t, Act::Wake)).into())?;
            ensure(!log.timers.is_empty(), "no timer came")?;
            let early = log.timers.iter().find(|(due, came)| came < due);
            ensure(early.is_none(), format!("early: {early:?}"))?;
            // One event may serve several that were due; the last of all has come.
            let last = log.timers.iter().map(|t| t.1).max();
            ensure(
                last >= Some(times[6]),
                format!("the last one never came: {:?}", log.timers),
            )?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "law 5: confirms of one queue and frames of one sender come in their order",
        needs: &[],
        run: |subject| {
            let how = subject.how();
            let [me, peer] = subject.addresses();
            let send = |n: u16| {
                let every = Duration::from_us(2_000 * u64::from(n));
                (every, Act::Send(data(Kind::DATA, peer, me, n), how))
            };
            let scripts = [Script::new((0..50).map(send).collect()), Script::default()];
            let [log, heard] = meet(subject, Scene::default(), scripts)?;
            let order: Vec<_> = log.confirms.iter().map(|c| c.token).collect();
            ensure(order == log.tokens, "confirms out of order")?;
            let number = |(frame, _): &(Vec<u8>, Rate)| {
                let body = Header::parse(frame).ok()?.body();
                body.first_chunk().map(|octets| u16::from_be_bytes(*octets))
            };
            let numbers: Vec<u16> = heard.heard.iter().filter_map(number).collect();
            ensure(
                numbers == (0..50).collect::<Vec<_>>(),
                format!("heard {numbers:?}"),
            )?;
            Ok(Vec::new())
        },
    },
    Case {
        name: "laws 6 and 7: as many actions as are allowed are all done, in order",
        needs: &[],
        run: |subject| {
            let how = subject.how();
            let logs = requests(subject, Scene::default(), |me, peer| {
                let frame = |n| (data(Kind::DATA, peer, me, n), how);
                (0..MAX_ACTIONS as u16).map(frame).collect()
            })?;
            all_are(&logs[0], Outcome::Acked, 1)?;
            let order: Vec<_> = logs[0].confirms.iter().map(|c| c.token).collect();
            ensure(order == logs[0].tokens, "done in another order")?;
            Ok(Vec::new())
        },
    },
];
