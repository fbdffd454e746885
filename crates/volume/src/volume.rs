//! A durable array of blocks over any durable scheme: the commit protocol of ADR 5 of the
//! repository.

mod opening;
mod ranges;
mod reads;
mod window;

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use oblivio_core::durable::{AnyStore, ArrayFacts, PositionUse, Want};
use oblivio_core::store::{LevelShape, TreeId, TreeShape};
use oblivio_core::{Access, HitPolicy, Op};

use self::reads::BegunReads;
use self::window::ignored_ops;
use crate::anchor;
use crate::error::{VolumeError, VolumeErrorKind};
use crate::insight::Insight;
use crate::ledger::{IsClean, Ledger, LiveArray};
use crate::superblock::{self, VolumeParams};

pub(crate) use self::opening::explain_records_error;
pub(crate) use self::opening::match_records;
pub use self::opening::{Recovery, explain_rollback, needs_recovery, seal_key};
pub use self::ranges::Extent;

/// The first tree of the scheme in the store.
pub const FIRST_TREE: TreeId = TreeId(2);

/// The ids of the scheme's `count` trees. In the store, the trees of superblocks lie before and
/// after the first of them.
pub(crate) fn trees(count: usize) -> Vec<TreeId> {
    trees_of_scheme().take(count).collect()
}

/// The ids of all trees that can belong to the scheme; a scheme uses the first ones. The other
/// trees hold records of the volume.
pub fn trees_of_scheme() -> impl Iterator<Item = TreeId> {
    [FIRST_TREE].into_iter().chain((4..).map(TreeId))
}

/// The point at which the moves of accesses become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMoves {
    /// Moves become durable before storage sees the first path of a batch. A power loss then never
    /// links two accesses.
    BeforeReads,
    /// Moves become durable with the next flush. Faster on media with slow syncs; the threat model
    /// states what this leaks after a power loss.
    AtFlush,
}

/// The length of the data that the client writes into its directory. Storage cannot read this data,
/// but sees how long the writes take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// The data is as short as possible. Its length reveals the number of accesses that wrote, and
    /// the number of blocks on the client.
    Needed,
    /// Padded: the length depends only on the numbers of accesses, evictions, openings, checkpoints
    /// and forgotten ranges and, with [`HitPolicy::Serve`], of blocks written on the client. Each
    /// checkpoint begins a new state file.
    Constant,
}

/// Options of a volume in use. They are not stored.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct VolumeOptions {
    /// The point at which the moves of accesses become durable.
    pub sync_moves: SyncMoves,
    /// The length of writes to the client's directory. A [`Disk`](crate::disk::Disk) at a fixed
    /// rate switches to [`Lengths::Constant`] when it starts. Set it here to cover the opening too.
    pub lengths: Lengths,
    /// A checkpoint begins a new state file if the current one is longer than twice its snapshot
    /// plus this number of bytes, or its records of forgotten ranges exceed this number of bytes.
    pub state_file_bytes_max: u64,
    /// Whether a request for a block that the client finds by its address makes an access anyway.
    /// If not, storage sees how often blocks are requested again. The remaining accesses then
    /// correlate with earlier evictions, also at a fixed rate: see [`HitPolicy::Serve`].
    pub hits: HitPolicy,
    /// Whether to open a volume whose storage was found to be changed when it was last used. The
    /// owner thereby states that storage was restored.
    pub after_tampering: bool,
    /// Called to warn the owner of a problem that the volume tolerates, but should not for long.
    /// Messages hold no secret.
    pub warn: fn(&str),
}

impl VolumeOptions {
    /// Sets [`sync_moves`](Self::sync_moves).
    #[must_use]
    pub const fn with_sync_moves(self, sync_moves: SyncMoves) -> Self {
        Self { sync_moves, ..self }
    }

    /// Sets [`lengths`](Self::lengths).
    #[must_use]
    pub const fn with_lengths(self, lengths: Lengths) -> Self {
        Self { lengths, ..self }
    }

    /// Sets [`state_file_bytes_max`](Self::state_file_bytes_max).
    #[must_use]
    pub const fn with_state_file_bytes_max(self, state_file_bytes_max: u64) -> Self {
        Self { state_file_bytes_max, ..self }
    }

    /// Sets [`hits`](Self::hits).
    #[must_use]
    pub const fn with_hits(self, hits: HitPolicy) -> Self {
        Self { hits, ..self }
    }

    /// Sets [`after_tampering`](Self::after_tampering).
    #[must_use]
    pub const fn with_after_tampering(self, after_tampering: bool) -> Self {
        Self { after_tampering, ..self }
    }

    /// Sets [`warn`](Self::warn).
    #[must_use]
    pub const fn with_warn(self, warn: fn(&str)) -> Self {
        Self { warn, ..self }
    }
}

