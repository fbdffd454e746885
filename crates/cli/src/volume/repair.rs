//! `oblivio shares repair`: the shares of one server, made anew.

use oblivio::home;
use oblivio::opening::{Locked, look_to_repair, state_of};
use oblivio_core::durable::DurableConfig;
use oblivio_core::records::RecordPlace;
use oblivio_core::store::BucketStore;
use oblivio_shares::durable::{Need, S3OramParams, check_others, needs_repair, repair};
use oblivio_shares::remote::SharedStore;
use oblivio_shares::servers::ShareServers;
use oblivio_store::RemoteMode;
use oblivio_volume::state_dir::FsStateDir;
use oblivio_volume::superblock::{Unlocked, VolumeParams};
use oblivio_volume::unlock::NewerCopies;
use oblivio_volume::volume::seal_key;
use oblivio_volume::{
    RecordsAge, VolumeError, VolumeErrorKind, authentic_records, check_newest, wrong_servers,
};
use serde_json::json;

use super::opening::retrying_for;
use super::secret;
use crate::args::RepairArgs;
use crate::error::CliError;
use crate::{output, progress};

/// `oblivio shares repair`.
pub(crate) fn repair_shares(args: &RepairArgs) -> Result<(), CliError> {
    let RepairArgs { volume, secret, state, unlock, retry_for, .. } = args;
    let server = usize::from(args.server) - 1;
    let options = retrying_for(*retry_for);
    let mut looked = look_to_repair(volume, server, &options)?;
    let locked = Locked {
        location: volume,
        state: state.as_deref(),
        attempt: unlock.attempt(),
        newer: NewerCopies::Refuse,
    };
    let owner = secret::with(secret, |secret| locked.owner_of(&mut looked, false, secret));
    let owner = owner.map_err(|error| match (error, looked.describe_silent(server)) {
        (CliError::StoreRolledBack(_), Some(missing)) => older_records(&missing),
        (error, _) => error,
    })?;
    let params = shape(owner.superblock.params())?;
    let mut dir = client_directory(args, &owner)?;
    let is_known = match &dir {
        Ok(dir) => wrong_servers::noted(dir).map_err(VolumeError::from)?.contains(&server),
        Err(_) => false,
    };
    check_needed(args, is_known, &mut looked, &params)?;
    // A repair that is refused must not fence off the client that uses the volume.
    records_to_copy(args, &dir, &mut looked, &owner)?;
    drop(looked);
    let mut store = volume.open_to_repair(server, RemoteMode::Write, &options)?;
    // While somebody used the volume, it could be taken for being behind.
    check_needed(args, is_known, &mut store, &params)?;
    let records = records_to_copy(args, &dir, &mut store, &owner)?;
    let buckets = params.buckets();
    // All is read twice: nothing is removed before it is known that the others have it.
    let bar = progress::bar_of(buckets, "buckets of the others");
    let key = seal_key(&owner.volume_key);
    let checked =
        check_others(&mut store, &params, &key, server, &mut |done| bar.set_position(done));
    bar.finish_and_clear();
    let checked = checked.map_err(VolumeError::from)?;
    store.make_anew(server, &records)?;
    let bar = progress::bar_of(buckets, "buckets");
    let repaired =
        repair(&mut store, &params, &key, (server, &checked), &mut |done| bar.set_position(done));
    bar.finish_and_clear();
    let repaired = repaired.map_err(VolumeError::from)?;
    store.flush().map_err(|error| VolumeError::from(oblivio_core::Error::from(error)))?;
    if let Ok(dir) = &mut dir {
        for wrong in &repaired.wrong {
            wrong_servers::note(dir, *wrong).map_err(VolumeError::from)?;
        }
        wrong_servers::forget(dir, server).map_err(VolumeError::from)?;
    }
    let names = |servers: &[usize]| {
        let names: Vec<_> = servers.iter().map(|server| store.name(*server)).collect();
        names.join(", ")
    };
    if args.json {
        let numbers = |servers: &[usize]| -> Vec<_> { servers.iter().map(|it| it + 1).collect() };
        let (wrong, behind) = (numbers(&repaired.wrong), numbers(&repaired.behind));
        let said =
            json!({ "server": args.server, "buckets": buckets, "wrong": wrong, "behind": behind });
        output::print(&format!("{said:#}"))?;
    } else {
        output::print(&format!("{} has its shares again", store.name(server)))?;
    }
    if let (Err(why), true) = (&dir, args.anyway) {
        output::remark(&format!(
            "{why}: if `oblivio info` says there that this server has wrong shares, repeat the \
             repair with that directory (--state)"
        ));
    }
    if !repaired.behind.is_empty() {
        output::remark(&format!(
            "{} is an eviction behind, and this one cannot go back to it: repair it next, with --anyway",
            names(&repaired.behind)
        ));
    }
    if repaired.wrong.is_empty() {
        return Ok(());
    }
    Err(CliError::Tampered(format!(
        "{} answered shares that do not fit those of the others, and nothing of it was used: repair it next, with --anyway",
        names(&repaired.wrong)
    )))
}

