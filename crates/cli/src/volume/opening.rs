//! From a location and a key to an open volume.

use std::path::PathBuf;

use oblivio_core::HitPolicy;
use oblivio_core::store::BucketStore;
use oblivio_store::{BoxedStore, Condition, Location, OpenedStore, StoreKind, StoreOptions};
use oblivio_volume::superblock::{
    LockedSuperblock, SuperblockError, SuperblockErrorKind, Unlocked, VolumeParams,
};
use oblivio_volume::unlock::{self, NewerCopies, UnlockError};
use oblivio_volume::{Coins, Lengths, Recovery, Volume, VolumeError, VolumeOptions};

use super::plan::number_of;
use super::recording::Recording;
use super::{secret, state_home};
use crate::args::{OpenArgs, RunArgs, SecretArgs, UnlockArgs};
use crate::error::CliError;
use crate::output;

/// A store that has been unlocked, and the directory that belongs to it.
pub(crate) struct Unlocking {
    pub(crate) store: BoxedStore,
    pub(crate) condition: Condition,
    pub(crate) owner: Unlocked,
    pub(crate) state: PathBuf,
}

/// Randomness from the system.
pub(crate) fn coins() -> Result<Coins, CliError> {
    Ok(Coins::from_system()?)
}

/// What anyone can see of a volume, and the state of the store that holds it.
pub(crate) fn look(location: &Location) -> Result<(LockedSuperblock, Condition), CliError> {
    let options = StoreOptions { read_only: true, ..StoreOptions::default() };
    let OpenedStore { mut store, condition } = location.open(&options)?;
    let superblock = unlock::look(&mut store).map_err(no_superblock)?;
    check_parties(location, superblock.unauthenticated_params())?;
    Ok((superblock, condition))
}

/// Opens the store, and unlocks its superblock.
pub(crate) fn unlock(
    args: &OpenArgs,
    options: &StoreOptions,
    newer: NewerCopies,
) -> Result<Unlocking, CliError> {
    let place = &args.place;
    // What will be refused takes the volume from nobody.
    let looked = if options.read_only { None } else { place.volume.look(options)? };
    let is_looked_at = looked.is_some();
    let open = || -> Result<OpenedStore, CliError> {
        let opened = place.volume.open(options)?;
        opened.condition.mended.iter().for_each(|mended| output::remark(mended));
        Ok(opened)
    };
    let mut found = looked.map_or_else(open, Ok)?;
    let locked = Locked { volume: &place.volume, secret: &place.secret, unlock: args.unlock };
    let owner = owner_of(locked, &mut found.store, found.condition.is_cut_off, newer)?;
    let state = state_home::directory(place.state.as_deref(), owner.superblock.volume_id())?;
    if is_looked_at {
        // A rescue takes what is there, however old it is.
        if newer == NewerCopies::Refuse {
            Volume::check_before_opening(&mut *found.store, &state_home::open(&state)?, &owner)?;
        }
        drop(found);
        found = open()?;
    }
    let OpenedStore { store, condition } = found;
    Ok(Unlocking { store, condition, owner, state })
}

/// Which volume, and what is to unlock it.
pub(super) struct Locked<'a> {
    pub(super) volume: &'a Location,
    pub(super) secret: &'a SecretArgs,
    pub(super) unlock: UnlockArgs,
}

/// Whoever can unlock the volume in a store.
pub(super) fn owner_of(
    locked: Locked<'_>,
    store: &mut impl BucketStore,
    is_cut_off: bool,
    newer: NewerCopies,
) -> Result<Unlocked, CliError> {
    let Locked { volume, secret, unlock } = locked;
    let secret = || secret::read(secret);
    let owner = unlock::unlock(store, unlock.attempt(), newer, secret).map_err(|error| match error {
            UnlockError::NoSuperblock(_) if is_cut_off => CliError::Tampered(
                "so much was cut off the file that no copy of the superblock is left: restore it from a \
                 backup"
                    .into(),
            ),
            UnlockError::NoSuperblock(error) => no_superblock(error),
            UnlockError::NoSecret(error) => error,
            UnlockError::NotUnlocked(error) => not_unlocked(error),
    })?;
    check_parties(volume, owner.superblock.params())?;
    Ok(owner)
}

/// Refuses a URL of share servers that says something else of them than the volume does.
fn check_parties(volume: &Location, params: &VolumeParams) -> Result<(), CliError> {
    let StoreKind::Shares { servers, colluding } = volume.kind() else { return Ok(()) };
    let facts = params.config()?.facts();
    let is_other =
        |name, named: usize| number_of(&facts, name).filter(|of_volume| *of_volume != named as u64);
    if let Some(of_volume) = is_other("servers", servers) {
        return Err(CliError::Input(format!(
            "the volume is on {of_volume} share servers, and {servers} are named: name all of them, in the order in which it was made"
        )));
    }
    if let Some(of_volume) = is_other("colluding", colluding) {
        return Err(CliError::Input(format!(
            "{of_volume} of the servers of this volume may collude, and the URL says {colluding} (that is what it says without collude=): write &collude={of_volume}"
        )));
    }
    Ok(())
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

/// The store is one of ours, so there should be one.
pub(super) fn no_superblock(error: SuperblockError) -> CliError {
    match error.kind() {
        SuperblockErrorKind::NotAVolume => CliError::Tampered(
            "what is there has the form of a volume, and no superblock. If it is a copy that is not whole, \
             go on with `oblivio copy --resume`. If it never was a volume, because its creation was \
             interrupted, `oblivio remove` removes it. Else restore it from a backup"
                .into(),
        ),
        _ => VolumeError::from(error).into(),
    }
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
    let options =
        StoreOptions { direct: run.direct, retry_for: run.retry_for, ..StoreOptions::default() };
    let Unlocking { store, owner, state, .. } = unlock(args, &options, NewerCopies::Refuse)?;
    let dir = state_home::open(&state)?;
    let levels = number_of(&owner.superblock.params().config()?.facts(), "levels");
    let (store, recording) = Recording::wrap(store, run.record_view.as_deref(), levels)?;
    let hits = if run.serve_hits { HitPolicy::Serve } else { HitPolicy::Access };
    let sync_moves = run.sync_moves.into();
    let after_tampering = run.after_tampering;
    let lengths = match run.rate.schedule() {
        Some(_) => Lengths::Constant,
        None => Lengths::Needed,
    };
    let options =
        VolumeOptions { sync_moves, lengths, hits, after_tampering, ..VolumeOptions::default() };
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
