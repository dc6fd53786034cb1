//! What the receiver measures of the path, and when it speaks.

use super::Config;
use radio::{Duration, Instant};

/// Packets in a row that are too slow, or too fast, before the receiver of adaptive ATP speaks (thesis, section
/// 5.1.3).
pub const RUN: u8 = 10;
/// Lost packets after which it does.
pub const DROPS: u64 = 2;
/// Below this share of the spacing a delay counts as room to go faster: 1 - phi, with phi as the 0.1 of the authors
/// of ATP (the 1.1 of the thesis would make it negative).
pub const FASTER: f64 = 0.9;
/// Epochs without data after which the receiver falls silent.
pub const QUIET_EPOCHS: u8 = 3;

/// After so many packets in a row that no hop has told a delay nobody on the way knows it any more: of the average all but half a percent
/// would be forgotten, 0.85^32. A hop that died would else steer the sender for ever by its last word.
pub const UNTOLD: u8 = 32;

/// Packets in an epoch that adjusts itself. With fewer the feedback takes the air of the data that it is about, with more it comes too late.
pub const EPOCH_PACKETS: u64 = 10;
/// The shortest epoch of that kind. Both ends must know it: a sender that expects feedback sooner than the receiver speaks would
/// take each for missed.
pub const LEAST_EPOCH: Duration = Duration::from_ms(20);
/// The longest one: that of the authors of ATP.
pub const MOST_EPOCH: Duration = Duration::from_ms(1_000);

/// Packets that a sender with such epochs keeps in the slowest node. ATP keeps one: a packet each D. A node that has one on average has
/// none for a part of the time, and its air lies idle.
pub const PACKETS: f64 = 2.5;

/// The measures that a packet brings along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Longest delay on its way, 0 if nobody knew.
    pub delay_us: u32,
    /// Its sender's spacing, 0 if not told.
    pub spacing_us: u32,
    /// Hops it passed.
    pub hops: u8,
    /// Packets that are missing since the one before.
    pub drops: u64,
}

