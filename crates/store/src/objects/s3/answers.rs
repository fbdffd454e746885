//! The table of answers, shared by the caller's thread and the thread that sends requests.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use oblivio_core::{StoreError, StoreErrorKind};

use crate::objects::{Answer, Listed, Ticket};

/// What a request brought.
#[derive(Debug)]
pub(super) enum Reply {
    /// The answer to a get or a creation.
    Answer(Answer),
    /// A page of a listing.
    Page(Vec<Listed>),
    /// All objects are deleted.
    Deleted,
}

type Outcome = Result<Reply, StoreError>;

#[derive(Default)]
pub(super) struct Answers {
    state: Mutex<State>,
    /// Wakes the caller's thread, which waits for an answer.
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    latest: u64,
    /// The requests that the caller has neither waited for nor forgotten; `None` until answered.
    requests: HashMap<u64, Option<Outcome>>,
    /// The request that the caller's thread waits for.
    caller_waits_for: Option<u64>,
}

impl Answers {
    fn state(&self) -> MutexGuard<'_, State> {
        // The table is consistent whenever the lock is released, even by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request.
    pub(super) fn add(self: &Arc<Self>) -> (Ticket, Pending) {
        let mut state = self.state();
        state.latest += 1;
        let number = state.latest;
        state.requests.insert(number, None);
        (Ticket(number), Pending { answers: Arc::clone(self), number, is_answered: false })
    }

    /// Waits for the answer to a request, and takes it.
    pub(super) fn wait(&self, Ticket(number): Ticket) -> Outcome {
        let mut state = self.state();
        loop {
            match state.requests.get_mut(&number).map(Option::take) {
                Some(Some(outcome)) => {
                    state.requests.remove(&number);
                    return outcome;
                }
                Some(None) => {}
                None => {
                    let message = format!("request {number} is unknown, or its answer was taken");
                    return Err(StoreError::new(StoreErrorKind::Failed, message));
                }
            }
            state.caller_waits_for = Some(number);
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Discards the answer to a request, now or when it arrives.
    pub(super) fn forget(&self, Ticket(number): Ticket) {
        self.state().requests.remove(&number);
    }

    fn arrive(&self, number: u64, outcome: Outcome) {
        let mut state = self.state();
        if let Some(request) = state.requests.get_mut(&number) {
            *request = Some(outcome);
        }
        // Wake the caller only for its own answer, and only after releasing the lock.
        let wakes = state.caller_waits_for == Some(number);
        drop(state);
        if wakes {
            self.arrived.notify_all();
        }
    }
}

/// A request without an answer. If it is dropped, the request fails.
pub(super) struct Pending {
    answers: Arc<Answers>,
    number: u64,
    is_answered: bool,
}

impl Pending {
    pub(super) fn answer(mut self, outcome: Outcome) {
        self.is_answered = true;
        self.answers.arrive(self.number, outcome);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_answered {
            let message = "the thread that sends requests has ended; open the store again";
            let error = StoreError::new(StoreErrorKind::Failed, message);
            self.answers.arrive(self.number, Err(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_request_fails_and_a_forgotten_one_leaves_nothing() {
        let answers = Arc::new(Answers::default());
        let (ticket, pending) = answers.add();
        drop(pending);
        let error = answers.wait(ticket).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Failed);
        assert!(answers.wait(ticket).is_err(), "the answer was taken");

        let (ticket, pending) = answers.add();
        answers.forget(ticket);
        pending.answer(Ok(Reply::Deleted));
        assert!(answers.state().requests.is_empty());
    }
}
