//! A rotating tree in storage, without state on the client. Runs of paths are read together, and
//! runs of evictions are written together (rORAM, `ReadRange` and `BatchEvict`).
//!
//! On level `j`, the path to leaf `p` goes through the bucket `p mod 2^j`. Eviction `e` writes the
//! path to leaf `e mod 2^L`. So paths with consecutive leaves go through neighbouring buckets,
//! which consecutive evictions have written to neighbouring places ([`PlaceRings`]). On each level,
//! a run of paths occupies one stretch of places, or two if it wraps around.

use alloc::vec;
use alloc::vec::Vec;

use super::RotatingTrees;
use super::io::{FilledBucket, RollbackProbe, RotatingIo};
use super::places::{PlaceRings, Version};
use crate::error::Error;
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::scheme::RawConfig;
use crate::seal::EraSealer;
use crate::stash::{ArenaSlot, BlockArena, Entry};
use crate::store::BucketStore;

/// Paths with consecutive leaves. After the tree's last leaf comes its first. Public once the run
/// was shown to storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: Leaf,
    pub(crate) paths: u64,
}

impl Run {
    /// The paths of the `evictions` evictions that start with `g`.
    pub(crate) fn of_evictions(g: u64, evictions: u64, geometry: &Geometry) -> Self {
        Self { first: Leaf(g & (geometry.leaves() - 1)), paths: evictions }
    }

    /// The buckets of the run on a level, without repetition. Each is given by the leaf of a path
    /// through it.
    fn on_level(self, level: u8) -> impl Iterator<Item = Leaf> {
        let of_level = 1 << level;
        (0..self.paths.min(of_level)).map(move |more| Leaf((self.first.0 + more) % of_level))
    }
}

/// Chooses the slots to open: returns the place to open a slot to, or `None` to leave it closed.
/// The arguments are the arena, and the address (possibly a dummy's) and the leaf of the slot.
pub(crate) type Wanted<'w> = dyn FnMut(&mut BlockArena, u64, Leaf) -> Option<ArenaSlot> + 'w;

/// Access to one tree of a store. It holds no position map: the caller must know the location of
/// each block.
pub(crate) struct StoredTree {
    io: RotatingIo,
}

impl StoredTree {
    /// A tree of `store`, which may already hold buckets.
    ///
    /// # Errors
    /// If the configuration contradicts itself, or `store` has no tree of that shape.
    pub(crate) fn new(
        config: &RawConfig,
        trees: RotatingTrees,
        sealer: EraSealer,
        store: &dyn BucketStore,
    ) -> Result<Self, Error> {
        Ok(Self { io: RotatingIo::new(config, trees, sealer, store)? })
    }

    pub(crate) fn sealer(&self) -> &EraSealer {
        self.io.sealer()
    }

    pub(crate) fn sealer_mut(&mut self) -> &mut EraSealer {
        self.io.sealer_mut()
    }

    fn places(&self) -> PlaceRings {
        self.io.places
    }

    /// The levels that are in storage.
    pub(crate) fn levels(&self) -> impl DoubleEndedIterator<Item = u8> + use<> {
        self.places().levels()
    }

    /// `W`: the number of evictions that a state survives.
    pub(crate) fn spare(&self) -> u64 {
        self.places().spare()
    }

    /// Number of buckets on the levels in storage, without spare places.
    pub(crate) fn buckets(&self) -> u64 {
        self.places().buckets()
    }

    /// Number of buckets that the evictions before `g` have written.
    pub(crate) fn buckets_written(&self, g: u64) -> u64 {
        self.places().buckets_written(g)
    }

    /// The buckets of a run on a level, in the versions that are current when eviction `g` begins.
    fn versions(&self, g: u64, run: Run, level: u8) -> impl Iterator<Item = Version> + use<> {
        let places = self.places();
        run.on_level(level).map(move |leaf| places.version(g, leaf, level))
    }

