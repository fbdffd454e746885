//! A durable array of blocks over any durable scheme: the commit protocol of
//! `docs/adr/0005-commit-protocol.md`.

use std::collections::BTreeSet;
use std::ops::Range;

use oblivio_core::durable::{AnyStore, Durable, EraStart, Room, Want};
use oblivio_core::store::{BucketStore, TreeId, TreeShape};
use oblivio_core::{Access, HitPolicy, MasterKey, Op};
use zeroize::Zeroizing;

use crate::anchor;
use crate::announced;
use crate::coins::Coins;
use crate::error::{VolumeError, VolumeErrorKind};
use crate::keys::VolumeKey;
use crate::ledger::{self, IsClean, Last, Ledger, LedgerKeys, Live, Opening, Past};
use crate::newest;
use crate::state::record::{self, LoggedPlan, Record};
use crate::state_dir::StateDir;
use crate::superblock::{self, Superblock, Unlocked, VolumeParams};
use crate::tampering;

/// The tree of the store that is the scheme's first.
pub const FIRST_TREE: TreeId = TreeId(2);

/// Which trees of the store are the scheme's, if it has so many. The first has a superblock before and after it.
pub(crate) fn trees(count: usize) -> Vec<TreeId> {
    [FIRST_TREE].into_iter().chain((4..).map(TreeId)).take(count).collect()
}

/// When the moves of accesses become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMoves {
    /// Before storage sees the first path of a batch. A power loss then never links two accesses.
    BeforeReads,
    /// With the next flush. Faster on media with slow syncs; what it leaks after a power loss is in
    /// the threat model.
    AtFlush,
}

/// How a volume is run. Nothing of it is stored.
#[derive(Clone, Copy, Debug)]
pub struct VolumeOptions {
    /// When the moves of accesses become durable.
    pub sync_moves: SyncMoves,
    /// As many bytes may come into a state file after its snapshot before another replaces it.
    pub state_file_bytes_max: u64,
    /// Whether a block that the client finds by its address is accessed all the same. If it is not,
    /// storage sees how often blocks are asked for again, and the accesses that are left follow the
    /// evictions before them more often than chance has it: at a fixed rate, too.
    pub hits: HitPolicy,
    /// Open a volume whose storage was found to be changed when it was last used: the owner says that it
    /// holds again what it held.
    pub after_tampering: bool,
}

impl Default for VolumeOptions {
    fn default() -> Self {
        Self {
            sync_moves: SyncMoves::BeforeReads,
            state_file_bytes_max: 64 << 20,
            hits: HitPolicy::Access,
            after_tampering: false,
        }
    }
}

/// What was done when a volume was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// It had not been closed.
    pub was_needed: bool,
    /// Accesses that were made again.
    pub accesses: u64,
    /// Bytes at the end of the client's state that do not open, and were left out. A crash tears off
    /// what had not been synced; otherwise the directory is damaged.
    pub state_bytes_ignored: u64,
    /// Anchors that were damaged, or torn by a crash. They are written again.
    pub anchors_damaged: usize,
    /// Copies of the superblock that were damaged, and written again.
    pub superblocks_mended: usize,
}

/// What storage must have room for: the trees of a volume, `TreeId(0)` first.
///
/// # Errors
/// [`VolumeErrorKind::InvalidConfig`] when the parameters contradict each other.
pub fn shapes(params: &VolumeParams) -> Result<Vec<TreeShape>, VolumeError> {
    let of_scheme = params.config()?.shapes()?;
    let superblocks = superblock::copies::shape;
    let (first, others) = of_scheme.split_at(of_scheme.len().min(1));
    let around = |middle: &[TreeShape]| [&[superblocks(), anchor::shape()], middle].concat();
    Ok([&around(first)[..], &[superblocks()], others].concat())
}

/// Whether the volume was not closed when it was last used, and will be recovered when it is opened.
/// Looks at the client's directory alone.
///
/// # Errors
/// When the directory has no state of this volume, or knows of a newer superblock.
pub fn needs_recovery(dir: &dyn StateDir, owner: &Unlocked) -> Result<bool, VolumeError> {
    let Unlocked { superblock, volume_key, .. } = owner;
    let keys = LedgerKeys::new(volume_key);
    let past = Past::read(dir, &keys, &superblock.volume_id())?;
    newest::check(dir, owner)?;
    Ok(!past.history.head.is_clean || past.history.pending.is_any())
}

