//! The engine without time: where blocks are in the tree, after millions of path accesses.
//!
//! ```text
//!  phases: a trace through an LLC, or chance ──► the engine (core) over a tree of tags
//!                                                     │
//!                     snapshots: blocks on each level, ┘ and where data was found
//! ```
//!
//! Utilisation of the levels and migration of blocks (IR-ORAM, sections III-B, III-C and VI-B) follow
//! from which blocks are asked for and from nothing that takes time. So the ORAM is the one that the
//! [`controller`](crate::controller) has, on the same parameters, and there is no bus, no pace and no
//! processor: only requests, one after the other.
//!
//! A study can be [saved](Study::save) and [go on](Study::resume) later, as if nothing had been, and many can
//! [begin](StudyImage::study) where one is.

mod coins;
mod found;
mod image;
mod migration;
mod oram;
mod phase;
mod saved;
mod snapshot;
#[cfg(test)]
mod tests;

pub use found::Found;
pub use image::StudyImage;
pub use migration::Migration;
pub use phase::{Phase, Requests};
pub use snapshot::{PathCounts, Snapshot};

use std::collections::VecDeque;

use oblivio_core::FreecursiveOram;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::SimError;
use crate::controller::{Initial, OramSpec};
use coins::Coins;
use oram::{Tags, WatchedOram};
use phase::Lines;

/// After how many requests the progress is told.
const REQUESTS_PER_PROGRESS: u64 = 4096;

/// After so many requests without a path, a phase is given up: it would never end.
const REQUESTS_WITHOUT_PATH_MAX: u64 = 1 << 18;

/// An ORAM that is studied. The same specification, seed and phases give the same snapshots.
pub struct Study {
    oram: WatchedOram,
    slots: Vec<u64>,
    spec: OramSpec,
    seed: u64,
    coins: Coins,
}

impl Study {
    /// An ORAM that holds what `spec` says at first. Counting begins after that: it has made no path yet.
    /// `progress` is told the paths made so far.
    ///
    /// # Errors
    /// [`SimError::Spec`] for what has no functional mode: RAW ORAM, rho, delayed remapping. And
    /// [`SimError::Engine`] for an ORAM that there is not, or whose tree is too small.
    pub fn new(
        spec: &OramSpec,
        seed: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, SimError> {
        let mut study = Self::empty(spec, seed)?;
        match spec.initial {
            Initial::Empty => (),
            Initial::Placed => study.oram.populate()?,
            Initial::EachOnce => study.access_each_once(progress)?,
            Initial::Aged(per_thousand_blocks) => {
                study.oram.populate()?;
                study.age(spec.aging_requests(per_thousand_blocks), progress)?;
            }
        }
        study.oram.clear_counts();
        Ok(study)
    }

    /// An ORAM that was never accessed.
    fn empty(spec: &OramSpec, seed: u64) -> Result<Self, SimError> {
        let mut coins = Coins::seed_from_u64(seed);
        let oram = WatchedOram::new(spec, Coins::from_rng(&mut coins))?;
        let slots = (0..).zip(&spec.slots).map(|(level, z)| u64::from(*z) << level).collect();
        Ok(Self { oram, slots, spec: spec.clone(), seed, coins })
    }

    /// Serves the requests of `phases`, one phase after the other, and takes a snapshot as soon as as many
    /// paths were made as each of `snapshots` says, in ascending order; those past the end are left out.
    /// Phases and snapshots count the paths from here on.
    ///
    /// # Errors
    /// [`SimError::Spec`] for a trace that does not fit the ORAM, never misses its LLC, or asks for
    /// nothing but blocks that the client holds.
    /// [`SimError::Engine`] when the tree is too full to be used.
    pub fn run(
        &mut self,
        phases: &[Phase<'_>],
        snapshots: &[u64],
        progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<Snapshot>, SimError> {
        let before = self.oram.paths();
        let mut taken = Vec::new();
        let mut end = 0;
        for phase in phases {
            end += phase.paths;
            let coins = StdRng::from_rng(&mut self.coins);
            let mut lines = Lines::new(&phase.requests, self.spec.data_blocks, coins)?;
            let mut coming = VecDeque::new();
            let (mut served, mut last_path) = (0u64, (0, 0));
            loop {
                let paths = self.oram.paths() - before;
                while snapshots.get(taken.len()).is_some_and(|at| *at <= paths) {
                    taken.push(self.snapshot()?);
                }
                if paths >= end {
                    break;
                }
                if last_path.0 != paths {
                    last_path = (paths, served);
                } else if served - last_path.1 > REQUESTS_WITHOUT_PATH_MAX {
                    let message = "a phase asks for nothing but blocks that the client holds, and would \
                                   never end: ask for more blocks, or use a smaller tree top";
                    return Err(SimError::Spec(message.to_owned()));
                }
                while coming.len() <= self.oram.looks_ahead() {
                    coming.push_back(lines.next_line()?);
                }
                if let Some(line) = coming.pop_front() {
                    self.oram.serve(line, &coming)?;
                }
                served += 1;
                if served.is_multiple_of(REQUESTS_PER_PROGRESS) {
                    progress(paths);
                }
            }
        }
        Ok(taken)
    }

    /// Counts from now on where blocks go when paths are written back. It takes time, and changes nothing else.
    pub fn watch_migration(&mut self) {
        self.oram.watch_migration();
    }

    /// What there is to see now. The whole tree is read for it.
    ///
    /// # Errors
    /// [`SimError::Engine`], after an earlier one.
    pub fn snapshot(&mut self) -> Result<Snapshot, SimError> {
        let mut blocks = vec![0; self.slots.len()];
        let stash_blocks = self.oram.count_blocks(&mut blocks)?;
        Ok(Snapshot {
            paths: self.oram.counts(),
            blocks,
            slots: self.slots.clone(),
            stash_blocks,
            found: self.oram.found().data.clone(),
            found_position_map: self.oram.found().position_map.clone(),
            migration: self.oram.migration(),
        })
    }

    /// Checks that every block is where it belongs. Slow, and memory for each block.
    ///
    /// # Errors
    /// [`SimError::Engine`] with the first violation.
    pub fn check_invariants(&mut self) -> Result<(), SimError> {
        self.oram.check_invariants()
    }

    /// What it is a study of.
    pub(crate) fn spec(&self) -> &OramSpec {
        &self.spec
    }

    /// The ORAM as it is now.
    pub(crate) fn into_oram(self) -> FreecursiveOram<Tags, Coins> {
        self.oram.into_oram()
    }

    fn access_each_once(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), SimError> {
        let blocks = self.spec.shuffled_blocks(&mut self.coins)?;
        self.serve_all(blocks, progress)
    }

    /// Serves so many requests, each for any data block by chance.
    fn age(&mut self, requests: u64, progress: &mut dyn FnMut(u64)) -> Result<(), SimError> {
        let (mut coins, data_blocks) = (StdRng::from_rng(&mut self.coins), self.spec.data_blocks);
        let blocks = (0..requests).map(move |_| coins.random_range(0..data_blocks));
        self.serve_all(blocks, progress)
    }

    fn serve_all(
        &mut self,
        mut rest: impl Iterator<Item = u64>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), SimError> {
        let mut coming: VecDeque<u64> = rest.by_ref().take(self.oram.looks_ahead()).collect();
        let mut served = 0u64;
        loop {
            coming.extend(rest.next());
            let Some(block) = coming.pop_front() else { return Ok(()) };
            self.oram.serve(block, &coming)?;
            served += 1;
            if served.is_multiple_of(REQUESTS_PER_PROGRESS) {
                progress(self.oram.paths());
            }
        }
    }
}
