//! The table of requests and answers, shared by the caller's thread and the thread that reads
//! answers.
//!
//! The table checks that every answer belongs to a request that waits for an answer, and has the
//! right kind and length.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use oblivio_core::error::sanitize_message;
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_wire::link::MonotonicTime;
use oblivio_wire::{Answer, Failure, FailureKind};

use super::frames::Frame;

/// The expected answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// A confirmation that the write is done.
    Written,
    /// A confirmation that all earlier writes are durable.
    Flushed,
    /// Data of this length in bytes.
    Data { bytes: usize },
    /// The result of a computation, of any length. The server may answer `Working` for
    /// `works_within`.
    Computed { works_within: Duration },
}

/// An error that can be reported repeatedly.
#[derive(Clone, Debug)]
pub(super) struct StoredError {
    pub(super) kind: StoreErrorKind,
    pub(super) message: String,
}

impl StoredError {
    pub(super) fn error(&self) -> StoreError {
        StoreError::new(self.kind, self.message.clone())
    }
}

/// The outcome of waiting for an answer.
pub(super) enum Outcome {
    /// The answer. It contains the bytes that were read or computed, and no bytes for a flush.
    Answered(Result<Bytes, StoredError>),
    /// The link was lost before the answer arrived.
    LinkIsLost,
}

#[derive(Default)]
pub(super) struct RequestTable {
    state: Mutex<State>,
    /// Wakes the caller's thread, which waits for an answer or the loss of the link.
    answer_arrived: Condvar,
    /// Wakes the reading thread, which does not read while no answer is expected.
    request_added: Condvar,
}

#[derive(Default)]
struct State {
    /// The requests without an answer, and all writes that are not yet durable, by request number.
    pending: BTreeMap<u64, PendingRequest>,
    /// The number of requests without an answer.
    waiting: usize,
    /// Answers that the caller has not taken yet.
    answers: HashMap<u64, Result<Bytes, StoredError>>,
    /// The request whose answer the caller's thread waits for.
    caller_waits_for: Option<u64>,
    /// Whether the latest link works, as far as the client knows.
    is_up: bool,
    /// Whether the latest link has brought an answer.
    has_answered: bool,
    /// The time at which the server began to answer `Working` instead of the next answer; `None` if
    /// it has not.
    working_since: Option<MonotonicTime>,
    /// The reason why the latest link was lost.
    cause: String,
    /// The error that all calls return; `None` while the store works.
    failure: Option<StoredError>,
}

struct PendingRequest {
    frame: Frame,
    awaited: Awaited,
    waits: bool,
    /// Whether the caller will take the answer.
    is_wanted: bool,
}

impl RequestTable {
    fn state(&self) -> MutexGuard<'_, State> {
        // The lists are consistent whenever the lock is released, even by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails with the stored error if the store has failed.
    pub(super) fn check_alive(&self) -> Result<(), StoreError> {
        self.state().failure.as_ref().map_or(Ok(()), |fault| Err(fault.error()))
    }

    /// Makes all calls fail from now on. Returns the first fault that was recorded.
    pub(super) fn fail(&self, fault: StoredError) -> StoreError {
        let mut state = self.state();
        let first = state.failure.get_or_insert(fault).error();
        self.lose_link(&mut state, "the store has failed".into());
        first
    }

    /// Records that a new link was opened.
    pub(super) fn link_is_up(&self) {
        let mut state = self.state();
        state.is_up = true;
        state.has_answered = false;
        // `working_since` stays: a new link is no progress of the server.
    }

    /// Whether the latest link has brought an answer.
    pub(super) fn has_answered(&self) -> bool {
        self.state().has_answered
    }

    pub(super) fn is_up(&self) -> bool {
        self.state().is_up
    }

    /// Marks the link as lost. Only the first cause is stored.
    pub(super) fn lose(&self, cause: String) {
        self.lose_link(&mut self.state(), cause);
    }

    fn lose_link(&self, state: &mut State, cause: String) {
        if std::mem::take(&mut state.is_up) {
            state.cause = cause;
        }
        self.answer_arrived.notify_all();
        self.request_added.notify_all();
    }

    pub(super) fn cause(&self) -> String {
        self.state().cause.clone()
    }

