//! What shapes an S³ORAM of a volume, and what follows from it.

use oblivio_core::durable::section::Fields;
use oblivio_core::durable::{
    AnyStore, Cost, Durable, DurableConfig, Fact, FactValue, Restore, StateSize,
};
use oblivio_core::pieces::{TreeId, TreeShape};
use oblivio_core::seal::BLOCK_SEAL_BYTES;
use oblivio_core::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, Error, MasterKey};
use rand_core::CryptoRng;

use super::access::ShareArray;
use super::known::Known;
use super::state::{ShareRestore, size};
use super::{NAME, impossible};
use crate::client::Positions;
use crate::host::Host;
use crate::message::{Point, ServerKey, Setup};
use crate::sharing::Parties;
use crate::tree::{Preset, Tree};

/// What shapes one. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3OramParams {
    /// How many blocks it holds (N).
    pub(super) blocks: u64,
    /// Bytes of a block.
    pub(super) block_bytes: u32,
    /// Of how many servers how many may collude.
    pub(super) parties: Parties,
    preset: Preset,
    pub(super) tree: Tree,
}

/// The most blocks: a TiB in blocks of 4 KiB. The client keeps sixteen bytes for each, and looks at all in each eviction.
const BLOCKS_MAX: u64 = 1 << 28;

/// That an eviction overflows a bucket, and with that the array is lost, is no likelier than this, as a power of two.
const OVERFLOW_LOG2_MAX: f64 = -40.0;

/// The fewest accesses between checkpoints, and the fewest evictions.
const ACCESSES_PER_CHECKPOINT_MIN: u64 = 256;
const EVICTIONS_PER_CHECKPOINT: u64 = 4;

impl S3OramParams {
    /// Those of so many blocks, if there can be such an array.
    ///
    /// # Errors
    /// [`InvalidConfig`](oblivio_core::ErrorKind::InvalidConfig) when there cannot.
    pub fn new(
        blocks: u64,
        block_bytes: u32,
        parties: Parties,
        preset: Preset,
    ) -> Result<Self, Error> {
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&(block_bytes as usize)) {
            return Err(impossible(format!(
                "a block has {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX} bytes"
            )));
        }
        if !(1..=BLOCKS_MAX).contains(&blocks) {
            return Err(impossible(format!(
                "the scheme `{NAME}` holds 1 to {BLOCKS_MAX} blocks: make the blocks larger, or choose another scheme"
            )));
        }
        let tree = Tree::for_blocks(blocks, preset).map_err(|it| impossible(it.to_string()))?;
        let overflow = preset.overflow_log2();
        if overflow > OVERFLOW_LOG2_MAX {
            return Err(impossible(format!(
                "with {} slots (Z) and {} accesses between evictions (A), one of 2^{:.0} evictions overflows a bucket, which loses the volume: take \
                 more slots or evict more often, so that it is one of 2^{:.0}",
                preset.slots, preset.accesses, -overflow, -OVERFLOW_LOG2_MAX
            )));
        }
        Ok(Self { blocks, block_bytes, parties, preset, tree })
    }

    /// Those of a volume, as its superblock says them.
    ///
    /// # Errors
    /// [`InvalidConfig`](oblivio_core::ErrorKind::InvalidConfig) when there can be no such array.
    pub fn decode(blocks: u64, block_bytes: u32, params: &[u8]) -> Result<Self, Error> {
        let other_length = |_| impossible(format!("parameters of `{NAME}` have another length"));
        let mut fields = Fields::of(params);
        let mut read = || {
            let [servers, colluding] = fields.array()?;
            let preset = Preset { slots: fields.u16()?, accesses: fields.u16()? };
            Ok::<_, Error>((servers, colluding, preset))
        };
        let (servers, colluding, preset) = read().map_err(other_length)?;
        fields.end().map_err(other_length)?;
        let parties = Parties::new(servers, colluding).map_err(|it| impossible(it.to_string()))?;
        Self::new(blocks, block_bytes, parties, preset)
    }

    /// The tree that each server keeps its shares in.
    pub fn tree(&self) -> Tree {
        self.tree
    }

    /// Accesses between evictions (A).
    pub(super) fn evict_period(&self) -> u64 {
        self.tree.accesses() as u64
    }

    /// How many accesses there were before this point.
    pub(super) fn accesses_at(&self, at: Point) -> u64 {
        at.evictions * self.evict_period() + at.written as u64
    }

    pub(super) fn accesses_per_checkpoint(&self) -> u64 {
        ACCESSES_PER_CHECKPOINT_MIN.max(EVICTIONS_PER_CHECKPOINT * self.evict_period())
    }

    /// Bytes of a block as it is shared.
    pub(super) fn slot_bytes(&self) -> usize {
        BLOCK_SEAL_BYTES + self.block_bytes as usize
    }

    pub(super) fn buckets(&self) -> u64 {
        2 * self.tree.leaves() - 1
    }

    /// Bytes that the client keeps of where blocks are.
    pub(super) fn map_bytes(&self) -> u64 {
        let entry_bytes = Positions::entry_bytes(self.tree) + Known::NUMBER_BYTES;
        self.blocks * entry_bytes as u64
    }

    /// What the server of this number is to be.
    pub(super) fn setup(&self, number: u8, keys: Vec<ServerKey>) -> Setup {
        let Self { parties, tree, .. } = *self;
        Setup { number, parties, tree, block_bytes: self.slot_bytes(), keys }
    }

    /// Bytes of the matrices of an eviction.
    fn matrix_bytes(&self) -> u64 {
        let slots = self.tree.slots() as u64;
        (u64::from(self.tree.height()) + 1) * 2 * slots * slots
    }
}

