//! The trusted side of one tree: stash, tree top, and the bytes of their blocks.

#[cfg(feature = "std")]
mod image;

use alloc::format;

use super::path_io::{BodyCounters, PathTrips};
use super::step::{AnyStepHook, PathAction, PathStep, StepPhase};
use super::{ClientLocation, Location, Op, TreeConfig};
use crate::bucket::corrupt;
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::geometry::Leaf;
use crate::stash::{BlockArena, Entry, PathPlan, Stash, StashView, TreeTop};

/// The blocks on the client, and whether the client may continue. Secret.
pub(super) struct Client {
    pub(super) stash: Stash,
    pub(super) blocks: BlockArena,
    pub(super) top: TreeTop,
    plan: PathPlan,
    pub(super) config: TreeConfig,
    pub(super) step_hook: Option<AnyStepHook>,
    /// Whether an access failed halfway.
    broken: bool,
}

impl Client {
    /// A client with memory for a path, the tree top and the stash. The stash has room for the
    /// blocks up to its bound, those that a burst of accesses can leave beyond the bound, and
    /// `between_evictions` blocks that accesses can leave before the next eviction.
    pub(super) fn new(config: &TreeConfig, between_evictions: usize) -> Result<Self, Error> {
        let geometry = &config.geometry;
        let growth = config.burst_accesses_max * config.tree_top.growth_max();
        let beyond_bound = growth + between_evictions;
        let in_stash = config.stash_blocks_max + beyond_bound + geometry.path_slots();
        let top_levels = usize::from(config.tree_top_levels);
        let in_top: usize = (0..top_levels).map(|level| geometry.slots(level) << level).sum();
        let blocks = BlockArena::new(in_stash + in_top, geometry.path_slots(), config.block_bytes)?;
        Ok(Self {
            stash: Stash::new(in_stash, blocks.zero()),
            plan: PathPlan::new(geometry, blocks.zero()),
            blocks,
            top: TreeTop::new(config.tree_top, config.tree_top_levels, geometry),
            config: config.clone(),
            step_hook: None,
            broken: false,
        })
    }

    /// The flag that says whether the client is broken. A failed flush of records sets this flag.
    pub(super) fn is_broken_mut(&mut self) -> &mut bool {
        &mut self.broken
    }

    /// Fails if the client is broken.
    pub(super) fn check_not_broken(&self) -> Result<(), Error> {
        check_not_broken(self.broken)
    }

    /// Fails if the client cannot begin a burst of accesses, because it is broken or the stash
    /// holds more than `allowance` blocks beyond its bound.
    pub(super) fn check_ready(&self, allowance: usize) -> Result<(), Error> {
        self.check_not_broken()?;
        if self.stash.len() <= self.config.stash_blocks_max + allowance {
            Ok(())
        } else {
            Err(self.stash_full())
        }
    }

    /// Fails if the client cannot begin `accesses` accesses, because it is broken or the stash has
    /// less room than these accesses can need.
    pub(super) fn check_room(&self, accesses: usize) -> Result<(), Error> {
        self.check_not_broken()?;
        let growth = accesses * self.config.tree_top.growth_max();
        if self.stash.room() >= self.config.geometry.path_slots() + growth {
            Ok(())
        } else {
            Err(self.stash_full())
        }
    }

    fn stash_full(&self) -> Error {
        Error::new(
            ErrorKind::StashFull,
            format!(
                "the stash is over its bound of {} blocks: evict in the background until it is \
                 not, or move the data to an ORAM with a larger bound or bucket",
                self.config.stash_blocks_max
            ),
        )
    }

