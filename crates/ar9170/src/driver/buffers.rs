//! Memory for received frames between the interrupt that brings them and the turn that tells them: three policies,
//! which Contiki80211 compares.
//!
//! | policy | takes memory | for | gives it back |
//! |---|---|---|---|
//! | [`Static`] | always | frames of any length | never |
//! | [`Dynamic`] | in the interrupt | exactly this frame | when the frame was told |
//! | [`Hybrid`] | when a read is posted | a whole transfer | when all its frames were told |
//!
//! The first two lose a frame for which there is no room. The third does not post a read for which there is none, so
//! the stick keeps what it has.

/// Memory for received frames.
pub trait Buffers {
    /// Prepares for one more read. False: none may be posted now.
    fn arm(&mut self) -> bool;
    /// Keeps a unit of the transfer that has come; false if there is no room for it.
    fn keep(&mut self, unit: &[u8]) -> bool;
    /// The transfer has been gone through: the next unit is of another.
    fn transfer_ends(&mut self);
    /// The oldest unit.
    fn first(&self) -> Option<&[u8]>;
    /// Gives the oldest unit back.
    fn release(&mut self);
    /// Forgets everything: the stick was reset.
    fn clear(&mut self);
    /// Octets that are taken now, of those that could be.
    fn used_octets(&self) -> usize;
}

/// Memory that begins at a word.
#[derive(Clone, Debug)]
#[repr(align(4))]
struct Words<const L: usize>([u8; L]);

/// `N` buffers of `L` octets, for a unit each.
#[derive(Clone, Debug)]
pub struct Static<const N: usize, const L: usize> {
    units: [Words<L>; N],
    lengths: [u16; N],
    first: usize,
    len: usize,
}

impl<const N: usize, const L: usize> Default for Static<N, L> {
    fn default() -> Self {
        Static {
            units: [const { Words([0; L]) }; N],
            lengths: [0; N],
            first: 0,
            len: 0,
        }
    }
}

impl<const N: usize, const L: usize> Buffers for Static<N, L> {
    fn arm(&mut self) -> bool {
        true
    }

    fn keep(&mut self, unit: &[u8]) -> bool {
        if self.len == N || unit.len() > L {
            return false;
        }
        let at = (self.first + self.len) % N;
        self.units[at].0[..unit.len()].copy_from_slice(unit);
        self.lengths[at] = unit.len() as u16;
        self.len += 1;
        true
    }

    fn transfer_ends(&mut self) {}

    fn first(&self) -> Option<&[u8]> {
        (self.len > 0).then(|| &self.units[self.first].0[..self.lengths[self.first].into()])
    }

    fn release(&mut self) {
        if self.len > 0 {
            self.first = (self.first + 1) % N;
            self.len -= 1;
        }
    }

    fn clear(&mut self) {
        (self.first, self.len) = (0, 0);
    }

    fn used_octets(&self) -> usize {
        N * L
    }
}

/// Octets before each unit, of which the first two say how long it is. With four, and the end of each unit rounded up, units begin at
/// words, as they do in transfers, and are copied by words: that takes a third of the instructions.
const LENGTH: usize = 4;

/// Octets of a unit of so many, with its length.
const fn whole(octets: usize) -> usize {
    LENGTH + octets.next_multiple_of(LENGTH)
}

/// A heap of `OCTETS` octets, from which each unit takes what it needs. As frames leave in the order in which they
/// came, it is a ring, and nothing is ever between them; a unit that does not fit before the end begins at the front.
#[derive(Clone, Debug)]
pub struct Dynamic<const OCTETS: usize> {
    octets: Words<OCTETS>,
    /// Where the oldest unit begins, where the next one will, and where those at the end stop.
    head: usize,
    tail: usize,
    end: usize,
    used: usize,
}

impl<const OCTETS: usize> Default for Dynamic<OCTETS> {
    fn default() -> Self {
        Dynamic::new()
    }
}

