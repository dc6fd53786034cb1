//! The receiving end of a stream: puts octets in order, and knows what is missing.

use super::ring::Ring;
use super::spans::Spans;

/// What became of octets that came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in super::super) struct Place {
    /// Some of them are new.
    pub new: bool,
    /// Octets missing between all that came before and these.
    pub skipped: u64,
    /// Some did not fit: too far ahead of the reader, or too many holes. They must be sent again.
    pub refused: bool,
}

/// See the [module](self). Keeps up to `H` spans behind holes.
#[derive(Clone, Debug)]
pub(in super::super) struct Inbox<O, const H: usize> {
    ring: Ring<O>,
    /// All before was read.
    read: u64,
    /// All before has come.
    next: u64,
    /// What has come beyond.
    beyond: Spans<H>,
    /// Length of the stream, when that is known.
    length: Option<u64>,
}

impl<O: AsRef<[u8]> + AsMut<[u8]>, const H: usize> Inbox<O, H> {
    pub fn new(store: O) -> Self {
        Inbox {
            ring: Ring::new(store),
            read: 0,
            next: 0,
            beyond: Spans::default(),
            length: None,
        }
    }

    /// Takes in the octets at `start`; `last` says that the stream ends with them.
    pub fn take(&mut self, start: u64, octets: &[u8], last: bool) -> Place {
        let end = start + octets.len() as u64;
        let limit = self.length.unwrap_or(self.read + self.ring.capacity() as u64);
        let (from, to) = (start.max(self.next), end.min(limit));
        let highest = self.highest();
        let mut place = Place {
            refused: end > limit,
            ..Place::default()
        };
        // the end is known once and never moves
        if last && end <= limit && end >= highest && self.length.is_none() {
            self.length = Some(end);
            place.new = true;
        }
        if from >= to {
            return place;
        }
        let before = self.beyond.iter().any(|s| s.0 <= from && to <= s.1);
        if from == self.next {
            self.next = to;
            while let Some(end) = self.beyond.take_at(self.next) {
                self.next = self.next.max(end);
            }
        } else if !self.beyond.insert(from, to) {
            place.refused = true;
            return place;
        }
        self.ring
            .put(from, &octets[(from - start) as usize..(to - start) as usize]);
        place.new |= !before;
        place.skipped = from.saturating_sub(highest);
        place
    }

    /// The offset up to which all has come; the end of the stream counts as one more.
    pub fn acknowledgement(&self) -> u64 {
        self.next + u64::from(self.is_complete())
    }

    /// True if the whole stream has come.
    pub fn is_complete(&self) -> bool {
        self.length == Some(self.next)
    }

    /// One more than the highest octet that has come.
    pub fn highest(&self) -> u64 {
        self.beyond.end().unwrap_or(self.next)
    }

    /// What is missing below [`highest`](Inbox::highest), oldest first.
    pub fn holes(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = core::iter::once(self.next).chain(self.beyond.iter().map(|s| s.1));
        starts.zip(self.beyond.iter().map(|s| s.0))
    }

    /// Octets that can be read.
    pub fn unread(&self) -> usize {
        (self.next - self.read) as usize
    }

    /// Octets that fit at most.
    pub fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    /// Reads in order, and tells how many.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let n = out.len().min(self.unread());
        self.ring.get(self.read, &mut out[..n]);
        self.read += n as u64;
        n
    }

    /// True if all was read and no more will come.
    pub fn is_exhausted(&self) -> bool {
        self.length == Some(self.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn holes_and_ends() {
        let mut i: Inbox<_, 2> = Inbox::new([0; 10]);
        let place = i.take(2, b"cd", false);
        assert_eq!((place.new, place.skipped, place.refused), (true, 2, false));
        assert!(!i.take(2, b"cd", false).new, "again");
        assert_eq!(i.take(6, b"g", false).skipped, 2);
        assert!(i.take(8, b"i", false).refused, "a third span");
        assert_eq!(i.holes().collect::<Vec<_>>(), [(0, 2), (4, 6)]);
        assert_eq!((i.acknowledgement(), i.highest()), (0, 7));
        assert!(i.take(0, b"abcdefg", false).new);
        assert_eq!((i.acknowledgement(), i.holes().count(), i.unread()), (7, 0, 7));
        assert!(
            i.take(7, b"hijkl", true).refused,
            "two do not fit, and so the end is not known"
        );
        let mut out = [0; 6];
        assert_eq!((i.read(&mut out), &out), (6, b"abcdef"));
        assert!(i.take(10, b"kl", true).new);
        assert_eq!(
            (i.acknowledgement(), i.is_complete(), i.is_exhausted()),
            (13, true, false)
        );
        assert!(i.take(12, b"m", false).refused, "beyond the end");
        assert_eq!((i.read(&mut out), i.is_exhausted()), (6, true));
    }

    proptest! {
        /// Any pieces in any order, read at any time: the stream comes out.
        #[test]
        fn in_order(pieces in proptest::collection::vec((0u64..200, 0usize..30, any::<bool>()), 0..200)) {
            let stream: Vec<u8> = (0..230).map(|n| n as u8).collect();
            let mut i: Inbox<_, 4> = Inbox::new(std::vec![0; 64]);
            let mut got = Vec::new();
            let mut out = [0; 16];
            for (start, octets, read) in pieces {
                i.take(start, &stream[start as usize..start as usize + octets], false);
                if read {
                    let n = i.read(&mut out);
                    got.extend_from_slice(&out[..n]);
                }
                prop_assert!(i.unread() <= 64 && i.highest() <= i.read + 64);
            }
            // what is left comes in order
            while got.len() < stream.len() {
                let next = (i.acknowledgement() as usize).min(stream.len());
                let end = (next + 20).min(stream.len());
                i.take(next as u64, &stream[next..end], end == stream.len());
                let n = i.read(&mut out);
                got.extend_from_slice(&out[..n]);
            }
            prop_assert!(got == stream && i.is_exhausted());
        }
    }
}
