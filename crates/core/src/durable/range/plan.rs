//! Chooses parameters of a range ORAM that meet requirements, and computes their costs.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::params::{RANGE_BYTES_MAX, RangeParams, whole_range_blocks};
use super::{NAME, impossible};
use crate::durable::{ArrayRequirements, Cost, DurableConfig, RangePolicy, Slots};
use crate::error::Error;
use crate::pieces::{TreeId, TreeShape};
use crate::scheme::{RawConfig, RotatingTrees};

/// Slots of a bucket (Z = 5). With the period A = 5, this is Tiny ORAM's Z5A5. Trees have at most
/// `A / 2` blocks per leaf.
const SLOTS: u16 = 5;
const EVICT_PERIOD: u32 = 5;
const STASH_BLOCKS_MAX: u32 = 64;

/// Default size of the longest ranges, in bytes.
const LARGEST_CLASS_BYTES: u64 = 1 << 20;

/// Difference between consecutive default classes of the policy `Exact`.
const CLASSES_BETWEEN: usize = 3;

/// Maximum number of levels on the client that a plan chooses. More levels would make checkpoints
/// larger, because these save the blocks that wait for eviction.
const TREE_TOP_LEVELS_PLANNED: u8 = 12;

/// Chooses parameters that meet the requirements.
pub(super) fn fulfil(requirements: &ArrayRequirements) -> Result<RangeParams, Error> {
    if requirements.tree_top_ways.is_some_and(|ways| ways > 0) {
        return Err(impossible(format!(
            "the scheme `{NAME}` has no ways of a tree top: leave them out or choose another scheme"
        )));
    }
    if let Some(setting) = requirements.server_settings().first() {
        return Err(impossible(format!(
            "the scheme `{NAME}` has no {setting}: leave them out or choose another scheme"
        )));
    }
    let slots = match &requirements.slots {
        None => SLOTS,
        Some(Slots::Same(slots)) => *slots,
        Some(Slots::PerLevel(_)) => {
            return Err(impossible(format!(
                "the scheme `{NAME}` has the same number of slots on every level: leave the \
                 profile out or choose another scheme"
            )));
        }
    };
    let classes = classes(requirements)?;
    let policy = policy(requirements)?;
    let evict_period = requirements.evict_period.unwrap_or(EVICT_PERIOD);
    let stash_blocks_max = requirements.stash_blocks_max.unwrap_or(STASH_BLOCKS_MAX);
    // If all accesses are to whole ranges, the disk is rounded up to whole ranges. It is not
    // rounded up if it is smaller than one range; `check` refuses that.
    let whole = whole_range_blocks(policy, &classes).min(requirements.blocks()).max(1);
    let blocks = requirements.blocks().checked_next_multiple_of(whole).unwrap_or(u64::MAX);
    let raw = RawConfig::with_z_a(
        blocks,
        requirements.block_bytes as usize,
        slots,
        evict_period,
        stash_blocks_max as usize,
    )?;
    let leaf_level = raw.tree.geometry.leaf_level();
    let with_levels = |tree_top_levels| RangeParams {
        blocks,
        block_bytes: requirements.block_bytes,
        leaf_level,
        tree_top_levels,
        slots,
        evict_period,
        stash_blocks_max,
        classes: classes.clone(),
        policy,
    };
    let block_bytes = u64::from(requirements.block_bytes);
    let levels_max = leaf_level.min(TREE_TOP_LEVELS_PLANNED);
    let sound: Vec<_> =
        (0..=levels_max).map(with_levels).filter(|params| params.check().is_ok()).collect();
    let Some(least) = sound.first() else {
        // Says why not even the maximum number of levels suffices.
        with_levels(levels_max).check()?;
        return Err(impossible("no trees meet these requirements"));
    };
    let waiting_bytes_max = requirements.tree_top_bytes_max.unwrap_or(u64::MAX);
    let costs = sound.iter().map(|params| Ok((params, cost(params)?)));
    let costs = costs.collect::<Result<Vec<_>, Error>>()?;
    let fits = |(params, cost): &&(&RangeParams, Cost)| {
        cost.client_bytes() <= requirements.client_bytes_max
            && (params.waiting_blocks_max() * block_bytes <= waiting_bytes_max
                || params.tree_top_levels == least.tree_top_levels)
    };
    // With more levels on the client, accesses move fewer bytes.
    costs.iter().rfind(fits).map(|(params, _)| (*params).clone()).ok_or_else(|| {
        let least = costs.iter().map(|(_, cost)| cost.client_bytes()).min().unwrap_or(0);
        impossible(format!(
            "the client needs at least {least} bytes of memory: allow more client memory, or \
             choose smaller ranges, smaller blocks or a smaller disk"
        ))
    })
}

