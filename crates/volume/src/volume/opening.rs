//! Creates, opens and recovers volumes.

use std::collections::VecDeque;

use oblivio_core::durable::{AnyStore, Contents, Durable, DurableConfig, EraStart};
use oblivio_core::scheme::WINDOW_ACCESSES_MAX;
use oblivio_core::store::BucketStore;
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{Access, HitPolicy, MasterKey, Op};
use zeroize::Zeroizing;

use super::{SyncMoves, Volume, VolumeOptions, trees};
use crate::anchor::{self, KnownCheckpoints};
use crate::announced;
use crate::coins::Coins;
use crate::error::{VolumeError, VolumeErrorKind};
use crate::insight::Insight;
use crate::keys::VolumeKey;
use crate::ledger::{self, LastUse, Ledger, LedgerKeys, LiveArray, Opening, SavedState};
use crate::newest;
use crate::state::history::History;
use crate::state::record::{CheckpointName, LoggedPlan, Record};
use crate::state_dir::{SharedDir, StateDir};
use crate::superblock::{self, Superblock, Unlocked};
use crate::tampering;
use crate::wrong_servers::WrongServerList;

/// Counts of what an opening replayed, ignored and repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Whether the volume had not been closed, so that recovery was needed.
    pub was_needed: bool,
    /// Number of accesses that were replayed.
    pub accesses: u64,
    /// Bytes at the end of the client's state that cannot be opened and were ignored. After a
    /// crash, these may be bytes that were not synced; otherwise the directory is damaged.
    pub state_bytes_ignored: u64,
    /// Number of anchors that were damaged or torn by a crash, and were written again.
    pub anchors_damaged: usize,
    /// Number of damaged copies of the superblock that were written again.
    pub superblocks_mended: usize,
}

/// Whether the volume was not closed, and its next opening will recover it. Reads only the client's
/// directory.
///
/// # Errors
/// When the directory cannot be read, has no state of this volume, or names a newer superblock.
pub fn needs_recovery(dir: &dyn StateDir, owner: &Unlocked) -> Result<bool, VolumeError> {
    let Unlocked { superblock, volume_key, .. } = owner;
    let keys = LedgerKeys::new(volume_key);
    let saved = SavedState::read(dir, &keys, &superblock.volume_id())?;
    newest::check(dir, owner)?;
    Ok(!saved.history.head.is_clean || saved.history.pending.is_any())
}

impl Volume {
    /// Creates a volume in an empty store and an empty directory. The volume exists once its
    /// superblock is written, which comes last.
    ///
    /// # Errors
    /// Any error of the store, the directory, the parameters or the options. The store and the
    /// directory may then be unusable.
    pub fn create(
        store: impl BucketStore + Send + 'static,
        dir: Box<dyn StateDir>,
        owner: &Unlocked,
        options: VolumeOptions,
        coins: impl Into<Coins>,
    ) -> Result<Self, VolumeError> {
        Self::create_with(store, dir, owner, options, coins, None)
    }

    /// Creates a volume with contents. If the scheme can
    /// [load](oblivio_core::durable::DurableOram::load) them, storage sees only that there are
    /// contents. Otherwise each block with data is written, and storage sees how many there are.
    ///
    /// # Errors
    /// Any error of [`Self::create`] or of `contents`. The store and the directory may then be
    /// unusable.
    pub fn create_with(
        store: impl BucketStore + Send + 'static,
        dir: Box<dyn StateDir>,
        owner: &Unlocked,
        options: VolumeOptions,
        coins: impl Into<Coins>,
        contents: Option<&mut dyn Contents>,
    ) -> Result<Self, VolumeError> {
        let Unlocked { superblock, volume_key: key, .. } = owner;
        let config = superblock.params().config()?;
        check_sync(&*config, &options)?;
        let mut coins = coins.into();
        let trees = trees(config.shapes()?.len());
        let mut array = config.create(seal_key(key), &trees, Box::new(store), &mut coins)?;
        let dir = SharedDir::new(dir);
        let wrong_servers = WrongServerList::open(dir.clone(), options.warn)?;
        array.keep_wrong_servers(Box::new(wrong_servers));
        let dir = Box::new(dir);
        let to_write = match contents {
            Some(contents) => (!array.load(contents, &mut coins)?).then_some(contents),
            None => None,
        };
        let mut live = LiveArray { array, coins };
        let opening = opening(superblock, &options, false);
        let ledger = Ledger::create(dir, LedgerKeys::new(key), opening, &mut live)?;
        let mut volume = Self::new(live, ledger, options);
        if let Some(contents) = to_write {
            volume.write_all(contents)?;
        }
        // The client knows its superblock before the volume exists, so no crash separates the two.
        newest::record(&mut *volume.ledger.dir, owner)?;
        superblock::copies::write_copies(&mut volume.live.array.records(), superblock)?;
        Ok(volume)
    }

