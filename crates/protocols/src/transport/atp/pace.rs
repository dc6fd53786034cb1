//! When packets go that are a spacing apart, by a timer that may be late.

use radio::{Duration, Instant};

/// Packets that a sender makes up for at most; or those of so long a time, if that are more: a busy kernel lets another thread run for it.
const MADE_UP: f64 = 4.0;
const TURN: Duration = Duration::from_ms(4);

/// The instants at which packets are due.
///
/// A late packet does not delay the next ones, but they follow no closer than half of a spacing. What a timer was late by beyond that
/// is a debt, which the packets after it pay off, each with up to half of a spacing, so that the mean rate is kept. A long pause is not
/// made up for, but for 4 packets or 4 ms of it.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// When the last packet was due, or half of a spacing before it went if that is later.
    base: Option<Instant>,
    /// In packets, so that it stays what it is when the rate changes.
    debt: f64,
    /// Since when a packet waits at a rate that is no lower than this one: only what it is late by since then is the timer's fault.
    waits_since: Option<Instant>,
}

impl Pace {
    /// A packet was sent, and it is taken that another one waits.
    pub fn sent(&mut self, now: Instant, spacing: Duration) {
        let packets = |time: Duration| time.as_ns() as f64 / spacing.as_ns().max(1) as f64;
        let closest = now - Duration::from_ns(spacing.as_ns() / 2);
        let due = self.base.map_or(now, |b| b + spacing);
        let base = due.max(closest).min(now);
        if let Some(since) = self.waits_since {
            self.debt += packets(base.since(due.max(since)));
        }
        self.debt = self.debt.min(packets(TURN).max(MADE_UP));
        let owed = Duration::from_ns((self.debt * spacing.as_ns() as f64) as u64);
        let paid = owed.min(base.since(closest));
        self.debt -= packets(paid);
        self.base = Some(base - paid);
        self.waits_since = Some(now);
    }

    /// When the next packet may go.
    pub fn next(&self, spacing: Duration) -> Instant {
        self.base.map_or(Instant::ZERO, |b| b + spacing)
    }

    /// The spacing is shorter from now on: packets that are due at once by that are not late.
    pub fn faster(&mut self, now: Instant) {
        self.waits_since = self.waits_since.and(Some(now));
    }

    /// Nothing waits: the next packet is not late, and what was owed is forgotten.
    pub fn idle(&mut self) {
        self.debt = 0.0;
        self.waits_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Dice;
    use std::vec::Vec;

    const SPACING: Duration = Duration::from_us(1_000);
    const HALF: Duration = Duration::from_us(500);

    /// Sends packets by a timer that is late by so much, one after the other, and tells the times between them.
    fn gaps(
        pace: &mut Pace,
        from: Instant,
        spacing: Duration,
        late_us: impl IntoIterator<Item = u64>,
    ) -> Vec<Duration> {
        let mut last = from;
        pace.sent(from, spacing);
        let gap = |late_us| {
            let now = last.max(pace.next(spacing)) + Duration::from_us(late_us);
            pace.sent(now, spacing);
            now.since(core::mem::replace(&mut last, now))
        };
        late_us.into_iter().map(gap).collect()
    }

    /// One wake-up of ten is as much as three spacings late, the others at most a quarter.
    #[test]
    fn the_mean_rate_is_kept_by_a_timer_that_is_late() {
        let mut dice = Dice::new(7);
        let late = (0..10_000).map(|_| match dice.within(0..=9) {
            0 => dice.within(0..=3_000),
            _ => dice.within(0..=250),
        });
        let gaps = gaps(&mut Pace::default(), Instant::from_us(1), SPACING, late);
        let mean_us = gaps.iter().map(|g| g.as_ns() as f64).sum::<f64>() / 1e3 / gaps.len() as f64;
        assert!((990.0..=1_010.0).contains(&mean_us), "{mean_us}");
        assert!(gaps.iter().all(|g| *g >= HALF));
    }

    /// Three spacings late: the next packets follow as closely as they may until the three are made up for.
    #[test]
    fn what_a_timer_was_late_by_is_made_up_for() {
        let late = [3_000, 0, 0, 0, 0, 0, 0, 0, 0];
        let gaps = gaps(&mut Pace::default(), Instant::from_us(1), SPACING, late);
        let us: Vec<u64> = gaps.iter().map(|g| g.as_us()).collect();
        assert_eq!(us, [4_000, 500, 500, 500, 500, 500, 500, 1_000, 1_000]);
    }

    #[test]
    fn of_a_long_pause_little_is_made_up_for() {
        for (spacing_us, packets) in [(10_000, 4), (1_000, 4), (100, 40)] {
            let spacing = Duration::from_us(spacing_us);
            let late = [50 * spacing_us].into_iter().chain([0; 100]);
            let gaps = gaps(&mut Pace::default(), Instant::from_us(1), spacing, late);
            // half of a spacing at once, as of any late packet
            let close = gaps.iter().filter(|g| g.times(2) == spacing).count();
            assert_eq!(close, 2 * packets + 1);
            assert_eq!(gaps[gaps.len() - 1], spacing);
        }
    }

    /// A packet that goes when it comes, or when the rate goes up, is no late one.
    #[test]
    fn what_is_no_fault_of_a_timer_is_not_made_up_for() {
        let at = Instant::from_us;
        let mut idle = Pace::default();
        idle.sent(at(1_000), SPACING);
        idle.idle();
        let mut slow = Pace::default();
        slow.sent(at(1_000), SPACING.times(10));
        slow.faster(at(5_000));
        for mut pace in [idle, slow] {
            assert_eq!(pace.next(SPACING), at(2_000));
            assert_eq!(gaps(&mut pace, at(5_000), SPACING, [0, 0]), [HALF, SPACING]);
        }
    }

    /// Half of a packet at a slow rate is half of a packet at a fast one.
    #[test]
    fn a_debt_of_a_slow_rate_is_no_burst_of_a_fast_one() {
        let at = Instant::from_us;
        let mut pace = Pace::default();
        let slow = SPACING.times(100);
        pace.sent(at(1), slow);
        pace.sent(at(200_001), slow);
        pace.faster(at(201_001));
        let gaps = gaps(&mut pace, at(201_001), SPACING, [0; 4]);
        assert_eq!(gaps, [HALF, HALF, SPACING, SPACING]);
    }
}
