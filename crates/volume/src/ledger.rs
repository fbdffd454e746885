//! The client's side of a commit: a sequence of state files, and the names of checkpoints.

use std::ops::Range;

use oblivio_core::durable::{AccessPlan, Durable, EraStart, Save};
use oblivio_core::wiped::WipedBytes;
use rand::Rng;

use crate::anchor::{self, AnchorKey, KnownCheckpoints};
use crate::announced;
use crate::coins::Coins;
use crate::error::{VolumeError, VolumeErrorKind};
use crate::keys::VolumeKey;
use crate::state::file::{Header, StateKey, StateReader, StateWriter};
use crate::state::history::History;
use crate::state::record::{self, CheckpointName, Head, Record};
use crate::state_dir::{self, StateDir};
use crate::superblock::VolumeId;
use crate::tampering;
use crate::volume::{Lengths, SyncMoves};

/// Whether a checkpoint is the last one before the volume is closed. The next opening then needs no
/// recovery.
#[derive(Clone, Copy)]
pub(crate) struct IsClean(pub(crate) bool);

/// The keys of state files and anchors. Secret.
pub(crate) struct LedgerKeys {
    state: StateKey,
    pub(crate) anchor: AnchorKey,
}

impl LedgerKeys {
    pub(crate) fn new(key: &VolumeKey) -> Self {
        Self {
            state: StateKey(key.derive("state files")),
            anchor: AnchorKey::new(&key.derive("anchor")),
        }
    }
}

/// The latest state in a directory.
pub(crate) struct SavedState {
    pub(crate) generation: u64,
    pub(crate) history: History,
}

impl SavedState {
    /// Reads the latest state file.
    pub(crate) fn read(
        dir: &dyn StateDir,
        keys: &LedgerKeys,
        volume_id: &VolumeId,
    ) -> Result<Self, VolumeError> {
        let generation = latest_generation(dir)?.ok_or_else(|| {
            VolumeError::new(
                VolumeErrorKind::StateDamaged,
                "the client's directory holds no state of a volume. Name the directory that the \
                 volume was last used with: without it the blocks cannot be found",
            )
        })?;
        let reader = StateReader::new(dir.open(&name(generation))?, &keys.state)?;
        if reader.header.volume != volume_id.0 {
            return Err(VolumeError::new(
                VolumeErrorKind::WrongState,
                "the client's directory belongs to another volume: name the one of this volume",
            ));
        }
        if reader.header.generation != generation {
            return Err(VolumeError::new(
                VolumeErrorKind::StateDamaged,
                "a state file was renamed: restore the client's directory as it was",
            ));
        }
        let history = History::read(reader)?;
        Ok(Self { generation, history })
    }

    /// The checkpoints whose anchors storage may show.
    pub(crate) fn known(
        &self,
        dir: &dyn StateDir,
        keys: &LedgerKeys,
    ) -> Result<KnownCheckpoints, VolumeError> {
        let Head { checkpoint: latest, previous, .. } = self.history.head;
        let announced = announced::read(dir, &keys.anchor, &latest)?;
        Ok(KnownCheckpoints { latest, previous, announced })
    }

    /// Makes the state file that was read durable under its name. The caller must do this before
    /// storage sees any of the state and before it appends to the file.
    pub(crate) fn make_durable(&self, dir: &mut dyn StateDir) -> Result<(), VolumeError> {
        let name = name(self.generation);
        let is_older = |other: &String| generation_of(other).is_some_and(|it| it < self.generation);
        if dir.names()?.iter().any(is_older) {
            // Older files are removed once the name of this one is durable. The sync of names may
            // have failed.
            state_dir::write_again(dir, &name)?;
        } else if self.history.pending.is_any() {
            // A process that was killed, or whose sync failed, may have left moves in a cache only.
            dir.sync(&name)?;
        }
        Ok(())
    }
}

/// The state file that the last use of a volume left, and the checkpoint that storage now shows.
pub(crate) struct LastUse {
    /// The generation of the state file.
    pub(crate) generation: u64,
    /// The checkpoint that storage shows: the one that this opening announced.
    pub(crate) shown: CheckpointName,
}

/// The properties of an opening that the ledger depends on.
pub(crate) struct Opening {
    pub(crate) volume_id: VolumeId,
    pub(crate) sync_moves: SyncMoves,
    pub(crate) lengths: Lengths,
    /// Whether moves before this opening may have been lost although storage has seen them.
    pub(crate) may_follow_lost_moves: bool,
}

