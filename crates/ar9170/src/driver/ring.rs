//! A queue of fixed length.

/// Up to `N` values, first in, first out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring<T, const N: usize> {
    slots: [Option<T>; N],
    first: usize,
    len: usize,
}

impl<T: Copy, const N: usize> Ring<T, N> {
    pub(super) const fn new() -> Ring<T, N> {
        Ring {
            slots: [None; N],
            first: 0,
            len: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == N
    }

    /// False if there is no room.
    #[must_use]
    pub(super) fn push(&mut self, value: T) -> bool {
        if self.is_full() {
            return false;
        }
        self.slots[(self.first + self.len) % N] = Some(value);
        self.len += 1;
        true
    }

    pub(super) fn first(&self) -> Option<&T> {
        self.slots[self.first].as_ref().filter(|_| self.len > 0)
    }

    pub(super) fn first_mut(&mut self) -> Option<&mut T> {
        self.slots[self.first].as_mut().filter(|_| self.len > 0)
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let value = self.slots[self.first].take();
        self.first = (self.first + 1) % N;
        self.len -= 1;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out() {
        let mut ring: Ring<u32, 3> = Ring::new();
        for round in 0..10 {
            assert!(ring.first().is_none() && ring.pop().is_none());
            assert!((0..3).all(|i| ring.push(3 * round + i)) && !ring.push(99));
            assert_eq!(ring.first(), Some(&(3 * round)));
            assert!((0..3).all(|i| ring.pop() == Some(3 * round + i)));
        }
    }
}
