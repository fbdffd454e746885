//! Trips of a path between the client and storage: read and open, seal and write.

mod headers;
mod whole;

use alloc::format;

use super::client::Client;
use super::tag_tree::TagTree;
use super::trip::{Trip, TripBucket};
use super::{Location, TreeConfig};
use crate::bucket::{BucketFormat, Tables, corrupt};
use crate::error::{Error, ErrorKind, StoreError, StoreErrorKind};
use crate::geometry::{Leaf, evictions_of_bucket};
use crate::pieces::Frames;
use crate::seal::{MaskRun, Region, Sealer, WriteCounter};
use crate::stash::{BlockArena, PathPlan, Stash};
use crate::store::{Blanks, BucketStore, Capabilities, Sealed};

/// Reads and writes the paths of one tree in storage.
pub(super) trait PathTrips {
    /// Returns a fresh counter for the next write: a value that was never returned before. A tree
    /// without encryption always returns 0.
    fn fresh_counter(&mut self) -> Result<u64, Error>;

    fn aes_blocks(&self) -> u64;

    /// Records that the next path to read is read for the block `address`. Only simulations use
    /// this.
    #[inline]
    fn note_requested(&mut self, _address: u64) {}

    /// Announces to storage that the path to `leaf` will be read.
    fn prefetch(&mut self, leaf: Leaf);

    /// Reads the path to `leaf` from storage and opens it into the transit area of `blocks`. Puts
    /// the path's real blocks into `stash`, from the highest bucket down. The stash must have room
    /// for a path.
    fn open_path(
        &mut self,
        leaf: Leaf,
        bodies: BodyCounters,
        blocks: &mut BlockArena,
        stash: &mut Stash,
    ) -> Result<(), Error>;

    /// Seals the blocks of `plan` for the storage levels of the path to `leaf`, and writes them.
    fn seal_path(
        &mut self,
        leaf: Leaf,
        counter: u64,
        bodies: BodyCounters,
        plan: &PathPlan,
        blocks: &BlockArena,
    ) -> Result<(), Error>;

    /// An access-only access of RAW ORAM: takes the block `address` out of the path to `leaf`, if
    /// the block is there, and copies it to `block`. Returns whether the block was there.
    /// `evictions` is the number of evictions so far.
    ///
    /// [`Entry::DUMMY_ADDRESS`](crate::stash::Entry::DUMMY_ADDRESS) is on no path.
    fn take_block(
        &mut self,
        leaf: Leaf,
        address: u64,
        evictions: u64,
        counter: u64,
        block: &mut [u8],
    ) -> Result<bool, Error>;

    /// Reads every bucket in storage, one by one, and calls `visit` for each block.
    fn visit_blocks(
        &mut self,
        bodies: BodyCounters,
        blocks: &mut BlockArena,
        visit: &mut dyn FnMut(Location, u64, Leaf),
    ) -> Result<(), Error>;

    /// Writes all buckets in storage: blocks of zeros with the addresses and leaves in `tree`.
    fn fill(&mut self, tree: TagTree, client: &Client) -> Result<(), Error>;
}

/// A type that can hold the tree of Path ORAM or RAW ORAM: any [`BucketStore`], or a [`TagTree`].
#[expect(private_bounds, reason = "it is sealed: only core has such types")]
pub trait PathTree {
    /// The type that reads and writes the paths of the tree.
    type Trips: PathTrips;
}

impl<S: BucketStore> PathTree for S {
    type Trips = PathIo<S>;
}

/// The source of the counter that seals the body of a bucket.
#[derive(Clone, Copy)]
pub(super) enum BodyCounters {
    /// The counter stored in the header (Path ORAM).
    Stored,
    /// The number of evictions that have written the bucket (RAW ORAM's `IV1`). The field is the
    /// number of all evictions of the tree.
    Evictions(u64),
}

/// Reads and writes the paths of one tree: holds its store, bucket format, sealer and buffers.
pub struct PathIo<S: ?Sized> {
    /// The first level in storage. The client keeps the levels above.
    first_level: u8,
    format: BucketFormat,
    sealer: Sealer,
    writes: WriteCounter,
    trip: Trip,
    /// The opened address tables of the current trip.
    addresses: Tables,
    leaves: Tables,
    store: S,
}

/// A [`PathIo`] on a store whose type is known only at run time. Methods of this type are compiled
/// once, not once per type of store.
type AnyPathIo<'s> = PathIo<dyn BucketStore + 's>;

impl<S: BucketStore> PathIo<S> {
    /// A `PathIo` on `store`. `needs` are the capabilities that the scheme needs in addition to
    /// whole buckets.
    ///
    /// # Errors
    /// If the configuration contradicts itself, or `store` has no tree of that shape or lacks a
    /// capability.
    pub(super) fn new(
        config: &TreeConfig,
        needs: Capabilities,
        sealer: Sealer,
        store: S,
    ) -> Result<Self, Error> {
        let format = format_on(&store, config)?;
        needs.check(&store)?;
        Ok(Self {
            first_level: config.tree_top_levels,
            addresses: format.table_room(),
            leaves: format.table_room(),
            format,
            sealer,
            writes: WriteCounter::new(),
            trip: Trip::new(config.tree),
            store,
        })
    }

    pub(super) fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    pub(super) fn into_store(self) -> S {
        self.store
    }