    /// Begins an access: until [`Self::end`], an error leaves the client broken.
    ///
    /// # Errors
    /// If the client is broken or the stash has no room for a path. Nothing was touched.
    #[inline]
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        self.check_not_broken()?;
        if self.stash.room() < self.config.geometry.path_slots() {
            return Err(self.stash_full());
        }
        self.broken = true;
        Ok(())
    }

    /// Ends an access that succeeded: the client is not broken.
    pub(super) fn end(&mut self) {
        self.broken = false;
    }

    /// Steps 3 and 4 of an access: maps the block to its new leaf and applies `op`.
    ///
    /// The block must have left the tree for the stash. A block that is not in the stash was never
    /// written. It reads as zeros, and only a write or an update creates it.
    pub(super) fn serve(&mut self, address: u64, leaf: Leaf, op: &mut Op<'_>) {
        let place = match (self.stash.find(address), &mut *op) {
            (Some(entry), _) => {
                // Tiny ORAM, Section II-A, step 3: the block gets its new leaf.
                entry.leaf = leaf;
                entry.place
            }
            (None, Op::Read(buffer)) => return buffer.fill(0),
            (None, _) => {
                let place = self.blocks.take();
                self.blocks.get_mut(place).fill(0);
                self.stash.insert(Entry { address, leaf, place });
                place
            }
        };
        // Tiny ORAM, Section II-A, step 4: read or replace the contents.
        op.apply(self.blocks.get_mut(place));
    }

    /// Applies `op` to the block `address` if the client finds it by its address: in the stash, or
    /// in a set-associative tree top. Returns whether it did. The block keeps its leaf, which
    /// storage has not seen.
    ///
    /// # Errors
    /// If the client is broken.
    pub(super) fn serve_in_place(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        self.check_not_broken()?;
        // IR-ORAM, Section IV-C: search the stash (F-Stash) and the tree top (S-Stash) by address.
        let found = self.stash.find(address).map(|entry| entry.place);
        let found = found.or_else(|| self.top.find(address).map(|entry| entry.place));
        if let Some(place) = found {
            op.apply(self.blocks.get_mut(place));
        }
        Ok(found.is_some())
    }

    /// Removes the block `address` and copies it to `block`, if the client finds it by its address.
    /// Returns the leaf to which the block was mapped.
    ///
    /// # Errors
    /// If the client is broken.
    pub(super) fn take_in_place(
        &mut self,
        address: u64,
        block: &mut [u8],
    ) -> Result<Option<Leaf>, Error> {
        self.check_not_broken()?;
        let found = self.stash.remove(address).or_else(|| self.top.take_found(address));
        Ok(found.map(|entry| {
            block.copy_from_slice(self.blocks.get(entry.place));
            self.blocks.free(entry.place);
            entry.leaf
        }))
    }

    /// Removes the block `address` from the stash and drops its bytes. Returns whether the block
    /// was there.
    pub(super) fn take_out(&mut self, address: u64) -> bool {
        let taken = self.stash.remove(address);
        if let Some(entry) = taken {
            self.blocks.free(entry.place);
        }
        taken.is_some()
    }

    /// Puts a block that is nowhere in the ORAM into the stash.
    ///
    /// # Errors
    /// If the client is broken, the stash already holds the block, or the stash has no room.
    /// Nothing was touched.
    pub(super) fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error> {
        self.check_not_broken()?;
        if self.stash.find(address).is_some() {
            return Err(corrupt("a block that is on the client"));
        }
        if self.restore_client_block(ClientLocation::Stash, address, leaf, block) {
            Ok(())
        } else {
            Err(self.stash_full())
        }
    }

    /// Step 2: reads and decrypts all blocks of the path to `leaf` into the stash. Discards
    /// dummies.
    ///
    /// # Errors
    /// Errors of storage, and [`ErrorKind::Corrupt`] if the stash has no room for the path. The
    /// stash lacks this room only if storage has returned additional copies of blocks.
    pub(super) fn read_path(
        &mut self,
        io: &mut dyn PathTrips,
        leaf: Leaf,
        bodies: BodyCounters,
    ) -> Result<(), Error> {
        self.step(leaf, PathAction::Read, StepPhase::Before);
        let Self { stash, blocks, top, config, .. } = self;
        if stash.room() < config.geometry.path_slots() {
            return Err(corrupt("more blocks than were written"));
        }
        // Tiny ORAM, Section II-A, step 2: all real blocks of the path go to the stash.
        top.load(leaf, stash);
        io.open_path(leaf, bodies, blocks, stash)?;
        self.step(leaf, PathAction::Read, StepPhase::After);
        Ok(())
    }

    /// Calls the step hook, if one is set, with the current stash.
    #[inline]
    pub(super) fn step(&mut self, leaf: Leaf, action: PathAction, phase: StepPhase) {
        if let Some(hook) = &mut self.step_hook {
            hook.step(PathStep { leaf, action, phase }, StashView::new(&self.stash));
        }
    }

    /// Step 5: fills the path to `leaf`, which [`Self::read_path`] has emptied, with as many blocks
    /// of the stash as fit. Fills all other slots with dummies, encrypts the path and writes it.
    pub(super) fn write_path(
        &mut self,
        io: &mut dyn PathTrips,
        leaf: Leaf,
        counter: u64,
        bodies: BodyCounters,
    ) -> Result<(), Error> {
        self.step(leaf, PathAction::Write, StepPhase::Before);
        // Tiny ORAM, Section II-A, step 5: choose as many blocks as possible (Alg. 1).
        self.plan_path(leaf);
        // Tiny ORAM, Section II-A, step 5: encrypt them, and dummies for the remaining slots.
        io.seal_path(leaf, counter, bodies, &self.plan, &self.blocks)?;
        self.complete_path(leaf);
        self.step(leaf, PathAction::Write, StepPhase::After);
        Ok(())
    }

    /// Plans which blocks of the client go to which bucket of the path to `leaf`.
    pub(super) fn plan_path(&mut self, leaf: Leaf) {
        let Self { stash, top, plan, .. } = self;
        stash.push_to_leaf(leaf, top, plan);
    }

    /// The plan that [`Self::plan_path`] made.
    #[inline]
    pub(super) fn plan(&self) -> &PathPlan {
        &self.plan
    }

    /// Completes the plan once its blocks for storage have been written. Those blocks leave the
    /// client, the blocks for the tree top move to their buckets, and the remaining blocks stay in
    /// the stash.
    pub(super) fn complete_path(&mut self, leaf: Leaf) {
        let Self { stash, blocks, top, plan, config, .. } = self;
        let first_in_storage = config.geometry.path_slots_above(usize::from(top.levels()));
        for entry in &plan.slots()[first_in_storage..] {
            blocks.free(entry.place);
        }
        top.store(leaf, plan, blocks);
        stash.finish_eviction(blocks);
    }

    /// Drops every block on the client for which `keep` returns `false`.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        let Self { stash, blocks, top, .. } = self;
        stash.retain(&mut keep, blocks);
        top.retain(&mut keep, blocks);
    }

    /// Restores a block to the stash or to a bucket of the tree top. Returns `false` and does
    /// nothing if there is no room, the bucket is not on the path to `leaf`, or the location is
    /// [`ClientLocation::Frontend`].
    pub(super) fn restore_client_block(
        &mut self,
        location: ClientLocation,
        address: u64,
        leaf: Leaf,
        bytes: &[u8],
    ) -> bool {
        let Self { stash, blocks, top, config, .. } = self;
        let has_room = match location {
            ClientLocation::Stash => stash.room() > config.geometry.path_slots(),
            ClientLocation::TreeTop(bucket) => {
                bucket.is_on_path(leaf) && top.has_room(bucket, address, &config.geometry)
            }
            ClientLocation::Frontend => false,
        };
        if has_room {
            let entry = Entry { address, leaf, place: blocks.take() };
            blocks.get_mut(entry.place).copy_from_slice(bytes);
            match location {
                ClientLocation::Stash => stash.insert(entry),
                ClientLocation::TreeTop(bucket) => top.insert(bucket, entry),
                ClientLocation::Frontend => unreachable!("a front end restores its own blocks"),
            }
        }
        has_room
    }

    /// The location of the block `address`, which is mapped to `leaf`, if it is on the client.
    pub(super) fn locate(&self, address: u64, leaf: Leaf) -> Option<Location> {
        let is_wanted = |entry: &Entry| entry.address == address;
        if self.stash.entries().iter().any(is_wanted) {
            return Some(Location::Stash);
        }
        self.top.bucket_of(leaf, address).map(Location::Bucket)
    }

    /// Calls `visit` with the location, address and leaf of every block on the client.
    pub(super) fn visit_blocks(&self, visit: &mut dyn FnMut(Location, u64, Leaf)) {
        for entry in self.stash.entries() {
            visit(Location::Stash, entry.address, entry.leaf);
        }
        for (bucket, entry) in self.top.blocks() {
            visit(Location::Bucket(bucket), entry.address, entry.leaf);
        }
    }
}
