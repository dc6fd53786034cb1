//! For tests: the allocations of the calling thread, counted, and a radio below what must not allocate.
#![allow(unsafe_code)] // A global allocator is an unsafe trait; this one only counts and passes on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use radio::{AdapterId, Attribute, AttributeName, Msdu, Radio, Token, TxHow};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends has none any more.
    let _ = ALLOCATIONS.try_with(|all| all.set(all.get() + 1));
}

// SAFETY: every call goes to the system's allocator with its arguments unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps to the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps to the contract of `realloc`, and `alloc` above is the system's.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the contract of `dealloc`, and `alloc` above is the system's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How often this thread allocates while it does something.
pub(crate) fn allocations(body: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    body();
    ALLOCATIONS.get() - before
}

/// Requests that the radio keeps until they are asked for.
const MOST_OPEN: usize = 64;

/// A radio that takes requests and does nothing about them.
pub(crate) struct Still {
    open: [Token; MOST_OPEN],
    count: usize,
    given: u64,
}

impl Still {
    pub fn new() -> Still {
        Still {
            open: [Token(0); MOST_OPEN],
            count: 0,
            given: 0,
        }
    }

    /// A request that has not been taken yet.
    pub fn take(&mut self) -> Option<Token> {
        self.count = self.count.checked_sub(1)?;
        Some(self.open[self.count])
    }
}

impl Radio for Still {
    fn token(&mut self) -> Token {
        self.given += 1;
        Token(self.given)
    }

    fn request(&mut self, token: Token, _: &[u8], _: &TxHow) {
        self.open[self.count] = token;
        self.count += 1;
    }

    fn set(&mut self, _: Token, _: AdapterId, _: Attribute) {}

    fn get(&self, _: AdapterId, _: AttributeName) -> Option<Attribute> {
        None
    }

    fn abort(&mut self, _: Token) {}

    fn deliver(&mut self, _: Msdu<'_>) {}
}

#[test]
fn an_allocation_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1]))), 1);
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![0; 9]))), 1);
}
