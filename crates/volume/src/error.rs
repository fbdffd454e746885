//! What can go wrong with a volume, and whose fault it is.

use std::error::Error as StdError;
use std::io;

use oblivio_core::StoreErrorKind;

use crate::superblock::{SuperblockError, SuperblockErrorKind};

/// Whose fault it is, and so what to do next. The kind is API: programs branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VolumeErrorKind {
    /// The parameters cannot exist, and nothing was created; or trees of these have no room for what they should hold.
    InvalidConfig,
    /// The request cannot be served. Nothing was touched; the volume stays usable.
    InvalidRequest,
    /// The store, or the directory, holds no volume of this program.
    NotAVolume,
    /// It was written by a version of this program that this one does not know, or no longer reads.
    UnknownVersion,
    /// The passphrase or key file opens nothing here.
    WrongKey,
    /// What is there was changed by somebody else, or damaged.
    Tampered,
    /// Storage says itself that what it holds is not whole. The client has found nothing.
    StoreDamaged,
    /// Storage is older than the client knows it to be.
    StoreRolledBack,
    /// The client's directory is older than storage knows it to be.
    StateRolledBack,
    /// The client's directory belongs to another volume.
    WrongState,
    /// The client's directory has no state, or what it has is damaged.
    StateDamaged,
    /// Somebody else has the volume open.
    Locked,
    /// There is no room left where the volume or its state lives.
    NoSpace,
    /// Storage does not answer. It may later; open the volume again then.
    Unreachable,
    /// The medium failed.
    Io,
    /// An earlier operation failed half way. This handle answers nothing more: open it again.
    MustReopen,
}

impl VolumeErrorKind {
    /// What a failure of a file of the client is.
    pub(crate) fn of_file(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::NoSpace,
            _ => Self::Io,
        }
    }
}

/// Advice for a file that cannot grow; empty for other errors.
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
    /// An error that starts here.
    pub fn new(kind: VolumeErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// An error that something below caused.
    pub fn caused_by(
        kind: VolumeErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, message: message.into(), source: Some(source.into()) }
    }

    /// The client's directory failed: `what` says how.
    pub(crate) fn of_client_directory(what: &str, error: io::Error) -> Self {
        let kind = VolumeErrorKind::of_file(&error);
        let advice = match error.kind() {
            _ if kind == VolumeErrorKind::NoSpace => {
                " and open the volume again. Without room it can still be rescued and copied"
            }
            io::ErrorKind::ReadOnlyFilesystem => {
                ": mount its file system read-write, or use a copy of the directory (`cp -a`) on \
                 another one, and the copy alone from then on. Without writing it can still be \
                 rescued and copied"
            }
            _ => "",
        };
        Self::caused_by(kind, format!("{what}: {error}{}{advice}", room_advice(&error)), error)
    }

    /// What kind of error it is.
    pub fn kind(&self) -> VolumeErrorKind {
        self.kind
    }
}

/// Errors of the engine.
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
                ". Bring it back as it was before it was changed, and open the volume as one that \
                 was tampered with (a backup from before the last opening is too old, and this was one). \
                 Without it, `oblivio rescue` saves what is left"
            }
            _ => "",
        };
        Self::caused_by(kind, format!("{error}{advice}"), error)
    }
}

/// Errors of the store.
impl From<oblivio_core::StoreError> for VolumeError {
    fn from(error: oblivio_core::StoreError) -> Self {
        oblivio_core::Error::from(error).into()
    }
}

/// Errors of superblocks.
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

/// Errors of the client's directory.
impl From<io::Error> for VolumeError {
    fn from(error: io::Error) -> Self {
        Self::of_client_directory("the client's directory failed", error)
    }
}

/// What a failure of the store is for its volume.
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
    fn what_the_store_says_decides_whatever_it_passes_through() {
        for (store, volume) in [
            (StoreErrorKind::Unreachable, VolumeErrorKind::Unreachable),
            (StoreErrorKind::Refused, VolumeErrorKind::Io),
            (StoreErrorKind::Fenced, VolumeErrorKind::Locked),
            (StoreErrorKind::Full, VolumeErrorKind::NoSpace),
            // It is the store that says so: tampering is what the client found.
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
