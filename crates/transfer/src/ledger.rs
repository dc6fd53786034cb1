//! Which octets of the content are among the octets of the stream that the other end has.

use std::collections::VecDeque;

/// Pieces of the content that are shorter than this share an entry.
const SHORT: u64 = 4_096;

/// A stretch of the stream.
#[derive(Debug)]
struct Entry {
    /// Octets that are no content.
    framing: u64,
    content: u64,
}

/// What was written into the stream and is not acknowledged as a whole.
#[derive(Debug, Default)]
pub struct Ledger {
    entries: VecDeque<Entry>,
    /// Octets of the stream before the first entry, and of the content among them.
    before: (u64, u64),
}

impl Ledger {
    /// Octets come behind what was written: first so many that are none of the content, then so many that are.
    pub fn add(&mut self, framing: u64, content: u64) {
        match self.entries.back_mut() {
            Some(last) if last.content + content < SHORT => {
                last.framing += framing;
                last.content += content;
            }
            _ => self.entries.push_back(Entry { framing, content }),
        }
    }

    /// Octets of the content that have certainly arrived with the first `acknowledged` ones of the stream.
    pub fn arrived(&mut self, acknowledged: u64) -> u64 {
        while let Some(first) = self.entries.front()
            && acknowledged >= self.before.0 + first.framing + first.content
        {
            self.before.0 += first.framing + first.content;
            self.before.1 += first.content;
            self.entries.pop_front();
        }
        let some = self.entries.front().map_or(0, |first| {
            let octets = acknowledged.saturating_sub(self.before.0 + first.framing);
            octets.min(first.content)
        });
        self.before.1 + some
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Never more than has arrived, and all of it in the end.
        #[test]
        fn no_octet_too_much(pieces in prop::collection::vec((0u64..30, 0u64..9_000), 0..50), steps in prop::collection::vec(0u64..4_000, 0..200)) {
            let mut ledger = Ledger::default();
            for (framing, content) in &pieces {
                ledger.add(*framing, *content);
            }
            let all: u64 = pieces.iter().map(|(f, c)| f + c).sum();
            let content: u64 = pieces.iter().map(|(_, c)| c).sum();
            let (mut acknowledged, mut last) = (0, 0);
            for step in steps {
                acknowledged = (acknowledged + step).min(all);
                let mut rest = acknowledged;
                let mut true_octets = 0;
                for (framing, content) in &pieces {
                    rest = rest.saturating_sub(*framing);
                    true_octets += rest.min(*content);
                    rest = rest.saturating_sub(*content);
                }
                let arrived = ledger.arrived(acknowledged);
                prop_assert!(last <= arrived && arrived <= true_octets, "{arrived} of {true_octets}");
                last = arrived;
            }
            prop_assert_eq!(ledger.arrived(all), content);
        }
    }

    #[test]
    fn many_short_pieces_are_one_entry() {
        let mut ledger = Ledger::default();
        for _ in 0..4_000 {
            ledger.add(4, 1);
        }
        assert_eq!((ledger.entries.len(), ledger.arrived(20_000)), (1, 4_000));
    }
}