/// An epoch that adjusts itself to a spacing.
pub fn epoch(spacing: Duration) -> Duration {
    spacing.times(EPOCH_PACKETS).clamp(LEAST_EPOCH, MOST_EPOCH)
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Meter {
    memory: f64,
    epoch: Duration,
    /// Epochs follow the spacing.
    adjusting: bool,
    average_us: Option<f64>,
    hops: u8,
    /// When the next feedback is due, while data come.
    due: Option<Instant>,
    heard_at: Instant,
    quiet_epochs: u8,
    drops: u64,
    slower: u8,
    faster: u8,
    /// Packets in a row that no hop had told a delay.
    untold: u8,
}

impl Meter {
    /// A receiver that has heard nothing.
    pub fn new(config: &Config) -> Meter {
        Meter {
            memory: config.memory,
            epoch: config.epoch,
            adjusting: false,
            average_us: None,
            hops: 0,
            due: None,
            heard_at: Instant::ZERO,
            quiet_epochs: 0,
            drops: 0,
            slower: 0,
            faster: 0,
            untold: 0,
        }
    }

    /// The other end's epoch, from its call; 0 means that it follows the spacing that packets tell, and that the last delay counts
    /// alone. Hops tell averages; to average them again hides a queue until it is long, and then keeps the sender slow when it is gone.
    pub fn set_epoch(&mut self, us: u32) {
        self.adjusting = us == 0;
        if !self.adjusting {
            self.epoch = Duration::from_us(us.into()).clamp(Duration::from_ms(1), Duration::from_ms(10_000));
        }
    }

    /// The average, 0 if there is none.
    pub fn delay_us(&self) -> f64 {
        self.average_us.unwrap_or(0.0)
    }

    /// Hops of the last packet.
    pub fn hops(&self) -> u8 {
        self.hops
    }

    /// A probe: its delay replaces the average.
    pub fn probe(&mut self, delay_us: u32, hops: u8) {
        if delay_us > 0 {
            self.average_us = Some(f64::from(delay_us));
            self.untold = 0;
        }
        self.hops = hops;
    }

    /// A packet of data. True if the receiver must speak at once.
    pub fn data(&mut self, now: Instant, sample: &Sample) -> bool {
        self.heard_at = now;
        self.quiet_epochs = 0;
        if self.adjusting && sample.spacing_us > 0 {
            self.epoch = epoch(Duration::from_us(sample.spacing_us.into()));
        }
        self.due.get_or_insert(now + self.epoch);
        self.hops = sample.hops;
        let delay_us = f64::from(sample.delay_us);
        if sample.delay_us > 0 {
            let old = self.average_us.unwrap_or(delay_us);
            let memory = if self.adjusting { 0.0 } else { self.memory };
            self.average_us = Some(memory * old + (1.0 - memory) * delay_us);
            self.untold = 0;
        } else {
            self.untold = self.untold.saturating_add(1);
            self.average_us = self.average_us.filter(|_| self.untold < UNTOLD);
        }
        self.drops += sample.drops;
        if sample.spacing_us == 0 {
            return false;
        }
        let packets = if self.adjusting { PACKETS } else { 1.0 };
        let spacing_us = packets * f64::from(sample.spacing_us);
        let run = |length: u8, on: bool| if on { length.saturating_add(1) } else { 0 };
        self.slower = run(self.slower, delay_us > spacing_us);
        self.faster = run(self.faster, sample.delay_us > 0 && delay_us < FASTER * spacing_us);
        self.drops >= DROPS || self.slower >= RUN || self.faster >= RUN
    }

    /// When the next feedback is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Whether no data have come for half an epoch, so that the sender should repeat what is not acknowledged.
    pub fn is_quiet(&self, now: Instant) -> bool {
        now.since(self.heard_at).as_ns() >= self.epoch.as_ns() / 2
    }

    /// For how long the newest packet of data has waited to be acknowledged, in microseconds.
    pub fn held_us(&self, now: Instant) -> u32 {
        u32::try_from(now.since(self.heard_at).as_us()).unwrap_or(u32::MAX)
    }

    /// A feedback goes out: a new epoch begins. After some without data there are no more.
    pub fn speak(&mut self, now: Instant) {
        self.drops = 0;
        self.slower = 0;
        self.faster = 0;
        if self.is_quiet(now) {
            self.quiet_epochs = self.quiet_epochs.saturating_add(1);
        }
        self.due = (self.quiet_epochs < QUIET_EPOCHS)
            .then(|| now + self.epoch)
            .filter(|_| self.due.is_some());
    }

    /// Nothing more will come.
    pub fn stop(&mut self) {
        self.due = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    fn sample(delay_us: u32, spacing_us: u32) -> Sample {
        Sample {
            delay_us,
            spacing_us,
            hops: 1,
            drops: 0,
        }
    }

    #[test]
    fn average_and_epochs() {
        let mut m = Meter::new(&Config::standard());
        assert_eq!((m.delay_us(), m.deadline()), (0.0, None));
        m.data(at(5), &sample(1_000, 0));
        m.data(at(6), &sample(2_000, 0));
        m.data(at(7), &sample(0, 0));
        assert_eq!((m.delay_us(), m.deadline()), (1_150.0, Some(at(1_005))));
        m.probe(700, 3);
        assert_eq!((m.delay_us(), m.hops()), (700.0, 3));
        // three epochs without data, then silence
        for n in 1..=3 {
            assert_eq!(m.deadline(), Some(at(5 + n * 1_000)));
            assert!(m.is_quiet(at(5 + n * 1_000)));
            m.speak(at(5 + n * 1_000));
        }
        assert_eq!(m.deadline(), None);
        m.data(at(9_000), &sample(1, 0));
        assert_eq!((m.deadline(), m.is_quiet(at(9_499))), (Some(at(10_000)), false));
        assert!(m.is_quiet(at(9_500)), "half an epoch");
    }

    /// A hop that dies tells nothing any more: its last word does not count for ever.
    #[test]
    fn a_delay_that_nobody_tells_any_more_is_forgotten() {
        let mut m = Meter::new(&Config::standard());
        m.data(at(1), &sample(1_000, 0));
        let silent = |m: &mut Meter, n| {
            for _ in 0..n {
                m.data(at(2), &sample(0, 0));
            }
            m.delay_us()
        };
        assert_eq!(silent(&mut m, 31), 1_000.0);
        m.data(at(3), &sample(1_000, 0));
        assert_eq!(silent(&mut m, 31), 1_000.0, "counted anew");
        assert_eq!(silent(&mut m, 1), 0.0);
        m.data(at(4), &sample(500, 0));
        assert_eq!(m.delay_us(), 500.0);
    }

    #[test]
    fn epochs_that_follow_the_spacing() {
        let mut m = Meter::new(&Config::sdmac());
        m.set_epoch(0);
        for (spacing_us, epoch_ms) in [(20_000, 200), (100, 20), (900_000, 1_000)] {
            m.data(at(1), &sample(spacing_us, spacing_us));
            m.speak(at(1));
            assert_eq!(m.deadline(), Some(at(1 + epoch_ms)));
        }
        m.data(at(2), &sample(20_000, 0));
        m.speak(at(2));
        assert_eq!(m.deadline(), Some(at(1_002)), "the last one that was told");
        m.set_epoch(40_000);
        m.data(at(3), &sample(900_000, 900_000));
        m.speak(at(3));
        assert_eq!(m.deadline(), Some(at(43)), "told, and kept");
    }

    /// From a millisecond to ten seconds, whatever the other end says.
    #[test]
    fn an_epoch_that_is_told_is_bounded() {
        for (us, epoch_us) in [
            (1, 1_000),
            (999, 1_000),
            (1_001, 1_001),
            (9_999_999, 9_999_999),
            (10_000_001, 10_000_000),
            (u32::MAX, 10_000_000),
        ] {
            let mut m = Meter::new(&Config::standard());
            m.set_epoch(us);
            m.data(at(1), &sample(1_000, 0));
            assert_eq!(m.deadline(), Some(at(1) + Duration::from_us(epoch_us)));
        }
    }

    /// What hops tell is an average already.
    #[test]
    fn whose_epoch_adjusts_itself_believes_the_last_delay() {
        let after_a_queue = |epoch_us| {
            let mut m = Meter::new(&Config::sdmac());
            m.set_epoch(epoch_us);
            m.data(at(1), &sample(50_000, 0));
            m.data(at(2), &sample(1_000, 0));
            m.delay_us()
        };
        assert_eq!(after_a_queue(0), 1_000.0);
        let remembered = after_a_queue(40_000);
        assert!((remembered - 42_650.0).abs() < 1e-6, "{remembered}");
    }

    #[test]
    fn three_triggers() {
        let mut m = Meter::new(&Config::adaptive());
        // stops at the first that makes the receiver speak
        let run = |m: &mut Meter, us, n| (0..n).any(|_| m.data(at(1), &sample(us, 1_000)));
        assert!(!run(&mut m, 1_001, 9));
        assert!(!run(&mut m, 1_000, 1), "breaks the run");
        assert!(!run(&mut m, 1_001, 9) && run(&mut m, 1_001, 1));
        m.speak(at(2));
        assert_eq!(m.deadline(), Some(at(42)), "a new epoch");
        assert!(!run(&mut m, 1_001, 9), "counted anew");
        assert!(!run(&mut m, 900, 20), "nine tenths is near enough");
        assert!(!run(&mut m, 899, 9) && run(&mut m, 899, 1));
        m.speak(at(3));
        let lost = |drops| Sample {
            drops,
            ..sample(950, 1_000)
        };
        assert!(!m.data(at(4), &lost(1)) && m.data(at(4), &lost(1)));
        m.speak(at(5));
        assert!(m.data(at(6), &lost(2)));
        // who keeps more packets in a node has a shorter spacing
        let mut m = Meter::new(&Config::sdmac());
        m.set_epoch(0);
        assert!(!run(&mut m, 2_499, 20) && run(&mut m, 2_501, 10));
        m.speak(at(7));
        assert!(!run(&mut m, 2_251, 20) && run(&mut m, 2_249, 10));
        // without a spacing nothing makes the receiver speak early
        let mut m = Meter::new(&Config::aggressive());
        assert!(!(0..50).any(|_| m.data(
            at(1),
            &Sample {
                spacing_us: 0,
                ..lost(9)
            }
        )));
    }
}
