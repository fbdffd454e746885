//! The operations of rORAM: `ReadRange`, `BatchEvict`, and `Access`, which uses both.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use zeroize::Zeroize;

use hashbrown::HashMap;
use rand_core::CryptoRng;

use super::client::{ClientBlocks, new_arena};
use super::invalid;
use super::params::RangeParams;
use super::state::Head;
use super::sub_oram::SubOram;
use crate::durable::{AnyStore, SparseAddressSet};
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::front::{check_buffer, check_request};
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::pieces::TreeId;
use crate::scheme::{Op, Run};
use crate::seal::{EraSealer, MasterKey};
use crate::stash::{BlockArena, Entry};

/// A planned access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RangeStep {
    /// The class of the range. Storage sees it.
    pub(super) class: u8,
    /// The first block of the range; all ones for a dummy. Secret.
    pub(super) first: u64,
    /// The present leaf of the first block; a random leaf for a dummy. Storage sees it when the
    /// access is made.
    pub(super) from: Leaf,
    /// The new leaf of the first block; equal to `from` for a dummy. Secret.
    pub(super) to: Leaf,
}

impl Zeroize for RangeStep {
    fn zeroize(&mut self) {
        let Self { class, first, from: Leaf(from), to: Leaf(to) } = self;
        class.zeroize();
        [first, from, to].into_iter().for_each(Zeroize::zeroize);
    }
}

impl RangeStep {
    /// Whether the access is a dummy.
    pub(super) fn is_dummy(&self) -> bool {
        self.first == Entry::DUMMY_ADDRESS
    }

    /// The number of accesses that the step counts as: the blocks of its range.
    pub(super) fn blocks(&self) -> usize {
        1 << self.class
    }
}

/// The steps that were announced to storage and not yet carried out. Public.
#[derive(Clone, Copy, Default)]
struct Announced {
    steps: usize,
    /// Number of blocks in the ranges of these steps.
    blocks: usize,
}

/// The sub-ORAMs of a store, and the blocks on the client.
pub(super) struct RangeArray {
    pub(super) params: RangeParams,
    pub(super) geometry: Geometry,
    pub(super) subs: Vec<SubOram>,
    pub(super) held: ClientBlocks,
    pub(super) arena: BlockArena,
    /// The blocks that have contents. Secret.
    pub(super) live: SparseAddressSet,
    /// Number of evictions of each sub-ORAM. A new array starts at the number of leaves. Public.
    pub(super) evictions: u64,
    /// The value of `evictions` in the last durable state, to which the client may return. Public.
    pub(super) durable_evictions: u64,
    /// Number of accessed blocks that count toward the next scheduled eviction. Early evictions do
    /// not reset it. Public.
    pub(super) blocks_since_eviction: u32,
    announced: Announced,
    /// Number of blocks that were accessed since the array was created or restored. Public.
    pub(super) accesses: u64,
    /// Whether an operation failed halfway.
    pub(super) broken: bool,
    pub(super) store: AnyStore,
}

