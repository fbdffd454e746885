//! Builds the ORAM of a combination, on recorded stores.
//!
//! All ORAMs are small and tight: 120 blocks, at most seven levels, three slots per bucket or 1 to
//! 4 by level. So blocks are frequently in the stash, in the tree top and in the caches, and are
//! evicted from them.

use std::sync::{Arc, Mutex};

use oblivio_core::front::{self, Environment, MapConfig, OramConfig, SchemeConfig};
use oblivio_core::geometry::Geometry;
use oblivio_core::scheme;
use oblivio_core::store::{TreeId, TreeShape};
use oblivio_core::view::{Event, EventSink, Recorder};
use oblivio_core::{
    CacheConfig, CachedOram, DurableRawOram, EraSealer, Error, FreecursiveConfig, Key, MasterKey,
    MemoryStore, Oram, RawConfig, Recursion, RecursiveConfig, RecursiveOram, RemapPolicy,
    RhoConfig, RotatingConfig, Sealer, TreeConfig, TreeTopKind,
};
use rand::rngs::StdRng;
use rand::{CryptoRng, SeedableRng};

use super::composed::{AtAccess, Built, Composed};
use super::factors::{Bound, Combination, Front, Map, Scheme, Slots, Top};
use crate::support::noting::{Notes, Noting};

pub(crate) const CAPACITY: u64 = 120;
pub(crate) const BLOCK_BYTES: usize = 32;
pub(crate) const LEAVES: u64 = 1 << LEAF_LEVEL;
const LEAF_LEVEL: u8 = 6;

/// The number of accesses per eviction (the parameter A), in schemes that have it.
pub(crate) const ACCESSES_PER_EVICTION: u32 = 3;

pub(crate) const TOP_LEVELS: u8 = 3;

const CACHE: CacheConfig = CacheConfig { blocks: 8, ways: 2 };

pub(crate) const SMALL_PER_MAIN: usize = 2;

/// Slots per bucket on each level from the root down: varying in the tree top, few in the middle.
const PROFILE: [u16; LEAF_LEVEL as usize + 1] = [4, 2, 3, 1, 2, 3, 4];
const UNIFORM: u16 = 3;

/// The stash bound of tight combinations. The bound must not be smaller: an overloaded subtree
/// stays overloaded until its blocks are remapped, which evictions do not do.
const TIGHT_STASH_BLOCKS_MAX: usize = 2;

/// Levels of the position map in the tree of Freecursive ORAM: 15 blocks, and 2 above them.
pub(crate) const POSITION_MAP_DEPTH: u64 = 2;

/// Maximum number of entries of a position map on the client.
const CLIENT_ENTRIES_MAX: u64 = 4;

/// The events of all trees, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Event>>>);

impl Log {
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl EventSink for Log {
    fn record(&mut self, event: &Event, _: &[u8]) {
        self.0.lock().unwrap().push(*event);
    }
}

type Store = Recorder<MemoryStore, Log>;
type Made = Result<Box<dyn Composed>, Error>;

/// Builds the empty ORAM of a combination. Returns the ORAM and its view.
pub(crate) fn compose(
    combination: &Combination,
    seed: u64,
) -> Result<(Box<dyn Composed>, Log), Error> {
    let log = Log::default();
    let builder = Builder { combination: *combination, log: log.clone(), key: [7; 16], seed };
    let composed = match (combination.scheme, combination.map) {
        (Scheme::Rotating, _) => builder.rotating(),
        (_, Map::Recursive) => builder.cached(builder.recursive()?),
        (Scheme::Path | Scheme::Raw, _) => builder.built(),
    };
    Ok((composed?, log))
}

struct Builder {
    combination: Combination,
    log: Log,
    key: [u8; 16],
    seed: u64,
}

impl Builder {
    fn coins(&self) -> StdRng {
        StdRng::seed_from_u64(self.seed)
    }

