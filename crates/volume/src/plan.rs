//! The parameters of a volume, and what they cost, before anything is created.

use oblivio_core::store::TreeShape;
use oblivio_core::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, RawConfig, Recursion};

use crate::error::{VolumeError, VolumeErrorKind};
use crate::superblock::{MapRecursion, SchemeId, Slots, VolumeParams};
use crate::volume::config;

pub use crate::state::room::StateRoom;

/// What is wished of a new volume.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Bytes of the disk; rounded up to whole blocks.
    pub bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Slots of a bucket (Z). If they are told for each level, there are as many levels.
    pub slots: Slots,
    /// Accesses between evictions (A).
    pub evict_period: u32,
    /// Blocks that may be left in the stash (C).
    pub stash_blocks_max: u32,
    /// Bytes of buckets that the client keeps itself, at most.
    pub tree_top_bytes_max: u64,
    /// Ways of the sets in which blocks of those buckets are found by their address (IR-Stash); 0 if
    /// they are not.
    pub tree_top_ways: u16,
    /// Bytes of client memory for tree top, stash and position map together. A position map that does
    /// not fit lies in the tree; where that is not enough, the client keeps fewer levels.
    pub client_bytes_max: u64,
}

impl Wish {
    /// A disk of so many bytes, with Z5A5 of Tiny ORAM on blocks of 4 KiB, and a client that with its
    /// cache stays below 64 MiB. The data of large requests come on top while they are under way.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            block_bytes: 4096,
            slots: Slots::Same(5),
            evict_period: 5,
            stash_blocks_max: 64,
            tree_top_bytes_max: 32 << 20,
            tree_top_ways: 0,
            client_bytes_max: 40 << 20,
        }
    }
}

/// What a volume costs. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Bytes in storage, when all buckets have been written.
    pub tree_bytes: u64,
    /// Bytes that an access reads, on average: its path, and its share of an eviction.
    pub read_bytes_per_access: f64,
    /// Bytes that an access writes, on average: its share of an eviction.
    pub written_bytes_per_access: f64,
    /// Trips to storage an access, on average.
    pub trips_per_access: f64,
    /// Levels of the position map that lie in the tree. A request for a block whose positions are not
    /// on the client makes as many accesses more.
    pub position_map_depth: usize,
    /// Bytes of client memory for the position map, blocks of it and notes on taken slots included.
    pub position_map_bytes: u64,
    /// Bytes of client memory for tree top and stash.
    pub blocks_on_client_bytes: u64,
    /// Accesses between checkpoints, at most.
    pub accesses_per_checkpoint: u64,
}

impl Cost {
    /// Bytes of client memory, without the disk's cache.
    pub fn client_bytes(&self) -> u64 {
        self.position_map_bytes + self.blocks_on_client_bytes
    }
}

