//! How long a sender is silent that was told that its path has failed.
//!
//! A node that gives such a notice has no route, or has tried several packets in a row, each of them as often as its adapter does. Then either the link is gone, or so many
//! contend for the air that hardly anything gets through, and one less is what helps the others: all of them at a lower rate contend as much as
//! before, because each aims at a share of the delays that it sees. So a sender is silent before it probes, twice as long each
//! time, until some feedback in a row has said that the path holds. Ours; the thesis leaves notices out.

use crate::dice::Dice;
use radio::Duration;

/// The first silence, on average.
const SHORTEST: Duration = Duration::from_ms(200);
/// The longest, on average. A path that is there again is found after one and a half of that at most.
const LONGEST: Duration = Duration::from_ms(4_000);
/// Feedbacks about data, in a row, after which the path holds.
const HOLDS: u8 = 4;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Silence {
    mean: Duration,
    heard: u8,
    dice: Dice,
}

impl Silence {
    /// Senders with other numbers draw other silences, so that those that were told together part.
    pub fn new(number: u32) -> Silence {
        Silence {
            mean: SHORTEST,
            heard: 0,
            dice: Dice(number.into()),
        }
    }

    /// One of half to one and a half of the mean.
    pub fn draw(&mut self) -> Duration {
        self.heard = 0;
        let mean_ns = self.mean.as_ns();
        Duration::from_ns(mean_ns / 2 + self.dice.below(mean_ns))
    }

    /// It is over: the next one is twice as long.
    pub fn end(&mut self) {
        self.mean = self.mean.times(2).min(LONGEST);
    }

    /// A feedback about data that have come.
    pub fn heard(&mut self) {
        self.heard = self.heard.saturating_add(1);
        if self.heard >= HOLDS {
            self.mean = SHORTEST;
        }
    }

    /// None has come.
    pub fn missed(&mut self) {
        self.heard = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_long_each_time_until_the_path_holds() {
        let mut silence = Silence::new(7);
        let around = |s: &mut Silence, ms: u64| {
            let us = s.draw().as_us();
            s.end();
            assert!((ms * 500..ms * 1_500).contains(&us), "{us} us, not about {ms} ms");
        };
        for ms in [200, 400, 800, 1_600, 3_200, 4_000, 4_000] {
            around(&mut silence, ms);
        }
        for _ in 0..3 {
            silence.heard();
        }
        silence.missed();
        silence.heard();
        around(&mut silence, 4_000);
        for _ in 0..4 {
            silence.heard();
        }
        around(&mut silence, 200);
    }

    #[test]
    fn those_that_were_told_together_part() {
        let silences = [1, 2, 3].map(|number| Silence::new(number).draw());
        assert!(
            silences[0] != silences[1] && silences[1] != silences[2],
            "{silences:?}"
        );
    }
}
