//! The client's directories of a user.

use std::env;
use std::path::{Path, PathBuf};

use oblivio_volume::state_dir::FsStateDir;
use oblivio_volume::superblock::VolumeId;
use oblivio_volume::{VolumeError, VolumeErrorKind};
use rustix::process::geteuid;

use crate::error::{Error, ErrorKind};

/// The default client's directory of a volume: `$XDG_STATE_HOME/oblivio/ID`, or
/// `$HOME/.local/state/oblivio/ID` if `XDG_STATE_HOME` is not an absolute path. `None` if `HOME` is
/// needed and not set.
pub fn client_directory(volume: VolumeId) -> Option<PathBuf> {
    let id: String = volume.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state_home = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| home.join(".local/state"));
    state_home.or_else(home).map(|parent| parent.join("oblivio").join(id))
}

/// Opens and locks a client's directory.
///
/// # Errors
/// See [`FsStateDir::open`]. The message says what to do.
pub fn open(directory: &Path) -> Result<FsStateDir, Error> {
    FsStateDir::open(directory).map_err(with_advice)
}

/// Opens and locks a client's directory read-only.
///
/// # Errors
/// See [`FsStateDir::open_to_read`]. The message says what to do.
pub fn open_to_read(directory: &Path) -> Result<FsStateDir, Error> {
    FsStateDir::open_to_read(directory).map_err(with_advice)
}

/// Opens and locks a client's directory, and creates it if it does not exist.
///
/// # Errors
/// See [`FsStateDir::create`]. The message says what to do.
pub fn create(directory: &Path) -> Result<FsStateDir, Error> {
    FsStateDir::create(directory).map_err(with_advice)
}

/// Adds advice to an error: how to name another directory and, for root, in whose home directory it
/// may lie.
fn with_advice(error: VolumeError) -> Error {
    let whose = if geteuid().is_root() {
        ". Under sudo, it may lie in the home directory of root, or of the user who called sudo"
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
                "{error}. Name it by its own path; only the user who created the volume can leave \
                 that out{whose}"
            ),
        ),
        _ => error.into(),
    }
}
