//! The engine's error type: a kind and a message.
//!
//! The kind is part of the API: programs branch on it. The message is for humans and may change.

#[cfg(feature = "std")]
mod io_kind;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::error::Error as StdError;

/// The kind of an error. It determines what the caller can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration is impossible, for example because of a capacity of zero, a block size out
    /// of range, or too many levels. Nothing was created. Choose other parameters.
    InvalidConfig,
    /// This ORAM cannot serve the request, for example because of an address past the end or a
    /// buffer of the wrong length. Storage and client are unchanged, and the ORAM stays usable.
    InvalidRequest,
    /// The given store does not hold the tree that this configuration needs, or lacks a capability
    /// that the scheme requires. Nothing was touched.
    StoreMismatch,
    /// The storage, or a part of it, was rolled back: it is older than the client's state. Nothing
    /// was touched.
    StoreRolledBack,
    /// The client's state is older than the storage. Nothing was touched.
    StateRolledBack,
    /// The storage returned bytes that no honest write can have produced. The ORAM refuses further
    /// work. If it is durable, open it again on trustworthy storage; otherwise make a new one.
    Corrupt,
    /// The storage failed to read or write, possibly in the middle of a write-back. So the ORAM
    /// refuses further work. If it is durable, open it again; otherwise make a new one.
    Store,
    /// The stash holds too many blocks for its bound `stash_blocks_max`. No block is lost. A
    /// refused access has touched nothing: evict in the background, or use a larger bound. A
    /// refused [`populate`](crate::Front::populate) leaves the ORAM broken.
    StashFull,
    /// A counter has no values left under this key: sealing more would repeat a keystream. The ORAM
    /// refuses further work: move the data to an ORAM with a fresh key.
    CounterExhausted,
    /// An earlier operation failed halfway, and this handle refuses further work. If the ORAM is
    /// durable (see [`durable`](crate::durable)), open it again; otherwise make a new one.
    MustReopen,
}

/// An error of the engine.
///
/// Messages never hold a logical address, a leaf of the position map or a byte of a block: they
/// may be logged.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    store: Option<StoreError>,
    is_advised: bool,
}

impl Error {
    /// An error of this kind. The message is for humans, and may be logged: it holds no secret.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), store: None, is_advised: false }
    }

    /// The same error, marked as advised: its message already says what the user must do, so
    /// callers add no advice of their own.
    #[must_use]
    pub fn advised(self) -> Self {
        Self { is_advised: true, ..self }
    }

    /// Whether the error was marked with [`Self::advised`].
    pub fn is_advised(&self) -> bool {
        self.is_advised
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The kind of the store error that caused this error, if one did.
    pub fn store_kind(&self) -> Option<StoreErrorKind> {
        self.store.as_ref().map(StoreError::kind)
    }
}

/// Fails if an earlier failure left the client unusable.
///
/// # Errors
/// [`MustReopen`](ErrorKind::MustReopen).
pub fn check_not_broken(is_broken: bool) -> Result<(), Error> {
    if is_broken {
        let message = "an earlier access failed half way: open the ORAM again if it is durable, \
                       otherwise make a new one";
        return Err(Error::new(ErrorKind::MustReopen, message));
    }
    Ok(())
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self {
            kind: ErrorKind::Store,
            message: format!("storage failed: {error}"),
            store: Some(error),
            is_advised: false,
        }
    }
}

/// The reason why a store cannot serve a request. It determines what the caller can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The medium does not answer. It may answer later.
    Unreachable,
    /// The store does not allow this request, or not to this client: the piece does not exist, the
    /// store is read-only, or a credential was rejected. Nothing was done.
    Refused,
    /// Another client has taken over the store.
    Fenced,
    /// The medium has no space left.
    Full,
    /// The store found that its own contents are incomplete or damaged.
    Damaged,
    /// The store's contents were written by another version of the programs in an unknown format.
    /// Nothing was done.
    UnknownVersion,
    /// Any other failure of the store.
    Failed,
}

/// Maximum length, in characters, of a server's message that is shown to humans.
const MESSAGE_CHARS_MAX: usize = 500;

/// A server's message, made safe to show. Letters, digits and printable ASCII stay. All other
/// characters become spaces, because some of them could steer a terminal or reverse the text. A
/// message longer than 500 characters is cut there, and `...` is added.
pub fn sanitize_message(message: &str) -> String {
    let is_plain = |c: char| c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric();
    let mut chars = message.chars().map(|c| if is_plain(c) { c } else { ' ' });
    let mut shown: String = chars.by_ref().take(MESSAGE_CHARS_MAX).collect();
    if chars.next().is_some() {
        shown.push_str("...");
    }
    shown
}

/// Joins the failures of several servers, each a server and a cause, into one text. Servers with
/// the same cause are listed together: `server 1, server 3: no answer; server 2: no room`.
pub fn join_failures(failures: impl IntoIterator<Item = (String, String)>) -> String {
    let mut by_cause: Vec<(Vec<String>, String)> = Vec::new();
    for (server, cause) in failures {
        match by_cause.iter_mut().find(|(_, known)| *known == cause) {
            Some((servers, _)) => servers.push(server),
            None => by_cause.push((vec![server], cause)),
        }
    }
    let text =
        |(servers, cause): &(Vec<String>, String)| format!("{}: {cause}", servers.join(", "));
    by_cause.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// The error of a store that cannot serve a request.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl StoreError {
    /// An error that originates in the store itself.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// An error of a store that was caused by another error, `source`.
    pub fn caused_by(
        kind: StoreErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, message: message.into(), source: Some(source.into()) }
    }

    /// The kind of the error.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_server_is_made_harmless_and_short() {
        assert_eq!(
            sanitize_message("no room: größer\u{1b}[2J\n\u{202e}x"),
            "no room: größer [2J  x"
        );
        let longest = "ä".repeat(MESSAGE_CHARS_MAX);
        assert_eq!(sanitize_message(&longest), longest);
        assert_eq!(sanitize_message(&"\n".repeat(1 << 20)).len(), MESSAGE_CHARS_MAX + 3);
    }
}
