//! An open volume on the server, over successive links.
//!
//! A link may be lost at any byte, and the server may restart without unflushed writes. The caller
//! notices only a delay: requests are sent again, the same bytes in the same order. So storage sees
//! nothing new except repetitions.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use oblivio_core::store::TreeShape;
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_wire::{Failure, FailureKind, OpenMode, Opened};

use super::backoff::{Backoff, PAUSE_MIN};
use super::connection::Connection;
use super::desk::{Awaited, Desk, Fault, Outcome, fenced, lied};
use super::frames::Frame;
use super::opening::{Greeted, Unopened};
use super::{Dial, RemoteOptions};

pub(super) struct Session {
    dial: Box<dyn Dial>,
    options: RemoteOptions,
    session: u64,
    incarnation: u64,
    shapes: Vec<TreeShape>,
    /// The mode in which a reader opens again; readers have no session. `None` for a writer.
    reads: Option<OpenMode>,
    desk: Arc<Desk>,
    /// Dropped before it is replaced, which ends its thread.
    connection: Option<Connection>,
    last_number: u64,
    trouble: Option<Trouble>,
}

/// The state after a lost link, until there is progress.
struct Trouble {
    backoff: Backoff,
    /// All requests below it were answered.
    lowest_waiting: u64,
}

/// Why a session cannot continue over a new link.
enum NotResumed {
    /// It may continue over another link.
    NotYet(String),
    Never(Fault),
}

