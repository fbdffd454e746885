//! The parameters of a tree, and their defaults.

use alloc::format;

use crate::bucket::BucketFormat;
use crate::error::{Error, ErrorKind};
use crate::geometry::{Geometry, leaf_level_for};
use crate::pieces::{TreeId, TreeShape};
use crate::scheme::WINDOW_ACCESSES_MAX;
use crate::stash::TreeTopKind;

/// Parameters of one tree. The papers' names are in parentheses.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TreeConfig {
    /// Number of blocks (N), from 1 to [`CAPACITY_MAX`](crate::CAPACITY_MAX).
    pub capacity: u64,
    /// Bytes of a block (B/8), from [`BLOCK_BYTES_MIN`](crate::BLOCK_BYTES_MIN) to
    /// [`BLOCK_BYTES_MAX`](crate::BLOCK_BYTES_MAX), or 0. With 0, buckets hold addresses and leaves
    /// but no data, which is enough for simulations.
    pub block_bytes: usize,
    /// Levels and slots (L and Z).
    pub geometry: Geometry,
    /// The stash bound (C): maximum number of blocks in the stash when a burst of accesses begins.
    /// RAW ORAM allows one more for each access since its last eviction.
    pub stash_blocks_max: usize,
    /// Number of accesses in a burst, which may begin after one check of the stash bound. The stash
    /// has room for the blocks that these accesses can leave beyond the bound. At least
    /// [`WINDOW_ACCESSES_MAX`].
    pub burst_accesses_max: usize,
    /// Number of levels that the client keeps, from the root on; may be 0.
    pub tree_top_levels: u8,
    /// The organization of the tree top on the client.
    pub tree_top: TreeTopKind,
    /// The tree of the store that holds the buckets.
    pub tree: TreeId,
}

/// Maximum stash bound, in blocks.
const STASH_BLOCKS_MAX: usize = 1 << 24;

/// Maximum number of accesses in a burst.
const BURST_ACCESSES_MAX: usize = 1 << 24;

/// Maximum number of levels of the tree top. `k` levels have `2^k - 1` buckets.
pub const TREE_TOP_LEVELS_MAX: u8 = 16;

/// Maximum number of accesses between evictions of RAW ORAM.
pub const EVICT_PERIOD_MAX: u32 = 1 << 16;

impl TreeConfig {
    /// Path ORAM as in Tiny ORAM: Z = 4 and C = 78, with at most one block per leaf.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if no tree fits `capacity`, or blocks cannot have this size.
    pub fn path(capacity: u64, block_bytes: usize) -> Result<Self, Error> {
        let geometry = Geometry::uniform(leaf_level_for(capacity, (1, 1))?, 4)?;
        let config = Self::new(capacity, block_bytes, geometry, 78);
        // Report impossible parameters now.
        config.format()?;
        Ok(config)
    }

    /// A tree of any geometry, wholly in storage. Does not check the parameters; [`Self::shape`]
    /// does.
    pub fn new(
        capacity: u64,
        block_bytes: usize,
        geometry: Geometry,
        stash_blocks_max: usize,
    ) -> Self {
        Self {
            capacity,
            block_bytes,
            geometry,
            stash_blocks_max,
            burst_accesses_max: WINDOW_ACCESSES_MAX,
            tree_top_levels: 0,
            tree_top: TreeTopKind::Dedicated,
            tree: TreeId(0),
        }
    }

    /// The shape that the tree must have in the store.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters contradict each other.
    pub fn shape(&self) -> Result<TreeShape, Error> {
        Ok(self.format()?.shape())
    }

    pub(crate) fn format(&self) -> Result<BucketFormat, Error> {
        if !(1..=STASH_BLOCKS_MAX).contains(&self.stash_blocks_max) {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "the stash bound must be 1 to {STASH_BLOCKS_MAX} blocks, not {}",
                    self.stash_blocks_max
                ),
            ));
        }
        if !(WINDOW_ACCESSES_MAX..=BURST_ACCESSES_MAX).contains(&self.burst_accesses_max) {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "a burst must be {WINDOW_ACCESSES_MAX} to {BURST_ACCESSES_MAX} accesses, \
                     not {}",
                    self.burst_accesses_max
                ),
            ));
        }
        if self.tree_top_levels > self.geometry.leaf_level().min(TREE_TOP_LEVELS_MAX) {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "the client cannot keep {} of {} levels: it can keep at most \
                     {TREE_TOP_LEVELS_MAX}, and at least one must stay in storage",
                    self.tree_top_levels,
                    self.geometry.levels()
                ),
            ));
        }
        self.tree_top.check()?;
        BucketFormat::new(self.geometry.clone(), self.capacity, self.block_bytes)
    }
}

impl TreeConfig {
    /// The same configuration with another [`capacity`](Self::capacity).
    #[must_use]
    pub fn with_capacity(self, capacity: u64) -> Self {
        Self { capacity, ..self }
    }

    /// The same configuration with other [`block_bytes`](Self::block_bytes).
    #[must_use]
    pub fn with_block_bytes(self, block_bytes: usize) -> Self {
        Self { block_bytes, ..self }
    }

    /// The same configuration with another [`geometry`](Self::geometry).
    #[must_use]
    pub fn with_geometry(self, geometry: Geometry) -> Self {
        Self { geometry, ..self }
    }

