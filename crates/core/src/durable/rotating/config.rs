//! What shapes a rotating RAW ORAM, and what a store must have room for.

use alloc::format;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::pieces::TreeShape;
use crate::posmap::Recursion;
use crate::scheme::{RawConfig, RotatingTrees, TreeConfig};

/// Parameters of rotating RAW ORAM.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RotatingConfig {
    /// The tree, and when it is evicted to.
    pub raw: RawConfig,
    /// What part of the position map lies in the tree. None: all of it is client memory.
    pub recursion: Option<Recursion>,
    /// The store's trees. It has one for notes on taken slots if there is a recursion.
    pub trees: RotatingTrees,
}

/// What a store must have room for. The trees of [`RotatingTrees`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotatingShapes {
    /// Sealed blocks.
    pub slots: TreeShape,
    /// Tags and tables of buckets.
    pub heads: TreeShape,
    /// Notes on taken slots, if they are noted down.
    pub taken: Option<TreeShape>,
}

impl RotatingShapes {
    /// All of them in this order, as [`RotatingTrees::from`] numbers them.
    pub fn into_trees(self) -> Vec<TreeShape> {
        [self.slots, self.heads].into_iter().chain(self.taken).collect()
    }
}

impl RotatingConfig {
    /// A position map in client memory.
    pub fn flat(raw: RawConfig) -> Self {
        let trees = RotatingTrees::from(raw.tree.tree);
        Self { raw, recursion: None, trees }
    }

    /// A position map of which no more than `client_entries_max` entries and `plb_blocks` blocks are in
    /// client memory, and Z5A5 of Tiny ORAM. The notes on taken slots are in the store's next tree.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] when the parameters contradict each other, or no tree fits.
    pub fn recursive(recursion: Recursion, block_bytes: usize) -> Result<Self, Error> {
        let tree_blocks = |leaf_level| recursion.tree_blocks(block_bytes, leaf_level);
        // The width of an entry grows with the tree, the tree with the width of an entry.
        let narrow = RawConfig::new(tree_blocks(0)?, block_bytes)?;
        let blocks = tree_blocks(narrow.tree.geometry.leaf_level())?;
        let raw = RawConfig::new(blocks, block_bytes)?;
        let recursion = Some(recursion);
        Ok(Self { recursion, ..Self::flat(raw) })
    }

    /// How many data blocks (N).
    pub fn data_blocks(&self) -> u64 {
        self.recursion.map_or(self.raw.tree.capacity, |recursion| recursion.data_blocks)
    }

    /// Entries of the position map in client memory.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] when the parameters contradict each other.
    pub fn client_entries(&self) -> Result<u64, Error> {
        let TreeConfig { capacity, block_bytes, geometry, .. } = &self.raw.tree;
        match self.recursion {
            Some(recursion) => recursion.client_entries(*block_bytes, geometry.leaf_level()),
            None => Ok(*capacity),
        }
    }

    /// Blocks in tree top and stash, at most: see [`RawConfig::tree_top_blocks_max`].
    pub fn tree_top_and_stash_blocks_max(&self) -> u64 {
        let TreeConfig { geometry, stash_blocks_max, .. } = &self.raw.tree;
        let in_stash = stash_blocks_max + geometry.path_slots();
        self.raw.tree_top_blocks_max() + in_stash as u64
    }

    /// All blocks that a client has at most, those of the position map among them.
    pub fn client_blocks_max(&self) -> u64 {
        let of_map = self.recursion.map_or(0, |recursion| recursion.plb_blocks);
        self.tree_top_and_stash_blocks_max() + of_map as u64
    }

    /// What a store must have room for.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] when the parameters contradict each other.
    pub fn shapes(&self) -> Result<RotatingShapes, Error> {
        let [slots, heads] = self.raw.rotating_shapes()?;
        let Some(recursion) = &self.recursion else {
            return Ok(RotatingShapes { slots, heads, taken: None });
        };
        let TreeConfig { capacity, block_bytes, geometry, .. } = &self.raw.tree;
        let blocks = recursion.tree_blocks(*block_bytes, geometry.leaf_level())?;
        if *capacity < blocks {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!("data and position map are {blocks} blocks, the tree is for {capacity}"),
            ));
        }
        Ok(RotatingShapes { slots, heads, taken: Some(self.raw.taken_shape()?) })
    }
}

impl RotatingConfig {
    /// The same, but for [`raw`](Self::raw).
    #[must_use]
    pub fn with_raw(self, raw: RawConfig) -> Self {
        Self { raw, ..self }
    }

    /// The same, but for [`recursion`](Self::recursion).
    #[must_use]
    pub fn with_recursion(self, recursion: Option<Recursion>) -> Self {
        Self { recursion, ..self }
    }

    /// The same, but for [`trees`](Self::trees).
    #[must_use]
    pub fn with_trees(self, trees: RotatingTrees) -> Self {
        Self { trees, ..self }
    }
}
