//! The client's side of a commit: state files, one after the other, and the names of checkpoints.

use std::ops::Range;

use oblivio_core::durable::{AccessPlan, Durable, EraStart, Save};
use oblivio_core::wiped::WipedBytes;
use rand::Rng;

use crate::anchor::{self, AnchorKey, Known};
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

/// Whether the volume is being closed.
#[derive(Clone, Copy)]
pub(crate) struct IsClean(pub(crate) bool);

/// What a ledger is sealed with. Secret.
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

/// The latest state that a directory holds.
pub(crate) struct Past {
    pub(crate) generation: u64,
    pub(crate) history: History,
}

impl Past {
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
                "a state file has the name of another: restore the directory as it was",
            ));
        }
        let history = History::read(reader)?;
        Ok(Self { generation, history })
    }

    /// The checkpoints that storage may have heard of.
    pub(crate) fn known(
        &self,
        dir: &dyn StateDir,
        keys: &LedgerKeys,
    ) -> Result<Known, VolumeError> {
        let Head { checkpoint: latest, previous, .. } = self.history.head;
        let announced = announced::read(dir, &keys.anchor, &latest)?;
        Ok(Known { latest, previous, announced })
    }

    /// Lets what was read survive a crash, before storage is shown any of it and before anything follows it.
    pub(crate) fn make_durable(&self, dir: &mut dyn StateDir) -> Result<(), VolumeError> {
        let name = name(self.generation);
        let is_older = |other: &String| generation_of(other).is_some_and(|it| it < self.generation);
        if dir.names()?.iter().any(is_older) {
            // Older files are removed when the name of this one is durable. The sync of names may have failed.
            state_dir::write_again(dir, &name)?;
        } else if self.history.pending.is_any() {
            // A process that was killed, or whose sync failed, may have left moves in a cache alone.
            dir.sync(&name)?;
        }
        Ok(())
    }
}

/// Where the use of a volume ended.
pub(crate) struct Last {
    /// Of the state file.
    pub(crate) generation: u64,
    /// The checkpoint that storage shows.
    pub(crate) shown: CheckpointName,
}

/// How the volume was opened.
pub(crate) struct Opening {
    pub(crate) volume_id: VolumeId,
    pub(crate) sync_moves: SyncMoves,
    pub(crate) lengths: Lengths,
    /// The moves before it may have been lost while storage kept what it saw of them.
    pub(crate) may_follow_lost_moves: bool,
}

impl Opening {
    fn may_lose_moves(&self) -> bool {
        self.sync_moves == SyncMoves::AtFlush
    }
}

/// The array of a volume, and the randomness of its client.
pub(crate) struct Live {
    pub(crate) array: Box<dyn Durable>,
    pub(crate) coins: Coins,
}

/// The state file in use.
pub(crate) struct Ledger {
    pub(crate) log: StateWriter,
    pub(crate) dir: Box<dyn StateDir>,
    keys: LedgerKeys,
    opening: Opening,
    block_bytes: usize,
    generation: u64,
    checkpoint: CheckpointName,
    previous: CheckpointName,
    /// Bytes of the snapshot with which the file begins.
    snapshot_bytes: u64,
    /// Bytes of the records of forgotten ranges since then.
    forgets_bytes: u64,
    /// No access was made since the opening or the latest checkpoint.
    fence_is_due: bool,
    /// Evictions until nothing is left in storage of moves that were lost, as of the latest checkpoint.
    lost_evictions_left: u64,
    /// Evictions from one checkpoint to the next, at most.
    evictions_max: u64,
}

