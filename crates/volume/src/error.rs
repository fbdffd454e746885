//! Errors of a volume, by cause.

use std::error::Error as StdError;
use std::io;

use oblivio_core::StoreErrorKind;

use crate::superblock::{SuperblockError, SuperblockErrorKind};

/// The cause of an error, which decides what the caller can do next. Part of the API: programs
/// branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VolumeErrorKind {
    /// The parameters are impossible or do not fit the store, and nothing was created; or the trees
    /// have no room for the blocks they should hold.
    InvalidConfig,
    /// The request cannot be served. Nothing was touched; the volume stays usable.
    InvalidRequest,
    /// The store holds no volume of this program.
    NotAVolume,
    /// This program does not know the version of the format, or the scheme of the volume.
    UnknownVersion,
    /// The passphrase or key file opens no key slot.
    WrongKey,
    /// Storage was changed by someone without the key, or is damaged.
    Tampered,
    /// Storage itself reports that its data is damaged. The client has found nothing wrong.
    StoreDamaged,
    /// Storage is older than the client's directory.
    StoreRolledBack,
    /// The client's directory is older than storage.
    StateRolledBack,
    /// The client's directory belongs to another volume.
    WrongState,
    /// The client's directory holds no state, or a damaged one.
    StateDamaged,
    /// Another process or client has the volume open.
    Locked,
    /// Storage or the client's directory is full.
    NoSpace,
    /// Storage does not answer. Open the volume again once it does.
    Unreachable,
    /// A disk, a file system or the operating system failed.
    Io,
    /// An earlier operation failed halfway. This handle answers no further request: open the volume
    /// again.
    MustReopen,
}

impl VolumeErrorKind {
    /// The kind of an I/O error on a file of the client.
    pub(crate) fn of_file(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::NoSpace,
            _ => Self::Io,
        }
    }
}

/// Advice for an error that means a full disk, a full quota or a limit on the size of files. Empty
/// for other errors.
pub(crate) fn room_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ": make room there",
        io::ErrorKind::FileTooLarge => ": allow longer files",
        _ => "",
    }
}

/// An error of a volume. Messages hold no address and no data: they may be logged.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct VolumeError {
    kind: VolumeErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl VolumeError {
    /// An error without an underlying error.
    pub fn new(kind: VolumeErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// An error that wraps the underlying error.
    pub fn caused_by(
        kind: VolumeErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, message: message.into(), source: Some(source.into()) }
    }

    /// An error of the client's directory. `what` names the operation that failed.
    pub(crate) fn of_client_directory(what: &str, error: io::Error) -> Self {
        let kind = VolumeErrorKind::of_file(&error);
        let advice = match error.kind() {
            _ if kind == VolumeErrorKind::NoSpace => {
                " and open the volume again. Without room it can still be rescued and copied"
            }
            io::ErrorKind::ReadOnlyFilesystem => {
                ": mount its file system read-write, or copy the directory (`cp -a`) to another \
                 one and use only the copy from then on. Without writing it can still be \
                 rescued and copied"
            }
            _ => "",
        };
        Self::caused_by(kind, format!("{what}: {error}{}{advice}", room_advice(&error)), error)
    }

    /// The kind of the error.
    pub fn kind(&self) -> VolumeErrorKind {
        self.kind
    }
}

/// Converts an error of the engine.
impl From<oblivio_core::Error> for VolumeError {
    fn from(error: oblivio_core::Error) -> Self {
        use oblivio_core::ErrorKind as Core;
        let kind = match error.kind() {
            Core::Store => error.store_kind().map_or(VolumeErrorKind::Io, VolumeErrorKind::from),
            Core::InvalidConfig | Core::StoreMismatch => VolumeErrorKind::InvalidConfig,
            Core::StoreRolledBack => VolumeErrorKind::StoreRolledBack,
            Core::StateRolledBack => VolumeErrorKind::StateRolledBack,
            Core::InvalidRequest => VolumeErrorKind::InvalidRequest,
            Core::Corrupt => VolumeErrorKind::Tampered,
            Core::MustReopen => VolumeErrorKind::MustReopen,
            _ => VolumeErrorKind::Io,
        };
        let advice = match kind {
            VolumeErrorKind::Tampered if !error.is_advised() => {
                ". Restore the changed bytes, and open the volume with `after_tampering`; a \
                 backup from before this opening is too old. If you cannot restore them, \
                 `oblivio rescue` saves what is left"
            }
            _ => "",
        };
        Self::caused_by(kind, format!("{error}{advice}"), error)
    }
}

/// Converts an error of the store.
impl From<oblivio_core::StoreError> for VolumeError {
    fn from(error: oblivio_core::StoreError) -> Self {
        oblivio_core::Error::from(error).into()
    }
}

/// Converts an error of a superblock.
impl From<SuperblockError> for VolumeError {
    fn from(error: SuperblockError) -> Self {
        use SuperblockErrorKind as Superblock;
        let kind = match error.kind() {
            Superblock::NotAVolume => VolumeErrorKind::NotAVolume,
            Superblock::UnknownVersion => VolumeErrorKind::UnknownVersion,
            Superblock::WrongKey => VolumeErrorKind::WrongKey,
            Superblock::Damaged | Superblock::Tampered => VolumeErrorKind::Tampered,
            Superblock::Store => {
                error.store_kind().map_or(VolumeErrorKind::Io, VolumeErrorKind::from)
            }
            _ => VolumeErrorKind::InvalidRequest,
        };
        Self::caused_by(kind, error.to_string(), error)
    }
}

/// Converts an I/O error of the client's directory.
impl From<io::Error> for VolumeError {
    fn from(error: io::Error) -> Self {
        Self::of_client_directory("the client's directory failed", error)
    }
}

/// Converts the kind of a store's error.
impl From<StoreErrorKind> for VolumeErrorKind {
    fn from(kind: StoreErrorKind) -> Self {
        match kind {
            StoreErrorKind::Unreachable => Self::Unreachable,
            StoreErrorKind::Fenced => Self::Locked,
            StoreErrorKind::Full => Self::NoSpace,
            StoreErrorKind::Damaged => Self::StoreDamaged,
            StoreErrorKind::UnknownVersion => Self::UnknownVersion,
            _ => Self::Io,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_core::StoreError;

    #[test]
    fn the_kind_of_a_store_error_survives_every_conversion() {
        for (store, volume) in [
            (StoreErrorKind::Unreachable, VolumeErrorKind::Unreachable),
            (StoreErrorKind::Refused, VolumeErrorKind::Io),
            (StoreErrorKind::Fenced, VolumeErrorKind::Locked),
            (StoreErrorKind::Full, VolumeErrorKind::NoSpace),
            // The store reports this damage itself; `Tampered` is what the client has found.
            (StoreErrorKind::Damaged, VolumeErrorKind::StoreDamaged),
            (StoreErrorKind::UnknownVersion, VolumeErrorKind::UnknownVersion),
            (StoreErrorKind::Failed, VolumeErrorKind::Io),
        ] {
            let error = || StoreError::new(store, "a failure for a test");
            let ways: [VolumeError; 3] = [
                error().into(),
                oblivio_core::Error::from(error()).into(),
                SuperblockError::from(error()).into(),
            ];
            assert!(ways.iter().all(|error| error.kind() == volume), "{store:?}: {ways:?}");
        }
    }
}
