//! What Minstrel knows of one rate, and how often it tries it.

use super::minstrel::ONE;
use frame::Rate;

/// Intervals for which a rate that carries less than the best one is left alone, at most.
pub const PAUSE: u8 = 15;
/// The same of a rate of which little is known yet.
const UNKNOWN_PAUSE: u8 = 3;
/// Of each frame that was counted so much is left after the next interval, of 128 parts.
const KEEP_OF_128: u32 = 112;
/// Without new ones they fade until they weigh so many frames.
const FADED: u32 = 16;
/// Frames that an average weighs at most: so it is never more certain than that, and can be moved by a few new ones.
const MOST_FRAMES: u32 = 256;
/// So many frames tell enough of a rate that cannot win.
const KNOWN: u32 = 4;
/// Looks without a frame after which such a rate is sampled again.
const SELDOM: u8 = 10;
/// Samples in one interval of a rate that works nearly always, nearly never, or worse than the best.
const SAMPLES: u8 = 4;

/// What is known of one rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateState {
    /// The rate.
    pub rate: Rate,
    /// Share of acknowledged frames, averaged; 2^16 is all.
    pub probability: u32,
    /// What it carries, frames of the present length per second times 2^16; 0 below a probability of 10 %.
    pub throughput: u64,
    /// Tries that fit into 6 ms, backoff included.
    pub tries: u8,
    /// Tries at present: fewer if it nearly always works or nearly never.
    pub tries_now: u8,
    attempts: u32,
    successes: u32,
    /// Frames that the average weighs, and the acknowledged ones of them, times 128.
    weight: u32,
    hits: u32,
    /// Looks without a frame.
    pub(super) skipped: u8,
    /// Length of its present pause, and what is left of it, in looks.
    pause: u8,
    left_alone: u8,
    /// Samples left in this interval; `None`: no limit.
    pub(super) samples_left: Option<u8>,
    /// It would carry more than the best one if no frame were lost.
    pub(super) may_win: bool,
}

impl RateState {
    pub(super) const fn new(rate: Rate, tries: u8) -> RateState {
        RateState {
            rate,
            probability: 0,
            throughput: 0,
            tries,
            tries_now: tries,
            attempts: 0,
            successes: 0,
            weight: 0,
            hits: 0,
            skipped: 0,
            pause: 0,
            left_alone: 0,
            samples_left: None,
            may_win: true,
        }
    }

    /// So many tries at this rate, the last of which was acknowledged or not.
    pub(super) fn count(&mut self, tries: u16, acked: bool) {
        self.attempts += u32::from(tries);
        self.successes += u32::from(acked && tries > 0);
    }

    /// Whether a frame was acknowledged at this rate.
    pub(super) fn is_proven(&self) -> bool {
        self.hits > 0 || self.successes > 0
    }

    /// Averages, and tells the share of the last interval alone, if there was a frame.
    pub(super) fn average(&mut self) -> Option<u32> {
        if self.attempts == 0 {
            self.skipped = self.skipped.saturating_add(1);
            if self.weight > FADED * 128 {
                self.fade();
            }
            return None;
        }
        self.skipped = 0;
        let share = |part: u32, of: u32| (u64::from(part) * u64::from(ONE) / u64::from(of)) as u32;
        let now = share(self.successes, self.attempts);
        if self.probability < ONE / 10 && self.successes > 0 {
            // it was dead, and is not: what was before says nothing
            (self.weight, self.hits) = (0, 0);
        }
        self.fade();
        // an interval has fewer than 2^24 frames
        self.weight += self.attempts * 128;
        self.hits += self.successes * 128;
        self.probability = share(self.hits, self.weight);
        if self.weight > MOST_FRAMES * 128 {
            self.weight = MOST_FRAMES * 128;
            self.hits = (u64::from(self.weight) * u64::from(self.probability) / u64::from(ONE)) as u32;
        }
        (self.attempts, self.successes) = (0, 0);
        Some(now)
    }

    fn fade(&mut self) {
        // at most MOST_FRAMES * 128 each
        self.weight = self.weight * KEEP_OF_128 / 128;
        self.hits = self.hits * KEEP_OF_128 / 128;
    }

    /// Whether it is left alone, and how often it is tried: `promises` says whether it carried as much as the best one in the
    /// last interval, if there was a frame.
    pub(super) fn plan(&mut self, promises: Option<bool>) {
        match promises {
            Some(true) => (self.pause, self.left_alone) = (0, 0),
            Some(false) => {
                let most = if self.weight < FADED / 2 * 128 {
                    UNKNOWN_PAUSE
                } else {
                    PAUSE
                };
                self.pause = (2 * self.pause + 1).min(most);
                self.left_alone = self.pause;
            }
            None => self.left_alone = self.left_alone.saturating_sub(1),
        }
        let sure = self.probability > ONE / 100 * 95 || self.probability < ONE / 10;
        self.tries_now = if sure { (self.tries / 2).min(2) } else { self.tries };
        if self.tries_now == 0 {
            self.tries_now = 2;
        }
        self.samples_left = match self.left_alone {
            0 => (sure || self.pause > 0).then_some(SAMPLES),
            _ => Some(0),
        };
    }

    /// Whether frames that the best rate has lost may go at this one: it is likelier to arrive by more than chance explains (two
    /// standard deviations), or nothing is known of it, or the best rate loses so little that it does not matter.
    pub(super) fn helps(&self, best: &RateState) -> bool {
        let likelier_by = u64::from(self.probability.saturating_sub(best.probability));
        let variance = u64::from(best.probability) * u64::from(ONE - best.probability);
        let enough = likelier_by.pow(2) * u64::from(self.weight / 128) > 4 * variance;
        best.probability >= ONE / 10 * 9 || self.weight == 0 || enough
    }

    /// Whether it is enough to sample it about once a second: it would carry less than the best one even if it lost nothing, and a few
    /// frames have told of it.
    pub(super) fn is_known(&self) -> bool {
        !self.may_win && self.weight >= KNOWN * 128 && self.skipped < SELDOM
    }
}
