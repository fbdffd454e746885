//! The bytes in flight in one direction of a connection: a bounded queue of chunks with arrival
//! times.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{Clock, lock};

/// Bytes that arrive together, and the event that follows them.
pub(super) struct Chunk {
    pub(super) arrives: Duration,
    pub(super) bytes: Vec<u8>,
    pub(super) then: Then,
}

/// The event that follows a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// More chunks follow this chunk.
    More,
    /// The sender has closed its half.
    End,
    /// The connection breaks after this chunk.
    Cut,
}

/// Connects a thread that reads one socket with a thread that writes another.
pub(super) struct Queue {
    bytes_max: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    chunks: VecDeque<Chunk>,
    /// Bytes of all chunks, including the chunk being written.
    bytes: usize,
    is_closed: bool,
}

impl Queue {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits for space. Returns false if the queue is closed.
    pub(super) fn has_room(&self) -> bool {
        let is_full = |state: &mut State| !state.is_closed && state.bytes >= self.bytes_max;
        let state = self.changed.wait_while(lock(&self.state), is_full);
        !state.unwrap_or_else(PoisonError::into_inner).is_closed
    }

    pub(super) fn push(&self, chunk: Chunk) {
        let mut state = lock(&self.state);
        state.bytes += chunk.bytes.len();
        state.chunks.push_back(chunk);
        self.changed.notify_all();
    }

    /// Waits for the next chunk to arrive, and returns it. `None` if the queue is closed.
    pub(super) fn next(&self, clock: Clock<'_>) -> Option<Chunk> {
        let is_waited_for = |state: &mut State| !state.is_closed && state.chunks.is_empty();
        let state = self.changed.wait_while(lock(&self.state), is_waited_for);
        let arrives = state.unwrap_or_else(PoisonError::into_inner).chunks.front()?.arrives;
        self.is_open_at(arrives, clock).then(|| lock(&self.state).chunks.pop_front())?
    }

    /// Frees the space of written bytes.
    pub(super) fn written(&self, bytes: usize) {
        lock(&self.state).bytes -= bytes;
        self.changed.notify_all();
    }

    /// Waits until `time` or until the queue is closed. Returns whether the queue is still open.
    pub(super) fn is_open_at(&self, time: Duration, clock: Clock<'_>) -> bool {
        let mut state = lock(&self.state);
        loop {
            let left = time.saturating_sub(clock());
            if state.is_closed || left.is_zero() {
                return !state.is_closed;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes the queue, and wakes all waiting threads. Bytes in flight are lost.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }
}
