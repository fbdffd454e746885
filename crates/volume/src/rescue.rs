//! Reads the remaining data of a volume whose storage is damaged.
//!
//! A rescue reads all of storage as it was at the last checkpoint and takes every block that still
//! authenticates. Then it applies the later writes, which are in the client's directory. It changes
//! nothing on either side and makes no access: storage sees a scan, which does not reveal what is
//! in use.

mod damage;
mod disk;
mod scratch;

use std::io;
use std::ops::Range;

pub use damage::Damage;
pub use disk::RescuedDisk;
use oblivio_core::StoreErrorKind;
use oblivio_core::durable::{Durable, Recoverability, Salvage};
use oblivio_core::scheme::RollbackProbe;
use oblivio_core::store::BucketStore;
pub use scratch::Scratch;

use crate::anchor;
use crate::error::{VolumeError, VolumeErrorKind, room_advice};
use crate::ledger::{LedgerKeys, SavedState};
use crate::newest;
use crate::state::history::out_of_bounds;
use crate::state::record::{LoggedPlan, Record};
use crate::state_dir::StateDir;
use crate::superblock::Unlocked;
use crate::superblock::copies::COPIES;
use crate::volume::{explain_records_error, explain_rollback, seal_key};

/// Receives the rescued blocks. A block that is never put is zeros.
pub trait RescueTarget {
    /// Stores the contents of a block. If a block is stored more than once, the last call counts.
    ///
    /// # Errors
    /// When the contents cannot be stored.
    fn put(&mut self, block: u64, data: &[u8]) -> io::Result<()>;

    /// Removes the contents of a block.
    ///
    /// # Errors
    /// When they cannot be removed.
    fn clear(&mut self, block: u64) -> io::Result<()>;
}

/// The outcome of a rescue. Secret, except for `damage` and `missing`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rescued {
    /// Number of blocks whose contents were found, including doubtful ones.
    pub blocks: u64,
    /// Blocks that had contents, or may have had contents, and were not found.
    pub lost: Vec<Range<u64>>,
    /// Blocks that were found but may be outdated, because the data that would show their age is
    /// damaged or the client's directory is an old copy.
    pub doubtful: Vec<Range<u64>>,
    /// Whether storage has seen accesses that the client's directory does not know. The directory
    /// is then an old copy, and every block may be outdated.
    pub state_is_behind: bool,
    /// The damage in storage and in the client's directory.
    pub damage: Damage,
    /// The servers that do not answer and may hold newer records or blocks than the others. `None`
    /// if all servers answer, or if no old record, lost block or doubtful block was found. Public.
    pub missing: Option<String>,
}

