//! Rotating RAW ORAM with its position map. Every access has two steps, so that the client can log
//! it before storage sees it.

mod array;
mod check;
mod config;
mod moves;
mod one_step;
mod params;
mod plan;
mod positions;
mod salvage;
mod state;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Range;

use crate::durable::section::check_range;
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::front::check_request;
use crate::geometry::Leaf;
use crate::posmap::{LivePosMap, MissingParent};
use crate::scheme::{
    ClientLocation, Op, RawConfig, TakenSlot, TreeConfig, VersionedTree, WINDOW_ACCESSES_MAX,
};
use crate::seal::EraSealer;
use crate::store::BucketStore;
pub use config::{RotatingConfig, RotatingShapes};
pub use params::{DurableRaw, MapRecursion, RawParams};
use positions::Positions;

/// The restored state of an ORAM, without its blocks on the client and taken slots: see
/// [`DurableRawOram::resume`].
pub struct RestoredState {
    /// The number of evictions: see [`VersionedTree::evictions`].
    pub evictions: u64,
    /// The number of accesses since the last eviction: see
    /// [`VersionedTree::accesses_since_eviction`].
    pub accesses_since_eviction: u32,
    /// The entries of the position map in client memory: see [`DurableRawOram::table`].
    pub table: LivePosMap,
}

/// Durable RAW ORAM: its client state can be saved and restored.
///
/// [`Self::plan_accesses`] draws the leaves of future accesses, and shows storage nothing;
/// [`Self::carry_out`] makes the accesses. A client that must survive a crash logs the moves in
/// between. If the moves are carried out again from the same state, storage sees the same paths.
///
/// The position map is in client memory, or mostly in the tree itself. If it is in the tree, the
/// map blocks that [`Self::missing_positions_to_access`] names must be fetched before a block is
/// accessed. They are fetched with ordinary accesses to the addresses of the map blocks.
///
/// ```
/// use oblivio_core::{EraSealer, MasterKey, MemoryStore, Oram, RawConfig, DurableRawOram};
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
/// let mut config = RawConfig::new(1000, 64)?;
/// config.tree.tree_top_levels = 4;
/// let store = MemoryStore::new(&config.rotating_shapes()?, MemoryStore::default_layout())?;
/// let sealer = EraSealer::fresh(MasterKey::draw(&mut coins), config.tree.tree, &mut coins);
/// let mut oram = DurableRawOram::rotating(&config, sealer, store, coins)?;
///
/// oram.write(7, &[42; 64])?;
/// let mut block = [0; 64];
/// oram.read(7, &mut block)?;
/// assert_eq!(block, [42; 64]);
/// oram.forget(0..10)?;
/// oram.read(7, &mut block)?;
/// assert_eq!(block, [0; 64]);
/// # Ok::<(), oblivio_core::Error>(())
/// ```
pub struct DurableRawOram<S, R> {
    backend: VersionedTree<S>,
    positions: Positions,
    config: RotatingConfig,
    /// The random generator that draws the leaves; `()` if the caller draws the moves.
    coins: R,
    /// Whether a batch failed halfway.
    broken: bool,
    /// Accesses that were announced and not yet carried out. Public.
    announced: usize,
    /// Accesses made since the ORAM was created or restored. Public.
    accesses: u64,
}