impl DurableConfig for S3OramParams {
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
        let Self { parties, preset: Preset { slots, accesses }, .. } = self;
        let mut params = vec![parties.servers() as u8, parties.colluding() as u8];
        params.extend(slots.to_le_bytes());
        params.extend(accesses.to_le_bytes());
        params
    }

    /// None: blocks are where servers keep them.
    fn shapes(&self) -> Result<Vec<TreeShape>, Error> {
        Ok(Vec::new())
    }

    fn cost(&self) -> Result<Cost, Error> {
        let (servers, slot_bytes) = (self.parties.servers() as u64, self.slot_bytes() as u64);
        let setup = self.setup(1, Vec::new());
        let evictions = 1.0 / self.evict_period() as f64;
        // What is drawn need not be sent.
        let computed = servers - self.parties.colluding() as u64;
        let sent = self.tree.path_slots() as f64 + slot_bytes as f64;
        Ok(Cost {
            tree_bytes: servers * Host::file_bytes(&setup),
            blocks_per_access: 1,
            read_bytes_per_access: (servers * slot_bytes) as f64,
            written_bytes_per_access: computed as f64
                * (sent + evictions * self.matrix_bytes() as f64),
            // How far servers are is asked before each eviction.
            trips_per_access: 2.0 + 2.0 * evictions,
            position_map_depth: 0,
            position_map_bytes: self.map_bytes(),
            blocks_on_client_bytes: (servers + 1) * (self.matrix_bytes() + slot_bytes),
            accesses_per_checkpoint: self.accesses_per_checkpoint(),
        })
    }

    fn state_size(&self) -> Result<StateSize, Error> {
        Ok(size(self))
    }

    fn facts(&self) -> Vec<Fact> {
        let Self { parties, preset: Preset { slots, accesses }, tree, .. } = self;
        let (servers, colluding) = (parties.servers(), parties.colluding());
        vec![
            Fact::Line(
                "servers",
                format!("{servers}, of which {colluding} may collude and learn nothing"),
            ),
            Fact::Line(
                "tree",
                format!(
                    "{} levels, {slots} slots a bucket (Z), a path evicted after {accesses} accesses (A)",
                    tree.height() + 1
                ),
            ),
            Fact::Line("position map", "on the client".into()),
            Fact::Value("servers", FactValue::Number(servers as u64)),
            Fact::Value("colluding", FactValue::Number(colluding as u64)),
            Fact::Value("levels", FactValue::Number(u64::from(tree.height()) + 1)),
            Fact::Value("slots", FactValue::Number(u64::from(*slots))),
            Fact::Value("evict_period", FactValue::Number(u64::from(*accesses))),
        ]
    }

    fn needs_durable_moves(&self) -> bool {
        true
    }

    fn create(
        &self,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        coins: &mut dyn CryptoRng,
    ) -> Result<Box<dyn Durable>, Error> {
        let known = Known::new(self)?;
        let mut array = ShareArray::new(self.clone(), &key, trees, store, known)?;
        array.draw_coins(coins);
        array.set_up()?;
        Ok(Box::new(array))
    }

    fn restore(&self) -> Result<Box<dyn Restore>, Error> {
        Ok(Box::new(ShareRestore::new(self.clone())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(servers: u8, colluding: u8, preset: Preset) -> Result<S3OramParams, Error> {
        S3OramParams::new(100_000, 4096, Parties::new(servers, colluding).unwrap(), preset)
    }

    #[test]
    fn there_is_one_encoding_and_it_comes_back() {
        for (servers, colluding, preset) in
            [(3, 1, Preset::LARGE), (5, 1, Preset::SMALL), (7, 3, Preset::LARGE)]
        {
            let params = params(servers, colluding, preset).unwrap();
            let encoded = params.encode();
            assert_eq!(S3OramParams::decode(100_000, 4096, &encoded).unwrap(), params);
            assert!(S3OramParams::decode(100_000, 4096, &encoded[1..]).is_err());
            assert!(S3OramParams::decode(100_000, 4096, &[&encoded[..], &[0]].concat()).is_err());
        }
        assert!(S3OramParams::decode(100_000, 4096, &[3, 2, 74, 0, 16, 0]).is_err());
        assert!(S3OramParams::decode(0, 4096, &[3, 1, 74, 0, 16, 0]).is_err());
        assert!(S3OramParams::decode(u64::MAX, 4096, &[3, 1, 74, 0, 16, 0]).is_err());
        assert!(S3OramParams::decode(9, 1, &[3, 1, 74, 0, 16, 0]).is_err());
    }

    #[test]
    fn trees_that_overflow_are_refused() {
        for preset in [Preset::PAPER, Preset::PROTOTYPE, Preset::PROTOTYPE_SMALL] {
            let error = params(3, 1, preset).unwrap_err().to_string();
            assert!(error.contains("overflows"), "{error}");
        }
    }
}
