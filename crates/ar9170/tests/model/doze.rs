//! A stick that is put to sleep while there are frames: it gets none while it sleeps, and does not sleep while it has one.

use ar9170::codec::{Eeprom, Firmware};
use ar9170::driver::{Config, Hybrid};
use ar9170::emulated::{Knobs, Plugged};
use frame::Rate;
use radio::{
    AdapterId, Attribute, Checked, Confirm, Duration, Event, Instant, Outcome, Protocol, Radio, TxHow,
};

use crate::air::{Air, ME, PEER, acked, data, file};

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
        let eeprom = Eeprom {
            ghz5: true,
            ghz2_4: true,
            domain: 0,
            address: ME,
            receive_chains: 1,
            transmit_chains: 1,
        };
        let knobs = Knobs {
            turn_ns,
            ..Knobs::default()
        };
        let node: Checked<Sleeper> = Checked::strict(Sleeper::default());
        let buffers = Hybrid::<16, 8_192>::default();
        let firmware = Firmware::parse(&file).expect("a good file");
        let mut computer: Plugged<'_, _, _, 64, 600> =
            Plugged::new(firmware, Config::default(), eeprom, knobs, node, buffers);
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
