//! Timer lateness: how long after the time asked for does a thread run?

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::Samples;
use super::kind::Mechanism;
use super::pace::{Halt, Pace, monotonic_ns, sleep_until, timespec, touched_buffer};
use super::thread::Seat;

/// Measures `samples` wake-ups at the given seat. `spin_ns` is for [`Mechanism::Hybrid`].
pub(super) fn lateness(
    seat: Seat,
    mechanism: Mechanism,
    samples: usize,
    period_ns: u64,
    spin_ns: u64,
    halt: Halt<'_>,
) -> io::Result<Samples> {
    let mut ns = touched_buffer(samples);
    let waiter = Waiter::new(mechanism, spin_ns)?;
    let ns = seat.run(move || {
        let mut pace = Pace::new(monotonic_ns(), period_ns);
        while ns.len() < samples {
            let deadline_ns = pace.next_deadline();
            let now_ns = monotonic_ns();
            if halt.reached(now_ns) {
                break;
            }
            if let Some(end_ns) = pace.rest(now_ns, waiter.sleep_end(deadline_ns)) {
                sleep_until(end_ns);
                continue;
            }
            ns.push(waiter.wait(deadline_ns)? - deadline_ns);
        }
        Ok(ns)
    })?;
    Ok(Samples {
        interrupted: ns.len() < samples,
        ns,
    })
}

struct Waiter {
    mechanism: Mechanism,
    spin_ns: u64,
    timer: Option<OwnedFd>,
}

impl Waiter {
    fn new(mechanism: Mechanism, spin_ns: u64) -> io::Result<Self> {
        let timer = match mechanism {
            Mechanism::Timerfd => Some(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?),
            _ => None,
        };
        Ok(Self {
            mechanism,
            spin_ns,
            timer,
        })
    }

    /// Until when the thread gives up its CPU while it waits for the deadline; 0 if never.
    fn sleep_end(&self, deadline_ns: u64) -> u64 {
        match self.mechanism {
            Mechanism::Sleep | Mechanism::Timerfd => deadline_ns,
            Mechanism::Hybrid => deadline_ns.saturating_sub(self.spin_ns),
            Mechanism::Spin => 0,
        }
    }

    /// Waits, whatever signals come, and returns the first clock reading at or after the deadline.
    fn wait(&self, deadline_ns: u64) -> io::Result<u64> {
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= deadline_ns {
                return Ok(now_ns);
            }
            match &self.timer {
                _ if now_ns >= self.sleep_end(deadline_ns) => std::hint::spin_loop(),
                Some(timer) => read_timer(timer, deadline_ns)?,
                None => sleep_until(self.sleep_end(deadline_ns)),
            }
        }
    }
}

fn read_timer(timer: &OwnedFd, deadline_ns: u64) -> io::Result<()> {
    let once = Itimerspec {
        it_interval: timespec(0),
        it_value: timespec(deadline_ns),
    };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once)?;
    match rustix::io::read(timer, &mut [0; 8]) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    const ALL: [Mechanism; 4] = [
        Mechanism::Sleep,
        Mechanism::Timerfd,
        Mechanism::Spin,
        Mechanism::Hybrid,
    ];

    fn seat() -> Seat {
        Seat {
            cpu: super::super::thread::allowed_cpus().unwrap()[0],
            fifo: None,
            locked: false,
        }
    }

    #[test]
    fn every_mechanism_gives_all_samples_and_takes_the_time_of_its_periods() {
        let stop = AtomicBool::new(false);
        for mechanism in ALL {
            let start_ns = monotonic_ns();
            let halt = Halt {
                stop: &stop,
                until_ns: u64::MAX,
            };
            let samples = lateness(seat(), mechanism, 30, 1_000_000, 200_000, halt).unwrap();
            let took_ns = monotonic_ns() - start_ns;
            assert_eq!(
                (samples.ns.len(), samples.interrupted),
                (30, false),
                "{mechanism:?}"
            );
            assert!(
                took_ns >= 30_000_000,
                "{mechanism:?} took {took_ns} ns for 30 periods of 1 ms"
            );
        }
    }

    #[test]
    fn no_mechanism_wakes_before_its_deadline() {
        for mechanism in ALL {
            let waiter = Waiter::new(mechanism, 100_000).unwrap();
            for ahead_ns in [0, 1, 1_000, 50_000, 300_000] {
                let deadline_ns = monotonic_ns() + ahead_ns;
                let woken_ns = waiter.wait(deadline_ns).unwrap();
                assert!(woken_ns >= deadline_ns && monotonic_ns() >= woken_ns);
            }
        }
    }

    #[test]
    fn a_flag_that_is_up_and_a_spent_budget_give_no_samples() {
        let (down, up) = (AtomicBool::new(false), AtomicBool::new(true));
        for halt in [
            Halt {
                stop: &up,
                until_ns: u64::MAX,
            },
            Halt {
                stop: &down,
                until_ns: 0,
            },
        ] {
            let samples = lateness(seat(), Mechanism::Sleep, 30, 1_000_000, 0, halt).unwrap();
            assert_eq!((samples.ns.len(), samples.interrupted), (0, true));
        }
    }
}
