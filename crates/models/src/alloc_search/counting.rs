//! A bench for tests that counts the steps of a search.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Bench, BySlots, Profile, Run, Search, SearchPlan, measure, run};
use crate::Error;

/// A bench that counts the steps that a search announces and the steps that it runs.
#[derive(Default)]
pub(super) struct Counting {
    pub(super) planned: AtomicU64,
    pub(super) made: AtomicU64,
}

impl Counting {
    /// Runs a search on `threads` threads.
    pub(super) fn search(&self, plan: &SearchPlan, threads: usize) -> Result<Search, Error> {
        run(plan, Vec::new(), NonZeroUsize::new(threads).unwrap(), self)
    }
}

impl Bench<BySlots> for Counting {
    type Error = Error;

    fn planned(&self, steps: u64) {
        self.planned.fetch_add(steps, Ordering::Relaxed);
    }

    fn run(
        &self,
        plan: &SearchPlan,
        profile: &Profile,
        accesses: u64,
        seed: u64,
    ) -> Result<Run, Error> {
        measure(plan, profile, accesses, seed, &|made| {
            self.made.fetch_add(made, Ordering::Relaxed);
        })
    }
}
