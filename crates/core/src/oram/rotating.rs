//! The frontend of rotating RAW ORAM: every access in two steps, so that it can be written down
//! before storage sees it.

use std::collections::HashMap;
use std::ops::Range;

use rand_core::CryptoRng;

use super::{Access, Oram, check_request};
use crate::error::{Error, ErrorKind};
use crate::posmap::LivePosMap;
use crate::scheme::{
    Location, Move, Op, RawConfig, RotatingBackend, TreeConfig, WINDOW_ACCESSES_MAX,
};
use crate::seal::EraSealer;
use crate::store::BucketStore;

/// RAW ORAM whose state can be kept and gone back to, on a flat position map.
///
/// [`Self::intend`] draws the leaves of accesses to come, and shows storage nothing;
/// [`Self::carry_out`] makes them. In between, whoever wants to survive a crash writes the moves down:
/// carried out again from the same state, they show storage the same paths.
///
/// ```
/// use oblivio_core::{EraSealer, MasterKey, MemoryStore, Oram, RawConfig, RotatingOram};
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
/// let mut config = RawConfig::new(1000, 64)?;
/// config.tree.tree_top_levels = 4;
/// let store = MemoryStore::new(&[config.rotating_shape()?], MemoryStore::default_layout())?;
/// let sealer = EraSealer::fresh(MasterKey::draw(&mut coins), config.tree.tree, &mut coins);
/// let mut oram = RotatingOram::rotating(&config, sealer, store, coins)?;
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
pub struct RotatingOram<S, R> {
    backend: RotatingBackend<S>,
    position_map: LivePosMap,
    coins: R,
}

impl<S: BucketStore, R: CryptoRng> RotatingOram<S, R> {
    /// An empty ORAM.
    ///
    /// # Errors
    /// See [`RotatingBackend::new`].
    pub fn rotating(
        config: &RawConfig,
        sealer: EraSealer,
        store: S,
        coins: R,
    ) -> Result<Self, Error> {
        let position_map =
            LivePosMap::new(config.tree.capacity, config.tree.geometry.leaf_level())?;
        Ok(Self::resume(RotatingBackend::new(config, sealer, store)?, position_map, coins))
    }

    /// An ORAM as it was when `backend` and `position_map` were kept.
    pub fn resume(backend: RotatingBackend<S>, position_map: LivePosMap, coins: R) -> Self {
        Self { backend, position_map, coins }
    }

    /// Ends the use of the ORAM, and hands back its store.
    pub fn into_store(self) -> S {
        self.backend.into_store()
    }

    /// The parameters of the tree. Public.
    pub fn config(&self) -> &TreeConfig {
        self.backend.config()
    }

    /// The backend.
    pub fn backend(&self) -> &RotatingBackend<S> {
        &self.backend
    }

    /// The backend, to be flushed and kept.
    pub fn backend_mut(&mut self) -> &mut RotatingBackend<S> {
        &mut self.backend
    }

    /// Where each block is. Secret.
    pub fn position_map(&self) -> &LivePosMap {
        &self.position_map
    }

    /// The coins.
    pub fn coins_mut(&mut self) -> &mut R {
        &mut self.coins
    }

    /// Begins an era of the seal: from the next eviction on, everything is sealed under a fresh key.
    pub fn begin_era(&mut self) {
        let next = self.backend.evictions();
        self.backend.sealer_mut().begin_era(next, &mut self.coins);
    }

    /// Step 1 of the accesses to `addresses`, in this order: their leaves, and fresh ones. Nothing
    /// is changed, and nothing is shown to storage.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] for an address past the end.
    pub fn intend(&mut self, addresses: &[u64]) -> Result<Vec<Move>, Error> {
        let Self { position_map, coins, .. } = self;
        let mut moved = HashMap::new();
        let mut step = |address: &u64| {
            if *address >= position_map.capacity() {
                let message = "the address is past the end";
                return Err(Error::new(ErrorKind::InvalidRequest, message));
            }
            let from = match moved.get(address) {
                Some(leaf) => *leaf,
                None => position_map.leaf_or_draw(*address, coins),
            };
            let to = position_map.draw(coins);
            moved.insert(*address, to);
            Ok(Move { address: *address, from, to })
        };
        addresses.iter().map(&mut step).collect()
    }

