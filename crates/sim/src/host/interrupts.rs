//! The interrupt of a timer: on the timer's own grid, late by itself now and then, and behind the service of other
//! interrupts on the one processor that serves them all. An outage, such as printing to a serial console, is an interrupt
//! that comes rarely and takes long.
//!
//! Interrupts do not interrupt each other; they are served in the order in which they come. The tick of the kernel is one of
//! them where timers are in its [wheel](super::wheel).

use super::wheel::TimerWheel;
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
    /// Timers expire with the kernel's tick; `None`: they have an interrupt of their own.
    pub wheel: Option<WheelConfig>,
}

/// The tick of the kernel, and what is in its wheel of timers beside ours.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WheelConfig {
    /// Ticks in a second; Linux 2.6 and 3 can be built with 100, 250, 300 and 1000. More than 0.
    pub hz: u32,
    /// Timers of others. One that has expired is set again.
    pub timers: u32,
    /// They are set for up to so many jiffies, all equally likely. More than 0, and less than 2^32.
    pub within: u64,
    /// Service of a tick, ns.
    pub tick_ns: u64,
    /// And for each timer that expires or is moved, ns.
    pub timer_ns: u64,
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
    wheel: Option<(WheelConfig, TimerWheel)>,
}

impl WheelConfig {
    /// When the tick of a jiffy comes, ns.
    fn tick_at(&self, jiffy: u64) -> u64 {
        jiffy.saturating_mul(1_000_000_000).div_ceil(u64::from(self.hz))
    }

