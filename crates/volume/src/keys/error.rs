//! Why a key could not be had, or a slot not be changed.

/// What a program should know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyErrorKind {
    /// A label, a secret, a cost or the number of a slot is out of range. Nothing was done.
    InvalidRequest,
    /// No slot opens with this secret. Which of them came near is not said.
    WrongKey,
    /// Opening would take more memory or time than this program is willing or able to spend.
    TooCostly,
    /// All slots are taken: remove one first.
    NoFreeSlot,
    /// This slot is the only way into the volume: add another one first.
    LastSlot,
}

/// An error about keys. Its message holds no secret: it may be logged.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct KeyError {
    kind: KeyErrorKind,
    message: String,
}

impl KeyError {
    pub(crate) fn new(kind: KeyErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(KeyErrorKind::InvalidRequest, message)
    }

    /// What kind of error it is.
    pub fn kind(&self) -> KeyErrorKind {
        self.kind
    }
}
