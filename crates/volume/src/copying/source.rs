//! What is copied, and whether it is still that.

use oblivio_core::StoreError;
use oblivio_core::store::{BucketStore, Moved, Stretch, TreeId, TreeShape};
use ring::digest::{Context, SHA256};

use crate::anchor;
use crate::superblock::copies::{BACK, FRONT};

/// The trees that make a volume of a store, in the order in which they are copied: first what says how new it is, then
/// what makes it one.
pub(super) const CLOSING_TREES: [TreeId; 3] = [anchor::TREE, BACK, FRONT];

/// The name of a volume as it is at the moment: a hash of its superblocks and anchors. Whoever opens a volume writes a new
/// anchor before anything else, and whoever changes its keys writes a new superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source(pub [u8; 32]);

impl Source {
    /// Of the volume that a store holds.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(store: &mut (impl BucketStore + ?Sized)) -> Result<Self, StoreError> {
        let mut moved = Moved::default();
        let mut context = Context::new(&SHA256);
        for tree in CLOSING_TREES {
            for stretch in stretches(store, tree) {
                moved.read(store, &stretch)?;
                let frames = moved.frames();
                (0..frames.len()).for_each(|i| context.update(frames.get(i)));
            }
        }
        Ok(Self(context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")))
    }
}

/// The buckets of such a tree, all of a level together. There are few.
pub(super) fn stretches(store: &(impl BucketStore + ?Sized), tree: TreeId) -> Vec<Stretch> {
    let levels = store.shape(tree).map_or(&[][..], TreeShape::levels);
    let levels = (0..).zip(levels).filter(|(_, shape)| shape.buckets > 0);
    levels.map(|(level, shape)| Stretch { tree, level, buckets: 0..shape.buckets }).collect()
}
