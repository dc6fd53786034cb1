//! Neither of the two stations of a measurement allocates once it runs.

use frame::{MacAddr, Rate};
use radio::{AdapterId, Confirm, Duration, Event, Indication, Instant, Outcome, Protocol, Radio, Stamps};

use super::shots::{Shots, Task};
use super::talk::{BLOCK, Said, Talk};
use super::{Ear, MOST_SHOTS};
use crate::counting::{Still, allocations};

const SHOOTER: MacAddr = MacAddr::local(1);
const EAR: MacAddr = MacAddr::local(2);

fn indication(frame: &[u8]) -> Event<'_> {
    Event::Indication(Indication {
        frame,
        rate: Rate::OFDM_54,
        signal_dbm: None,
        tsf: None,
        adapter: AdapterId::FIRST,
        stamps: Stamps::NONE,
    })
}

/// What a station says to another.
fn say(to: &mut impl Protocol, now: Instant, said: &Said<'_>, radio: &mut dyn Radio) {
    let mut frame = [0; 1_600];
    let length = said.emit(50, 1, &mut frame).unwrap();
    to.handle(now, indication(&frame[..length]), radio);
}

#[test]
fn who_shoots_allocates_nothing() {
    let count = 3 * BLOCK;
    let task = Task {
        to: EAR,
        run: 7,
        rate: Rate::OFDM_54,
        payload: 50,
        period: Duration::from_us(1_000),
        count,
    };
    let (mut shots, mut radio) = (Shots::new(task, SHOOTER), Still::new());
    let bits = [0x5a; BLOCK as usize / 8];
    let mut now = Instant::ZERO;
    let found = allocations(|| {
        shots.handle(now, Event::Start, &mut radio);
        while !shots.is_shot() {
            now += task.period;
            shots.handle(now, Event::Timer, &mut radio);
            while let Some(token) = radio.take() {
                let confirm = Confirm::without_air(token, Outcome::NotAcked, task.rate);
                shots.handle(now, Event::Confirm(confirm), &mut radio);
            }
            // a stranger's
            shots.handle(now, indication(&[0x48; 30]), &mut radio);
        }
        shots.ask(now);
        for block in 0..3 {
            shots.handle(now, Event::Timer, &mut radio);
            let talk = Talk::Heard { block, bits: &bits };
            let said = Said {
                run: 7,
                from: EAR,
                to: SHOOTER,
                talk,
            };
            say(&mut shots, now, &said, &mut radio);
        }
    });
    assert_eq!(found, 0);
    assert!(shots.is_done());
    assert_eq!(
        (shots.shots.len(), shots.foreign.len()),
        (count as usize, count as usize)
    );
    assert_eq!(shots.heard.unwrap().count(), count / 2);
}

#[test]
fn who_hears_allocates_nothing() {
    let (mut ear, mut radio) = (Ear::new(EAR), Still::new());
    let found = allocations(|| {
        // more runs than are kept
        for run in 0..20 {
            for number in [0, 1, 70_000, MOST_SHOTS - 1] {
                let talk = Talk::Shot { number };
                let from = SHOOTER;
                let said = Said {
                    run,
                    from,
                    to: EAR,
                    talk,
                };
                say(&mut ear, Instant::ZERO, &said, &mut radio);
            }
            let talk = Talk::Ask { block: 0 };
            let from = SHOOTER;
            let said = Said {
                run,
                from,
                to: EAR,
                talk,
            };
            say(&mut ear, Instant::ZERO, &said, &mut radio);
            assert!(radio.take().is_some(), "an answer");
        }
    });
    assert_eq!(found, 0);
    let runs = ear.runs().into_iter();
    let kept: Vec<(u32, u32)> = runs.map(|run| (run.number, run.heard.count())).collect();
    assert_eq!(kept, (4..20).map(|run| (run, 4)).collect::<Vec<_>>());
}
