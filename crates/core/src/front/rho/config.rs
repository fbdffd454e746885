//! The parameters of ρ.

use alloc::format;

use crate::error::{Error, ErrorKind};
use crate::geometry::{Geometry, leaf_level_for};
use crate::pieces::TreeId;
use crate::scheme::TreeConfig;

/// Default number of entries per set of the array of tags.
const WAYS: usize = 8;

/// Maximum number of accesses to the small tree in a round.
const SMALL_PER_MAIN_MAX: usize = 64;

/// Parameters of the small tree that ρ adds to a main ORAM.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RhoConfig {
    /// The small tree. Its position map on the client, the *array* of tags, has an entry for each
    /// address of the tree. The block size must equal the main ORAM's.
    pub small: TreeConfig,
    /// Number of entries in a set of the array of tags: a divisor of the small tree's capacity.
    pub ways: usize,
    /// Accesses to the small tree before each access to the main tree: 1 to 64.
    pub small_per_main: usize,
    /// Whether a batch ends with a complete round. If not, the round continues with the next batch
    /// or with [dummies](crate::Front::dummy). Callers that make accesses at a fixed rate set this
    /// to `false`.
    pub ends_rounds: bool,
}

impl RhoConfig {
    /// The parameters of IR-ORAM, section V: Z = 2, a stash of 200 blocks, two small accesses for
    /// each main access, and up to six levels nearest the root on the client. The tree has at most
    /// one block per leaf. `blocks` is rounded up to whole sets of 8.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if no tree fits `blocks`. Does not check the block size.
    pub fn new(blocks: u64, block_bytes: usize) -> Result<Self, Error> {
        let blocks = blocks.max(1).checked_next_multiple_of(WAYS as u64).unwrap_or(u64::MAX);
        let leaf_level = leaf_level_for(blocks, (1, 1))?;
        let geometry = Geometry::uniform(leaf_level, 2)?;
        let small = TreeConfig {
            tree: TreeId(1),
            tree_top_levels: leaf_level.min(6),
            ..TreeConfig::new(blocks, block_bytes, geometry, 200)
        };
        Ok(Self::of_tree(small, WAYS, 2))
    }

    /// Parameters with a given small tree, number of entries per set of the array, and number of
    /// small accesses per main access.
    pub fn of_tree(small: TreeConfig, ways: usize, small_per_main: usize) -> Self {
        Self { small, ways, small_per_main, ends_rounds: true }
    }

    /// Checks that `small_per_main` is from 1 to [`SMALL_PER_MAIN_MAX`].
    pub(super) fn check_pattern(&self) -> Result<(), Error> {
        if (1..=SMALL_PER_MAIN_MAX).contains(&self.small_per_main) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidConfig,
            format!(
                "a round has 1 to {SMALL_PER_MAIN_MAX} accesses to the small tree, not {}",
                self.small_per_main
            ),
        ))
    }
}

impl RhoConfig {
    /// The same parameters with another [`small`](Self::small).
    #[must_use]
    pub fn with_small(self, small: TreeConfig) -> Self {
        Self { small, ..self }
    }

    /// The same parameters with another [`ways`](Self::ways).
    #[must_use]
    pub fn with_ways(self, ways: usize) -> Self {
        Self { ways, ..self }
    }

    /// The same parameters with another [`small_per_main`](Self::small_per_main).
    #[must_use]
    pub fn with_small_per_main(self, small_per_main: usize) -> Self {
        Self { small_per_main, ..self }
    }

    /// The same parameters with another [`ends_rounds`](Self::ends_rounds).
    #[must_use]
    pub fn with_ends_rounds(self, ends_rounds: bool) -> Self {
        Self { ends_rounds, ..self }
    }
}
