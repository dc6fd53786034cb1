//! Clocks that are off, and dice.

use std::ops::RangeInclusive;

/// A clock with an offset and a constant error of its rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// What it shows at true time 0, in nanoseconds; not negative.
    pub offset_ns: u64,
    /// Nanoseconds that it gains in a second (1,000 are 1 ppm).
    pub ppb: i64,
}

impl Clock {
    /// What it shows at true time `t` (nanoseconds).
    pub fn shows(&self, t: u64) -> u64 {
        let gain = i128::from(t) * i128::from(self.ppb) / 1_000_000_000;
        (i128::from(t) + i128::from(self.offset_ns) + gain) as u64
    }

    /// The first true time at which it shows `local` or more.
    pub fn when(&self, local: u64) -> u64 {
        let since = i128::from(local) - i128::from(self.offset_ns);
        let mut t = (since * 1_000_000_000 / (1_000_000_000 + i128::from(self.ppb))).max(0) as u64;
        t = t.saturating_sub(2);
        while self.shows(t) < local {
            t += 1;
        }
        t
    }
}

/// Repeatable random numbers (xorshift64*, Vigna 2016).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Equal seeds give equal numbers.
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// A number of the range, all equally likely.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let span = range.end().saturating_sub(*range.start()).saturating_add(1);
        range.start() + self.roll() % span
    }

    /// True in `per_mille` of 1000 cases.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.roll() % 1_000 < per_mille
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for ppb in [-40_000, -1, 0, 7, 40_000] {
            let c = Clock {
                offset_ns: 123_456_789,
                ppb,
            };
            for t in [0, 1, 999, 1_000_000_007, 86_400_000_000_000] {
                let local = c.shows(t);
                assert!(c.when(local) <= t && c.shows(c.when(local)) >= local, "{ppb} {t}");
            }
        }
    }
}
