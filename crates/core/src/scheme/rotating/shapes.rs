//! The trees that a store must hold for a rotating RAW ORAM, and their shapes.

use alloc::format;
use alloc::vec;

use super::super::config::check_evict_period;
use super::super::{RawConfig, TreeConfig};
use super::places::PlaceRings;
use super::taken::{self, TakenSlots};
use crate::bucket::AuthenticatedFormat;
use crate::error::{Error, ErrorKind};
use crate::pieces::{LevelShape, TreeId, TreeShape};
use crate::store::BucketStore;

/// The trees of a store that one rotating RAW ORAM uses. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotatingTrees {
    /// The tree of sealed blocks.
    pub slots: TreeId,
    /// The tree of heads. A bucket's head is its authentication tag and the sealed addresses and
    /// leaves of the blocks in its slots.
    pub heads: TreeId,
    /// The tree of marks of taken slots. The store has this tree only if slots are marked.
    pub taken: TreeId,
}

impl RotatingTrees {
    /// Three consecutive trees, starting with `first`.
    pub fn from(first: TreeId) -> Self {
        let [slots, heads, taken] = [0, 1, 2].map(|more| TreeId(first.0 + more));
        Self { slots, heads, taken }
    }
}

impl RawConfig {
    /// The shapes of [`RotatingTrees::slots`] and [`RotatingTrees::heads`]. Each level in storage
    /// has [`Self::spare_evictions`] more places than the tree has buckets there. The places are on
    /// the store's next level, which has names for all of them.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters contradict each other.
    pub fn rotating_shapes(&self) -> Result<[TreeShape; 2], Error> {
        shapes(self)
    }

    /// The shape of the tree for marks of taken slots: see
    /// [`VersionedTree::with_taken_marks`](super::VersionedTree::with_taken_marks).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters contradict each other.
    pub fn taken_shape(&self) -> Result<TreeShape, Error> {
        self.rotating_shapes()?;
        Ok(TakenSlots::shape(&self.tree.geometry, self.tree.tree_top_levels))
    }

    /// Average number of bytes that an eviction reads to sweep pages of marks; it writes the same
    /// number. 0 if taken slots are not marked. Excludes the pages that only every `W`-th eviction
    /// reads, for the buckets that the next `W` evictions write.
    pub fn swept_bytes_per_eviction(&self, marks_taken_slots: bool) -> f64 {
        if !marks_taken_slots {
            return 0.0;
        }
        taken::swept_bytes(&self.tree.geometry, self.tree.tree_top_levels)
    }

    /// Maximum number of marks of taken slots on the client: the number of accesses in a round of
    /// sweeps.
    pub fn marked_slots_max(&self) -> u64 {
        let round = taken::round_evictions(&self.tree.geometry, self.tree.tree_top_levels);
        round * u64::from(self.evict_period)
    }

    /// `W`: the number of evictions that a state of rotating RAW ORAM survives,
    /// `2^tree_top_levels`.
    pub fn spare_evictions(&self) -> u64 {
        1 << self.tree.tree_top_levels
    }
}

/// The shapes of the trees of slots and of heads.
fn shapes(config: &RawConfig) -> Result<[TreeShape; 2], Error> {
    check_evict_period(config.evict_period)?;
    config.tree.format()?;
    let TreeConfig { geometry, tree_top_levels, .. } = &config.tree;
    let places = PlaceRings::new(geometry, *tree_top_levels);
    let format = format_of(&config.tree);
    let absent = LevelShape::of_heads(0, 0);
    let tree_of = |level_of: &dyn Fn(u64, usize) -> LevelShape| {
        let mut levels = vec![absent; usize::from(PlaceRings::store_level(*tree_top_levels))];
        levels.extend(
            places
                .levels()
                .map(|level| level_of(places.on_level(level), geometry.slots(usize::from(level)))),
        );
        TreeShape::new(levels)
    };
    Ok([
        tree_of(&|buckets, slots| format.slots_shape(buckets, slots)),
        tree_of(&|buckets, slots| format.heads_shape(buckets, slots)),
    ])
}

/// The bucket format of a checked configuration.
pub(super) fn format_of(tree: &TreeConfig) -> AuthenticatedFormat {
    AuthenticatedFormat::new(tree.capacity, tree.block_bytes, &tree.geometry)
}

/// Fails if the tree `tree` of a store does not have the expected shape.
pub(super) fn check_shape(
    store: &dyn BucketStore,
    tree: TreeId,
    shape: &TreeShape,
) -> Result<(), Error> {
    if store.shape(tree) == Some(shape) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::StoreMismatch,
        format!(
            "the store's tree {} does not have the shape of this configuration: make the store \
             with the shapes of the configuration",
            tree.0
        ),
    ))
}