impl Default for VolumeOptions {
    fn default() -> Self {
        Self {
            sync_moves: SyncMoves::BeforeReads,
            lengths: Lengths::Needed,
            state_file_bytes_max: 64 << 20,
            hits: HitPolicy::Access,
            after_tampering: false,
            warn: |_| (),
        }
    }
}

/// The shapes of the trees of a volume, `TreeId(0)` first.
///
/// # Errors
/// The errors of [`VolumeParams::config`].
pub fn shapes(params: &VolumeParams) -> Result<Vec<TreeShape>, VolumeError> {
    let of_scheme = params.config()?.shapes()?;
    let superblocks = superblock::copies::shape;
    let mut of_scheme = of_scheme.into_iter();
    // The scheme's first tree keeps its place even if the scheme has no tree.
    let first =
        of_scheme.next().unwrap_or_else(|| TreeShape::new(vec![LevelShape::of_heads(0, 0)]));
    let records = [superblocks(), anchor::shape(), first, superblocks()];
    Ok(records.into_iter().chain(of_scheme).collect())
}

/// A durable array of blocks. One thread uses it; [`Disk`](crate::disk::Disk) serves many.
///
/// After any error except [`VolumeErrorKind::InvalidRequest`], the volume fails all further
/// operations and must be opened again.
pub struct Volume {
    live: LiveArray,
    facts: ArrayFacts,
    ledger: Ledger,
    options: VolumeOptions,
    /// Reads that have begun and are not finished, the oldest first.
    begun: VecDeque<BegunReads>,
    /// Whether the stash was seen over its bound. An eviction ahead of schedule then comes before
    /// the next access.
    owes_eviction: bool,
    insight: Insight,
    /// Whether an operation failed halfway.
    is_broken: bool,
}

impl Volume {
    /// The number of blocks. Public.
    pub fn blocks(&self) -> u64 {
        self.facts.blocks
    }

    /// Bytes of a block. Public.
    pub fn block_bytes(&self) -> usize {
        self.facts.block_bytes
    }

    /// Counts of the volume's accesses and stash, for its owner to watch. Secret.
    pub fn insight(&self) -> Insight {
        self.insight.clone()
    }

    /// Switches to [`Lengths::Constant`] for writes to the client's directory.
    pub(crate) fn keep_lengths_constant(&mut self) {
        self.ledger.keep_lengths_constant();
    }

