//! A superblock with changes from the fuzzer and a valid checksum.
//!
//! ```text
//! input = (offset, 2 bytes; value, 1 byte)*
//! ```
//!
//! The changes are applied to an authentic superblock. Every superblock has exactly one encoding,
//! so decoded bytes encode to the same bytes. The HMAC covers all bytes, so only an
//! unchanged superblock can be unlocked. The target unlocks with a key file, because the fuzzer
//! could choose the cost of a passphrase.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use oblivio_testkit::example_params;
use oblivio_volume::keys::{Cost, NewSlot, Secret, VolumeKey};
use oblivio_volume::superblock::{LockedSuperblock, SUPERBLOCK_BYTES, Superblock};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sha2::{Digest, Sha256};

const CHECKSUM_AT: usize = SUPERBLOCK_BYTES - 32;

static AUTHENTIC: LazyLock<Box<[u8; SUPERBLOCK_BYTES]>> = LazyLock::new(authentic);

fuzz_target!(|input: &[u8]| {
    // As raw bytes: the checksum is wrong, but nothing may panic.
    let _ = LockedSuperblock::decode(input);
    let mut bytes = AUTHENTIC.clone();
    for change in input.chunks_exact(3) {
        let offset = usize::from(u16::from_le_bytes([change[0], change[1]]));
        bytes[offset % CHECKSUM_AT] = change[2];
    }
    let checksum = Sha256::digest(&bytes[..CHECKSUM_AT]);
    bytes[CHECKSUM_AT..].copy_from_slice(&checksum);
    let Ok(locked) = LockedSuperblock::decode(&bytes[..]) else { return };
    assert_eq!(locked.encode(), bytes);
    let _ = locked.unauthenticated_slots();
    if locked.unlock(&secret()).is_ok() {
        assert_eq!(bytes, *AUTHENTIC);
    }
});

fn secret() -> Secret {
    Secret::KeyFile(vec![1; 32].into())
}

fn authentic() -> Box<[u8; SUPERBLOCK_BYTES]> {
    let mut coins = StdRng::seed_from_u64(1);
    let key = VolumeKey::draw(&mut coins);
    let passphrase = Secret::Passphrase(b"correct horse".to_vec().into());
    let slot = |secret, label| NewSlot { secret, cost: Cost::weak_for_tests(), label };
    let made = Superblock::create(example_params(), &key, &slot(&passphrase, "owner"), &mut coins);
    let mut made = made.expect("the parameters are valid");
    made.add_slot(&key, &slot(&secret(), "backup"), &mut coins).expect("there is a free slot");
    made.encode()
}
