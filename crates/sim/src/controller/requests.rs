//! What waits for the controller.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::Cycle;

/// How many write-backs wait before they come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteMarks {
    /// From so many on, write-backs go before reads …
    pub high: usize,
    /// … until so few are left.
    pub low: usize,
}

/// A request for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting<T> {
    pub(super) what: T,
    pub(super) line: u64,
    /// When it came.
    pub(super) since: Cycle,
}

/// Reads, each with a name, and write-backs. Reads go first unless too many write-backs wait.
pub(super) struct Requests<T> {
    reads: VecDeque<Waiting<T>>,
    writes: VecDeque<Waiting<bool>>,
    marks: WriteMarks,
    drains: bool,
}

/// What comes next.
pub(super) enum Turn<T> {
    Read(Waiting<T>),
    /// And whether the line was changed.
    Write(Waiting<bool>),
}

impl<T: Copy> Requests<T> {
    pub(super) fn new(marks: WriteMarks) -> Self {
        Self { reads: VecDeque::new(), writes: VecDeque::new(), marks, drains: false }
    }

    pub(super) fn add_read(&mut self, what: T, line: u64, since: Cycle) {
        self.reads.push_back(Waiting { what, line, since });
    }

    pub(super) fn add_write(&mut self, line: u64, is_dirty: bool, since: Cycle) {
        self.writes.push_back(Waiting { what: is_dirty, line, since });
        self.drains |= self.writes.len() >= self.marks.high;
    }

    /// Takes `line` out of the write-backs, if it is among them, and answers whether it was changed.
    pub(super) fn cancel_write(&mut self, line: u64) -> Option<bool> {
        let at = self.writes.iter().position(|waiting| waiting.line == line)?;
        self.writes.remove(at).map(|waiting| waiting.what)
    }

    /// Whether `line` is among the write-backs.
    pub(super) fn waits_to_be_written(&self, line: u64) -> bool {
        self.writes.iter().any(|waiting| waiting.line == line)
    }

    /// Since when something waits.
    pub(super) fn first(&self) -> Option<Cycle> {
        let read = self.reads.front().map(|waiting| waiting.since);
        let write = self.writes.front().map(|waiting| waiting.since);
        [read, write].into_iter().flatten().min()
    }

    /// Takes what comes next of all that was there at `now`.
    pub(super) fn take(&mut self, now: Cycle) -> Option<Turn<T>> {
        let has_read = self.reads.front().is_some_and(|waiting| waiting.since <= now);
        let has_write = self.writes.front().is_some_and(|waiting| waiting.since <= now);
        if has_write && (self.drains || !has_read) {
            let waiting = self.writes.pop_front();
            self.drains &= self.writes.len() > self.marks.low;
            return waiting.map(Turn::Write);
        }
        self.reads.pop_front().filter(|_| has_read).map(Turn::Read)
    }
}
