//! Which MSDUs of the scenario's traffic have arrived, each once.

use std::ops::Range;

/// Numbers of MSDUs by flow, with room from the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrived(Vec<Box<[u64]>>);

impl Arrived {
    /// For so many numbers of each flow, those of the scenario; later ones are not kept.
    pub fn new(room: &[u32]) -> Arrived {
        let words = |numbers: &u32| vec![0; numbers.div_ceil(64) as usize].into();
        Arrived(room.iter().map(words).collect())
    }

    /// This one has.
    pub fn insert(&mut self, flow: u32, number: u32) {
        let words = self.0.get_mut(flow as usize);
        if let Some(word) = words.and_then(|words| words.get_mut(number as usize / 64)) {
            *word |= 1 << (number % 64);
        }
    }

    /// How many of these numbers of a flow have.
    pub fn count(&self, flow: u32, numbers: Range<u32>) -> u64 {
        let words = self.0.get(flow as usize);
        let has = |n: &u32| {
            let word = words.and_then(|words| words.get(*n as usize / 64));
            word.is_some_and(|word| word >> (n % 64) & 1 == 1)
        };
        numbers.filter(has).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counts_once_within_its_numbers() {
        let mut arrived = Arrived::new(&[0, 0, 0, 201]);
        for number in [0, 63, 64, 64, 200, 256, u32::MAX] {
            arrived.insert(3, number);
            arrived.insert(2, number);
            arrived.insert(9, number);
        }
        assert_eq!(
            arrived.count(3, 0..1_000),
            4,
            "one came twice, and for two there is no room"
        );
        assert_eq!(arrived.count(3, 63..200), 2);
        let none = [(3, 0..0), (3, 900..1_000), (2, 0..9), (9, 0..9)];
        for (flow, numbers) in none {
            assert_eq!(arrived.count(flow, numbers), 0);
        }
    }
}
