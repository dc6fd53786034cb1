//! Nothing is allocated in steady state.
mod common;

use common::*;
use sim::adapter::AccessRules;
use sim::medium::ErrorModel;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the allocations of each thread.
struct Counting;

// SAFETY: every call is passed on to the system allocator unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(at, layout, size) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(mut w: sim::World<Plain>, warm_up_ms: u64, ms: u64) -> (u64, u64) {
    w.run_until(warm_up_ms * 1_000_000);
    let (before, frames) = (ALLOCATIONS.get(), w.frames_on_air());
    w.run_until((warm_up_ms + ms) * 1_000_000);
    (ALLOCATIONS.get() - before, w.frames_on_air() - frames)
}

#[test]
fn saturation_allocates_nothing() {
    let w = saturation(10, 1, AccessRules::ns3(), 45, -82.0);
    let (count, frames) = allocations(w, 2_000, 2_000);
    assert!(frames > 10_000, "{frames}");
    assert_eq!(count, 0, "in {frames} frames");
}

/// Pools still grow when more frames than ever are under way at once: seldom, and never per frame.
#[test]
fn the_grid_allocates_next_to_nothing() {
    let (count, frames) = allocations(grid(100, 1, ErrorModel::Nist), 2_000, 2_000);
    assert!(frames > 20_000, "{frames}");
    assert!(count * 1_000 < frames, "{count} in {frames} frames");
}
