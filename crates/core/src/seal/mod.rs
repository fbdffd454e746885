//! The seal: AES-128 in counter mode, and the only way to write blocks to storage.
//!
//! Every byte of a bucket that carries information is XORed with a mask
//!
//! ```text
//! AES_K( counter ‖ region ‖ bucket ‖ i )          64 + 1 + 41 + 22 bits, big-endian
//! ```
//!
//! where `i` numbers the 16-byte chunks of the region (Tiny ORAM, section IV-D). A bucket has two
//! regions, because RAW ORAM rewrites the header without the body:
//!
//! | region | contents | counter in Path ORAM | counter in RAW ORAM |
//! |---|---|---|---|
//! | [`Region::Header`] | addresses (⊥ for dummies) | stored | `IV2`: stored |
//! | [`Region::Body`] | leaf labels and blocks | the same | `IV1`: the bucket's evictions |
//!
//! A stored counter is fresh for each write. `IV1` is derived from the eviction count and not
//! stored.
//!
//! Fresh counters come from the client's [`WriteCounter`] and never from storage: if a store
//! returns a wrong counter, the client opens garbage, but no key stream is repeated. `K` is derived
//! from the session key for each tree, so that buckets of the same name in two trees share no mask.
//!
//! The masks of a whole path are computed in one batched AES call.
//!
//! A store that outlives a process needs more: [`EraSealer`] seals whole buckets with one tag each,
//! under changing keys and unique names. [`BlockSealer`] seals single blocks together with their
//! names.

mod blanks;
mod block;
mod bucket;
mod by_client;
pub(crate) mod counter;
mod era;
mod key;
mod masks;
mod opened;
mod trip;
mod xor;

pub use blanks::{Blanks, Sealed};
pub use block::{BLOCK_SEAL_BYTES, BlockName, BlockSealer, OpenedBlock, derive_seed};
pub use bucket::SEAL_BYTES;
pub(crate) use bucket::{BucketKind, BucketName, BucketPieces, VerifiedBucket};
pub use by_client::SealedByClient;
pub use counter::WriteCounter;
pub use era::{CHECKPOINT_ERAS_MAX, Era, EraSealer, MasterKey};
pub use key::Key;
pub(crate) use masks::{BATCH_BYTES, MaskBatch, MaskReader, MaskRun};
pub use masks::{BODY_BYTES_MAX, Region};
pub(crate) use opened::{Opened, open_in_place};
pub use trip::SealedTrip;

use crate::pieces::TreeId;
use masks::Masks;

/// Bytes of the unencrypted counter at the start of every bucket.
pub(crate) const COUNTER_BYTES: usize = 8;

/// Bytes of one AES block, the unit of masks.
pub(crate) const CHUNK_BYTES: usize = 16;

/// Permission to make a sealer that does not encrypt, for simulations only.
///
/// The name of its only constructor states the consequence.
#[derive(Clone, Copy, Debug)]
pub struct NoSecrecy(());

impl NoSecrecy {
    /// The permission for simulations and tests on data that is not secret: blocks and addresses go
    /// to storage unencrypted.
    pub fn this_is_a_simulation_without_secrets() -> Self {
        Self(())
    }
}

/// Computes the masks that seal and open the buckets of one tree.
pub struct Sealer {
    masks: Masks,
}

impl Sealer {
    /// A sealer with AES-128 under the key that `key` derives for `tree`. Consumes the key, because
    /// two sealers with one key would seal different data under one mask. Draw a fresh key for
    /// every sealer.
    pub fn aes128(key: Key, tree: TreeId) -> Self {
        Self { masks: Masks::aes128(&key.for_tree(tree)) }
    }

    /// A sealer with AES-128 under `tree_key`, the derived key of one tree. [`Self::aes128`]
    /// derives it from a session key; a hardware controller receives it at a port. The same key
    /// must never seal a second tree.
    pub fn aes128_of_tree_key(tree_key: Key) -> Self {
        Self { masks: Masks::aes128(&tree_key) }
    }

    /// A sealer without encryption. Addresses, labels and data go to storage as plaintext.
    pub fn null(_: NoSecrecy) -> Self {
        Self { masks: Masks::zero() }
    }

    /// AES blocks computed so far for sealing and opening. Public: depends only on the number of
    /// accesses.
    pub fn aes_blocks(&self) -> u64 {
        self.masks.aes_blocks()
    }

    /// Starts a batch of masks that are computed in one call.
    #[inline]
    pub(crate) fn batch(&mut self) -> MaskBatch<'_> {
        self.masks.batch()
    }

    /// The mask of a single run.
    #[inline]
    pub(crate) fn mask(&mut self, run: MaskRun) -> MaskReader<'_> {
        let mut batch = self.batch();
        batch.add(run);
        batch.make()
    }
}

/// The unencrypted counter at the start of a bucket. Untrusted.
#[inline]
pub(crate) fn stored_counter(bucket: &[u8]) -> u64 {
    bucket.first_chunk().map_or(0, |counter| u64::from_be_bytes(*counter))
}

#[cfg(test)]
mod tests;
