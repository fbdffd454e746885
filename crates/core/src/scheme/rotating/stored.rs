//! A rotating tree in storage, and nothing of it on the client: runs of paths are read together, and runs of evictions
//! are written together (rORAM, `ReadRange` and `BatchEvict`).
//!
//! On level `j` the path to leaf `p` goes through the bucket `p mod 2^j`, and evictions are of the paths `e mod 2^L` in turn. So
//! paths whose leaves follow each other go through neighbouring buckets, which consecutive evictions have written to
//! neighbouring places ([`Places`]): a run is one stretch of each level, or two where it goes over an end.

use alloc::vec;
use alloc::vec::Vec;

use super::RotatingTrees;
use super::io::{FilledBucket, RollbackProbe, RotatingIo};
use super::places::{Places, Version};
use crate::error::Error;
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::scheme::RawConfig;
use crate::seal::EraSealer;
use crate::stash::{BlockRoom, Entry, Place};
use crate::store::BucketStore;

/// Paths whose leaves follow each other; behind the last leaf comes the first. Public when it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: Leaf,
    pub(crate) paths: u64,
}

impl Run {
    /// The paths of so many evictions from `g` on.
    pub(crate) fn of_evictions(g: u64, evictions: u64, geometry: &Geometry) -> Self {
        Self { first: Leaf(g & (geometry.leaves() - 1)), paths: evictions }
    }

    /// The buckets of the run on a level, each once, by a leaf below them.
    fn on_level(self, level: u8) -> impl Iterator<Item = Leaf> {
        let of_level = 1 << level;
        (0..self.paths.min(of_level)).map(move |more| Leaf((self.first.0 + more) % of_level))
    }
}

/// Where what is in a slot is opened to, if at all: told of the room, of its address, which may be that of no block, and
/// its leaf.
pub(crate) type Wanted<'w> = dyn FnMut(&mut BlockRoom, u64, Leaf) -> Option<Place> + 'w;

/// One tree of a store. Which blocks are where, the client has to know.
pub(crate) struct StoredTree {
    io: RotatingIo,
}

impl StoredTree {
    /// # Errors
    /// When the configuration contradicts itself, or `store` has no tree of that shape.
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

    fn places(&self) -> Places {
        self.io.places
    }

    /// The levels that are in storage.
    pub(crate) fn levels(&self) -> impl DoubleEndedIterator<Item = u8> + use<> {
        self.places().levels()
    }

    /// `W`: how many evictions a state outlives.
    pub(crate) fn spare(&self) -> u64 {
        self.places().spare()
    }

    /// Buckets in storage.
    pub(crate) fn buckets(&self) -> u64 {
        self.places().buckets()
    }

    /// Buckets that the evictions before `g` have written.
    pub(crate) fn buckets_written(&self, g: u64) -> u64 {
        self.places().buckets_written(g)
    }

    /// The buckets of a run on a level, after the evictions before `g`.
    fn versions(&self, g: u64, run: Run, level: u8) -> impl Iterator<Item = Version> + use<> {
        let places = self.places();
        run.on_level(level).map(move |leaf| places.version(g, leaf, level))
    }

    /// Tells storage that a run will be read.
    pub(crate) fn prefetch(&mut self, store: &mut dyn BucketStore, g: u64, run: Run) {
        let versions = self.levels().flat_map(|level| self.versions(g, run, level));
        let versions: Vec<_> = versions.collect();
        self.io.over(store).prefetch_buckets(versions);
    }

    /// Reads a run in one trip. Verifies all of it; then names what is in each slot, from the root's side down, and
    /// opens it into the place that `wanted` answers. What is in a slot without a block is named, too.
    ///
    /// Of copies with the same leaf, the one that is named first was written last: an eviction writes all of a path.
    pub(crate) fn read(
        &mut self,
        store: &mut dyn BucketStore,
        g: u64,
        run: Run,
        blocks: &mut BlockRoom,
        wanted: &mut Wanted<'_>,
    ) -> Result<(), Error> {
        let versions = self.levels().flat_map(|level| self.versions(g, run, level));
        let versions: Vec<_> = versions.collect();
        self.io.over(store).open_buckets(g, versions, blocks, 0, wanted)
    }

    /// The same in a trip for each level, unless it is one path: only the buckets of one level are on the client at a time. In
    /// each trip as many slots are opened as there are paths, at least: storage sees how long it takes until the next.
    pub(crate) fn read_by_level(
        &mut self,
        store: &mut dyn BucketStore,
        g: u64,
        run: Run,
        blocks: &mut BlockRoom,
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

    /// Makes so many evictions from `g` on in one trip: writes what `bucket` has for each of their buckets. A bucket has
    /// as many entries as slots.
    pub(crate) fn write(
        &mut self,
        store: &mut dyn BucketStore,
        (g, evictions): (u64, u64),
        blocks: &BlockRoom,
        bucket: &dyn Fn(BucketId) -> Vec<Entry>,
    ) -> Result<(), Error> {
        // Each eviction has a bucket of its own on each level in storage.
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

    /// What storage shows of eviction `g`: see
    /// [`RotatingScheme::probe_rollback`](super::RotatingScheme::probe_rollback).
    pub(crate) fn probe_rollback(
        &mut self,
        store: &mut dyn BucketStore,
        g: u64,
    ) -> Result<RollbackProbe, Error> {
        self.io.over(store).probe_rollback(g)
    }

    /// Reads all of the tree: see [`RotatingScheme::visit_blocks`](super::RotatingScheme).
    pub(crate) fn visit_blocks(
        &mut self,
        store: &mut dyn BucketStore,
        g: u64,
        blocks: &mut BlockRoom,
        each: &mut dyn FnMut(BucketId, Entry, &[u8]),
        damaged: &mut dyn FnMut(BucketId, Error) -> Result<(), Error>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        self.io.over(store).visit_blocks(g, blocks, None, each, damaged, progress)
    }
}