    fn store(&self, shapes: &[TreeShape]) -> Store {
        let memory = MemoryStore::new(shapes, MemoryStore::default_layout()).unwrap();
        Recorder::new(memory, self.log.clone())
    }

    fn tree(&self, capacity: u64, block_bytes: usize, leaf_level: u8) -> TreeConfig {
        let slots: Vec<_> = (0..=usize::from(leaf_level))
            .map(|level| match self.combination.slots {
                Slots::Uniform => UNIFORM,
                Slots::Profile => PROFILE[level],
            })
            .collect();
        let stash_blocks_max = match self.combination.bound {
            Bound::Loose => capacity as usize,
            Bound::Tight => TIGHT_STASH_BLOCKS_MAX,
        };
        let (tree_top_levels, tree_top) = match self.combination.top {
            Top::None => (0, TreeTopKind::Dedicated),
            Top::Dedicated => (TOP_LEVELS, TreeTopKind::Dedicated),
            Top::Sets => (TOP_LEVELS, TreeTopKind::SetAssociative { ways: 2 }),
        };
        let geometry = Geometry::profile(&slots).unwrap();
        TreeConfig::new(capacity, block_bytes, geometry, stash_blocks_max)
            .with_tree_top_levels(tree_top_levels.min(leaf_level))
            .with_tree_top(tree_top)
    }

    fn scheme(&self, tree: TreeConfig) -> SchemeConfig {
        match self.combination.scheme {
            Scheme::Raw => SchemeConfig::Raw(RawConfig::of_tree(tree, ACCESSES_PER_EVICTION)),
            _ => SchemeConfig::Path(tree),
        }
    }

    /// An ORAM of this combination, made by [`build`](oblivio_core::front::build()).
    fn built(&self) -> Made {
        let main = match self.combination.map {
            Map::Flat => self.tree(CAPACITY, BLOCK_BYTES, LEAF_LEVEL),
            _ => self.freecursive_tree()?,
        };
        let policy = match self.combination.front {
            Front::None | Front::Rho => None,
            Front::CacheAtAccess | Front::CachedRho => Some(RemapPolicy::AtAccess),
            Front::CacheDelayed | Front::DelayedRho => Some(RemapPolicy::Delayed),
        };
        let config = OramConfig {
            scheme: self.scheme(main),
            map: match self.combination.map {
                Map::Flat => MapConfig::Flat(self.combination.hits),
                _ => MapConfig::Freecursive(self.freecursive_config()),
            },
            rho: self.combination.has_rho().then(|| self.rho()),
            cache: policy.map(|policy| (CACHE, policy)),
        };
        let mut environment = RecordingEnvironment { builder: self, notes: Notes::default() };
        let oram = front::build(&config, &mut environment)?;
        let notes = config.rho.is_none().then_some(environment.notes);
        Ok(Box::new(Built { oram, notes, policy }))
    }

    fn recursive(
        &self,
    ) -> Result<RecursiveOram<Noting<Box<dyn scheme::Scheme + Send>>, StdRng>, Error> {
        let config = RecursiveConfig {
            capacity: CAPACITY,
            block_bytes: BLOCK_BYTES,
            client_entries_max: CLIENT_ENTRIES_MAX,
        };
        let schemes = config.path_trees()?.into_iter().map(|path| {
            let leaf_level = path.geometry.leaf_level().min(LEAF_LEVEL);
            let tree = self.tree(path.capacity, BLOCK_BYTES, leaf_level);
            let environment = RecordingEnvironment { builder: self, notes: Notes::default() };
            environment.noting(&self.scheme(tree.with_tree(path.tree)))
        });
        RecursiveOram::new(&config, schemes.collect::<Result<_, _>>()?, self.coins())
    }

