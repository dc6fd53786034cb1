//! A pool of reusable objects named by index: nothing is allocated once it has grown to its working size.

/// Objects of type `T`; a released one keeps its buffers for the next user.
#[derive(Debug)]
pub struct Pool<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool {
            items: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Pool<T> {
    /// The index of a free object, made by `make` if there is none; it still holds what its last user left.
    pub fn take(&mut self, make: impl FnOnce() -> T) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.items.push(make());
            (self.items.len() - 1) as u32
        })
    }

    /// Puts `value` into a free place and tells its index.
    pub fn put(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.items[index as usize] = value;
                index
            }
            None => {
                self.items.push(value);
                (self.items.len() - 1) as u32
            }
        }
    }

    /// Number of objects, in use or free.
    pub fn made(&self) -> usize {
        self.items.len()
    }

    /// Gives an object back. The caller must own the index and must not use it again.
    pub fn release(&mut self, index: u32) {
        debug_assert!(!self.free.contains(&index), "released twice");
        self.free.push(index);
    }
}

impl<T> std::ops::Index<u32> for Pool<T> {
    type Output = T;
    fn index(&self, index: u32) -> &T {
        &self.items[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Pool<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.items[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuses_what_was_released() {
        let mut p = Pool::default();
        let a = p.take(|| vec![1u8; 100]);
        let b = p.put(vec![2]);
        p.release(a);
        let c = p.take(Vec::new);
        assert_eq!((c, p[c].len(), p[b][0]), (a, 100, 2));
    }
}
