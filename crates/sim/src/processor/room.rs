//! Room for what waits for memory.

use std::collections::VecDeque;

use crate::Cycle;

/// A number of places, each in use or free since some cycle. The place that is free for longest is used
/// first, so a request gets its place as early as can be.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// Places that were never used.
    fresh: u64,
    used: u64,
    /// When the others that are free became so, in order of time.
    freed: VecDeque<Cycle>,
    last_freed: Cycle,
}

impl Room {
    pub(super) fn new(places: u64) -> Self {
        Self { fresh: places, used: 0, freed: VecDeque::new(), last_freed: 0 }
    }

    /// Since when there is a place. `None`: there is none.
    pub(super) fn free_since(&self) -> Option<Cycle> {
        if self.fresh > 0 { Some(0) } else { self.freed.front().copied() }
    }

    /// Uses a place, if there is one.
    pub(super) fn fill(&mut self) {
        self.used += 1;
        if self.fresh > 0 {
            self.fresh -= 1;
        } else {
            self.freed.pop_front();
        }
    }

    /// A place becomes free.
    ///
    /// # Panics
    /// When none was in use, or another became free later than that: where it counts which is the first, they must be told
    /// in order.
    pub(super) fn free(&mut self, at: Cycle) {
        assert!(at >= self.last_freed, "room at {at} is told after room at {}", self.last_freed);
        assert!(self.used > 0, "nothing waits that could make room at {at}");
        self.used -= 1;
        self.last_freed = at;
        self.freed.push_back(at);
    }
}
