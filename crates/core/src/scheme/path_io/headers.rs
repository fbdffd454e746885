//! Access-only accesses: headers, and one block.

use super::{AnyPathIo, check_absent, evictions_of, header_run, read_checked, write_sealed};
use crate::bucket::corrupt;
use crate::error::Error;
use crate::geometry::Leaf;
use crate::scheme::trip::Stop;
use crate::seal::{
    CHUNK_BYTES, COUNTER_BYTES, MaskRun, Opened, Region, open_in_place, stored_counter,
};

impl AnyPathIo<'_> {
    /// The trips of an access-only access: reads the whole path to `leaf`, opens its headers and
    /// one block, takes that block out of its header, and writes all headers back under `counter`.
    ///
    /// Returns whether `address` was on the path, and then `block` holds it. If it was not, some
    /// other block is opened and forgotten, so that the work is the same. [`Entry::DUMMY_ADDRESS`] never
    /// is: it is wider than any entry of a header.
    pub(in crate::scheme) fn take_block(
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
}

/// The most AES blocks that the block in any slot can straddle: as many are computed for every slot,
/// so that the work does not tell which it was. Slots start at multiples of the block's size.
fn chunks_of_any_slot(block_bytes: usize) -> usize {
    // Blocks of no bytes are multiples of anything.
    let start_unit = 1 << block_bytes.trailing_zeros().min(CHUNK_BYTES.ilog2());
    let offset_max = CHUNK_BYTES - start_unit;
    (offset_max + block_bytes).div_ceil(CHUNK_BYTES)
}
