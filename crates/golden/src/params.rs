//! Parameters of a controller.

use oblivio_core::{Geometry, Key, RawConfig, TreeConfig};

use crate::{Problem, misuse};

/// Number of bits of the widest bus.
pub const BUS_BITS_MAX: u32 = 1024;

/// Number of bytes of the largest block.
pub const BLOCK_BYTES_MAX: usize = 4096;

/// The leaf level of the deepest tree that a controller can have.
pub const LEAF_LEVEL_MAX: u8 = 40;

/// The scheme that the controller runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemeKind {
    /// Path ORAM, in the module `path_backend`.
    Path,
    /// RAW ORAM, in the module `raw_backend`.
    Raw,
}

/// Parameters of a controller, and the seed of all randomness in a run. The RTL's parameter names
/// are in parentheses.
#[derive(Clone, Debug)]
pub struct Params {
    /// The scheme that the controller runs.
    pub scheme: SchemeKind,
    /// Level of the leaves: L (`LeafLevel`).
    pub leaf_level: u8,
    /// Slots per bucket: Z (`BucketSlots`).
    pub slots: u16,
    /// Maximum number of blocks in the stash: C (`StashBlocksMax`).
    pub stash_blocks_max: usize,
    /// Eviction period of RAW ORAM: A. The controller receives it at its start port. Path ORAM
    /// ignores it.
    pub evict_period: u32,
    /// Number of blocks: N (`Capacity`).
    pub capacity: u64,
    /// Bytes per block (`BlockBytes`).
    pub block_bytes: usize,
    /// Bits per beat (`BusBits`).
    pub bus_bits: u32,
    /// Levels per subtree in the memory layout (`SubtreeLevels`).
    pub subtree_levels: u8,
    /// Seed of the tree's key, of commands, of first leaves and of the entropy port.
    pub seed: u64,
}

impl Params {
    /// Number of bytes of a beat.
    pub fn beat_bytes(&self) -> usize {
        self.bus_bits as usize / 8
    }

    /// Number of beats of a block.
    pub fn block_beats(&self) -> usize {
        self.block_bytes / self.beat_bytes()
    }

    /// The configuration of the tree, if a controller can have these parameters.
    pub(crate) fn tree_config(&self) -> Result<TreeConfig, Problem> {
        let Self { leaf_level, slots, capacity, block_bytes, bus_bits, subtree_levels, .. } = self;
        if ![512, BUS_BITS_MAX].contains(bus_bits) {
            return Err(misuse(format!(
                "a bus must have 512 or {BUS_BITS_MAX} bits, not {bus_bits}"
            )));
        }
        if *leaf_level > LEAF_LEVEL_MAX {
            return Err(misuse(format!("leaf level {leaf_level} exceeds {LEAF_LEVEL_MAX}")));
        }
        if !(1..=16).contains(subtree_levels) {
            return Err(misuse(format!(
                "a subtree must have 1 to 16 levels, not {subtree_levels}"
            )));
        }
        let is_whole = block_bytes % self.beat_bytes() == 0;
        if !(self.beat_bytes()..=BLOCK_BYTES_MAX).contains(block_bytes) || !is_whole {
            let beat = self.beat_bytes();
            return Err(misuse(format!(
                "a block of {block_bytes} bytes is not a multiple of the beat's {beat} bytes, or \
                 exceeds {BLOCK_BYTES_MAX} bytes"
            )));
        }
        let geometry = Geometry::uniform(*leaf_level, *slots).map_err(misuse)?;
        let tree = TreeConfig::new(*capacity, *block_bytes, geometry, self.stash_blocks_max);
        let tables_bytes = tree.shape().map_err(misuse)?.levels()[0].slots_offset;
        if tables_bytes > self.beat_bytes() as u64 {
            return Err(misuse(format!(
                "counter and tables of a bucket take {tables_bytes} bytes, a beat has {}",
                self.beat_bytes()
            )));
        }
        Ok(tree)
    }

    /// Returns the RAW ORAM configuration for `tree`.
    pub(crate) fn raw_config(&self, tree: TreeConfig) -> RawConfig {
        RawConfig::of_tree(tree, self.evict_period)
    }
}

/// The key of the tree. Byte 0 comes first at the controller's start port.
pub(crate) type TreeKey = [u8; 16];

/// Creates a sealer with this key.
pub(crate) fn sealer(key: &TreeKey) -> oblivio_core::Sealer {
    oblivio_core::Sealer::aes128_of_tree_key(Key::from_bytes(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_cannot_be_built_are_named() {
        let good = Params {
            scheme: SchemeKind::Path,
            leaf_level: 4,
            slots: 4,
            stash_blocks_max: 10,
            evict_period: 5,
            capacity: 60,
            block_bytes: 64,
            bus_bits: 512,
            subtree_levels: 4,
            seed: 1,
        };
        assert!(good.tree_config().is_ok());
        type Change = fn(&mut Params);
        let bad: [(&str, Change); 9] = [
            ("bus", |it| it.bus_bits = 256),
            ("leaf level", |it| it.leaf_level = 41),
            ("subtree", |it| it.subtree_levels = 0),
            ("multiple", |it| it.block_bytes = 96),
            ("multiple", |it| it.bus_bits = 1024),
            ("multiple", |it| it.block_bytes = 8192),
            ("slots", |it| it.slots = 0),
            ("stash", |it| it.stash_blocks_max = 0),
            ("tables", |it| it.slots = 49),
        ];
        for (word, change) in bad {
            let mut params = good.clone();
            change(&mut params);
            let problem = params.tree_config().unwrap_err();
            assert!(problem.to_string().contains(word), "{problem}");
        }
    }
}
