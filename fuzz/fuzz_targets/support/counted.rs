//! Measures the memory that a function call allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

#[global_allocator]
static COUNTED: Counted = Counted;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counted;

// SAFETY: forwards all calls to the system allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let taken = TAKEN.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(taken, Ordering::Relaxed);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Panics if the memory allocated during `act` ever exceeds the memory allocated before by more
/// than `bytes_max` bytes.
pub(crate) fn check_allocations<T>(bytes_max: usize, act: impl FnOnce() -> T) -> T {
    let before = TAKEN.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let outcome = act();
    let most = MOST.load(Ordering::Relaxed).saturating_sub(before);
    assert!(most <= bytes_max, "{most} bytes were allocated, at most {bytes_max} are allowed");
    outcome
}
