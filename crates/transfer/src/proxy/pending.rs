//! Octets taken from one side that the other has no room for yet.

/// Octets that wait at most between the two, each way.
const ROOM: usize = 1 << 14;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Pending {
    pub octets: Box<[u8]>,
    pub from: usize,
    to: usize,
}

impl Pending {
    pub fn new() -> Self {
        Pending {
            octets: vec![0; ROOM].into(),
            from: 0,
            to: 0,
        }
    }
    pub fn is_empty(&self) -> bool {
        self.from == self.to
    }
    pub fn filled(&mut self, n: usize) {
        (self.from, self.to) = (0, n);
    }
    pub fn rest(&self) -> &[u8] {
        &self.octets[self.from..self.to]
    }
}
