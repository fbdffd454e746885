//! Trips that read and open whole buckets, or seal and write them.

use alloc::vec::Vec;

use super::{
    AnyPathIo, BodyCounters, body_run, check_absent, header_run, read_checked, write_sealed,
};
use crate::bucket::corrupt;
use crate::error::Error;
use crate::geometry::{BucketId, Leaf};
use crate::hint::prefetch_rest;
use crate::scheme::Location;
use crate::scheme::client::Client;
use crate::scheme::tag_tree::TagTree;
use crate::scheme::trip::TripBucket;
use crate::seal::{COUNTER_BYTES, Opened, stored_counter};
use crate::stash::{BlockArena, Entry, PathPlan, Stash};

/// Maximum size in bytes of a block that is opened even if its slot holds a dummy. For blocks up to
/// this size, opening costs less than a branch that cannot be predicted.
const OPENED_UNSEEN_BYTES_MAX: usize = 256;

impl AnyPathIo<'_> {
    /// Reads and opens a path: see [`PathTrips::open_path`](super::PathTrips::open_path).
    pub(super) fn open_path(
        &mut self,
        leaf: Leaf,
        bodies: BodyCounters,
        blocks: &mut BlockArena,
        stash: &mut Stash,
    ) -> Result<(), Error> {
        self.set_path(leaf);
        let mut arrivals = stash.arrivals();
        self.open_trip(bodies, blocks, |entry, real| arrivals.insert_if(entry, real))
    }

    /// Visits every block in storage: see
    /// [`PathTrips::visit_blocks`](super::PathTrips::visit_blocks).
    pub(super) fn visit_blocks(
        &mut self,
        bodies: BodyCounters,
        blocks: &mut BlockArena,
        visit: &mut dyn FnMut(Location, u64, Leaf),
    ) -> Result<(), Error> {
        for bucket in (0..self.format.geometry().buckets()).map(BucketId) {
            let level = bucket.level();
            if level >= self.first_level {
                self.trip.set_path(Leaf(bucket.index()), level..level + 1);
                self.open_trip(bodies, blocks, |entry, real| {
                    if real {
                        visit(Location::Bucket(bucket), entry.address, entry.leaf);
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Seals and writes a path: see [`PathTrips::seal_path`](super::PathTrips::seal_path).
    pub(super) fn seal_path(
        &mut self,
        leaf: Leaf,
        counter: u64,
        bodies: BodyCounters,
        plan: &PathPlan,
        blocks: &BlockArena,
    ) -> Result<(), Error> {
        self.set_path(leaf);
        self.seal_trip(counter, bodies, blocks, |bucket| {
            plan.bucket(usize::from(bucket.sizes.level))
        })
    }

    /// Writes all buckets: see [`PathTrips::fill`](super::PathTrips::fill).
    pub(super) fn fill(&mut self, tree: TagTree, client: &Client) -> Result<(), Error> {
        let zero = client.blocks.zero();
        let mut entries = Vec::new();
        for bucket in (0..self.format.geometry().buckets()).map(BucketId) {
            if bucket.level() >= self.first_level {
                let blocks = tree.blocks(bucket);
                entries.clear();
                entries.extend(blocks.map(|(address, leaf)| Entry { address, leaf, place: zero }));
                let slots = self.format.geometry().slots(bucket.level().into());
                entries.resize(slots, Entry::dummy(zero));
                let counter = self.writes.advance()?;
                self.seal_bucket(bucket, counter, &entries, &client.blocks)?;
            }
        }
        Ok(())
    }

    /// Seals `entries`, one per slot, and writes them to a single bucket.
    fn seal_bucket(
        &mut self,
        bucket: BucketId,
        counter: u64,
        entries: &[Entry],
        blocks: &BlockArena,
    ) -> Result<(), Error> {
        let level = bucket.level();
        self.trip.set_path(Leaf(bucket.index()), level..level + 1);
        self.seal_trip(counter, BodyCounters::Stored, blocks, |_| entries)
    }

    /// Seals the buckets of the trip and writes them. `planned` returns the entries of a bucket,
    /// one per slot.
    fn seal_trip<'e>(
        &mut self,
        counter: u64,
        bodies: BodyCounters,
        blocks: &BlockArena,
        planned: impl Fn(&TripBucket<'_>) -> &'e [Entry],
    ) -> Result<(), Error> {
        let Self { format, store, sealer, trip, addresses, leaves, .. } = self;
        write_sealed(store, trip, |mut blanks| {
            let mut batches = trip.batches(format);
            while let Some(batch) = batches.next() {
                let mut masks = sealer.batch();
                for bucket in batch.clone() {
                    masks.add(header_run(&bucket, counter));
                    masks.add(body_run(&bucket, bodies.of(&bucket, counter)));
                }
                let mut masks = masks.make();
                for bucket in batch.clone() {
                    format.put_addresses(
                        addresses.get_mut(bucket.i),
                        bucket.sizes,
                        planned(&bucket),
                    );
                    format.put_leaves(leaves.get_mut(bucket.i), bucket.sizes, planned(&bucket));
                }
                for bucket @ TripBucket { i, sizes, .. } in batch {
                    blanks
                        .header(i, counter, masks.take(0, sizes.address_table_bytes))
                        .write(&addresses.get(i)[..sizes.address_table_bytes]);
                    let mask = masks.take(0, sizes.body_bytes);
                    let mut body = blanks.body(i, sizes.body_offset, mask);
                    body.write(&leaves.get(i)[..sizes.leaf_table_bytes]);
                    for entry in planned(&bucket) {
                        body.write(blocks.get(entry.place));
                    }
                }
            }
            blanks.sealed()
        })
    }

    /// Reads the buckets of the trip and opens them into the transit area of `blocks`. Calls `each`
    /// with the entry of each slot of a written bucket, and whether the slot holds a block.
    fn open_trip(
        &mut self,
        bodies: BodyCounters,
        blocks: &mut BlockArena,
        mut each: impl FnMut(Entry, bool),
    ) -> Result<(), Error> {
        let Self { format, store, sealer, trip, addresses, leaves, .. } = self;
        let frames = read_checked(store, trip, format)?;
        let mut batches = trip.batches(format);
        while let Some(batch) = batches.next() {
            let mut masks = sealer.batch();
            for bucket in batch.clone() {
                let frame = frames.get(bucket.i);
                prefetch_rest(frame);
                let stored = stored_counter(frame);
                masks.add(header_run(&bucket, stored));
                masks.add(body_run(&bucket, bodies.of(&bucket, stored)));
            }
            let mut masks = masks.make();
            let mut table_masks = masks;
            for TripBucket { i, sizes, .. } in batch.clone() {
                let frame = frames.get(i);
                let mask = table_masks.take(0, sizes.address_table_bytes);
                Opened::new(&frame[COUNTER_BYTES..], mask)
                    .read(&mut addresses.get_mut(i)[..sizes.address_table_bytes]);
                let mask = table_masks.take(0, sizes.body_bytes);
                Opened::new(&frame[sizes.body_offset..], mask)
                    .read(&mut leaves.get_mut(i)[..sizes.leaf_table_bytes]);
            }
            for bucket @ TripBucket { i, id, sizes, .. } in batch {
                let frame = frames.get(i);
                masks.take(0, sizes.address_table_bytes);
                let mask = masks.take(0, sizes.body_bytes);
                let mut body = Opened::new(&frame[sizes.body_offset..], mask);
                body.skip(sizes.leaf_table_bytes);
                let stored = stored_counter(frame);
                let body_counter = bodies.of(&bucket, stored);
                if stored == 0 {
                    check_absent(body_counter)?;
                    continue;
                }
                let (table, labels) = (addresses.get(i), leaves.get(i));
                let first_slot = format.geometry().path_slots_above(usize::from(sizes.level));
                let (mut invalid, mut any_real) = (false, false);
                let opened_unseen = format.block_bytes() <= OPENED_UNSEEN_BYTES_MAX;
                if opened_unseen {
                    body.read(blocks.row_in_transit(first_slot, sizes.slots));
                }
                for (slot, (address, leaf)) in format.tags(table, labels, sizes.slots).enumerate() {
                    let claimed = address != Entry::DUMMY_ADDRESS;
                    let real = claimed & format.may_hold(id, address, leaf);
                    any_real |= real;
                    invalid |= claimed & !real;
                    let place = blocks.in_transit(first_slot + slot);
                    if !opened_unseen {
                        if real {
                            body.read(blocks.get_mut(place));
                        } else {
                            body.skip(format.block_bytes());
                        }
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