    /// This `PathIo`, for a kind of store that is known only at run time.
    pub(super) fn over_any_store(&mut self) -> &mut AnyPathIo<'_> {
        self
    }
}

impl<S: BucketStore + ?Sized> PathIo<S> {
    /// Sets the trip to the storage levels of the path to `leaf`.
    fn set_path(&mut self, leaf: Leaf) {
        self.trip.set_path(leaf, self.first_level..self.format.geometry().leaf_level() + 1);
    }
}

impl<S: BucketStore> PathTrips for PathIo<S> {
    fn fresh_counter(&mut self) -> Result<u64, Error> {
        self.writes.advance()
    }

    fn aes_blocks(&self) -> u64 {
        self.sealer.aes_blocks()
    }

    fn prefetch(&mut self, leaf: Leaf) {
        self.set_path(leaf);
        self.store.prefetch(self.trip.pieces());
    }

    fn open_path(
        &mut self,
        leaf: Leaf,
        bodies: BodyCounters,
        blocks: &mut BlockArena,
        stash: &mut Stash,
    ) -> Result<(), Error> {
        self.over_any_store().open_path(leaf, bodies, blocks, stash)
    }

    fn seal_path(
        &mut self,
        leaf: Leaf,
        counter: u64,
        bodies: BodyCounters,
        plan: &PathPlan,
        blocks: &BlockArena,
    ) -> Result<(), Error> {
        self.over_any_store().seal_path(leaf, counter, bodies, plan, blocks)
    }

    fn take_block(
        &mut self,
        leaf: Leaf,
        address: u64,
        evictions: u64,
        counter: u64,
        block: &mut [u8],
    ) -> Result<bool, Error> {
        self.over_any_store().take_block(leaf, address, evictions, counter, block)
    }

    fn visit_blocks(
        &mut self,
        bodies: BodyCounters,
        blocks: &mut BlockArena,
        visit: &mut dyn FnMut(Location, u64, Leaf),
    ) -> Result<(), Error> {
        self.over_any_store().visit_blocks(bodies, blocks, visit)
    }

    fn fill(&mut self, tree: TagTree, client: &Client) -> Result<(), Error> {
        self.over_any_store().fill(tree, client)
    }
}

/// The format of the buckets. Fails if the tree of `store` has another shape.
fn format_on(store: &dyn BucketStore, config: &TreeConfig) -> Result<BucketFormat, Error> {
    let format = config.format()?;
    if store.shape(config.tree) == Some(&format.shape()) {
        return Ok(format);
    }
    Err(Error::new(
        ErrorKind::StoreMismatch,
        format!(
            "the store's tree {} does not have the shape of this configuration: make the store \
             with the configuration's shape()",
            config.tree.0
        ),
    ))
}

impl BodyCounters {
    /// The counter of the body of a bucket whose header has the counter `stored`.
    #[inline]
    fn of(self, bucket: &TripBucket<'_>, stored: u64) -> u64 {
        match self {
            Self::Stored => stored,
            Self::Evictions(g) => evictions_of(bucket, g),
        }
    }
}

#[inline]
fn evictions_of(bucket: &TripBucket<'_>, g: u64) -> u64 {
    evictions_of_bucket(g, bucket.leaf, bucket.sizes.level)
}

#[inline]
fn header_run(bucket: &TripBucket<'_>, counter: u64) -> MaskRun {
    MaskRun::new(Region::Header, counter, bucket.id, 0, bucket.sizes.address_table_bytes)
}

#[inline]
fn body_run(bucket: &TripBucket<'_>, counter: u64) -> MaskRun {
    MaskRun::new(Region::Body, counter, bucket.id, 0, bucket.sizes.body_bytes)
}

/// Writes the pieces of `trip`. `seal` fills the buffers that the store provides ([`Blanks`]).
/// Fails if the store provides none.
#[inline]
fn write_sealed(
    store: &mut dyn BucketStore,
    trip: &Trip,
    mut seal: impl for<'a> FnMut(Blanks<'a>) -> Sealed<'a>,
) -> Result<(), Error> {
    let mut filled = false;
    store.write(trip.pieces(), &mut |blanks| {
        filled = true;
        seal(blanks)
    })?;
    if filled {
        Ok(())
    } else {
        Err(StoreError::new(StoreErrorKind::Failed, "it took no bytes of a write").into())
    }
}

/// Reads the whole buckets of `trip`, and checks the number and lengths of the frames.
fn read_checked<'s>(
    store: &'s mut dyn BucketStore,
    trip: &Trip,
    format: &BucketFormat,
) -> Result<Frames<'s>, Error> {
    let frames = store.read(trip.pieces())?;
    let mut buckets = trip.buckets(format).zip(frames.iter());
    let matches_request = frames.len() == trip.pieces().len()
        && buckets.all(|(bucket, frame)| frame.len() == bucket.sizes.bucket_bytes());
    if matches_request { Ok(frames) } else { Err(corrupt("more or fewer bytes than its shape")) }
}

/// Checks a bucket that storage returned as never written. Fails if evictions have written it;
/// `body_counter` is the number of these evictions.
#[inline]
fn check_absent(body_counter: u64) -> Result<(), Error> {
    if body_counter == 0 { Ok(()) } else { Err(corrupt("nothing, although it has been written")) }
}
