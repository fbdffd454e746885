//! Where the clients' directories of a user are.

use std::env;
use std::path::{Path, PathBuf};

use oblivio_volume::state_dir::FsStateDir;
use oblivio_volume::superblock::VolumeId;
use oblivio_volume::{VolumeError, VolumeErrorKind};
use rustix::process::geteuid;

use crate::error::{Error, ErrorKind};

/// The client's directory of a volume, unless another one is named: `$XDG_STATE_HOME/oblivio/ID`, and without that variable
/// `~/.local/state/oblivio/ID`. None for a user who has no home directory.
pub fn client_directory(volume: VolumeId) -> Option<PathBuf> {
    let id: String = volume.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state_home = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| home.join(".local/state"));
    state_home.or_else(home).map(|parent| parent.join("oblivio").join(id))
}

/// Takes a client's directory into use.
///
/// # Errors
/// Those of [`FsStateDir::open`], with what to do.
pub fn open(directory: &Path) -> Result<FsStateDir, Error> {
    FsStateDir::open(directory).map_err(unfit)
}

/// Takes a client's directory into use of which nothing will be changed.
///
/// # Errors
/// Those of [`FsStateDir::open_to_read`], with what to do.
pub fn open_to_read(directory: &Path) -> Result<FsStateDir, Error> {
    FsStateDir::open_to_read(directory).map_err(unfit)
}

/// Makes a client's directory, unless it is there, and takes it into use.
///
/// # Errors
/// Those of [`FsStateDir::create`], with what to do.
pub fn create(directory: &Path) -> Result<FsStateDir, Error> {
    FsStateDir::create(directory).map_err(unfit)
}

/// Says how another one is named, and whose it was that was looked for.
fn unfit(error: VolumeError) -> Error {
    let whose = if geteuid().is_root() {
        ". Under sudo, the home directory may be root's or that of who called it"
    } else {
        ""
    };
    match error.kind() {
        VolumeErrorKind::InvalidRequest => {
            Error::new(ErrorKind::Input, format!("{error} by its own path{whose}"))
        }
        VolumeErrorKind::StateDamaged => Error::new(
            ErrorKind::State,
            format!(
                "{error}. Name it by its own path, which another user than the one who made the volume always has to{whose}"
            ),
        ),
        _ => error.into(),
    }
}
