//! Makes frames from events, and sends the frames to readers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::channel::{Channel, Sender};
use hyper::body::Bytes;
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{MissedTickBehavior, interval};

use super::frame::{Frame, Hello};
use super::{Shown, WatchLimits};

/// Makes a frame periodically and sends it to all readers. The hub never waits for a reader.
pub(super) struct Hub {
    hello: Bytes,
    /// The channel to the readers. `None` once the hub has ended.
    frames: Mutex<Option<broadcast::Sender<Bytes>>>,
    seats: Arc<Semaphore>,
}

impl Hub {
    pub(super) fn new(shown: &Shown, limits: &WatchLimits) -> Self {
        Self {
            hello: event("hello", &Hello::of(shown, limits.frame_millis)),
            frames: Mutex::new(Some(broadcast::Sender::new(limits.frames_waiting_max))),
            seats: Arc::new(Semaphore::new(limits.readers_max)),
        }
    }

    /// Admits a reader. `None` if the limit is reached or the hub has ended.
    pub(super) fn register_reader(&self) -> Option<Reader> {
        let seat = self.seats.clone().try_acquire_owned().ok()?;
        let frames = self.frames().as_ref()?.subscribe();
        Some(Reader { hello: self.hello.clone(), frames, _seat: seat })
    }

    /// Ends the event streams of all readers.
    pub(super) fn end(&self) {
        *self.frames() = None;
    }

    fn frames(&self) -> MutexGuard<'_, Option<broadcast::Sender<Bytes>>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes frames until the future is dropped.
    pub(super) async fn run(&self, shown: &Shown, period: Duration) -> Infallible {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let start = ticks.tick().await;
        loop {
            let now = ticks.tick().await;
            let millis = now.duration_since(start).as_millis() as u64;
            // Frames are taken even without readers: a later reader sees only visits from then on.
            let owner = shown.owner.as_ref().map(|side| side.take_frame());
            let frame = Frame { millis, storage: shown.storage.take_frame(), owner };
            if let Some(frames) = self.frames().as_ref().filter(|it| it.receiver_count() > 0) {
                // Fails if the last reader has just left.
                let _ = frames.send(event("frame", &frame));
            }
        }
    }
}

/// A connected page.
pub(super) struct Reader {
    hello: Bytes,
    frames: Receiver<Bytes>,
    _seat: OwnedSemaphorePermit,
}

/// The body of an event stream.
pub(super) type Events = Channel<Bytes, Infallible>;

impl Reader {
    /// Starts sending frames in a separate task, which ends with the reader or the hub.
    pub(super) fn start(self) -> Events {
        let (sender, events) = Channel::new(1);
        tokio::spawn(self.send_all(sender));
        events
    }

    async fn send_all(mut self, mut to: Sender<Bytes>) {
        let mut next = self.hello.clone();
        let mut missed = 0;
        // Fails once the connection is closed.
        while to.send_data(next).await.is_ok() {
            next = match self.frames.recv().await {
                Ok(frame) => frame,
                Err(RecvError::Lagged(frames)) => {
                    missed += frames;
                    event("missed", &missed)
                }
                Err(RecvError::Closed) => {
                    let _ = to.send_data(event("end", &())).await;
                    return;
                }
            };
        }
    }
}

/// Encodes a server-sent event. The JSON contains no line breaks.
fn event(name: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}