/// Passes to `target` every block that still authenticates. `damage` is the known damage of
/// storage. `progress` is called with the number of buckets read and their total.
///
/// # Errors
/// When the client's directory does not open, the superblock is older than the one it names, or
/// `target` fails. Damaged storage and an old directory are not errors.
pub fn rescue(
    mut store: impl BucketStore + Send + 'static,
    dir: &dyn StateDir,
    owner: &Unlocked,
    mut damage: Damage,
    target: &mut dyn RescueTarget,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Rescued, VolumeError> {
    let Unlocked { superblock, volume_key, .. } = owner;
    let config = superblock.params().config()?;
    let keys = LedgerKeys::new(volume_key);
    let saved = SavedState::read(dir, &keys, &superblock.volume_id())?;
    let superblocks_damaged = match newest::damaged_copies(&mut store, dir, owner) {
        Err(error) => return Err(explain_rollback(store, dir, owner, error)),
        Ok(damaged) => damaged,
    };
    if superblocks_damaged > 0 {
        damage.push(format!(
            "{superblocks_damaged} of {COPIES} copies of the superblock are damaged"
        ));
    }
    if saved.history.bytes_ignored > 0 {
        damage.push(format!(
            "the last {} bytes of the client's state do not open: the latest writes may be \
             missing",
            saved.history.bytes_ignored
        ));
    }
    let looked = anchor::read_with_damage(&mut store, &keys.anchor);
    let checked = looked.and_then(|(shown, damaged)| {
        if damaged > 0 {
            damage.push(format!("{damaged} of 2 anchors are damaged, or were torn by a crash"));
        }
        saved.known(dir, &keys)?.check(shown)
    });
    let mut history = saved.history;
    let mut array = history.array(&*config, seal_key(volume_key), Box::new(store))?;
    let (mut is_ahead, mut are_records_older) = (false, false);
    match checked {
        Ok(_) => (),
        Err(error) if error.kind() == VolumeErrorKind::StateRolledBack => is_ahead = true,
        Err(error) => {
            damage.push(explain_records_error(&mut *array, error).to_string());
            are_records_older = true;
        }
    }
    let probe = history.probe_rollback(&mut *array).unwrap_or(RollbackProbe::Unclear);
    if probe == RollbackProbe::Unclear {
        damage.push(
            "storage is damaged where it would show whether the client's directory is the latest: \
             every block may be older than the latest"
                .into(),
        );
    }
    let state_is_behind = is_ahead || probe == RollbackProbe::Seen;
    let is_the_latest = !state_is_behind && probe == RollbackProbe::NotYet;

    let buckets = array.buckets_written();
    let mut failure = None;
    // With an old directory, newer buckets look damaged.
    let mut unreadable = 0;
    let mut salvage = array.salvage(
        &mut |block, data| {
            if failure.is_none() {
                failure = target.put(block, data).err();
            }
        },
        &mut |error| match state_is_behind {
            true => unreadable += 1,
            false => damage.push(error.to_string()),
        },
        &mut |read| progress(read, buckets),
    )?;
    failure.map_or(Ok(()), |error| Err(target_error(error)))?;
    if unreadable > 0 {
        damage.push(format!(
            "{unreadable} buckets cannot be read with this client's directory: they are newer, or \
             damaged"
        ));
    }

    let blocks = array.facts().blocks;
    history.each_pending(|record| apply_record(record, &*array, &mut salvage, target))?;
    let mut rescued = Rescued { damage, state_is_behind, ..Rescued::default() };
    for block in 0..blocks {
        match array.recoverability(&salvage, block) {
            Recoverability::Empty => target.clear(block).map_err(target_error)?,
            Recoverability::Found if is_the_latest => rescued.blocks += 1,
            Recoverability::Found => extend(&mut rescued.doubtful, block),
            Recoverability::Doubtful => extend(&mut rescued.doubtful, block),
            Recoverability::Lost => extend(&mut rescued.lost, block),
        }
    }
    rescued.blocks += count(&rescued.doubtful);
    let are_blocks_older = !(rescued.lost.is_empty() && rescued.doubtful.is_empty());
    if (are_records_older || are_blocks_older)
        && let Err(error) = array.check_not_rolled_back()
        && error.store_kind() == Some(StoreErrorKind::Unreachable)
    {
        rescued.missing = Some(error.to_string());
    }
    Ok(rescued)
}

/// Applies a record that came after the checkpoint to the salvaged blocks.
fn apply_record(
    record: Record,
    array: &dyn Durable,
    salvage: &mut Salvage,
    target: &mut dyn RescueTarget,
) -> Result<(), VolumeError> {
    let blocks = array.facts().blocks;
    let mut write = |block: u64, data: &[u8]| {
        check_bounds(block < blocks)?;
        salvage.write(block);
        target.put(block, data).map_err(target_error)
    };
    match record {
        Record::Accesses(LoggedPlan { plan, writes }) => {
            let plan = array.decode_plan(&plan);
            let addresses = plan.and_then(|plan| array.blocks_of(&plan));
            let addresses = addresses.map_err(|_| out_of_bounds())?;
            addresses.into_iter().zip(&writes).try_for_each(|(block, data)| match (block, data) {
                (Some(block), Some(data)) => write(block, data),
                _ => Ok(()),
            })
        }
        Record::InPlace { address, data } => write(address, &data),
        Record::Forget { start, end } => {
            check_bounds(start <= end && end <= blocks)?;
            salvage.forget(start..end);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn check_bounds(holds: bool) -> Result<(), VolumeError> {
    if holds { Ok(()) } else { Err(out_of_bounds()) }
}

fn extend(ranges: &mut Vec<Range<u64>>, block: u64) {
    match ranges.last_mut() {
        Some(last) if last.end == block => last.end += 1,
        _ => ranges.push(block..block + 1),
    }
}

fn count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

fn target_error(error: io::Error) -> VolumeError {
    let advice = room_advice(&error);
    let message = format!("cannot store the rescued data: {error}{advice}");
    VolumeError::caused_by(VolumeErrorKind::of_file(&error), message, error)
}
