//! How long a packet and what acknowledges it take.

use super::super::meter;
use radio::Duration;

/// A round trip that is longer than the shortest one takes that along by one of so many parts: a path may change.
const FORGETS: u64 = 64;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    /// Smoothed, 0 until one is measured.
    pub smooth: Duration,
    /// What that is at most, until then.
    at_most: Duration,
    /// The shortest.
    least: Option<Duration>,
    /// Of the path; 0 if not known.
    hops: u8,
}

impl RoundTrip {
    pub const NEW: RoundTrip = RoundTrip {
        smooth: Duration::ZERO,
        at_most: Duration::ZERO,
        least: None,
        hops: 0,
    };

    /// One took this long.
    pub fn took(&mut self, age: Duration) {
        self.smooth = if self.smooth == Duration::ZERO {
            age
        } else {
            Duration::from_ns(self.smooth.as_ns() / 8 * 7 + age.as_ns() / 8)
        };
    }

    /// By how much one that took this long is longer than the shortest.
    pub fn longer(&mut self, age: Duration) -> Duration {
        let least = self.least.map_or(age, |least| least.min(age));
        let longer = age.less(least);
        self.least = Some(least + Duration::from_ns(longer.as_ns() / FORGETS));
        longer
    }

    /// It is not known how long one took, but that it was no longer than this.
    pub fn took_at_most(&mut self, age: Duration) {
        self.at_most = age.min(meter::MOST_EPOCH);
    }

    /// The path has so many hops. True if it is another one than before.
    pub fn over(&mut self, hops: u8) -> bool {
        let before = core::mem::replace(&mut self.hops, hops);
        let is_other = before != 0 && before != hops;
        self.least = self.least.filter(|_| !is_other);
        is_other
    }

    /// What feedback for a packet takes beyond the epoch.
    pub fn reach(&self) -> Duration {
        match self.smooth {
            Duration::ZERO => self.at_most,
            smooth => smooth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_ms(ms)
    }

    #[test]
    fn smoothed_or_at_most() {
        let mut r = RoundTrip::NEW;
        assert_eq!(r.reach(), Duration::ZERO);
        r.took_at_most(ms(5_000));
        assert_eq!(r.reach(), meter::MOST_EPOCH);
        r.took(ms(80));
        r.took(ms(160));
        assert_eq!((r.smooth, r.reach()), (ms(90), ms(90)));
    }

    #[test]
    fn the_shortest_follows_slowly_and_is_of_one_path() {
        let mut r = RoundTrip::NEW;
        assert!(!r.over(2), "the first one is no other one");
        assert_eq!(r.longer(ms(50)), Duration::ZERO);
        assert_eq!(r.longer(ms(82)), ms(32));
        assert_eq!(r.least, Some(ms(50) + Duration::from_us(500)));
        assert_eq!(r.longer(ms(40)), Duration::ZERO);
        assert_eq!(r.least, Some(ms(40)));
        assert!(!r.over(2));
        assert!(r.over(3));
        assert_eq!(r.least, None);
    }
}