impl Opening {
    fn may_lose_moves(&self) -> bool {
        self.sync_moves == SyncMoves::AtFlush
    }
}

/// The array of a volume, and the client's randomness.
pub(crate) struct LiveArray {
    pub(crate) array: Box<dyn Durable>,
    pub(crate) coins: Coins,
}

/// The state file in use, and the names of the two latest checkpoints.
pub(crate) struct Ledger {
    pub(crate) log: StateWriter,
    pub(crate) dir: Box<dyn StateDir>,
    keys: LedgerKeys,
    opening: Opening,
    block_bytes: usize,
    generation: u64,
    checkpoint: CheckpointName,
    previous: CheckpointName,
    /// Bytes of the snapshot at the start of the file.
    snapshot_bytes: u64,
    /// Bytes of the records of forgotten ranges since the snapshot.
    forgets_bytes: u64,
    /// Whether no access was made since the opening or the latest checkpoint. The next access must
    /// then check the fence first.
    fence_is_due: bool,
    /// Evictions that remain, as of the latest checkpoint, until storage holds no trace of lost
    /// moves.
    lost_evictions_left: u64,
    /// Maximum number of evictions from one checkpoint to the next.
    evictions_max: u64,
}

impl Ledger {
    /// Begins the first state file. Fails if the directory already holds one.
    pub(crate) fn create(
        dir: Box<dyn StateDir>,
        keys: LedgerKeys,
        opening: Opening,
        live: &mut LiveArray,
    ) -> Result<Self, VolumeError> {
        if latest_generation(&*dir)?.is_some() {
            return Err(VolumeError::new(
                VolumeErrorKind::WrongState,
                "the client's directory already holds the state of a volume: use another directory",
            ));
        }
        let nothing = CheckpointName { number: 0, name: draw(&mut live.coins) };
        Self::begin(dir, keys, opening, 0, (nothing, 1), live)
    }

    /// Begins the next state file with the state of `live`, whose storage must be flushed.
    pub(crate) fn resume(
        dir: Box<dyn StateDir>,
        keys: LedgerKeys,
        opening: Opening,
        LastUse { generation, shown }: LastUse,
        live: &mut LiveArray,
    ) -> Result<Self, VolumeError> {
        Self::begin(dir, keys, opening, generation + 1, (shown, shown.number + 1), live)
    }

    fn begin(
        mut dir: Box<dyn StateDir>,
        keys: LedgerKeys,
        opening: Opening,
        generation: u64,
        (previous, number): (CheckpointName, u64),
        live: &mut LiveArray,
    ) -> Result<Self, VolumeError> {
        let checkpoint = CheckpointName { number, name: draw(&mut live.coins) };
        let volume = opening.volume_id.0;
        let header = Header { volume, generation, salt: draw(&mut live.coins) };
        let may_lose_moves = opening.may_lose_moves() || opening.may_follow_lost_moves;
        let head = Head { checkpoint, previous, is_clean: false, may_lose_moves };
        let state = (&*live.array, whole(opening.lengths));
        let log = write_snapshot(&mut *dir, &header, &keys.state, &head, state)?;
        write_anchor(&keys.anchor, &checkpoint, &mut *live.array)?;
        live.array.mark_durable();
        let evictions_max = live.array.headroom()?.evictions;
        let lost_evictions_left = if opening.may_follow_lost_moves { evictions_max } else { 0 };
        let snapshot_bytes = log.bytes();
        Ok(Self {
            log,
            dir,
            keys,
            opening,
            block_bytes: live.array.facts().block_bytes,
            generation,
            checkpoint,
            previous,
            snapshot_bytes,
            forgets_bytes: 0,
            fence_is_due: true,
            lost_evictions_left,
            evictions_max,
        })
    }

    /// Switches to [`Lengths::Constant`].
    pub(crate) fn keep_lengths_constant(&mut self) {
        self.opening.lengths = Lengths::Constant;
    }

