//! The table of commands in flight, shared by the caller's thread and the threads that read
//! replies.
//!
//! Commands are sent in *batches*: the commands of one request, on one link. A server answers the
//! commands of a link in order.

use std::collections::{HashMap, HashSet, VecDeque};
use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oblivio_wire::link::MonotonicTime;

use crate::objects::resp::Reply;

/// The number of a batch of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BatchId(pub(super) u64);

/// The number of a link to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LinkId(pub(super) u64);

/// The outcome of a batch.
#[derive(Debug)]
pub(super) enum Finished {
    /// The replies, one for each command.
    Replies(Vec<Reply>),
    /// The link was lost before all replies arrived.
    Lost(String),
}

#[derive(Default)]
pub(super) struct ReplyTable {
    state: Mutex<State>,
    /// Wakes the caller.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    links: HashMap<LinkId, LinkState>,
    finished: HashMap<BatchId, Finished>,
    /// Batches that were lost or have an error among their replies.
    failed: Vec<BatchId>,
    /// Batches in flight whose replies will be dropped.
    forgotten: HashSet<BatchId>,
    /// The batch that the caller waits for.
    awaited: Option<BatchId>,
}

struct LinkState {
    /// The batches without all their replies, in the order of sending.
    waiting: VecDeque<WaitingBatch>,
    is_up: bool,
    cause: String,
    /// When the last bytes arrived, or the first of the waiting batches was sent.
    progress_at: MonotonicTime,
}

struct WaitingBatch {
    batch: BatchId,
    replies: Vec<Reply>,
    missing: usize,
    reply_bytes_max: usize,
}

impl ReplyTable {
    fn state(&self) -> MutexGuard<'_, State> {
        // The lists are consistent whenever the lock is released, even by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a link.
    pub(super) fn add_link(&self, link: LinkId) {
        let link_state = LinkState {
            waiting: VecDeque::new(),
            is_up: true,
            cause: String::new(),
            progress_at: MonotonicTime::now(),
        };
        self.state().links.insert(link, link_state);
    }

    /// Removes a link, which counts as lost.
    pub(super) fn remove_link(&self, link: LinkId) {
        let mut state = self.state();
        state.lose(link, "the link was closed");
        state.links.remove(&link);
    }

    pub(super) fn is_up(&self, link: LinkId) -> bool {
        self.state().links.get(&link).is_some_and(|link| link.is_up)
    }

    /// Marks a link as lost. Its batches finish. Only the first cause is stored.
    pub(super) fn lose(&self, link: LinkId, cause: &str) {
        self.state().lose(link, cause);
        self.changed.notify_all();
    }

    /// Records a batch that is about to be sent. Each of its `commands` has a reply of at most
    /// `reply_bytes_max` bytes.
    pub(super) fn expect(
        &self,
        link: LinkId,
        batch: BatchId,
        commands: usize,
        reply_bytes_max: usize,
    ) {
        let mut state = self.state();
        let Some(link_state) = state.links.get_mut(&link).filter(|link| link.is_up) else {
            let cause = state.links.get(&link).map_or("", |link| &link.cause).to_owned();
            state.finish(batch, Finished::Lost(cause));
            return;
        };
        if link_state.waiting.is_empty() {
            link_state.progress_at = MonotonicTime::now();
        }
        link_state.waiting.push_back(WaitingBatch {
            batch,
            replies: Vec::with_capacity(commands),
            missing: commands,
            reply_bytes_max,
        });
    }

    /// Records that bytes arrived. Returns the maximum length of the next reply: `None` if no reply
    /// is expected.
    pub(super) fn received(&self, link: LinkId) -> Option<usize> {
        let mut state = self.state();
        let link = state.links.get_mut(&link)?;
        link.progress_at = MonotonicTime::now();
        link.waiting.front().map(|waiting| waiting.reply_bytes_max)
    }

