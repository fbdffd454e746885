//! Why a node did not do what was asked, and what to do next.

use std::fmt;

use oblivio_core::error::sanitize_message;
use oblivio_core::{StoreError, StoreErrorKind};

use super::topology::Address;
use crate::error::{OpenError, OpenErrorKind};
use crate::objects::resp::Reply;

/// The reason why a request failed. The message does not name the node or the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) message: String,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// Another attempt may succeed: the node cannot be reached, or the cluster is changing.
    Transient,
    /// The node does not admit this client, or does not allow it the command.
    NotAdmitted,
    /// The node would lose writes that it has acknowledged.
    NotDurable,
    /// As `NotDurable`, because no replica is connected. After a failover that changes by itself.
    NoReplica,
    /// The node has no memory left.
    Full,
    /// Any other failure.
    Failed,
}

impl FailureKind {
    fn store_kind(self) -> StoreErrorKind {
        match self {
            Self::Transient => StoreErrorKind::Unreachable,
            Self::NotAdmitted | Self::NotDurable | Self::NoReplica => StoreErrorKind::Refused,
            Self::Full => StoreErrorKind::Full,
            Self::Failed => StoreErrorKind::Failed,
        }
    }

    fn open_kind(self) -> OpenErrorKind {
        match self {
            Self::Transient => OpenErrorKind::Unreachable,
            Self::NotAdmitted => OpenErrorKind::NotAdmitted,
            Self::NotDurable | Self::NoReplica => OpenErrorKind::NotDurable,
            Self::Full => OpenErrorKind::NoSpace,
            Self::Failed => OpenErrorKind::Io,
        }
    }
}

impl Failure {
    pub(super) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn transient(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Transient, message)
    }

    /// The failure of a server that violates the protocol.
    pub(super) fn violation(how: &str) -> Self {
        Self::new(FailureKind::Failed, format!("it violates the protocol: {how}; check the server"))
    }

    /// The failure in replies that do not have the form of an answer to `command`: the first error
    /// among them, or a violation of the protocol.
    pub(super) fn of_replies(replies: &[Reply], command: &str) -> Self {
        let mut errors = replies.iter().filter_map(|reply| match reply {
            Reply::Error(text) => Some(Self::of_error(text)),
            _ => None,
        });
        let other = || Self::violation(&format!("its reply to {command} has another type"));
        errors.next().unwrap_or_else(other)
    }

    /// The failure that an error reply describes. No command that is answered so was executed.
    pub(super) fn of_error(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let said = sanitize_message(&text);
        let (code, _) = text.split_once(' ').unwrap_or((&text, ""));
        let (kind, advice) = match code {
            "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "BUSY"
            | "UNBLOCKED" | "NOREPLICAS" | "READONLY" => {
                (FailureKind::Transient, "check the state of the cluster")
            }
            "OOM" => (
                FailureKind::Full,
                "raise maxmemory on every node, add masters, or remove other keys",
            ),
            "NOAUTH" => (FailureKind::NotAdmitted, "add &password=FILE to the URL"),
            "WRONGPASS" => (
                FailureKind::NotAdmitted,
                "check user= and the password file, and `ACL LIST` on the node",
            ),
            "NOPERM" => (FailureKind::NotAdmitted, "allow it for this user with ACL SETUSER"),
            "MISCONF" => (FailureKind::Failed, "check the disk of the node"),
            "WRONGTYPE" => (
                FailureKind::Failed,
                "other data has the name of an object; use another volume name",
            ),
            _ if text.contains("max number of clients") => {
                (FailureKind::Transient, "raise maxclients on the node")
            }
            _ => (FailureKind::Failed, "check the server"),
        };
        Self::new(kind, format!("it says: {said}; {advice}"))
    }

    /// Puts the name of a node in front.
    #[must_use]
    pub(super) fn at(self, node: &Address) -> Self {
        Self { message: format!("Redis node {node}: {}", self.message), ..self }
    }

    /// The error of an open store. `act` says what cannot be done, as in "cannot …".
    pub(super) fn store_error(&self, act: impl fmt::Display) -> StoreError {
        StoreError::new(self.kind.store_kind(), format!("cannot {act}: {}", self.message))
    }

    pub(super) fn is_transient(&self) -> bool {
        matches!(self.kind, FailureKind::Transient | FailureKind::NoReplica)
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        Self::new(failure.kind.open_kind(), failure.message)
    }
}

/// A redirection in an error reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirection {
    /// The slot belongs to another node now.
    Moved,
    /// This request, and no other, goes to another node, because the slot is being moved there.
    Ask(Address),
}

impl Redirection {
    /// Reads an error reply of the node `asked`; `None` if it is not a redirection.
    pub(super) fn read(text: &[u8], asked: &Address) -> Option<Self> {
        let mut words = str::from_utf8(text).ok()?.split(' ');
        match words.next()? {
            "MOVED" => Some(Self::Moved),
            "ASK" => Some(Self::Ask(Address::of_redirection(words.nth(1)?, asked)?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_kinds_and_a_next_step() {
        for (text, kind, advice) in [
            ("TRYAGAIN Multiple keys", FailureKind::Transient, "state of the cluster"),
            ("CLUSTERDOWN Hash slot not served", FailureKind::Transient, "state of the cluster"),
            ("LOADING Redis is loading", FailureKind::Transient, "state of the cluster"),
            ("READONLY You can't write", FailureKind::Transient, "state of the cluster"),
            ("OOM command not allowed", FailureKind::Full, "maxmemory"),
            ("NOAUTH Authentication required.", FailureKind::NotAdmitted, "&password=FILE"),
            ("WRONGPASS invalid", FailureKind::NotAdmitted, "password file"),
            ("NOPERM this user", FailureKind::NotAdmitted, "ACL SETUSER"),
            ("ERR max number of clients reached", FailureKind::Transient, "maxclients"),
            ("ERR unknown command", FailureKind::Failed, "check the server"),
            ("", FailureKind::Failed, "check the server"),
        ] {
            let failure = Failure::of_error(text.as_bytes());
            assert_eq!(failure.kind, kind, "{text}");
            assert!(failure.message.contains(advice), "{}", failure.message);
        }
        let steering = Failure::of_error(b"ERR \x1b[2J\xff");
        assert!(!steering.message.contains('\u{1b}'), "{steering:?}");
    }

    #[test]
    fn redirections_are_read() {
        let asked = Address::new("seed", 9);
        let read = |text: &str| Redirection::read(text.as_bytes(), &asked);
        assert_eq!(read("MOVED 3999 127.0.0.1:6381"), Some(Redirection::Moved));
        let other = Address::new("127.0.0.1", 6381);
        assert_eq!(read("ASK 3999 127.0.0.1:6381"), Some(Redirection::Ask(other)));
        for text in ["ASK", "ASK 3999", "ASK 3999 x", "ERR MOVED", ""] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