impl VolumeParams {
    /// The parameters that fulfil a wish.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidConfig`] when there is no such volume, or none in so little client memory.
    pub fn plan(wish: &Wish) -> Result<Self, VolumeError> {
        if wish.bytes == 0 {
            return Err(invalid("a volume has at least one byte"));
        }
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&(wish.block_bytes as usize)) {
            return Err(invalid(format!(
                "a block has {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX} bytes: choose another size"
            )));
        }
        let blocks = wish.bytes.div_ceil(u64::from(wish.block_bytes));
        let mut flat = Self::with_map(wish, blocks, None, TREE_TOP_LEVELS_MAX)?;
        let mut least = u64::MAX;
        loop {
            // Of a small volume with large blocks, the map is smaller than what goes with a recursion. Of
            // one with the smallest blocks, there may be no recursion at all.
            let nested = flat.with_map_in_tree(wish, blocks);
            for params in [Ok(&flat), nested.as_ref()].into_iter().flatten() {
                let client_bytes = params.cost()?.client_bytes();
                if client_bytes <= wish.client_bytes_max {
                    return Ok(params.clone());
                }
                least = least.min(client_bytes);
            }
            let fewer_levels = flat.tree_top_levels.checked_sub(1);
            match fewer_levels.map(|levels| Self::with_map(wish, blocks, None, levels)) {
                Some(Ok(smaller)) => flat = smaller,
                // A tree top in sets has one level at least.
                Some(Err(_)) | None => break,
            }
        }
        Err(invalid(format!(
            "such a volume takes {least} bytes of client memory at least: allow as many, or choose \
             smaller blocks or a smaller disk"
        )))
    }

    /// The same with as much of the position map in the tree as does not fit on the client.
    fn with_map_in_tree(&self, wish: &Wish, blocks: u64) -> Result<Self, VolumeError> {
        let plb_blocks = (PLB_BYTES / wish.block_bytes).clamp(PLB_BLOCKS_MIN, PLB_BLOCKS_MAX);
        let plb_bytes = u64::from(plb_blocks) * u64::from(wish.block_bytes);
        let others = self.cost()?.blocks_on_client_bytes + plb_bytes + marks_bytes(self)?;
        let room = wish.client_bytes_max.saturating_sub(others);
        let client_entries_max = (room / WIDEST_ENTRY_BYTES).max(CLIENT_ENTRIES_MIN);
        let recursion = MapRecursion { client_entries_max, plb_blocks };
        Self::with_map(wish, blocks, Some(recursion), self.tree_top_levels)
    }

    fn with_map(
        wish: &Wish,
        blocks: u64,
        recursion: Option<MapRecursion>,
        tree_top_levels_max: u8,
    ) -> Result<Self, VolumeError> {
        let block_bytes = wish.block_bytes as usize;
        let tree_blocks = match recursion {
            None => blocks,
            Some(MapRecursion { client_entries_max, plb_blocks }) => {
                let plb_blocks = plb_blocks as usize;
                // As if the tree were as deep as can be: a little too much where it is not.
                Recursion { data_blocks: blocks, client_entries_max, plb_blocks }
                    .tree_blocks(block_bytes, DEEPEST)?
            }
        };
        let (leaf_level, bucket_slots_max) = match &wish.slots {
            Slots::PerLevel(slots) => {
                let levels =
                    u8::try_from(slots.len()).ok().and_then(|levels| levels.checked_sub(1));
                let leaf_level = levels.ok_or_else(|| invalid("a tree has 1 to 41 levels"))?;
                (leaf_level, slots.iter().copied().max().unwrap_or(0))
            }
            Slots::Same(slots) => {
                let stash = wish.stash_blocks_max as usize;
                let raw = RawConfig::with_z_a(
                    tree_blocks,
                    block_bytes,
                    *slots,
                    wish.evict_period,
                    stash,
                )?;
                (raw.tree.geometry.leaf_level(), *slots)
            }
        };
        let bucket_bytes = u64::from(bucket_slots_max) * u64::from(wish.block_bytes);
        let fits = |levels: &u8| ((1u64 << levels) - 1) * bucket_bytes <= wish.tree_top_bytes_max;
        let tree_top_levels = (0..=leaf_level.min(tree_top_levels_max)).rfind(fits).unwrap_or(0);
        let params = Self {
            blocks,
            block_bytes: wish.block_bytes,
            scheme: SchemeId::Rotating,
            leaf_level,
            slots: wish.slots.clone(),
            evict_period: wish.evict_period,
            stash_blocks_max: wish.stash_blocks_max,
            tree_top_levels,
            tree_top_ways: wish.tree_top_ways,
            recursion,
        };
        config(&params)?.shapes()?;
        Ok(params)
    }

    /// What a volume of these parameters costs.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidConfig`] when there is no such volume.
    pub fn cost(&self) -> Result<Cost, VolumeError> {
        let config = config(self)?;
        let shapes = config.shapes()?;
        let tree = &config.raw.tree;
        let sweeps = config.raw.swept_bytes_per_eviction(config.recursion.is_some());
        let path_bytes = (shapes.slots.path_bytes() + shapes.heads.path_bytes()) as f64;
        let period = f64::from(self.evict_period);
        let entry_bytes = if self.leaf_level + 2 <= 32 { 4 } else { 8 };
        let all_bytes: u128 = shapes.into_trees().iter().map(TreeShape::tree_bytes).sum();
        let mut position_map_bytes = config.client_entries()? * entry_bytes;
        let mut position_map_depth = 0;
        if let (Some(recursion), Some(core)) = (self.recursion, config.recursion) {
            position_map_depth = core.depth(tree.block_bytes, self.leaf_level)?;
            position_map_bytes += u64::from(recursion.plb_blocks) * u64::from(self.block_bytes);
            position_map_bytes += marks_bytes(self)?;
        }
        Ok(Cost {
            tree_bytes: all_bytes.try_into().unwrap_or(u64::MAX),
            read_bytes_per_access: path_bytes * (1.0 + 1.0 / period) + sweeps / period,
            written_bytes_per_access: (path_bytes + sweeps) / period,
            trips_per_access: 1.0 + 2.0 / period,
            position_map_depth,
            position_map_bytes,
            blocks_on_client_bytes: in_tree_top_and_stash(self)? * u64::from(self.block_bytes),
            accesses_per_checkpoint: config.raw.spare_evictions() * u64::from(self.evict_period),
        })
    }
}

