//! The second step of accesses: announces all moves to storage, then makes them one by one.

use alloc::format;
use alloc::string::String;
use alloc::vec;

use hashbrown::HashMap;
use zeroize::Zeroizing;

use super::positions::Positions;
use super::{DurableRawOram, invalid};
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::front::{check_buffer, check_request};
use crate::posmap::{Mapping, PlbBlock};
use crate::scheme::{Move, Op, WINDOW_ACCESSES_MAX};
use crate::store::BucketStore;

impl<S: BucketStore, R> DurableRawOram<S, R> {
    /// Makes the accesses of `steps`, with one operation per access. Ignores the operation of an
    /// access to anything but a data block.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if `steps` does not match `ops` or the current state, or has
    /// more than [`WINDOW_ACCESSES_MAX`] entries or more than the [accesses
    /// left](crate::scheme::VersionedTree::accesses_left). [`ErrorKind::StashFull`] if the stash
    /// is too full for the accesses. Neither of the two changes anything. Any other error leaves
    /// the ORAM broken.
    pub fn carry_out(&mut self, steps: &[Move], ops: &mut [Op<'_>]) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.check_count(steps, ops)?;
        self.check_steps(steps, ops)?;
        self.make(steps, ops)
    }

    /// Makes the accesses of `steps`, which this ORAM has drawn from its current state.
    ///
    /// # Errors
    /// See [`Self::carry_out`].
    pub(super) fn carry_out_checked(
        &mut self,
        steps: &[Move],
        ops: &mut [Op<'_>],
    ) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.check_count(steps, ops)?;
        let block_bytes = self.config.raw.tree.block_bytes;
        for (step, op) in steps.iter().zip(&*ops) {
            if !step.is_dummy() && !self.positions.is_position_map(step.address) {
                check_buffer(op, block_bytes)?;
            }
        }
        self.make(steps, ops)
    }

    fn make(&mut self, steps: &[Move], ops: &mut [Op<'_>]) -> Result<(), Error> {
        self.backend.check_room(steps.len())?;
        if let Positions::Nested(map) = &mut self.positions {
            steps.iter().for_each(|step| map.touch_parent(step.address));
        }
        self.broken = true;
        self.announce(steps.get(self.announced..).unwrap_or_default());
        self.announced -= steps.len();
        self.accesses += steps.len() as u64;
        for (step, op) in steps.iter().zip(ops) {
            self.carry_out_one(step, op)?;
        }
        self.broken = false;
        Ok(())
    }

    /// Announces the paths of `steps`, and of the evictions between them, after the accesses
    /// announced before. All paths are announced at once. So over a slow link they take one round
    /// trip, and evictions are uploaded while later paths are downloaded. If storage is a file,
    /// another thread reads the paths meanwhile. An access on its own is not announced, because it
    /// is read at once.
    pub(super) fn announce(&mut self, steps: &[Move]) {
        let is_alone = self.announced == 0 && steps.len() == 1;
        for (ahead, step) in (self.announced..).zip(steps).skip(usize::from(is_alone)) {
            self.backend.announce(ahead, step.from);
        }
        self.announced += steps.len();
    }

    fn carry_out_one(&mut self, step: &Move, op: &mut Op<'_>) -> Result<(), Error> {
        let Move { address, from, to } = *step;
        if step.is_dummy() {
            self.backend.access_dummy(from)?;
            return self.backend.finish(self.positions.flat());
        }
        let old = match self.positions.get(address)? {
            Ok(old) => old,
            Err(_) => return Err(invalid("the block's position is not on the client")),
        };
        if old.is_some_and(|mapping| mapping.leaf != from) {
            return Err(invalid("the move does not start at the block's present leaf"));
        }
        let was_live = old.is_some_and(|mapping| mapping.live);
        if self.positions.is_position_map(address) {
            self.fetch(step, old)?;
        } else {
            let live = self.backend.access(step, was_live, op)?;
            self.positions.set(address, Mapping { leaf: to, live })?;
        }
        self.backend.finish(self.positions.flat())
    }

    /// Moves a block of the position map to the client. If the client has no room for it, the least
    /// recently used map block on the client moves to the stash. The victim needs no access,
    /// because storage has never seen its leaf.
    fn fetch(&mut self, step: &Move, old: Option<Mapping>) -> Result<(), Error> {
        let Move { address, to, .. } = *step;
        let mut bytes = Zeroizing::new(vec![0; self.config.raw.tree.block_bytes]);
        // A block that is not live is in the tree all the same: its entries still say where blocks
        // are.
        self.backend.take(step, old.is_some(), &mut bytes)?;
        self.positions.set(address, Mapping { leaf: to, live: true })?;
        let Positions::Nested(map) = &mut self.positions else {
            return Err(invalid("this array has no position-map blocks"));
        };
        let is_whole = old.is_none_or(|mapping| mapping.live);
        let block = PlbBlock { address, leaf: to, bytes };
        if let Some(PlbBlock { address, leaf, bytes }) = map.insert(block, is_whole)? {
            self.backend.append(address, leaf, &bytes)?;
        }
        Ok(())
    }

    fn check_count(&self, steps: &[Move], ops: &[Op<'_>]) -> Result<(), Error> {
        let refused = |message: String| Err(Error::new(ErrorKind::InvalidRequest, message));
        if steps.len() != ops.len() {
            return refused(format!(
                "there are {} moves for {} operations",
                steps.len(),
                ops.len()
            ));
        }
        if steps.len() > WINDOW_ACCESSES_MAX {
            return refused(format!("at most {WINDOW_ACCESSES_MAX} accesses can be made at once"));
        }
        if steps.len() as u64 > self.backend.accesses_left() {
            return Err(invalid("too many accesses since the last checkpoint: make one first"));
        }
        Ok(())
    }

    fn check_steps(&self, steps: &[Move], ops: &[Op<'_>]) -> Result<(), Error> {
        let (capacity, block_bytes) = (self.config.data_blocks(), self.config.raw.tree.block_bytes);
        let geometry = &self.config().geometry;
        let mut moved = HashMap::new();
        for (step, op) in steps.iter().zip(ops) {
            if ![step.from, step.to].iter().all(|leaf| geometry.contains_leaf(*leaf)) {
                return Err(invalid("a move names a leaf that does not exist"));
            }
            if step.is_dummy() {
                continue;
            }
            match &self.positions {
                Positions::Nested(map) if map.is_position_map(step.address) => {
                    if map.is_in_plb(step.address) || moved.contains_key(&step.address) {
                        return Err(invalid("the position-map block is already on the client"));
                    }
                }
                _ => check_request(step.address, op, capacity, block_bytes)?,
            }
            let is_there = match (moved.get(&step.address), self.positions.get(step.address)?) {
                (Some(leaf), _) => *leaf == step.from,
                (None, Ok(mapping)) => mapping.is_none_or(|mapping| mapping.leaf == step.from),
                (None, Err(_)) => return Err(invalid("the block's position is not on the client")),
            };
            if !is_there {
                return Err(invalid("the move does not start at the block's present leaf"));
            }
            moved.insert(step.address, step.to);
        }
        Ok(())
    }
}
