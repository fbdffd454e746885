//! The progress record of a copy. A record that can be read encodes to the same bytes.
//!
//! Half of the inputs get a valid checksum, so that the fuzzer gets past the check.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_volume::copying::{PROGRESS_BYTES, Progress};
use sha2::{Digest, Sha256};

const CHECKSUM_BYTES: usize = 32;

fuzz_target!(|input: &[u8]| {
    let Some((setup, bytes)) = input.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if setup & 1 == 1 {
        bytes.resize(PROGRESS_BYTES - CHECKSUM_BYTES, 0);
        bytes.extend_from_slice(&Sha256::digest(&bytes));
    }
    if let Ok(progress) = Progress::decode(&bytes) {
        assert_eq!(progress.encode()[..], bytes);
    }
});
