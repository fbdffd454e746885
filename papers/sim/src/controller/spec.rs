//! The parameters of the ORAM in a processor.

use oblivio_core::front::recursion::FreecursiveConfig;
use oblivio_core::store::TreeId;
use oblivio_core::{Geometry, HitPolicy, RecursiveConfig, RhoConfig, TreeConfig, TreeTopKind};
use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::{LINE_BYTES, SimError};

/// The scheme of the main tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Scheme {
    /// Path ORAM.
    Path,
    /// RAW ORAM with its eviction period.
    Raw {
        /// Accesses per eviction (A).
        evict_period: u32,
    },
}

/// The time at which a block gets a new leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remap {
    /// At each access of the block. The block stays in the ORAM while the LLC has a copy.
    AtAccess,
    /// When the LLC evicts the block (LLC-D). While the LLC holds the block, it is not in the ORAM.
    Delayed,
}

/// The ORAM's contents before the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Initial {
    /// No blocks. The first request for a block creates it. So a short trace uses little of the
    /// tree, and buckets never run short of slots. No paper reports such measurements.
    Empty,
    /// All blocks, each placed directly in the deepest free slot of its path. Compared with a tree
    /// in use, buckets are fuller near the leaves and emptier near the root. RAW ORAM and plain
    /// recursion write their blocks in order instead.
    Placed,
    /// All blocks, after one access to each data block in random order (IR-ORAM, section III-B).
    EachOnce,
    /// All blocks placed directly, and then this number of random requests per thousand data
    /// blocks. After some tens of requests per thousand blocks, the levels that IR-Alloc shrinks
    /// have reached their final load. This costs a fraction of [`Self::EachOnce`].
    Aged(u32),
}

/// The location of the position map, apart from its last level, which is on the chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PositionMap {
    /// In the tree of the data, behind a PLB, a cache of position-map blocks (Freecursive ORAM).
    #[default]
    InTree,
    /// Each level in a tree of its own, with at most as many blocks per leaf as the tree of the
    /// data: plain recursion (Tiny ORAM, section II-B). A request takes a path of each tree. There
    /// is no PLB.
    OwnTrees,
}

/// The parameters of ρ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RhoSpec {
    /// Blocks of the small tree, and tags of its tag array.
    pub blocks: u64,
    /// Accesses to the small tree per access to the main tree.
    pub small_per_main: usize,
    /// The treatment of a block's old copy in the main tree, when the LLC evicts the block to the
    /// small tree.
    #[serde(default)]
    pub old_copy: OldCopyPolicy,
}

/// The treatment of a block's old copy in the main tree, when the block moves to the small tree of
/// ρ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OldCopyPolicy {
    /// Timed paths remove the old copy.
    #[default]
    TakenOut,
    /// The old copy stays in the main tree. This is not an ORAM, since the old copy would be read
    /// again. The simulator instead removes the copy with untimed, invisible paths. These paths
    /// free some space in the stashes, and fetch the block's position into the PLB. So the result
    /// approximates this rule, and is neither an upper nor a lower bound.
    LeftBehind,
}

/// An ORAM in a processor. [`Self::paper`] has the parameters of IR-ORAM, Table I.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OramSpec {
    /// Number of data blocks.
    pub data_blocks: u64,
    /// Lines of 64 bytes per block, both of data and of the position map. The LLC requests one
    /// line, and a path moves all lines of its blocks.
    #[serde(default = "one_line", skip_serializing_if = "is_one_line")]
    pub block_lines: u64,
    /// Slots of the buckets on each level, from the root to the leaves.
    pub slots: Vec<u16>,
    /// The scheme of the main tree.
    pub scheme: Scheme,
    /// Levels on the client.
    pub tree_top_levels: u8,
    /// Associativity, if the client keeps the tree top in sets (S-Stash of IR-Stash); `None` for a
    /// dedicated cache.
    pub tree_top_ways: Option<u16>,
    /// Stash bound in blocks. Above it, the controller makes background evictions.
    pub stash_blocks_max: usize,
    /// Blocks of the PLB.
    pub plb_blocks: usize,
    /// Associativity of the PLB.
    pub plb_ways: usize,
    /// Positions per position-map block (X).
    pub fan_out: u64,
    /// The maximum number of positions kept on the client.
    pub client_entries_max: u64,
    /// The location of the positions that are not on the client.
    #[serde(default)]
    pub position_map: PositionMap,
    /// The time at which blocks get new leaves.
    pub remap: Remap,
    /// The parameters of ρ's small tree. `None` without ρ.
    pub rho: Option<RhoSpec>,
    /// The contents of the ORAM before the first request.
    pub initial: Initial,
}