    /// Writes all blocks that have data, in order, and flushes them.
    fn write_all(&mut self, contents: &mut dyn Contents) -> Result<(), VolumeError> {
        let mut data: Vec<_> =
            (0..WINDOW_ACCESSES_MAX).map(|_| WipedBytes::zeros(self.facts.block_bytes)).collect();
        let mut addresses = 0..self.facts.blocks;
        loop {
            let mut batch = Vec::with_capacity(data.len());
            for blank in &mut data {
                // A block without data leaves its buffer to the next one.
                let found = addresses.find_map(|address| {
                    blank.fill(0);
                    match contents.block(address, blank) {
                        Ok(false) => None,
                        Ok(true) => Some(Ok(address)),
                        Err(error) => Some(Err(error)),
                    }
                });
                let Some(address) = found.transpose()? else { break };
                batch.push(Access { address, op: Op::Write(blank) });
            }
            if batch.is_empty() {
                return self.flush();
            }
            self.access(&mut batch)?;
        }
    }

    fn new(live: LiveArray, ledger: Ledger, options: VolumeOptions) -> Self {
        let facts = live.array.facts();
        let insight = Insight::default();
        insight.stash_is(live.array.stash_fill());
        Self {
            live,
            facts,
            ledger,
            options,
            begun: VecDeque::new(),
            owes_eviction: false,
            insight,
            is_broken: false,
        }
    }