/// The classes of ranges. Default: single blocks and one long class; the exact policy adds classes
/// between them.
fn classes(requirements: &ArrayRequirements) -> Result<Vec<u8>, Error> {
    let block_bytes = u64::from(requirements.block_bytes.max(1));
    let Some(sizes) = &requirements.range_bytes else {
        let largest = (LARGEST_CLASS_BYTES / block_bytes).min(requirements.blocks());
        let largest = largest.checked_ilog2().unwrap_or(0) as u8;
        let mut classes = match policy(requirements)? {
            RangePolicy::Classes => vec![0, largest],
            RangePolicy::Exact => (0..largest).step_by(CLASSES_BETWEEN).chain([largest]).collect(),
            RangePolicy::Fixed(class) => vec![0, class],
        };
        classes.dedup();
        return Ok(classes);
    };
    sizes.iter().map(|bytes| class(requirements, *bytes)).collect()
}

/// The policy of the requirements, with sizes of ranges converted to classes.
fn policy(requirements: &ArrayRequirements) -> Result<RangePolicy, Error> {
    Ok(match requirements.range_policy {
        None | Some(RangePolicy::Classes) => RangePolicy::Classes,
        Some(RangePolicy::Exact) => RangePolicy::Exact,
        Some(RangePolicy::Fixed(bytes)) => RangePolicy::Fixed(class(requirements, bytes)?),
    })
}

/// The class of ranges of `bytes` bytes.
fn class(requirements: &ArrayRequirements, bytes: u64) -> Result<u8, Error> {
    let block_bytes = u64::from(requirements.block_bytes.max(1));
    let blocks = bytes / block_bytes;
    let is_class = bytes.is_multiple_of(block_bytes) && blocks.is_power_of_two();
    if is_class && bytes <= RANGE_BYTES_MAX.max(block_bytes) {
        return Ok(blocks.ilog2() as u8);
    }
    Err(impossible(format!(
        "ranges have 1, 2, 4, 8 and so on blocks of {block_bytes} bytes, up to {} MiB, and not \
         {bytes} bytes",
        RANGE_BYTES_MAX >> 20
    )))
}

/// Average costs of an access to a range of one class.
pub(super) struct RangeCost {
    pub(super) read_bytes: f64,
    pub(super) written_bytes: f64,
    pub(super) trips: f64,
}

/// The average costs of an access to a range of class `class`: `ReadRange` in its tree, and its
/// share of `BatchEvict` in every tree.
pub(super) fn range_cost(params: &RangeParams, class: u8) -> Result<RangeCost, Error> {
    let blocks = 1u64 << class;
    let shapes = params.tree(RotatingTrees::from(TreeId(0)))?.rotating_shapes()?;
    // The root of the shape is not a bucket of the ORAM.
    let levels = shapes.iter().flat_map(|shape| shape.levels().iter().skip(1).zip(0..));
    let run_bytes = levels
        .filter(|(level, _)| level.buckets > 0)
        .map(|(level, j): (_, u32)| level.bucket_bytes * blocks.min(1 << j))
        .sum::<u64>() as f64;
    let path_bytes = shapes.iter().map(TreeShape::path_bytes).sum::<u64>() as f64;
    let trees = params.classes.len() as f64;
    let evictions = blocks as f64 / f64::from(params.evict_period);
    // A single path is read in one trip, a longer range in one trip per level. A batch of evictions
    // is one trip to read and one to write.
    let trips = match class {
        0 => 1,
        _ => params.leaf_level + 1 - params.tree_top_levels,
    };
    Ok(RangeCost {
        read_bytes: run_bytes + evictions * trees * path_bytes,
        written_bytes: evictions * trees * path_bytes,
        trips: f64::from(trips) + 2.0 * trees * evictions.min(1.0),
    })
}

/// The costs of an array. An access is to one block, unless the policy is `Fixed`.
pub(super) fn cost(params: &RangeParams) -> Result<Cost, Error> {
    let class = match params.policy {
        RangePolicy::Fixed(class) => class,
        RangePolicy::Classes | RangePolicy::Exact => 0,
    };
    let RangeCost { read_bytes, written_bytes, trips } = range_cost(params, class)?;
    let tree_bytes: u128 = params.shapes()?.iter().map(TreeShape::tree_bytes).sum();
    let entry_bytes = if params.leaf_level <= 32 { 4 } else { 8 };
    let entries: u64 = params.classes.iter().map(|class| params.entries(*class)).sum();
    Ok(Cost {
        tree_bytes: tree_bytes.try_into().unwrap_or(u64::MAX),
        blocks_per_access: 1 << class,
        read_bytes_per_access: read_bytes,
        written_bytes_per_access: written_bytes,
        trips_per_access: trips,
        position_map_depth: 0,
        position_map_bytes: entries * entry_bytes + params.blocks.div_ceil(8),
        blocks_on_client_bytes: (params.client_blocks_max() + params.blocks_in_batch_max())
            * u64::from(params.block_bytes),
        accesses_per_checkpoint: params.waiting_blocks_max() >> class,
    })
}
