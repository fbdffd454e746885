//! The shapes of the trees: the data tree, the tree of its position map, the tree of that tree's
//! map, and so on, until the client can keep the last map.

use super::map_block::{MapFormat, number_bytes};
use super::metadata::MetadataFormat;
use crate::client::ClientError;
use crate::field::Field;
use crate::tree::{Preset, Tree};

/// How the position map is divided into blocks, and how much of it the client keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapShape {
    /// The maximum number of bytes of a map block.
    pub block_bytes: usize,
    /// The maximum number of entries of the last map, which the client keeps in memory.
    pub client_entries_max: u64,
}

impl Default for MapShape {
    /// The default shape. With [`Preset::LARGE`], the map of several hundred thousand blocks takes
    /// one tree. Shorter map blocks would make the tree higher, and a query is already about as
    /// long as a map block.
    fn default() -> Self {
        Self { block_bytes: 1024, client_entries_max: 4096 }
    }
}

/// The trees, the data tree first: the paper's `S³ORAM_0` to `S³ORAM_X`. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    levels: Vec<Level>,
}

/// The bytes that seals add to blocks, map entries and metadata. All fields are 0 if blocks are not
/// sealed, as for a client that does not outlive its process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sealed {
    /// Bytes that a seal adds to a block.
    pub(crate) seal_bytes: usize,
    /// Bytes of the write number in a map entry.
    pub(crate) write_bytes: usize,
    /// The minimum number of bytes of a label in metadata; 0 if the label is the address.
    pub(crate) label_bytes: usize,
}

/// The shape of one tree and of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The shape of the tree.
    pub tree: Tree,
    /// The number of blocks in the tree.
    pub blocks: u64,
    /// The number of field elements of a block.
    pub block_elements: usize,
    /// The number of field elements of the metadata of a slot. Metadata comes before the block.
    pub metadata_elements: usize,
    /// The number of different labels, which is greater than every label.
    pub(crate) labels: u64,
    /// The format of the map blocks that hold the leaves of this tree's blocks. They are the blocks
    /// of the next tree, whose number is one higher. The client itself keeps the leaves of the last
    /// tree's blocks.
    pub(crate) map: MapFormat,
}

impl Level {
    fn new<F: Field>(
        blocks: u64,
        block_elements: usize,
        preset: Preset,
        shape: MapShape,
        sealed: Sealed,
    ) -> Result<Self, ClientError> {
        let tree = Tree::for_blocks(blocks, preset).map_err(|_| ClientError::NoSuchTree)?;
        let map = MapFormat::new(tree, sealed.write_bytes, shape.block_bytes);
        if map.entries() < 2 || usize::try_from(blocks).is_err() {
            return Err(ClientError::NoSuchTree);
        }
        let labels = match sealed.label_bytes {
            0 => blocks,
            bytes => (1 << (u8::BITS as usize * bytes.max(number_bytes(blocks)))) - 1,
        };
        let metadata_elements = MetadataFormat::<F>::new(tree, labels).elements();
        Ok(Self { tree, blocks, block_elements, metadata_elements, labels, map })
    }

    /// Bytes of a label in metadata.
    pub(crate) fn label_bytes(&self) -> usize {
        number_bytes(self.labels)
    }

    /// The number of field elements of a slot.
    pub fn slot_elements(&self) -> usize {
        self.metadata_elements + self.block_elements
    }
}

impl Levels {
    /// Computes the levels for `blocks` blocks.
    ///
    /// # Errors
    /// [`ClientError::NoSuchTree`] if there are no or too many blocks. Also if a map block would
    /// hold fewer than two entries, because the levels would then not end.
    pub fn new<F: Field>(
        blocks: u64,
        block_elements: usize,
        preset: Preset,
        shape: MapShape,
    ) -> Result<Self, ClientError> {
        Self::sealed::<F>(blocks, block_elements, preset, shape, Sealed::default())
    }

    /// Computes the levels as [`Self::new`] does, for sealed blocks.
    pub(crate) fn sealed<F: Field>(
        blocks: u64,
        block_elements: usize,
        preset: Preset,
        shape: MapShape,
        sealed: Sealed,
    ) -> Result<Self, ClientError> {
        if blocks == 0 {
            return Err(ClientError::NoSuchTree);
        }
        let mut last = Level::new::<F>(blocks, block_elements, preset, shape, sealed)?;
        let mut levels = vec![last];
        while last.blocks > shape.client_entries_max.max(1) {
            let blocks = last.blocks.div_ceil(last.map.entries() as u64);
            let block_elements = F::packed_elements(last.map.bytes() + sealed.seal_bytes);
            last = Level::new::<F>(blocks, block_elements, preset, shape, sealed)?;
            levels.push(last);
        }
        Ok(Self { levels })
    }

    /// The levels of all trees, the data tree first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Level> {
        self.levels.iter()
    }

    /// The number of trees, at least one.
    pub fn count(&self) -> usize {
        self.levels.len()
    }

    pub(crate) fn level(&self, number: usize) -> &Level {
        &self.levels[number]
    }

    /// The number of blocks of the last tree. The client keeps the leaves of these blocks.
    pub fn client_entries(&self) -> usize {
        self.levels.last().map_or(0, |last| last.blocks as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Gf256;

    fn blocks(blocks: u64, shape: MapShape) -> Vec<(u64, u8)> {
        let levels = Levels::new::<Gf256>(blocks, 128 << 10, Preset::LARGE, shape).unwrap();
        levels.iter().map(|level| (level.blocks, level.tree.height())).collect()
    }

    #[test]
    fn trees_get_smaller_until_the_client_keeps_the_rest() {
        let usual = MapShape::default();
        assert_eq!(blocks(4096, usual), [(4096, 5)]);
        assert_eq!(blocks(4097, usual), [(4097, 5), (5, 1)]);
        // 40 GiB in blocks of 128 KiB, and 16 TiB in blocks of 512 KiB.
        assert_eq!(blocks(327_680, usual), [(327_680, 11), (640, 2)]);
        assert_eq!(blocks(1 << 25, usual), [(1 << 25, 18), (98_401, 10), (193, 1)]);
        let narrow = MapShape { block_bytes: 4, client_entries_max: 1 };
        assert_eq!(blocks(9, narrow), [(9, 1), (3, 1), (1, 1)]);
    }

    #[test]
    fn maps_without_a_last_level_are_refused() {
        let new = |blocks, block_bytes| {
            let shape = MapShape { block_bytes, client_entries_max: 0 };
            Levels::new::<Gf256>(blocks, 7, Preset::LARGE, shape).map(|levels| levels.count())
        };
        assert_eq!(new(9, 2), Ok(5));
        for (blocks, block_bytes) in [(0, 64), (9, 1), (9, 0), (100_000, 3), (u64::MAX, 64)] {
            assert_eq!(new(blocks, block_bytes), Err(ClientError::NoSuchTree), "{blocks}");
        }
    }
}
