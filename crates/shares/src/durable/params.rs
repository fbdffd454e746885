//! The parameters of a volume's S³ORAM, and values derived from them.

use oblivio_core::durable::DurableConfig;
use oblivio_core::durable::section::Fields;
use oblivio_core::seal::BLOCK_SEAL_BYTES;
use oblivio_core::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, Error};

use super::client_map::ClientMap;
use super::share_tree::ShareTree;
use super::tree_map;
use super::{NAME, impossible};
use crate::client::Positions;
use crate::field::Gf256;
use crate::map_trees::{Levels, MapShape, Sealed};
use crate::message::{ServerKey, Setup, TREES_MAX, TreePoint};
use crate::sharing::Parties;
use crate::tree::{Preset, Tree};

/// The parameters of a volume's S³ORAM. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3OramParams {
    /// The number of blocks (N).
    pub(super) blocks: u64,
    /// Bytes of a block.
    pub(super) block_bytes: u32,
    /// The number of servers, and the number of servers that may collude.
    pub(super) parties: Parties,
    pub(super) preset: Preset,
    pub(super) tree: Tree,
    /// The position map in trees; `None` if the map is on the client.
    pub(super) map: Option<Map>,
}

/// The position map in smaller trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Map {
    pub(super) shape: MapShape,
    /// The trees of the data and of the map, the data tree first.
    levels: Levels,
}

/// The maximum number of blocks: a TiB in blocks of 4 KiB. A client with the whole map keeps twelve
/// or sixteen bytes for each block, and reads the whole map for every eviction.
const BLOCKS_MAX: u64 = 1 << 28;

/// Bytes of a write number in a map block. They suffice for all writes that a volume can ever make.
const WRITE_BYTES: usize = 6;

/// The minimum bytes of a label: FF1 needs a domain of at least a million numbers.
const LABEL_BYTES_MIN: usize = 3;

/// The base-2 logarithm of the maximum probability that an eviction overflows a bucket. An overflow
/// loses the array.
const OVERFLOW_LOG2_MAX: f64 = -40.0;

/// A client can make at least this number of accesses between checkpoints.
const ACCESSES_PER_CHECKPOINT_MIN: u64 = 256;
/// A client can make at least this number of evictions between checkpoints.
const EVICTIONS_PER_CHECKPOINT: u64 = 4;

