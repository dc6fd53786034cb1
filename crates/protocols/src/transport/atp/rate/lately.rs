//! The least of what was lately so.

use radio::{Duration, Instant};

/// The least of a stretch of time that ends now and is one to two times as long as asked for.
#[derive(Clone, Debug)]
pub(super) struct Lately<T> {
    /// The least of this stretch, and of the one before.
    least: [Option<T>; 2],
    /// When this one began.
    since: Instant,
}

impl<T: Copy + PartialOrd> Lately<T> {
    pub const NONE: Lately<T> = Lately {
        least: [None; 2],
        since: Instant::ZERO,
    };

    /// So it is now, if that is known.
    pub fn note(&mut self, now: Instant, value: Option<T>, stretch: Duration) {
        if now.since(self.since) >= stretch {
            *self = Lately {
                least: [None, self.least[0]],
                since: now,
            };
        }
        self.least[0] = lesser(self.least[0], value);
    }

    /// The least, if any is known.
    pub fn least(&self) -> Option<T> {
        lesser(self.least[0], self.least[1])
    }
}

fn lesser<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b < a { b } else { a }),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_one_to_two_stretches() {
        let mut lately = Lately::NONE;
        let mut note = |ms: u64, value| {
            lately.note(Instant::from_us(ms * 1_000), value, Duration::from_ms(100));
            lately.least()
        };
        assert_eq!(note(0, None), None);
        assert_eq!(note(1, Some(5)), Some(5));
        assert_eq!(note(2, Some(3)), Some(3));
        assert_eq!(note(99, Some(4)), Some(3));
        assert_eq!(note(100, Some(4)), Some(3), "of the stretch before");
        assert_eq!(note(199, None), Some(3));
        assert_eq!(note(200, Some(9)), Some(4));
        assert_eq!(note(300, None), Some(9));
        assert_eq!(note(400, None), None);
    }
}
