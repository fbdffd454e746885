//! Why a superblock cannot be had.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use oblivio_core::{StoreError, StoreErrorKind};

use crate::keys::{KeyError, KeyErrorKind};

/// What a program should know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SuperblockErrorKind {
    /// There is no volume here.
    NotAVolume,
    /// There is one that a newer program wrote: use that.
    UnknownVersion,
    /// The bytes are not those that were written. Of copies: none of them is whole.
    Damaged,
    /// The bytes are whole, and someone without the volume key has changed them.
    Tampered,
    /// No slot opens with this secret, or the volume key is another volume's.
    WrongKey,
    /// A slot would take more memory or time to open than this program is willing or able to spend.
    TooCostly,
    /// Parameters, a label, a secret or the number of a slot are out of range. Nothing was done.
    InvalidRequest,
    /// All slots are taken.
    NoFreeSlot,
    /// This slot is the only way into the volume.
    LastSlot,
    /// The store failed, or has no room for superblocks.
    Store,
}

/// An error about superblocks. Its message holds no secret: it may be logged. A clone keeps the
/// store's error.
#[derive(Clone, Debug)]
pub struct SuperblockError {
    kind: SuperblockErrorKind,
    message: String,
    source: Option<Arc<StoreError>>,
}

impl SuperblockError {
    pub(crate) fn new(kind: SuperblockErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// What kind of error it is.
    pub fn kind(&self) -> SuperblockErrorKind {
        self.kind
    }

    /// What kind of error of the store caused it, if one did.
    pub fn store_kind(&self) -> Option<StoreErrorKind> {
        self.source.as_deref().map(StoreError::kind)
    }
}

impl fmt::Display for SuperblockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// By hand: the derived `source` would be the `Arc`, and not the error in it.
impl StdError for SuperblockError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<KeyError> for SuperblockError {
    fn from(error: KeyError) -> Self {
        let kind = match error.kind() {
            KeyErrorKind::InvalidRequest => SuperblockErrorKind::InvalidRequest,
            KeyErrorKind::WrongKey => SuperblockErrorKind::WrongKey,
            KeyErrorKind::TooCostly => SuperblockErrorKind::TooCostly,
            KeyErrorKind::NoFreeSlot => SuperblockErrorKind::NoFreeSlot,
            KeyErrorKind::LastSlot => SuperblockErrorKind::LastSlot,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<StoreError> for SuperblockError {
    fn from(error: StoreError) -> Self {
        let message = format!("storage failed at a superblock: {error}");
        Self { kind: SuperblockErrorKind::Store, message, source: Some(Arc::new(error)) }
    }
}
