//! Computes the costs and facts of a volume's S³ORAM, and creates and restores its array.

use oblivio_core::durable::{
    AnyStore, Cost, Durable, DurableConfig, Fact, FactValue, Restore, StateSize,
};
use oblivio_core::pieces::{TreeId, TreeShape};
use oblivio_core::{Error, MasterKey};
use rand_core::CryptoRng;

use super::NAME;
use super::array::ShareArray;
use super::client_state::ClientState;
use super::params::{Map, S3OramParams};
use super::share_tree::ShareTree;
use super::state::{ShareRestore, size};
use crate::host::Host;
use crate::tree::Preset;
use crate::view::{COLLUDING, LEVELS, MAP_LEVELS, SERVERS};

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
        if let Some(Map { shape, .. }) = &self.map {
            // Both fit in four bytes: see `decode`.
            params.extend((shape.block_bytes as u32).to_le_bytes());
            params.extend((shape.client_entries_max as u32).to_le_bytes());
        }
        params
    }

    /// Returns no shapes: the servers keep the blocks, so the store has no trees of buckets.
    fn shapes(&self) -> Result<Vec<TreeShape>, Error> {
        Ok(Vec::new())
    }

    fn cost(&self) -> Result<Cost, Error> {
        let (servers, trees) = (self.parties.servers() as u64, self.trees());
        let setups = self.setup(1, Vec::new());
        let evictions = 1.0 / self.evict_period() as f64;
        // Drawn shares are not sent.
        let computed = servers - self.parties.colluding() as u64;
        let sum = |of: &dyn Fn(&ShareTree) -> f64| trees.iter().map(of).sum::<f64>();
        let sent = |it: &ShareTree| {
            let matrices = evictions * it.matrix_bytes() as f64;
            it.tree.path_slots() as f64 + it.slot_bytes as f64 + matrices
        };
        // The metadata of the path of an access, and of two paths before each eviction.
        let received = |it: &ShareTree| {
            let metadata = it.tree.path_slots() * it.metadata_bytes;
            it.slot_bytes as f64 + (1.0 + 2.0 * evictions) * metadata as f64
        };
        // The client asks for the servers' progress before each eviction.
        let asked = |it: &ShareTree| match it.metadata_bytes {
            0 => 2.0 + 2.0 * evictions,
            _ => 3.0 + 4.0 * evictions,
        };
        // The matrices of an eviction and a block, in plain and as one share for each server, for
        // the tree where they are largest.
        let on_client = |it: &ShareTree| (servers + 1) * (it.matrix_bytes() + it.slot_bytes as u64);
        Ok(Cost {
            tree_bytes: servers * setups.iter().map(Host::file_bytes).sum::<u64>(),
            blocks_per_access: 1,
            read_bytes_per_access: servers as f64 * sum(&received),
            written_bytes_per_access: computed as f64 * sum(&sent),
            trips_per_access: sum(&asked),
            // The accesses to the map trees are part of each access.
            position_map_depth: 0,
            position_map_bytes: self.map_bytes(),
            blocks_on_client_bytes: trees.iter().map(on_client).max().unwrap_or_default(),
            accesses_per_checkpoint: self.accesses_per_checkpoint(),
        })
    }

    fn state_size(&self) -> Result<StateSize, Error> {
        Ok(size(self))
    }

    fn facts(&self) -> Vec<Fact> {
        let Self { parties, preset: Preset { slots, accesses }, tree, .. } = self;
        let (servers, colluding) = (parties.servers(), parties.colluding());
        let mut facts = vec![
            Fact::Line(
                "servers",
                format!("{servers}, of which {colluding} may collude without learning anything"),
            ),
            Fact::Line(
                "tree",
                format!(
                    "{} levels, {slots} slots per bucket (Z), an eviction every {accesses} \
                     accesses (A)",
                    tree.height() + 1
                ),
            ),
            Fact::Line("position map", self.where_the_map_is()),
            Fact::Value(SERVERS, FactValue::Number(servers as u64)),
            Fact::Value(COLLUDING, FactValue::Number(colluding as u64)),
            Fact::Value(LEVELS, FactValue::Number(u64::from(tree.height()) + 1)),
            Fact::Value("slots", FactValue::Number(u64::from(*slots))),
            Fact::Value("evict_period", FactValue::Number(u64::from(*accesses))),
        ];
        if let Some(levels) = self.levels() {
            let of_map = levels.iter().skip(1);
            let of_map = of_map.map(|level| u64::from(level.tree.height()) + 1).collect();
            facts.push(Fact::Value(MAP_LEVELS, FactValue::Numbers(of_map)));
        }
        facts
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
        let state = ClientState::new(self)?;
        let mut array = ShareArray::new(self.clone(), &key, trees, store, state)?;
        array.coins.draw(&array.sealer, coins);
        array.set_up()?;
        Ok(Box::new(array))
    }

    fn restore(&self) -> Result<Box<dyn Restore>, Error> {
        Ok(Box::new(ShareRestore::new(self.clone())?))
    }
}

impl S3OramParams {
    /// Describes for humans whether the position map is on the client or in trees.
    fn where_the_map_is(&self) -> String {
        let Some(levels) = self.levels() else { return "on the client".into() };
        let trees = levels
            .iter()
            .skip(1)
            .map(|level| format!("{} blocks in {} levels", level.blocks, level.tree.height() + 1));
        let trees: Vec<_> = trees.collect();
        format!("in smaller trees on the servers: {}", trees.join(", "))
    }
}
