//! `oblivio shares repair`: rebuilds the shares of one server.

use oblivio::home;
use oblivio::opening::{UnlockRequest, look_to_repair, state_of};
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
    let mut reader = look_to_repair(volume, server, &options)?;
    let request = UnlockRequest {
        location: volume,
        state: state.as_deref(),
        limits: unlock.unlock_limits(),
        newer: NewerCopies::Refuse,
    };
    let owner = secret::with(secret, |secret| request.owner_of(&mut reader, false, secret));
    let owner = owner.map_err(|error| match (error, reader.describe_silent(server)) {
        (CliError::StoreRolledBack(_), Some(missing)) => older_records(&missing),
        (error, _) => error,
    })?;
    let params = shape(owner.superblock.params())?;
    let mut dir = client_directory(args, &owner)?;
    let is_known = match &dir {
        Ok(dir) => wrong_servers::recorded(dir).map_err(VolumeError::from)?.contains(&server),
        Err(_) => false,
    };
    check_needed(args, is_known, &mut reader, &params)?;
    // Check first: a repair that is refused must not fence off the client that uses the volume.
    records_to_copy(args, &dir, &mut reader, &owner)?;
    drop(reader);
    let mut store = volume.open_to_repair(server, RemoteMode::Write, &options)?;
    // While a client used the volume, the server could seem to be behind.
    check_needed(args, is_known, &mut store, &params)?;
    let records = records_to_copy(args, &dir, &mut store, &owner)?;
    let buckets = params.buckets();
    // Everything is read twice: nothing is removed from this server before a check has shown that
    // the other servers can rebuild it.
    let bar = progress::bar_of(buckets, "buckets of the other servers");
    let key = seal_key(&owner.volume_key);
    let checked =
        check_others(&mut store, &params, &key, server, &mut |done| bar.set_position(done));
    bar.finish_and_clear();
    let checked = checked.map_err(VolumeError::from)?;
    store.recreate_server(server, &records)?;
    let bar = progress::bar_of(buckets, "buckets");
    let repaired =
        repair(&mut store, &params, &key, (server, &checked), &mut |done| bar.set_position(done));
    bar.finish_and_clear();
    let repaired = repaired.map_err(VolumeError::from)?;
    store.flush().map_err(|error| VolumeError::from(oblivio_core::Error::from(error)))?;
    if let Ok(dir) = &mut dir {
        for wrong in &repaired.wrong {
            wrong_servers::record(dir, *wrong).map_err(VolumeError::from)?;
        }
        wrong_servers::clear(dir, server).map_err(VolumeError::from)?;
    }
    let names = |servers: &[usize]| {
        let names: Vec<_> = servers.iter().map(|server| store.name(*server)).collect();
        names.join(", ")
    };
    if args.json {
        let numbers = |servers: &[usize]| -> Vec<_> { servers.iter().map(|it| it + 1).collect() };
        let (wrong, behind) = (numbers(&repaired.wrong), numbers(&repaired.behind));
        let report =
            json!({ "server": args.server, "buckets": buckets, "wrong": wrong, "behind": behind });
        output::print(&format!("{report:#}"))?;
    } else {
        output::print(&format!("{} is repaired", store.name(server)))?;
    }
    if let (Err(why), true) = (&dir, args.anyway) {
        output::print_remark(&format!(
            "{why}: if `oblivio info` with the client's directory reports wrong shares on this \
             server, repeat the repair with that directory (--state)"
        ));
    }
    if !repaired.behind.is_empty() {
        output::print_remark(&format!(
            "{} is one eviction behind, and the repaired one cannot roll back to it: repair it \
             next, with --anyway",
            names(&repaired.behind)
        ));
    }
    if repaired.wrong.is_empty() {
        return Ok(());
    }
    Err(CliError::Tampered(format!(
        "{} answered with shares that do not fit the shares of the others; none of them was used. \
         Repair it next, with --anyway",
        names(&repaired.wrong)
    )))
}

/// The client's directory, or the reason why it cannot be used. Fails if `--state` names a
/// directory that cannot be used.
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

/// Refuses to repair a server that is up to date, unless `--anyway` is given or its shares are
/// known to be wrong.
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
    let reason = match needs_repair(store, params, server).map_err(VolumeError::from)? {
        Need::Shares => return Ok(()),
        Need::LastWrites => {
            "is missing the last writes, as after a crash: open the volume, which brings the \
             server up to date. If that, or `oblivio check`, reports a rollback of this server, \
             --anyway rebuilds its shares"
        }
        Need::Nothing => {
            "is up to date with the other servers. If a command reported wrong shares on this \
             server, --anyway rebuilds its shares: this command does not look for wrong shares. \
             Otherwise no repair is needed"
        }
    };
    Err(CliError::Input(format!("{} {reason}", store.name(server))))
}

/// The superblock and the anchors for the rebuilt server.
///
/// Servers that were unavailable hold old records. If the servers with newer ones are missing, each
/// repair would give the old records to one more server, until no newer ones are left. So either
/// the client's directory must confirm that the records are the newest, or all other servers must
/// be available, unless `--without-missing` is given.
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
            "the client's directory names newer records than the available servers hold, as after \
             a crash, and others are missing: {missing}. Bring them back, or open the volume and \
             close it again; then repeat the repair"
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

/// The error if the records are older than those that the client's directory names, and servers
/// other than the repaired one are missing.
fn older_records(missing: &str) -> CliError {
    CliError::Unreachable(format!(
        "the available servers hold older records than the client's directory names, or none, and \
         others are missing: {missing}. Bring them back, and repeat the repair"
    ))
}

/// Refuses a repair without the latest copy of the client's directory, for the reason `why`, if
/// servers are missing and the user has not allowed this.
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

/// The parameters of S³ORAM in those of a volume. Fails if the volume has another scheme.
fn shape(params: &VolumeParams) -> Result<S3OramParams, CliError> {
    let VolumeParams { blocks, block_bytes, scheme_params, .. } = params;
    let scheme = params.config()?;
    let shape = S3OramParams::decode(*blocks, *block_bytes, scheme_params);
    match shape {
        Ok(shape) if shape.scheme() == scheme.scheme() => Ok(shape),
        _ => Err(CliError::Input("the volume is not on share servers, so it has no shares".into())),
    }
}
