//! Opens a volume, given its location and key.

use std::path::PathBuf;
use std::time::Duration;

use oblivio::StoreOptions;
use oblivio::opening::{UnlockRequest, UnlockedStore};
use oblivio_core::HitPolicy;
use oblivio_core::store::{TreeShape, shapes_of};
use oblivio_volume::unlock::NewerCopies;
use oblivio_volume::{Coins, Lengths, Recovery, Volume, VolumeOptions};

use super::recording::Recording;
use super::secret;
use super::watching::BoundWatchPage;
use crate::args::{OpenArgs, RunArgs};
use crate::error::CliError;
use crate::output;

/// Randomness from the system.
pub(crate) fn coins() -> Result<Coins, CliError> {
    Ok(Coins::from_system()?)
}

/// The request to unlock the volume that `args` names, with its limits.
pub(super) fn unlock_request(args: &OpenArgs, newer: NewerCopies) -> UnlockRequest<'_> {
    let OpenArgs { volume, unlock } = args;
    UnlockRequest {
        location: &volume.volume,
        state: volume.state.as_deref(),
        limits: unlock.unlock_limits(),
        newer,
    }
}

/// Opens the store, and unlocks its superblock.
pub(crate) fn unlock(
    args: &OpenArgs,
    options: &StoreOptions,
    newer: NewerCopies,
) -> Result<UnlockedStore, CliError> {
    let request = unlock_request(args, newer);
    let unlocked = secret::with(&args.volume.secret, |secret| request.unlock(options, secret))?;
    unlocked.condition.mended.iter().for_each(|mended| output::print_remark(mended));
    Ok(unlocked)
}

/// An open volume.
pub(crate) struct Opened {
    pub(crate) volume: Volume,
    pub(crate) recovery: Recovery,
    /// The client's directory.
    pub(crate) state: PathBuf,
    pub(crate) recording: Option<Recording>,
    /// Bytes of all buckets in storage, written or not.
    pub(crate) store_bytes: u128,
}

/// Opens a volume to read and write its blocks.
pub(crate) fn open(args: &OpenArgs, run: &RunArgs) -> Result<Opened, CliError> {
    open_watched(args, run, None)
}

/// Store options with a time for retries, if one is given.
pub(super) fn retrying_for(time: Option<Duration>) -> StoreOptions {
    let options = StoreOptions::default();
    match time {
        Some(time) => options.with_retry_for(time),
        None => options,
    }
}

/// Opens a volume to read and write its blocks. If there is a watch page, also passes what storage
/// sees to that page.
pub(super) fn open_watched(
    args: &OpenArgs,
    run: &RunArgs,
    watching: Option<&mut BoundWatchPage>,
) -> Result<Opened, CliError> {
    run.rate.check()?;
    let options = retrying_for(run.retry_for).with_direct(run.direct);
    let UnlockedStore { store, owner, state, dir, .. } =
        unlock(args, &options, NewerCopies::Refuse)?;
    let store_bytes = shapes_of(&*store).iter().map(TreeShape::tree_bytes).sum();
    let facts = owner.superblock.params().config()?.facts();
    let (store, recording) = Recording::wrap(store, run.record_view.as_deref(), &facts)?;
    let store = match watching {
        Some(watching) => watching.record(store, &facts)?,
        None => store,
    };
    let hits = if run.serve_hits { HitPolicy::Serve } else { HitPolicy::Access };
    let sync_moves = run.sync_moves.into();
    let after_tampering = run.after_tampering;
    let lengths = match run.rate.schedule() {
        Some(_) => Lengths::Constant,
        None => Lengths::Needed,
    };
    let options = VolumeOptions::default()
        .with_sync_moves(sync_moves)
        .with_lengths(lengths)
        .with_hits(hits)
        .with_after_tampering(after_tampering)
        .with_warn(output::print_remark);
    let (volume, recovery) = Volume::open(store, Box::new(dir), &owner, options, coins()?)?;
    if recovery.was_needed {
        output::print_remark(&format!(
            "the volume had not been closed: it was recovered, and {} accesses were made again",
            recovery.accesses
        ));
    }
    if recovery.state_bytes_ignored > 0 {
        output::print_remark(&format!(
            "the last {} bytes of the client's state could not be opened, and were left out. A \
             crash can tear off bytes that were not yet durable; without a crash, the client's \
             directory was damaged, and the latest writes may be missing",
            recovery.state_bytes_ignored
        ));
    }
    if recovery.anchors_damaged > 0 {
        output::print_remark(
            "a damaged anchor was repaired: a crash tore it, or storage is damaged",
        );
    }
    if recovery.superblocks_mended > 0 {
        output::print_remark("damaged copies of the superblock were repaired");
    }
    Ok(Opened { volume, recovery, state, recording, store_bytes })
}
