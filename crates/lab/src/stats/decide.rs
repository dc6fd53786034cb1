//! Is a probability below its target? Asked again and again while an experiment runs.

use super::{Batches, Interval};

/// Answer to "is the miss probability at most the target?".
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole interval lies at or below the target.
    Pass,
    /// The whole interval lies above the target.
    Fail,
    /// The interval straddles the target.
    Undecided,
}

impl Verdict {
    /// Compares the interval with the target.
    pub fn of(interval: Interval, target: f64) -> Self {
        if interval.high <= target {
            Verdict::Pass
        } else if interval.low > target {
            Verdict::Fail
        } else {
            Verdict::Undecided
        }
    }

    /// "PASS", "FAIL" or "UNDECIDED".
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "PASS",
            Verdict::Fail => "FAIL",
            Verdict::Undecided => "UNDECIDED",
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}

/// How many more batches would decide. Batches are taken to be as large and as correlated as those seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More {
    /// Fewest batches after which the verdict can be Pass: none of them has a miss. `None` beyond 10^12.
    pub to_pass: Option<u64>,
    /// Batches after which there is a verdict if misses go on at the rate seen so far. `None` beyond 10^12,
    /// as when the estimate equals the target.
    pub at_this_rate: Option<u64>,
}

/// How many more batches are needed before the interval at `confidence` decides about `target`.
/// Zero when it decides already (for `to_pass`: when it is Pass already). `None` of both without trials.
pub fn more_trials(seen: &Batches, target: f64, confidence: f64) -> More {
    let now = seen.batches() as f64;
    if now == 0.0 {
        return More {
            to_pass: None,
            at_this_rate: None,
        };
    }
    More {
        to_pass: fewest(|more| {
            let scale = 1.0 + more as f64 / now;
            Verdict::of(seen.imagined(seen.misses() as f64, scale, confidence), target) == Verdict::Pass
        }),
        at_this_rate: fewest(|more| {
            let scale = 1.0 + more as f64 / now;
            Verdict::of(seen.scaled(scale, confidence), target) != Verdict::Undecided
        }),
    }
}

/// The smallest number that is enough, by doubling and halving; `None` beyond 10^12.
fn fewest(enough: impl Fn(u64) -> bool) -> Option<u64> {
    const MOST: u64 = 1_000_000_000_000;
    if enough(0) {
        return Some(0);
    }
    let mut high = 1;
    while !enough(high) {
        high *= 2;
        if high > MOST {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// A question that may be looked at while the data grow, and stopped at the first answer. Every look at 95 %
/// would be wrong in 5 % of the cases, many looks in more; so look i spends only error / (i (i + 1)), which sums
/// up to `error` over any number of looks. Look rarely, best each time the data have doubled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sequential {
    target: f64,
    error: f64,
    looks: u32,
}

/// Outcome of one look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// The verdict; over all looks it is wrong with at most the error of the question.
    pub verdict: Verdict,
    /// The interval that decided.
    pub interval: Interval,
    /// Confidence of `interval`, higher than that of the whole question.
    pub confidence: f64,
    /// How much more is needed, at the confidence of the next look.
    pub more: More,
}

impl Sequential {
    /// Asks whether a probability is at most `target`, with `confidence` over all looks together.
    ///
    /// # Panics
    /// When `target` or `confidence` is not inside 0..1.
    pub fn new(target: f64, confidence: f64) -> Self {
        assert!(
            target > 0.0 && target < 1.0,
            "target {target} is not between 0 and 1"
        );
        assert!(
            confidence > 0.0 && confidence < 1.0,
            "confidence {confidence} is not between 0 and 1"
        );
        Sequential {
            target,
            error: 1.0 - confidence,
            looks: 0,
        }
    }

    /// Looks at all data up to now.
    pub fn look(&mut self, seen: &Batches) -> Look {
        self.looks += 1;
        let confidence = self.confidence_of(self.looks);
        let interval = seen.interval(confidence);
        Look {
            verdict: Verdict::of(interval, self.target),
            interval,
            confidence,
            more: more_trials(seen, self.target, self.confidence_of(self.looks + 1)),
        }
    }

    /// Number of looks so far.
    pub fn looks(&self) -> u32 {
        self.looks
    }

    fn confidence_of(&self, look: u32) -> f64 {
        let i = f64::from(look);
        1.0 - self.error / (i * (i + 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_decides() {
        let at = |low, high| Verdict::of(Interval { low, high }, 0.1);
        assert_eq!(at(0.0, 0.1), Verdict::Pass);
        assert_eq!(at(0.1, 0.2), Verdict::Undecided);
        assert_eq!(at(0.11, 0.2), Verdict::Fail);
    }

    /// 0 misses: 1 - 0.025^(1/n) <= 1e-4 needs n >= 36,887 (by hand: ln 0.025 / ln 0.9999).
    #[test]
    fn trials_without_a_miss() {
        let more = more_trials(&Batches::independent(0, 1000), 1e-4, 0.95);
        assert_eq!(more.to_pass, Some(36_887 - 1000));
        assert_eq!(
            more_trials(&Batches::independent(0, 36_887), 1e-4, 0.95).to_pass,
            Some(0)
        );
        assert_eq!(more_trials(&Batches::default(), 1e-4, 0.95).to_pass, None);
    }

    #[test]
    fn what_is_promised_decides() {
        let seen = Batches::independent(7, 50_000);
        let more = more_trials(&seen, 1e-4, 0.95);
        let n = 50_000 + more.to_pass.unwrap();
        assert!(Batches::independent(7, n).interval(0.95).high <= 1e-4 * (1.0 + 1e-6));
        assert!(Batches::independent(7, n - 100).interval(0.95).high > 1e-4);
        // 1.4e-4 seen: at this rate it fails in the end
        let factor = 1.0 + more.at_this_rate.unwrap() as f64 / 50_000.0;
        let then = Batches::independent((7.0 * factor).round() as u64, (50_000.0 * factor) as u64);
        assert!(then.interval(0.95).low > 0.98e-4, "{then:?}");
        // exactly on the target no number of trials decides
        assert_eq!(
            more_trials(&Batches::independent(10, 100_000), 1e-4, 0.95).at_this_rate,
            None
        );
    }

    #[test]
    fn looks_spend_the_error_once() {
        let mut question = Sequential::new(0.01, 0.95);
        let spent: f64 = (0..2000)
            .map(|_| 1.0 - question.look(&Batches::default()).confidence)
            .sum();
        assert!(spent < 0.05 && spent > 0.0499, "{spent}");
        assert_eq!(question.looks(), 2000);
    }

    #[test]
    fn looks_come_to_an_end() {
        let mut question = Sequential::new(0.01, 0.95);
        let mut n = 100;
        let look = loop {
            let look = question.look(&Batches::independent(n / 1000, n));
            if look.verdict != Verdict::Undecided {
                break look;
            }
            assert!(look.more.to_pass > Some(0));
            n *= 2;
        };
        assert_eq!(look.verdict, Verdict::Pass);
        assert!(n < 2000);
    }
}
