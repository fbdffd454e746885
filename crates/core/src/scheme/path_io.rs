//! Trips of a path between the client and storage: read and open, seal and write.

use super::client::Client;
use super::tag_tree::TagTree;
use super::trip::{Stop, Trip};
use super::{Location, TreeConfig};
use crate::bucket::{BucketFormat, Tables, corrupt};
use crate::error::{Error, ErrorKind, StoreError, StoreErrorKind};
use crate::geometry::{BucketId, Leaf, evictions_of_bucket};
use crate::pieces::Frames;
use crate::seal::{
    CHUNK_BYTES, COUNTER_BYTES, MaskRun, Opened, Region, Sealer, WriteCounter, open_in_place,
    stored_counter,
};
use crate::stash::{BlockRoom, Entry, PathPlan};
use crate::store::{Blanks, BucketStore, Sealed};

/// What lies behind the client of one tree: the way of a path there and back.
pub(super) trait Trips {
    /// A counter for the next write, never given before.
    fn fresh_counter(&mut self) -> Result<u64, Error>;

    fn aes_blocks(&self) -> u64;

    /// Tells storage that the path to `leaf` will be read.
    fn prefetch(&mut self, leaf: Leaf);

    /// Reads the path to `leaf`, opens it into the transit area of `blocks`, and hands over each
    /// slot, the root's first, with whether it holds a block.
    fn open_path(
        &mut self,
        leaf: Leaf,
        bodies: BodyCounters,
        blocks: &mut BlockRoom,
        each: impl FnMut(Entry, bool),
    ) -> Result<(), Error>;

    /// Seals what `plan` holds for the storage levels of the path to `leaf`, and writes it.
    fn seal_path(
        &mut self,
        leaf: Leaf,
        counter: u64,
        bodies: BodyCounters,
        plan: &PathPlan,
        blocks: &BlockRoom,
    ) -> Result<(), Error>;

    /// Reads every bucket in storage, one by one, and names each block in it.
    fn visit_blocks(
        &mut self,
        bodies: BodyCounters,
        blocks: &mut BlockRoom,
        visit: &mut dyn FnMut(Location, u64, Leaf),
    ) -> Result<(), Error>;

    /// Writes all buckets: blocks of zeros with the tags of `tree`.
    fn fill(&mut self, tree: TagTree, client: &Client) -> Result<(), Error>;
}

/// What Path ORAM can keep its blocks in: any [`BucketStore`], or a [`TagTree`].
#[expect(private_bounds, reason = "it is sealed: only core has such types")]
pub trait PathTree {
    /// The way there.
    type Trips: Trips;
}

impl<S: BucketStore> PathTree for S {
    type Trips = PathIo<S>;
}

/// Where the counter that seals the body of a bucket comes from.
#[derive(Clone, Copy)]
pub(super) enum BodyCounters {
    /// It is the one stored in the header (Path ORAM).
    Stored,
    /// It is how many of so many evictions have written the bucket (RAW ORAM's `IV1`).
    Evictions(u64),
}

/// Blocks up to this size are opened whether they are real or not: it costs less than a branch
/// that nobody can foresee.
const OPENED_UNSEEN_BYTES_MAX: usize = 256;

/// The untrusted side of one tree, and what is needed to talk to it.
pub struct PathIo<S> {
    /// The levels above are kept on the client.
    first_level: u8,
    format: BucketFormat,
    store: S,
    sealer: Sealer,
    writes: WriteCounter,
    trip: Trip,
    /// The opened tables of the trip under way.
    addresses: Tables,
    leaves: Tables,
    /// Where a bucket goes that is read and not opened.
    loaded: Vec<u8>,
}

impl<S: BucketStore> PathIo<S> {
    /// # Errors
    /// When the configuration contradicts itself, or `store` has no tree of that shape.
    pub(super) fn new(config: &TreeConfig, sealer: Sealer, store: S) -> Result<Self, Error> {
        let format = config.format()?;
        if store.shape(config.tree) != Some(&format.shape()) {
            return Err(Error::new(
                ErrorKind::StoreMismatch,
                format!(
                    "the store's tree {} does not have the shape of this configuration: make the \
                     store with the configuration's shape()",
                    config.tree.0
                ),
            ));
        }
        Ok(Self {
            first_level: config.tree_top_levels,
            addresses: format.table_room(),
            leaves: format.table_room(),
            loaded: vec![0; format.bucket_bytes_max()],
            format,
            store,
            sealer,
            writes: WriteCounter::new(),
            trip: Trip::new(config.tree),
        })
    }

