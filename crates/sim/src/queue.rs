//! The event queue: a hierarchical timing wheel with exact order and true cancellation.
//!
//! Nine levels of 64 slots with a tick of 1024 ns cover 2^63 ns. Entries of the current tick are kept sorted, so
//! events come out ordered by (time, rank, sequence) to the nanosecond; the wheel only decides when an entry is
//! looked at. Push, pop and cancel take a bounded number of steps, whatever the number of entries (what grows
//! is the share of them that is not in the cache), and nothing is allocated once the slab has grown to its working
//! size.

/// Bits of a nanosecond time below the tick.
const TICK_BITS: u32 = 10;
/// 64 slots a level.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 9;
/// End of a list, and "not in a list".
const NIL: u32 = u32::MAX;

/// Names an entry of the queue until it is popped or cancelled; a stale handle cancels nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    index: u32,
    generation: u32,
}

struct Entry<E> {
    time: u64,
    /// Rank in the upper 8 bits, sequence number below: the order among equal times.
    order: u64,
    event: Option<E>,
    next: u32,
    prev: u32,
    generation: u32,
}

/// A queue of events `E`, popped in the order of (time, rank, sequence of pushes).
pub struct Queue<E> {
    entries: Vec<Entry<E>>,
    free: u32,
    heads: [[u32; SLOTS]; LEVELS],
    occupied: [u64; LEVELS],
    /// Current tick; entries at or before it are in `due`.
    tick: u64,
    /// Sorted, last one first to go: (time, order, index).
    due: Vec<(u64, u64, u32)>,
    pushes: u64,
    len: usize,
}

impl<E: Copy> Default for Queue<E> {
    fn default() -> Self {
        Queue {
            entries: Vec::new(),
            free: NIL,
            heads: [[NIL; SLOTS]; LEVELS],
            occupied: [0; LEVELS],
            tick: 0,
            due: Vec::new(),
            pushes: 0,
            len: 0,
        }
    }
}

