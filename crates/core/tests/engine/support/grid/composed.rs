//! The operations of an ORAM, in addition to requests, that the tests of the grid need.

use std::ops::Range;

use oblivio_core::durable::rotating::ignored_ops;
use oblivio_core::front::Counters;
use oblivio_core::scheme::Scheme;
use oblivio_core::{
    BucketStore, CachedOram, DurableRawOram, Error, Front, Op, Oram, RecursiveOram, RemapPolicy,
};
use oblivio_testkit::workload;
use rand::rngs::StdRng;

use super::build::ACCESSES_PER_EVICTION;
use crate::support::noting::{Notes, Noting};

pub(crate) trait Composed {
    fn oram(&mut self) -> &mut dyn Oram;

    /// Makes one more eviction in each tree, or another operation that shrinks the stash.
    fn make_room(&mut self) -> Result<(), Error>;

    fn check(&mut self) -> Result<(), Error>;

    /// The number of accesses to each tree according to the tallies. Excludes evictions, and the
    /// accesses of the `room_made` calls of [`make_room`](Self::make_room).
    fn accesses(&self, room_made: u64) -> Vec<u64>;

    /// The number of accesses to data, if known.
    fn data_accesses(&self, room_made: u64) -> Option<u64>;

    /// The number of accesses to a position map in the same tree, if counted separately. Excludes
    /// the moves of group resets.
    fn position_map_accesses(&self) -> Option<u64> {
        None
    }

    /// The number of blocks put back after they were taken out. Putting back makes no access to
    /// data.
    fn put_back(&self) -> u64 {
        0
    }

    /// The number of requests that reach the ORAM behind all caches, out of `requests`.
    fn reaching_requests(&self, requests: u64) -> u64 {
        requests
    }

    /// The number of requests reaching the ORAM that were served without an access, according to
    /// the tallies.
    fn hits(&self) -> u64 {
        0
    }

    /// The block and the operation of each access since the previous call, if known.
    fn take_notes(&mut self) -> Option<Vec<workload::Request>> {
        None
    }

    /// Serves a request without an access to its block, if this ORAM has a separate call for that
    /// and the client holds the block. Returns whether it served the request.
    fn serve_on_client(&mut self, _: u64, _: &mut Op<'_>) -> Result<bool, Error> {
        Ok(false)
    }

    /// Forgets blocks. Returns whether this ORAM supports it.
    fn forget(&mut self, _: Range<u64>) -> Result<bool, Error> {
        Ok(false)
    }

    /// Moves the blocks that a component in front of the ORAM holds, such as a cache, to the ORAM.
    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// An ORAM that the engine builds from parameters.
pub(crate) struct Built {
    pub(crate) oram: Box<dyn Front>,
    /// The block and the operation of each access, if there is one tree.
    pub(crate) notes: Option<Notes>,
    /// The remapping policy of the cache in front.
    pub(crate) policy: Option<RemapPolicy>,
}

impl Composed for Built {
    fn oram(&mut self) -> &mut dyn Oram {
        &mut *self.oram
    }

    fn make_room(&mut self) -> Result<(), Error> {
        self.oram.evict()
    }

    fn check(&mut self) -> Result<(), Error> {
        self.oram.check_invariants()
    }

    /// One number for each tree. With ρ, the numbers include the accesses that made room.
    fn accesses(&self, _: u64) -> Vec<u64> {
        let Counters { front, rho, .. } = self.oram.counters();
        rho.map_or(vec![front.accesses()], |rho| {
            vec![rho.main_accesses + rho.main_dummies, rho.small_accesses + rho.small_dummies]
        })
    }

    fn data_accesses(&self, _: u64) -> Option<u64> {
        let Counters { front, rho, .. } = self.oram.counters();
        rho.is_none().then_some(front.data_accesses)
    }

    fn position_map_accesses(&self) -> Option<u64> {
        let Counters { front, rho, .. } = self.oram.counters();
        rho.is_none().then_some(front.position_map_accesses)
    }

    fn put_back(&self) -> u64 {
        match (self.policy, self.oram.counters().cache) {
            (Some(RemapPolicy::Delayed), Some(cache)) => cache.written_back,
            _ => 0,
        }
    }

