//! When the program is switched out, and how far its flush is (IR-ORAM, section IV-C).
//!
//! ```text
//!  runs ──► stash into the tree ──► tree top to memory ──► tree top back ──► runs
//!           evictions, a slot each   └───────── all at once ──────────┘
//! ```
//!
//! Blocks of the (F-)stash go to the ORAM tree; buckets that the client keeps are sealed and written to memory, in sets
//! (S-Stash) as in a dedicated cache. When the program resumes they are read again, and the pointers to them (TT) follow
//! from what is read. The paper says nothing of the PLB, of the positions on the chip and of the LLC: they stay as they
//! are. How many evictions it takes tells whoever watches how full the stash was.

use crate::{Cycle, SimError};

/// More evictions than any stash takes that can be emptied at all.
const EVICTIONS_MAX: u64 = 100_000;

/// The context switches of a program.
#[derive(Clone, Debug)]
pub(super) struct ContextSwitches {
    /// For how long it runs.
    slice: Option<Cycle>,
    /// When it is switched out next, if it has run.
    due: Cycle,
    /// Whether it has taken a slot since it was switched in. One at least, or it would never come to an end.
    has_run: bool,
    /// Evictions of the flush that is under way.
    evictions: Option<u64>,
}

impl ContextSwitches {
    pub(super) fn new(slice: Option<Cycle>) -> Self {
        Self { slice, due: slice.unwrap_or(Cycle::MAX), has_run: false, evictions: None }
    }

    /// When the program is switched out next, as long as it does not rest.
    pub(super) fn due(&self) -> Option<Cycle> {
        (self.slice.is_some() && self.has_run).then_some(self.due)
    }

    /// The program has no request under way at `now`: it is switched out if it is time.
    pub(super) fn begin(&mut self, now: Cycle) {
        if self.evictions.is_none() && self.due().is_some_and(|due| due <= now) {
            self.evictions = Some(0);
        }
    }

    /// Whether the program is switched out.
    pub(super) fn is_under_way(&self) -> bool {
        self.evictions.is_some()
    }

    /// The flush evicts once more.
    pub(super) fn evict(&mut self) -> Result<(), SimError> {
        let evictions = self.evictions.get_or_insert(0);
        *evictions += 1;
        if *evictions <= EVICTIONS_MAX {
            return Ok(());
        }
        Err(SimError::Spec(format!(
            "at a context switch {EVICTIONS_MAX} evictions left blocks in the stash: use wider buckets near the root"
        )))
    }

    /// A path has taken a slot: one of the program, unless it is switched out.
    pub(super) fn ran(&mut self) {
        self.has_run |= self.evictions.is_none();
    }

    /// The program is switched in again at `now`.
    pub(super) fn end(&mut self, now: Cycle) {
        self.evictions = None;
        self.has_run = false;
        self.due = self.slice.map_or(Cycle::MAX, |slice| now.saturating_add(slice));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_begins_when_the_flush_before_it_ends_and_has_a_path_at_least() {
        let mut switches = ContextSwitches::new(Some(100));
        switches.begin(200);
        assert_eq!((switches.due(), switches.is_under_way()), (None, false), "it has not run");
        switches.ran();
        switches.begin(99);
        assert_eq!((switches.due(), switches.is_under_way()), (Some(100), false));
        switches.begin(100);
        assert!(switches.is_under_way());
        switches.ran();
        switches.end(700);
        switches.begin(5000);
        assert!(!switches.is_under_way(), "paths of the flush are none of the program");
        switches.ran();
        assert_eq!(switches.due(), Some(800));
    }

    #[test]
    fn who_is_never_switched_out_runs_on() {
        let mut switches = ContextSwitches::new(None);
        switches.ran();
        switches.begin(Cycle::MAX);
        assert_eq!((switches.due(), switches.is_under_way()), (None, false));
    }

    #[test]
    fn a_stash_that_does_not_become_empty_ends_the_simulation() {
        let mut switches = ContextSwitches::new(Some(1));
        let refused = (0..=EVICTIONS_MAX).find_map(|_| switches.evict().err()).unwrap();
        assert!(refused.to_string().contains("wider buckets"), "{refused}");
    }
}