impl<const OCTETS: usize> Dynamic<OCTETS> {
    /// Nothing is in it.
    pub const fn new() -> Self {
        Dynamic {
            octets: Words([0; OCTETS]),
            head: 0,
            tail: 0,
            end: OCTETS,
            used: 0,
        }
    }

    /// Where `octets` fit, if they do.
    fn place(&self, octets: usize) -> Option<usize> {
        let wrapped = self.used > 0 && self.tail <= self.head;
        match wrapped {
            true => (self.tail + octets <= self.head).then_some(self.tail),
            false if self.tail + octets <= OCTETS => Some(self.tail),
            false => (octets <= self.head).then_some(0),
        }
    }

    fn length_at(&self, at: usize) -> usize {
        u16::from_le_bytes([self.octets.0[at], self.octets.0[at + 1]]).into()
    }
}

impl<const OCTETS: usize> Buffers for Dynamic<OCTETS> {
    fn arm(&mut self) -> bool {
        true
    }

    fn keep(&mut self, unit: &[u8]) -> bool {
        let all = whole(unit.len());
        let (Some(at), Ok(length)) = (self.place(all), u16::try_from(unit.len())) else {
            return false;
        };
        if at != self.tail {
            self.end = self.tail;
        }
        let place = &mut self.octets.0[at..at + all];
        place[..2].copy_from_slice(&length.to_le_bytes());
        place[LENGTH..LENGTH + unit.len()].copy_from_slice(unit);
        self.tail = at + all;
        self.used += all;
        true
    }

    fn transfer_ends(&mut self) {}

    fn first(&self) -> Option<&[u8]> {
        if self.used == 0 {
            return None;
        }
        let at = self.head + LENGTH;
        Some(&self.octets.0[at..at + self.length_at(self.head)])
    }

    fn release(&mut self) {
        if self.used == 0 {
            return;
        }
        let all = whole(self.length_at(self.head));
        self.head += all;
        self.used -= all;
        if self.used == 0 {
            self.clear();
        } else if self.head == self.end {
            (self.head, self.end) = (0, OCTETS);
        }
    }

    fn clear(&mut self) {
        (self.head, self.tail, self.end, self.used) = (0, 0, OCTETS, 0);
    }

    fn used_octets(&self) -> usize {
        self.used
    }
}

/// `N` buffers of `L` octets, for the units of one transfer each.
#[derive(Clone, Debug)]
pub struct Hybrid<const N: usize, const L: usize> {
    buffers: [Words<L>; N],
    /// Octets written into each, and those of them that were told.
    filled: [(usize, usize); N],
    /// The oldest buffer that is taken, how many hold a transfer that has come, how many wait for one.
    first: usize,
    full: usize,
    armed: usize,
}

impl<const N: usize, const L: usize> Default for Hybrid<N, L> {
    fn default() -> Self {
        Hybrid {
            buffers: [const { Words([0; L]) }; N],
            filled: [(0, 0); N],
            first: 0,
            full: 0,
            armed: 0,
        }
    }
}

impl<const N: usize, const L: usize> Hybrid<N, L> {
    fn drop_told(&mut self) {
        while self.full > 0 && self.filled[self.first].0 == self.filled[self.first].1 {
            self.first = (self.first + 1) % N;
            self.full -= 1;
        }
    }
}

impl<const N: usize, const L: usize> Buffers for Hybrid<N, L> {
    fn arm(&mut self) -> bool {
        if self.full + self.armed == N {
            return false;
        }
        self.filled[(self.first + self.full + self.armed) % N] = (0, 0);
        self.armed += 1;
        true
    }

    fn keep(&mut self, unit: &[u8]) -> bool {
        let at = (self.first + self.full) % N;
        let (end, _) = self.filled[at];
        let all = whole(unit.len());
        let (true, Some(place), Ok(length)) = (
            self.armed > 0,
            self.buffers[at].0.get_mut(end..end + all),
            u16::try_from(unit.len()),
        ) else {
            return false;
        };
        place[..2].copy_from_slice(&length.to_le_bytes());
        place[LENGTH..LENGTH + unit.len()].copy_from_slice(unit);
        self.filled[at].0 += all;
        true
    }

