//! A stick that is put to sleep while there are frames: it gets none while it sleeps, and does not sleep while it has one.

use ar9170::driver::{BusEvent, Config, Hybrid};
use ar9170::emulated::Knobs;
use frame::Rate;
use radio::{
    AdapterId, Attribute, Checked, Confirm, Duration, Event, Instant, Outcome, Protocol, Radio, TxHow,
};

use crate::air::{Air, PEER, acked, data, file, plugged};

/// Frames of each round, half of them asked for before the sleep and half behind it.
const FRAMES: u16 = 6;
const ROUNDS: u64 = 50;

/// Sends, sleeps, sends, and wakes up a while later; the whole again and again.
#[derive(Clone, Default)]
struct Sleeper {
    next: Option<Instant>,
    changes: u64,
    sent: u16,
    confirms: Vec<Confirm>,
    refused: usize,
}

impl Sleeper {
    fn set(radio: &mut dyn Radio, awake: bool) {
        let token = radio.token();
        radio.set(token, AdapterId::FIRST, Attribute::Reception(awake));
    }

    fn send(&mut self, radio: &mut dyn Radio) {
        for _ in 0..FRAMES / 2 {
            self.sent += 1;
            let token = radio.token();
            radio.request(token, &data(PEER, self.sent), &TxHow::one_shot(Rate::OFDM_6));
        }
    }
}

impl Protocol for Sleeper {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => self.next = Some(now),
            Event::Confirm(confirm) => self.confirms.push(confirm),
            Event::Set(answer) => self.refused += usize::from(answer.result.is_err()),
            _ => {}
        }
        if self.next.take_if(|t| *t <= now).is_none() {
            return;
        }
        let awake = self.changes % 2 == 1;
        match awake {
            true => Sleeper::set(radio, true),
            false => {
                self.send(radio);
                Sleeper::set(radio, false);
                self.send(radio);
            }
        }
        self.changes += 1;
        // how far frames and commands have come by then is another each time
        let wait = Duration::from_us(100 + 173 * (self.changes % 37));
        self.next = (self.changes < 2 * ROUNDS).then(|| now + wait);
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }
}

#[test]
fn no_frame_reaches_a_stick_that_sleeps() {
    let file = file();
    for turn_ns in [0, 20_000, 150_000] {
        let knobs = Knobs {
            turn_ns,
            ..Knobs::default()
        };
        let node: Checked<Sleeper> = Checked::strict(Sleeper::default());
        let buffers = Hybrid::<16, 8_192>::default();
        let mut computer = plugged::<_, _, 64, 600>(&file, Config::default(), knobs, node, buffers);
        let mut air = Air::new(acked);
        air.run(&mut computer, Instant::from_us(5_000_000));
        let node = computer.into_protocol();
        let sleeper = node.inner();
        let acked = sleeper.confirms.iter().filter(|c| c.outcome == Outcome::Acked);
        let all = usize::from(FRAMES) * ROUNDS as usize;
        // the stick reports what it gets in its sleep as sent in vain
        assert_eq!((acked.count(), sleeper.confirms.len()), (all, all), "{turn_ns}");
        assert_eq!(sleeper.refused, 0);
        assert!(
            air.asleep_with.len() as u64 >= ROUNDS,
            "{}",
            air.asleep_with.len()
        );
        assert_eq!(air.asleep_with.iter().sum::<usize>(), 0, "{:?}", air.asleep_with);
    }
}

/// Sleeps at 2 s and is to wake up at 4 s.
#[derive(Clone, Default)]
struct Wakes {
    due: Vec<(Instant, bool)>,
    refused: usize,
}

impl Protocol for Wakes {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if let Event::Set(answer) = event {
            self.refused += usize::from(answer.result.is_err());
        }
        while let Some((_, awake)) = self.due.pop_if(|(at, _)| *at <= now) {
            Sleeper::set(radio, awake);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.due.last().map(|(at, _)| *at)
    }
}

/// It is pulled out in its sleep, and woken meanwhile: that is refused, and the stick that is plugged in again hears.
#[test]
fn a_stick_that_was_woken_while_it_was_away_is_awake() {
    let file = file();
    let s = |s: u64| Instant::from_us(s * 1_000_000);
    for (wakes, hears) in [(s(4), true), (s(100), false)] {
        let due = vec![(wakes, true), (s(2), false)];
        let node = Wakes { due, refused: 0 };
        let buffers = Hybrid::<16, 8_192>::default();
        let knobs = Knobs::default();
        let mut computer = plugged::<_, _, 64, 600>(&file, Config::default(), knobs, node, buffers);
        let mut air = Air::new(acked);
        air.run(&mut computer, s(3));
        let receiver = |air: &Air| {
            let is = |a: &&Attribute| matches!(a, Attribute::Reception(_));
            air.attributes.iter().rev().find(is).copied()
        };
        assert_eq!(receiver(&air), Some(Attribute::Reception(false)));
        computer.disturb(air.now, BusEvent::Detached);
        air.run(&mut computer, s(5));
        computer.disturb(air.now, BusEvent::Attached);
        air.run(&mut computer, s(20));
        assert!(computer.is_up());
        assert_eq!(receiver(&air), Some(Attribute::Reception(hears)));
        assert_eq!(computer.protocol().refused, usize::from(hears));
    }
}
