//! Tracks the lines in flight from memory to the LLC.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;

use super::request::FetchId;
use crate::Cycle;

/// A read that waits for a fetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    id: FetchId,
    /// The cycle in which the read found its line in flight, if it did.
    merged: Option<Cycle>,
}

/// The fetches for which an instruction may still wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetches {
    /// The stored fetches: all from number `forgotten` on, in order.
    stored: VecDeque<Fetch>,
    forgotten: u64,
    /// The latest stored fetch of each line that is in the LLC. It is looked up for each record, so
    /// the hash must be fast.
    of_line: HashMap<u64, FetchId, FixedState>,
    merges: u64,
}

#[derive(Clone, Debug)]
struct Fetch {
    line: u64,
    requested: Cycle,
    answered: Option<Cycle>,
    /// The number of reads that wait for the answer or have not taken it yet.
    waiting: u32,
}

impl Fetches {
    /// Starts a fetch of `line`. Its request reaches memory in cycle `requested`.
    pub(super) fn start(&mut self, line: u64, requested: Cycle) -> FetchId {
        let id = FetchId(self.forgotten + self.stored.len() as u64);
        self.stored.push_back(Fetch { line, requested, answered: None, waiting: 0 });
        self.of_line.insert(line, id);
        id
    }

    /// Drops the oldest fetches, up to the first that a read waits for, or that a read at `now` or
    /// later may wait for.
    pub(super) fn forget_before(&mut self, now: Cycle) {
        let useless =
            |fetch: &mut Fetch| fetch.waiting == 0 && fetch.answered.is_some_and(|at| at <= now);
        while let Some(fetch) = self.stored.pop_front_if(useless) {
            if self.of_line.get(&fetch.line) == Some(&FetchId(self.forgotten)) {
                self.of_line.remove(&fetch.line);
            }
            self.forgotten += 1;
        }
    }

    /// Adds a read at `now` that finds `line` in the LLC to the reads that wait for the line's
    /// fetch, and returns its wait. `None` if no stored fetch brings the line.
    pub(super) fn merge(&mut self, line: u64, now: Cycle) -> Option<Wait> {
        let id = *self.of_line.get(&line)?;
        Some(self.wait(id, Some(now)))
    }

    /// Adds a read to those that wait for fetch `id`, and returns its wait. `merged` is the cycle
    /// in which the read found its line in flight, if it did.
    pub(super) fn wait(&mut self, id: FetchId, merged: Option<Cycle>) -> Wait {
        let place = self.place(id);
        self.stored[place].waiting += 1;
        Wait { id, merged }
    }

    /// The cycle in which the line of `wait` arrived; `None` if it is not known yet.
    pub(super) fn answered(&self, wait: Wait) -> Option<Cycle> {
        self.stored[self.place(wait.id)].answered
    }

    /// Ends a wait whose line has arrived.
    pub(super) fn end(&mut self, wait: Wait) {
        let place = self.place(wait.id);
        let fetch = &mut self.stored[place];
        fetch.waiting -= 1;
        let waited = |now| fetch.answered.is_some_and(|at| now < at);
        self.merges += u64::from(wait.merged.is_some_and(waited));
    }

    /// Notes that `line` left the LLC. If it comes back, another fetch brings it.
    pub(super) fn forget_line(&mut self, line: u64) {
        self.of_line.remove(&line);
    }

    /// Notes the answer to fetch `id`.
    ///
    /// # Panics
    /// If the fetch was answered before, or `at` is before its request.
    pub(super) fn answer(&mut self, id: FetchId, at: Cycle) {
        assert!(id.0 >= self.forgotten, "{id:?} is answered twice");
        let place = self.place(id);
        let fetch = &mut self.stored[place];
        assert!(fetch.answered.is_none(), "{id:?} is answered twice");
        assert!(
            at >= fetch.requested,
            "{id:?} was requested at {} and answered at {at}",
            fetch.requested
        );
        fetch.answered = Some(at);
    }

    /// The number of reads that waited for the fetch of an earlier instruction.
    pub(super) fn merges(&self) -> u64 {
        self.merges
    }

    fn place(&self, id: FetchId) -> usize {
        (id.0 - self.forgotten) as usize
    }
}