/// The client's directory, or why it cannot be used. One that is named has to be usable.
fn client_directory(
    args: &RepairArgs,
    owner: &Unlocked,
) -> Result<Result<FsStateDir, String>, CliError> {
    let path = state_of(args.state.as_deref(), owner.superblock.volume_id());
    let opened = path.and_then(|path| home::open(&path));
    match opened {
        Err(error) if args.state.is_some() => Err(error.into()),
        opened => {
            Ok(opened.map_err(|error| format!("the client's directory cannot be used ({error})")))
        }
    }
}

/// Refuses to make a server anew that is where the others are, unless it is asked for all the same.
fn check_needed(
    args: &RepairArgs,
    is_known_to_be_wrong: bool,
    store: &mut SharedStore,
    params: &S3OramParams,
) -> Result<(), CliError> {
    let server = usize::from(args.server) - 1;
    if args.anyway || is_known_to_be_wrong {
        return Ok(());
    }
    let said = match needs_repair(store, params, server).map_err(VolumeError::from)? {
        Need::Shares => return Ok(()),
        Need::LastWrites => {
            "lacks what was written last, as after a crash: open the volume, which brings it there. If that, or `oblivio check`, says that it is set back, --anyway makes its shares anew"
        }
        Need::Nothing => {
            "is where the others are. If a command reported wrong shares on this server, --anyway \
             makes its shares anew: the repair itself does not look for wrong shares. Otherwise \
             nothing has to be repaired"
        }
    };
    Err(CliError::Input(format!("{} {said}", store.name(server))))
}

/// The superblock and the anchors for the server that is made anew.
///
/// Servers that were away hold old records. If the servers that have newer ones are missing, each
/// repair would give the old records to one more server, until no other is left. So either the
/// client's directory says that these records are the newest, or all other servers are there.
fn records_to_copy(
    args: &RepairArgs,
    dir: &Result<FsStateDir, String>,
    store: &mut SharedStore,
    owner: &Unlocked,
) -> Result<Vec<(RecordPlace, Vec<u8>)>, CliError> {
    use VolumeErrorKind::{StateRolledBack, StoreRolledBack, Tampered};
    let records = authentic_records(store, owner);
    let missing = store.describe_silent(usize::from(args.server) - 1);
    let records = match (records, &missing) {
        (Err(error), Some(missing)) if error.kind() == Tampered => {
            return Err(CliError::Unreachable(format!(
                "{error}. Missing: {missing}. Bring them back, and repeat the repair"
            )));
        }
        (records, _) => records?,
    };
    let age = match dir {
        Ok(dir) => check_newest(&records, dir, owner),
        Err(why) => return without_directory(args, why, missing).map(|()| records),
    };
    match (age, missing) {
        (Ok(RecordsAge::Newest), _) | (Ok(RecordsAge::Previous), None) => Ok(records),
        (Ok(RecordsAge::Previous), Some(missing)) => Err(CliError::Unreachable(format!(
            "the client's directory names newer records than the servers that answer hold, as \
             after a crash, and others are missing: {missing}. Bring them back, or open the volume \
             and close it again, and repeat the repair"
        ))),
        (Err(error), Some(missing)) if matches!(error.kind(), StoreRolledBack | Tampered) => {
            Err(older_records(&missing))
        }
        (Err(error), missing) if error.kind() == StateRolledBack => {
            let why = "the client's directory is older than storage";
            without_directory(args, why, missing).map(|()| records)
        }
        (Err(error), missing) if args.state.is_none() && error.kind() != StoreRolledBack => {
            let why = format!("the client's directory cannot be used ({error})");
            without_directory(args, &why, missing).map(|()| records)
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// The error of records that are older than the client's directory names, while others than the
/// repaired server are missing.
fn older_records(missing: &str) -> CliError {
    CliError::Unreachable(format!(
        "the servers that answer hold older records than the client's directory names, or none, \
         and others are missing: {missing}. Bring them back, and repeat the repair"
    ))
}

/// Refuses a repair without the latest client's directory, because of `why`, if servers are
/// missing.
fn without_directory(
    args: &RepairArgs,
    why: &str,
    missing: Option<String>,
) -> Result<(), CliError> {
    match missing {
        Some(missing) if !args.without_missing => Err(CliError::Unreachable(format!(
            "{why}, and the missing servers may have newer records: {missing}. Bring them back, \
             and repeat the repair; or name the latest directory with --state. If they are lost \
             for good, --without-missing copies the newest records that are left"
        ))),
        _ => Ok(()),
    }
}

/// What shapes the volume, if it is one on share servers.
fn shape(params: &VolumeParams) -> Result<S3OramParams, CliError> {
    let VolumeParams { blocks, block_bytes, scheme_params, .. } = params;
    let scheme = params.config()?;
    let shape = S3OramParams::decode(*blocks, *block_bytes, scheme_params);
    match shape {
        Ok(shape) if shape.scheme() == scheme.scheme() => Ok(shape),
        _ => Err(CliError::Input("the volume has another scheme than one with shares".into())),
    }
}
