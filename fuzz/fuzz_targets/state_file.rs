//! A state file of the fuzzer's making, as bytes and as records under a seal that opens.
//!
//! ```text
//! input = capacity, leaf level, (length, record)*
//! ```
//!
//! There is exactly one encoding of every record, so whatever is read writes back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_volume::state_fuzzing::{read, rewrite, seal};

fuzz_target!(|input: &[u8]| {
    // As it is: nothing opens, but nothing may break.
    let _ = read(input.to_vec(), 8, 3);
    let Some(([capacity, leaf_level], input)) = input.split_first_chunk() else { return };
    let (capacity, leaf_level) = (1 + u64::from(capacity % 64), 1 + leaf_level % 8);
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
    let _ = read(sealed.clone(), capacity, leaf_level);
    // Wherever a crash tore it.
    let _ = read(sealed[..sealed.len() - sealed.len() / 3].to_vec(), capacity, leaf_level);
});
