//! `oblivio remove`: removes a volume, or the remains of an interrupted creation.

use oblivio::Location;
use oblivio::opening::check_parties;
use oblivio_core::durable::find_number;
use oblivio_store::{BoxedStore, OpenErrorKind, Remnants, StoreKind};
use oblivio_volume::unlock;
use serde_json::json;

use super::plan::size;
use crate::args::RemoveArgs;
use crate::error::CliError;
use crate::output;

/// `oblivio remove`.
pub(crate) fn remove_volume(args: &RemoveArgs) -> Result<(), CliError> {
    let RemoveArgs { volume, yes, json } = args;
    let Remnants { mut stores, bytes, absent } = volume.remnants()?;
    check_no_server_is_left(volume, &mut stores)?;
    // Release the lock: removing takes it again.
    drop(stores);
    let elsewhere = match &absent[..] {
        [] => String::new(),
        absent => format!(". Nothing of the volume is on {}", absent.join(", ")),
    };
    if !yes {
        let holds = bytes.map_or_else(String::new, |bytes| format!(" ({})", size(bytes as f64)));
        return Err(CliError::Input(format!(
            "{volume}{holds} would be deleted for good: add --yes to remove it. Nothing was \
             done{elsewhere}"
        )));
    }
    volume.remove().map_err(|error| match error.kind() {
        OpenErrorKind::Io => CliError::Output(format!("{volume} cannot be removed: {error}")),
        _ => error.into(),
    })?;
    output::print(&if *json {
        let removed = output::location_text(volume);
        let json = json!({ "removed": removed, "bytes_freed": bytes, "absent": absent });
        format!("{json:#}")
    } else {
        format!("{volume} is removed. Its client's directory is now useless{elsewhere}")
    })
}

/// Refuses a removal if the volume is also on share servers that the location does not name,
/// because their part of it would stay. If the location names share servers, refuses only if more
/// than half of the servers with a readable superblock report more servers than are named, because
/// a single server may lie.
fn check_no_server_is_left(volume: &Location, stores: &mut [BoxedStore]) -> Result<(), CliError> {
    let StoreKind::Shares { servers: named, .. } = volume.kind() else {
        // A store without a superblock is an interrupted creation.
        let shown = stores.iter_mut().filter_map(|store| unlock::read_public(store).ok());
        for superblock in shown {
            check_parties(volume, superblock.unauthenticated_params())?;
        }
        return Ok(());
    };
    let counts: Vec<_> = stores.iter_mut().filter_map(servers_of).collect();
    let more: Vec<_> = counts.iter().filter(|servers| **servers > named as u64).collect();
    match more.first() {
        Some(servers) if 2 * more.len() > counts.len() => Err(CliError::Input(format!(
            "the volume is on {servers} share servers, but {named} are named: name all of them. \
             Nothing was done"
        ))),
        _ => Ok(()),
    }
}

/// The number of share servers of the volume to which this store belongs, if it can be read.
fn servers_of(store: &mut BoxedStore) -> Option<u64> {
    let superblock = unlock::read_public(store).ok()?;
    let config = superblock.unauthenticated_params().config().ok()?;
    find_number(&config.facts(), "servers")
}
