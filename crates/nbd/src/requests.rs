//! Reads a client's requests and submits them to the disk, within the client's budgets.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oblivio_volume::device::{Request, WipedBytes};
use tokio::io::AsyncRead;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::export::RequestAction;
use super::portions::{PORTION_BYTES_MAX, PendingRequest, portions};
use super::replies::{Answer, Reply};
use super::service::{Disconnect, Service};
use super::wiped_reader::WipedReader;
use super::wire::{REQUEST_HEAD_BYTES, RequestHead, command};

/// Size of the read buffer in bytes, which holds many small requests.
const BUFFER_BYTES: usize = 128 << 10;

/// Reads requests until the client disconnects. Answers to the requests go to `replies`.
///
/// A busy disk slows clients down: this task waits until the disk accepts another portion. It never
/// blocks its thread.
pub(super) async fn read_requests<R: AsyncRead + Unpin>(
    service: &Service,
    structured: bool,
    reader: R,
    replies: UnboundedSender<Reply>,
) -> Result<(), Disconnect> {
    let mut reader = WipedReader::new(BUFFER_BYTES, reader);
    let in_flight = InFlight::new(service);
    while !reader.is_at_its_end().await? {
        let mut head = [0; REQUEST_HEAD_BYTES];
        reader.read_exact(&mut head).await?;
        let head = RequestHead::parse(head)?;
        service.requests.fetch_add(1, Ordering::Relaxed);
        let place = in_flight.place().await?;
        let action = match service.export.classify(&head, structured) {
            Ok(RequestAction::Disconnect) => break,
            Ok(action) => action,
            Err(errno) => {
                if head.command == command::WRITE {
                    reader.skip(head.bytes.into()).await?;
                }
                let (pending, permit) =
                    (PendingRequest::new(head, 1, place), in_flight.bytes(0).await?);
                let answer = Answer::refused(errno);
                drop(replies.send(Reply { pending, offset: head.offset, answer, permit }));
                continue;
            }
        };
        let portions = portions(head, structured, service.bounds);
        let pending = PendingRequest::new(head, portions.clone().count(), place);
        for portion in portions {
            let permit = in_flight.bytes(action.bytes_carried(&portion)).await?;
            let mut data = WipedBytes::default();
            if let RequestAction::Write { .. } = action {
                data = WipedBytes::zeros(portion.bytes as usize);
                reader.read_exact(&mut data).await?;
            }
            let (pending, offset) = (pending.clone(), portion.offset);
            let reply = move |answer| Reply { pending, offset, answer, permit };
            let Some(op) = action.op(&portion, data) else {
                drop(replies.send(reply(Answer::Done)));
                continue;
            };
            let (place, replies) = (in_flight.place_on_disk().await?, replies.clone());
            // Sending the reply fails if the client has disconnected.
            let done = Box::new(move |answer| {
                drop(place);
                drop(replies.send(reply(Answer::new(&portion, answer))));
            });
            service.device.submit(Request { op, done });
        }
    }
    Ok(())
}

/// The budgets of one connection.
struct InFlight {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// The budget of bytes that all connections share. The following fields are shared, too.
    shared_bytes: Arc<Semaphore>,
    shared_bytes_max: u32,
    portion_bytes: u32,
    long_reply_bytes: Arc<Semaphore>,
    /// Permits for requests that the disk has not answered.
    places_on_disk: Arc<Semaphore>,
}

/// A permit of a semaphore, returned when dropped.
pub(super) type Permit = OwnedSemaphorePermit;

impl InFlight {
    fn new(service: &Service) -> Self {
        let limits = &service.limits;
        // A portion that is longer than usual, because a block or range is, must fit the budget.
        let portion_bytes = service.bounds.portion_bytes;
        let long_block_bytes = if portion_bytes > PORTION_BYTES_MAX { portion_bytes } else { 0 };
        let semaphore = |permits| Arc::new(Semaphore::new(permits as usize));
        Self {
            requests: semaphore(limits.in_flight_requests_max),
            bytes: semaphore(limits.in_flight_bytes_max.max(long_block_bytes)),
            shared_bytes: service.shared_bytes_left.clone(),
            shared_bytes_max: limits.shared_bytes_max,
            portion_bytes,
            long_reply_bytes: service.long_reply_bytes_left.clone(),
            places_on_disk: service.places_left.clone(),
        }
    }

    /// Takes a permit for a request. It must be held until the reply is written.
    async fn place(&self) -> Result<Permit, Disconnect> {
        take(&self.requests, 1).await
    }

    /// Takes a permit for the bytes of a portion from the connection's own budget or from the
    /// shared one. The permit must be held until the portion's reply is written. A long reply that
    /// must be sent in one piece has a separate budget, so that clients that do not read portioned
    /// replies cannot delay it.
    async fn bytes(&self, bytes: u32) -> Result<Permit, Disconnect> {
        if bytes > self.portion_bytes {
            return take(&self.long_reply_bytes, bytes).await;
        }
        tokio::select! {
            biased;
            own = take(&self.bytes, bytes) => own,
            shared = take(&self.shared_bytes, bytes.min(self.shared_bytes_max)) => shared,
        }
    }

    /// Takes a permit for the disk. It is returned once the disk has answered, even if the client
    /// does not read the reply.
    async fn place_on_disk(&self) -> Result<Permit, Disconnect> {
        take(&self.places_on_disk, 1).await
    }
}

async fn take(semaphore: &Arc<Semaphore>, permits: u32) -> Result<Permit, Disconnect> {
    let permit = semaphore.clone().acquire_many_owned(permits).await;
    permit.map_err(|_| Disconnect::Vanished)
}
