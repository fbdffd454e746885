//! The engine without timing: the distribution of blocks in the tree after millions of path
//! accesses.
//!
//! ```text
//!  phases: a trace through an LLC, or random ──► the engine (core) over a tree of tags
//!                                                     │
//!                     snapshots: blocks on each level, ┘ and where data was found
//! ```
//!
//! Utilisation of levels and migration of blocks (IR-ORAM, sections III-B, III-C and VI-B) depend
//! on the sequence of requests, but not on timing. So this module runs the ORAM of the
//! [`controller`](crate::controller), with the same parameters, on a sequence of requests, without
//! bus, pace or processor.
//!
//! A study can be [saved](Study::save) and [resumed](Study::resume) later with identical results,
//! and many studies can [start](StudyImage::study) from one state.

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

pub use found::FoundCounts;
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
use phase::LineSource;

/// Requests between reports of progress.
const REQUESTS_PER_PROGRESS: u64 = 4096;

/// The maximum number of successive requests without a path. A phase that exceeds this number
/// counts as endless, and fails.
const REQUESTS_WITHOUT_PATH_MAX: u64 = 1 << 18;

/// An ORAM under study. The same specification, seed and phases give the same snapshots.
pub struct Study {
    oram: WatchedOram,
    slots: Vec<u64>,
    spec: OramSpec,
    seed: u64,
    coins: Coins,
}

impl Study {
    /// Creates an ORAM with the initial contents of `spec`. Counting begins afterwards, so the
    /// study has made no paths yet. `progress` receives the number of paths made so far.
    ///
    /// # Errors
    /// [`SimError::Spec`] for a specification without functional mode: RAW ORAM, ρ, plain
    /// recursion, delayed remapping. [`SimError::Engine`] if the engine does not support the ORAM,
    /// or its tree is too small.
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

    /// Creates an ORAM without any accesses.
    fn empty(spec: &OramSpec, seed: u64) -> Result<Self, SimError> {
        let mut coins = Coins::seed_from_u64(seed);
        let oram = WatchedOram::new(spec, Coins::from_rng(&mut coins))?;
        let slots = (0..).zip(&spec.slots).map(|(level, z)| u64::from(*z) << level).collect();
        Ok(Self { oram, slots, spec: spec.clone(), seed, coins })
    }

    /// Serves the requests of `phases` in turn. Takes a snapshot after the request with which the
    /// number of paths reaches each number of `snapshots`, which are in ascending order. Numbers
    /// past the end of the phases are ignored. Paths of phases and snapshots are counted from this
    /// call on. `progress` regularly receives the number of paths made so far.
    ///
    /// # Errors
    /// [`SimError::Spec`] if a trace names a line past the data blocks or never misses its LLC, if
    /// no LLC can have the given shape, or if a phase only requests blocks that the client holds.
    /// [`SimError::Engine`] if the tree is too full.
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
            let mut lines = LineSource::new(&phase.requests, self.spec.data_blocks, coins)?;
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
                    let message = "a phase requests only blocks that the client holds, so it would \
                                   never end: request more blocks, or use a smaller tree top";
                    return Err(SimError::Spec(message.to_owned()));
                }
                while coming.len() <= self.oram.lookahead_requests() {
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

    /// Starts to count the moves of blocks when paths are written back. This takes time, but has no
    /// other effect.
    pub fn watch_migration(&mut self) {
        self.oram.watch_migration();
    }

    /// The current state and counts. This reads the whole tree.
    ///
    /// # Errors
    /// [`SimError::Engine`] after an earlier error of the engine.
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

    /// Checks the invariants of the ORAM. This is slow, and takes memory per block.
    ///
    /// # Errors
    /// [`SimError::Engine`] with the first violation.
    pub fn check_invariants(&mut self) -> Result<(), SimError> {
        self.oram.check_invariants()
    }

    /// The specification of the ORAM.
    pub(crate) fn spec(&self) -> &OramSpec {
        &self.spec
    }

    /// Returns the ORAM in its current state.
    pub(crate) fn into_oram(self) -> FreecursiveOram<Tags, Coins> {
        self.oram.into_oram()
    }

    fn access_each_once(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), SimError> {
        let blocks = self.spec.shuffled_blocks(&mut self.coins)?;
        self.serve_all(blocks, progress)
    }

    /// Serves `requests` requests for random data blocks.
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
        let mut coming: VecDeque<u64> =
            rest.by_ref().take(self.oram.lookahead_requests()).collect();
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