    /// The first jiffy whose tick does not come before `at`, ns.
    fn jiffy(&self, at: u64) -> u64 {
        let jiffy = (u128::from(at) * u128::from(self.hz) / 1_000_000_000) as u64;
        if self.tick_at(jiffy) < at {
            jiffy + 1
        } else {
            jiffy
        }
    }
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
        let next = next.collect();
        let wheel = config.wheel.map(|w| {
            let mut wheel = TimerWheel::new();
            for timer in 0..w.timers {
                wheel.add(1 + stream.below(w.within), timer);
            }
            (w, wheel)
        });
        Interrupts {
            next,
            config,
            stream,
            free: 0,
            wheel,
        }
    }

    /// When the interrupt of a timer comes that is set at `now` for `due`.
    pub fn comes(&self, now: u64, due: u64) -> u64 {
        let grain = self.config.granularity_ns.max(1);
        let wait = due.saturating_sub(now).checked_next_multiple_of(grain);
        let at = now.saturating_add(wait.unwrap_or(u64::MAX));
        match &self.config.wheel {
            // in its jiffy, wherever it is in the wheel
            Some(wheel) => wheel.tick_at(wheel.jiffy(at)),
            None => at,
        }
    }

    /// How long the interrupt of a timer waits that comes now: behind those of others, and for itself. What was served is over, so time must not
    /// go back from one call to the next.
    pub fn waits(&mut self, now: u64) -> u64 {
        self.serve_until(now);
        let behind = self.free.saturating_sub(now);
        behind + self.own()
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
            let first = first.filter(|i| self.next[*i] <= until);
            let tick = self.wheel.as_ref().map(|(w, wheel)| w.tick_at(wheel.next()));
            if let Some(at) = tick.filter(|t| *t <= until && first.is_none_or(|i| *t <= self.next[i])) {
                self.tick(at);
                continue;
            }
            let Some(i) = first else { return };
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

impl Interrupts {
    /// The tick of the kernel that comes at `at`.
    fn tick(&mut self, at: u64) {
        let Some((config, wheel)) = &mut self.wheel else {
            return;
        };
        let done = wheel.tick();
        let touched = u64::from(done.moved) + done.expired.len() as u64;
        self.free = self.free.max(at) + config.tick_ns + touched * config.timer_ns;
        for timer in done.expired {
            let far = self.stream.below(config.within);
            wheel.add(wheel.next() + far, timer);
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

    /// How long after `due` a timer is served that is set at `now`.
    fn lateness(i: &mut Interrupts, now: u64, due: u64) -> u64 {
        let comes = i.comes(now, due);
        comes - due + i.waits(comes)
    }

    #[test]
    fn times_to_wait_are_rounded_up() {
        let mut i = interrupts(InterruptConfig {
            granularity_ns: 128_000,
            ..InterruptConfig::default()
        });
        assert_eq!(lateness(&mut i, 0, 250_000), 6_000);
        assert_eq!(lateness(&mut i, 256_000, 1_256_000), 24_000);
        assert_eq!(lateness(&mut i, 1_280_000, 1_408_000), 0);
        assert_eq!(
            lateness(&mut i, 2_000_000, 1_999_000),
            1_000,
            "it is late already"
        );
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
            match lateness(&mut i, t, t) {
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
        let all: Vec<u64> = (1..=10_000).map(|n| lateness(&mut i, 0, n * 337_777)).collect();
        let waited: Vec<u64> = all.iter().copied().filter(|w| *w > 0).collect();
        assert!((900..1_100).contains(&waited.len()), "{}", waited.len());
        let mean = waited.iter().sum::<u64>() / waited.len() as u64;
        assert!(
            (4_500..5_500).contains(&mean) && waited.iter().all(|w| *w <= 10_000),
            "{mean}"
        );
    }

    fn wheel(hz: u32, timers: u32) -> Interrupts {
        interrupts(InterruptConfig {
            wheel: Some(WheelConfig {
                hz,
                timers,
                within: 100_000,
                tick_ns: 2_000,
                timer_ns: 500,
            }),
            ..InterruptConfig::default()
        })
    }

    /// A timer in the wheel comes with the first tick that is not before it, and behind the service of that tick.
    #[test]
    fn a_wheel_turns_with_the_tick() {
        for (hz, due_us, late_us) in [
            (1_000, 250, 750),
            (1_000, 1_000, 0),
            (1_000, 1_001, 999),
            (250, 250, 3_750),
            (100, 250, 9_750),
        ] {
            let late = lateness(&mut wheel(hz, 0), 0, due_us * 1_000);
            assert_eq!(late, late_us * 1_000 + 2_000, "{hz} Hz, {due_us} us");
        }
        // a third of 10 ms is no whole number of ns
        assert_eq!(lateness(&mut wheel(300, 0), 0, 3_333_333), 1 + 2_000);
        assert_eq!(lateness(&mut wheel(300, 0), 0, 3_333_334), 2_000);
    }

    /// Timers that are far away are moved in every 256th tick: there, and only there, ours wait for all that are moved.
    #[test]
    fn every_256th_tick_is_long() {
        let mut i = wheel(1_000, 10_000);
        let late: Vec<u64> = (1..=2_048)
            .map(|ms| lateness(&mut i, 0, ms * 1_000_000))
            .collect();
        let of = |long: bool| -> Vec<u64> {
            let ticks = late
                .iter()
                .zip(1_u64..)
                .filter(|(_, ms)| ms.is_multiple_of(256) == long);
            ticks.map(|(late, _)| *late).collect()
        };
        // 10,000 timers within 100,000 jiffies: 26 in a bucket of 256, moved there, and one in ten ticks expires
        let (short, long) = (of(false), of(true));
        assert!(*short.iter().max().unwrap() < 2_000 + 10 * 500, "{short:?}");
        assert!(*long.iter().min().unwrap() > 2_000 + 10 * 500, "{long:?}");
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
        let all: Vec<u64> = (1..=100_000).map(|n| lateness(&mut i, 0, n * 100_000)).collect();
        let ends = all.windows(2).filter(|w| w[0] > 0 && w[1] == 0).count();
        let held = all.iter().filter(|w| **w > 0).count();
        assert!((4..20).contains(&ends), "{ends}");
        assert!((38..=42).contains(&(held / ends)), "{held} {ends}");
    }
}
