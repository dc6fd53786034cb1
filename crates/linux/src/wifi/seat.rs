//! Where and how the thread of a host runs: one CPU, SCHED_FIFO, memory that stays.

use std::num::NonZeroU64;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::set_current_timer_slack;

use super::error::Error;
use crate::host::bind_to;
use crate::machine::{Tree, partition};
use crate::sys;

/// What the thread that runs a [`Host`](super::Host) takes; nothing, unless it is said.
///
/// Open adapters and host before, so that their memory is locked with the rest. A thread with SCHED_FIFO that spins
/// ([`Wait::Spin`](super::Wait::Spin)) leaves its CPU to nobody but what has a higher priority, and to
/// others as far as the kernel's own limit (sched_rt_runtime_us) makes it: give it a CPU of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seat {
    /// The one CPU that it may use.
    pub cpu: Option<usize>,
    /// Priority of SCHED_FIFO, 1 to 99. On a PREEMPT_RT kernel interrupt threads have 50.
    pub fifo: Option<u8>,
    /// Lock the memory of the process, what it has and what it will have (mlockall(2)).
    pub lock_memory: bool,
}

impl Seat {
    /// Seats the calling thread. CPU, policy and timer slack are the thread's; locked memory is the process's, until it
    /// ends. If the CPU is one that `sdmac tune` keeps free, the process goes to these CPUs.
    ///
    /// # Errors
    /// [`Error::NoPermission`] without CAP_SYS_NICE for a priority, or CAP_IPC_LOCK for locked memory;
    /// [`Error::Config`] for a CPU that is not there or not allowed, or another priority.
    pub fn take(&self) -> Result<(), Error> {
        if self.fifo.is_some_and(|priority| !(1..=99).contains(&priority)) {
            return Err(Error::Config("a priority of SCHED_FIFO is 1 to 99"));
        }
        if let Some(cpu) = self.cpu {
            partition::join(&Tree::default(), cpu).map_err(Error::of(
                "go to the CPUs that `sdmac tune` keeps free (/sys/fs/cgroup/sdmac)",
                "CAP_DAC_OVERRIDE",
            ))?;
            bind_to(cpu)
                .map_err(|_| Error::Config("there is no such CPU, or this process may not use it"))?;
        }
        // Otherwise timers of ordinary threads are late by 50 us on purpose. No right is needed.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        if self.lock_memory {
            let locked = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
            locked.map_err(|errno| match errno {
                rustix::io::Errno::NOMEM => Error::NoPermission {
                    what: "lock so much memory",
                    capability: "CAP_IPC_LOCK",
                },
                errno => Error::of("lock memory", "CAP_IPC_LOCK")(errno.into()),
            })?;
        }
        match self.fifo {
            None => Ok(()),
            fifo => sys::set_scheduler(fifo).map_err(Error::of("use SCHED_FIFO", "CAP_SYS_NICE")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a thread of its own, which keeps nothing of it.
    fn taken(seat: Seat) -> Result<Vec<usize>, Error> {
        let thread = std::thread::spawn(move || {
            seat.take()?;
            let set = rustix::thread::sched_getaffinity(None).expect("it can be read");
            Ok((0..rustix::thread::CpuSet::MAX_CPU)
                .filter(|&cpu| set.is_set(cpu))
                .collect())
        });
        thread.join().expect("no panic")
    }

    #[test]
    fn a_seat_is_taken_or_says_what_is_missing() {
        let all = taken(Seat::default()).unwrap();
        let cpu = Some(all[0]);
        assert_eq!(
            taken(Seat {
                cpu,
                ..Seat::default()
            })
            .unwrap(),
            [all[0]]
        );
        match taken(Seat {
            fifo: Some(5),
            ..Seat::default()
        }) {
            Ok(cpus) => assert_eq!(cpus, all),
            Err(error) => assert!(error.to_string().contains("CAP_SYS_NICE"), "{error}"),
        }
        for wrong in [
            Seat {
                fifo: Some(0),
                ..Seat::default()
            },
            Seat {
                fifo: Some(100),
                ..Seat::default()
            },
            Seat {
                cpu: Some(100_000),
                ..Seat::default()
            },
        ] {
            assert!(matches!(taken(wrong), Err(Error::Config(_))), "{wrong:?}");
        }
    }
}
