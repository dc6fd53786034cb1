//! The frames of one queue: linked through the frames themselves, so that adapters without traffic carry no buffers.

use crate::core::{NONE, TxFrame};
use crate::pool::Pool;

/// Frames in the order in which they came, by their numbers in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    head: u32,
    tail: u32,
    len: u32,
}

impl Line {
    pub const EMPTY: Line = Line {
        head: NONE,
        tail: NONE,
        len: 0,
    };

    #[inline]
    pub fn front(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// Puts a frame, which must be in no line, behind the others.
    pub fn push_back(&mut self, id: u32, frames: &mut Pool<TxFrame>) {
        frames[id].next = NONE;
        match self.front() {
            None => self.head = id,
            Some(_) => frames[self.tail].next = id,
        }
        self.tail = id;
        self.len += 1;
    }

    /// Takes a frame out, wherever it is; does nothing if it is not in this line.
    pub fn remove(&mut self, id: u32, frames: &mut Pool<TxFrame>) {
        let next = frames[id].next;
        if self.head == id {
            self.head = next;
        } else {
            let Some(before) = self.iter(frames).find(|i| frames[*i].next == id) else {
                return;
            };
            frames[before].next = next;
            if self.tail == id {
                self.tail = before;
            }
        }
        if self.head == NONE {
            self.tail = NONE;
        }
        self.len -= 1;
    }

    pub fn contains(&self, id: u32, frames: &Pool<TxFrame>) -> bool {
        self.iter(frames).any(|i| i == id)
    }

    fn iter<'a>(&self, frames: &'a Pool<TxFrame>) -> impl Iterator<Item = u32> + 'a {
        std::iter::successors(self.front(), |i| Some(frames[*i].next).filter(|n| *n != NONE))
    }
}
