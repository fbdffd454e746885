//! Why something is not done, as clients are told.
//!
//! A message names no path of the server and no bucket: the first is no business of clients, and the second would get into logs.

use std::io;

use oblivio_core::StoreError;
use oblivio_store::{OpenError, OpenErrorKind};
use oblivio_wire::FailureKind;
use rustix::io::Errno;

/// A failure, without the number of the request.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) kind: FailureKind,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Invalid, message)
    }

    pub(super) fn no_volume() -> Self {
        Self::new(FailureKind::NoVolume, "the server has no volume of this name for this client")
    }

    pub(super) fn computes_nothing() -> Self {
        let message =
            "this server keeps stores and computes nothing: start it with `oblivio serve shares`";
        Self::new(FailureKind::Refused, message)
    }

    pub(super) fn fenced() -> Self {
        Self::new(FailureKind::Fenced, "it has been opened to write since")
    }

    /// The system of the server failed to `act`.
    pub(super) fn io(act: &str, cause: &io::Error) -> Self {
        tracing::warn!(%cause, act, "a bucket server is refused something by its system");
        let why = match cause.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE | Errno::NFILE) => {
                "it has too few file descriptors: raise the server's limit".to_owned()
            }
            _ => format!("{}: its log says why", cause.kind()),
        };
        let message = format!("the server cannot {act} ({why})");
        Self::new(oblivio_core::StoreErrorKind::from(cause.kind()).into(), message)
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        use OpenErrorKind as Open;
        // The message has the path in it.
        tracing::warn!(%error, "a bucket server cannot make or open a store");
        let (kind, message) = match error.kind() {
            Open::Exists => (FailureKind::Exists, "there is a volume of this name already"),
            Open::Missing => return Self::no_volume(),
            Open::NotAStore => (FailureKind::Damaged, "what is there is no store of buckets"),
            Open::UnknownVersion => {
                (FailureKind::Damaged, "the store is of a format that the server does not know")
            }
            Open::Damaged => (FailureKind::Damaged, "every copy of the store's header is damaged"),
            Open::Truncated => (
                FailureKind::Damaged,
                "a part of the store is gone: restore it from a backup, or rescue what is left",
            ),
            Open::Locked => {
                (FailureKind::InUse, "another program of the server has the store open")
            }
            Open::NoSpace => (FailureKind::Full, "the disk of the server is full"),
            Open::InvalidShapes => {
                (FailureKind::Invalid, "no store can hold trees of these shapes")
            }
            _ => (FailureKind::Failed, "the server cannot open the store: its log says why"),
        };
        Self::new(kind, message)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        tracing::warn!(%error, "a store of a bucket server fails");
        Self::new(error.kind().into(), error.to_string())
    }
}
