//! `oblivio remove`: a volume, or what an interrupted creation has left of one, is not there any more.

use oblivio_store::{Location, OpenErrorKind, OpenedStore, StoreOptions};
use serde_json::json;

use super::plan::size;
use crate::args::RemoveArgs;
use crate::error::CliError;
use crate::output;

/// `oblivio remove`.
pub(crate) fn remove_volume(args: &RemoveArgs) -> Result<(), CliError> {
    let RemoveArgs { volume, yes, json } = args;
    let bytes = bytes_that_are_freed(volume)?;
    if !yes {
        let holds = bytes.map_or_else(String::new, |bytes| format!(" ({})", size(bytes as f64)));
        return Err(CliError::Input(format!(
            "{volume}{holds} would be gone for good: say --yes to remove it. Nothing was done"
        )));
    }
    volume
        .remove()
        .map_err(|error| CliError::Output(format!("{volume} cannot be removed: {error}")))?;
    output::print(&if *json {
        format!("{:#}", json!({ "removed": volume.to_string(), "bytes_freed": bytes }))
    } else {
        format!("{volume} is removed. Its client's directory is of no use any more")
    })
}

/// What is no store, or in use, is not removed. A store that is damaged is, and nobody knows then how large it is.
fn bytes_that_are_freed(volume: &Location) -> Result<Option<u64>, CliError> {
    let options = StoreOptions { read_only: true, may_be_cut_off: true, ..Default::default() };
    match volume.open_as_it_is(&options) {
        Ok(OpenedStore { condition, .. }) => Ok(Some(condition.allocated_bytes)),
        Err(error) if error.kind() == OpenErrorKind::Damaged => Ok(None),
        Err(error) => Err(error.into()),
    }
}