    pub(super) fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Seals `entries`, one for each slot, for a single bucket, and writes it.
    fn seal_bucket(
        &mut self,
        bucket: BucketId,
        counter: u64,
        entries: &[Entry],
        blocks: &BlockRoom,
    ) -> Result<(), Error> {
        let level = bucket.level();
        self.trip.aim(Leaf(bucket.index()), level..level + 1);
        self.seal_trip(counter, BodyCounters::Stored, blocks, |_| entries)
    }

    #[inline]
    fn seal_trip<'e>(
        &mut self,
        counter: u64,
        bodies: BodyCounters,
        blocks: &BlockRoom,
        planned: impl Fn(&Stop<'_>) -> &'e [Entry],
    ) -> Result<(), Error> {
        let Self { format, store, sealer, trip, addresses, leaves, .. } = self;
        write_sealed(store, trip, |mut blanks| {
            let mut batches = trip.batches(format);
            while let Some(batch) = batches.next() {
                let mut masks = sealer.batch();
                for stop in batch.clone() {
                    masks.add(header_run(&stop, counter));
                    masks.add(body_run(&stop, bodies.of(&stop, counter)));
                }
                let mut masks = masks.make();
                for stop in batch.clone() {
                    format.put_addresses(addresses.get_mut(stop.i), stop.sizes, planned(&stop));
                    format.put_leaves(leaves.get_mut(stop.i), stop.sizes, planned(&stop));
                }
                for stop @ Stop { i, sizes, .. } in batch {
                    blanks
                        .header(i, counter, masks.take(0, sizes.address_table_bytes))
                        .write(&addresses.get(i)[..sizes.address_table_bytes]);
                    let mask = masks.take(0, sizes.body_bytes);
                    let mut body = blanks.body(i, sizes.body_offset, mask);
                    body.write(&leaves.get(i)[..sizes.leaf_table_bytes]);
                    for entry in planned(&stop) {
                        body.write(blocks.get(entry.place));
                    }
                }
            }
            blanks.sealed()
        })
    }

    /// The trips of an access-only access: reads the whole path to `leaf`, opens its headers and
    /// one block, takes that block out of its header, and writes all headers back under `counter`.
    ///
    /// Returns whether `address` was on the path, and then `block` holds it. If it was not, some
    /// other block is opened and forgotten, so that the work is the same. [`Entry::DUMMY_ADDRESS`] never
    /// is: it is wider than any entry of a header.
    pub(super) fn take_block(
        &mut self,
        leaf: Leaf,
        address: u64,
        evictions: u64,
        counter: u64,
        block: &mut [u8],
    ) -> Result<bool, Error> {
        self.aim(leaf);
        let Self { format, store, sealer, trip, addresses, loaded, .. } = self;
        let frames = read_checked(store, trip, format)?;

        // For each header the mask it will have, and then for each the mask it has: the first half
        // needs nothing from storage, and gives it time to arrive.
        let stops = || trip.stops(format);
        let mut masks = sealer.batch();
        for stop in stops() {
            masks.add(header_run(&stop, counter));
        }
        for stop in stops() {
            masks.add(header_run(&stop, stored_counter(frames.get(stop.i))));
        }
        let [mut fresh_masks, mut stored_masks] = masks.make().halves();

        for Stop { i, sizes, .. } in stops() {
            let frame = frames.get(i);
            let mask = stored_masks.take(0, sizes.address_table_bytes);
            Opened::new(&frame[COUNTER_BYTES..], mask)
                .read(&mut addresses.get_mut(i)[..sizes.address_table_bytes]);
            // Storage shows which bytes it was made to load: all of them, whatever is opened.
            loaded[..frame.len()].copy_from_slice(frame);
        }
        let mut found = None;
        for stop @ Stop { i, sizes, .. } in stops() {
            let table = addresses.get_mut(i);
            if stored_counter(frames.get(i)) == 0 {
                check_absent(evictions_of(&stop, evictions))?;
                format.put_dummies(table, sizes);
            } else if let Some(slot) = format.find(table, sizes.slots, address)? {
                format.remove(table, slot);
                if found.replace((i, slot)).is_some() {
                    return Err(corrupt("a block that is elsewhere on its path too"));
                }
            }
        }

        let (i, slot) = found.unwrap_or((0, 0));
        let stop = stops().nth(i).expect("a path has at least one bucket in storage");
        let evicted = evictions_of(&stop, evictions);
        if found.is_some() && evicted == 0 {
            return Err(corrupt("a block that no eviction can have put there"));
        }
        let (start, bytes) = (stop.sizes.leaf_table_bytes + slot * block.len(), block.len());
        block.copy_from_slice(&frames.get(i)[stop.sizes.body_offset + start..][..bytes]);
        let run = MaskRun::new(Region::Body, evicted, stop.bucket, start, bytes);
        let run = run.widen_to(chunks_of_any_slot(bytes));

        trip.narrow_to_headers();
        write_sealed(store, trip, |mut blanks| {
            for Stop { i, sizes, .. } in trip.stops(format) {
                blanks
                    .header(i, counter, fresh_masks.take(0, sizes.address_table_bytes))
                    .write(&addresses.get(i)[..sizes.address_table_bytes]);
            }
            blanks.sealed()
        })?;
        open_in_place(block, sealer.mask(run).take(start, bytes));
        Ok(found.is_some())
    }