impl<S: BucketStore, R> DurableRawOram<S, R> {
    /// An empty ORAM with its position map in client memory.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn rotating(
        config: &RawConfig,
        sealer: EraSealer,
        store: S,
        coins: R,
    ) -> Result<Self, Error> {
        Self::new(&RotatingConfig::flat(config.clone()), sealer, store, coins)
    }

    /// An empty ORAM on a store whose buckets were never written.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`], [`ErrorKind::StoreMismatch`].
    pub fn new(
        config: &RotatingConfig,
        sealer: EraSealer,
        store: S,
        coins: R,
    ) -> Result<Self, Error> {
        let geometry = &config.raw.tree.geometry;
        let restored = RestoredState {
            evictions: geometry.leaves(),
            accesses_since_eviction: 0,
            table: LivePosMap::new(config.client_entries()?, geometry.leaf_level())?,
        };
        Self::resume(config, sealer, store, restored, coins)
    }

    /// Restores the ORAM, without the blocks and slots that [`Self::restore_client_block`] and
    /// [`Self::restore_taken_slot`] restore.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`], also if the ORAM was never in such a state, and
    /// [`ErrorKind::StoreMismatch`].
    pub fn resume(
        config: &RotatingConfig,
        sealer: EraSealer,
        store: S,
        restored: RestoredState,
        coins: R,
    ) -> Result<Self, Error> {
        config.shapes()?;
        let RestoredState { evictions, accesses_since_eviction, table } = restored;
        let since = (evictions, accesses_since_eviction);
        let mut backend = VersionedTree::resume(&config.raw, config.trees, sealer, store, since)?;
        if config.recursion.is_some() {
            backend = backend.with_taken_marks()?;
        }
        let positions = Positions::new(config, table)?;
        Ok(Self {
            backend,
            positions,
            config: config.clone(),
            coins,
            broken: false,
            announced: 0,
            accesses: 0,
        })
    }

    /// Restores a block to the location that [`Self::client_blocks`] returned. Blocks of the
    /// position map must be restored in the order in which it returned them.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if the block cannot have been there.
    pub fn restore_client_block(
        &mut self,
        location: ClientLocation,
        address: u64,
        leaf: Leaf,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let is_block = bytes.len() == self.config.raw.tree.block_bytes;
        match (location, &mut self.positions) {
            (ClientLocation::Frontend, Positions::Nested(map)) if is_block => {
                map.restore_client_block(address, leaf, bytes)
            }
            _ => self.backend.restore_client_block(location, address, leaf, bytes),
        }
    }

    /// Restores the mark of a taken slot: see [`VersionedTree::restore_taken_slot`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if the slot cannot have been taken.
    pub fn restore_taken_slot(&mut self, slot: TakenSlot) -> Result<(), Error> {
        self.backend.restore_taken_slot(slot)
    }

    /// Every block on the client with its location, address, leaf and bytes, for
    /// [`Self::restore_client_block`]. Secret.
    pub fn client_blocks(&self) -> impl Iterator<Item = (ClientLocation, u64, Leaf, &[u8])> {
        let held = match &self.positions {
            Positions::Flat(_) => None,
            Positions::Nested(map) => Some(map.plb_blocks()),
        };
        let held = held.into_iter().flatten();
        let held = held
            .map(|block| (ClientLocation::Frontend, block.address, block.leaf, &block.bytes[..]));
        self.backend.client_blocks().chain(held)
    }

    /// Ends the use of the ORAM and returns its store.
    pub fn into_store(self) -> S {
        self.backend.into_store()
    }

    /// The parameters of the tree. Public.
    pub fn config(&self) -> &TreeConfig {
        self.backend.config()
    }

    /// The backend, which makes accesses and evictions in the tree.
    pub fn backend(&self) -> &VersionedTree<S> {
        &self.backend
    }

    /// The backend, for flushes and checkpoints.
    pub fn backend_mut(&mut self) -> &mut VersionedTree<S> {
        &mut self.backend
    }

    /// The entries of the position map in client memory. These are the whole map, or the entries of
    /// its last level if the rest is in the tree. Secret.
    pub fn table(&self) -> &LivePosMap {
        self.positions.table()
    }

    /// Number of levels of the position map that are in the tree. Public.
    pub fn position_map_depth(&self) -> usize {
        match &self.positions {
            Positions::Flat(_) => 0,
            Positions::Nested(map) => map.depth(),
        }
    }

    /// Whether a block belongs to the position map and is in the PLB, the client's cache of such
    /// blocks. `false` for a block in the stash or the tree top. Secret.
    pub fn is_on_client(&self, address: u64) -> bool {
        matches!(&self.positions, Positions::Nested(map) if map.is_in_plb(address))
    }

    /// Whether the whole position map is in client memory. Public.
    pub fn has_flat_map(&self) -> bool {
        self.positions.flat().is_some()
    }

    /// Maximum number of requests in a window. The client's cache of position-map blocks has room
    /// for all blocks that these requests can need.
    pub fn window_accesses_max(&self) -> usize {
        match (&self.positions, &self.config.recursion) {
            (Positions::Nested(map), Some(recursion)) => {
                map.window(recursion.plb_blocks).min(WINDOW_ACCESSES_MAX)
            }
            _ => WINDOW_ACCESSES_MAX,
        }
    }

    /// The position-map blocks to fetch before `addresses` can be accessed, each once. After they
    /// are fetched, more may be missing: call this again.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if an address is past the end.
    pub fn missing_positions_to_access(&self, addresses: &[u64]) -> Result<Vec<u64>, Error> {
        let mut missing = BTreeSet::new();
        for address in addresses {
            self.check_address(*address)?;
            if let Err(MissingParent(block)) = self.positions.get(*address)? {
                missing.insert(block);
            }
        }
        Ok(missing.into_iter().collect())
    }

    /// Applies `op` to the block `address` if the client finds it by its address: in the stash, or
    /// in a [set-associative](crate::TreeTopKind::SetAssociative) tree top. Returns whether it did.
    /// Storage sees nothing, and there is no move to log; a client that must survive a crash logs
    /// the operation. [`HitPolicy::Serve`](crate::HitPolicy::Serve) describes what storage learns
    /// from the missing access.
    ///
    /// If the position map is in the tree, a block is served only if its position is on the client.
    /// Otherwise the client cannot tell whether the block was forgotten.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`], [`ErrorKind::InvalidRequest`].
    pub fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        check_not_broken(self.broken)?;
        check_request(address, op, self.config.data_blocks(), self.config.raw.tree.block_bytes)?;
        match self.positions.get(address)? {
            Ok(Some(mapping)) if mapping.live => self.backend.serve_on_client(address, op),
            _ => Ok(false),
        }
    }

    /// The position-map blocks to fetch before a range can be forgotten, each once. After they are
    /// fetched, more may be missing: call this again. Empty if the position map is in client
    /// memory.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if the range goes past the end.
    pub fn missing_positions_to_forget(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        check_range(&range, self.config.data_blocks())?;
        match &self.positions {
            Positions::Flat(_) => Ok(Vec::new()),
            Positions::Nested(map) => map.missing_to_forget(range),
        }
    }

    /// Drops the contents of the blocks of a range; they read as zeros from now on. Storage sees
    /// nothing.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if the range goes past the end, or [positions are
    /// missing](Self::missing_positions_to_forget).
    pub fn forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        check_range(&range, self.config.data_blocks())?;
        match &mut self.positions {
            Positions::Flat(position_map) => {
                position_map.forget(range);
                self.backend.drop_dead(position_map)
            }
            Positions::Nested(map) => map.forget(range),
        }
    }

    /// Makes the next eviction early, so that the stash shrinks. Storage sees the eviction.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if the eviction would overwrite data that the last durable
    /// state needs, and any error of storage.
    pub fn background_evict(&mut self) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.backend.background_evict(self.positions.flat())
    }

    /// Checks that an address belongs to a data block or a position-map block.
    fn check_address(&self, address: u64) -> Result<(), Error> {
        if address < self.config.data_blocks() || self.positions.is_position_map(address) {
            Ok(())
        } else {
            Err(invalid("the address is past the end"))
        }
    }
}

/// Placeholders for the operations of `accesses` accesses to the position map, which ignore them.
#[doc(hidden)]
pub fn ignored_ops<'a>(accesses: usize) -> Vec<Op<'a>> {
    (0..accesses).map(|_| Op::Write(&[])).collect()
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}