    fn transfer_ends(&mut self) {
        if self.armed > 0 {
            self.armed -= 1;
            self.full += 1;
            self.drop_told();
        }
    }

    fn first(&self) -> Option<&[u8]> {
        if self.full == 0 {
            return None;
        }
        let buffer = &self.buffers[self.first].0;
        let (_, at) = self.filled[self.first];
        let length = u16::from_le_bytes([buffer[at], buffer[at + 1]]);
        Some(&buffer[at + LENGTH..at + LENGTH + usize::from(length)])
    }

    fn release(&mut self) {
        if let Some(unit) = self.first().map(<[u8]>::len) {
            self.filled[self.first].1 += whole(unit);
            self.drop_told();
        }
    }

    fn clear(&mut self) {
        (self.first, self.full, self.armed) = (0, 0, 0);
    }

    fn used_octets(&self) -> usize {
        (self.full + self.armed) * L
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec::Vec;

    /// A policy next to a queue without limit: what it keeps comes out in its order, and what it refuses does not.
    fn next_to_a_queue(mut policy: impl Buffers, steps: &[(u8, u16)]) -> Result<(), TestCaseError> {
        let mut queue: VecDeque<Vec<u8>> = VecDeque::new();
        let mut transfer: Vec<Vec<u8>> = Vec::new();
        for (i, (what, length)) in steps.iter().enumerate() {
            match what % 4 {
                0 => drop(policy.arm()),
                1 => {
                    let unit = std::vec![i as u8; usize::from(length % 90)];
                    if policy.keep(&unit) {
                        transfer.push(unit);
                    }
                }
                2 => {
                    policy.transfer_ends();
                    queue.extend(transfer.drain(..));
                }
                _ => {
                    policy.transfer_ends();
                    queue.extend(transfer.drain(..));
                    prop_assert_eq!(policy.first(), queue.front().map(Vec::as_slice));
                    policy.release();
                    queue.pop_front();
                }
            }
        }
        policy.clear();
        prop_assert_eq!(policy.first(), None);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 500 }))]
        #[test]
        fn policies_are_queues(steps in proptest::collection::vec(any::<(u8, u16)>(), 0..200)) {
            next_to_a_queue(Static::<4, 80>::default(), &steps)?;
            next_to_a_queue(Dynamic::<251>::default(), &steps)?;
            next_to_a_queue(Hybrid::<3, 200>::default(), &steps)?;
        }
    }

    #[test]
    fn each_takes_its_memory_when_it_says() {
        let mut fixed = Static::<4, 100>::default();
        let mut dynamic = Dynamic::<400>::default();
        let mut hybrid = Hybrid::<4, 100>::default();
        let used = |f: &Static<4, 100>, d: &Dynamic<400>, h: &Hybrid<4, 100>| {
            (f.used_octets(), d.used_octets(), h.used_octets())
        };
        assert!(fixed.arm() && dynamic.arm() && hybrid.arm());
        assert_eq!(used(&fixed, &dynamic, &hybrid), (400, 0, 100));
        assert!(fixed.keep(&[1; 30]) && dynamic.keep(&[1; 30]) && hybrid.keep(&[1; 30]));
        assert_eq!(used(&fixed, &dynamic, &hybrid), (400, 36, 100));
        hybrid.transfer_ends();
        fixed.release();
        dynamic.release();
        hybrid.release();
        assert_eq!(used(&fixed, &dynamic, &hybrid), (400, 0, 0));
        assert!((0..4).all(|_| hybrid.arm()) && !hybrid.arm());
    }

    #[test]
    fn a_heap_that_is_full_has_room_again() {
        let mut heap = Dynamic::<100>::default();
        for round in 0..50_u8 {
            while heap.keep(&[round; 31]) {}
            assert!(heap.used_octets() > 60);
            assert!(heap.first().is_some());
            heap.release();
            heap.release();
        }
    }
}