    /// Announces to storage that a run will be read.
    pub(crate) fn prefetch(&mut self, store: &mut dyn BucketStore, g: u64, run: Run) {
        let versions = self.levels().flat_map(|level| self.versions(g, run, level));
        let versions: Vec<_> = versions.collect();
        self.io.over(store).prefetch_buckets(versions);
    }

    /// Reads a run in one trip, and verifies everything. Then calls `wanted` with the address and
    /// leaf of each slot, including dummies, from the highest level down. If `wanted` returns a
    /// place, opens the slot into it.
    ///
    /// If several copies of a block have the same leaf, the first one passed is the newest, because
    /// an eviction writes a whole path.
    pub(crate) fn read(
        &mut self,
        store: &mut dyn BucketStore,
        g: u64,
        run: Run,
        blocks: &mut BlockArena,
        wanted: &mut Wanted<'_>,
    ) -> Result<(), Error> {
        let versions = self.levels().flat_map(|level| self.versions(g, run, level));
        let versions: Vec<_> = versions.collect();
        self.io.over(store).open_buckets(g, versions, blocks, 0, wanted)
    }

    /// Reads a run like [`Self::read`], but with one trip per level unless the run is one path. So
    /// only one level's buckets are on the client at a time. Each trip opens at least `run.paths`
    /// slots, or all of its slots if it has fewer, because storage sees the time until the next
    /// trip.
    pub(crate) fn read_by_level(
        &mut self,
        store: &mut dyn BucketStore,
        g: u64,
        run: Run,
        blocks: &mut BlockArena,
        wanted: &mut Wanted<'_>,
    ) -> Result<(), Error> {
        let opened_min = run.paths as usize;
        let mut trips: Vec<Vec<_>> =
            self.levels().map(|level| self.versions(g, run, level).collect()).collect();
        if run.paths == 1 {
            trips = vec![trips.concat()];
        }
        trips.into_iter().try_for_each(|versions| {
            self.io.over(store).open_buckets(g, versions, blocks, opened_min, wanted)
        })
    }

    /// Makes the `evictions` evictions that start with `g`, at most [`Self::spare`], in one trip.
    /// Calls `bucket` for each bucket to write. `bucket` returns its entries, one per slot.
    pub(crate) fn write(
        &mut self,
        store: &mut dyn BucketStore,
        (g, evictions): (u64, u64),
        blocks: &BlockArena,
        bucket: &dyn Fn(BucketId) -> Vec<Entry>,
    ) -> Result<(), Error> {
        // With at most `W` evictions, no two write the same bucket in storage.
        debug_assert!(evictions <= self.spare());
        let leaf = |eviction| Leaf(eviction & (self.io.geometry.leaves() - 1));
        let buckets: Vec<_> = self
            .levels()
            .flat_map(|level| (g..g + evictions).map(move |eviction| (eviction, level)))
            .map(|(eviction, level)| {
                let entries = bucket(BucketId::on_path(leaf(eviction), level));
                FilledBucket { eviction, level, entries }
            })
            .collect();
        self.io.over(store).seal_buckets(&buckets, blocks)
    }

    /// Looks in storage for evidence that eviction `g` was made: see
    /// [`VersionedTree::probe_rollback`](super::VersionedTree::probe_rollback).
    pub(crate) fn probe_rollback(
        &mut self,
        store: &mut dyn BucketStore,
        g: u64,
    ) -> Result<RollbackProbe, Error> {
        self.io.over(store).probe_rollback(g)
    }

    /// Reads the whole tree: see [`VersionedTree::visit_blocks`](super::VersionedTree).
    pub(crate) fn visit_blocks(
        &mut self,
        store: &mut dyn BucketStore,
        g: u64,
        blocks: &mut BlockArena,
        each: &mut dyn FnMut(BucketId, Entry, &[u8]),
        damaged: &mut dyn FnMut(BucketId, Error) -> Result<(), Error>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        self.io.over(store).visit_blocks(g, blocks, None, each, damaged, progress)
    }
}
