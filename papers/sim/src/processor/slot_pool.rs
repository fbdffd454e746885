//! A pool of places for requests that wait for memory.

use std::collections::VecDeque;

use crate::Cycle;

/// A fixed number of places. Each place is in use, or has been free since some cycle. The place
/// that has been free for longest is used first, so a request gets its place as early as possible.
#[derive(Clone, Debug)]
pub(super) struct SlotPool {
    /// The number of places that were never used.
    fresh: u64,
    used: u64,
    /// The cycles at which the free places that were used before became free, in order.
    freed: VecDeque<Cycle>,
}

impl SlotPool {
    pub(super) fn new(places: u64) -> Self {
        Self { fresh: places, used: 0, freed: VecDeque::new() }
    }

    /// The cycle from which a place is free; `None` if all are in use.
    pub(super) fn free_since(&self) -> Option<Cycle> {
        if self.fresh > 0 { Some(0) } else { self.freed.front().copied() }
    }

    /// Uses the place that has been free for longest.
    pub(super) fn acquire(&mut self) {
        self.used += 1;
        if self.fresh > 0 {
            self.fresh -= 1;
        } else {
            self.freed.pop_front();
        }
    }

    /// Frees a place at cycle `at`. The cycles of calls need not ascend, but each call must precede
    /// the [`acquire`](Self::acquire) that uses the place.
    ///
    /// # Panics
    /// If no place was in use.
    pub(super) fn release(&mut self, at: Cycle) {
        assert!(self.used > 0, "no place is in use that could become free at {at}");
        self.used -= 1;
        let later = self.freed.iter().rev().take_while(|freed| **freed > at).count();
        self.freed.insert(self.freed.len() - later, at);
    }
}
