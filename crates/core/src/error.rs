//! The one error type of the engine: few kinds, a rich message.
//!
//! The kind is API: programs branch on it. The message is for people and may change.

#[cfg(feature = "std")]
mod of_io;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::error::Error as StdError;

/// Whose fault it is, and so what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration cannot exist: a capacity of zero, a block size out of range, too many
    /// levels. Nothing was created. Choose other parameters.
    InvalidConfig,
    /// The request is not one this ORAM can serve: an address past the end, a buffer of the wrong
    /// length. Nothing was touched, in the storage or in the client. The ORAM stays usable.
    InvalidRequest,
    /// The store handed over does not hold the tree this configuration needs, or cannot do what the
    /// scheme asks of a store. Nothing was touched.
    StoreMismatch,
    /// The storage, or a part of it, is older than the client knows it to be. Nothing was touched.
    StoreRolledBack,
    /// What the client has kept is older than the storage. Nothing was touched.
    StateRolledBack,
    /// The storage returned bytes that no honest write can have produced. The ORAM refuses further
    /// work: open it again on storage you believe, if it is durable; else make another.
    Corrupt,
    /// The storage failed to read or write. How far the write-back got is unknown, so the ORAM
    /// refuses further work: open it again, if it is durable; else make another.
    Store,
    /// The stash holds more than `stash_blocks_max` blocks, so the access was refused before
    /// anything was touched. No block is lost. Evict in the background, or use a larger bound.
    StashFull,
    /// A counter has no values left under this key: sealing more would repeat a keystream. The ORAM
    /// refuses further work: move the data to an ORAM with a fresh key.
    CounterExhausted,
    /// An earlier access failed half way. This handle answers nothing more: open the ORAM again, if it is durable (see
    /// [`durable`](crate::durable)); else make another.
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
    /// An error of this kind. The message is for people, and may be logged: it holds no secret.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), store: None, is_advised: false }
    }

    /// The same error, whose message says what to do next: what uses the engine adds no advice of
    /// its own.
    #[must_use]
    pub fn advised(self) -> Self {
        Self { is_advised: true, ..self }
    }

    /// Whether the message says what to do next.
    pub fn is_advised(&self) -> bool {
        self.is_advised
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What kind of error of the store caused it, if one did.
    pub fn store_kind(&self) -> Option<StoreErrorKind> {
        self.store.as_ref().map(StoreError::kind)
    }
}

/// Refuses to go on with what an earlier failure has left broken.
///
/// # Errors
/// [`MustReopen`](ErrorKind::MustReopen).
pub fn check_sound(is_broken: bool) -> Result<(), Error> {
    if is_broken {
        let message = "an earlier access failed half way: open the ORAM again if it is durable, else make another";
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

/// Whose fault it is that a store cannot do what it was asked, and so what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The medium does not answer. It may later.
    Unreachable,
    /// The store will not do this, or not for this client: there is no such piece, it may only be read, a
    /// credential is not accepted. Nothing was done.
    Refused,
    /// Another client has taken the store over.
    Fenced,
    /// There is no room left.
    Full,
    /// The store itself found that what it holds is not whole.
    Damaged,
    /// What the store holds was made by another version of the programs, which keeps it in another way. Nothing was done.
    UnknownVersion,
    /// Anything else.
    Failed,
}

/// Characters of what a server says that people are shown.
const SAID_CHARS_MAX: usize = 500;

/// What a server says, without what would steer a terminal or turn what stands there around, and no longer than people read.
pub fn for_people(said: &str) -> String {
    let is_plain = |c: char| c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric();
    let mut chars = said.chars().map(|c| if is_plain(c) { c } else { ' ' });
    let mut shown: String = chars.by_ref().take(SAID_CHARS_MAX).collect();
    if chars.next().is_some() {
        shown.push_str("...");
    }
    shown
}

/// The failures of several servers as one text. Servers with the same cause are listed in front of
/// it: `server 1, server 3: no answer; server 2: no room`.
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

/// What a store answers when it cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl StoreError {
    /// An error that starts with the store itself.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// An error that something below the store caused.
    pub fn caused_by(
        kind: StoreErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { kind, message: message.into(), source: Some(source.into()) }
    }

    /// What kind of error it is.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_steers_no_terminal_and_is_not_long() {
        assert_eq!(for_people("no room: größer\u{1b}[2J\n\u{202e}x"), "no room: größer [2J  x");
        let longest = "ä".repeat(SAID_CHARS_MAX);
        assert_eq!(for_people(&longest), longest);
        assert_eq!(for_people(&"\n".repeat(1 << 20)).len(), SAID_CHARS_MAX + 3);
    }
}
