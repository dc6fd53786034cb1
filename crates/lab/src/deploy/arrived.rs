//! Which MSDUs of the scenario's traffic have arrived, each once.

use std::collections::BTreeMap;
use std::ops::Range;

/// Numbers of a flow that are kept; later ones are not.
const MOST: u32 = 1 << 24;

/// Numbers of MSDUs by flow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrived(BTreeMap<u32, Vec<u64>>);

impl Arrived {
    /// This one has.
    pub fn insert(&mut self, flow: u32, number: u32) {
        if number >= MOST {
            return;
        }
        let words = self.0.entry(flow).or_default();
        let at = number as usize / 64;
        if words.len() <= at {
            words.resize(at + 1, 0);
        }
        words[at] |= 1 << (number % 64);
    }

    /// How many of these numbers of a flow have.
    pub fn count(&self, flow: u32, numbers: Range<u32>) -> u64 {
        let Some(words) = self.0.get(&flow) else { return 0 };
        let end = numbers.end.min((words.len() * 64) as u32);
        let has = |n: &u32| words[*n as usize / 64] >> (n % 64) & 1 == 1;
        (numbers.start..end).filter(has).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counts_once_within_its_numbers() {
        let mut arrived = Arrived::default();
        for number in [0, 63, 64, 64, 200, u32::MAX] {
            arrived.insert(3, number);
        }
        assert_eq!(arrived.count(3, 0..1_000), 4, "one came twice, one is too far");
        assert_eq!(arrived.count(3, 63..200), 2);
        assert_eq!(
            (
                arrived.count(3, 0..0),
                arrived.count(3, 900..1_000),
                arrived.count(1, 0..9)
            ),
            (0, 0, 0)
        );
    }
}
