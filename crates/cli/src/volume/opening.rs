//! From a file and a key to an open volume.

use std::path::PathBuf;

use oblivio_core::HitPolicy;
use oblivio_store::{FileOptions, FileStore};
use oblivio_volume::superblock::copies::{Copies, read_copies};
use oblivio_volume::superblock::{
    LockedSuperblock, SuperblockError, SuperblockErrorKind, Unlocked,
};
use oblivio_volume::{Coins, Recovery, Volume, VolumeError, VolumeOptions};

use super::recording::Recording;
use super::{secret, state_home};
use crate::args::{OpenArgs, RunArgs};
use crate::error::CliError;
use crate::output;

/// A store that has been unlocked, and the directory that belongs to it.
pub(crate) struct Unlocking {
    pub(crate) store: FileStore,
    pub(crate) owner: Unlocked,
    pub(crate) state: PathBuf,
}

/// Randomness from the system.
pub(crate) fn coins() -> Result<Coins, CliError> {
    Ok(Coins::from_system()?)
}

/// Opens the file, and unlocks its superblock.
pub(crate) fn unlock(args: &OpenArgs, options: &FileOptions) -> Result<Unlocking, CliError> {
    let OpenArgs { place, unlock } = args;
    let mut store = FileStore::open(&place.volume, options)?;
    if store.damaged_header_copies() > 0 && !options.read_only {
        output::remark("damaged copies of the file's header were mended");
    }
    let copies = read_copies(&mut store);
    // What anyone can see is told before anyone is asked for a secret.
    newest(&copies).map_err(|error| match store.missing_bytes() {
        0 => error,
        _ => CliError::Tampered(
            "so much was cut off the file that no copy of the superblock is left: restore it from a backup"
                .into(),
        ),
    })?;
    let secret = secret::read(&place.secret)?;
    let owner = copies.unlock(&secret, unlock.attempt()).map_err(not_unlocked)?;
    let state = state_home::directory(place.state.as_deref(), owner.superblock.volume_id())?;
    Ok(Unlocking { store, owner, state })
}

/// What to say for that there is more to try.
fn not_unlocked(error: SuperblockError) -> CliError {
    match error.kind() {
        SuperblockErrorKind::TooCostly => CliError::Input(format!(
            "{error}. `oblivio key list` says what each slot asks for, --key-slot names one, and \
             --unlock-memory-max allows more"
        )),
        _ => VolumeError::from(error).into(),
    }
}

/// The superblock that counts. The file is one of ours, so there should be one.
pub(crate) fn newest(copies: &Copies) -> Result<&LockedSuperblock, CliError> {
    copies.newest().map_err(|error| {
        match error.kind() {
        SuperblockErrorKind::NotAVolume => CliError::Tampered(
            "the file has the form of a volume, and no superblock: restore it from a backup. If it \
             never was a volume, because its creation was interrupted, remove it"
                .into(),
        ),
        _ => VolumeError::from(error).into(),
    }
    })
}

/// An open volume.
pub(crate) struct Opened {
    pub(crate) volume: Volume,
    pub(crate) recovery: Recovery,
    /// The client's directory.
    pub(crate) state: PathBuf,
    pub(crate) recording: Option<Recording>,
}

/// Opens a volume to be run.
pub(crate) fn open(args: &OpenArgs, run: &RunArgs) -> Result<Opened, CliError> {
    run.rate.check()?;
    let file = FileOptions { direct: run.direct, ..FileOptions::default() };
    let Unlocking { store, owner, state } = unlock(args, &file)?;
    let dir = state_home::open(&state)?;
    let (store, recording) = Recording::wrap(store, run.record_view.as_deref())?;
    let hits = if run.serve_hits { HitPolicy::Serve } else { HitPolicy::Access };
    let sync_moves = run.sync_moves.into();
    let after_tampering = run.after_tampering;
    let options = VolumeOptions { sync_moves, hits, after_tampering, ..VolumeOptions::default() };
    let (volume, recovery) = Volume::open(store, Box::new(dir), &owner, options, coins()?)?;
    if recovery.was_needed {
        output::remark(&format!(
            "the volume had not been closed: recovered, {} accesses were made again",
            recovery.accesses
        ));
    }
    if recovery.state_bytes_ignored > 0 {
        output::remark(&format!(
            "the last {} bytes of the client's state could not be opened, and were left out: a crash tears \
             off what nobody was told to be safe; without one, the client's directory was damaged, and the \
             latest writes may be missing",
            recovery.state_bytes_ignored
        ));
    }
    if recovery.anchors_damaged > 0 {
        output::remark("a damaged anchor was mended: a crash tore it, or storage is damaged");
    }
    if recovery.superblocks_mended > 0 {
        output::remark("damaged copies of the superblock were mended");
    }
    Ok(Opened { volume, recovery, state, recording })
}
