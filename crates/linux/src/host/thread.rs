//! A measuring thread: bound to one CPU, with its memory in place, and with `SCHED_FIFO` if asked for.
//!
//! Policy, affinity and timer slack belong to the thread and end with it; only the memory lock belongs to the whole
//! process, and [`MemoryLock`] takes it back.

use std::num::NonZeroU64;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::{fs, io};

use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use super::pace::{Halt, monotonic_ns, sleep_until};
use crate::sys;

/// Where and how a measuring thread runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    /// The one CPU it may use.
    pub cpu: usize,
    /// Priority of `SCHED_FIFO`; `None` is `SCHED_OTHER`.
    pub fifo: Option<u8>,
    /// Whether the memory of the process is locked first.
    pub locked: bool,
}

impl Seat {
    /// Starts a thread at this seat. Buffers should be made before, so that they are locked with the rest. If the
    /// seat cannot be taken, `body` is dropped without being run.
    pub fn spawn<'scope, T: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        body: impl FnOnce() -> io::Result<T> + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, io::Result<T>>> {
        Builder::new()
            .name("sdmac-measure".into())
            .spawn_scoped(scope, move || {
                self.take()?;
                body()
            })
    }

    /// Runs `body` at this seat and waits for it.
    pub fn run<T: Send>(self, body: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        std::thread::scope(|scope| join(self.spawn(scope, body)?))
    }

    /// Makes the calling thread a measuring thread.
    fn take(self) -> io::Result<()> {
        bind_to(self.cpu)?;
        // Without this a SCHED_OTHER thread's timers are late by 50 µs on purpose (PR_SET_TIMERSLACK).
        set_current_timer_slack(NonZeroU64::new(1))?;
        std::hint::black_box([1_u8; 64 << 10]); // The stack to come, touched.
        if self.locked {
            mlockall(MlockAllFlags::CURRENT)?;
        }
        sys::set_scheduler(self.fifo) // Also for SCHED_OTHER: a thread inherits its starter's policy.
    }
}

/// Waits for a thread; a panic there goes on here.
pub(super) fn join<T>(handle: ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    handle.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// What one thread of a pair knows of the other: not there yet, ready, or gone for good.
#[derive(Debug)]
pub(super) struct Partner(AtomicU8);

impl Partner {
    const READY: u8 = 1;
    const LEFT: u8 = 2;

    /// Not there yet.
    pub const fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Called by the partner itself.
    pub fn is_ready(&self) {
        self.0.store(Self::READY, Ordering::Release);
    }

    /// A guard that the partner holds, or drops with its unused body: it has left when the guard is dropped.
    pub fn leaves_on_drop(&self) -> Leaving<'_> {
        Leaving(self)
    }

    /// Whether it will do nothing more.
    pub fn has_left(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::LEFT
    }

    /// Waits for the partner; false if it has left or it is time to stop.
    pub fn wait(&self, halt: Halt<'_>) -> bool {
        loop {
            match self.0.load(Ordering::Acquire) {
                Self::READY => return true,
                Self::LEFT => return false,
                _ if halt.reached(monotonic_ns()) => return false,
                _ => sleep_until(monotonic_ns() + 1_000_000),
            }
        }
    }
}

/// See [`Partner::leaves_on_drop`].
#[derive(Debug)]
pub(super) struct Leaving<'a>(&'a Partner);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.0.store(Partner::LEFT, Ordering::Release);
    }
}

/// Binds the calling thread to one CPU.
pub(crate) fn bind_to(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// The CPUs that the calling thread may use, ascending.
pub(super) fn allowed_cpus() -> rustix::io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Unlocks the memory of the process when dropped, unless some of it had been locked before.
#[derive(Debug)]
pub(super) struct MemoryLock {
    ours: bool,
}

impl MemoryLock {
    /// To be made before the first thread that locks memory.
    pub fn new() -> Self {
        Self {
            ours: locked_octets() == Some(0),
        }
    }

    /// Finds out whether memory can be locked.
    pub fn probe() -> io::Result<()> {
        let _unlock = Self::new();
        Ok(mlockall(MlockAllFlags::CURRENT)?)
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        if self.ours {
            let _ = munlockall(); // Cannot fail where mlockall exists.
        }
    }
}

/// Locked memory of this process (`VmLck` in proc_pid_status(5)), octets; `None` if it cannot be read.
pub(super) fn locked_octets() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seat_is_taken_by_the_thread_and_not_by_its_starter() {
        let before = allowed_cpus().unwrap();
        let cpu = before[0];
        for fifo in [None, Some(3)] {
            match (Seat {
                cpu,
                fifo,
                locked: false,
            })
            .run(|| Ok((allowed_cpus()?, rustix::thread::current_timer_slack()?)))
            {
                // A real-time thread has no slack to read.
                Ok((cpus, slack_ns)) => assert!(cpus == [cpu] && slack_ns <= 1, "{cpus:?} {slack_ns}"),
                Err(error) => assert!(fifo.is_some() && error.kind() == io::ErrorKind::PermissionDenied),
            }
        }
        assert_eq!(allowed_cpus().unwrap(), before);
        assert!(rustix::thread::current_timer_slack().unwrap() > 1);
    }

    #[test]
    fn a_seat_that_does_not_exist_is_an_error_and_the_body_is_dropped() {
        let guard = std::sync::Arc::new(());
        let seen = std::sync::Arc::downgrade(&guard);
        let result = Seat {
            cpu: CpuSet::MAX_CPU - 1,
            fifo: None,
            locked: false,
        }
        .run(move || {
            drop(guard);
            Ok(())
        });
        if !allowed_cpus().unwrap().contains(&(CpuSet::MAX_CPU - 1)) {
            result.unwrap_err();
        }
        assert!(seen.upgrade().is_none());
    }
}
