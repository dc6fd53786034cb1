//! How many handshakes are made, so that those who send calls by the thousand do not take the time of connections that are there.

use radio::{Duration, Instant};

/// At once.
const MOST: u32 = 64;
/// From one to the next, in the long run: 250 in a second, which take some hundredths of one.
const EACH: Duration = Duration::from_ms(4);

/// What is left of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    pub left: u32,
    /// Since then none has been added.
    at: Instant,
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance {
            left: MOST,
            at: Instant::ZERO,
        }
    }
}

impl Allowance {
    /// Whether one more may be made.
    pub fn take(&mut self, now: Instant) -> bool {
        let more = now.since(self.at).as_ns() / EACH.as_ns();
        if more > 0 {
            let most = self.left.max(MOST);
            self.left = self.left.saturating_add(more.min(MOST.into()) as u32).min(most);
            self.at = now;
        }
        let may = self.left > 0;
        self.left -= u32::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_once_and_in_a_second() {
        let mut all = Allowance::default();
        let mut in_ms = |ms: core::ops::Range<u64>| {
            let each = ms.flat_map(|ms| [ms; 100]).map(|ms| Instant::from_us(ms * 1_000));
            each.filter(|now| all.take(*now)).count()
        };
        assert_eq!(in_ms(0..1), 64);
        assert_eq!(in_ms(1..1_001), 250);
        assert_eq!(in_ms(60_000..60_001), 64);
    }
}
