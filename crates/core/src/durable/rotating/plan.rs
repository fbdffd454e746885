//! Chooses parameters of a durable RAW ORAM that meet requirements, and computes their costs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::params::{MapRecursion, RawParams};
use crate::durable::{ArrayRequirements, Cost, DurableConfig, Slots};
use crate::error::{Error, ErrorKind};
use crate::pieces::TreeShape;
use crate::posmap::Recursion;
use crate::scheme::RawConfig;

/// The default slots of a bucket. With the constants below, this is Z5A5 of Tiny ORAM, with its
/// bound on the stash.
const SLOTS: Slots = Slots::Same(5);
const EVICT_PERIOD: u32 = 5;
const STASH_BLOCKS_MAX: u32 = 64;

/// Default bound on the bytes of blocks in the tree top. For a small disk, the bound is half of the
/// disk's size.
const TREE_TOP_BYTES_MAX: u64 = 48 << 20;

/// The requirements on the tree, with defaults for settings that are `None`.
struct Tree {
    blocks: u64,
    block_bytes: u32,
    slots: Slots,
    evict_period: u32,
    stash_blocks_max: u32,
    tree_top_bytes_max: u64,
    tree_top_ways: u16,
}

/// Chooses parameters that meet the requirements.
///
/// # Errors
/// [`ErrorKind::InvalidConfig`] if there are none, or none within the client memory.
pub(super) fn fulfil(requirements: &ArrayRequirements) -> Result<RawParams, Error> {
    if requirements.range_bytes.is_some() || requirements.range_policy.is_some() {
        return Err(invalid(
            "the scheme `raw` has no ranges: leave them out or choose the scheme `range`",
        ));
    }
    if let Some(setting) = requirements.server_settings().first() {
        return Err(invalid(format!(
            "the scheme `raw` has no {setting}: leave them out or choose another scheme"
        )));
    }
    let tree = Tree {
        blocks: requirements.blocks(),
        block_bytes: requirements.block_bytes,
        slots: requirements.slots.clone().unwrap_or(SLOTS),
        evict_period: requirements.evict_period.unwrap_or(EVICT_PERIOD),
        stash_blocks_max: requirements.stash_blocks_max.unwrap_or(STASH_BLOCKS_MAX),
        tree_top_bytes_max: requirements
            .tree_top_bytes_max
            .unwrap_or(TREE_TOP_BYTES_MAX.min(requirements.bytes / 2)),
        tree_top_ways: requirements.tree_top_ways.unwrap_or(0),
    };
    let candidates = tree.candidates(requirements.client_bytes_max)?;
    let with_cost = candidates.into_iter().map(|params| Ok((cost(&params)?, params)));
    let with_cost = with_cost.collect::<Result<Vec<_>, Error>>()?;
    let least = with_cost.iter().map(|(cost, _)| cost.client_bytes()).min().unwrap_or(u64::MAX);
    let fits = |(cost, _): &(Cost, RawParams)| cost.client_bytes() <= requirements.client_bytes_max;
    let best = with_cost
        .into_iter()
        .filter(fits)
        .min_by(|(one, _), (other, _)| bytes_per_request(one).total_cmp(&bytes_per_request(other)));
    best.map(|(_, params)| params).ok_or_else(|| {
        invalid(format!(
            "the client needs at least {least} bytes of memory: allow more client memory, or \
             choose smaller blocks or a smaller disk"
        ))
    })
}

impl Tree {
    /// Candidates: tree tops from the largest down to none, or down to one level for a tree top in
    /// sets. Each tree top occurs first with the whole position map on the client, then, if
    /// possible, with only the part that fits on the client, and the rest in the tree.
    fn candidates(&self, client_bytes_max: u64) -> Result<Vec<RawParams>, Error> {
        let mut flat = self.with_map(None, TREE_TOP_LEVELS_MAX)?;
        let mut candidates = Vec::new();
        loop {
            let fewer_levels = flat.tree_top_levels.checked_sub(1);
            // With the smallest blocks, a recursion may be impossible. In a small array with large
            // blocks, a recursion takes more memory than the flat map.
            let nested = self.with_map_in_tree(&flat, client_bytes_max).ok();
            candidates.extend([Some(flat), nested].into_iter().flatten());
            match fewer_levels.map(|levels| self.with_map(None, levels)) {
                Some(Ok(smaller)) => flat = smaller,
                // A tree top in sets has at least one level.
                Some(Err(_)) | None => return Ok(candidates),
            }
        }
    }

    /// The parameters `flat`, but with a position map in the tree: only the part that fits stays on
    /// the client.
    fn with_map_in_tree(
        &self,
        flat: &RawParams,
        client_bytes_max: u64,
    ) -> Result<RawParams, Error> {
        let plb_blocks = (PLB_BYTES / self.block_bytes).clamp(PLB_BLOCKS_MIN, PLB_BLOCKS_MAX);
        let plb_bytes = u64::from(plb_blocks) * u64::from(self.block_bytes);
        let others = cost(flat)?.blocks_on_client_bytes + plb_bytes + marks_bytes(flat)?;
        let room = client_bytes_max.saturating_sub(others);
        let client_entries_max = (room / WIDEST_ENTRY_BYTES).max(CLIENT_ENTRIES_MIN);
        let recursion = MapRecursion { client_entries_max, plb_blocks };
        self.with_map(Some(recursion), flat.tree_top_levels)
    }