impl Ledger {
    /// Begins the first file in an empty directory.
    pub(crate) fn create(
        dir: Box<dyn StateDir>,
        keys: LedgerKeys,
        opening: Opening,
        live: &mut Live,
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

    /// Begins the next file, with the state that `oram` is in. Its storage is durable.
    pub(crate) fn resume(
        dir: Box<dyn StateDir>,
        keys: LedgerKeys,
        opening: Opening,
        Last { generation, shown }: Last,
        live: &mut Live,
    ) -> Result<Self, VolumeError> {
        Self::begin(dir, keys, opening, generation + 1, (shown, shown.number + 1), live)
    }

    fn begin(
        mut dir: Box<dyn StateDir>,
        keys: LedgerKeys,
        opening: Opening,
        generation: u64,
        (previous, number): (CheckpointName, u64),
        live: &mut Live,
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

    /// See [`Lengths::Constant`].
    pub(crate) fn keep_lengths_constant(&mut self) {
        self.opening.lengths = Lengths::Constant;
    }

    /// Logs accesses, and what each of them writes.
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
        // In one piece: where filler goes follows from what is appended at once.
        Ok(self.log.append_both(put, |out| record::put_padding(out, bytes as u32))?)
    }

    /// Logs that the blocks of a range have no contents any more.
    pub(crate) fn forget(&mut self, range: &Range<u64>) -> Result<(), VolumeError> {
        let before = self.log.bytes();
        let record = Record::Forget { start: range.start, end: range.end };
        self.log.append(|out| record.put(out))?;
        self.forgets_bytes += self.log.bytes() - before;
        Ok(())
    }

    /// Whether the file grows without accesses, which lead to checkpoints. What accesses have brought
    /// does not count: there is more of it if they write, and storage would see that in the checkpoints.
    pub(crate) fn has_many_forgets(&self, bytes_max: u64) -> bool {
        self.forgets_bytes > bytes_max
    }

    /// Whether the next state begins a new file: so much has come in since the snapshot, or nobody may learn how much.
    fn begins_new_file(&self, bytes_max: u64) -> bool {
        self.opening.lengths == Lengths::Constant
            || self.log.bytes() > 2 * self.snapshot_bytes + bytes_max
            || self.has_many_forgets(bytes_max)
    }

    /// Makes storage durable, and keeps the state as it is now: a crash will go back no further.
    pub(crate) fn checkpoint(
        &mut self,
        live: &mut Live,
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
        if self.begins_new_file(bytes_max) {
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

    /// Accesses are about to be made, and with them evictions, which overwrite places. Before the first ones
    /// after an opening or a checkpoint storage must show that checkpoint: if it shows another, a second
    /// client has overtaken this one. Not before the first eviction: where its batch begins may be secret.
    pub(crate) fn before_accesses(&mut self, live: &mut Live) -> Result<(), VolumeError> {
        if self.fence_is_due {
            self.check_fence(&mut *live.array)?;
            self.fence_is_due = false;
        }
        Ok(())
    }

    /// Keeps for the next opening that storage was found to be changed, if that is what `error` says.
    pub(crate) fn note_tampering(&mut self, error: &VolumeError) {
        tampering::note(&mut *self.dir, error);
    }

    /// Whether storage still shows what this client left there: if it shows something newer, somebody else
    /// uses the volume.
    fn check_fence(&self, array: &mut dyn Durable) -> Result<(), VolumeError> {
        let latest = self.checkpoint;
        match anchor::read(&mut array.records(), &self.keys.anchor)? {
            Some(shown) if shown != latest && shown.number >= latest.number => {
                Err(VolumeError::new(
                    VolumeErrorKind::Locked,
                    "storage shows the checkpoint of somebody else: another client has opened the \
                     volume since. Make sure that only one does, and open it again",
                ))
            }
            shown => Known { latest, previous: latest, announced: None }.check(shown).map(drop),
        }
    }
}

/// Lets storage hear of a checkpoint, durably, that no copy of the directory made so far knows of: what is done
/// again from here on may hide from a copy what it missed. `shown` is what storage shows.
pub(crate) fn announce(
    dir: &mut dyn StateDir,
    key: &AnchorKey,
    known: &Known,
    shown: &CheckpointName,
    live: &mut Live,
) -> Result<CheckpointName, VolumeError> {
    // A sync that failed may have dropped it, and left it in a cache: it is made durable before it becomes
    // the only one that can be read if the next is torn.
    write_anchor(key, shown, &mut *live.array)?;
    let announced = known.announced.unwrap_or_else(|| {
        // A number that no checkpoint had, and whose anchor does not go where the one shown is.
        let number = known.latest.number + if *shown == known.latest { 1 } else { 2 };
        CheckpointName { number, name: draw(&mut live.coins) }
    });
    // Even if it is there already: it may be in a cache alone.
    announced::write(dir, key, &announced)?;
    write_anchor(key, &announced, &mut *live.array)?;
    Ok(announced)
}

/// Writes an anchor, and returns when it is durable: before the evictions that follow the checkpoint, so that
/// whoever sees one of them sees the checkpoint too.
fn write_anchor(
    key: &AnchorKey,
    checkpoint: &CheckpointName,
    array: &mut dyn Durable,
) -> Result<(), VolumeError> {
    anchor::write(&mut array.records(), key, checkpoint)?;
    Ok(array.flush()?)
}

/// Writes a file that begins with the whole state, and removes those before it. Whenever a crash
/// comes, the latest file that has its name is whole.
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

/// How a file begins.
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