impl RangeArray {
    /// An array whose ranges are all mapped to leaf 0, and whose blocks have no contents.
    pub(super) fn new(
        params: &RangeParams,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        head: Head,
    ) -> Result<Self, Error> {
        let Head { evictions, blocks_since_eviction, eras } = head;
        let geometry = Geometry::uniform(params.leaf_level, params.slots)?;
        if evictions < geometry.leaves() || blocks_since_eviction >= params.evict_period {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                "the state is impossible for an ORAM of this configuration",
            ));
        }
        let of_classes = params.trees_of_classes(trees)?;
        let subs = params.classes.iter().zip(of_classes).zip(eras);
        let subs = subs.map(|((class, trees), eras)| {
            let sealer = EraSealer::new(key.clone(), trees.slots, eras);
            SubOram::new(params, *class, trees, sealer, &store)
        });
        Ok(Self {
            subs: subs.collect::<Result<_, _>>()?,
            held: ClientBlocks::default(),
            arena: new_arena(params)?,
            live: SparseAddressSet::new(params.blocks),
            evictions,
            durable_evictions: evictions,
            blocks_since_eviction,
            announced: Announced::default(),
            accesses: 0,
            broken: false,
            store,
            geometry,
            params: params.clone(),
        })
    }

    /// Draws a leaf for each range of each class.
    pub(super) fn draw_positions(&mut self, coins: &mut impl CryptoRng) {
        for sub in &mut self.subs {
            for range in 0..sub.positions.ranges() {
                let leaf = sub.draw(coins);
                sub.positions.set(range, leaf);
            }
        }
    }

    /// The index of the sub-ORAM of a class.
    pub(super) fn sub_oram_index(&self, class: u8) -> Result<usize, Error> {
        let at = self.params.classes.iter().position(|it| *it == class);
        at.ok_or_else(|| invalid("this array has no ranges of this class"))
    }

    /// Number of evictions that the client may still make. A further eviction would overwrite data
    /// that the last durable state needs.
    pub(super) fn evictions_left(&self) -> u64 {
        self.durable_evictions + self.params.spare_evictions() - self.evictions
    }

    /// Number of blocks that can be accessed before an eviction beyond [`Self::evictions_left`] is
    /// due.
    pub(super) fn accesses_left(&self) -> u64 {
        let period = u64::from(self.params.evict_period);
        (self.evictions_left() + 1) * period - u64::from(self.blocks_since_eviction) - 1
    }

    /// Whether an early eviction is needed, because too many blocks wait on the client, for one
    /// tree or in total.
    pub(super) fn must_evict(&self) -> bool {
        let (params, waiting) = (&self.params, self.params.waiting_blocks_max());
        let for_one = waiting + u64::from(params.stash_blocks_max);
        self.subs.iter().any(|sub| sub.waiting() as u64 > for_one)
            || self.held.len() as u64 > waiting + params.stuck_blocks_max()
    }

    /// Announces to storage the runs that `steps` read, and the evictions between them. The steps
    /// follow the steps announced before. A single path on its own is not announced, because it is
    /// read at once.
    pub(super) fn announce_steps(&mut self, steps: &[RangeStep]) -> Result<(), Error> {
        let is_alone = self.announced.steps == 0 && matches!(steps, [RangeStep { class: 0, .. }]);
        for step in steps {
            if !is_alone {
                let at = self.sub_oram_index(step.class)?;
                let run = Run { first: step.from, paths: step.blocks() as u64 };
                let Self { subs, store, evictions, .. } = self;
                subs[at].tree.prefetch(store, *evictions, run);
                self.announce_evictions_behind(step.blocks());
            }
            self.announced.steps += 1;
            self.announced.blocks += step.blocks();
        }
        Ok(())
    }

    /// Announces the evictions that become due when `blocks` more blocks are accessed, after the
    /// evictions announced before.
    fn announce_evictions_behind(&mut self, blocks: usize) {
        let before = u64::from(self.blocks_since_eviction) + self.announced.blocks as u64;
        let period = u64::from(self.params.evict_period);
        let first = before / period;
        let count = (before + blocks as u64) / period - first;
        if count > 0 {
            let Self { subs, store, evictions, geometry, .. } = self;
            let run = Run::of_evictions(*evictions + first, count, geometry);
            subs.iter_mut().for_each(|sub| sub.tree.prefetch(store, *evictions, run));
        }
    }

    /// Makes the accesses of `steps`. `ops` has an operation for each block of their ranges. Checks
    /// the steps unless `are_checked` is set.
    pub(super) fn carry_out_steps(
        &mut self,
        steps: &[RangeStep],
        ops: &mut [Op<'_>],
        are_checked: bool,
    ) -> Result<(), Error> {
        check_not_broken(self.broken)?;
        self.check_count(steps, ops)?;
        if are_checked {
            self.check_buffers(steps, ops)?;
        } else {
            self.check_steps(steps, ops)?;
        }
        self.broken = true;
        self.announce_steps(steps.get(self.announced.steps..).unwrap_or_default())?;
        self.announced.steps -= steps.len();
        self.announced.blocks -= ops.len();
        self.accesses += ops.len() as u64;
        let mut rest = ops;
        for step in steps {
            let (now, later) = rest.split_at_mut(step.blocks());
            self.access(step, now)?;
            rest = later;
        }
        self.broken = false;
        Ok(())
    }

    fn check_count(&self, steps: &[RangeStep], ops: &[Op<'_>]) -> Result<(), Error> {
        let blocks: usize = steps.iter().map(RangeStep::blocks).sum();
        if blocks != ops.len() || blocks as u64 > self.params.window_accesses_max() {
            return Err(invalid("the operations do not match the accesses, or exceed a window"));
        }
        if blocks as u64 > self.accesses_left() {
            return Err(invalid("too many accesses since the last checkpoint: make one first"));
        }
        Ok(())
    }

    fn check_buffers(&self, steps: &[RangeStep], ops: &[Op<'_>]) -> Result<(), Error> {
        let mut ops = ops.iter();
        for step in steps {
            let mut of_step = ops.by_ref().take(step.blocks());
            if step.is_dummy() {
                of_step.for_each(drop);
            } else {
                of_step.try_for_each(|op| check_buffer(op, self.params.block_bytes as usize))?;
            }
        }
        Ok(())
    }

    fn check_steps(&self, steps: &[RangeStep], ops: &[Op<'_>]) -> Result<(), Error> {
        let mut moved = HashMap::new();
        let mut ops = ops.iter();
        for step in steps {
            let at = self.sub_oram_index(step.class)?;
            let ops = ops.by_ref().take(step.blocks());
            if step.is_dummy() {
                ops.for_each(drop);
                continue;
            }
            let RangeParams { blocks, block_bytes, .. } = self.params;
            for (address, op) in (step.first..).zip(ops) {
                check_request(address, op, blocks, block_bytes as usize)?;
            }
            let range = step.first >> step.class;
            let now = moved.insert((at, range), step.to);
            let now = now.unwrap_or_else(|| self.subs[at].positions.of_range(range));
            if range << step.class != step.first || now != step.from {
                return Err(invalid("the move does not start at the range's present leaf"));
            }
        }
        Ok(())
    }

    /// `Access`: one aligned range, then the evictions that are due.
    fn access(&mut self, step: &RangeStep, ops: &mut [Op<'_>]) -> Result<(), Error> {
        let at = self.sub_oram_index(step.class)?;
        self.read_range(at, step)?;
        if !step.is_dummy() {
            let addresses = step.first..step.first + step.blocks() as u64;
            for address in addresses.clone().filter(|it| self.held.is_awaited_by(*it, at)) {
                self.subs[at].forget_waiting(address);
            }
            self.subs[at].positions.set(step.first >> step.class, step.to);
            for (address, op) in addresses.zip(ops) {
                self.serve(at, address, op);
            }
        }
        self.finish(step.blocks())
    }

    /// `ReadRange`: brings the latest contents of a range's blocks to the client. The copies in
    /// storage stay, and are stale once the range has moved.
    ///
    /// A range of several blocks is read level by level, a single block in one trip. Each trip is
    /// verified as a whole before any of its slots is opened. Each trip opens as many slots as the
    /// range has blocks (or all, if the trip has fewer), wherever the blocks are found.
    fn read_range(&mut self, at: usize, step: &RangeStep) -> Result<(), Error> {
        let Self { subs, held, arena, live, store, evictions, .. } = self;
        let SubOram { tree, positions, .. } = &mut subs[at];
        let run = Run { first: step.from, paths: step.blocks() as u64 };
        let wanted = match step.is_dummy() {
            true => 0..0,
            false => step.first..step.first + run.paths,
        };
        let is_missing = |held: &ClientBlocks, address: u64| {
            live.contains(address) && held.place(address).is_none()
        };
        tree.read_by_level(store, *evictions, run, arena, &mut |arena, address, leaf| {
            let counts = wanted.contains(&address)
                && is_missing(held, address)
                && positions.of_block(address) == leaf;
            counts.then(|| {
                let place = arena.take();
                held.hold(address, place);
                place
            })
        })?;
        if wanted.into_iter().any(|address| is_missing(held, address)) {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "a block is not on the path it is mapped to: the client's state does not belong to \
                 this store",
            ));
        }
        Ok(())
    }

    /// Serves a block of the range that sub-ORAM `at` has read. A written block must be evicted to
    /// every tree. A block that was only read must be evicted to its new path in the tree of `at`,
    /// unless it has no contents and reads as zeros.
    fn serve(&mut self, at: usize, address: u64, op: &mut Op<'_>) {
        let Self { subs, held, arena, live, .. } = self;
        let place = match (held.place(address), &mut *op) {
            (Some(place), _) => place,
            (None, Op::Read(buffer)) => return buffer.fill(0),
            (None, _) => {
                let place = arena.take();
                arena.get_mut(place).fill(0);
                held.hold(address, place);
                place
            }
        };
        op.apply(arena.get_mut(place));
        let is_written = !matches!(op, Op::Read(_));
        if is_written {
            live.insert(address);
        }
        for (t, sub) in subs.iter_mut().enumerate() {
            if is_written || t == at {
                held.set_awaited(address, t);
                sub.await_eviction(address);
            }
        }
    }

    /// Counts accesses to `blocks` blocks, and makes the evictions that are due after them.
    fn finish(&mut self, blocks: usize) -> Result<(), Error> {
        let since = u64::from(self.blocks_since_eviction) + blocks as u64;
        let period = u64::from(self.params.evict_period);
        self.blocks_since_eviction = (since % period) as u32;
        self.evict_all(since / period)
    }

    /// Makes `evictions` evictions in every tree.
    pub(super) fn evict_all(&mut self, evictions: u64) -> Result<(), Error> {
        if evictions > 0 {
            (0..self.subs.len()).try_for_each(|at| self.batch_evict(at, evictions))?;
        }
        self.evictions += evictions;
        Ok(())
    }

    /// `BatchEvict`: reads the next `evictions` paths of a tree, and writes them with as many
    /// blocks as fit, filling buckets from the leaves up. Drops stale copies and forgotten blocks.
    fn batch_evict(&mut self, at: usize, evictions: u64) -> Result<(), Error> {
        let Self { subs, held, arena, live, store, geometry, params, evictions: g, .. } = self;
        let g = *g;
        let sub = &mut subs[at];
        let run = Run::of_evictions(g, evictions, geometry);
        let (mut blocks, mut seen, mut in_transit) = (Vec::new(), BTreeSet::new(), 0);
        let SubOram { tree, positions, .. } = sub;
        tree.read(store, g, run, arena, &mut |arena, address, leaf| {
            let place = arena.in_transit(in_transit);
            in_transit += 1;
            let counts = address != Entry::DUMMY_ADDRESS
                && live.contains(address)
                && positions.of_block(address) == leaf
                && !held.is_awaited_by(address, at);
            if counts && seen.insert(address) {
                // The client may hold the block for another tree.
                let place = held.place(address).unwrap_or(place);
                blocks.push(Entry { address, leaf, place });
            }
            Some(place)
        })?;
        let leaves = (0..evictions).map(|more| Leaf((run.first.0 + more) % geometry.leaves()));
        for address in leaves.flat_map(|leaf| sub.waiting_for(leaf)) {
            if let Some(place) = held.place(address) {
                blocks.push(Entry { address, leaf: sub.positions.of_block(address), place });
            }
        }
        let levels = sub.tree.levels();
        let (buckets, stuck) = place_blocks(blocks, levels, (g, evictions), params.slots);
        let dummy = Entry::dummy(arena.zero());
        let filled = |bucket: BucketId| {
            let mut entries = buckets.get(&bucket).cloned().unwrap_or_default();
            entries.resize(params.slots.into(), dummy);
            entries
        };
        sub.tree.write(store, (g, evictions), arena, &filled)?;
        for entry in buckets.values().flatten() {
            if held.is_awaited_by(entry.address, at) {
                sub.forget_waiting(entry.address);
                held.set_evicted(entry.address, at, arena);
            }
        }
        for entry in stuck {
            if held.place(entry.address).is_none() {
                let place = arena.make_permanent(entry.place);
                held.hold(entry.address, place);
            }
            held.set_awaited(entry.address, at);
            sub.await_eviction(entry.address);
        }
        Ok(())
    }
}

/// Places blocks greedily, from the leaves up, into the buckets of the `evictions` evictions that
/// start with `g`. Returns the blocks of each bucket, and the blocks for which no bucket had room.
fn place_blocks(
    mut blocks: Vec<Entry>,
    levels: impl DoubleEndedIterator<Item = u8>,
    (g, evictions): (u64, u64),
    slots: u16,
) -> (HashMap<BucketId, Vec<Entry>>, Vec<Entry>) {
    let mut buckets: HashMap<BucketId, Vec<Entry>> = HashMap::new();
    for level in levels.rev() {
        blocks.retain(|entry| {
            let bucket = BucketId::on_path(entry.leaf, level);
            // The index in the batch of the first eviction that writes the bucket.
            let after_first = bucket.index().wrapping_sub(g) & ((1 << level) - 1);
            let has_room = after_first < evictions
                && buckets.get(&bucket).is_none_or(|held| held.len() < usize::from(slots));
            if has_room {
                buckets.entry(bucket).or_default().push(*entry);
            }
            !has_room
        });
    }
    (buckets, blocks)
}