    /// Logs accesses and the data that they write.
    pub(crate) fn log_accesses<'a>(
        &mut self,
        plan: &AccessPlan,
        writes: impl Iterator<Item = Option<&'a [u8]>> + Clone,
    ) -> Result<(), VolumeError> {
        let put = |out: &mut WipedBytes| record::put_accesses(out, plan.encoded(), writes.clone());
        if self.opening.lengths == Lengths::Needed {
            return Ok(self.log.append(put)?);
        }
        let written: usize = writes.clone().flatten().map(<[u8]>::len).sum();
        let bytes = plan.accesses() * self.block_bytes - written;
        // In one append: the place of filler depends on the length of each append.
        Ok(self.log.append_both(put, |out| record::put_padding(out, bytes as u32))?)
    }

    /// Logs that a range of blocks was forgotten.
    pub(crate) fn forget(&mut self, range: &Range<u64>) -> Result<(), VolumeError> {
        let before = self.log.bytes();
        let record = Record::Forget { start: range.start, end: range.end };
        self.log.append(|out| record.put(out))?;
        self.forgets_bytes += self.log.bytes() - before;
        Ok(())
    }

    /// Whether the records of forgotten ranges alone add more than `bytes_max` to the file. Unlike
    /// an access, forgetting a range does not bring the next checkpoint nearer. Records of accesses
    /// do not count: they are longer if an access writes, and the times of checkpoints would reveal
    /// that to storage.
    pub(crate) fn has_many_forgets(&self, bytes_max: u64) -> bool {
        self.forgets_bytes > bytes_max
    }

    /// Whether the next checkpoint begins a new state file: the current one has grown long, has
    /// many records of forgotten ranges, or its length must not depend on the requests.
    fn should_begin_new_file(&self, bytes_max: u64) -> bool {
        self.opening.lengths == Lengths::Constant
            || self.log.bytes() > 2 * self.snapshot_bytes + bytes_max
            || self.has_many_forgets(bytes_max)
    }

    /// Makes storage durable and saves the current state. Recovery starts from the latest
    /// checkpoint.
    pub(crate) fn checkpoint(
        &mut self,
        live: &mut LiveArray,
        IsClean(is_clean): IsClean,
        bytes_max: u64,
    ) -> Result<(), VolumeError> {
        live.array.flush()?;
        let evictions = self.evictions_max - live.array.headroom()?.evictions;
        self.lost_evictions_left = self.lost_evictions_left.saturating_sub(evictions);
        self.check_fence(&mut *live.array)?;
        // Copies of this client, if there are any, draw other names and keys from here on.
        live.coins.renew()?;
        live.array.begin_era(EraStart::Checkpoint, &mut live.coins);
        let number = self.checkpoint.number + 1;
        let next = CheckpointName { number, name: draw(&mut live.coins) };
        self.previous = std::mem::replace(&mut self.checkpoint, next);
        let may_lose_moves = self.opening.may_lose_moves() || self.lost_evictions_left > 0;
        let (checkpoint, previous) = (self.checkpoint, self.previous);
        let head = Head { checkpoint, previous, is_clean, may_lose_moves };
        if self.should_begin_new_file(bytes_max) {
            self.generation += 1;
            let (volume, generation) = (self.opening.volume_id.0, self.generation);
            let header = Header { volume, generation, salt: draw(&mut live.coins) };
            let state = (&*live.array, whole(self.opening.lengths));
            self.log = write_snapshot(&mut *self.dir, &header, &self.keys.state, &head, state)?;
            self.snapshot_bytes = self.log.bytes();
            self.forgets_bytes = 0;
        } else {
            put_state(&mut self.log, &head, &*live.array, Save::Changes)?;
            self.log.sync()?;
        }
        write_anchor(&self.keys.anchor, &self.checkpoint, &mut *live.array)?;
        live.array.mark_durable();
        self.fence_is_due = true;
        Ok(())
    }

    /// Checks the fence before the first accesses after an opening or a checkpoint, because
    /// accesses lead to evictions, which overwrite buckets. Storage must still show the latest
    /// checkpoint. If it shows another, a second client has taken over, or storage was rolled back.
    /// The check does not wait for the first eviction, because the start of its batch may be
    /// secret.
    pub(crate) fn before_accesses(&mut self, live: &mut LiveArray) -> Result<(), VolumeError> {
        if self.fence_is_due {
            self.check_fence(&mut *live.array)?;
            self.fence_is_due = false;
        }
        Ok(())
    }

    /// If `error` is tampering, notes it for the next opening.
    pub(crate) fn record_tampering(&mut self, error: &VolumeError) {
        tampering::record(&mut *self.dir, error);
    }

    /// Checks that storage still shows the anchor that this client wrote last. If it shows another
    /// checkpoint that is not older, another client uses the volume. An older one is a rollback.
    fn check_fence(&self, array: &mut dyn Durable) -> Result<(), VolumeError> {
        let latest = self.checkpoint;
        match anchor::read(&mut array.records(), &self.keys.anchor)? {
            Some(shown) if shown != latest && shown.number >= latest.number => {
                Err(VolumeError::new(
                    VolumeErrorKind::Locked,
                    "storage shows another checkpoint: another client has opened the volume since. \
                     Make sure that only one client uses it, and open it again",
                ))
            }
            shown => KnownCheckpoints { latest, previous: latest, announced: None }
                .check(shown)
                .map(drop),
        }
    }
}

