//! Begins a connection: agrees on the protocol version, and opens a volume. Sends one request at a
//! time.

use std::io::{self, ErrorKind};
use std::thread;
use std::time::Duration;

use oblivio_core::error::sanitize_message;
use oblivio_wire::link::Link;
use oblivio_wire::message::{self, MESSAGE_BYTES_MAX, VERSION};
use oblivio_wire::{Answer, Failure, FailureKind, OpenMode, Opened, Request, frame};

use super::backoff::Backoff;
use super::connection::why_nothing_came;
use super::{Connector, RemoteOptions};
use crate::error::{OpenError, OpenErrorKind};

/// The time limit for connecting to the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A link to a server that has proved its identity and uses the same protocol version.
pub(super) struct AuthenticatedLink {
    link: Link,
    within: Duration,
}

/// Why a connection or a volume could not be opened.
#[derive(Debug)]
pub(super) enum OpenFailure {
    /// The server cannot be reached, the keys do not match, or the link was lost.
    Lost(io::Error),
    /// The server knows this client, but has no connection left for it.
    NoConnection(String),
    /// The server violates the protocol.
    ProtocolViolation(&'static str),
    /// The server refuses to open the volume.
    Refused(Failure),
}

impl OpenFailure {
    fn is_refused_connection(&self) -> bool {
        matches!(self, Self::Lost(error) if error.kind() == ErrorKind::ConnectionRefused)
    }

    /// Whether another attempt may succeed soon: the link broke after it was established, or the
    /// server had no connection left for this client.
    fn may_pass(&self) -> bool {
        use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match self {
            Self::Lost(error) => matches!(
                error.kind(),
                BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
            ),
            Self::NoConnection(_) => true,
            Self::ProtocolViolation(_) | Self::Refused(_) => false,
        }
    }
}

impl AuthenticatedLink {
    /// Connects to the server. Every answer must arrive within `within`.
    pub(super) fn connect(
        connector: &mut dyn Connector,
        within: Duration,
    ) -> Result<Self, OpenFailure> {
        let reached_within = within.min(CONNECT_TIMEOUT);
        let link = connector.connect(reached_within).map_err(|error| {
            OpenFailure::Lost(io::Error::new(
                error.kind(),
                why_nothing_came(&error, reached_within),
            ))
        })?;
        let mut authenticated = Self { link, within };
        match authenticated.ask(&Request::Hello { version: VERSION }) {
            Ok(Answer::Welcome { version: VERSION }) => Ok(authenticated),
            Err(OpenFailure::Refused(Failure { kind: FailureKind::Full, message, .. })) => {
                Err(OpenFailure::NoConnection(message))
            }
            Err(failure) => Err(failure),
            Ok(Answer::Welcome { version }) => Err(OpenFailure::Refused(Failure {
                number: 0,
                kind: FailureKind::UnknownVersion,
                message: format!(
                    "the server speaks version {version} of the protocol, this program {VERSION}"
                ),
            })),
            Ok(_) => Err(OpenFailure::ProtocolViolation("it did not send a greeting")),
        }
    }

    /// Retries [`connect`](Self::connect) for `retry_opening_for` while the server drops the link
    /// or has no connection left. If the server refuses connections after that, it is probably
    /// restarting, so this retries, too. A server under a flood of connections may drop the link of
    /// a client during its handshake.
    pub(super) fn connect_retrying(
        connector: &mut dyn Connector,
        options: &RemoteOptions,
    ) -> Result<Self, OpenFailure> {
        let mut backoff = Backoff::new(options.retry_opening_for);
        let mut was_there = false;
        loop {
            let outcome = Self::connect(connector, options.answer_within);
            let Err(failure) = &outcome else { return outcome };
            was_there |= failure.may_pass();
            let may_pass = failure.may_pass() || was_there && failure.is_refused_connection();
            match backoff.next_pause().filter(|_| may_pass) {
                Some(pause) => thread::sleep(pause),
                None => return outcome,
            }
        }
    }

    pub(super) fn open(&mut self, name: &str, mode: OpenMode) -> Result<Opened, OpenFailure> {
        self.expect_opened(&Request::Open { name: name.into(), mode })
    }

    pub(super) fn resume(&mut self, name: &str, session: u64) -> Result<Opened, OpenFailure> {
        self.expect_opened(&Request::Resume { name: name.into(), session })
    }

