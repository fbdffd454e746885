//! The lines that are under way from memory to the LLC.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;

use super::request::FetchId;
use crate::Cycle;

/// A read that waits for a fetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    id: FetchId,
    /// For a read that found its line under way: when that was.
    merged: Option<Cycle>,
}

/// The fetches that somebody may still wait for.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetches {
    /// Those since fetch number `forgotten`, in the order of their numbers.
    kept: VecDeque<Fetch>,
    forgotten: u64,
    /// By which of those each line of the LLC comes. Looked up for each record: hence a quick hash.
    of_line: HashMap<u64, FetchId, FixedState>,
    merges: u64,
}

#[derive(Clone, Debug)]
struct Fetch {
    line: u64,
    asked: Cycle,
    answered: Option<Cycle>,
    /// Reads that still have to learn when it was answered.
    waiting: u32,
}

impl Fetches {
    /// A fetch of `line` that reaches memory at `asked`.
    pub(super) fn start(&mut self, line: u64, asked: Cycle) -> FetchId {
        let id = FetchId(self.forgotten + self.kept.len() as u64);
        self.kept.push_back(Fetch { line, asked, answered: None, waiting: 0 });
        self.of_line.insert(line, id);
        id
    }

    /// Forgets what no instruction that is fetched at `now` or later can wait for.
    pub(super) fn forget_before(&mut self, now: Cycle) {
        let useless =
            |fetch: &mut Fetch| fetch.waiting == 0 && fetch.answered.is_some_and(|at| at <= now);
        while let Some(fetch) = self.kept.pop_front_if(useless) {
            if self.of_line.get(&fetch.line) == Some(&FetchId(self.forgotten)) {
                self.of_line.remove(&fetch.line);
            }
            self.forgotten += 1;
        }
    }

    /// How a read at `now` that finds `line` in the LLC has to wait: not at all if the line has come,
    /// or came by no fetch.
    pub(super) fn merge(&mut self, line: u64, now: Cycle) -> Option<Wait> {
        let id = *self.of_line.get(&line)?;
        Some(self.wait(id, Some(now)))
    }

    /// How a read waits for fetch `id`: with `merged`, one that found the line under way at that cycle.
    pub(super) fn wait(&mut self, id: FetchId, merged: Option<Cycle>) -> Wait {
        let place = self.place(id);
        self.kept[place].waiting += 1;
        Wait { id, merged }
    }

    /// When the line of a wait came. `None`: it is not known yet.
    pub(super) fn answered(&self, wait: Wait) -> Option<Cycle> {
        self.kept[self.place(wait.id)].answered
    }

    /// Ends a wait whose line came.
    pub(super) fn end(&mut self, wait: Wait) {
        let place = self.place(wait.id);
        let fetch = &mut self.kept[place];
        fetch.waiting -= 1;
        let waited = |now| fetch.answered.is_some_and(|at| now < at);
        self.merges += u64::from(wait.merged.is_some_and(waited));
    }

    /// `line` left the LLC, and if it comes back, then by another way.
    pub(super) fn left(&mut self, line: u64) {
        self.of_line.remove(&line);
    }

    /// Fetch `id` is answered.
    ///
    /// # Panics
    /// When it was answered before, or `at` is before it was asked for.
    pub(super) fn answer(&mut self, id: FetchId, at: Cycle) {
        assert!(id.0 >= self.forgotten, "{id:?} is answered twice");
        let place = self.place(id);
        let fetch = &mut self.kept[place];
        assert!(fetch.answered.is_none(), "{id:?} is answered twice");
        assert!(at >= fetch.asked, "{id:?} is asked at {} and answered at {at}", fetch.asked);
        fetch.answered = Some(at);
    }

    /// How many reads waited for a line that another had asked for.
    pub(super) fn merges(&self) -> u64 {
        self.merges
    }

    fn place(&self, id: FetchId) -> usize {
        (id.0 - self.forgotten) as usize
    }
}