    /// Serves accesses in order. They survive a crash once [`Self::flush`] has returned. Blocks of
    /// the position map that they need take accesses of their own.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidRequest`] before anything is touched; any other breaks the volume.
    pub fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), VolumeError> {
        self.check_not_broken()?;
        self.check_nothing_begun()?;
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
                let needed = volume.missing_positions(PositionUse::Access(&addresses))?;
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

    /// Forgets the contents of a range of blocks, which then read as zeros. Storage sees only a
    /// checkpoint, if there is no [room](Self::has_room_to_forget), and the accesses to blocks of
    /// the position map that the range covers in part. Reads begun earlier return the old contents.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidRequest`] for an invalid range, and if there is no room and reads
    /// were begun; any other breaks the volume.
    pub fn forget(&mut self, range: Range<u64>) -> Result<(), VolumeError> {
        self.check_not_broken()?;
        if !self.has_room_to_forget() {
            self.check_nothing_begun()?;
        }
        self.check_range(&range)?;
        self.unless_broken(|volume| {
            loop {
                let needed = volume.missing_positions(PositionUse::Forget(range.clone()))?;
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
            match volume.begun.back_mut() {
                // The log also has the range after the moves of these reads.
                Some(reads) => reads.forgets_after.push(range),
                None => volume.live.array.forget(range)?,
            }
            Ok(())
        })
    }

    fn check_range(&self, range: &Range<u64>) -> Result<(), VolumeError> {
        if range.start <= range.end && range.end <= self.blocks() {
            return Ok(());
        }
        let message = "the range goes past the end of the volume";
        Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message))
    }

    /// Whether the next [`Self::forget`] causes no checkpoint. If it would, the next checkpoint
    /// makes room.
    pub fn has_room_to_forget(&self) -> bool {
        !self.ledger.has_many_forgets(self.options.state_file_bytes_max)
    }

    /// Makes exactly `accesses` accesses. Serves the first requests of `batch` whose positions are
    /// on the client. Fetches the position map blocks for the other requests and those in
    /// `positions`. The remaining accesses are dummies. Returns which requests were served.
    ///
    /// It fetches no more than stays on the client until the next call: see
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
        self.check_not_broken()?;
        self.check_nothing_begun()?;
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
                    let usage = PositionUse::Access(&[request.address]);
                    match volume.missing_positions(usage)?.first() {
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
                wanted.resize(fitting, Want::Dummy);
                ops.extend(ignored_ops(fitting - ops.len()));
                volume.carry_out(&wanted, &mut ops)?;
                left -= fitting;
            }
            Ok(served)
        })
    }

    /// Maximum number of blocks of the position map that can be fetched together and are still on
    /// the client when the blocks that they map are accessed.
    pub(crate) fn fetches_at_once_max(&self) -> usize {
        self.facts.window_accesses_max
    }

    /// Maximum number of accesses that a request for one block can take. Public.
    pub(crate) fn accesses_per_block_max(&self) -> usize {
        1 + self.facts.position_levels
    }

    /// The blocks of the position map that must be accessed before a range can be forgotten.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidRequest`] for an invalid range.
    pub(crate) fn missing_positions_to_forget(
        &self,
        range: Range<u64>,
    ) -> Result<Vec<u64>, VolumeError> {
        self.check_range(&range)?;
        self.missing_positions(PositionUse::Forget(range))
    }

    /// The blocks of the position map to fetch first. If all positions are on the client, looks
    /// nothing up.
    fn missing_positions(&self, usage: PositionUse<'_>) -> Result<Vec<u64>, VolumeError> {
        match self.facts.position_levels {
            0 => Ok(Vec::new()),
            _ => Ok(self.live.array.missing_positions(usage)?),
        }
    }

    /// Returns once all earlier accesses survive a crash.
    ///
    /// # Errors
    /// Any error breaks the volume.
    pub fn flush(&mut self) -> Result<(), VolumeError> {
        self.check_not_broken()?;
        self.unless_broken(|volume| Ok(volume.ledger.log.sync()?))
    }

    /// Closes the volume and returns its store. The next opening needs no recovery.
    ///
    /// # Errors
    /// Any kind of error. Flushed data is still safe.
    pub fn close(mut self) -> Result<AnyStore, VolumeError> {
        self.check_not_broken()?;
        self.finish_all_reads()?;
        self.unless_broken(|volume| {
            let bytes_max = volume.options.state_file_bytes_max;
            volume.ledger.checkpoint(&mut volume.live, IsClean(true), bytes_max)?;
            Ok(volume.live.array.flush()?)
        })?;
        Ok(self.live.array.into_store())
    }

    /// Whether any block may have contents. If not, writing to the disk destroys nothing. With the
    /// position map in the tree, this is true for every volume that was ever read: the blocks of
    /// the map are not fetched to check. Secret.
    pub fn may_hold_contents(&self) -> bool {
        self.live.array.may_hold_contents()
    }

    /// Reads all buckets that were ever written. Checks that each holds what was last written to
    /// it, and that no block is missing. `progress` is called with the number of buckets read so
    /// far, out of [`Self::buckets_written`]. Returns the number of blocks with contents.
    ///
    /// # Errors
    /// [`VolumeErrorKind::Tampered`] for the first mismatch. [`VolumeErrorKind::InvalidRequest`] if
    /// reads were begun and are not finished. Other kinds if storage fails.
    pub fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, VolumeError> {
        self.check_not_broken()?;
        self.check_nothing_begun()?;
        self.unless_broken(|volume| Ok(volume.live.array.check(progress)?))
    }

    /// The number of buckets in storage. Public.
    pub fn buckets_in_storage(&self) -> u64 {
        self.facts.buckets_in_storage
    }

    /// The number of buckets that were ever written, by the client's own counts. Public.
    pub fn buckets_written(&self) -> u64 {
        self.live.array.buckets_written()
    }

    fn check_not_broken(&self) -> Result<(), VolumeError> {
        if self.is_broken {
            let message = "an earlier operation failed half way: open the volume again";
            return Err(VolumeError::new(VolumeErrorKind::MustReopen, message));
        }
        Ok(())
    }

    /// Runs `work`. If it fails, the volume is broken from then on, and tampering is noted for the
    /// next opening.
    fn unless_broken<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        self.is_broken = true;
        let done = work(self).inspect_err(|error| self.ledger.record_tampering(error))?;
        self.is_broken = false;
        Ok(done)
    }

    /// Whether an operation reads or writes exactly one block.
    fn is_of_one_block(&self, op: &Op<'_>) -> bool {
        match op {
            Op::Read(buffer) => buffer.len() == self.facts.block_bytes,
            Op::Write(data) => data.len() == self.facts.block_bytes,
            // The log keeps the data of a write; it cannot keep a function.
            Op::Update(_) => false,
        }
    }

    fn check_requests(&self, batch: &[Access<'_>]) -> Result<(), VolumeError> {
        let fits = |request: &Access<'_>| {
            request.address < self.blocks() && self.is_of_one_block(&request.op)
        };
        if batch.iter().all(fits) {
            return Ok(());
        }
        let message = "a request is past the end of the volume, is not of one block, or is an \
                       update";
        Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message))
    }
}

#[cfg(test)]
mod tests;
