//! A state file from the fuzzer: as raw bytes, and as properly sealed records.
//!
//! ```text
//! input = capacity, leaf level, kind, (length, record)*
//! ```
//!
//! Every record has exactly one encoding, so a record that can be read encodes to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_testkit::crash::small_volume::{SmallScheme, SmallVolume};
use oblivio_volume::state_fuzzing::{read, rewrite, seal};
use oblivio_volume::superblock::VolumeParams;

fuzz_target!(|input: &[u8]| {
    // As raw bytes: no record opens, but nothing may panic.
    let _ = read(input.to_vec(), &params(8, 3, 0));
    let Some(([capacity, leaf_level, kind], input)) = input.split_first_chunk() else { return };
    // A range of the longest class has 8 blocks.
    let (capacity, leaf_level) = (8 + u64::from(capacity % 64), 6 + leaf_level % 4);
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
    // Truncated, as after a crash.
    let _ = read(sealed[..sealed.len() - sealed.len() / 3].to_vec(), &params);
});

/// Returns parameters of a small volume. `kind` selects the scheme, and whether the position map is
/// recursive.
fn params(blocks: u64, leaf_level: u8, kind: u8) -> VolumeParams {
    let setup = SmallVolume { blocks, leaf_level, ..SmallVolume::default() };
    let each = SmallScheme::each().map(|scheme| SmallVolume { scheme, ..setup });
    let setups: Vec<_> =
        each.chain([SmallVolume { blocks, leaf_level, ..setup.with_map_in_tree() }]).collect();
    setups[usize::from(kind) % setups.len()].params()
}
