//! Two kinds of time: [`Instant`] on a clock of the host, [`Tsf`] on the adapter's timer. They never mix.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use serde::{Deserialize, Serialize};

/// A point on a monotonic clock of the host, in nanoseconds since an arbitrary start. The range is 2^63 ns
/// (292 years); arithmetic saturates, so a sum can be late but never wraps into the past.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Instant(u64);

impl Instant {
    /// The start of the clock.
    pub const ZERO: Instant = Instant(0);
    /// Later than everything else.
    pub const MAX: Instant = Instant(u64::MAX >> 1);

    /// `ns` nanoseconds after the start, at most [`Instant::MAX`].
    pub const fn from_ns(ns: u64) -> Instant {
        Instant(if ns > Instant::MAX.0 { Instant::MAX.0 } else { ns })
    }

    /// `us` microseconds after the start.
    pub const fn from_us(us: u64) -> Instant {
        Instant::from_ns(us.saturating_mul(1_000))
    }

    /// Nanoseconds since the start.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// `self + d`, at most [`Instant::MAX`].
    pub const fn after(self, d: Duration) -> Instant {
        Instant::from_ns(self.0.saturating_add(d.0))
    }

    /// `self - d`, at least [`Instant::ZERO`].
    pub const fn before(self, d: Duration) -> Instant {
        Instant(self.0.saturating_sub(d.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        self.after(d)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = self.after(d);
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, d: Duration) -> Instant {
        self.before(d)
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={}.{:03}us", self.0 / 1_000, self.0 % 1_000)
    }
}

/// A length of time, in nanoseconds. Arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Duration(u64);

impl Duration {
    /// Nothing.
    pub const ZERO: Duration = Duration(0);

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Duration {
        Duration(ns)
    }

    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Duration {
        Duration(us.saturating_mul(1_000))
    }

    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Duration {
        Duration(ms.saturating_mul(1_000_000))
    }

    /// `tu` time units of 1024 us (IEEE 802.11-2016, 3.1).
    pub const fn from_tu(tu: u64) -> Duration {
        Duration(tu.saturating_mul(1_024_000))
    }

    /// Nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }

    /// `self * n`.
    pub const fn times(self, n: u64) -> Duration {
        Duration(self.0.saturating_mul(n))
    }

    /// `self - other`, at least zero.
    pub const fn less(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}us", self.0 / 1_000, self.0 % 1_000)
    }
}

/// A value of the adapter's timing synchronisation function: microseconds, 64 bits, wrapping
/// (IEEE 802.11-2016, 11.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Tsf(pub u64);

impl Tsf {
    /// Signed distance `self - other` in microseconds, right across a wrap.
    pub const fn minus(self, other: Tsf) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }

    /// `self + us`, wrapping.
    pub const fn plus(self, us: i64) -> Tsf {
        Tsf(self.0.wrapping_add(us as u64))
    }
}

impl fmt::Debug for Tsf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tsf={}us", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Instant::MAX + Duration::from_ns(u64::MAX), Instant::MAX);
        assert_eq!(Instant::ZERO - Duration::from_us(1), Instant::ZERO);
        assert_eq!(Instant::from_us(1) - Instant::from_us(3), Duration::ZERO);
        assert_eq!(Instant::from_us(3) - Instant::from_us(1), Duration::from_us(2));
        assert_eq!(Instant::from_ns(u64::MAX), Instant::MAX);
        assert_eq!(
            Duration::from_ns(u64::MAX) + Duration::from_ns(1),
            Duration::from_ns(u64::MAX)
        );
    }

    #[test]
    fn tsf_wraps() {
        assert_eq!(Tsf(3).minus(Tsf(u64::MAX)), 4);
        assert_eq!(Tsf(u64::MAX).minus(Tsf(3)), -4);
        assert_eq!(Tsf(u64::MAX).plus(4), Tsf(3));
        assert_eq!(Tsf(3).plus(-4), Tsf(u64::MAX));
    }

    #[test]
    fn a_beacon_interval_of_100_tu() {
        assert_eq!(Duration::from_tu(100).as_us(), 102_400);
    }
}
