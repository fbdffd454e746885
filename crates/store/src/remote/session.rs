//! An open volume on the server, over successive links.
//!
//! A link may be lost at any byte, and the server may restart without unflushed writes. The caller
//! notices only a delay: requests are sent again, the same bytes in the same order. So storage
//! learns nothing except that requests were repeated.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use oblivio_core::store::TreeShape;
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_wire::{Failure, FailureKind, OpenMode, Opened};

use super::backoff::{Backoff, PAUSE_MIN};
use super::connection::Connection;
use super::frames::Frame;
use super::opening::{AuthenticatedLink, OpenFailure};
use super::request_table::{
    Awaited, Outcome, RequestTable, StoredError, fenced, protocol_violation,
};
use super::{Connector, RemoteOptions};

pub(super) struct Session {
    connector: Box<dyn Connector>,
    options: RemoteOptions,
    session: u64,
    incarnation: u64,
    shapes: Vec<TreeShape>,
    /// The mode in which a reader reopens the volume. `None` for a writer, which resumes its
    /// session instead.
    reads: Option<OpenMode>,
    table: Arc<RequestTable>,
    /// The link and its thread; `None` without a link. Before the connection is replaced, the old
    /// one is dropped, which ends its thread.
    connection: Option<Connection>,
    last_number: u64,
    link_failure: Option<LinkFailure>,
}

/// The state of reconnecting after a lost link. It ends with the call, or when the lowest
/// unanswered request is answered over a new link.
struct LinkFailure {
    backoff: Backoff,
    /// The lowest number among the unanswered requests when the link was lost.
    lowest_waiting: u64,
}

/// Why a session was not resumed over a new link.
enum NotResumed {
    /// The session may continue over a later link.
    NotYet(String),
    Never(StoredError),
}

impl Session {
    /// Creates the session of the volume that was opened on this link.
    pub(super) fn start(
        connector: Box<dyn Connector>,
        options: RemoteOptions,
        authenticated: AuthenticatedLink,
        opened: &Opened,
        reads: Option<OpenMode>,
    ) -> io::Result<Self> {
        let table = Arc::new(RequestTable::default());
        let connection =
            Connection::start(authenticated.into_link(), table.clone(), options.answer_within)?;
        Ok(Self {
            connector,
            options,
            session: opened.session,
            incarnation: opened.incarnation,
            shapes: opened.shapes.clone(),
            reads,
            table,
            connection: Some(connection),
            last_number: 0,
            link_failure: None,
        })
    }

    /// Begins a call, which has its own time limit for reconnecting.
    ///
    /// # Errors
    /// If the store has failed.
    pub(super) fn begin_call(&mut self) -> Result<(), StoreError> {
        self.link_failure = None;
        self.table.check_alive()
    }

    /// The session number on the server.
    pub(super) fn number(&self) -> u64 {
        self.session
    }