/// A durable array of blocks. One thread uses it; [`Disk`](crate::disk::Disk) serves many.
///
/// After any error but [`VolumeErrorKind::InvalidRequest`] it answers nothing more: open it again.
pub struct Volume {
    live: Live,
    /// Bytes of a block, and how many there are. Public.
    block_bytes: usize,
    blocks: u64,
    ledger: Ledger,
    options: VolumeOptions,
    /// Something failed half way.
    is_broken: bool,
}

impl Volume {
    /// Makes a volume of an empty store and an empty directory. It exists once its superblock does,
    /// which is written last.
    ///
    /// # Errors
    /// Any. What was made so far is worthless then.
    pub fn create(
        store: impl BucketStore + Send + 'static,
        dir: Box<dyn StateDir>,
        owner: &Unlocked,
        options: VolumeOptions,
        coins: impl Into<Coins>,
    ) -> Result<Self, VolumeError> {
        let Unlocked { superblock, volume_key: key, .. } = owner;
        let config = superblock.params().config()?;
        let mut coins = coins.into();
        let trees = trees(config.shapes()?.len());
        let array = config.create(seal_key(key), &trees, Box::new(store), &mut coins)?;
        let mut live = Live { array, coins };
        let opening = opening(superblock, &options, false);
        let mut ledger = Ledger::create(dir, LedgerKeys::new(key), opening, &mut live)?;
        // No crash leaves a volume whose client does not know its superblock.
        newest::record(&mut *ledger.dir, owner)?;
        superblock::copies::write_copies(live.array.store_mut(), superblock)?;
        Ok(Self::new(live, ledger, options))
    }

    fn new(live: Live, ledger: Ledger, options: VolumeOptions) -> Self {
        let (blocks, block_bytes) = (live.array.blocks(), live.array.block_bytes());
        Self { live, block_bytes, blocks, ledger, options, is_broken: false }
    }

    /// Opens a volume, and recovers it if it was not closed.
    ///
    /// # Errors
    /// Any. Nothing is lost by an opening that fails.
    pub fn open(
        mut store: impl BucketStore + Send + 'static,
        mut dir: Box<dyn StateDir>,
        owner: &Unlocked,
        options: VolumeOptions,
        coins: impl Into<Coins>,
    ) -> Result<(Self, Recovery), VolumeError> {
        let Unlocked { superblock, volume_key: key, .. } = owner;
        let volume_id = superblock.volume_id();
        let config = superblock.params().config()?;
        let keys = LedgerKeys::new(key);
        let past = Past::read(&*dir, &keys, &volume_id)?;
        past.make_durable(&mut *dir)?;
        newest::check(&*dir, owner)?;
        let (shown, anchors_damaged) = anchor::look(&mut store, &keys.anchor)?;
        let known = past.known(&*dir, &keys)?;
        let shown = known.check(shown)?;
        let mut history = past.history;
        let array = history.array(&*config, seal_key(key), Box::new(store))?;
        let mut live = Live { array, coins: coins.into() };
        // Up to here nothing was written to storage: what the right directory needs is still there.
        history
            .refuse_if_behind(&mut *live.array, options.after_tampering)
            .inspect_err(|error| tampering::note(&mut *dir, error))?;
        tampering::check(&*dir, options.after_tampering)?;
        let announced = ledger::announce(&mut *dir, &keys.anchor, &known, &shown, &mut live)?;
        // What is written from here on is not what was lost.
        live.array.begin_era(EraStart::Opening, &mut live.coins);
        let mut recovery = Recovery {
            was_needed: !history.head.is_clean,
            state_bytes_ignored: history.bytes_ignored,
            anchors_damaged,
            ..Recovery::default()
        };
        let repeated = history.each_pending(|record| {
            recovery.accesses += repeat(&mut *live.array, record)?;
            Ok(())
        });
        repeated.inspect_err(|error| tampering::note(&mut *dir, error))?;
        live.array.flush()?;
        recovery.superblocks_mended = newest::adopt(live.array.store_mut(), &mut *dir, owner)?;
        let last = Last { generation: past.generation, shown: announced };
        let opening = opening(superblock, &options, history.head.may_lose_moves);
        let mut ledger = Ledger::resume(dir, keys, opening, last, &mut live)?;
        announced::forget(&mut *ledger.dir)?;
        tampering::forget(&mut *ledger.dir)?;
        Ok((Self::new(live, ledger, options), recovery))
    }