impl Session {
    /// Continues with the volume that was opened on this link.
    pub(super) fn start(
        dial: Box<dyn Dial>,
        options: RemoteOptions,
        greeted: Greeted,
        opened: &Opened,
        reads: Option<OpenMode>,
    ) -> io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let connection =
            Connection::start(greeted.into_link(), desk.clone(), options.answer_within)?;
        Ok(Self {
            dial,
            options,
            session: opened.session,
            incarnation: opened.incarnation,
            shapes: opened.shapes.clone(),
            reads,
            desk,
            connection: Some(connection),
            last_number: 0,
            trouble: None,
        })
    }

    /// Begins a call, which gets its own time for reconnecting.
    ///
    /// # Errors
    /// If the store has failed.
    pub(super) fn begin_call(&mut self) -> Result<(), StoreError> {
        self.trouble = None;
        self.desk.check_alive()
    }

    /// The session number on the server.
    pub(super) fn number(&self) -> u64 {
        self.session
    }

    /// Whether the store has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.desk.check_alive().is_err()
    }

    /// Reconnects if the link is known to be lost.
    pub(super) fn keep_up(&mut self) -> Result<(), StoreError> {
        if self.desk.is_up() { Ok(()) } else { self.reconnect() }
    }

    /// The number of the next request.
    pub(super) fn next_number(&self) -> u64 {
        self.last_number + 1
    }

    /// Sends the request with the next number. Without a link, it is sent over the next one.
    pub(super) fn ask(&mut self, awaited: Awaited, frame: &Frame) -> u64 {
        self.last_number += 1;
        self.desk.ask(self.last_number, awaited, frame.clone());
        if self.desk.is_up() {
            self.connection.iter_mut().for_each(|connection| connection.send(frame));
        }
        self.last_number
    }

    /// Discards the answer of a request.
    pub(super) fn forget(&self, number: u64) {
        self.desk.forget(number);
    }

    /// Waits for an answer. Returns the bytes that were read, or none.
    ///
    /// # Errors
    /// If the request fails, or the store has failed.
    pub(super) fn wait(&mut self, number: u64) -> Result<Bytes, StoreError> {
        loop {
            match self.desk.wait(number)? {
                Outcome::Came(came) => return came.map_err(|fault| fault.error()),
                Outcome::LinkIsLost => self.reconnect()?,
            }
        }
    }

    /// Like [`Self::wait`], but returns `None` if the link is lost.
    ///
    /// # Errors
    /// See [`Self::wait`].
    pub(super) fn wait_on_link(&mut self, number: u64) -> Result<Option<Bytes>, StoreError> {
        match self.desk.wait(number)? {
            Outcome::Came(came) => came.map(Some).map_err(|fault| fault.error()),
            Outcome::LinkIsLost => Ok(None),
        }
    }

    /// Continues over a new link. It terminates: either a request is answered for the first time,
    /// or the time runs out.
    fn reconnect(&mut self) -> Result<(), StoreError> {
        self.desk.check_alive()?;
        self.connection = None;
        let lowest_waiting = self.desk.lowest_waiting().unwrap_or(self.next_number());
        let since_before = self.trouble.take().filter(|it| it.lowest_waiting >= lowest_waiting);
        let (mut is_first, mut trouble) = match since_before {
            // The server is reachable, but links do not last.
            Some(trouble) if self.desk.has_answered() => {
                (false, Trouble { backoff: trouble.backoff.restart(), ..trouble })
            }
            Some(trouble) => (false, trouble),
            None => (true, self.new_trouble(lowest_waiting)),
        };
        let mut cause = self.desk.cause();
        loop {
            if !is_first {
                let Some(pause) = trouble.backoff.next_pause() else { break };
                thread::sleep(pause);
            }
            is_first = false;
            match self.resume(&trouble) {
                Ok(()) => {
                    self.trouble = Some(trouble);
                    return Ok(());
                }
                Err(NotResumed::NotYet(why)) => cause = why,
                Err(NotResumed::Never(fault)) => return Err(self.desk.fail(fault)),
            }
        }
        let message = format!(
            "the server could not be reached for {:.0?} ({cause}); check the server and the \
             network, then open the volume again",
            self.options.retry_for
        );
        Err(self.desk.fail(Fault { kind: StoreErrorKind::Unreachable, message }))
    }

    fn new_trouble(&self, lowest_waiting: u64) -> Trouble {
        Trouble { backoff: Backoff::new(self.options.retry_for), lowest_waiting }
    }

    fn resume(&mut self, trouble: &Trouble) -> Result<(), NotResumed> {
        // Always make the first attempt, however little time is left.
        let left = trouble.backoff.left().unwrap_or(PAUSE_MIN).max(PAUSE_MIN);
        let within = self.options.answer_within.min(left);
        let mut greeted = Greeted::dial(&mut *self.dial, within)?;
        let opened = match &self.reads {
            Some(mode) => greeted.open(&self.options.name, mode.clone())?,
            None => greeted.resume(&self.options.name, self.session)?,
        };
        self.check_same(&opened)?;
        let has_forgotten = opened.incarnation != self.incarnation;
        self.incarnation = opened.incarnation;
        let frames = self.desk.to_send_again(has_forgotten);
        let (link, desk) = (greeted.into_link(), self.desk.clone());
        let connection = Connection::start(link, desk, self.options.answer_within);
        let mut connection = connection.map_err(|error| NotResumed::NotYet(error.to_string()))?;
        for frame in &frames {
            if !self.desk.is_up() {
                break;
            }
            connection.send(frame);
        }
        self.connection = Some(connection);
        Ok(())
    }

    fn check_same(&self, opened: &Opened) -> Result<(), NotResumed> {
        if self.reads.is_none() && opened.session != self.session {
            return Err(NotResumed::Never(lied("it resumed another session")));
        }
        if opened.shapes != self.shapes {
            return Err(NotResumed::Never(lied("the volume has other trees than before")));
        }
        Ok(())
    }
}

impl From<Unopened> for NotResumed {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            // Any machine on the path can answer with another key, so the right server may answer
            // next.
            Unopened::Lost(error) if error.kind() == ErrorKind::PermissionDenied => {
                Self::NotYet(format!(
                    "the server has another key than expected, or refuses this client: {error}"
                ))
            }
            Unopened::Lost(error) => Self::NotYet(error.to_string()),
            Unopened::NoRoom(why) => Self::NotYet(why),
            Unopened::Lied(how) => Self::Never(lied(how)),
            Unopened::Refused(Failure { kind: FailureKind::Fenced, message, .. }) => {
                Self::Never(fenced(&message))
            }
            // The server may not have noticed yet that the previous link was lost.
            Unopened::Refused(Failure { kind: FailureKind::InUse, message, .. }) => {
                Self::NotYet(message)
            }
            Unopened::Refused(Failure { kind, message, .. }) => {
                let message = format!(
                    "the server does not resume the session (it says: {message}); open the volume \
                     again"
                );
                Self::Never(Fault { kind: kind.of_store(), message })
            }
        }
    }
}
