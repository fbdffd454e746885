//! Access-only accesses: headers, and one block.

use super::{AnyPathIo, check_absent, evictions_of, header_run, read_checked, write_sealed};
use crate::bucket::{Search, corrupt};
use crate::error::Error;
use crate::geometry::Leaf;
use crate::hint::prefetch_rest;
use crate::memory::touch;
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
        let Self { format, store, sealer, trip, addresses, .. } = self;
        let frames = read_checked(store, trip, format)?;

        // For each header the mask it will have, and then for each the mask it has: the first half
        // needs nothing from storage, and gives it time to arrive. The blocks are asked for meanwhile:
        // at once, they would be in the way of the headers, and more than can be waited for at a time.
        let stops = || trip.stops(format);
        let stops_and_frames = || stops().zip(frames.iter());
        let mut masks = sealer.batch();
        for (stop, frame) in stops_and_frames() {
            masks.add(header_run(&stop, counter));
            prefetch_rest(frame);
        }
        for (stop, frame) in stops_and_frames() {
            masks.add(header_run(&stop, stored_counter(frame)));
        }
        let [mut fresh_masks, mut stored_masks] = masks.make().halves();

        for (Stop { i, sizes, .. }, frame) in stops_and_frames() {
            let mask = stored_masks.take(0, sizes.address_table_bytes);
            Opened::new(&frame[COUNTER_BYTES..], mask)
                .read(&mut addresses.get_mut(i)[..sizes.address_table_bytes]);
            // Storage shows which bytes it was made to load: all of them, whatever is opened.
            touch(frame);
        }
        // Where it was found is not looked at before the end: no processor foresees it.
        let mut at = Found::default();
        for (stop @ Stop { i, sizes, .. }, frame) in stops_and_frames() {
            let table = addresses.get_mut(i);
            if stored_counter(frame) == 0 {
                check_absent(evictions_of(&stop, evictions))?;
                format.put_dummies(table, sizes);
            } else {
                at.note(i, format.search(table, sizes.slots, address));
            }
        }
        let found = at.check()?;
        if let Some((i, slot)) = found {
            format.remove(addresses.get_mut(i), slot);
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

/// What the searches of a path's headers found.
#[derive(Default)]
struct Found {
    hits: usize,
    /// Whether one header alone had several.
    twice: bool,
    invalid: bool,
    /// The bucket and the slot of the hit, if there was one.
    bucket: usize,
    slot: usize,
}

impl Found {
    /// Adds what was found in bucket `i`. No branch depends on it.
    #[inline]
    fn note(&mut self, i: usize, search: Search) {
        let Search { hits, slot, invalid } = search;
        let here = usize::from(hits != 0).wrapping_neg();
        self.hits += hits;
        self.twice |= hits > 1;
        self.invalid |= invalid;
        self.bucket |= i & here;
        self.slot |= slot & here;
    }

    /// Where the only hit was, if there was one.
    #[inline]
    fn check(self) -> Result<Option<(usize, usize)>, Error> {
        match self {
            Self { invalid: true, .. } => Err(corrupt("an address past the end")),
            Self { twice: true, .. } => Err(corrupt("a block twice")),
            Self { hits: 0, .. } => Ok(None),
            Self { hits: 1, bucket, slot, .. } => Ok(Some((bucket, slot))),
            Self { .. } => Err(corrupt("a block that is elsewhere on its path too")),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_found_is_what_was_noted(
            slots in prop::collection::vec(prop::collection::vec(0u8..40, 1..6), 1..20),
            invalid_at in prop::option::weighted(0.1, 0usize..20),
        ) {
            // A slot holds the block where its number is 0.
            let holds = |(i, slots): (usize, &Vec<u8>)| {
                let hits = slots.iter().enumerate().filter(|(_, number)| **number == 0);
                hits.map(|(slot, _)| (i, slot)).collect::<Vec<_>>()
            };
            let hits: Vec<_> = slots.iter().enumerate().flat_map(holds).collect();
            let invalid = invalid_at.is_some_and(|i| i < slots.len());

            let mut at = Found::default();
            for (i, slots) in slots.iter().enumerate() {
                let here = holds((i, slots));
                let slot = here.iter().fold(0, |seen, (_, slot)| seen | slot);
                at.note(i, Search { hits: here.len(), slot, invalid: invalid_at == Some(i) });
            }
            match at.check() {
                Ok(found) => {
                    prop_assert!(!invalid && hits.len() <= 1);
                    prop_assert_eq!(found, hits.first().copied());
                }
                Err(error) => {
                    prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
                    prop_assert!(invalid || hits.len() > 1);
                }
            }
        }
    }
}
