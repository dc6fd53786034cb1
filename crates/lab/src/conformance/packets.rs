//! Attributes of single packets, and what an adapter counts.

use frame::Rate;
use frame::mac::Kind;
use radio::{Attribute, AttributeName as Name, Instant, Outcome, Queue, SeriesList, SetError};

use super::attributes::capabilities;
use super::outcomes::{MS, NOW, data};
use super::{Act, Case, Point, alone, ensure};

/// Tries of a packet whose series is changed, where one was asked for.
const TRIES: u8 = 3;

pub(super) const ALL: &[Case] = &[
    Case {
        name: "a packet that waits can be read, and is gone when it has ended",
        needs: &[Point::Acked],
        run: |subject| {
            let how = subject.how();
            let [me, peer] = subject.addresses();
            let held = how.not_before(Instant::from_us(50_000));
            let plan = vec![
                (NOW, Act::Send(data(Kind::DATA, peer, me, 1), held)),
                (MS(20), Act::Look(0)),
                (MS(200), Act::Look(0)),
            ];
            let log = alone(subject, plan)?;
            let [waiting, over] = log.looks[..] else {
                return Err(format!("{} looks of 2", log.looks.len()));
            };
            ensure(over.is_none(), format!("it has ended, and is {over:?}"))?;
            match waiting {
                None => Ok(vec!["read Packet".into()]),
                Some(Attribute::Packet(token, state)) => {
                    ensure(token == log.tokens[0], "the state of another packet")?;
                    ensure(state.attempts == 0, format!("it waits, and is {state:?}"))?;
                    Ok(Vec::new())
                }
                Some(other) => Err(format!("asked for a packet, got {other:?}")),
            }
        },
    },
    Case {
        name: "the series of a packet that waits is changed as the host says, and that of no other",
        needs: &[Point::NotAcked],
        run: |subject| {
            let absent = subject.absent();
            let can = capabilities(subject)?;
            let series = SeriesList::one(Rate::OFDM_6, TRIES);
            let mine = Attribute::PacketSeries(radio::Token(u64::MAX), series);
            let [me, _] = subject.addresses();
            let held = subject.how().not_before(Instant::from_us(50_000));
            let plan = vec![
                (NOW, Act::Send(data(Kind::DATA, absent, me, 1), held)),
                (NOW, Act::Set(mine)),
                (MS(20), Act::Chain(0, series)),
            ];
            let log = alone(subject, plan)?;
            let answers: Vec<_> = log.answers.iter().map(|(_, answer)| *answer).collect();
            let confirm = log.confirm(0).ok_or("no confirm")?;
            let ended = (confirm.outcome, confirm.attempts);
            if can.settable.contains(&mine) {
                let expect = [Err(SetError::NotFound), Ok(())];
                ensure(answers == expect, format!("answers {answers:?}"))?;
                let all = (Outcome::NotAcked, TRIES.into());
                ensure(ended == all, format!("ended as {ended:?}, not as {all:?}"))?;
                return Ok(Vec::new());
            }
            let expect = [Err(SetError::NotSupported); 2];
            ensure(
                answers == expect,
                format!("not settable, and answers {answers:?}"),
            )?;
            ensure(
                ended == (Outcome::NotAcked, 1),
                format!("not changed, and ended as {ended:?}"),
            )?;
            Ok(vec!["set PacketSeries".into()])
        },
    },
    Case {
        name: "counters count what was sent, and a queue is empty when all has ended",
        needs: &[Point::Acked],
        run: |subject| {
            let how = subject.how();
            let [me, peer] = subject.addresses();
            let send = |n| (NOW, Act::Send(data(Kind::DATA, peer, me, n), how));
            let mut plan: Vec<_> = (0..3).map(send).collect();
            plan.extend(
                [Name::Counters, Name::QueueLength(Queue::BestEffort)].map(|n| (MS(200), Act::Get(n))),
            );
            let log = alone(subject, plan)?;
            if let Some(Attribute::Counters(c)) = log.value(Name::Counters) {
                let right = (c.tx_frames, c.tx_acked) == (3, 3) && c.tx_time_us > 0;
                ensure(right, format!("three frames, all acked: {c:?}"))?;
            }
            if let Some(Attribute::QueueLength(_, left)) = log.value(Name::QueueLength(Queue::BestEffort)) {
                ensure(left == 0, format!("{left} wait where nothing does"))?;
            }
            Ok(Vec::new())
        },
    },
];