    /// How many blocks it holds. Public.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Bytes of a block. Public.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Serves accesses in order. They survive a crash once [`Self::flush`] has returned. Blocks of the
    /// position map that they need are accesses of their own.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidRequest`] before anything is touched; any other breaks the volume.
    pub fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), VolumeError> {
        self.check_sound()?;
        self.check_requests(batch)?;
        self.unless_broken(|volume| {
            let mut rest = batch;
            while let Some(first) = rest.first_mut() {
                if volume.serve_on_client(first)? {
                    rest = &mut rest[1..];
                    continue;
                }
                let fitting = volume.make_room(rest.len())?;
                let mut addresses = vec![rest[0].address];
                for request in &rest[1..fitting] {
                    if volume.finds_on_client(request.address)? {
                        break;
                    }
                    addresses.push(request.address);
                }
                let needed = volume.live.array.needs(&addresses)?;
                if needed.is_empty() {
                    let (window, later) = rest.split_at_mut(addresses.len());
                    volume.access_window(window)?;
                    rest = later;
                } else {
                    volume.fetch(&needed)?;
                }
            }
            Ok(())
        })
    }

    /// Says that the blocks of a range have no contents any more: they read as zeros. Storage sees
    /// nothing of it, but for a checkpoint when there is no [`Self::has_room_to_forget`], and for the
    /// accesses to blocks of the position map that the range covers in part.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidRequest`] for a range that is none; any other breaks the volume.
    pub fn forget(&mut self, range: Range<u64>) -> Result<(), VolumeError> {
        self.check_sound()?;
        self.check_range(&range)?;
        self.unless_broken(|volume| {
            loop {
                let needed = volume.live.array.needs_to_forget(range.clone())?;
                if needed.is_empty() {
                    break;
                }
                let fitting = volume.make_room(needed.len())?;
                volume.fetch(&needed[..fitting])?;
            }
            if !volume.has_room_to_forget() {
                volume.checkpoint()?;
            }
            volume.ledger.forget(&range)?;
            Ok(volume.live.array.forget(range)?)
        })
    }

    fn check_range(&self, range: &Range<u64>) -> Result<(), VolumeError> {
        if range.start <= range.end && range.end <= self.blocks() {
            return Ok(());
        }
        let message = "the range goes past the end of the volume";
        Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message))
    }

    /// Whether storage sees nothing of the next [`Self::forget`]. If not, the next checkpoint, to
    /// which accesses lead, makes room.
    pub fn has_room_to_forget(&self) -> bool {
        !self.ledger.has_many_forgets(self.options.state_file_bytes_max)
    }

    /// Makes exactly so many accesses, whatever there is to do. As many of `batch` are served, in order,
    /// as have their positions on the client; what the others need of the position map is fetched, and
    /// of what `positions` names; the rest are accesses to nothing. Answers which were served.
    ///
    /// No more is fetched than stays on the client until the next time: see
    /// [`Self::fetches_at_once_max`].
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidRequest`] before anything is touched; any other breaks the volume.
    pub(crate) fn access_exactly(
        &mut self,
        batch: &mut [Access<'_>],
        positions: &[u64],
        accesses: usize,
    ) -> Result<Vec<bool>, VolumeError> {
        self.check_sound()?;
        self.check_requests(batch)?;
        self.unless_broken(|volume| {
            let mut served = vec![false; batch.len()];
            let mut fetches_left = volume.fetches_at_once_max();
            let mut left = accesses;
            while left > 0 {
                let fitting = volume.make_room(left)?;
                let mut fetches = BTreeSet::new();
                let (mut wanted, mut ops) = (Vec::new(), Vec::new());
                for (request, served) in batch.iter_mut().zip(&mut served) {
                    *served = *served || volume.serve_on_client(request)?;
                    if *served || wanted.len() == fitting {
                        continue;
                    }
                    match volume.live.array.needs(&[request.address])?.first() {
                        Some(block) => {
                            fetches.insert(*block);
                        }
                        None => {
                            wanted.push(Want::Block(request.address));
                            ops.push(request.op.reborrow());
                            *served = true;
                        }
                    }
                }
                let absent = |block: &&u64| !volume.live.array.holds_position(**block);
                fetches.extend(positions.iter().filter(absent));
                let fetches = fetches.into_iter().take(fetches_left.min(fitting - wanted.len()));
                wanted.extend(fetches.map(Want::Position));
                fetches_left -= wanted.len() - ops.len();
                wanted.resize(fitting, Want::Nothing);
                ops.extend(nothing_to_do(fitting - ops.len()));
                volume.carry_out(&wanted, &mut ops)?;
                left -= fitting;
            }
            Ok(served)
        })
    }

    /// As many blocks of the position map as can be fetched together and are still there when what they
    /// were fetched for is accessed.
    pub(crate) fn fetches_at_once_max(&self) -> usize {
        self.live.array.window_accesses_max()
    }

    /// The most accesses that a request for one block can take. Public.
    pub(crate) fn accesses_per_block_max(&self) -> usize {
        1 + self.live.array.position_levels()
    }

    /// The blocks of the position map without which a range cannot be forgotten, and that have to be
    /// accessed for it.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidRequest`] for a range that is none.
    pub(crate) fn needs_to_forget(&self, range: Range<u64>) -> Result<Vec<u64>, VolumeError> {
        self.check_range(&range)?;
        Ok(self.live.array.needs_to_forget(range)?)
    }

    /// Returns once everything that was asked before survives a crash.
    ///
    /// # Errors
    /// Any, and it breaks the volume.
    pub fn flush(&mut self) -> Result<(), VolumeError> {
        self.check_sound()?;
        self.unless_broken(|volume| Ok(volume.ledger.log.sync()?))
    }

    /// Ends the use of the volume: there will be nothing to recover.
    ///
    /// # Errors
    /// Any. What was flushed is safe all the same.
    pub fn close(mut self) -> Result<AnyStore, VolumeError> {
        self.check_sound()?;
        self.unless_broken(|volume| {
            let bytes_max = volume.options.state_file_bytes_max;
            volume.ledger.checkpoint(&mut volume.live, IsClean(true), bytes_max)?;
            Ok(volume.live.array.flush()?)
        })?;
        Ok(self.live.array.into_store())
    }

    /// Whether some block may have contents; if not, nothing can be lost by writing to any of them. Where
    /// the position map lies in the tree, this says so of every volume that was ever read: the blocks of
    /// the map are not fetched to ask them. Secret.
    pub fn may_hold_contents(&self) -> bool {
        self.live.array.may_hold_contents()
    }

    /// Reads all of storage, and checks that it is what was written last and that every block is
    /// there. `progress` is told how many of [`Self::buckets_in_storage`] have been read. Returns how
    /// many blocks hold something.
    ///
    /// # Errors
    /// [`VolumeErrorKind::Tampered`] for the first thing that is not as it was left.
    pub fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, VolumeError> {
        self.check_sound()?;
        self.unless_broken(|volume| Ok(volume.live.array.check(progress)?))
    }

    /// Buckets in storage. Public.
    pub fn buckets_in_storage(&self) -> u64 {
        self.live.array.buckets_in_storage()
    }

    /// Bytes of client memory for the position map.
    pub fn position_map_bytes(&self) -> usize {
        self.live.array.position_map_bytes()
    }

    fn check_sound(&self) -> Result<(), VolumeError> {
        if self.is_broken {
            let message = "an earlier operation failed half way: open the volume again";
            return Err(VolumeError::new(VolumeErrorKind::MustReopen, message));
        }
        Ok(())
    }

    /// Whatever fails here leaves the volume broken.
    fn unless_broken<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        self.is_broken = true;
        let done = work(self).inspect_err(|error| self.ledger.note_tampering(error))?;
        self.is_broken = false;
        Ok(done)
    }

    fn check_requests(&self, batch: &[Access<'_>]) -> Result<(), VolumeError> {
        let (capacity, block_bytes) = (self.blocks(), self.block_bytes());
        let fits = |request: &Access<'_>| match &request.op {
            Op::Read(buffer) => buffer.len() == block_bytes,
            Op::Write(data) => data.len() == block_bytes,
            // The log keeps what a write brings; it cannot keep a function.
            Op::Update(_) => false,
        };
        if batch.iter().all(|request| request.address < capacity && fits(request)) {
            return Ok(());
        }
        let message = "a request is past the end, not of one block, or an update";
        Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message))
    }

    /// Makes it possible to begin accesses, and says how many of `wanted`.
    fn make_room(&mut self, wanted: usize) -> Result<usize, VolumeError> {
        loop {
            let Room { accesses, evictions, must_evict } = self.live.array.room()?;
            if accesses == 0 || must_evict && evictions == 0 {
                self.checkpoint()?;
            }
            if must_evict {
                self.ledger.before_accesses(&mut self.live)?;
                self.ledger.log.append(|out| Record::Evict.put(out))?;
                self.sync_moves()?;
                self.live.array.evict()?;
            } else if accesses > 0 {
                let fitting = wanted.min(self.live.array.window_accesses_max());
                return Ok(fitting.min(usize::try_from(accesses).unwrap_or(usize::MAX)));
            }
        }
    }

    fn access_window(&mut self, window: &mut [Access<'_>]) -> Result<(), VolumeError> {
        let wanted: Vec<_> = window.iter().map(|request| Want::Block(request.address)).collect();
        let mut ops: Vec<_> = window.iter_mut().map(|request| request.op.reborrow()).collect();
        self.carry_out(&wanted, &mut ops)
    }

    /// Accesses blocks of the position map, so that what they are needed for can be accessed.
    fn fetch(&mut self, needed: &[u64]) -> Result<(), VolumeError> {
        let wanted: Vec<_> = needed.iter().copied().map(Want::Position).collect();
        self.carry_out(&wanted, &mut nothing_to_do(wanted.len()))
    }

    /// Serves a request without an access, if the client finds its block by its address and may. Only
    /// what it writes is logged.
    fn serve_on_client(&mut self, request: &mut Access<'_>) -> Result<bool, VolumeError> {
        if !self.finds_on_client(request.address)? {
            return Ok(false);
        }
        if let Op::Write(data) = &request.op {
            let address = request.address;
            self.ledger.log.append(|out| record::put_in_place(out, address, data))?;
        }
        Ok(self.live.array.serve_on_client(request.address, &mut request.op)?)
    }

    fn finds_on_client(&mut self, address: u64) -> Result<bool, VolumeError> {
        match self.options.hits {
            HitPolicy::Access => Ok(false),
            HitPolicy::Serve => {
                Ok(self.live.array.serve_on_client(address, &mut Op::Update(&mut |_| ()))?)
            }
        }
    }

    /// Plans accesses, logs them, and makes them.
    fn carry_out(&mut self, wanted: &[Want], ops: &mut [Op<'_>]) -> Result<(), VolumeError> {
        let plan = self.live.array.plan(wanted, &mut self.live.coins)?;
        self.ledger.before_accesses(&mut self.live)?;
        let writes = ops.iter().map(|op| match op {
            Op::Write(data) if !data.is_empty() => Some(*data),
            _ => None,
        });
        self.ledger.log.append(|out| record::put_accesses(out, &plan, writes))?;
        self.sync_moves()?;
        Ok(self.live.array.carry_out(&plan, ops)?)
    }

    /// Storage is about to see what the log holds.
    fn sync_moves(&mut self) -> Result<(), VolumeError> {
        match self.options.sync_moves {
            SyncMoves::BeforeReads => Ok(self.ledger.log.sync()?),
            SyncMoves::AtFlush => Ok(()),
        }
    }

    fn checkpoint(&mut self) -> Result<(), VolumeError> {
        self.ledger.checkpoint(&mut self.live, IsClean(false), self.options.state_file_bytes_max)
    }
}

fn opening(
    superblock: &Superblock,
    options: &VolumeOptions,
    may_follow_lost_moves: bool,
) -> Opening {
    let (volume_id, sync_moves) = (superblock.volume_id(), options.sync_moves);
    Opening { volume_id, sync_moves, may_follow_lost_moves }
}

pub(crate) fn seal_key(key: &VolumeKey) -> MasterKey {
    MasterKey::from_bytes(*key.derive("buckets"))
}

/// Does again what a record says, and counts the accesses.
fn repeat(array: &mut dyn Durable, record: Record) -> Result<u64, VolumeError> {
    match record {
        Record::Accesses(LoggedPlan { plan, writes }) => {
            let block = Zeroizing::new(vec![0; array.block_bytes()]);
            let mut nowhere = vec![block; writes.len()];
            let ops = writes.iter().zip(&mut nowhere).map(|(data, nowhere)| {
                data.as_ref().map_or(Op::Read(nowhere), |data| Op::Write(data))
            });
            array.carry_out(&plan, &mut ops.collect::<Vec<_>>())?;
            Ok(plan.accesses() as u64)
        }
        Record::Forget { start, end } => array.forget(start..end).map(|()| 0).map_err(Into::into),
        Record::Evict => array.evict().map(|()| 0).map_err(Into::into),
        Record::InPlace { address, data } => {
            if array.serve_on_client(address, &mut Op::Write(&data))? {
                return Ok(0);
            }
            let message = "the client's state tells of a block on the client that is not there: it is \
                           damaged. Restore the directory as it was";
            Err(VolumeError::new(VolumeErrorKind::StateDamaged, message))
        }
        _ => unreachable!("a history keeps nothing else to be done again"),
    }
}

/// Operations for accesses to what is no block.
fn nothing_to_do<'a>(accesses: usize) -> Vec<Op<'a>> {
    (0..accesses).map(|_| Op::Write(&[])).collect()
}

#[cfg(test)]
mod tests;