    fn reaching_requests(&self, requests: u64) -> u64 {
        match (self.policy, self.oram.counters().cache) {
            (Some(RemapPolicy::AtAccess), Some(cache)) => cache.misses + cache.written_back,
            (Some(RemapPolicy::Delayed), Some(cache)) => cache.misses,
            _ => requests,
        }
    }

    fn hits(&self) -> u64 {
        let Counters { front, rho, .. } = self.oram.counters();
        if rho.is_some() { 0 } else { front.stash_hits }
    }

    fn take_notes(&mut self) -> Option<Vec<workload::Request>> {
        self.notes.as_ref().map(Notes::take)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.oram.flush()
    }
}

impl<B: Scheme> Composed for RecursiveOram<Noting<B>, StdRng> {
    fn oram(&mut self) -> &mut dyn Oram {
        self
    }

    fn make_room(&mut self) -> Result<(), Error> {
        self.evict()
    }

    fn check(&mut self) -> Result<(), Error> {
        self.check_invariants()
    }

    fn accesses(&self, _: u64) -> Vec<u64> {
        let trees = self.schemes().len();
        assert!(
            self.path_accesses().is_multiple_of(trees as u64),
            "every request must access every tree"
        );
        vec![self.path_accesses() / trees as u64; trees]
    }

    fn data_accesses(&self, room_made: u64) -> Option<u64> {
        self.accesses(room_made).first().copied()
    }

    fn take_notes(&mut self) -> Option<Vec<workload::Request>> {
        Some(self.schemes_mut()[0].take_notes())
    }
}

impl<S: BucketStore> Composed for DurableRawOram<S, StdRng> {
    fn oram(&mut self) -> &mut dyn Oram {
        self
    }

    fn make_room(&mut self) -> Result<(), Error> {
        self.backend_mut().mark_durable();
        self.background_evict()
    }

    fn check(&mut self) -> Result<(), Error> {
        self.check(&mut |_| ()).map(drop)
    }

    fn accesses(&self, room_made: u64) -> Vec<u64> {
        let evictions = self.backend().evictions() - self.config().geometry.leaves() - room_made;
        let since = u64::from(self.backend().accesses_since_eviction());
        vec![evictions * u64::from(ACCESSES_PER_EVICTION) + since]
    }

    fn data_accesses(&self, room_made: u64) -> Option<u64> {
        self.has_flat_map().then(|| self.accesses(room_made)[0])
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        // The position-map block records whether a block was forgotten.
        loop {
            self.backend_mut().mark_durable();
            let needed = self.missing_positions_to_access(&[address])?;
            if needed.is_empty() {
                return self.serve_on_client(address, op);
            }
            let steps = self.plan_accesses(&needed)?;
            self.carry_out(&steps, &mut ignored_ops(steps.len()))?;
        }
    }

    fn forget(&mut self, range: Range<u64>) -> Result<bool, Error> {
        loop {
            self.backend_mut().mark_durable();
            let needed = self.missing_positions_to_forget(range.clone())?;
            if needed.is_empty() {
                self.forget(range)?;
                return Ok(true);
            }
            let steps = self.plan_accesses(&needed)?;
            self.carry_out(&steps, &mut ignored_ops(steps.len()))?;
        }
    }
}

/// A cache with [`RemapPolicy::AtAccess`] in front of an ORAM other than [`Built`].
pub(crate) struct AtAccess<O>(pub(crate) CachedOram<O>);

impl<O: Oram + Composed> Composed for AtAccess<O> {
    fn oram(&mut self) -> &mut dyn Oram {
        &mut self.0
    }

    fn make_room(&mut self) -> Result<(), Error> {
        self.0.oram_mut().make_room()
    }

    fn check(&mut self) -> Result<(), Error> {
        self.0.oram_mut().check()
    }

    fn accesses(&self, room_made: u64) -> Vec<u64> {
        self.0.oram().accesses(room_made)
    }

    fn data_accesses(&self, room_made: u64) -> Option<u64> {
        self.0.oram().data_accesses(room_made)
    }

    fn position_map_accesses(&self) -> Option<u64> {
        self.0.oram().position_map_accesses()
    }

    fn reaching_requests(&self, _: u64) -> u64 {
        self.0.tally().misses + self.0.tally().written_back
    }

    fn hits(&self) -> u64 {
        self.0.oram().hits()
    }

    fn take_notes(&mut self) -> Option<Vec<workload::Request>> {
        self.0.oram_mut().take_notes()
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.0.flush_all()
    }
}
