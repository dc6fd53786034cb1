//! The other end of a measurement: delivers what arrives, and remembers which sequence numbers of a
//! [`Oneshot`](super::oneshot) did, so that lost data (L_D) and lost ACKs (L_A) can be told apart
//! (SDMAC, Cena et al. 2018, section V.C.3). The ACKs are the adapter's work.

use super::data::{Duplicates, ETHERTYPE_PAYLOAD, Identity, Received};
use super::oneshot::SEQUENCE_OCTETS;
use radio::{Event, Instant, Msdu, Protocol, Radio};

/// See the [module](self). Remembers the latest `64 * W` sequence numbers; duplicates are told for up to 16
/// transmitters.
#[derive(Clone, Debug)]
pub struct Sink<const W: usize = 64> {
    identity: Identity,
    duplicates: Duplicates<16>,
    frames: u64,
    repeated: u64,
    foreign: u64,
    /// One more than the highest number so far.
    end: u32,
    seen: [u64; W],
}

impl<const W: usize> Sink<W> {
    /// A sink that has received nothing yet.
    pub fn new(identity: Identity) -> Self {
        Sink {
            identity,
            duplicates: Duplicates::default(),
            frames: 0,
            repeated: 0,
            foreign: 0,
            end: 0,
            seen: [0; W],
        }
    }

    /// MSDUs delivered.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Frames that had been delivered before.
    pub fn duplicates(&self) -> u64 {
        self.repeated
    }

    /// Frames for others, of other kinds, or that could not be read.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Whether the frame with this number arrived; `None` if that is too long ago to know.
    pub fn received(&self, sequence: u32) -> Option<bool> {
        if sequence >= self.end {
            return Some(false);
        }
        let age = (self.end - 1 - sequence) as usize;
        (age < 64 * W).then(|| {
            let (word, bit) = Self::place(sequence);
            self.seen[word] & bit != 0
        })
    }

    fn place(sequence: u32) -> (usize, u64) {
        (sequence as usize / 64 % W, 1 << (sequence % 64))
    }

    fn mark(&mut self, sequence: u32) {
        if W == 0 || sequence == u32::MAX {
            return;
        }
        if sequence >= self.end {
            // forget what the new numbers take the place of
            let new = sequence - self.end + 1;
            if new as usize >= 64 * W {
                self.seen = [0; W];
            } else {
                for n in self.end..=sequence {
                    let (word, bit) = Self::place(n);
                    self.seen[word] &= !bit;
                }
            }
            self.end = sequence + 1;
        } else if (self.end - 1 - sequence) as usize >= 64 * W {
            return;
        }
        let (word, bit) = Self::place(sequence);
        self.seen[word] |= bit;
    }
}

impl<const W: usize> Protocol for Sink<W> {
    fn handle(&mut self, _now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let Event::Indication(i) = event else {
            return;
        };
        let mine = |r: &Received<'_>| r.is_for(self.identity.me) && r.ethertype == ETHERTYPE_PAYLOAD;
        let Some(r) = Received::parse(i.frame).filter(mine) else {
            self.foreign += 1;
            return;
        };
        if self.duplicates.is_duplicate(&r) {
            self.repeated += 1;
            return;
        }
        self.frames += 1;
        if let Some(number) = r.payload.first_chunk::<SEQUENCE_OCTETS>() {
            self.mark(u32::from_be_bytes(*number));
        }
        radio.deliver(Msdu {
            peer: r.source,
            category: r.category(),
            deadline: None,
            payload: r.payload,
        });
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::MacAddr;
    use proptest::prelude::*;

    fn sink<const W: usize>() -> Sink<W> {
        Sink::new(Identity::access_point(MacAddr::local(1)))
    }

    #[test]
    fn numbers_leave_the_window() {
        let mut s: Sink<1> = sink();
        s.mark(0);
        s.mark(2);
        assert_eq!(
            [0, 1, 2, 3].map(|n| s.received(n)),
            [true, false, true, false].map(Some)
        );
        s.mark(64);
        assert_eq!(
            [0, 1, 2, 64].map(|n| s.received(n)),
            [None, Some(false), Some(true), Some(true)]
        );
        s.mark(0);
        assert_eq!((s.received(0), s.received(64)), (None, Some(true)));
        s.mark(1_000_000);
        assert_eq!((s.received(999_999), s.received(64)), (Some(false), None));
    }

    proptest! {
        /// Against a set of all numbers.
        #[test]
        fn the_window_is_a_set(steps in proptest::collection::vec((0u32..40, any::<bool>()), 1..200)) {
            let mut s: Sink<2> = sink();
            let mut all = std::collections::BTreeSet::new();
            let mut n = 0u32;
            for (step, back) in steps {
                n = if back { n.saturating_sub(step) } else { n + step };
                s.mark(n);
                all.insert(n);
                let end = *all.last().unwrap();
                for m in end.saturating_sub(127)..=end {
                    prop_assert_eq!(s.received(m), Some(all.contains(&m)) , "{}", m);
                }
            }
        }
    }
}
