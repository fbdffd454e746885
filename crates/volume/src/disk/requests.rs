//! What workers are told, and what they answer.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, OnceLock};

use crate::device::ops::{REQUEST_BYTES_MAX, bytes_carried};
use crate::device::{DiskError, Request};
use crate::error::VolumeError;

/// As many requests are under way at once.
pub(super) const REQUESTS_UNDER_WAY_MAX: usize = 256;

/// With so many bytes to read and write, no more requests are taken beside those under way.
const BYTES_UNDER_WAY_MAX: u64 = REQUEST_BYTES_MAX;

/// What a worker is told.
pub(super) enum Message {
    Serve(Request),
    /// To a disk that has a schedule and no clock: makes a tick. When it is over, the sender is
    /// dropped.
    Tick(SyncSender<()>),
    Close,
}

/// Where a worker is told what to do.
pub(super) struct Queue {
    messages: Receiver<Message>,
    /// Why nothing is done any more.
    failure: Arc<OnceLock<String>>,
    /// Set before [`Message::Close`] is sent. No request comes after that.
    is_closing: Arc<AtomicBool>,
}

impl Queue {
    pub(super) fn new(
        messages: Receiver<Message>,
        failure: Arc<OnceLock<String>>,
        is_closing: Arc<AtomicBool>,
    ) -> Self {
        Self { messages, failure, is_closing }
    }

    /// The volume has failed: answers whoever still asks, until everybody has gone.
    pub(super) fn refuse_all(&self, error: VolumeError) -> VolumeError {
        // The first failure is the one that counts.
        let _ = self.failure.set(error.to_string());
        loop {
            // The failed worker may already have taken `Close`.
            let message = match self.is_closing.load(Ordering::Acquire) {
                true => self.try_recv().map_err(drop),
                false => self.recv().map_err(drop),
            };
            match message {
                Ok(Message::Serve(request)) => (request.done)(Err(DiskError::from(&error))),
                Ok(Message::Tick(_)) => (),
                Ok(Message::Close) | Err(_) => return error,
            }
        }
    }
}

impl Deref for Queue {
    type Target = Receiver<Message>;

    fn deref(&self) -> &Self::Target {
        &self.messages
    }
}

/// Requests that wait together.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) requests: Vec<Request>,
    /// That they read and write.
    pub(super) bytes: u64,
    /// Nobody asks for more.
    pub(super) is_last: bool,
}

impl Waiting {
    /// The `first`, and those that wait behind it.
    pub(super) fn with(first: Request, queue: &Queue) -> Self {
        let bytes = bytes_carried(&first.op);
        Self { requests: vec![first], bytes, is_last: false }.and_more(queue, 0, 0)
    }

    /// Those that wait beside so many others, which carry so many bytes.
    pub(super) fn beside(requests: usize, bytes: u64, queue: &Queue) -> Self {
        Self::default().and_more(queue, requests, bytes)
    }

    fn and_more(mut self, queue: &Queue, requests_beside: usize, bytes_beside: u64) -> Self {
        while self.requests.len() + requests_beside < REQUESTS_UNDER_WAY_MAX
            && self.bytes + bytes_beside < BYTES_UNDER_WAY_MAX
        {
            match queue.try_recv() {
                Ok(Message::Serve(request)) => {
                    self.bytes += bytes_carried(&request.op);
                    self.requests.push(request);
                }
                // Without a schedule, there are no ticks.
                Ok(Message::Tick(_)) => (),
                Ok(Message::Close) => {
                    self.is_last = true;
                    break;
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        self
    }
}
