//! The parameters of a trivial ORAM, which never change after its creation.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use rand_core::CryptoRng;

use super::access::ScanArray;
use super::state::{Head, ScanRestore, size};
use super::{NAME, impossible};
use crate::bucket::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN};
use crate::durable::{
    AnyStore, Cost, Durable, DurableConfig, Fact, FactValue, Restore, SparseAddressSet, StateSize,
};
use crate::error::Error;
use crate::geometry::BucketId;
use crate::pieces::{LevelShape, Part, Piece, TreeId, TreeShape};
use crate::seal::{Era, MasterKey, SEAL_BYTES};

/// The parameters of a trivial ORAM. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanParams {
    /// Number of blocks (N).
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Number of accesses that a saved state survives (W).
    pub spare: u64,
}

/// Maximum size of an array, in bytes. An access reads about twice as many bytes as the array has.
const BYTES_MAX: u64 = 16 << 20;

/// Minimum number of spare accesses that a plan chooses.
const SPARE_MIN: u64 = 64;
const SPARE_MAX: u64 = 1 << 20;

/// Maximum number of buckets that an access reads in one trip.
pub(super) const TRIP_BUCKETS: u64 = 64;

impl ScanParams {
    /// The parameters that a plan chooses for `blocks` blocks.
    pub(super) fn new(blocks: u64, block_bytes: u32) -> Self {
        Self { blocks, block_bytes, spare: blocks.clamp(SPARE_MIN, SPARE_MAX) }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let Self { blocks, block_bytes, spare } = *self;
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&(block_bytes as usize)) {
            return Err(impossible(format!(
                "a block must have {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX} bytes"
            )));
        }
        if !(1..=BYTES_MAX / u64::from(block_bytes)).contains(&blocks) {
            return Err(impossible(format!(
                "the scheme `{NAME}` reads everything at each access, so it holds 1 to {BYTES_MAX} \
                 bytes in whole blocks: choose a smaller disk, or choose another scheme"
            )));
        }
        if !(1..=SPARE_MAX).contains(&spare) {
            return Err(impossible("the number of spare accesses must be 1 to 2^20"));
        }
        Ok(())
    }

    /// Number of places for buckets on the ring.
    pub(super) fn ring(&self) -> u64 {
        self.blocks + self.spare
    }

    /// The number of the first bucket that is written. Counting starts as if each place had already
    /// been written once, without contents.
    pub(super) fn first(&self) -> u64 {
        self.ring()
    }

    /// The number of most recent buckets whose keys are kept: two laps of the ring. When the array
    /// is opened, a place may still have its previous contents, which are one lap older.
    pub(super) fn recognised(&self) -> u64 {
        2 * self.ring()
    }

    /// Bytes of an opened bucket: two entries of an address and a block.
    pub(super) fn table_bytes(&self) -> usize {
        2 * self.entry_bytes()
    }

    fn entry_bytes(&self) -> usize {
        8 + self.block_bytes as usize
    }

    pub(super) fn bucket_bytes(&self) -> usize {
        SEAL_BYTES + self.table_bytes()
    }

    /// The level of the store's tree whose buckets are the places of the ring.
    fn level(&self) -> u8 {
        self.ring().next_power_of_two().trailing_zeros() as u8
    }

    pub(super) fn piece(&self, tree: TreeId, number: u64) -> Piece {
        let bucket = BucketId::new(self.level(), number % self.ring());
        Piece { tree, bucket, part: Part::Whole }
    }
}

impl DurableConfig for ScanParams {
    fn scheme(&self) -> &'static str {
        NAME
    }

    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn encode(&self) -> Vec<u8> {
        self.spare.to_le_bytes().to_vec()
    }

    fn shapes(&self) -> Result<Vec<TreeShape>, Error> {
        let mut levels = vec![LevelShape::of_heads(0, 0); usize::from(self.level())];
        levels.push(LevelShape::of_heads(self.ring(), self.bucket_bytes()));
        Ok(vec![TreeShape::new(levels)])
    }

    fn cost(&self) -> Result<Cost, Error> {
        let bucket_bytes = self.bucket_bytes() as u64;
        Ok(Cost {
            tree_bytes: self.ring() * bucket_bytes,
            blocks_per_access: 1,
            read_bytes_per_access: (self.blocks * bucket_bytes) as f64,
            written_bytes_per_access: bucket_bytes as f64,
            trips_per_access: self.blocks.div_ceil(TRIP_BUCKETS) as f64 + 1.0,
            position_map_depth: 0,
            position_map_bytes: self.blocks.div_ceil(8),
            blocks_on_client_bytes: bucket_bytes * TRIP_BUCKETS.min(self.blocks),
            accesses_per_checkpoint: self.spare,
        })
    }

    fn state_size(&self) -> Result<StateSize, Error> {
        Ok(size(self))
    }

    fn facts(&self) -> Vec<Fact> {
        vec![
            Fact::Line(
                "tree",
                "none: every access reads all blocks, and writes two of them".into(),
            ),
            Fact::Line("position map", "none".into()),
            Fact::Value("spare_accesses", FactValue::Number(self.spare)),
        ]
    }

    fn create(
        &self,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        coins: &mut dyn CryptoRng,
    ) -> Result<Box<dyn Durable>, Error> {
        let live = SparseAddressSet::new(self.blocks);
        let eras = vec![Era::begin(0, &mut &mut *coins)];
        let head = Head { accesses: self.first(), eras, live };
        Ok(Box::new(ScanArray::new(self.clone(), key, trees, store, head)?))
    }

    fn restore(&self) -> Result<Box<dyn Restore>, Error> {
        Ok(Box::new(ScanRestore::new(self.clone())))
    }
}
