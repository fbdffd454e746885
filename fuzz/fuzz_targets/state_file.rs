//! A state file of the fuzzer's making, as bytes and as records under a seal that opens.
//!
//! ```text
//! input = capacity, leaf level, kind, (length, record)*
//! ```
//!
//! There is exactly one encoding of every record, so whatever is read writes back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_core::durable::RangePolicy;
use oblivio_core::durable::Slots;
use oblivio_core::durable::range::RangeParams;
use oblivio_core::durable::rotating::{MapRecursion, RawParams};
use oblivio_core::durable::scan::ScanParams;
use oblivio_volume::state_fuzzing::{read, rewrite, seal};
use oblivio_volume::superblock::VolumeParams;

fuzz_target!(|input: &[u8]| {
    // As it is: nothing opens, but nothing may break.
    let _ = read(input.to_vec(), &params(8, 3, 0));
    let Some(([capacity, leaf_level, kind], input)) = input.split_first_chunk() else { return };
    let (capacity, leaf_level) = (1 + u64::from(capacity % 64), 6 + leaf_level % 4);
    let params = params(capacity, leaf_level, *kind);
    let mut records = Vec::new();
    let mut rest = input;
    while let Some((length, after)) = rest.split_first() {
        let (record, after) = after.split_at(after.len().min(usize::from(*length)));
        records.push(record);
        rest = after;
    }
    for record in &records {
        if let Some(copy) = rewrite(record) {
            assert_eq!(copy, *record);
        }
    }
    let sealed = seal(records.into_iter());
    let _ = read(sealed.clone(), &params);
    // Wherever a crash tore it.
    let _ = read(sealed[..sealed.len() - sealed.len() / 3].to_vec(), &params);
});

/// A small volume: with a flat position map, with one that lies in the tree, without any tree, or with ranges.
fn params(blocks: u64, leaf_level: u8, kind: u8) -> VolumeParams {
    let block_bytes = 16;
    let recursion =
        (kind % 4 == 1).then_some(MapRecursion { client_entries_max: 4, plb_blocks: 8 });
    if kind % 4 == 3 {
        return VolumeParams::of(&RangeParams {
            blocks,
            block_bytes,
            leaf_level,
            tree_top_levels: 2,
            slots: 4,
            evict_period: 3,
            stash_blocks_max: 40,
            policy: RangePolicy::Classes,
            classes: if blocks < 4 { vec![0] } else { vec![0, 2] },
        });
    }
    if kind % 4 == 2 {
        return VolumeParams::of(&ScanParams { blocks, block_bytes, spare: 4 });
    }
    VolumeParams::of(&RawParams {
        blocks,
        block_bytes,
        leaf_level,
        slots: Slots::Same(4),
        evict_period: 3,
        stash_blocks_max: 40,
        tree_top_levels: 2,
        tree_top_ways: 0,
        recursion,
    })
}
