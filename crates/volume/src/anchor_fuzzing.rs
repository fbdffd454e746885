//! Access to anchors for the fuzzer, under a fixed key.

use oblivio_core::BucketStore;
use oblivio_core::store::TreeShape;
use zeroize::Zeroizing;

use crate::anchor::{self, AnchorKey};
use crate::error::VolumeError;
use crate::state::record::{CheckpointName, NAME_BYTES};

/// The shape of tree 1 of the store, which holds the anchors.
pub fn shape() -> TreeShape {
    anchor::shape()
}

/// Writes the anchor of a checkpoint.
///
/// # Errors
/// When the store fails.
pub fn write(store: &mut impl BucketStore, number: u64) -> Result<(), VolumeError> {
    let name = [number as u8; NAME_BYTES];
    anchor::write(store, &key(), &CheckpointName { number, name })
}

/// The number of the checkpoint that storage shows. `None` if storage shows no authentic anchor.
///
/// # Errors
/// When the store fails.
pub fn read(store: &mut impl BucketStore) -> Result<Option<u64>, VolumeError> {
    Ok(anchor::read(store, &key())?.map(|checkpoint| checkpoint.number))
}

fn key() -> AnchorKey {
    AnchorKey::new(&Zeroizing::new([4; 32]))
}