    /// Parameters of Freecursive ORAM: position-map blocks of eight entries, and counters that
    /// overflow frequently.
    fn freecursive_config(&self) -> FreecursiveConfig {
        FreecursiveConfig::new(CAPACITY, BLOCK_BYTES)
            .unwrap()
            .with_fan_out(8)
            .with_counter_bits(4)
            .with_client_entries_max(CLIENT_ENTRIES_MAX)
            .with_plb_blocks(if self.combination.map == Map::Freecursive { 3 } else { 0 })
            .with_plb_ways(1)
            .with_hits(self.combination.hits)
            .with_integrity(self.combination.integrity)
    }

    fn freecursive_tree(&self) -> Result<TreeConfig, Error> {
        let config = self.freecursive_config();
        Ok(self
            .tree(config.tree_capacity()?, config.tree_block_bytes(), LEAF_LEVEL)
            .with_burst_accesses_max(config.burst_accesses_max()?))
    }

    /// Parameters of ρ with 16 blocks in sets of 4: fewer blocks than the workloads write.
    fn rho(&self) -> RhoConfig {
        let small = self.tree(16, BLOCK_BYTES, 4).with_tree(TreeId(1));
        RhoConfig::of_tree(small, 4, SMALL_PER_MAIN)
    }

    fn rotating(&self) -> Made {
        let evict_period = ACCESSES_PER_EVICTION;
        let config = match self.combination.map {
            Map::Flat => {
                let tree = self.tree(CAPACITY, BLOCK_BYTES, LEAF_LEVEL);
                RotatingConfig::flat(RawConfig::of_tree(tree, evict_period))
            }
            _ => {
                let recursion = Recursion {
                    data_blocks: CAPACITY,
                    client_entries_max: CLIENT_ENTRIES_MAX,
                    plb_blocks: 4,
                };
                let blocks = recursion.tree_blocks(BLOCK_BYTES, LEAF_LEVEL)?;
                let tree = self.tree(blocks, BLOCK_BYTES, LEAF_LEVEL);
                let flat = RotatingConfig::flat(RawConfig::of_tree(tree, evict_period));
                flat.with_recursion(Some(recursion))
            }
        };
        let shapes = config.shapes()?.into_trees();
        let mut coins = self.coins();
        let master = MasterKey::draw(&mut coins);
        let sealer = EraSealer::fresh(master, config.raw.tree.tree, &mut coins);
        self.cached(DurableRawOram::new(&config, sealer, self.store(&shapes), coins)?)
    }

    fn cached<O: Oram + Composed + 'static>(&self, oram: O) -> Made {
        Ok(match self.combination.front {
            Front::CacheAtAccess => Box::new(AtAccess(CachedOram::at_access(CACHE, oram)?)),
            _ => Box::new(oram),
        })
    }
}

/// Recorded stores, under schemes that note the block and the operation of each access.
struct RecordingEnvironment<'a> {
    builder: &'a Builder,
    notes: Notes,
}

impl RecordingEnvironment<'_> {
    fn make_storage(&self, tree: &TreeConfig) -> Result<(Sealer, Store), Error> {
        let shapes = vec![tree.shape()?; usize::from(tree.tree.0) + 1];
        Ok((
            Sealer::aes128(Key::from_bytes(self.builder.key), tree.tree),
            self.builder.store(&shapes),
        ))
    }

    fn noting(
        &self,
        config: &SchemeConfig,
    ) -> Result<Noting<Box<dyn scheme::Scheme + Send>>, Error> {
        let (sealer, store) = self.make_storage(config.tree())?;
        Ok(Noting::with(config.scheme(sealer, Box::new(store))?, self.notes.clone()))
    }
}

impl Environment for RecordingEnvironment<'_> {
    fn scheme(&mut self, config: &SchemeConfig) -> Result<Box<dyn scheme::Scheme + Send>, Error> {
        Ok(Box::new(self.noting(config)?))
    }

    fn coins(&mut self) -> Box<dyn CryptoRng + Send> {
        Box::new(self.builder.coins())
    }

    fn rho_coins(&mut self) -> Box<dyn CryptoRng + Send> {
        Box::new(StdRng::seed_from_u64(!self.builder.seed))
    }
}
