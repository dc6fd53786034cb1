//! A stretch of a stream in a buffer: the octet at offset `n` lies at `n` modulo its length.

/// See the [module](self). Who uses it keeps stretches no longer than the buffer.
#[derive(Clone, Debug)]
pub(in super::super) struct Ring<O> {
    store: O,
}

impl<O: AsRef<[u8]> + AsMut<[u8]>> Ring<O> {
    pub fn new(store: O) -> Ring<O> {
        Ring { store }
    }

    /// Octets that fit.
    pub fn capacity(&self) -> usize {
        self.store.as_ref().len()
    }

    /// Writes `octets` at `offset`.
    pub fn put(&mut self, offset: u64, octets: &[u8]) {
        let store = self.store.as_mut();
        if store.is_empty() || octets.is_empty() {
            return;
        }
        let at = (offset % store.len() as u64) as usize;
        let first = octets.len().min(store.len() - at);
        store[at..at + first].copy_from_slice(&octets[..first]);
        store[..octets.len() - first].copy_from_slice(&octets[first..]);
    }

    /// Reads as many octets as `out` has, from `offset` on.
    pub fn get(&self, offset: u64, out: &mut [u8]) {
        let store = self.store.as_ref();
        if store.is_empty() || out.is_empty() {
            return;
        }
        let at = (offset % store.len() as u64) as usize;
        let first = out.len().min(store.len() - at);
        let (head, tail) = out.split_at_mut(first);
        head.copy_from_slice(&store[at..at + first]);
        tail.copy_from_slice(&store[..tail.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn around_the_end() {
        let mut r = Ring::new([0; 5]);
        r.put(u64::from(u32::MAX) * 5 + 3, b"abcd");
        let mut out = [0; 4];
        r.get(u64::from(u32::MAX) * 5 + 3, &mut out);
        assert_eq!((&out, &r.store), (b"abcd", b"cd\0ab"));
        let mut none = Ring::new([0; 0]);
        none.put(3, b"");
        none.get(3, &mut []);
        assert_eq!(none.capacity(), 0);
    }
}