impl<E: Copy> Queue<E> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Number of entries that have been made, in use or free.
    pub fn made(&self) -> usize {
        self.entries.len()
    }

    /// True if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event at `time` (ns, below 2^63). Among equal times the smaller `rank` goes first, then the earlier
    /// push. A time before that of the last pop is allowed and goes next.
    pub fn push(&mut self, time: u64, rank: u8, event: E) -> Handle {
        debug_assert!(time < 1 << 63, "time out of range");
        let order = u64::from(rank) << 56 | self.pushes;
        self.pushes += 1;
        self.len += 1;
        let index = self.allocate(time, order, event);
        self.file(index);
        Handle {
            index,
            generation: self.entries[index as usize].generation,
        }
    }

    /// Takes an entry out; false if it is not there any more.
    pub fn cancel(&mut self, handle: Handle) -> bool {
        let Some(e) = self.entries.get(handle.index as usize) else {
            return false;
        };
        if e.generation != handle.generation || e.event.is_none() {
            return false;
        }
        let (time, order) = (e.time, e.order);
        if time >> TICK_BITS <= self.tick {
            let at = self.due.binary_search_by(|d| (time, order).cmp(&(d.0, d.1)));
            self.due
                .remove(at.expect("an entry of the current tick is in the due list"));
        } else {
            self.unlink(handle.index);
        }
        self.release(handle.index);
        true
    }

    /// Time of the next event.
    pub fn next_time(&mut self) -> Option<u64> {
        if self.due.is_empty() && !self.advance() {
            return None;
        }
        self.due.last().map(|d| d.0)
    }

    /// Takes out the next event if it is not later than `limit`.
    #[inline]
    pub fn pop_until(&mut self, limit: u64) -> Option<(u64, E)> {
        if self.next_time()? > limit {
            return None;
        }
        let (time, _, index) = self.due.pop()?;
        let event = self.entries[index as usize]
            .event
            .expect("due entries hold an event");
        self.release(index);
        Some((time, event))
    }

    fn allocate(&mut self, time: u64, order: u64, event: E) -> u32 {
        if self.free == NIL {
            let index = self.entries.len() as u32;
            assert!(index < NIL, "too many events");
            self.entries.push(Entry {
                time,
                order,
                event: Some(event),
                next: NIL,
                prev: NIL,
                generation: 0,
            });
            return index;
        }
        let index = self.free;
        let e = &mut self.entries[index as usize];
        self.free = e.next;
        (e.time, e.order, e.event) = (time, order, Some(event));
        index
    }

    fn release(&mut self, index: u32) {
        let e = &mut self.entries[index as usize];
        e.event = None;
        e.generation = e.generation.wrapping_add(1);
        e.next = self.free;
        self.free = index;
        self.len -= 1;
    }

    /// Level and slot of a tick that is after the current one.
    fn place(&self, tick: u64) -> (usize, usize) {
        let level = (63 - (tick ^ self.tick).leading_zeros()) / SLOT_BITS;
        (
            (level as usize),
            (tick >> (level * SLOT_BITS)) as usize & (SLOTS - 1),
        )
    }

    fn file(&mut self, index: u32) {
        let e = &self.entries[index as usize];
        let (time, order) = (e.time, e.order);
        let tick = time >> TICK_BITS;
        if tick <= self.tick {
            let at = self.due.partition_point(|d| (d.0, d.1) > (time, order));
            self.due.insert(at, (time, order, index));
            return;
        }
        let (level, slot) = self.place(tick);
        let head = self.heads[level][slot];
        if head != NIL {
            self.entries[head as usize].prev = index;
        }
        let e = &mut self.entries[index as usize];
        e.next = head;
        e.prev = NIL;
        self.heads[level][slot] = index;
        self.occupied[level] |= 1 << slot;
    }

    fn unlink(&mut self, index: u32) {
        let Entry { time, next, prev, .. } = self.entries[index as usize];
        if next != NIL {
            self.entries[next as usize].prev = prev;
        }
        if prev != NIL {
            self.entries[prev as usize].next = next;
            return;
        }
        let (level, slot) = self.place(time >> TICK_BITS);
        self.heads[level][slot] = next;
        if next == NIL {
            self.occupied[level] &= !(1 << slot);
        }
    }

    /// Moves on to the next tick that has entries and fills the due list; false if there are none at all.
    fn advance(&mut self) -> bool {
        let Some(level) = (0..LEVELS).find(|l| self.occupied[*l] != 0) else {
            return false;
        };
        // all entries of a level are after the current tick, so the lowest slot of the lowest level is next
        let slot = self.occupied[level].trailing_zeros();
        let shift = level as u32 * SLOT_BITS;
        let above = self.tick >> (shift + SLOT_BITS) << SLOT_BITS;
        self.tick = (above | u64::from(slot)) << shift;
        self.occupied[level] &= !(1 << slot);
        let mut index = std::mem::replace(&mut self.heads[level][slot as usize], NIL);
        if level == 0 {
            while index != NIL {
                let e = &self.entries[index as usize];
                self.due.push((e.time, e.order, index));
                index = e.next;
            }
            if self.due.len() > 1 {
                self.due.sort_unstable_by_key(|d| std::cmp::Reverse((d.0, d.1)));
            }
            return true;
        }
        while index != NIL {
            let next = self.entries[index as usize].next;
            self.file(index);
            index = next;
        }
        !self.due.is_empty() || self.advance()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn order_of_equal_times() {
        let mut q = Queue::default();
        q.push(5_000, 1, 'c');
        q.push(5_000, 0, 'a');
        q.push(5_000, 0, 'b');
        q.push(4_999, 9, '0');
        let all: String = std::iter::from_fn(|| q.pop_until(u64::MAX))
            .map(|(_, e)| e)
            .collect();
        assert_eq!(all, "0abc");
        assert!(q.is_empty());
    }

    #[test]
    fn limits_and_far_times() {
        let mut q = Queue::default();
        let far = (1 << 63) - 1;
        q.push(far, 0, 2);
        q.push(0, 0, 1);
        assert_eq!(q.pop_until(far - 1), Some((0, 1)));
        assert_eq!(q.pop_until(far - 1), None);
        assert_eq!(q.next_time(), Some(far));
        // a push before what has been looked at already
        q.push(7, 0, 3);
        assert_eq!(q.pop_until(far), Some((7, 3)));
        assert_eq!(q.pop_until(far), Some((far, 2)));
        assert_eq!(q.next_time(), None);
    }

    #[test]
    fn cancelled_entries_are_gone_and_handles_go_stale() {
        let mut q = Queue::default();
        let a = q.push(10, 0, 'a');
        let b = q.push(1_000_000, 0, 'b');
        let c = q.push(1_000_000, 0, 'c');
        assert!(q.cancel(b) && !q.cancel(b));
        assert_eq!(q.pop_until(u64::MAX), Some((10, 'a')));
        assert!(!q.cancel(a));
        let d = q.push(20, 0, 'd');
        assert!(!q.cancel(a), "its place is taken by another entry");
        assert!(q.cancel(d));
        assert_eq!(q.len(), 1);
        assert!(q.cancel(c));
        assert_eq!((q.next_time(), q.len()), (None, 0));
    }

    /// Against an ordered map, over many orders of magnitude.
    #[test]
    fn same_as_a_map() {
        let mut x = 1u64;
        let mut random = move || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        };
        let mut q = Queue::default();
        let mut map = BTreeMap::new();
        let mut handles: Vec<(Handle, (u64, u64, u64))> = Vec::new();
        let mut now = 0;
        for id in 0..200_000u64 {
            match random() % 8 {
                0..4 => {
                    let time = now + (random() >> (10 + random() % 54));
                    let rank = random() % 3;
                    handles.push((q.push(time, rank as u8, id), (time, rank, id)));
                    map.insert((time, rank, id), id);
                }
                4 if !handles.is_empty() => {
                    let (h, key) = handles.swap_remove(random() as usize % handles.len());
                    assert_eq!(q.cancel(h), map.remove(&key).is_some());
                }
                _ => {
                    let expected = map.pop_first();
                    let got = q.pop_until(u64::MAX);
                    assert_eq!(got, expected.map(|((t, _, _), id)| (t, id)));
                    now = got.map_or(now, |g| g.0);
                }
            }
            assert_eq!(q.len(), map.len());
        }
    }
}