    /// Checks that storage and directory belong to one volume and that neither was rolled back, as
    /// [`Self::open`] does. Writes to neither, so another client may use storage meanwhile.
    /// Refuses a directory if storage clearly shows accesses that the directory lacks. Tolerates
    /// unclear evidence, because another client may be in the middle of a write. Storage may change
    /// after this, so the opening checks again.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn check_before_opening(
        store: impl BucketStore + Send + 'static,
        dir: &dyn StateDir,
        owner: &Unlocked,
    ) -> Result<(), VolumeError> {
        let keys = LedgerKeys::new(&owner.volume_key);
        let saved = SavedState::read(dir, &keys, &owner.superblock.volume_id())?;
        let mut matched = match_records(Box::new(store), dir, owner, &keys, saved)?;
        let may_be_half_written = true;
        matched.history.refuse_if_behind(&mut *matched.array, may_be_half_written)
    }

    /// Opens a volume. Recovers it if it was not closed.
    ///
    /// # Errors
    /// Any kind of error. A failed opening loses no data.
    pub fn open(
        store: impl BucketStore + Send + 'static,
        dir: Box<dyn StateDir>,
        owner: &Unlocked,
        options: VolumeOptions,
        coins: impl Into<Coins>,
    ) -> Result<(Self, Recovery), VolumeError> {
        let Unlocked { superblock, volume_key: key, .. } = owner;
        let volume_id = superblock.volume_id();
        let config = superblock.params().config()?;
        check_sync(&*config, &options)?;
        if options.hits == HitPolicy::Serve && !config.may_serve_on_client() {
            let message = format!(
                "volumes of the scheme `{}` serve no block without an access: open them without \
                 that",
                config.scheme()
            );
            return Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message));
        }
        let keys = LedgerKeys::new(key);
        let shared = SharedDir::new(dir);
        let mut dir: Box<dyn StateDir> = Box::new(shared.clone());
        let saved = SavedState::read(&*dir, &keys, &volume_id)?;
        saved.make_durable(&mut *dir)?;
        let generation = saved.generation;
        let matched = match_records(Box::new(store), &*dir, owner, &keys, saved)?;
        let MatchedRecords { known, shown, anchors_damaged, mut history, array } = matched;
        let mut live = LiveArray { array, coins: coins.into() };
        // Nothing was written to storage so far: the right directory can still open the volume.
        history
            .refuse_if_behind(&mut *live.array, options.after_tampering)
            .inspect_err(|error| tampering::record(&mut *dir, error))?;
        tampering::check(&*dir, options.after_tampering)?;
        let found = tampering::found(&*dir)?;
        let wrong_servers = WrongServerList::open(shared, options.warn)?;
        live.array.keep_wrong_servers(Box::new(wrong_servers));
        live.array.check_storage()?;
        let announced = ledger::announce(&mut *dir, &keys.anchor, &known, &shown, &mut live)?;
        // Fresh keys: writes from here on differ from those that a crash lost.
        live.array.begin_era(EraStart::Opening, &mut live.coins);
        let mut recovery = Recovery {
            was_needed: !history.head.is_clean,
            state_bytes_ignored: history.bytes_ignored,
            anchors_damaged,
            ..Recovery::default()
        };
        let replayed = history.each_pending(|record| {
            recovery.accesses += replay(&mut *live.array, record)?;
            Ok(())
        });
        replayed.inspect_err(|error| tampering::record(&mut *dir, error))?;
        live.array.flush()?;
        recovery.superblocks_mended = newest::adopt(&mut live.array.records(), &mut *dir, owner)?;
        let last = LastUse { generation, shown: announced };
        let opening = opening(superblock, &options, history.head.may_lose_moves);
        let mut ledger = Ledger::resume(dir, keys, opening, last, &mut live)?;
        announced::forget(&mut *ledger.dir)?;
        if tampering::is_recorded(&*ledger.dir)? && superblock.params().is_on_servers() {
            (options.warn)(&tampering::warning_of_servers(found.as_deref()));
        }
        tampering::clear(&mut *ledger.dir)?;
        Ok((Self::new(live, ledger, options), recovery))
    }
}

/// Storage and a client's directory whose records match: the records show no rollback of either.
pub(crate) struct MatchedRecords {
    pub(crate) known: KnownCheckpoints,
    /// The checkpoint that storage shows.
    pub(crate) shown: CheckpointName,
    pub(crate) anchors_damaged: usize,
    pub(crate) history: History,
    pub(crate) array: Box<dyn Durable>,
}

/// Compares the superblock and the anchors in storage with the client's directory. Writes nothing.
///
/// # Errors
/// [`StoreRolledBack`](VolumeErrorKind::StoreRolledBack) and the other kinds with which an opening
/// refuses storage or a directory. If storage can explain why its records are old, the error is
/// that explanation.
pub(crate) fn match_records(
    mut store: AnyStore,
    dir: &dyn StateDir,
    owner: &Unlocked,
    keys: &LedgerKeys,
    saved: SavedState,
) -> Result<MatchedRecords, VolumeError> {
    let Unlocked { superblock, volume_key, .. } = owner;
    let config = superblock.params().config()?;
    let is_newest = newest::check(dir, owner);
    let (shown, anchors_damaged) = anchor::read_with_damage(&mut store, &keys.anchor)?;
    let known = saved.known(dir, keys)?;
    let checked = is_newest.and_then(|()| known.check(shown));
    let mut history = saved.history;
    let array = history.array(&*config, seal_key(volume_key), store);
    match (checked, array) {
        (Ok(shown), array) => {
            Ok(MatchedRecords { known, shown, anchors_damaged, history, array: array? })
        }
        (Err(error), Ok(mut array)) => Err(explain_records_error(&mut *array, error)),
        (Err(error), Err(_)) => Err(error),
    }
}