    /// Records a request that is about to be sent.
    pub(super) fn ask(&self, number: u64, awaited: Awaited, frame: Frame) {
        let mut state = self.state();
        state
            .pending
            .insert(number, PendingRequest { frame, awaited, waits: true, is_wanted: true });
        state.waiting += 1;
        let is_first = state.waiting == 1;
        drop(state);
        if is_first {
            self.request_added.notify_all();
        }
    }

    /// Discards the answer to request `number`, now or when it arrives.
    pub(super) fn forget(&self, number: u64) {
        let mut state = self.state();
        state.answers.remove(&number);
        if let Some(pending) = state.pending.get_mut(&number) {
            pending.is_wanted = false;
        }
    }

    /// Waits for the answer to request `number`, and takes it.
    pub(super) fn wait(&self, number: u64) -> Result<Outcome, StoreError> {
        let mut state = self.state();
        loop {
            if let Some(answer) = state.answers.remove(&number) {
                return Ok(Outcome::Answered(answer));
            }
            if let Some(fault) = &state.failure {
                return Err(fault.error());
            }
            if !state.is_up {
                return Ok(Outcome::LinkIsLost);
            }
            state.caller_waits_for = Some(number);
            state = self.answer_arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The lowest number among the requests without an answer; `None` if all are answered.
    pub(super) fn lowest_waiting(&self) -> Option<u64> {
        self.state().pending.iter().find(|(_, pending)| pending.waits).map(|(number, _)| *number)
    }

    /// The requests to send again on a new link, in their order. If the server has lost unflushed
    /// writes, all pending requests are sent. Otherwise the unanswered requests are sent, and all
    /// writes after the first unanswered write, so that no older write overwrites a newer one.
    pub(super) fn to_send_again(&self, has_forgotten: bool) -> Vec<Frame> {
        let mut state = self.state();
        let mut from_here = has_forgotten;
        for pending in state.pending.values_mut().filter(|it| it.awaited == Awaited::Written) {
            from_here |= pending.waits;
            pending.waits |= from_here;
        }
        let waiting = state.pending.values().filter(|pending| pending.waits);
        let frames: Vec<_> = waiting.map(|pending| pending.frame.clone()).collect();
        state.waiting = frames.len();
        frames
    }

    /// Blocks until an answer is expected or the link is lost. Returns whether an answer is
    /// expected.
    pub(super) fn expects_answers(&self) -> bool {
        let mut state = self.state();
        while state.is_up && state.waiting == 0 {
            state = self.request_added.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_up
    }

    /// Handles a message of the server.
    ///
    /// # Errors
    /// The reason why nothing more may be read from the link.
    pub(super) fn take_in(&self, message: &Bytes) -> Result<(), String> {
        let decoded = Answer::decode(message);
        let mut state = self.state();
        let taken = match decoded {
            // `Working` restarts the timeout of the answer.
            Ok(Answer::Working) => state.works(),
            Ok(answer) => state.answered(answer).inspect(|()| {
                state.has_answered = true;
                state.working_since = None;
            }),
            Err(invalid) => Err(state.protocol_violation(&invalid.to_string())),
        };
        // Wake the caller only for its own answer, and only after releasing the lock.
        let is_awaited = state.caller_waits_for.is_some_and(|it| state.answers.contains_key(&it));
        let wakes = is_awaited || state.failure.is_some();
        drop(state);
        if wakes {
            self.answer_arrived.notify_all();
        }
        taken
    }
}

impl State {
    fn answered(&mut self, answer: Answer) -> Result<(), String> {
        match answer {
            Answer::Data { number, bytes } => self.receive_data(number, bytes),
            Answer::Done { number } => self.done(number),
            Answer::Failed(failure) => self.failed(failure),
            Answer::Working
            | Answer::Welcome { .. }
            | Answer::Opened(_)
            | Answer::Looked { .. } => {
                Err(self.protocol_violation("it sent an answer without a request"))
            }
        }
    }

    /// Handles an answer `Working`. Once the server has answered so for `works_within`, this is a
    /// failure, because a new link would not help.
    fn works(&mut self) -> Result<(), String> {
        // The server handles requests in order.
        let next =
            self.pending.values().find(|pending| pending.waits).map(|pending| pending.awaited);
        let Some(Awaited::Computed { works_within }) = next else {
            return Err(self.protocol_violation("it sent `Working` without a computation"));
        };
        let since = *self.working_since.get_or_insert_with(MonotonicTime::now);
        if since.after(works_within).left().is_some() {
            return Ok(());
        }
        let message = format!(
            "the server has been working on its answer for {works_within:.0?} without result; \
             check the server"
        );
        Err(self.fail(StoredError { kind: StoreErrorKind::Unreachable, message }))
    }

    fn awaited(&self, number: u64) -> Option<Awaited> {
        self.pending.get(&number).filter(|pending| pending.waits).map(|pending| pending.awaited)
    }

    fn receive_data(&mut self, number: u64, bytes: Bytes) -> Result<(), String> {
        match self.awaited(number) {
            Some(Awaited::Data { bytes: expected }) if bytes.len() == expected => {
                self.end(number, Ok(bytes));
                Ok(())
            }
            Some(Awaited::Computed { .. }) => {
                self.end(number, Ok(bytes));
                Ok(())
            }
            Some(Awaited::Data { bytes: expected }) => {
                let found = bytes.len();
                Err(self.protocol_violation(&format!(
                    "it sent {found} bytes, but {expected} were requested"
                )))
            }
            Some(_) => {
                Err(self.protocol_violation("it sent bytes for a request that is not a read"))
            }
            None => Err(self.protocol_violation("it sent bytes without a request")),
        }
    }

    fn done(&mut self, number: u64) -> Result<(), String> {
        match self.awaited(number) {
            Some(Awaited::Written) => {
                self.waiting -= 1;
                self.pending.entry(number).and_modify(|pending| pending.waits = false);
                Ok(())
            }
            Some(Awaited::Flushed) => {
                let is_write = |pending: &PendingRequest| pending.awaited == Awaited::Written;
                if self
                    .pending
                    .range(..number)
                    .any(|(_, pending)| is_write(pending) && pending.waits)
                {
                    return Err(
                        self.protocol_violation("it confirmed a flush before an earlier write")
                    );
                }
                self.pending.retain(|other, pending| *other > number || !is_write(pending));
                self.end(number, Ok(Bytes::new()));
                Ok(())
            }
            Some(Awaited::Data { .. }) => {
                Err(self.protocol_violation("it sent no bytes for a read"))
            }
            Some(Awaited::Computed { .. }) => {
                Err(self.protocol_violation("it sent no result of a computation"))
            }
            None => Err(self.protocol_violation("it confirmed something without a request")),
        }
    }

    fn failed(&mut self, Failure { number, kind, message }: Failure) -> Result<(), String> {
        let message = sanitize_message(&message);
        if kind == FailureKind::Fenced {
            return Err(self.fail(fenced(&message)));
        }
        match self.awaited(number) {
            Some(Awaited::Data { .. } | Awaited::Computed { .. }) => {
                let fault = StoredError {
                    kind: kind.store_kind(),
                    message: format!("the server says: {message}"),
                };
                self.end(number, Err(fault));
                // After other failures, the server skips the requests behind the failed one; they
                // are sent again on another link.
                let continues = kind == FailureKind::Absent;
                continues.then_some(()).ok_or_else(|| format!("a request failed: {message}"))
            }
            Some(awaited) => {
                let act = if awaited == Awaited::Written { "completed" } else { "made durable" };
                let message = format!(
                    "writes cannot be {act} (the server says: {message}); open the volume again"
                );
                Err(self.fail(StoredError { kind: kind.store_kind(), message }))
            }
            None => {
                let message =
                    format!("the server reports a failure (it says: {message}); check the server");
                Err(self.fail(StoredError { kind: kind.store_kind(), message }))
            }
        }
    }

    /// Ends a request that is not a write, with its answer.
    fn end(&mut self, number: u64, answer: Result<Bytes, StoredError>) {
        self.waiting -= 1;
        if self.pending.remove(&number).is_some_and(|pending| pending.is_wanted) {
            self.answers.insert(number, answer);
        }
    }

    fn protocol_violation(&mut self, how: &str) -> String {
        self.fail(protocol_violation(how))
    }

    fn fail(&mut self, fault: StoredError) -> String {
        self.failure.get_or_insert(fault).message.clone()
    }
}

/// The error if another client has become the writer.
pub(super) fn fenced(message: &str) -> StoredError {
    let message = format!("another client has opened the volume: {message}");
    StoredError { kind: StoreErrorKind::Fenced, message }
}

/// The error if the server violates the protocol.
pub(super) fn protocol_violation(how: &str) -> StoredError {
    let message = format!("the server violates the protocol: {how}; check the server");
    StoredError { kind: StoreErrorKind::Failed, message }
}
