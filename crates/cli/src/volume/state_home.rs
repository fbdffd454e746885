//! Where the client's directories of all volumes are.

use std::env;
use std::path::{Path, PathBuf};

use oblivio_volume::state_dir::FsStateDir;
use oblivio_volume::superblock::VolumeId;
use oblivio_volume::{VolumeError, VolumeErrorKind};
use rustix::process::geteuid;

use crate::error::CliError;

/// The client's directory of a volume: the one named, or one beside the user's other state.
pub(crate) fn directory(named: Option<&Path>, volume: VolumeId) -> Result<PathBuf, CliError> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let id: String = volume.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || variable("HOME").map(|home| home.join(".local/state"));
    variable("XDG_STATE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(home)
        .map(|parent| parent.join("oblivio").join(id))
        .ok_or_else(|| {
            CliError::Input("there is no home directory: name the client's with --state".into())
        })
}

/// Takes a client's directory into use.
pub(crate) fn open(path: &Path) -> Result<FsStateDir, CliError> {
    FsStateDir::open(path).map_err(unfit)
}

/// Takes a client's directory into use of which nothing will be changed.
pub(crate) fn open_to_read(path: &Path) -> Result<FsStateDir, CliError> {
    FsStateDir::open_to_read(path).map_err(unfit)
}

/// Makes a client's directory, unless it is there, and takes it into use.
pub(crate) fn create(path: &Path) -> Result<FsStateDir, CliError> {
    FsStateDir::create(path).map_err(unfit)
}

/// Says with which option another one is named.
fn unfit(error: VolumeError) -> CliError {
    match error.kind() {
        VolumeErrorKind::InvalidRequest => {
            let sudo = if geteuid().is_root() {
                ". Under sudo, the home directory may be that of who called it"
            } else {
                ""
            };
            CliError::Input(format!("{error} with --state{sudo}"))
        }
        _ => error.into(),
    }
}