fn one_line() -> u64 {
    1
}

/// Whether blocks have one line, the default. Files omit the default, so that they stay the same as
/// before this field existed.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_one_line(lines: &u64) -> bool {
    *lines == one_line()
}

impl OramSpec {
    /// Baseline of IR-ORAM: Freecursive over Path ORAM with Z = 4 and ten levels in a dedicated
    /// cache. The stash has 200 blocks, of which 100 are reserved for a path, and the PLB has 64
    /// KiB. The paper has `leaf_level` 24. Half of the slots hold data. Smaller trees get smaller
    /// tree tops and PLBs, and fewer positions on the client.
    pub fn paper(leaf_level: u8) -> Self {
        let smaller = 24u8.saturating_sub(leaf_level);
        Self {
            data_blocks: 4 << leaf_level,
            block_lines: one_line(),
            slots: vec![4; usize::from(leaf_level) + 1],
            scheme: Scheme::Path,
            tree_top_levels: 10u8.saturating_sub(smaller),
            tree_top_ways: None,
            stash_blocks_max: 100,
            plb_blocks: (1024 >> smaller).max(16),
            plb_ways: 1,
            fan_out: 16,
            client_entries_max: ((1 << 18) >> smaller).max(16),
            position_map: PositionMap::InTree,
            remap: Remap::AtAccess,
            rho: None,
            initial: Initial::Placed,
        }
    }

    /// Level of the leaves.
    pub fn leaf_level(&self) -> u8 {
        self.slots.len().saturating_sub(1) as u8
    }

    /// Bits of the pointer table for a tree top in sets (TT; IR-ORAM, section IV-C, Fig. 8). It has
    /// one pointer per slot, to an entry or to none. `None` if the tree top is in a dedicated
    /// cache.
    pub fn tree_top_pointer_bits(&self) -> Option<u64> {
        let levels = (0..).zip(&self.slots).take(self.tree_top_levels.into());
        let slots: u64 = levels.map(|(level, slots)| u64::from(*slots) << level).sum();
        let bits = u64::from(u64::BITS - slots.leading_zeros());
        self.tree_top_ways.map(|_| slots * bits)
    }

