//! Timer lateness: how long after the time asked for does a thread run?

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::Samples;
use super::kind::Mechanism;
use super::pace::{Halt, Pace, monotonic_ns, sleep_until, timespec, touched_buffer};
use super::thread::Seat;
use crate::sys::timer::{PosixTimer, epoll_nothing};

/// Rests that a series has room for without allocating; more are kept as well.
const RESTS: usize = 10_000;

/// Measures `samples` wake-ups at the given seat, at the pace that starts there and then. `spin_ns` is for
/// [`Mechanism::Hybrid`].
pub(super) fn lateness(
    seat: Seat,
    mechanism: Mechanism,
    samples: usize,
    spin_ns: u64,
    pace: impl Fn(u64) -> Pace + Send,
    halt: Halt<'_>,
) -> io::Result<Samples> {
    let (mut ns, mut gaps) = (touched_buffer(samples), Vec::with_capacity(RESTS));
    let (ns, gaps) = seat.run(move || {
        let waiter = Waiter::new(mechanism, spin_ns)?;
        let mut pace = pace(monotonic_ns());
        while ns.len() < samples {
            let deadline_ns = pace.next_deadline();
            let now_ns = monotonic_ns();
            if halt.reached(now_ns) {
                break;
            }
            if let Some(end_ns) = pace.rest(now_ns, waiter.sleep_end(deadline_ns)) {
                sleep_until(end_ns);
                if !ns.is_empty() {
                    gaps.push(ns.len());
                }
                continue;
            }
            ns.push(waiter.wait(deadline_ns)? - deadline_ns);
        }
        Ok((ns, gaps))
    })?;
    Ok(Samples {
        gaps,
        ..Samples::of(ns, samples)
    })
}

struct Waiter {
    mechanism: Mechanism,
    spin_ns: u64,
    /// The timer that the kernel keeps, if there is one.
    timer: Timer,
}

enum Timer {
    None,
    Timerfd(OwnedFd),
    Posix(PosixTimer),
    Epoll(OwnedFd),
}

impl Waiter {
    /// To be used by the calling thread alone: a POSIX timer sends its signal there.
    fn new(mechanism: Mechanism, spin_ns: u64) -> io::Result<Self> {
        let timer = match mechanism {
            Mechanism::Timerfd => {
                Timer::Timerfd(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?)
            }
            Mechanism::Posix => Timer::Posix(PosixTimer::new()?),
            Mechanism::Epoll => Timer::Epoll(epoll::create(epoll::CreateFlags::CLOEXEC)?),
            Mechanism::Sleep | Mechanism::Spin | Mechanism::Hybrid => Timer::None,
            Mechanism::Etf => return Err(io::ErrorKind::InvalidInput.into()), // No thread waits for it.
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
            Mechanism::Sleep | Mechanism::Timerfd | Mechanism::Posix | Mechanism::Epoll | Mechanism::Etf => {
                deadline_ns
            }
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
                Timer::Timerfd(timer) => read_timer(timer, deadline_ns)?,
                Timer::Posix(timer) => timer.wait(deadline_ns)?,
                Timer::Epoll(nothing) => epoll_nothing(nothing.as_fd(), deadline_ns - now_ns)?,
                Timer::None => sleep_until(self.sleep_end(deadline_ns)),
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

    const ALL: [Mechanism; 6] = [
        Mechanism::Sleep,
        Mechanism::Timerfd,
        Mechanism::Posix,
        Mechanism::Epoll,
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

    fn golden(now_ns: u64) -> Pace {
        Pace::new(now_ns, 1_000_000)
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
            let samples = lateness(seat(), mechanism, 30, 200_000, golden, halt).unwrap();
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

    /// Nobody but a spinning thread has to rest, and the samples after a rest are told.
    #[test]
    fn rests_are_told() {
        let stop = AtomicBool::new(false);
        let halt = Halt {
            stop: &stop,
            until_ns: u64::MAX,
        };
        let steady = |now_ns| Pace::steady(now_ns, 1_000_000);
        let samples = lateness(seat(), Mechanism::Spin, 250, 0, steady, halt).unwrap();
        assert!(samples.gaps.len() >= 2, "{:?}", samples.gaps);
        assert!(samples.gaps.is_sorted() && samples.gaps.iter().all(|&at| (1..250).contains(&at)));
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
            let samples = lateness(seat(), Mechanism::Sleep, 30, 0, golden, halt).unwrap();
            assert_eq!((samples.ns.len(), samples.interrupted), (0, true));
        }
    }
}
