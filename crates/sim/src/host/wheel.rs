//! The timer wheel of Linux 2.6 and 3 (`kernel/time/timer.c` up to 4.7): timers that expire with the tick of the kernel, HZ times a
//! second. They are kept by their distance, in jiffies, in five categories: 256 buckets of one jiffy, and four times 64
//! buckets, each as long as the whole category before. When the hand has gone round in one category, a bucket of the next one
//! is emptied into those before it (*cascade*), within the interrupt of that tick. So a timer expires in exactly its jiffy,
//! however far it is away, and what distance costs is the work of moving it.

/// Buckets of the categories, as powers of two.
const BITS: [u32; 5] = [8, 6, 6, 6, 6];

/// Timers, each with a number of its own.
#[derive(Clone, Debug)]
pub struct TimerWheel {
    /// The next jiffy to be served.
    next: u64,
    categories: [Vec<Vec<(u64, u32)>>; 5],
}

/// What a tick did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tick {
    /// Numbers of the timers that have expired.
    pub expired: Vec<u32>,
    /// Timers that were moved into a category before theirs.
    pub moved: u32,
}

impl Default for TimerWheel {
    fn default() -> Self {
        TimerWheel::new()
    }
}

impl TimerWheel {
    /// Empty, at jiffy 0.
    pub fn new() -> TimerWheel {
        TimerWheel {
            next: 0,
            categories: BITS.map(|bits| vec![Vec::new(); 1 << bits]),
        }
    }

    /// The jiffy that the next tick serves.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The category of a timer that expires so many jiffies after the next tick, 0 to 4; `None`: no category is so far.
    pub fn category(&self, jiffies: u64) -> Option<usize> {
        let mut reach = 0;
        BITS.iter().position(|bits| {
            reach += bits;
            jiffies >> reach == 0
        })
    }

    /// A timer that expires in `jiffy`; one that is over already expires with the next tick.
    ///
    /// Returns its category, or `None` where it is too far away and was not taken.
    pub fn add(&mut self, jiffy: u64, timer: u32) -> Option<usize> {
        let jiffy = jiffy.max(self.next);
        let category = self.category(jiffy - self.next)?;
        let bucket = self.bucket(category, jiffy);
        self.categories[category][bucket].push((jiffy, timer));
        Some(category)
    }

    /// Serves the next jiffy.
    pub fn tick(&mut self) -> Tick {
        let mut done = Tick::default();
        // a category is emptied when all before it have gone round
        for category in 1..BITS.len() {
            if self.bucket(category - 1, self.next) != 0 {
                break;
            }
            let bucket = self.bucket(category, self.next);
            for (jiffy, timer) in std::mem::take(&mut self.categories[category][bucket]) {
                done.moved += 1;
                self.add(jiffy, timer);
            }
        }
        let bucket = self.bucket(0, self.next);
        let expired = std::mem::take(&mut self.categories[0][bucket]);
        done.expired = expired.into_iter().map(|(_, timer)| timer).collect();
        self.next += 1;
        done
    }

    fn bucket(&self, category: usize, jiffy: u64) -> usize {
        let shift: u32 = BITS[..category].iter().sum();
        (jiffy >> shift) as usize & ((1 << BITS[category]) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Cause, Stream};

    #[test]
    fn categories_are_full_rounds_of_those_before() {
        let wheel = TimerWheel::new();
        let limits = [256, 256 << 6, 256 << 12, 256 << 18, 256 << 24];
        for (category, limit) in limits.into_iter().enumerate() {
            assert_eq!(wheel.category(limit - 1), Some(category));
            assert_eq!(wheel.category(limit), (category < 4).then_some(category + 1));
        }
        assert_eq!(TimerWheel::new().add(1 << 32, 7), None);
    }

    /// Whenever it is set and however far away it is, a timer expires in its jiffy.
    #[test]
    fn every_timer_expires_in_its_jiffy() {
        let mut dice = Stream::new(1, 0, Cause::Host);
        let mut wheel = TimerWheel::new();
        let mut due = std::collections::BTreeMap::new();
        let mut timers = 0;
        for now in 0..200_000_u64 {
            assert_eq!(wheel.next(), now);
            if dice.below(20) == 0 {
                let bits = 1 + dice.below(17);
                let far = dice.below(1 << bits);
                wheel.add(now + far, timers).unwrap();
                due.entry(now + far).or_insert_with(Vec::new).push(timers);
                timers += 1;
            }
            let mut expired = wheel.tick().expired;
            expired.sort_unstable();
            assert_eq!(expired, due.remove(&now).unwrap_or_default(), "jiffy {now}");
        }
        assert!(timers > 9_000);
    }

    /// What is moved in a tick are the timers of a bucket: each timer once for every category that it comes through.
    #[test]
    fn the_work_comes_every_256_jiffies() {
        let mut wheel = TimerWheel::new();
        let far = [300, 301, 511, 512, 20_000];
        for (timer, jiffy) in far.into_iter().enumerate() {
            wheel.add(jiffy, timer as u32);
        }
        let moved: Vec<(u64, u32)> = (0..20_001)
            .map(|jiffy| (jiffy, wheel.tick().moved))
            .filter(|t| t.1 > 0)
            .collect();
        // 20,000 is in the third category, in the bucket from 16,384 on, and then in the one from 19,968 on
        assert_eq!(moved, [(256, 3), (512, 1), (16_384, 1), (19_968, 1)]);
    }

    #[test]
    fn what_is_over_expires_with_the_next_tick() {
        let mut wheel = TimerWheel::new();
        for _ in 0..10 {
            wheel.tick();
        }
        assert_eq!(wheel.add(3, 1), Some(0));
        assert_eq!(wheel.tick().expired, [1]);
    }
}
