//! The parameters of a volume, and what they cost, before anything is created.

use crate::error::{VolumeError, VolumeErrorKind};
use crate::superblock::{SchemeId, VolumeParams};
use crate::volume::config;

/// What is wished of a new volume.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Bytes of the disk; rounded up to whole blocks.
    pub bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Slots of a bucket (Z).
    pub slots: u16,
    /// Accesses between evictions (A).
    pub evict_period: u32,
    /// Blocks that may be left in the stash (C).
    pub stash_blocks_max: u32,
    /// Bytes of buckets that the client keeps itself, at most.
    pub tree_top_bytes_max: u64,
}

impl Wish {
    /// A disk of so many bytes, with Z5A5 of Tiny ORAM on blocks of 4 KiB.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            block_bytes: 4096,
            slots: 5,
            evict_period: 5,
            stash_blocks_max: 64,
            tree_top_bytes_max: 8 << 20,
        }
    }
}

/// What a volume costs. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Bytes of buckets in storage, when all of them have been written.
    pub tree_bytes: u64,
    /// Bytes that an access reads, on average: its path, and its share of an eviction.
    pub read_bytes_per_access: f64,
    /// Bytes that an access writes, on average: its share of an eviction.
    pub written_bytes_per_access: f64,
    /// Trips to storage an access, on average.
    pub trips_per_access: f64,
    /// Bytes of client memory for the position map.
    pub position_map_bytes: u64,
    /// Bytes of client memory for tree top and stash.
    pub blocks_on_client_bytes: u64,
    /// Accesses between checkpoints, at most.
    pub accesses_per_checkpoint: u64,
}

impl VolumeParams {
    /// The parameters that fulfil a wish.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidConfig`] when there is no such volume.
    pub fn plan(wish: &Wish) -> Result<Self, VolumeError> {
        let invalid = |message: &str| VolumeError::new(VolumeErrorKind::InvalidConfig, message);
        if wish.bytes == 0 || wish.block_bytes == 0 {
            return Err(invalid("a volume has at least one block of at least one byte"));
        }
        let blocks = wish.bytes.div_ceil(u64::from(wish.block_bytes));
        let raw = oblivio_core::RawConfig::with_z_a(
            blocks,
            wish.block_bytes as usize,
            wish.slots,
            wish.evict_period,
            wish.stash_blocks_max as usize,
        )?;
        let leaf_level = raw.tree.geometry.leaf_level();
        let bucket_bytes = u64::from(wish.slots) * u64::from(wish.block_bytes);
        let fits = |levels: &u8| ((1u64 << levels) - 1) * bucket_bytes <= wish.tree_top_bytes_max;
        let tree_top_levels = (0..=leaf_level.min(TREE_TOP_LEVELS_MAX)).rfind(fits).unwrap_or(0);
        let params = Self {
            blocks,
            block_bytes: wish.block_bytes,
            scheme: SchemeId::Rotating,
            leaf_level,
            slots: wish.slots,
            evict_period: wish.evict_period,
            stash_blocks_max: wish.stash_blocks_max,
            tree_top_levels,
        };
        config(&params)?.rotating_shape()?;
        Ok(params)
    }

    /// What a volume of these parameters costs.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidConfig`] when there is no such volume.
    pub fn cost(&self) -> Result<Cost, VolumeError> {
        let config = config(self)?;
        let shape = config.rotating_shape()?;
        let path_bytes = shape.path_bytes() as f64;
        let period = f64::from(self.evict_period);
        let in_top: u64 = ((1u64 << self.tree_top_levels) - 1) * u64::from(self.slots);
        let in_stash = u64::from(self.stash_blocks_max) + config.tree.geometry.path_slots() as u64;
        let entry_bytes = if self.leaf_level + 2 <= 32 { 4 } else { 8 };
        let tree_bytes = shape.tree_bytes().try_into().unwrap_or(u64::MAX);
        Ok(Cost {
            tree_bytes,
            read_bytes_per_access: path_bytes * (1.0 + 1.0 / period),
            written_bytes_per_access: path_bytes / period,
            trips_per_access: 1.0 + 2.0 / period,
            position_map_bytes: self.blocks * entry_bytes,
            blocks_on_client_bytes: (in_top + in_stash) * u64::from(self.block_bytes),
            accesses_per_checkpoint: config.spare_evictions() * u64::from(self.evict_period),
        })
    }
}

/// The most levels that a client keeps: beyond it, a checkpoint would keep too much at once.
const TREE_TOP_LEVELS_MAX: u8 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gibibyte_is_planned_as_tiny_oram_would() {
        let params = VolumeParams::plan(&Wish::new(1 << 30)).unwrap();
        assert_eq!((params.blocks, params.leaf_level, params.tree_top_levels), (1 << 18, 17, 8));
        let cost = params.cost().unwrap();
        // Ten levels in storage, five slots of a block and a tag, and a header.
        let path = 10.0 * (5.0 * 4112.0 + 5.0 * 6.0 + 16.0);
        assert!((cost.written_bytes_per_access - path / 5.0).abs() < 100.0, "{cost:?}");
        assert!((cost.read_bytes_per_access - path * 1.2).abs() < 500.0, "{cost:?}");
        assert_eq!((cost.position_map_bytes, cost.accesses_per_checkpoint), (1 << 20, 1280));
    }

    #[test]
    fn every_size_has_a_plan_and_impossible_ones_do_not() {
        for bytes in [1, 4096, 4097, 1 << 20, (1 << 40) + 1, 1 << 51] {
            let params = VolumeParams::plan(&Wish::new(bytes)).unwrap();
            assert!(params.blocks * 4096 >= bytes && params.cost().unwrap().tree_bytes >= bytes);
        }
        for wish in [
            Wish::new(0),
            Wish::new(u64::MAX),
            Wish { block_bytes: 0, ..Wish::new(1) },
            Wish { evict_period: 0, ..Wish::new(1) },
            Wish { slots: 0, ..Wish::new(1) },
        ] {
            let error = VolumeParams::plan(&wish).unwrap_err();
            assert_eq!(error.kind(), VolumeErrorKind::InvalidConfig, "{wish:?}");
        }
    }
}
