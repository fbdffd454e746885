//! How much memory something takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

#[global_allocator]
static COUNTED: Counted = Counted;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counted;

// SAFETY: all of it is the system's.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let taken = TAKEN.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(taken, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Fails if `act` has more than `bytes_max` bytes at a time, beside those that there were.
pub(crate) fn check_allocations<T>(bytes_max: usize, act: impl FnOnce() -> T) -> T {
    let before = TAKEN.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let outcome = act();
    let most = MOST.load(Ordering::Relaxed).saturating_sub(before);
    assert!(most <= bytes_max, "{most} bytes are taken, of {bytes_max}");
    outcome
}