    pub(super) fn look(&mut self, name: &str) -> Result<bool, OpenFailure> {
        match self.ask(&Request::Look { name: name.into() })? {
            Answer::Looked { is_there } => Ok(is_there),
            _ => Err(OpenFailure::ProtocolViolation(
                "it sent a wrong answer to the request whether a volume exists",
            )),
        }
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<(), OpenFailure> {
        match self.ask(&Request::Remove { name: name.into() })? {
            Answer::Done { number: 0 } => Ok(()),
            _ => Err(OpenFailure::ProtocolViolation(
                "it sent a wrong answer to the removal of a volume",
            )),
        }
    }

    /// Returns the link, so that the caller can have several requests in flight.
    pub(super) fn into_link(self) -> Link {
        self.link
    }

    /// Ends the link cleanly.
    pub(super) fn close(mut self) {
        self.link.writer.close();
    }

    fn expect_opened(&mut self, request: &Request) -> Result<Opened, OpenFailure> {
        match self.ask(request)? {
            Answer::Opened(opened) => Ok(opened),
            _ => Err(OpenFailure::ProtocolViolation(
                "it sent a wrong answer to the opening of a volume",
            )),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Answer, OpenFailure> {
        let answer = self.exchange(&request.encode()).map_err(OpenFailure::Lost)?;
        match Answer::decode(&answer.into()) {
            Ok(Answer::Failed(failure)) => {
                let message = sanitize_message(&failure.message);
                Err(OpenFailure::Refused(Failure { message, ..failure }))
            }
            Ok(answer) => Ok(answer),
            Err(_) => Err(OpenFailure::ProtocolViolation("it sent an invalid message")),
        }
    }

    fn exchange(&mut self, message: &[u8]) -> io::Result<Vec<u8>> {
        let Link { reader, writer } = &mut self.link;
        frame::send(writer, message)?;
        writer.flush()?;
        reader.limit(Some(self.within))?;
        let received = frame::receive(reader, MESSAGE_BYTES_MAX)
            .map_err(|error| io::Error::new(error.kind(), why_nothing_came(&error, self.within)));
        received?
            .ok_or_else(|| io::Error::new(ErrorKind::UnexpectedEof, "the server closed the link"))
    }
}

/// Checks the name of a volume. No volume can have an invalid name, so the error kind is
/// [`Missing`](OpenErrorKind::Missing).
pub(super) fn check_name(name: &str) -> Result<(), OpenError> {
    message::check_name(name).map_err(|_| {
        let message = format!(
            "{name:?} is not a volume name; choose 1 to 64 letters, digits, -, _ or ., the first a \
             letter or digit"
        );
        OpenError::new(OpenErrorKind::Missing, message)
    })
}

impl From<OpenFailure> for OpenError {
    fn from(failure: OpenFailure) -> Self {
        match failure {
            OpenFailure::Lost(cause) if cause.kind() == ErrorKind::PermissionDenied => {
                let message = format!(
                    "the server has another key than expected, or refuses this client ({cause}); \
                     check the keys of both"
                );
                Self::caused_by(OpenErrorKind::NotAdmitted, message, cause)
            }
            OpenFailure::Lost(cause) => {
                let message =
                    format!("cannot reach the server ({cause}); check the server and the network");
                Self::caused_by(OpenErrorKind::Unreachable, message, cause)
            }
            OpenFailure::NoConnection(why) => {
                let message = format!("the server has no connection left for this client: {why}");
                Self::new(OpenErrorKind::Unreachable, message)
            }
            OpenFailure::ProtocolViolation(how) => {
                let message = format!("this is not a bucket server: {how}; check the address");
                Self::new(OpenErrorKind::NotAStore, message)
            }
            OpenFailure::Refused(Failure { kind, message, .. }) => {
                let (kind, advice) = advice(kind);
                Self::new(kind, format!("the server says: {message}{advice}"))
            }
        }
    }
}

/// Maps a refusal to the error kind of opening, with advice for the user.
fn advice(kind: FailureKind) -> (OpenErrorKind, &'static str) {
    match kind {
        FailureKind::NoVolume => (OpenErrorKind::Missing, "; check the name"),
        FailureKind::Exists => {
            (OpenErrorKind::Exists, "; choose another name, or remove it (oblivio remove)")
        }
        FailureKind::InUse | FailureKind::Fenced => {
            (OpenErrorKind::Locked, "; close the volume elsewhere")
        }
        FailureKind::Full => (OpenErrorKind::NoSpace, "; make room there"),
        FailureKind::Damaged => (OpenErrorKind::Damaged, ""),
        FailureKind::UnknownVersion => {
            (OpenErrorKind::UnknownVersion, "; use the same version on both sides")
        }
        FailureKind::Invalid | FailureKind::Absent | FailureKind::Refused | FailureKind::Failed => {
            (OpenErrorKind::Io, "")
        }
    }
}
