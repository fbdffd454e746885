//! Context switches of the program, with the flush of the ORAM's state (IR-ORAM, section IV-C).
//!
//! ```text
//!  runs ──► stash into the tree ──► tree top to memory ──► tree top back ──► runs
//!           evictions, a slot each   └───────── all at once ──────────┘
//! ```
//!
//! The flush evicts the blocks of the stash (F-Stash) to the ORAM tree. Then it seals the buckets
//! of the tree top and writes them to memory, whether they are kept in sets (S-Stash) or in a
//! dedicated cache. When the program resumes, they are read again, and the table of pointers to
//! them (TT) is rebuilt. The paper does not mention the PLB, the positions on chip, and the LLC, so
//! they stay unchanged. The number of evictions shows an observer the number of blocks in the
//! stash.

use crate::{Cycle, SimError};

/// The maximum number of evictions of a flush. A stash normally becomes empty after far fewer. If
/// it does not, the flush fails.
const EVICTIONS_MAX: u64 = 100_000;

/// Decides when the program is switched out, and tracks the flush of the ORAM's state.
#[derive(Clone, Debug)]
pub(super) struct ContextSwitches {
    /// The time that the program runs between switches; `None` if it is never switched out.
    slice: Option<Cycle>,
    /// The time of the next switch, provided that a path has taken a slot since the last one.
    due: Cycle,
    /// Whether any path has taken a slot since the program was switched in. There must be at least
    /// one between two switches, or the program would never finish.
    has_run: bool,
    /// The number of evictions of the current flush so far; `None` while the program runs.
    evictions: Option<u64>,
}

impl ContextSwitches {
    pub(super) fn new(slice: Option<Cycle>) -> Self {
        Self { slice, due: slice.unwrap_or(Cycle::MAX), has_run: false, evictions: None }
    }

    /// Time of the next switch; `None` until the program has run, and if it is never switched out.
    pub(super) fn due(&self) -> Option<Cycle> {
        (self.slice.is_some() && self.has_run).then_some(self.due)
    }

    /// Switches the program out if a switch is due. The caller ensures that no request is in
    /// progress at `now`.
    pub(super) fn begin(&mut self, now: Cycle) {
        if self.evictions.is_none() && self.due().is_some_and(|due| due <= now) {
            self.evictions = Some(0);
        }
    }

    /// Whether the program is switched out.
    pub(super) fn is_under_way(&self) -> bool {
        self.evictions.is_some()
    }

    /// Counts an eviction of the flush. Returns an error after more than [`EVICTIONS_MAX`].
    pub(super) fn evict(&mut self) -> Result<(), SimError> {
        let evictions = self.evictions.get_or_insert(0);
        *evictions += 1;
        if *evictions <= EVICTIONS_MAX {
            return Ok(());
        }
        Err(SimError::Spec(format!(
            "{EVICTIONS_MAX} evictions at a context switch did not empty the stash: use wider \
             buckets near the root"
        )))
    }

    /// Notes that a path has taken a slot. It counts for the program unless the program is switched
    /// out.
    pub(super) fn ran(&mut self) {
        self.has_run |= self.evictions.is_none();
    }

    /// Ends the context switch: the program runs again from `now` on.
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
        assert!(!switches.is_under_way(), "paths of the flush do not count for the program");
        switches.ran();
        assert_eq!(switches.due(), Some(800));
    }

    #[test]
    fn a_program_without_a_slice_is_never_switched_out() {
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
