//! A set of offsets as sorted spans, in a fixed number of places.

/// See the [module](self). Spans neither overlap nor touch.
#[derive(Clone, Debug)]
pub(super) struct Spans<const N: usize> {
    list: [(u64, u64); N],
    count: usize,
}

impl<const N: usize> Default for Spans<N> {
    fn default() -> Self {
        Spans {
            list: [(0, 0); N],
            count: 0,
        }
    }
}

impl<const N: usize> Spans<N> {
    /// The spans from the lowest up: start, and the first offset after it.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.list[..self.count].iter().copied()
    }

    /// Adds a span. False, and nothing is added, if there is no place for it.
    pub fn insert(&mut self, start: u64, end: u64) -> bool {
        if start >= end {
            return true;
        }
        let spans = &self.list[..self.count];
        // those that it touches become one with it
        let first = spans.partition_point(|s| s.1 < start);
        let after = spans.partition_point(|s| s.0 <= end);
        let merged = spans[first..after]
            .iter()
            .fold((start, end), |m, s| (m.0.min(s.0), m.1.max(s.1)));
        if first == after {
            if self.count == N {
                return false;
            }
            self.list.copy_within(first..self.count, first + 1);
            self.count += 1;
        } else {
            self.list.copy_within(after..self.count, first + 1);
            self.count -= after - first - 1;
        }
        self.list[first] = merged;
        true
    }

    /// Takes out the first span if it begins at `offset` or before, and tells its end.
    pub fn take_at(&mut self, offset: u64) -> Option<u64> {
        let (_, end) = self.iter().next().filter(|s| s.0 <= offset)?;
        self.list.copy_within(1..self.count, 0);
        self.count -= 1;
        Some(end)
    }

    /// The end of the last span.
    pub fn end(&self) -> Option<u64> {
        self.count.checked_sub(1).map(|last| self.list[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    proptest! {
        /// Against a set of all offsets.
        #[test]
        fn it_is_a_set(steps in proptest::collection::vec((0u64..60, 0u64..8), 1..60)) {
            let mut spans: Spans<6> = Spans::default();
            let mut all = BTreeSet::new();
            for (start, length) in steps {
                let before: Vec<_> = spans.iter().collect();
                if spans.insert(start, start + length) {
                    all.extend(start..start + length);
                } else {
                    prop_assert_eq!(before.len(), 6, "refused only when full");
                    prop_assert_eq!(&before, &spans.iter().collect::<Vec<_>>());
                }
                let list: Vec<_> = spans.iter().collect();
                let inside: BTreeSet<u64> = list.iter().flat_map(|s| s.0..s.1).collect();
                prop_assert_eq!(&inside, &all);
                prop_assert!(list.windows(2).all(|w| w[0].1 < w[1].0), "{:?}", list);
                prop_assert_eq!(spans.end(), all.last().map(|last| last + 1));
            }
            let first = spans.iter().next();
            if let Some((start, end)) = first {
                prop_assert_eq!(start.checked_sub(1).and_then(|s| spans.take_at(s)), None);
                prop_assert_eq!(spans.take_at(start), Some(end));
            }
        }
    }
}
