//! Whole buckets: read and opened, sealed and written.

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
use crate::scheme::trip::Stop;
use crate::seal::{COUNTER_BYTES, Opened, stored_counter};
use crate::stash::{BlockRoom, Entry, PathPlan, Stash};

/// Blocks up to this size are opened even if they are dummies: it costs less than a branch that
/// cannot be predicted.
const OPENED_UNSEEN_BYTES_MAX: usize = 256;

impl AnyPathIo<'_> {
    /// See [`Trips::open_path`](super::Trips::open_path).
    pub(super) fn open_path(
        &mut self,
        leaf: Leaf,
        bodies: BodyCounters,
        blocks: &mut BlockRoom,
        stash: &mut Stash,
    ) -> Result<(), Error> {
        self.aim(leaf);
        let mut arrivals = stash.arrivals();
        self.open_trip(bodies, blocks, |entry, real| arrivals.insert_if(entry, real))
    }

    /// See [`Trips::visit_blocks`](super::Trips::visit_blocks).
    pub(super) fn visit_blocks(
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

    /// See [`Trips::seal_path`](super::Trips::seal_path).
    pub(super) fn seal_path(
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

    /// See [`Trips::fill`](super::Trips::fill).
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

    /// Seals `entries`, one for each slot, and writes them to a single bucket.
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
                let frame = frames.get(stop.i);
                prefetch_rest(frame);
                let stored = stored_counter(frame);
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
                let opened_unseen = format.block_bytes() <= OPENED_UNSEEN_BYTES_MAX;
                if opened_unseen {
                    body.read(blocks.row_in_transit(first_slot, sizes.slots));
                }
                for (slot, (address, leaf)) in format.tags(table, labels, sizes.slots).enumerate() {
                    let claimed = address != Entry::DUMMY_ADDRESS;
                    let real = claimed & format.may_hold(bucket, address, leaf);
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
