//! Which copies have arrived before: for each source a window of sequence numbers (IEC 62439-3:2016, 4.1.10.4).

use frame::MacAddr;
use radio::{Duration, Instant};

/// Sequence numbers that are remembered behind the newest one.
pub const WINDOW: u16 = 512;
/// After this much silence a number from behind the window is a new beginning, not an old copy: EntryForgetTime
/// (IEC 62439-3:2016, table 8).
pub const FORGET: Duration = Duration::from_ms(400);
/// After this much any number is: NodeForgetTime (the same table). Before, a copy that comes late, and finds nothing newer, is still a copy.
pub const FORGET_NODE: Duration = Duration::from_ms(60_000);

const WORDS: usize = WINDOW as usize / 64;

#[derive(Clone, Copy, Debug)]
struct Source {
    address: MacAddr,
    newest: u16,
    /// Bit i: the number `newest - i` has arrived.
    seen: [u64; WORDS],
    last: Instant,
}

impl Source {
    fn new(address: MacAddr, sequence: u16, now: Instant) -> Source {
        let mut seen = [0; WORDS];
        seen[0] = 1;
        Source {
            address,
            newest: sequence,
            seen,
            last: now,
        }
    }

    /// Moves the window so that its newest number is `by` larger.
    fn slide(&mut self, by: u16) {
        let (words, bits) = (usize::from(by) / 64, u32::from(by) % 64);
        for i in (0..WORDS).rev() {
            let word = |n: Option<usize>| n.map_or(0, |n| self.seen[n]);
            let low = word(i.checked_sub(words));
            let carry = word(i.checked_sub(words + 1));
            self.seen[i] = if bits == 0 {
                low
            } else {
                low << bits | carry >> (64 - bits)
            };
        }
        self.newest = self.newest.wrapping_add(by);
    }
}

/// The windows of up to `S` sources. When another one comes, the one that has been silent longest is forgotten.
#[derive(Clone, Debug)]
pub struct Discard<const S: usize> {
    sources: [Option<Source>; S],
}

impl<const S: usize> Default for Discard<S> {
    fn default() -> Self {
        Discard { sources: [None; S] }
    }
}

impl<const S: usize> Discard<S> {
    /// Notes the arrival of number `sequence` of `source` at `now`; true if it is the first copy.
    pub fn is_first(&mut self, source: MacAddr, sequence: u16, now: Instant) -> bool {
        let known = self
            .sources
            .iter()
            .position(|s| s.is_some_and(|s| s.address == source));
        let Some(index) = known else {
            let longest = |s: &Option<Source>| s.map(|s| s.last);
            if let Some(place) = self.sources.iter_mut().min_by_key(|s| longest(s)) {
                *place = Some(Source::new(source, sequence, now));
            }
            return true;
        };
        let Some(s) = &mut self.sources[index] else {
            return true;
        };
        if now.since(s.last) > FORGET_NODE {
            *s = Source::new(source, sequence, now);
            return true;
        }
        let ahead = sequence.wrapping_sub(s.newest);
        let behind = s.newest.wrapping_sub(sequence);
        let silent = now.since(s.last) > FORGET;
        if (1..=u16::MAX / 2).contains(&ahead) {
            if ahead < WINDOW {
                s.slide(ahead);
                s.seen[0] |= 1;
            } else {
                *s = Source::new(source, sequence, now);
            }
        } else if behind < WINDOW {
            let (word, bit) = (usize::from(behind) / 64, 1 << (behind % 64));
            if s.seen[word] & bit != 0 {
                return false;
            }
            s.seen[word] |= bit;
        } else if silent {
            *s = Source::new(source, sequence, now);
        } else {
            return false;
        }
        s.last = now;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const A: MacAddr = MacAddr::local(1);
    const T: Instant = Instant::ZERO;

    #[test]
    fn each_number_once_also_across_the_wrap() {
        let mut d = Discard::<2>::default();
        for n in 65_500..65_600_u32 {
            assert!(d.is_first(A, n as u16, T));
            assert!(!d.is_first(A, n as u16, T));
        }
        assert!(
            d.is_first(MacAddr::local(2), 3, T),
            "another source counts on its own"
        );
    }

    #[test]
    fn late_ones_within_the_window_are_news_and_older_ones_are_not() {
        let mut d = Discard::<1>::default();
        assert!(d.is_first(A, 1_000, T));
        assert!(d.is_first(A, 1_000 - (WINDOW - 1), T));
        assert!(!d.is_first(A, 1_000 - (WINDOW - 1), T));
        assert!(!d.is_first(A, 1_000 - WINDOW, T));
    }

    #[test]
    fn a_source_that_begins_anew_is_heard_after_its_silence() {
        let mut d = Discard::<1>::default();
        assert!(d.is_first(A, 1_000, T));
        let soon = T.after(Duration::from_ms(100));
        assert!(!d.is_first(A, 1, soon));
        let later = T.after(Duration::from_ms(500));
        assert!(d.is_first(A, 1, later) && d.is_first(A, 2, later) && !d.is_first(A, 1, later));
    }

    /// A copy that waited for a channel is no new message, however long nothing else has come.
    #[test]
    fn a_late_copy_is_a_copy() {
        let mut d = Discard::<1>::default();
        assert!(d.is_first(A, 1_000, T) && d.is_first(A, 999, T));
        let later = T.after(Duration::from_ms(59_000));
        assert!(!d.is_first(A, 1_000, later) && !d.is_first(A, 999, later));
        // from here nobody has heard anything for a minute
        let much_later = T.after(Duration::from_ms(60_001));
        assert!(d.is_first(A, 1_000, much_later));
    }

    #[test]
    fn the_most_silent_source_makes_room() {
        let mut d = Discard::<2>::default();
        for (i, ms) in [(1, 1), (2, 2), (3, 3)] {
            assert!(d.is_first(MacAddr::local(i), 7, T.after(Duration::from_ms(ms))));
        }
        let now = T.after(Duration::from_ms(4));
        assert!(!d.is_first(MacAddr::local(2), 7, now) && d.is_first(MacAddr::local(1), 7, now));
    }

    proptest! {
        /// Against a set of all numbers, as long as nothing is older than the window.
        #[test]
        fn like_a_set(steps in proptest::collection::vec((0u16..90, 0u16..400), 1..300), start: u16) {
            let (mut d, mut set) = (Discard::<1>::default(), BTreeSet::new());
            let mut newest = 100_000 + u32::from(start);
            d.is_first(A, newest as u16, T);
            set.insert(newest);
            for (ahead, back) in steps {
                newest += u32::from(ahead);
                for n in [newest, newest - u32::from(back)] {
                    prop_assert_eq!(d.is_first(A, n as u16, T), set.insert(n), "{}", n);
                }
            }
        }
    }
}
