//! Clocks that are off: an offset and a drift against true time.

/// A clock that shows `offset + t (1 + ppb / 1e9)` at true time t, in ns. It never runs backwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// What it shows at true time 0, ns; not below zero.
    pub offset_ns: u64,
    /// Parts per billion that it is fast (negative: slow), between -10^8 and 10^8.
    pub drift_ppb: i64,
}

impl Clock {
    /// What it shows at `true_ns`.
    #[inline]
    pub fn show(&self, true_ns: u64) -> u64 {
        if self.drift_ppb == 0 {
            return self.offset_ns.saturating_add(true_ns);
        }
        let drift = i128::from(true_ns) * i128::from(self.drift_ppb) / 1_000_000_000;
        (i128::from(self.offset_ns) + i128::from(true_ns) + drift).max(0) as u64
    }

    /// The first true time at which it shows `shown_ns` or more.
    #[inline]
    pub fn when(&self, shown_ns: u64) -> u64 {
        let shown = shown_ns.saturating_sub(self.offset_ns);
        if self.drift_ppb == 0 || shown == 0 {
            return shown;
        }
        let rate = i128::from(1_000_000_000 + self.drift_ppb);
        let mut t = (i128::from(shown) * 1_000_000_000 / rate) as u64;
        // integer division may be off by a nanosecond or two either way
        while self.show(t) < shown_ns {
            t += 1;
        }
        while t > 0 && self.show(t - 1) >= shown_ns {
            t -= 1;
        }
        t
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for drift_ppb in [-20_000, -1, 0, 1, 20_000, 1_000_000] {
            let c = Clock {
                offset_ns: 123_456,
                drift_ppb,
            };
            for t in [0u64, 1, 7, 999_999_999, 86_400_000_000_000] {
                let shown = c.show(t);
                let back = c.when(shown);
                assert!(back <= t && c.show(back) >= shown, "{drift_ppb} {t}");
                assert!(c.show(c.when(shown + 5)) >= shown + 5, "never early");
            }
        }
    }

    #[test]
    fn drift_adds_up() {
        let c = Clock {
            offset_ns: 0,
            drift_ppb: 20_000,
        };
        assert_eq!(c.show(1_000_000_000), 1_000_020_000);
    }
}
