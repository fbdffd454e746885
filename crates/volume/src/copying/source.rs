//! The identity of the volume that is copied.

use oblivio_core::StoreError;
use oblivio_core::store::{BucketRange, BucketStore, SealedCopy, TreeId, TreeShape};
use ring::digest::{Context, SHA256};

use crate::anchor;
use crate::superblock::copies::{BACK, FRONT};

/// The trees that make a store a volume, in the order in which they are copied: anchors first, the
/// front superblocks last.
pub(super) const FINAL_TREES: [TreeId; 3] = [anchor::TREE, BACK, FRONT];

/// Identifies the current state of a volume: a hash of its superblocks and anchors. Opening a
/// volume writes a new anchor before anything else, and a key change writes a new superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeFingerprint(pub [u8; 32]);

impl VolumeFingerprint {
    /// The identity of the volume in `store`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn compute(store: &mut (impl BucketStore + ?Sized)) -> Result<Self, StoreError> {
        let mut moved = SealedCopy::default();
        let mut context = Context::new(&SHA256);
        for tree in FINAL_TREES {
            for range in bucket_ranges(store, tree) {
                moved.read(store, &range)?;
                let frames = moved.frames();
                (0..frames.len()).for_each(|i| context.update(frames.get(i)));
            }
        }
        Ok(Self(context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")))
    }
}

/// The buckets of a final tree, one range per level. Such trees have few buckets.
pub(super) fn bucket_ranges(store: &(impl BucketStore + ?Sized), tree: TreeId) -> Vec<BucketRange> {
    let levels = store.shape(tree).map_or(&[][..], TreeShape::levels);
    let levels = (0..).zip(levels).filter(|(_, shape)| shape.buckets > 0);
    levels.map(|(level, shape)| BucketRange { tree, level, buckets: 0..shape.buckets }).collect()
}