impl S3OramParams {
    /// The parameters of an array with `blocks` blocks.
    ///
    /// # Errors
    /// [`InvalidConfig`](oblivio_core::ErrorKind::InvalidConfig) if such an array is not supported.
    pub fn new(
        blocks: u64,
        block_bytes: u32,
        parties: Parties,
        preset: Preset,
    ) -> Result<Self, Error> {
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&(block_bytes as usize)) {
            return Err(impossible(format!(
                "the block size must be {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX} bytes"
            )));
        }
        if !(1..=BLOCKS_MAX).contains(&blocks) {
            return Err(impossible(format!(
                "the scheme `{NAME}` holds 1 to {BLOCKS_MAX} blocks: choose larger blocks or \
                 another scheme"
            )));
        }
        let tree = Tree::for_blocks(blocks, preset).map_err(|it| impossible(it.to_string()))?;
        let overflow = preset.overflow_log2();
        if overflow > OVERFLOW_LOG2_MAX {
            return Err(impossible(format!(
                "with {} slots (Z) and {} accesses between evictions (A), one of 2^{:.0} evictions \
                 overflows a bucket, which loses the volume: choose more slots or evict more \
                 often, for at most one of 2^{:.0}",
                preset.slots, preset.accesses, -overflow, -OVERFLOW_LOG2_MAX
            )));
        }
        Ok(Self { blocks, block_bytes, parties, preset, tree, map: None })
    }

    /// Moves the position map of these parameters into trees.
    ///
    /// # Errors
    /// [`InvalidConfig`](oblivio_core::ErrorKind::InvalidConfig) if the volume allows missing
    /// servers, which could not catch up; or if the map needs no tree, or too many. Also if a map
    /// block would hold fewer than two entries.
    pub fn with_map_in_trees(self, shape: MapShape) -> Result<Self, Error> {
        let Self { blocks, parties, preset, .. } = self;
        if parties.servers() != parties.for_product() {
            let client_bytes = self.cost()?.client_bytes();
            return Err(impossible(format!(
                "with {} servers of which {} may collude, some may be missing, so the position \
                 map must be on the client, which takes {client_bytes} bytes: allow more client \
                 memory, or let more servers collude",
                parties.servers(),
                parties.colluding()
            )));
        }
        let (sealed, bytes) = (
            Sealed {
                seal_bytes: BLOCK_SEAL_BYTES,
                write_bytes: WRITE_BYTES,
                label_bytes: LABEL_BYTES_MIN,
            },
            BLOCK_SEAL_BYTES + self.block_bytes as usize,
        );
        let levels = Levels::sealed::<Gf256>(blocks, bytes, preset, shape, sealed);
        let levels = levels.map_err(|it| impossible(it.to_string()))?;
        if !(2..=usize::from(TREES_MAX)).contains(&levels.count()) {
            return Err(impossible("the position map would need no tree, or more than seven"));
        }
        Ok(Self { map: Some(Map { shape, levels }), ..self })
    }

    /// The shapes of the data tree and the map trees; `None` if the map is on the client.
    pub(super) fn levels(&self) -> Option<&Levels> {
        self.map.as_ref().map(|map| &map.levels)
    }

    /// Whether the position map is in trees on the servers.
    pub(super) fn is_in_trees(&self) -> bool {
        self.map.is_some()
    }

    /// The trees on the servers, the data tree first.
    pub(super) fn trees(&self) -> Vec<ShareTree> {
        let (parties, tree) = (self.parties, self.tree);
        let alone = ShareTree {
            number: 0,
            parties,
            tree,
            slot_bytes: BLOCK_SEAL_BYTES + self.block_bytes as usize,
            metadata_bytes: 0,
        };
        let Some(levels) = self.levels() else { return vec![alone] };
        let trees = (0..).zip(levels.iter()).map(|(number, level)| ShareTree {
            number,
            parties,
            tree: level.tree,
            slot_bytes: level.slot_elements(),
            metadata_bytes: level.metadata_elements,
        });
        trees.collect()
    }

    /// Decodes the parameters in a superblock.
    ///
    /// # Errors
    /// [`InvalidConfig`](oblivio_core::ErrorKind::InvalidConfig) if the parameters are invalid or
    /// not supported.
    pub fn decode(blocks: u64, block_bytes: u32, params: &[u8]) -> Result<Self, Error> {
        let other_length =
            |_| impossible(format!("the parameters of `{NAME}` have a wrong length"));
        let mut fields = Fields::new(params);
        let mut read = || {
            let [servers, colluding] = fields.array()?;
            let preset = Preset { slots: fields.u16()?, accesses: fields.u16()? };
            if fields.is_at_end() {
                return Ok((servers, colluding, preset, None));
            }
            let [block_bytes, client_entries_max] = [fields.u32()?, fields.u32()?];
            let block_bytes = block_bytes as usize;
            let shape = MapShape { block_bytes, client_entries_max: client_entries_max.into() };
            Ok::<_, Error>((servers, colluding, preset, Some(shape)))
        };
        let (servers, colluding, preset, shape) = read().map_err(other_length)?;
        fields.end().map_err(other_length)?;
        if shape.is_some_and(|it| it.block_bytes > BLOCK_BYTES_MAX) {
            return Err(impossible("a block of the position map is too long"));
        }
        let parties = Parties::new(servers, colluding).map_err(|it| impossible(it.to_string()))?;
        let params = Self::new(blocks, block_bytes, parties, preset)?;
        match shape {
            Some(shape) => params.with_map_in_trees(shape),
            None => Ok(params),
        }
    }

    /// The shape of the data tree.
    pub fn tree(&self) -> Tree {
        self.tree
    }

    /// The number of accesses between evictions (A).
    pub(super) fn evict_period(&self) -> u64 {
        self.tree.accesses() as u64
    }

    /// The number of accesses after which the servers reach point `at`.
    pub(super) fn accesses_at(&self, at: TreePoint) -> u64 {
        at.evictions * self.evict_period() + at.written as u64
    }

    /// The maximum number of accesses between checkpoints.
    pub(super) fn accesses_per_checkpoint(&self) -> u64 {
        ACCESSES_PER_CHECKPOINT_MIN.max(EVICTIONS_PER_CHECKPOINT * self.evict_period())
    }

    /// Bytes of a slot of the data tree: its metadata, if any, and a sealed block.
    pub(super) fn slot_bytes(&self) -> usize {
        self.trees().first().map_or(0, |data| data.slot_bytes)
    }

    /// The number of buckets in all trees.
    pub fn buckets(&self) -> u64 {
        self.trees().iter().map(ShareTree::buckets).sum()
    }

    /// Bytes of client memory for the part of the position map that the client keeps.
    pub(super) fn map_bytes(&self) -> u64 {
        match self.levels() {
            Some(levels) => tree_map::map_bytes(levels),
            None => {
                let entry_bytes = Positions::entry_bytes(self.tree) + ClientMap::NUMBER_BYTES;
                self.blocks * entry_bytes as u64
            }
        }
    }

    /// The setup of server `number` for each tree.
    pub(super) fn setup(&self, number: u8, keys: Vec<ServerKey>) -> Vec<Setup> {
        self.trees().iter().map(|tree| tree.setup(number, keys.clone())).collect()
    }
}

#[cfg(test)]
mod tests;
