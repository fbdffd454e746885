//! What was asked and what was answered: the one thing that the caller's thread and the thread that reads answers share.
//!
//! Here every answer is checked: somebody waits for it, and it fits what was asked.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use oblivio_core::error::for_people;
use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_wire::link::Moment;
use oblivio_wire::{Answer, Failure, FailureKind};

use super::frames::Frame;

/// What answer a request is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// That it is written.
    Written,
    /// That it is durable, and all that was written before it.
    Flushed,
    /// So many bytes.
    Data { bytes: usize },
    /// What was computed, however long it is. The server may say for so long that it works on it.
    Computed { works_within: Duration },
}

/// An error, as often as it has to be told.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) kind: StoreErrorKind,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn error(&self) -> StoreError {
        StoreError::new(self.kind, self.message.clone())
    }
}

/// What somebody who waited for an answer learns.
pub(super) enum Outcome {
    /// The answer: the bytes that were read or computed, or none.
    Came(Result<Bytes, Fault>),
    /// There can be no answer on this link any more.
    LinkIsLost,
}

#[derive(Default)]
pub(super) struct Desk {
    state: Mutex<State>,
    /// The caller's thread waits here.
    has_come: Condvar,
    /// The other one waits here while there is nothing to be answered.
    is_asked: Condvar,
}

#[derive(Default)]
struct State {
    /// By number: whatever waits for an answer, and all writes that are not durable.
    asked: BTreeMap<u64, Asked>,
    /// How many of them wait.
    waiting: usize,
    /// Answers that nobody has taken yet.
    came: HashMap<u64, Result<Bytes, Fault>>,
    /// The one answer for which the caller's thread has begun to wait.
    caller_waits_for: Option<u64>,
    /// There is a link.
    is_up: bool,
    /// Something was answered on the latest link.
    has_answered: bool,
    /// What the server answers next is worked on at least since then, as it says.
    works_since: Option<Moment>,
    /// Why the latest link was lost.
    cause: String,
    /// After this error nothing is answered any more.
    failure: Option<Fault>,
}

struct Asked {
    frame: Frame,
    awaited: Awaited,
    waits: bool,
    /// Somebody will take the answer.
    is_wanted: bool,
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever holds the lock leaves the lists whole at every step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error after which nothing is answered any more, if there was one.
    pub(super) fn check_alive(&self) -> Result<(), StoreError> {
        self.state().failure.as_ref().map_or(Ok(()), |fault| Err(fault.error()))
    }

    /// From now on nothing is answered any more.
    pub(super) fn fail(&self, fault: Fault) -> StoreError {
        let mut state = self.state();
        let first = state.failure.get_or_insert(fault).error();
        self.lose_link(&mut state, "the store has failed".into());
        first
    }

    /// There is a new link.
    pub(super) fn link_is_up(&self) {
        let mut state = self.state();
        state.is_up = true;
        state.has_answered = false;
        // How long the server has said that it works counts on: another link is no answer.
    }

    /// Whether something was answered on the latest link.
    pub(super) fn has_answered(&self) -> bool {
        self.state().has_answered
    }

    pub(super) fn is_up(&self) -> bool {
        self.state().is_up
    }

    /// The link is of no use any more, for this reason if for none before.
    pub(super) fn lose(&self, cause: String) {
        self.lose_link(&mut self.state(), cause);
    }

    fn lose_link(&self, state: &mut State, cause: String) {
        if std::mem::take(&mut state.is_up) {
            state.cause = cause;
        }
        self.has_come.notify_all();
        self.is_asked.notify_all();
    }

    pub(super) fn cause(&self) -> String {
        self.state().cause.clone()
    }

    /// This is going to be sent.
    pub(super) fn ask(&self, number: u64, awaited: Awaited, frame: Frame) {
        let mut state = self.state();
        state.asked.insert(number, Asked { frame, awaited, waits: true, is_wanted: true });
        state.waiting += 1;
        let is_first = state.waiting == 1;
        drop(state);
        if is_first {
            self.is_asked.notify_all();
        }
    }

