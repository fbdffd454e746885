//! Messages to workers, and requests that wait together.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, OnceLock};

use crate::device::ops::{REQUEST_BYTES_MAX, bytes_carried};
use crate::device::{DiskError, Request};
use crate::error::VolumeError;

/// Maximum number of requests in flight.
pub(super) const REQUESTS_UNDER_WAY_MAX: usize = 256;

/// Number of bytes in flight, read and written, at which no more requests are admitted.
const BYTES_UNDER_WAY_MAX: u64 = REQUEST_BYTES_MAX;

/// A message to a worker.
pub(super) enum Message {
    Serve(Request),
    /// Makes a tick, if the disk has a schedule and no clock. The sender is dropped when the tick
    /// is over.
    Tick(SyncSender<()>),
    Close,
}

/// The messages to a worker.
pub(super) struct Queue {
    messages: Receiver<Message>,
    /// The message that all requests fail with, if the volume has failed.
    failure: Arc<OnceLock<String>>,
    /// Whether the disk is closing. Set before [`Message::Close`] is sent, which no request
    /// follows.
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

    /// Answers requests with the volume's error until the disk is closed.
    pub(super) fn refuse_all(&self, error: VolumeError) -> VolumeError {
        // Only the first failure is kept.
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

/// A batch of requests taken from the queue, within the limits on requests and bytes in flight.
#[derive(Default)]
pub(super) struct RequestBatch {
    pub(super) requests: Vec<Request>,
    /// Bytes that the requests read and write.
    pub(super) bytes: u64,
    /// Whether no request follows, because the disk is closing.
    pub(super) is_last: bool,
}

impl RequestBatch {
    /// Collects `first` and the requests that wait behind it.
    pub(super) fn with(first: Request, queue: &Queue) -> Self {
        let bytes = bytes_carried(&first.op);
        Self { requests: vec![first], bytes, is_last: false }.and_more(queue, 0, 0)
    }

    /// Collects the waiting requests that may be in flight together with `requests` requests, which
    /// carry `bytes` bytes.
    pub(super) fn next_to(requests: usize, bytes: u64, queue: &Queue) -> Self {
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
