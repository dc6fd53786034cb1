//! Clocks, deadlines at a steady pace, and when to stop.

use std::sync::atomic::{AtomicBool, Ordering};

pub(super) use crate::clock::{monotonic_ns, realtime_ns, sleep_until, timespec};

/// Over each window of this length a measuring thread leaves its CPU to others ...
const WINDOW_NS: u64 = 100_000_000;
/// ... for at least this long, so that a spinning `SCHED_FIFO` thread cannot freeze the computer, and stays
/// below the kernel's own limit for real-time threads (95 % by default), which would cut into the samples.
const REST_NS: u64 = 10_000_000;

/// An empty buffer whose memory has been touched, so that pushing up to `capacity` neither allocates nor faults.
pub(super) fn touched_buffer(capacity: usize) -> Vec<u64> {
    let mut buffer = vec![u64::MAX; capacity];
    std::hint::black_box(&mut buffer);
    buffer.clear();
    buffer
}

/// When to give up: the caller's flag, or the end of the time budget.
#[derive(Debug, Clone, Copy)]
pub(super) struct Halt<'a> {
    /// Set by the caller, from another thread or a signal handler.
    pub stop: &'a AtomicBool,
    /// End of the budget on `CLOCK_MONOTONIC`.
    pub until_ns: u64,
}

impl Halt<'_> {
    /// Whether to stop, given that it is `now_ns` on `CLOCK_MONOTONIC`.
    pub fn reached(&self, now_ns: u64) -> bool {
        now_ns >= self.until_ns || self.stop.load(Ordering::Relaxed)
    }
}

/// Deadlines, one in each period, that do not wait for the thread they wake.
///
/// A thread that was held up for five periods is late for five deadlines and records five samples, as every
/// moment in which a timer might have fired must count. Within the periods the deadlines are spread evenly (steps
/// of the golden ratio), so that they do not keep one phase to the kernel's tick; neighbours are 0.61 to 1.62
/// periods apart.
#[derive(Debug)]
pub(super) struct Pace {
    period_ns: u64,
    /// Factor of the golden ratio, in parts of 2^32; 0 for steady deadlines.
    phase: u32,
    start_ns: u64,
    index: u32,
    window_ns: u64,
    slept_ns: u64,
}

impl Pace {
    /// The first deadline is at least one period after `now_ns`.
    pub fn new(now_ns: u64, period_ns: u64) -> Self {
        Self {
            period_ns,
            phase: 0x9E37_79B9, // 2^32 / golden ratio
            start_ns: now_ns + period_ns,
            index: 0,
            window_ns: now_ns,
            slept_ns: 0,
        }
    }

    /// The same with deadlines exactly one period apart, as the slots of a MAC are.
    pub fn steady(now_ns: u64, period_ns: u64) -> Self {
        Self {
            phase: 0,
            ..Self::new(now_ns, period_ns)
        }
    }

    /// The next deadline on `CLOCK_MONOTONIC`.
    pub fn next_deadline(&mut self) -> u64 {
        let phase = self.index.wrapping_mul(self.phase);
        let deadline = self.start_ns
            + u64::from(self.index) * self.period_ns
            + ((u64::from(phase) * self.period_ns) >> 32);
        self.index += 1;
        deadline
    }

    /// To be called at `now_ns` before a wait that will sleep until `wake_ns` (not at all if that is past).
    /// Says until when the thread must rest first, if it has not slept enough of late; the schedule then starts
    /// anew after the rest, and the deadline in hand is void.
    pub fn rest(&mut self, now_ns: u64, wake_ns: u64) -> Option<u64> {
        self.slept_ns += wake_ns.saturating_sub(now_ns);
        if now_ns < self.window_ns + WINDOW_NS {
            return None;
        }
        let owed = REST_NS.saturating_sub(self.slept_ns);
        let end = now_ns + owed;
        (self.window_ns, self.slept_ns) = (end, 0);
        if owed == 0 {
            return None;
        }
        (self.start_ns, self.index) = (end + self.period_ns, 0);
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_period_has_one_deadline_and_neighbours_keep_apart() {
        let mut pace = Pace::new(5_000, 1_000_000);
        let deadlines: Vec<u64> = (0..10_000).map(|_| pace.next_deadline()).collect();
        for (index, &deadline) in deadlines.iter().enumerate() {
            assert_eq!((deadline - 1_005_000) / 1_000_000, index as u64);
        }
        for pair in deadlines.windows(2) {
            assert!((610_000..=1_620_000).contains(&(pair[1] - pair[0])), "{pair:?}");
        }
        // The phases fill the period: each of 100 equal parts gets its share of 100, give or take 2.
        let mut parts = [0; 100];
        for deadline in deadlines {
            parts[((deadline - 1_005_000) % 1_000_000 / 10_000) as usize] += 1;
        }
        assert!(parts.iter().all(|&n| (98..=102).contains(&n)), "{parts:?}");
    }

    #[test]
    fn steady_deadlines_are_one_period_apart() {
        let mut pace = Pace::steady(5_000, 250_000);
        let deadlines: Vec<u64> = (0..4).map(|_| pace.next_deadline()).collect();
        assert_eq!(deadlines, [255_000, 505_000, 755_000, 1_005_000]);
    }

    #[test]
    fn a_thread_that_never_sleeps_rests_a_tenth_of_the_time() {
        let mut pace = Pace::new(0, 1_000_000);
        let (mut now, mut rested) = (0, 0);
        while now < 10_000_000_000 {
            match pace.rest(now, 0) {
                Some(end) => {
                    rested += end - now;
                    now = end;
                    assert!(pace.next_deadline() >= now + 1_000_000);
                }
                None => now += 1_000_000,
            }
        }
        assert!((900_000_000..=1_000_000_000).contains(&rested), "{rested}");
    }

    #[test]
    fn a_thread_that_sleeps_is_left_alone() {
        let mut pace = Pace::new(0, 1_000_000);
        for now in (0..2_000_000_000).step_by(1_000_000) {
            assert_eq!(pace.rest(now, now + 150_000), None);
        }
    }

    #[test]
    fn halts_at_the_flag_and_at_the_end_of_the_budget() {
        let stop = AtomicBool::new(false);
        let halt = Halt {
            stop: &stop,
            until_ns: 100,
        };
        assert!(!halt.reached(99));
        assert!(halt.reached(100));
        stop.store(true, Ordering::Relaxed);
        assert!(halt.reached(0));
    }
}
