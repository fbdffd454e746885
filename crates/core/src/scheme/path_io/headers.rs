//! The trips of access-only accesses, which open headers and one block.

use super::{AnyPathIo, check_absent, evictions_of, header_run, read_checked, write_sealed};
use crate::bucket::{Search, corrupt};
use crate::error::Error;
use crate::geometry::Leaf;
use crate::hint::prefetch_rest;
use crate::memory::touch;
use crate::scheme::trip::TripBucket;
use crate::seal::{
    CHUNK_BYTES, COUNTER_BYTES, MaskRun, Opened, Region, open_in_place, stored_counter,
};

impl AnyPathIo<'_> {
    /// The trips of an access-only access: reads the whole path to `leaf`, opens its headers and
    /// one block, removes that block from its header, and writes all headers back under `counter`.
    ///
    /// Returns whether `address` was on the path; if so, `block` holds its block. If not, another
    /// block is opened and discarded, so that the work is the same. The address of a
    /// [dummy](crate::stash::Entry::DUMMY_ADDRESS) is on no path: it is wider than any entry of a
    /// header.
    pub(in crate::scheme) fn take_block(
        &mut self,
        leaf: Leaf,
        address: u64,
        evictions: u64,
        counter: u64,
        block: &mut [u8],
    ) -> Result<bool, Error> {
        self.set_path(leaf);
        let Self { format, store, sealer, trip, addresses, .. } = self;
        let frames = read_checked(store, trip, format)?;

        // Make the masks of the new headers first, then the masks of the stored headers. The first
        // half needs no byte of the frames, so the stored headers can arrive in the cache. Prefetch
        // the blocks bucket by bucket meanwhile: all at once they would delay the headers, and
        // exceed the number of loads in flight.
        let buckets = || trip.buckets(format);
        let buckets_and_frames = || buckets().zip(frames.iter());
        let mut masks = sealer.batch();
        for (bucket, frame) in buckets_and_frames() {
            masks.add(header_run(&bucket, counter));
            prefetch_rest(frame);
        }
        // Tiny ORAM, Section IV-D: the masks of headers need the stored IV_2.
        for (bucket, frame) in buckets_and_frames() {
            masks.add(header_run(&bucket, stored_counter(frame)));
        }
        let [mut fresh_masks, mut stored_masks] = masks.make().halves();

        for (TripBucket { i, sizes, .. }, frame) in buckets_and_frames() {
            let mask = stored_masks.take(0, sizes.address_table_bytes);
            Opened::new(&frame[COUNTER_BYTES..], mask)
                .read(&mut addresses.get_mut(i)[..sizes.address_table_bytes]);
            // Storage may see which bytes are loaded: load all of them, whichever block is opened.
            touch(frame);
        }
        // Do not branch on the block's bucket before the end: no processor can predict it.
        // Tiny ORAM, Section IV-A: identify the requested block in the headers.
        let mut at = SearchResult::default();
        for (bucket @ TripBucket { i, sizes, .. }, frame) in buckets_and_frames() {
            let table = addresses.get_mut(i);
            if stored_counter(frame) == 0 {
                check_absent(evictions_of(&bucket, evictions))?;
                format.put_dummies(table, sizes);
            } else {
                at.note(i, format.search(table, sizes.slots, address));
            }
        }
        let found = at.check()?;
        // Tiny ORAM, Section IV-A: remove the block from its header.
        if let Some((i, slot)) = found {
            format.remove(addresses.get_mut(i), slot);
        }

        let (i, slot) = found.unwrap_or((0, 0));
        let bucket = buckets().nth(i).expect("a path has at least one bucket in storage");
        let evicted = evictions_of(&bucket, evictions);
        if found.is_some() && evicted == 0 {
            return Err(corrupt("a block that no eviction can have put there"));
        }
        let (start, bytes) = (bucket.sizes.leaf_table_bytes + slot * block.len(), block.len());
        block.copy_from_slice(&frames.get(i)[bucket.sizes.body_offset + start..][..bytes]);
        // Tiny ORAM, Section IV-D: the write count of the bucket takes the place of IV_1.
        let run = MaskRun::new(Region::Body, evicted, bucket.id, start, bytes);
        let run = run.widen_to(chunks_of_any_slot(bytes));

        trip.narrow_to_headers();
        // Tiny ORAM, Section IV-A: re-encrypt and write back only the headers.
        write_sealed(store, trip, |mut blanks| {
            for TripBucket { i, sizes, .. } in trip.buckets(format) {
                blanks
                    .header(i, counter, fresh_masks.take(0, sizes.address_table_bytes))
                    .write(&addresses.get(i)[..sizes.address_table_bytes]);
            }
            blanks.sealed()
        })?;
        // Tiny ORAM, Section IV-A: decrypt the requested block only.
        open_in_place(block, sealer.mask(run).take(start, bytes));
        Ok(found.is_some())
    }
}

/// The results of searching the headers of a path.
#[derive(Default)]
struct SearchResult {
    hits: usize,
    /// Whether any single header had several hits.
    twice: bool,
    /// Whether any header had an address past the capacity.
    invalid: bool,
    /// The index in the trip of the bucket with the hit; 0 without a hit.
    bucket: usize,
    slot: usize,
}

impl SearchResult {
    /// Adds the result for bucket `i`, without a branch that depends on the result.
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

    /// The bucket and slot of the only hit, if there was one. Fails if there were several hits, or
    /// an address past the capacity.
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

/// The maximum number of AES blocks that a block in any slot can straddle. Masks are computed for
/// this number of AES blocks, so that the work does not depend on the slot. Slots start at
/// multiples of `block_bytes`.
fn chunks_of_any_slot(block_bytes: usize) -> usize {
    // 0 is a multiple of every power of two.
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
            // A slot holds the block if its number is 0.
            let holds = |(i, slots): (usize, &Vec<u8>)| {
                let hits = slots.iter().enumerate().filter(|(_, number)| **number == 0);
                hits.map(|(slot, _)| (i, slot)).collect::<Vec<_>>()
            };
            let hits: Vec<_> = slots.iter().enumerate().flat_map(holds).collect();
            let invalid = invalid_at.is_some_and(|i| i < slots.len());

            let mut at = SearchResult::default();
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
