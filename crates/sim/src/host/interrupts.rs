//! The interrupt of a timer: on the timer's own grid, late by itself now and then, and behind the service of other
//! interrupts on the one processor that serves them all. An outage, such as printing to a serial console, is an interrupt
//! that comes rarely and takes long.
//!
//! Interrupts do not interrupt each other; they are served in the order in which they come.

use crate::rng::{Cause, Stream};

/// What is known of a host's interrupts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InterruptConfig {
    /// Times to wait are rounded up to whole multiples of this, ns; 0 or 1: they are not. The beacon timer (SWBA) of
    /// Atheros adapters has 128 us.
    pub granularity_ns: u64,
    /// How late the timer itself is. What is left of 1 is on time.
    pub late: Vec<Late>,
    /// The other interrupts.
    pub others: Vec<Other>,
}

/// A class of lateness: all values in it are equally likely.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Late {
    /// Probability.
    pub probability: f64,
    /// Least, ns.
    pub from_ns: u64,
    /// Most, ns; not less.
    pub to_ns: u64,
}

/// Interrupts of another device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Other {
    /// From one to the next, ns: exactly, or on average if they are random.
    pub every_ns: u64,
    /// They come at random (Poisson).
    pub random: bool,
    /// Shortest service, ns.
    pub from_ns: u64,
    /// Longest service, ns; not less. All values between are equally likely.
    pub to_ns: u64,
}

/// Interrupts in the course of time.
#[derive(Clone, Debug)]
pub(crate) struct Interrupts {
    config: InterruptConfig,
    stream: Stream,
    /// When the next of each of the others comes.
    next: Vec<u64>,
    /// When all that have come are served.
    free: u64,
}

impl InterruptConfig {
    /// Those of a node, with a stream of their own.
    pub(crate) fn start(self, seed: u64, node: u32) -> Interrupts {
        Interrupts::new(self, Stream::new(seed, u64::from(node) | 1 << 40, Cause::Host))
    }
}

impl Interrupts {
    fn new(config: InterruptConfig, mut stream: Stream) -> Interrupts {
        // periodic ones have phases of their own
        let next = config.others.iter().map(|o| match o.random {
            true => stream.exponential(o.every_ns as f64) as u64,
            false => stream.below(o.every_ns.max(1)),
        });
        Interrupts {
            next: next.collect(),
            config,
            stream,
            free: 0,
        }
    }

    /// How long after `due` a timer is served that is set at `now`. Times to come must not be asked for before earlier
    /// ones: what was served is over.
    pub fn late_ns(&mut self, now: u64, due: u64) -> u64 {
        let grain = self.config.granularity_ns.max(1);
        let comes = now + due.saturating_sub(now).next_multiple_of(grain);
        self.serve_until(comes);
        let behind = self.free.saturating_sub(comes);
        comes - due + behind + self.own()
    }

    fn own(&mut self) -> u64 {
        let mut left = self.stream.unit();
        for late in &self.config.late {
            if left < late.probability {
                return between(&mut self.stream, late.from_ns, late.to_ns);
            }
            left -= late.probability;
        }
        0
    }

    fn serve_until(&mut self, until: u64) {
        loop {
            let first = (0..self.next.len()).min_by_key(|i| self.next[*i]);
            let Some(i) = first.filter(|i| self.next[*i] <= until) else {
                return;
            };
            let Other {
                every_ns,
                random,
                from_ns,
                to_ns,
            } = self.config.others[i];
            let service = between(&mut self.stream, from_ns, to_ns);
            self.free = self.free.max(self.next[i]) + service;
            let pause = match random {
                true => self.stream.exponential(every_ns as f64) as u64,
                false => every_ns,
            };
            // without a pause time would stand still
            self.next[i] += pause.max(1);
        }
    }
}

fn between(stream: &mut Stream, from: u64, to: u64) -> u64 {
    from + stream.below(to.saturating_sub(from) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupts(config: InterruptConfig) -> Interrupts {
        Interrupts::new(config, Stream::new(1, 1, Cause::Host))
    }

    #[test]
    fn times_to_wait_are_rounded_up() {
        let mut i = interrupts(InterruptConfig {
            granularity_ns: 128_000,
            ..InterruptConfig::default()
        });
        assert_eq!(i.late_ns(0, 250_000), 6_000);
        assert_eq!(i.late_ns(256_000, 1_256_000), 24_000);
        assert_eq!(i.late_ns(1_280_000, 1_408_000), 0);
        assert_eq!(i.late_ns(2_000_000, 1_999_000), 1_000, "it is late already");
    }

    #[test]
    fn classes_of_lateness_come_as_often_as_they_say() {
        let late = |probability, from_ns, to_ns| Late {
            probability,
            from_ns,
            to_ns,
        };
        let mut i = interrupts(InterruptConfig {
            late: vec![late(0.2, 10, 19), late(0.05, 100, 199)],
            ..InterruptConfig::default()
        });
        let mut counts = [0; 3];
        for t in 0..20_000 {
            match i.late_ns(t, t) {
                0 => counts[0] += 1,
                10..=19 => counts[1] += 1,
                100..=199 => counts[2] += 1,
                other => panic!("{other}"),
            }
        }
        assert!(
            (14_700..15_300).contains(&counts[0]) && (900..1_100).contains(&counts[2]),
            "{counts:?}"
        );
    }

    /// One other interrupt of 10 us every 100 us: one tenth of the timers wait, 5 us on average.
    #[test]
    fn a_timer_waits_for_what_is_served() {
        let mut i = interrupts(InterruptConfig {
            others: vec![Other {
                every_ns: 100_000,
                random: false,
                from_ns: 10_000,
                to_ns: 10_000,
            }],
            ..InterruptConfig::default()
        });
        let all: Vec<u64> = (1..=10_000).map(|n| i.late_ns(0, n * 337_777)).collect();
        let waited: Vec<u64> = all.iter().copied().filter(|w| *w > 0).collect();
        assert!((900..1_100).contains(&waited.len()), "{}", waited.len());
        let mean = waited.iter().sum::<u64>() / waited.len() as u64;
        assert!(
            (4_500..5_500).contains(&mean) && waited.iter().all(|w| *w <= 10_000),
            "{mean}"
        );
    }

    /// An outage of 4 ms once in a second: what is due during it comes at its end, one behind the other.
    #[test]
    fn an_outage_holds_up_what_is_due() {
        let mut i = interrupts(InterruptConfig {
            others: vec![Other {
                every_ns: 1_000_000_000,
                random: true,
                from_ns: 4_000_000,
                to_ns: 4_000_000,
            }],
            ..InterruptConfig::default()
        });
        let all: Vec<u64> = (1..=100_000).map(|n| i.late_ns(0, n * 100_000)).collect();
        let ends = all.windows(2).filter(|w| w[0] > 0 && w[1] == 0).count();
        let held = all.iter().filter(|w| **w > 0).count();
        assert!((4..20).contains(&ends), "{ends}");
        assert!((38..=42).contains(&(held / ends)), "{held} {ends}");
    }
}