/// Returns storage's explanation of the rollback error `error`, if it has one: missing share
/// servers may hold the newer superblock. Otherwise returns `error`. Writes nothing.
pub fn explain_rollback(
    store: impl BucketStore + Send + 'static,
    dir: &dyn StateDir,
    owner: &Unlocked,
    error: VolumeError,
) -> VolumeError {
    let Unlocked { superblock, volume_key, .. } = owner;
    let array = || {
        let saved = SavedState::read(dir, &LedgerKeys::new(volume_key), &superblock.volume_id())?;
        let (config, mut history) = (superblock.params().config()?, saved.history);
        history.array(&*config, seal_key(volume_key), Box::new(store))
    };
    match array() {
        Ok(mut array) => explain_records_error(&mut *array, error),
        Err(_) => error,
    }
}

/// Returns storage's explanation, if it has one and the records show old or changed storage.
/// Otherwise returns `records_error`.
pub(crate) fn explain_records_error(
    array: &mut dyn Durable,
    records_error: VolumeError,
) -> VolumeError {
    let is_of_storage = matches!(
        records_error.kind(),
        VolumeErrorKind::Tampered | VolumeErrorKind::StoreRolledBack
    );
    match array.check_not_rolled_back() {
        Err(error) if is_of_storage => error.into(),
        _ => records_error,
    }
}

/// Refuses [`SyncMoves::AtFlush`] for schemes that would then lose the whole volume in a power
/// loss.
fn check_sync(config: &dyn DurableConfig, options: &VolumeOptions) -> Result<(), VolumeError> {
    if !config.needs_durable_moves() || options.sync_moves == SyncMoves::BeforeReads {
        return Ok(());
    }
    let message = format!(
        "volumes of the scheme `{}` must make moves durable before storage sees them, or a power \
         loss destroys the volume: have moves durable before reads",
        config.scheme()
    );
    Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message))
}

fn opening(
    superblock: &Superblock,
    options: &VolumeOptions,
    may_follow_lost_moves: bool,
) -> Opening {
    let VolumeOptions { sync_moves, lengths, .. } = *options;
    Opening { volume_id: superblock.volume_id(), sync_moves, lengths, may_follow_lost_moves }
}

/// The key under which the scheme seals its blocks. Secret.
pub fn seal_key(key: &VolumeKey) -> MasterKey {
    MasterKey::from_bytes(*key.derive("buckets"))
}

/// Replays a record. Returns the number of its accesses.
fn replay(array: &mut dyn Durable, record: Record) -> Result<u64, VolumeError> {
    match record {
        Record::Accesses(LoggedPlan { plan, writes }) => {
            let block = Zeroizing::new(vec![0; array.facts().block_bytes]);
            let mut nowhere = vec![block; writes.len()];
            let ops = writes.iter().zip(&mut nowhere).map(|(data, nowhere)| {
                data.as_ref().map_or(Op::Read(nowhere), |data| Op::Write(data))
            });
            let plan = array.decode_plan(&plan)?;
            array.carry_out(&plan, &mut ops.collect::<Vec<_>>())?;
            Ok(plan.accesses() as u64)
        }
        Record::Forget { start, end } => array.forget(start..end).map(|()| 0).map_err(Into::into),
        Record::Evict => array.evict().map(|()| 0).map_err(Into::into),
        Record::InPlace { address, data } => {
            if array.serve_on_client(address, &mut Op::Write(&data))? {
                return Ok(0);
            }
            let message = "the client's state has a write to a block that is not on the client: it \
                           is damaged. Restore the directory as it was";
            Err(VolumeError::new(VolumeErrorKind::StateDamaged, message))
        }
        _ => unreachable!("a history replays no other records"),
    }
}
