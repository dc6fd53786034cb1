//! The timer of retransmission (RFC 6298), with a measurement from every acknowledgement.

use radio::{Duration, Instant};

const FIRST: Duration = Duration::from_ms(3_000);
const LEAST: Duration = Duration::from_ms(1_000);
const MOST: Duration = Duration::from_ms(60_000);

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Timer {
    at: Option<Instant>,
    /// Smoothed round trip and its variation.
    measured: Option<(Duration, Duration)>,
    doublings: u32,
}

impl Timer {
    /// When it expires.
    pub fn at(&self) -> Option<Instant> {
        self.at
    }

    /// How long it runs.
    pub fn length(&self) -> Duration {
        let once = match self.measured {
            Some((smooth, variation)) => {
                let margin = variation.times(4).max(Duration::from_ms(1));
                (smooth + margin).max(LEAST)
            }
            None => FIRST,
        };
        once.times(1 << self.doublings.min(16)).min(MOST.max(once))
    }

    /// A round trip took this long.
    pub fn measure(&mut self, took: Duration) {
        self.measured = Some(match self.measured {
            None => (took, Duration::from_ns(took.as_ns() / 2)),
            Some((smooth, variation)) => {
                let off = smooth.as_ns().abs_diff(took.as_ns());
                let part =
                    |old: Duration, new: u64, n: u64| Duration::from_ns((old.as_ns() * (n - 1) + new) / n);
                (part(smooth, took.as_ns(), 8), part(variation, off, 4))
            }
        });
    }

    /// Begins to run if it does not.
    pub fn start(&mut self, now: Instant) {
        if self.at.is_none() {
            self.at = Some(now + self.length());
        }
    }

    /// Something new was acknowledged: from the beginning, or off if nothing is on the way.
    pub fn restart(&mut self, now: Instant, on: bool) {
        self.doublings = 0;
        self.at = on.then(|| now + self.length());
    }

    /// It has expired: twice as long.
    pub fn back_off(&mut self, now: Instant) {
        self.doublings = self.doublings.saturating_add(1);
        self.at = Some(now + self.length());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        let ms = Duration::from_ms;
        let mut t = Timer::default();
        assert_eq!(t.length(), ms(3_000));
        t.measure(ms(2_000));
        assert_eq!(t.length(), ms(6_000), "2 s and four times 1 s");
        for _ in 0..100 {
            t.measure(ms(80));
        }
        assert_eq!(t.length(), ms(1_000), "no less");
        let now = Instant::from_us(5);
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            t.back_off(now);
            assert_eq!(t.at(), Some(now + ms(seconds * 1_000)));
        }
        t.restart(now, true);
        assert_eq!(t.at(), Some(now + ms(1_000)));
    }
}
