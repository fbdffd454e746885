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
}

impl Room {
    pub(super) fn new(places: u64) -> Self {
        Self { fresh: places, used: 0, freed: VecDeque::new() }
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

    /// A place becomes free. One that becomes free earlier may be told of later, but before it is needed.
    ///
    /// # Panics
    /// When none was in use.
    pub(super) fn free(&mut self, at: Cycle) {
        assert!(self.used > 0, "nothing waits that could make room at {at}");
        self.used -= 1;
        let later = self.freed.iter().rev().take_while(|freed| **freed > at).count();
        self.freed.insert(self.freed.len() - later, at);
    }
}
