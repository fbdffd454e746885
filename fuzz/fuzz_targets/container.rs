//! The header of a file of buckets. Each list of tree shapes has exactly one header, so the shapes
//! in a header that can be read encode to the same bytes.
//!
//! ```text
//! input = setup, start of a header
//! ```
//!
//! Half of the inputs get a valid checksum, so that the fuzzer gets past the check.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_store::container::{self, Container, HEADER_BYTES};
use sha2::{Digest, Sha256};

const CHECKSUM_BYTES: usize = 32;

fuzz_target!(|input: &[u8]| {
    let Some((setup, input)) = input.split_first() else { return };
    let mut copy = input[..input.len().min(HEADER_BYTES)].to_vec();
    if setup & 1 == 1 {
        copy.resize(HEADER_BYTES, 0);
        let (body, sum) = copy.split_at_mut(HEADER_BYTES - CHECKSUM_BYTES);
        sum.copy_from_slice(&Sha256::digest(body));
    }
    let Ok(shapes) = container::decode(&copy) else { return };
    assert_eq!(container::encode(&shapes).unwrap(), copy);
    let container = Container::new(&shapes).unwrap();
    assert!(container.bytes() <= i64::MAX as u64);
});
