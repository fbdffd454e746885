//! The configuration of a rotating RAW ORAM, and the shapes of its trees.

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
    /// The tree, and its eviction period.
    pub raw: RawConfig,
    /// The split of the position map between client and tree; `None` if it is in client memory.
    pub recursion: Option<Recursion>,
    /// The store's trees. The tree for marks of taken slots exists only if `recursion` is set.
    pub trees: RotatingTrees,
}

/// The shapes of the store's trees, as in [`RotatingTrees`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotatingShapes {
    /// The shape of the tree of sealed blocks.
    pub slots: TreeShape,
    /// The shape of the tree of heads: tags and tables of buckets.
    pub heads: TreeShape,
    /// The shape of the tree for marks of taken slots; `None` without a recursion.
    pub taken: Option<TreeShape>,
}

impl RotatingShapes {
    /// The shapes in the order in which [`RotatingTrees::from`] numbers the trees.
    pub fn into_trees(self) -> Vec<TreeShape> {
        [self.slots, self.heads].into_iter().chain(self.taken).collect()
    }
}

impl RotatingConfig {
    /// A configuration whose position map is in client memory.
    pub fn flat(raw: RawConfig) -> Self {
        let trees = RotatingTrees::from(raw.tree.tree);
        Self { raw, recursion: None, trees }
    }

    /// A configuration with Z = 5 and A = 5, as in Tiny ORAM, that keeps at most
    /// `client_entries_max` entries and `plb_blocks` blocks of the position map in client memory.
    /// The marks of taken slots are in the store's tree after those of slots and heads.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters contradict each other, or no tree fits.
    pub fn recursive(recursion: Recursion, block_bytes: usize) -> Result<Self, Error> {
        let tree_blocks = |leaf_level| recursion.tree_blocks(block_bytes, leaf_level);
        // The width of an entry grows with the tree, the tree with the width of an entry.
        let narrow = RawConfig::new(tree_blocks(0)?, block_bytes)?;
        let blocks = tree_blocks(narrow.tree.geometry.leaf_level())?;
        let raw = RawConfig::new(blocks, block_bytes)?;
        let recursion = Some(recursion);
        Ok(Self { recursion, ..Self::flat(raw) })
    }

    /// Number of data blocks (N).
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

    /// Maximum number of blocks in tree top and stash: see [`RawConfig::tree_top_blocks_max`].
    pub fn tree_top_and_stash_blocks_max(&self) -> u64 {
        let TreeConfig { geometry, stash_blocks_max, .. } = &self.raw.tree;
        let in_stash = stash_blocks_max + geometry.path_slots();
        self.raw.tree_top_blocks_max() + in_stash as u64
    }

    /// Maximum number of blocks on a client, including blocks of the position map.
    pub fn client_blocks_max(&self) -> u64 {
        let of_map = self.recursion.map_or(0, |recursion| recursion.plb_blocks);
        self.tree_top_and_stash_blocks_max() + of_map as u64
    }

    /// The shapes of the trees that a store must hold.
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
                format!("the tree holds {capacity} blocks, data and position map are {blocks}"),
            ));
        }
        Ok(RotatingShapes { slots, heads, taken: Some(self.raw.taken_shape()?) })
    }
}

impl RotatingConfig {
    /// The same configuration with another [`raw`](Self::raw).
    #[must_use]
    pub fn with_raw(self, raw: RawConfig) -> Self {
        Self { raw, ..self }
    }

    /// The same configuration with another [`recursion`](Self::recursion).
    #[must_use]
    pub fn with_recursion(self, recursion: Option<Recursion>) -> Self {
        Self { recursion, ..self }
    }

    /// The same configuration with other [`trees`](Self::trees).
    #[must_use]
    pub fn with_trees(self, trees: RotatingTrees) -> Self {
        Self { trees, ..self }
    }
}
