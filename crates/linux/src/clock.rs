//! The two clocks of the kernel that matter here, and sleeping by one of them.

use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};

/// `CLOCK_MONOTONIC`, ns.
pub(crate) fn monotonic_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

/// `CLOCK_REALTIME`, ns since 1970: the clock of the kernel's packet stamps.
pub(crate) fn realtime_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Realtime))
}

/// `CLOCK_TAI` less `CLOCK_REALTIME`, ns: whole seconds, or nothing where nobody has told the kernel.
pub(crate) fn tai_offset_ns() -> u64 {
    // The wall clock is read first, so that what passes between the two readings is cut off.
    let realtime_ns = realtime_ns();
    // Every kernel that this runs on has the clock (Linux 3.10).
    let tai = clock_gettime_dynamic(DynamicClockId::Tai);
    let apart_ns = tai.map_or(0, |tai| to_ns(tai).saturating_sub(realtime_ns));
    apart_ns / 1_000_000_000 * 1_000_000_000
}

fn to_ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A point in time as the kernel takes it.
pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as _,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

/// Sleeps until `deadline_ns` on `CLOCK_MONOTONIC`, or a signal comes.
pub(crate) fn sleep_until(deadline_ns: u64) {
    // The only error a valid request can meet is EINTR; callers look at the clock anyway.
    let _ =
        rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &timespec(deadline_ns));
}