    /// Whether the store has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.table.check_alive().is_err()
    }

    /// Reconnects if the reading thread has noticed that the link is lost.
    pub(super) fn keep_up(&mut self) -> Result<(), StoreError> {
        if self.table.is_up() { Ok(()) } else { self.reconnect() }
    }

    /// The number of the next request.
    pub(super) fn next_number(&self) -> u64 {
        self.last_number + 1
    }

    /// Sends the request with the next number. If there is no link, the request is sent over the
    /// next link.
    pub(super) fn ask(&mut self, awaited: Awaited, frame: &Frame) -> u64 {
        self.last_number += 1;
        self.table.ask(self.last_number, awaited, frame.clone());
        if self.table.is_up() {
            self.connection.iter_mut().for_each(|connection| connection.send(frame));
        }
        self.last_number
    }

    /// Discards the answer to request `number`, now or when it arrives.
    pub(super) fn forget(&self, number: u64) {
        self.table.forget(number);
    }

    /// Waits for the answer to request `number`. Returns the bytes that were read or computed; no
    /// bytes for a flush.
    ///
    /// # Errors
    /// If the request fails, or the store has failed.
    pub(super) fn wait(&mut self, number: u64) -> Result<Bytes, StoreError> {
        loop {
            match self.table.wait(number)? {
                Outcome::Answered(answer) => return answer.map_err(|error| error.error()),
                Outcome::LinkIsLost => self.reconnect()?,
            }
        }
    }

    /// Waits as [`Self::wait`] does, but returns `None` if the link is lost.
    ///
    /// # Errors
    /// See [`Self::wait`].
    pub(super) fn wait_on_link(&mut self, number: u64) -> Result<Option<Bytes>, StoreError> {
        match self.table.wait(number)? {
            Outcome::Answered(answer) => answer.map(Some).map_err(|error| error.error()),
            Outcome::LinkIsLost => Ok(None),
        }
    }

    /// Continues over a new link. This terminates: either a request is answered for the first time,
    /// or the time limit is reached.
    fn reconnect(&mut self) -> Result<(), StoreError> {
        self.table.check_alive()?;
        self.connection = None;
        let lowest_waiting = self.table.lowest_waiting().unwrap_or(self.next_number());
        let since_before =
            self.link_failure.take().filter(|it| it.lowest_waiting >= lowest_waiting);
        let (mut is_first, mut link_failure) = match since_before {
            // The server is reachable, but links do not last.
            Some(link_failure) if self.table.has_answered() => {
                (false, LinkFailure { backoff: link_failure.backoff.restart(), ..link_failure })
            }
            Some(link_failure) => (false, link_failure),
            None => (true, self.new_link_failure(lowest_waiting)),
        };
        let mut cause = self.table.cause();
        loop {
            if !is_first {
                let Some(pause) = link_failure.backoff.next_pause() else { break };
                thread::sleep(pause);
            }
            is_first = false;
            match self.resume(&link_failure) {
                Ok(()) => {
                    self.link_failure = Some(link_failure);
                    return Ok(());
                }
                Err(NotResumed::NotYet(why)) => cause = why,
                Err(NotResumed::Never(error)) => return Err(self.table.fail(error)),
            }
        }
        let message = format!(
            "the server could not be reached for {:.0?} ({cause}); check the server and the \
             network, then open the volume again",
            self.options.retry_for
        );
        Err(self.table.fail(StoredError { kind: StoreErrorKind::Unreachable, message }))
    }

    fn new_link_failure(&self, lowest_waiting: u64) -> LinkFailure {
        LinkFailure { backoff: Backoff::new(self.options.retry_for), lowest_waiting }
    }

    fn resume(&mut self, link_failure: &LinkFailure) -> Result<(), NotResumed> {
        // Always make the first attempt, however little time is left.
        let left = link_failure.backoff.left().unwrap_or(PAUSE_MIN).max(PAUSE_MIN);
        let within = self.options.answer_within.min(left);
        let mut authenticated = AuthenticatedLink::connect(&mut *self.connector, within)?;
        let opened = match &self.reads {
            Some(mode) => authenticated.open(&self.options.name, mode.clone())?,
            None => authenticated.resume(&self.options.name, self.session)?,
        };
        self.check_same(&opened)?;
        let has_forgotten = opened.incarnation != self.incarnation;
        self.incarnation = opened.incarnation;
        let frames = self.table.to_send_again(has_forgotten);
        let (link, table) = (authenticated.into_link(), self.table.clone());
        let connection = Connection::start(link, table, self.options.answer_within);
        let mut connection = connection.map_err(|error| NotResumed::NotYet(error.to_string()))?;
        for frame in &frames {
            if !self.table.is_up() {
                break;
            }
            connection.send(frame);
        }
        self.connection = Some(connection);
        Ok(())
    }

    fn check_same(&self, opened: &Opened) -> Result<(), NotResumed> {
        if self.reads.is_none() && opened.session != self.session {
            return Err(NotResumed::Never(protocol_violation("it resumed another session")));
        }
        if opened.shapes != self.shapes {
            return Err(NotResumed::Never(protocol_violation(
                "the volume has other trees than before",
            )));
        }
        Ok(())
    }
}

impl From<OpenFailure> for NotResumed {
    fn from(failure: OpenFailure) -> Self {
        match failure {
            // Any machine on the path can answer with another key, so the right server may answer
            // next.
            OpenFailure::Lost(error) if error.kind() == ErrorKind::PermissionDenied => {
                Self::NotYet(format!(
                    "the server has another key than expected, or refuses this client: {error}"
                ))
            }
            OpenFailure::Lost(error) => Self::NotYet(error.to_string()),
            OpenFailure::NoConnection(why) => Self::NotYet(why),
            OpenFailure::ProtocolViolation(how) => Self::Never(protocol_violation(how)),
            OpenFailure::Refused(Failure { kind: FailureKind::Fenced, message, .. }) => {
                Self::Never(fenced(&message))
            }
            // The server may not have noticed yet that the previous link was lost.
            OpenFailure::Refused(Failure { kind: FailureKind::InUse, message, .. }) => {
                Self::NotYet(message)
            }
            OpenFailure::Refused(Failure { kind, message, .. }) => {
                let message = format!(
                    "the server does not resume the session (it says: {message}); open the volume \
                     again"
                );
                Self::Never(StoredError { kind: kind.store_kind(), message })
            }
        }
    }
}