    /// Lines of the protected memory.
    pub fn lines(&self) -> u64 {
        self.data_blocks.saturating_mul(self.block_lines)
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(&self) -> usize {
        (LINE_BYTES * self.block_lines) as usize
    }

    /// Number of requests that [`Initial::Aged`] makes.
    pub(crate) fn aging_requests(&self, per_thousand_blocks: u32) -> u64 {
        let requests = u128::from(self.data_blocks) * u128::from(per_thousand_blocks) / 1000;
        u64::try_from(requests).unwrap_or(u64::MAX)
    }

    /// Returns all data blocks, in the random order of [`Initial::EachOnce`]. Fails if there are
    /// 2^32 blocks or more.
    pub(crate) fn shuffled_blocks<R: Rng>(
        &self,
        coins: &mut R,
    ) -> Result<impl Iterator<Item = u64> + use<R>, SimError> {
        let Ok(blocks) = u32::try_from(self.data_blocks) else {
            let message = "cannot access more than 2^32 data blocks once each: place them instead";
            return Err(SimError::Spec(message.to_owned()));
        };
        let mut blocks: Vec<_> = (0..blocks).collect();
        blocks.shuffle(coins);
        Ok(blocks.into_iter().map(u64::from))
    }

    /// Lines of a bucket's slots in memory, by tree and level. Levels on the client have 0.
    pub(crate) fn slot_lines_in_memory(&self) -> Result<Vec<Vec<u64>>, SimError> {
        let trees = match self.position_map {
            PositionMap::InTree => {
                let small = self.rho.as_ref().map(|rho| self.rho(rho)).transpose()?;
                [self.tree()?].into_iter().chain(small.map(|rho| rho.small)).collect()
            }
            PositionMap::OwnTrees => self.recursive_trees()?,
        };
        let in_memory = |tree: TreeConfig| {
            let slots = |level| match level < usize::from(tree.tree_top_levels) {
                true => 0,
                false => tree.geometry.slots(level) as u64 * self.block_lines,
            };
            (0..tree.geometry.levels()).map(slots).collect()
        };
        Ok(trees.into_iter().map(in_memory).collect())
    }

    pub(crate) fn frontend(&self) -> Result<FreecursiveConfig, SimError> {
        let block_bytes = self.block_bytes();
        let defaults = FreecursiveConfig::new(self.data_blocks, block_bytes)?;
        // The counters are as wide as fits next to the group counter of 64 bits, up to 24 bits.
        // Group overflows are not studied here.
        let bits = (8 * block_bytes as u64).saturating_sub(64);
        let counter_bits = (bits / self.fan_out.max(1)).clamp(1, 24) as u32;
        Ok(defaults
            .with_fan_out(self.fan_out)
            .with_counter_bits(counter_bits)
            .with_client_entries_max(self.client_entries_max)
            .with_plb_blocks(self.plb_blocks)
            .with_plb_ways(self.plb_ways)
            .with_hits(HitPolicy::Serve))
    }

    /// The configuration of the main tree, which holds tags.
    pub(crate) fn tree(&self) -> Result<TreeConfig, SimError> {
        let frontend = self.frontend()?;
        let geometry = Geometry::profile(&self.slots)?;
        let ways = self.tree_top_ways;
        Ok(TreeConfig::new(frontend.tree_capacity()?, 0, geometry, self.stash_blocks_max)
            .with_burst_accesses_max(frontend.burst_accesses_max()?)
            .with_tree_top_levels(self.tree_top_levels)
            .with_tree_top(
                ways.map_or(TreeTopKind::Dedicated, |ways| TreeTopKind::SetAssociative { ways }),
            ))
    }

    /// The parameters of plain recursion.
    ///
    /// # Errors
    /// [`SimError::Spec`] for options that plain recursion does not support.
    pub(super) fn recursion(&self) -> Result<RecursiveConfig, SimError> {
        let block_bytes = LINE_BYTES as usize;
        let (capacity, client_entries_max) = (self.data_blocks, self.client_entries_max);
        let config = RecursiveConfig { capacity, block_bytes, client_entries_max };
        let refuse = |message: &str| Err(SimError::Spec(message.to_owned()));
        if self.scheme != Scheme::Path || self.rho.is_some() || self.tree_top_ways.is_some() {
            return refuse(
                "position_map = \"own-trees\" (plain recursion) needs Path ORAM without rho, and \
                 without tree_top_ways, since blocks cannot be found by address",
            );
        }
        if self.fan_out != config.fan_out() {
            return refuse(
                "position_map = \"own-trees\" has 16 labels per block: set fan_out to 16",
            );
        }
        Ok(config)
    }

    /// The trees of plain recursion, which hold tags. The first is the tree of the data. Each other
    /// tree has at most as many blocks per leaf, and all of its buckets have as many slots as a
    /// leaf bucket of the data tree.
    pub(super) fn recursive_trees(&self) -> Result<Vec<TreeConfig>, SimError> {
        let slots = self.slots.last().copied().unwrap_or(0);
        let leaves = 1 << self.leaf_level();
        let trees = (0..).zip(self.recursion()?.blocks()?).map(|(number, blocks)| {
            let slots = match number {
                0 => self.slots.clone(),
                _ => {
                    let leaf_level = (blocks * leaves).div_ceil(self.data_blocks.max(1));
                    vec![slots; leaf_level.next_power_of_two().ilog2() as usize + 1]
                }
            };
            let tree_top_levels = if number == 0 { self.tree_top_levels } else { 0 };
            let geometry = Geometry::profile(&slots)?;
            let tree = TreeConfig::new(blocks, 0, geometry, self.stash_blocks_max);
            Ok(tree.with_tree(TreeId(number)).with_tree_top_levels(tree_top_levels))
        });
        trees.collect()
    }

    pub(super) fn rho(&self, rho: &RhoSpec) -> Result<RhoConfig, SimError> {
        let config = RhoConfig::new(rho.blocks, LINE_BYTES as usize)?;
        // The pace decides how a round continues.
        let ends_rounds = false;
        Ok(config.with_small_per_main(rho.small_per_main).with_ends_rounds(ends_rounds))
    }
}
