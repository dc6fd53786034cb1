//! Measuring loops do not allocate: ten times as many samples take not one allocation more.
#![allow(unsafe_code)] // A global allocator is an unsafe trait; this one only counts and passes on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use linux::host::{Load, Mechanism, Plan, Sched, SeriesKind, measure};

/// Counts the allocations of measuring threads, which are known by their name.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
const NAME: &str = "sdmac-measure";

fn count() {
    let mut name = [0_u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 octets, the size of `name` (prctl(2)).
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    if name.starts_with(NAME.as_bytes()) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator with its arguments unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
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

#[test]
fn ten_times_the_samples_take_no_further_allocation() {
    let thread = std::thread::Builder::new()
        .name(NAME.into())
        .spawn(|| drop(std::hint::black_box(vec![1])));
    thread.unwrap().join().unwrap();
    assert!(
        ALLOCATIONS.load(Ordering::Relaxed) > 0,
        "allocations of such a thread are counted"
    );
    // A kernel without etf has nothing to allocate for.
    let etf = SeriesKind::Timer(Mechanism::Etf);
    for kind in SeriesKind::ALL.into_iter().filter(|kind| *kind != etf) {
        for sched in Sched::ALL {
            let allocations = |samples| {
                let plan = Plan {
                    samples,
                    period_us: 500,
                    what: vec![kind],
                    loads: vec![Load::Idle],
                    sched: vec![sched],
                    budget: Duration::from_secs(3600),
                    ..Plan::default()
                };
                let before = ALLOCATIONS.load(Ordering::Relaxed);
                let measurement = measure(&plan, &|_, _, _: &str| (), &AtomicBool::new(false)).unwrap();
                let got: usize = measurement
                    .results
                    .iter()
                    .map(|series| series.samples_ns.len())
                    .sum();
                (ALLOCATIONS.load(Ordering::Relaxed) - before, got)
            };
            let (few, some) = allocations(10);
            let (many, more) = allocations(100);
            // Without the right to SCHED_FIFO or to lock memory there is nothing to measure.
            assert!(
                (some, more) == (10, 100) || (sched != Sched::OTHER && (some, more) == (0, 0)),
                "{kind}: {some} {more}"
            );
            assert_eq!(few, many, "{kind}, {sched}");
        }
    }
}