    /// Sets out to the storage levels of the path to `leaf`.
    #[inline]
    fn aim(&mut self, leaf: Leaf) {
        self.trip.aim(leaf, self.first_level..self.format.geometry().leaf_level() + 1);
    }

    #[inline]
    fn open_trip(
        &mut self,
        bodies: BodyCounters,
        blocks: &mut BlockRoom,
        mut each: impl FnMut(Entry, bool),
    ) -> Result<(), Error> {
        let Self { format, store, sealer, trip, addresses, leaves, .. } = self;
        let frames = read_checked(store, trip, format)?;
        let mut batches = trip.batches(format);
        while let Some(batch) = batches.next() {
            let mut masks = sealer.batch();
            for stop in batch.clone() {
                let stored = stored_counter(frames.get(stop.i));
                masks.add(header_run(&stop, stored));
                masks.add(body_run(&stop, bodies.of(&stop, stored)));
            }
            let mut masks = masks.make();
            let mut table_masks = masks;
            for Stop { i, sizes, .. } in batch.clone() {
                let frame = frames.get(i);
                let mask = table_masks.take(0, sizes.address_table_bytes);
                Opened::new(&frame[COUNTER_BYTES..], mask)
                    .read(&mut addresses.get_mut(i)[..sizes.address_table_bytes]);
                let mask = table_masks.take(0, sizes.body_bytes);
                Opened::new(&frame[sizes.body_offset..], mask)
                    .read(&mut leaves.get_mut(i)[..sizes.leaf_table_bytes]);
            }
            for stop @ Stop { i, bucket, sizes, .. } in batch {
                let frame = frames.get(i);
                masks.take(0, sizes.address_table_bytes);
                let mask = masks.take(0, sizes.body_bytes);
                let mut body = Opened::new(&frame[sizes.body_offset..], mask);
                body.skip(sizes.leaf_table_bytes);
                let stored = stored_counter(frame);
                let body_counter = bodies.of(&stop, stored);
                if stored == 0 {
                    check_absent(body_counter)?;
                    continue;
                }
                let (table, labels) = (addresses.get(i), leaves.get(i));
                let first_slot = format.geometry().path_slots_above(usize::from(sizes.level));
                let (mut invalid, mut any_real) = (false, false);
                for slot in 0..sizes.slots {
                    let (address, leaf) = (format.address(table, slot), format.leaf(labels, slot));
                    let claimed = address != Entry::DUMMY_ADDRESS;
                    let real = claimed & format.may_hold(bucket, address, leaf);
                    any_real |= real;
                    invalid |= claimed & !real;
                    let place = blocks.in_transit(first_slot + slot);
                    if real | (format.block_bytes() <= OPENED_UNSEEN_BYTES_MAX) {
                        body.read(blocks.get_mut(place));
                    } else {
                        body.skip(format.block_bytes());
                    }
                    each(Entry { address, leaf, place }, real);
                }
                if invalid {
                    return Err(corrupt("an address or a leaf that cannot be there"));
                }
                if any_real && body_counter == 0 {
                    return Err(corrupt("a block that no eviction can have put there"));
                }
            }
        }
        Ok(())
    }
}

impl<S: BucketStore> Trips for PathIo<S> {
    fn aes_blocks(&self) -> u64 {
        self.sealer.aes_blocks()
    }

    fn fresh_counter(&mut self) -> Result<u64, Error> {
        self.writes.advance()
    }

    fn prefetch(&mut self, leaf: Leaf) {
        self.aim(leaf);
        self.store.prefetch(self.trip.pieces());
    }