/// Blocks that a client has at most, those of the position map among them.
pub(crate) fn blocks_on_client(params: &VolumeParams) -> Result<u64, VolumeError> {
    let of_map = params.recursion.map_or(0, |recursion| recursion.plb_blocks);
    Ok(in_tree_top_and_stash(params)? + u64::from(of_map))
}

fn in_tree_top_and_stash(params: &VolumeParams) -> Result<u64, VolumeError> {
    let geometry = config(params)?.raw.tree.geometry;
    let in_top: u64 = (0..params.tree_top_levels)
        .map(|level| (geometry.slots(usize::from(level)) as u64) << level)
        .sum();
    Ok(in_top + u64::from(params.stash_blocks_max) + geometry.path_slots() as u64)
}

/// The most memory that a client takes for notes on taken slots.
fn marks_bytes(params: &VolumeParams) -> Result<u64, VolumeError> {
    Ok(config(params)?.raw.marked_slots_max() * MARK_BYTES)
}

fn invalid(message: impl Into<String>) -> VolumeError {
    VolumeError::new(VolumeErrorKind::InvalidConfig, message)
}

/// The most levels that a client keeps: beyond it, a checkpoint would keep too much at once.
const TREE_TOP_LEVELS_MAX: u8 = 12;

/// The leaf level of the deepest trees.
const DEEPEST: u8 = 40;

/// Blocks of the position map on the client, in bytes, where that is a sensible number of them.
const PLB_BYTES: u32 = 4 << 20;
const PLB_BLOCKS_MIN: u32 = 16;
const PLB_BLOCKS_MAX: u32 = 4096;

/// Bytes of an entry of the position map in the deepest trees.
const WIDEST_ENTRY_BYTES: u64 = 8;

/// So few entries are not worth a level of recursion.
const CLIENT_ENTRIES_MIN: u64 = 1 << 13;

/// Bytes of client memory that a note on a taken slot takes, with its share of the ordered set.
const MARK_BYTES: u64 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gibibyte_is_planned_as_tiny_oram_would() {
        let params = VolumeParams::plan(&Wish::new(1 << 30)).unwrap();
        assert_eq!((params.blocks, params.leaf_level, params.tree_top_levels), (1 << 18, 17, 10));
        let cost = params.cost().unwrap();
        // Eight levels in storage, five slots of a block, and a head.
        let path = 8.0 * (5.0 * 4096.0 + 5.0 * 6.0 + 56.0);
        assert!((cost.written_bytes_per_access - path / 5.0).abs() < 100.0, "{cost:?}");
        assert!((cost.read_bytes_per_access - path * 1.2).abs() < 500.0, "{cost:?}");
        assert_eq!((cost.position_map_bytes, cost.accesses_per_checkpoint), (1 << 20, 5120));
    }

    #[test]
    fn every_size_has_a_plan_and_impossible_ones_do_not() {
        for bytes in [1, 4096, 4097, 1 << 20, (1 << 40) + 1, 1 << 50] {
            let params = VolumeParams::plan(&Wish::new(bytes)).unwrap();
            assert!(params.blocks * 4096 >= bytes && params.cost().unwrap().tree_bytes >= bytes);
        }
        for wish in [
            Wish::new(0),
            Wish::new(u64::MAX),
            Wish { block_bytes: 0, ..Wish::new(1) },
            Wish { block_bytes: 15, ..Wish::new(1) },
            Wish { block_bytes: (1 << 20) + 1, ..Wish::new(1) },
            Wish { client_bytes_max: 0, ..Wish::new(1) },
            // It takes a little more client memory than a client has unless it is told.
            Wish::new(1 << 51),
            Wish { evict_period: 0, ..Wish::new(1) },
            Wish { slots: Slots::Same(0), ..Wish::new(1) },
        ] {
            let error = VolumeParams::plan(&wish).unwrap_err();
            assert_eq!(error.kind(), VolumeErrorKind::InvalidConfig, "{wish:?}");
        }
        let roomy = Wish { client_bytes_max: 64 << 20, ..Wish::new(1 << 51) };
        assert!(VolumeParams::plan(&roomy).is_ok());
    }
}