    /// The same configuration with another [`stash_blocks_max`](Self::stash_blocks_max).
    #[must_use]
    pub fn with_stash_blocks_max(self, stash_blocks_max: usize) -> Self {
        Self { stash_blocks_max, ..self }
    }

    /// The same configuration with another [`burst_accesses_max`](Self::burst_accesses_max).
    #[must_use]
    pub fn with_burst_accesses_max(self, burst_accesses_max: usize) -> Self {
        Self { burst_accesses_max, ..self }
    }

    /// The same configuration with other [`tree_top_levels`](Self::tree_top_levels).
    #[must_use]
    pub fn with_tree_top_levels(self, tree_top_levels: u8) -> Self {
        Self { tree_top_levels, ..self }
    }

    /// The same configuration with another [`tree_top`](Self::tree_top).
    #[must_use]
    pub fn with_tree_top(self, tree_top: TreeTopKind) -> Self {
        Self { tree_top, ..self }
    }

    /// The same configuration with another [`tree`](Self::tree).
    #[must_use]
    pub fn with_tree(self, tree: TreeId) -> Self {
        Self { tree, ..self }
    }
}

/// Parameters of RAW ORAM.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RawConfig {
    /// The tree.
    pub tree: TreeConfig,
    /// Number of access-only accesses before each eviction-only access (A).
    pub evict_period: u32,
}

impl RawConfig {
    /// Z5A5 of Tiny ORAM: Z = 5, A = 5 and C = 64.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if no tree fits `capacity`, or blocks cannot have this size.
    pub fn new(capacity: u64, block_bytes: usize) -> Result<Self, Error> {
        Self::with_z_a(capacity, block_bytes, 5, 5, 64)
    }

    /// RAW ORAM on `tree`, with an eviction after each `evict_period` accesses (A). The caller must
    /// know that the stash stays bounded with these parameters.
    pub fn of_tree(tree: TreeConfig, evict_period: u32) -> Self {
        Self { tree, evict_period }
    }

    /// A configuration with any Z and A, in a tree with at most `A / 2` blocks per leaf. For this
    /// load, Ring ORAM's analysis, which Tiny ORAM builds on, bounds the stash. The caller must
    /// know that the analysis holds for this Z and A.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if no tree fits `capacity`, or another parameter is out of
    /// range; `evict_period` must be 1 to [`EVICT_PERIOD_MAX`].
    pub fn with_z_a(
        capacity: u64,
        block_bytes: usize,
        z: u16,
        evict_period: u32,
        stash_blocks_max: usize,
    ) -> Result<Self, Error> {
        check_evict_period(evict_period)?;
        let leaf_level = leaf_level_for(capacity, (u64::from(evict_period), 2))?;
        let geometry = Geometry::uniform(leaf_level, z)?;
        let tree = TreeConfig::new(capacity, block_bytes, geometry, stash_blocks_max);
        tree.format()?;
        Ok(Self { tree, evict_period })
    }

    /// Maximum number of blocks in the tree top, except with negligible probability. The bounds on
    /// client memory and on saved states follow from this number. The tree top itself has room for
    /// a block in every slot.
    ///
    /// With `Z >= A`, a bucket holds `A / 2` blocks on average. All blocks that an eviction leaves
    /// in it can move down with the next eviction that passes, which goes to the other child (the
    /// analysis of Ring ORAM, which Tiny ORAM builds on). Blocks that find no room in a lower
    /// bucket stay above: with Z from 4 on, measurements showed up to 1 % more blocks, and 2 % are
    /// added. The total over all buckets varies less than a Poisson-distributed number of the same
    /// mean, so six standard deviations of that distribution are added. If any level has `Z < A` or
    /// `Z < 4`, or there are more than `A / 2` blocks per leaf, all slots are counted.
    pub fn tree_top_blocks_max(&self) -> u64 {
        let TreeConfig { geometry, tree_top_levels, .. } = &self.tree;
        let slots = |level: u8| geometry.slots(usize::from(level)) as u64;
        let room: u64 = (0..*tree_top_levels).map(|level| slots(level) << level).sum();
        let period = u64::from(self.evict_period);
        let is_tight = (0..=geometry.leaf_level()).any(|level| slots(level) < period.max(4));
        let is_overfull = self.tree.capacity > geometry.leaves() * period / 2;
        if is_tight || is_overfull {
            return room;
        }
        let mean = ((1u64 << tree_top_levels) - 1) * period / 2;
        room.min(mean + mean / 50 + 6 * mean.isqrt())
    }
}

impl RawConfig {
    /// The same configuration with another [`tree`](Self::tree).
    #[must_use]
    pub fn with_tree(self, tree: TreeConfig) -> Self {
        Self { tree, ..self }
    }

    /// The same configuration with another [`evict_period`](Self::evict_period).
    #[must_use]
    pub fn with_evict_period(self, evict_period: u32) -> Self {
        Self { evict_period, ..self }
    }
}

/// Checks an eviction period: there must be at least one access between evictions, and the period
/// must be bounded, because the stash needs a bound.
pub(crate) fn check_evict_period(evict_period: u32) -> Result<(), Error> {
    if (1..=EVICT_PERIOD_MAX).contains(&evict_period) {
        Ok(())
    } else {
        Err(Error::new(
            ErrorKind::InvalidConfig,
            format!("evictions must be 1 to {EVICT_PERIOD_MAX} accesses apart, not {evict_period}"),
        ))
    }
}
