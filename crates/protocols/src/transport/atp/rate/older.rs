//! What the other end may still go by after a rate has changed.

use radio::{Duration, Instant};

/// The slowest rate of a stretch of time that ends now and is one to two times as long as asked for.
#[derive(Clone, Debug)]
pub(super) struct Older {
    /// The slowest of this stretch, and of the one before.
    hz: [f64; 2],
    /// When this one began.
    since: Instant,
}

impl Older {
    pub const NONE: Older = Older {
        hz: [f64::INFINITY; 2],
        since: Instant::ZERO,
    };

    pub fn note(&mut self, now: Instant, hz: f64, stretch: Duration) {
        if now.since(self.since) >= stretch {
            *self = Older {
                hz: [hz, self.hz[0]],
                since: now,
            };
        } else {
            self.hz[0] = self.hz[0].min(hz);
        }
    }

    pub fn slowest(&self) -> f64 {
        self.hz[0].min(self.hz[1])
    }
}
