//! Which datagrams have come.

/// The counters that have come: each counts once, and none that is older than the window.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// One more than the newest; 0 before the first.
    next: u64,
    /// Bit i: the counter `next - 1 - i` has come.
    seen: [u64; Window::WORDS],
}

impl Window {
    const WORDS: usize = 16;
    const SIZE: u64 = 64 * Window::WORDS as u64;

    /// Whether it has not come yet, and is not too old.
    pub fn is_new(&self, counter: u64) -> bool {
        let Some(behind) = (self.next.wrapping_sub(1))
            .checked_sub(counter)
            .filter(|_| counter < self.next)
        else {
            return true;
        };
        behind < Window::SIZE && self.seen[(behind / 64) as usize] & 1 << (behind % 64) == 0
    }

    /// Whether none has come.
    pub fn is_empty(&self) -> bool {
        self.next == 0
    }

    /// It has come.
    pub fn note(&mut self, counter: u64) {
        if counter >= self.next {
            let by = counter + 1 - self.next;
            let mut moved = [0; Window::WORDS];
            for (i, word) in moved.iter_mut().enumerate() {
                let words = (by / 64) as usize;
                let bit = by % 64;
                let at = |n: Option<usize>| n.and_then(|n| self.seen.get(n)).copied().unwrap_or(0);
                let (low, carry) = if by >= Window::SIZE {
                    (0, 0)
                } else {
                    (at(i.checked_sub(words)), at(i.checked_sub(words + 1)))
                };
                *word = if bit == 0 {
                    low
                } else {
                    low << bit | carry >> (64 - bit)
                };
            }
            self.seen = moved;
            self.next = counter + 1;
        }
        let behind = self.next - 1 - counter;
        if behind < Window::SIZE {
            self.seen[(behind / 64) as usize] |= 1 << (behind % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a set of all counters.
        #[test]
        fn the_window(steps in proptest::collection::vec(0u64..3_000, 1..200)) {
            let mut window = Window::default();
            let mut seen = std::collections::BTreeSet::new();
            for counter in steps {
                let newest: u64 = seen.last().copied().unwrap_or(0);
                let too_old = !seen.is_empty() && newest >= Window::SIZE + counter;
                let new = window.is_new(counter);
                prop_assert_eq!(new, !too_old && !seen.contains(&counter), "{} after {}", counter, newest);
                if new {
                    window.note(counter);
                    seen.insert(counter);
                }
            }
        }
    }
}