/// Announces to storage, durably, a checkpoint that no earlier copy of the directory knows. Without
/// it, an old copy could not detect that it lacks the work replayed from here on. `shown` is the
/// checkpoint that storage shows.
pub(crate) fn announce(
    dir: &mut dyn StateDir,
    key: &AnchorKey,
    known: &KnownCheckpoints,
    shown: &CheckpointName,
    live: &mut LiveArray,
) -> Result<CheckpointName, VolumeError> {
    // A failed sync may have left the shown anchor in a cache only. It must be durable before it
    // becomes the only readable anchor, which happens if the next one is torn.
    write_anchor(key, shown, &mut *live.array)?;
    let announced = known.announced.unwrap_or_else(|| {
        // A number that no checkpoint had. Its anchor does not overwrite the shown anchor.
        let number = known.latest.number + if *shown == known.latest { 1 } else { 2 };
        CheckpointName { number, name: draw(&mut live.coins) }
    });
    // Written even if the file exists: the file may be in a cache only.
    announced::write(dir, key, &announced)?;
    write_anchor(key, &announced, &mut *live.array)?;
    Ok(announced)
}

/// Writes an anchor and makes it durable. This comes before the evictions that follow the
/// checkpoint: a client that sees one of them then sees the checkpoint too.
fn write_anchor(
    key: &AnchorKey,
    checkpoint: &CheckpointName,
    array: &mut dyn Durable,
) -> Result<(), VolumeError> {
    anchor::write(&mut array.records(), key, checkpoint)?;
    Ok(array.flush()?)
}

/// Writes a file that begins with the whole state, and removes all earlier files. After a crash at
/// any point, the latest file under its final name is complete.
fn write_snapshot(
    dir: &mut dyn StateDir,
    header: &Header,
    key: &StateKey,
    head: &Head,
    (array, what): (&dyn Durable, Save),
) -> Result<StateWriter, VolumeError> {
    let name = name(header.generation);
    let mut log = StateWriter::begin(state_dir::begin(dir, &name)?, header, key)?;
    put_state(&mut log, head, array, what)?;
    log.sync()?;
    state_dir::finish(dir, &name)?;
    for old in dir.names()? {
        if generation_of(&old).is_some_and(|generation| generation < header.generation) {
            dir.remove(&old)?;
        }
    }
    Ok(log)
}

/// The form of the snapshot at the start of a file: padded if lengths must be constant.
fn whole(lengths: Lengths) -> Save {
    match lengths {
        Lengths::Needed => Save::Whole,
        Lengths::Constant => Save::WholePadded,
    }
}

fn put_state(
    log: &mut StateWriter,
    head: &Head,
    array: &dyn Durable,
    what: Save,
) -> Result<(), VolumeError> {
    log.append(|out| Record::Head(head.clone()).put(out))?;
    let mut appended = Ok(());
    array.save(what, &mut |section| {
        if appended.is_ok() {
            appended = log.append(|out| record::put_section(out, section));
        }
    });
    appended?;
    Ok(log.append(|out| Record::End.put(out))?)
}

fn draw<const N: usize>(coins: &mut Coins) -> [u8; N] {
    let mut bytes = [0; N];
    coins.fill_bytes(&mut bytes);
    bytes
}

fn name(generation: u64) -> String {
    format!("state-{generation}")
}

/// The generation of the state file `name`, if it is one.
fn generation_of(name: &str) -> Option<u64> {
    name.strip_prefix("state-")?.parse().ok()
}

fn latest_generation(dir: &dyn StateDir) -> Result<Option<u64>, VolumeError> {
    Ok(dir.names()?.iter().filter_map(|name| generation_of(name)).max())
}