    /// Makes the accesses of `steps`, one for each of `ops`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] before anything is touched, when they are more than
    /// [`RotatingBackend::accesses_left`], more than [`WINDOW_ACCESSES_MAX`], or do not match;
    /// [`ErrorKind::StashFull`] likewise. Any other error leaves the ORAM broken.
    pub fn carry_out(&mut self, steps: &[Move], ops: &mut [Op<'_>]) -> Result<(), Error> {
        self.check_steps(steps, ops)?;
        self.backend.check_ready()?;
        for (i, (step, op)) in steps.iter().zip(ops).enumerate() {
            if let Some(next) = steps.get(i + 1) {
                self.backend.prefetch(next.from);
            }
            self.backend.access(step, op, &mut self.position_map)?;
        }
        Ok(())
    }

    /// Says that the blocks of a range have no contents any more: they read as zeros. Storage sees
    /// nothing of it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] for a range that goes past the end.
    pub fn forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        if range.end > self.position_map.capacity() {
            return Err(Error::new(ErrorKind::InvalidRequest, "the range goes past the end"));
        }
        self.position_map.forget(range);
        self.backend.drop_dead(&self.position_map)
    }

    /// Makes the next eviction ahead of its time, so that the stash shrinks. Storage sees it.
    ///
    /// # Errors
    /// See [`RotatingBackend::background_evict`].
    pub fn background_evict(&mut self) -> Result<(), Error> {
        self.backend.background_evict(&self.position_map)
    }

    /// Reads the whole tree and checks that every part of every bucket is what was written last,
    /// and that each block that is alive is on its path. `progress` is told how many buckets of
    /// [`RotatingBackend::buckets_in_storage`] have been read. Returns how many blocks are alive.
    /// Storage sees a scan.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] with the first violation, and any that storage causes.
    pub fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        let corrupt = |message: String| Err(Error::new(ErrorKind::Corrupt, message));
        let mut found = 0;
        let mut off_path = None;
        self.backend.visit_blocks(
            &self.position_map,
            &mut |location, _, leaf| {
                found += 1;
                if matches!(location, Location::Bucket(bucket) if !bucket.is_on_path(leaf)) {
                    off_path.get_or_insert(location);
                }
            },
            progress,
        )?;
        if let Some(location) = off_path {
            return corrupt(format!("there is a block off its path ({location:?})"));
        }
        let capacity = self.position_map.capacity();
        let alive = self.position_map.mapped(0..capacity).filter(|(_, mapping)| mapping.live);
        match alive.count() as u64 {
            alive if alive == found => Ok(alive),
            alive => corrupt(format!("{} blocks are lost", alive.saturating_sub(found))),
        }
    }

    fn check_steps(&self, steps: &[Move], ops: &[Op<'_>]) -> Result<(), Error> {
        let invalid = |message: String| Err(Error::new(ErrorKind::InvalidRequest, message));
        if steps.len() != ops.len() {
            return invalid(format!("there are {} moves for {} accesses", steps.len(), ops.len()));
        }
        if steps.len() > WINDOW_ACCESSES_MAX {
            return invalid(format!("{WINDOW_ACCESSES_MAX} accesses at once are the most"));
        }
        if steps.len() as u64 > self.backend.accesses_left() {
            return invalid("so many accesses would destroy the state to go back to".into());
        }
        let config = self.config();
        steps.iter().zip(ops).try_for_each(|(step, op)| {
            check_request(step.address, op, config.capacity, config.block_bytes)
        })
    }
}

/// Without anything to go back to: each batch keeps the state it starts from.
impl<S: BucketStore, R: CryptoRng> Oram for RotatingOram<S, R> {
    fn capacity(&self) -> u64 {
        self.config().capacity
    }

    fn block_bytes(&self) -> usize {
        self.config().block_bytes
    }

    fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error> {
        let (capacity, block_bytes) = (self.capacity(), self.block_bytes());
        batch.iter().try_for_each(|request| {
            check_request(request.address, &request.op, capacity, block_bytes)
        })?;
        for mut window in batch.chunks_mut(WINDOW_ACCESSES_MAX) {
            while !window.is_empty() {
                self.backend.keep_state();
                let fitting = self.backend.accesses_left().min(window.len() as u64) as usize;
                let (now, later) = std::mem::take(&mut window).split_at_mut(fitting);
                let addresses: Vec<_> = now.iter().map(|request| request.address).collect();
                let steps = self.intend(&addresses)?;
                let mut ops: Vec<_> = now.iter_mut().map(|request| request.op.reborrow()).collect();
                self.carry_out(&steps, &mut ops)?;
                window = later;
            }
        }
        Ok(())
    }
}