    /// Nobody will take the answer.
    pub(super) fn forget(&self, number: u64) {
        let mut state = self.state();
        state.came.remove(&number);
        if let Some(asked) = state.asked.get_mut(&number) {
            asked.is_wanted = false;
        }
    }

    /// Waits for an answer, and takes it.
    pub(super) fn wait(&self, number: u64) -> Result<Outcome, StoreError> {
        let mut state = self.state();
        loop {
            if let Some(came) = state.came.remove(&number) {
                return Ok(Outcome::Came(came));
            }
            if let Some(fault) = &state.failure {
                return Err(fault.error());
            }
            if !state.is_up {
                return Ok(Outcome::LinkIsLost);
            }
            state.caller_waits_for = Some(number);
            state = self.has_come.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The lowest number that waits.
    pub(super) fn lowest_waiting(&self) -> Option<u64> {
        self.state().asked.iter().find(|(_, asked)| asked.waits).map(|(number, _)| *number)
    }

    /// What has to be sent again on a new link, in the order in which it was sent. If the server has forgotten what was not
    /// durable, that is all of it. Else it is what was not answered: from the first such write on, lest an older one comes
    /// to lie over a newer one.
    pub(super) fn to_send_again(&self, has_forgotten: bool) -> Vec<Frame> {
        let mut state = self.state();
        let mut from_here = has_forgotten;
        for asked in state.asked.values_mut().filter(|it| it.awaited == Awaited::Written) {
            from_here |= asked.waits;
            asked.waits |= from_here;
        }
        let waiting = state.asked.values().filter(|asked| asked.waits);
        let frames: Vec<_> = waiting.map(|asked| asked.frame.clone()).collect();
        state.waiting = frames.len();
        frames
    }

    /// Waits until there is something to be answered. Answers whether there can be, on this link.
    pub(super) fn expects_answers(&self) -> bool {
        let mut state = self.state();
        while state.is_up && state.waiting == 0 {
            state = self.is_asked.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_up
    }

    /// Takes in what the server says.
    ///
    /// # Errors
    /// Why nothing more is to be read on this link.
    pub(super) fn take_in(&self, message: &Bytes) -> Result<(), String> {
        let decoded = Answer::decode(message);
        let mut state = self.state();
        let taken = match decoded {
            // The time within which an answer has to come begins anew.
            Ok(Answer::Working) => state.works(),
            Ok(answer) => state.answered(answer).inspect(|()| {
                state.has_answered = true;
                state.works_since = None;
            }),
            Err(invalid) => Err(state.lied(&invalid.to_string())),
        };
        // Nobody is woken for what he does not wait for, and whoever is finds the lock free.
        let is_awaited = state.caller_waits_for.is_some_and(|it| state.came.contains_key(&it));
        let wakes = is_awaited || state.failure.is_some();
        drop(state);
        if wakes {
            self.has_come.notify_all();
        }
        taken
    }
}

impl State {
    fn answered(&mut self, answer: Answer) -> Result<(), String> {
        match answer {
            Answer::Data { number, bytes } => self.came(number, bytes),
            Answer::Done { number } => self.done(number),
            Answer::Failed(failure) => self.failed(failure),
            Answer::Working
            | Answer::Welcome { .. }
            | Answer::Opened(_)
            | Answer::Looked { .. } => Err(self.lied("it answers what was not asked")),
        }
    }

    /// The server says that it works on what it was asked. That it says so for ever is no answer either, and no other link would change it.
    fn works(&mut self) -> Result<(), String> {
        // It does one thing after the other.
        let next = self.asked.values().find(|asked| asked.waits).map(|asked| asked.awaited);
        let Some(Awaited::Computed { works_within }) = next else {
            return Err(self.lied("it says that it works where nothing is computed"));
        };
        let since = *self.works_since.get_or_insert_with(Moment::now);
        if since.after(works_within).left().is_some() {
            return Ok(());
        }
        let message = format!(
            "the server has said for {works_within:.0?} that it works on its answer, and sends none: check it"
        );
        Err(self.fail(Fault { kind: StoreErrorKind::Unreachable, message }))
    }

    fn awaited(&self, number: u64) -> Option<Awaited> {
        self.asked.get(&number).filter(|asked| asked.waits).map(|asked| asked.awaited)
    }

    fn came(&mut self, number: u64, bytes: Bytes) -> Result<(), String> {
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
                Err(self.lied(&format!("it sends {found} bytes, and {expected} were asked for")))
            }
            Some(_) => Err(self.lied("it sends bytes for what was no read")),
            None => Err(self.lied("it sends bytes that nobody waits for")),
        }
    }

    fn done(&mut self, number: u64) -> Result<(), String> {
        match self.awaited(number) {
            Some(Awaited::Written) => {
                self.waiting -= 1;
                self.asked.entry(number).and_modify(|asked| asked.waits = false);
                Ok(())
            }
            Some(Awaited::Flushed) => {
                let is_write = |asked: &Asked| asked.awaited == Awaited::Written;
                if self.asked.range(..number).any(|(_, asked)| is_write(asked) && asked.waits) {
                    return Err(self.lied("it has made durable what it has not written"));
                }
                self.asked.retain(|other, asked| *other > number || !is_write(asked));
                self.end(number, Ok(Bytes::new()));
                Ok(())
            }
            Some(Awaited::Data { .. }) => Err(self.lied("it sends no bytes for a read")),
            Some(Awaited::Computed { .. }) => {
                Err(self.lied("it sends nothing that it has computed"))
            }
            None => Err(self.lied("it has done what nobody waits for")),
        }
    }

    fn failed(&mut self, Failure { number, kind, message }: Failure) -> Result<(), String> {
        let message = for_people(&message);
        if kind == FailureKind::Fenced {
            return Err(self.fail(fenced(&message)));
        }
        match self.awaited(number) {
            Some(Awaited::Data { .. } | Awaited::Computed { .. }) => {
                let fault =
                    Fault { kind: kind.of_store(), message: format!("the server says: {message}") };
                self.end(number, Err(fault));
                // After other failures it does nothing of what was asked behind it: that is asked again on another link.
                let goes_on = kind == FailureKind::Absent;
                goes_on.then_some(()).ok_or_else(|| format!("a request failed: {message}"))
            }
            Some(awaited) => {
                let act = if awaited == Awaited::Written { "written" } else { "made durable" };
                let message = format!(
                    "what was written cannot be {act} (the server says: {message}): open the volume again"
                );
                Err(self.fail(Fault { kind: kind.of_store(), message }))
            }
            None => {
                let message = format!("the server does not go on (it says: {message}): check it");
                Err(self.fail(Fault { kind: kind.of_store(), message }))
            }
        }
    }

    /// A read or a flush is answered.
    fn end(&mut self, number: u64, came: Result<Bytes, Fault>) {
        self.waiting -= 1;
        if self.asked.remove(&number).is_some_and(|asked| asked.is_wanted) {
            self.came.insert(number, came);
        }
    }

    fn lied(&mut self, how: &str) -> String {
        self.fail(lied(how))
    }

    fn fail(&mut self, fault: Fault) -> String {
        self.failure.get_or_insert(fault).message.clone()
    }
}

/// Another client is the writer from now on.
pub(super) fn fenced(message: &str) -> Fault {
    let message = format!("another client has opened the volume: {message}");
    Fault { kind: StoreErrorKind::Fenced, message }
}

/// The server does not keep to the protocol.
pub(super) fn lied(how: &str) -> Fault {
    let message = format!("the server does not keep to the protocol: {how}: check it");
    Fault { kind: StoreErrorKind::Failed, message }
}