    #[inline]
    fn open_path(
        &mut self,
        leaf: Leaf,
        bodies: BodyCounters,
        blocks: &mut BlockRoom,
        each: impl FnMut(Entry, bool),
    ) -> Result<(), Error> {
        self.aim(leaf);
        self.open_trip(bodies, blocks, each)
    }

    fn visit_blocks(
        &mut self,
        bodies: BodyCounters,
        blocks: &mut BlockRoom,
        visit: &mut dyn FnMut(Location, u64, Leaf),
    ) -> Result<(), Error> {
        for bucket in (0..self.format.geometry().buckets()).map(BucketId) {
            let level = bucket.level();
            if level >= self.first_level {
                self.trip.aim(Leaf(bucket.index()), level..level + 1);
                self.open_trip(bodies, blocks, |entry, real| {
                    if real {
                        visit(Location::Bucket(bucket), entry.address, entry.leaf);
                    }
                })?;
            }
        }
        Ok(())
    }

    #[inline]
    fn seal_path(
        &mut self,
        leaf: Leaf,
        counter: u64,
        bodies: BodyCounters,
        plan: &PathPlan,
        blocks: &BlockRoom,
    ) -> Result<(), Error> {
        self.aim(leaf);
        self.seal_trip(counter, bodies, blocks, |stop| plan.bucket(usize::from(stop.sizes.level)))
    }

    fn fill(&mut self, tree: TagTree, client: &Client) -> Result<(), Error> {
        let zero = client.blocks.zero();
        let mut entries = Vec::new();
        for bucket in (0..self.format.geometry().buckets()).map(BucketId) {
            if bucket.level() >= self.first_level {
                let blocks = tree.blocks(bucket);
                entries.clear();
                entries.extend(blocks.map(|(address, leaf)| Entry { address, leaf, place: zero }));
                let slots = self.format.geometry().slots(bucket.level().into());
                entries.resize(slots, Entry::dummy(zero));
                let counter = self.fresh_counter()?;
                self.seal_bucket(bucket, counter, &entries, &client.blocks)?;
            }
        }
        Ok(())
    }
}

impl BodyCounters {
    /// The counter of the body of a bucket whose header has the counter `stored`.
    #[inline]
    fn of(self, stop: &Stop<'_>, stored: u64) -> u64 {
        match self {
            Self::Stored => stored,
            Self::Evictions(g) => evictions_of(stop, g),
        }
    }
}

#[inline]
fn evictions_of(stop: &Stop<'_>, g: u64) -> u64 {
    evictions_of_bucket(g, stop.leaf, stop.sizes.level)
}

#[inline]
fn header_run(stop: &Stop<'_>, counter: u64) -> MaskRun {
    MaskRun::new(Region::Header, counter, stop.bucket, 0, stop.sizes.address_table_bytes)
}

#[inline]
fn body_run(stop: &Stop<'_>, counter: u64) -> MaskRun {
    MaskRun::new(Region::Body, counter, stop.bucket, 0, stop.sizes.body_bytes)
}

/// The most AES blocks that the block in any slot can straddle: as many are computed for every slot,
/// so that the work does not tell which it was. Slots start at multiples of the block's size.
fn chunks_of_any_slot(block_bytes: usize) -> usize {
    // Blocks of no bytes are multiples of anything.
    let start_unit = 1 << block_bytes.trailing_zeros().min(CHUNK_BYTES.ilog2());
    let offset_max = CHUNK_BYTES - start_unit;
    (offset_max + block_bytes).div_ceil(CHUNK_BYTES)
}

/// Has `store` take what `seal` puts into its blanks.
#[inline]
fn write_sealed<S: BucketStore>(
    store: &mut S,
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

/// Reads the whole buckets of `trip`, and checks that the store returned what was asked for.
#[inline]
fn read_checked<'s, S: BucketStore>(
    store: &'s mut S,
    trip: &Trip,
    format: &BucketFormat,
) -> Result<Frames<'s>, Error> {
    let frames = store.read(trip.pieces())?;
    let as_asked = frames.len() == trip.pieces().len()
        && trip.stops(format).all(|stop| frames.get(stop.i).len() == stop.sizes.bucket_bytes());
    if as_asked { Ok(frames) } else { Err(corrupt("more or fewer bytes than its shape")) }
}

/// A bucket whose header was never written cannot have been evicted to.
#[inline]
fn check_absent(body_counter: u64) -> Result<(), Error> {
    if body_counter == 0 { Ok(()) } else { Err(corrupt("nothing, although it has been written")) }
}