    fn with_map(
        &self,
        recursion: Option<MapRecursion>,
        tree_top_levels_max: u8,
    ) -> Result<RawParams, Error> {
        let block_bytes = self.block_bytes as usize;
        let tree_blocks = match recursion {
            None => self.blocks,
            Some(MapRecursion { client_entries_max, plb_blocks }) => {
                let plb_blocks = plb_blocks as usize;
                // Assumes the deepest tree; slightly too much for other trees.
                Recursion { data_blocks: self.blocks, client_entries_max, plb_blocks }
                    .tree_blocks(block_bytes, DEEPEST)?
            }
        };
        let leaf_level = match &self.slots {
            Slots::PerLevel(slots) => {
                let levels =
                    u8::try_from(slots.len()).ok().and_then(|levels| levels.checked_sub(1));
                levels.ok_or_else(|| invalid("a tree must have 1 to 41 levels"))?
            }
            Slots::Same(slots) => {
                let stash = self.stash_blocks_max as usize;
                let raw = RawConfig::with_z_a(
                    tree_blocks,
                    block_bytes,
                    *slots,
                    self.evict_period,
                    stash,
                )?;
                raw.tree.geometry.leaf_level()
            }
        };
        let with_levels = |tree_top_levels| RawParams {
            blocks: self.blocks,
            block_bytes: self.block_bytes,
            leaf_level,
            slots: self.slots.clone(),
            evict_period: self.evict_period,
            stash_blocks_max: self.stash_blocks_max,
            tree_top_levels,
            tree_top_ways: self.tree_top_ways,
            recursion,
        };
        let fits = |params: &RawParams| {
            let blocks =
                params.anywhere().map_or(u64::MAX, |config| config.raw.tree_top_blocks_max());
            blocks.saturating_mul(self.block_bytes.into()) <= self.tree_top_bytes_max
        };
        let levels = (0..=leaf_level.min(tree_top_levels_max)).rev();
        let params = levels.map(with_levels).find(fits).unwrap_or_else(|| with_levels(0));
        params.shapes()?;
        Ok(params)
    }
}

/// The costs of an array.
pub(super) fn cost(params: &RawParams) -> Result<Cost, Error> {
    let config = params.anywhere()?;
    let shapes = config.shapes()?;
    let tree = &config.raw.tree;
    let sweeps = config.raw.swept_bytes_per_eviction(config.recursion.is_some());
    let path_bytes = (shapes.slots.path_bytes() + shapes.heads.path_bytes()) as f64;
    let period = f64::from(params.evict_period);
    let entry_bytes = if params.leaf_level + 2 <= 32 { 4 } else { 8 };
    let all_bytes: u128 = shapes.into_trees().iter().map(TreeShape::tree_bytes).sum();
    let mut position_map_bytes = config.client_entries()? * entry_bytes;
    let mut position_map_depth = 0;
    if let (Some(recursion), Some(core)) = (params.recursion, config.recursion) {
        position_map_depth = core.depth(tree.block_bytes, params.leaf_level)?;
        position_map_bytes += u64::from(recursion.plb_blocks) * u64::from(params.block_bytes);
        position_map_bytes += marks_bytes(params)?;
    }
    Ok(Cost {
        tree_bytes: all_bytes.try_into().unwrap_or(u64::MAX),
        blocks_per_access: 1,
        read_bytes_per_access: path_bytes * (1.0 + 1.0 / period) + sweeps / period,
        written_bytes_per_access: (path_bytes + sweeps) / period,
        trips_per_access: 1.0 + 2.0 / period,
        position_map_depth,
        position_map_bytes,
        blocks_on_client_bytes: config.tree_top_and_stash_blocks_max()
            * u64::from(params.block_bytes),
        accesses_per_checkpoint: config.raw.spare_evictions() * u64::from(params.evict_period),
    })
}

/// Average bytes that a request reads and writes if the block's positions are not on the client.
fn bytes_per_request(cost: &Cost) -> f64 {
    let accesses = (1 + cost.position_map_depth) as f64;
    accesses * (cost.read_bytes_per_access + cost.written_bytes_per_access)
}

/// Maximum client memory for marks of taken slots, in bytes.
fn marks_bytes(params: &RawParams) -> Result<u64, Error> {
    Ok(params.anywhere()?.raw.marked_slots_max() * MARK_BYTES)
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConfig, message.into())
}

/// Maximum number of tree levels on the client. With more levels, a checkpoint would save too many
/// blocks at once.
const TREE_TOP_LEVELS_MAX: u8 = 12;

/// The level of the leaves of the deepest trees.
const DEEPEST: u8 = 40;

/// Bytes of client memory for position-map blocks. Their number also stays between the two bounds
/// below.
const PLB_BYTES: u32 = 4 << 20;
const PLB_BLOCKS_MIN: u32 = 16;
const PLB_BLOCKS_MAX: u32 = 4096;

/// Bytes of an entry of the position map in the deepest trees.
const WIDEST_ENTRY_BYTES: u64 = 8;

/// Minimum number of entries in client memory: fewer do not justify another level of recursion.
const CLIENT_ENTRIES_MIN: u64 = 1 << 13;

/// Bytes of client memory per mark of a taken slot, including overhead of the ordered set.
const MARK_BYTES: u64 = 24;