    /// Adds a reply to the batch that waits for it. Returns the maximum length of the next reply:
    /// `None` if no reply is expected.
    pub(super) fn take_in(&self, link: LinkId, reply: Reply) -> Option<usize> {
        let mut state = self.state();
        let link_state = state.links.get_mut(&link)?;
        let waiting = link_state.waiting.front_mut()?;
        waiting.replies.push(reply);
        waiting.missing -= 1;
        if waiting.missing > 0 {
            return Some(waiting.reply_bytes_max);
        }
        let WaitingBatch { batch, replies, .. } = link_state.waiting.pop_front()?;
        let next = link_state.waiting.front().map(|waiting| waiting.reply_bytes_max);
        let is_awaited = state.finish(batch, Finished::Replies(replies));
        drop(state);
        if is_awaited {
            self.changed.notify_all();
        }
        next
    }

    /// Takes the outcome of a batch, if it has finished.
    pub(super) fn take(&self, batch: BatchId) -> Option<Finished> {
        self.state().finished.remove(&batch)
    }

    /// Takes the numbers of the batches that failed since the last call. Their outcomes stay.
    pub(super) fn take_failed(&self) -> Vec<BatchId> {
        mem::take(&mut self.state().failed)
    }

    /// Drops the outcome of a batch, now or when it finishes.
    pub(super) fn forget(&self, batch: BatchId) {
        let mut state = self.state();
        if state.finished.remove(&batch).is_none() {
            state.forgotten.insert(batch);
        }
    }

    /// Waits until `batch` finishes, any batch fails, or the time is `until`. A link that delivers
    /// nothing for `answer_within` although replies are expected is lost.
    pub(super) fn wait(
        &self,
        batch: Option<BatchId>,
        answer_within: Duration,
        until: Option<MonotonicTime>,
    ) {
        let mut state = self.state();
        state.awaited = batch;
        loop {
            let has_finished = batch.is_some_and(|batch| state.finished.contains_key(&batch));
            if has_finished || !state.failed.is_empty() {
                break;
            }
            let silent = state.longest_silent(answer_within);
            let next = silent.map(|(_, at)| at).into_iter().chain(until).min();
            match next.map(|next| next.left()) {
                None => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                Some(Some(left)) => {
                    let woken = self.changed.wait_timeout(state, left);
                    state = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(None) => {
                    if let Some((link, _)) = silent.filter(|(_, at)| at.left().is_none()) {
                        state.lose(link, &format!("no answer came within {answer_within:.0?}"));
                    }
                    if until.is_some_and(|until| until.left().is_none()) {
                        break;
                    }
                }
            }
        }
        state.awaited = None;
    }
}

impl State {
    /// Records the outcome of a batch. Returns whether the caller waits for it.
    fn finish(&mut self, batch: BatchId, outcome: Finished) -> bool {
        if self.forgotten.remove(&batch) {
            return false;
        }
        let has_failed = match &outcome {
            Finished::Lost(_) => true,
            Finished::Replies(replies) => {
                replies.iter().any(|reply| matches!(reply, Reply::Error(_)))
            }
        };
        if has_failed {
            self.failed.push(batch);
        }
        self.finished.insert(batch, outcome);
        has_failed || self.awaited == Some(batch)
    }

    fn lose(&mut self, link: LinkId, cause: &str) {
        let Some(link) = self.links.get_mut(&link).filter(|link| link.is_up) else { return };
        link.is_up = false;
        cause.clone_into(&mut link.cause);
        for waiting in mem::take(&mut link.waiting) {
            self.finish(waiting.batch, Finished::Lost(cause.to_owned()));
        }
    }

    /// The link whose next reply is due first, and the end of its time.
    fn longest_silent(&self, answer_within: Duration) -> Option<(LinkId, MonotonicTime)> {
        let waiting = self.links.iter().filter(|(_, link)| !link.waiting.is_empty());
        let due = waiting.map(|(id, link)| (*id, link.progress_at.after(answer_within)));
        due.min_by_key(|(_, at)| *at)
    }
}
