//! Requests, from the client to the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oblivio_volume::device::{Request, WipedBytes};
use tokio::io::AsyncRead;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::export::Plan;
use super::portions::{Asked, PORTION_BYTES_MAX, portions};
use super::replies::{Answer, Reply};
use super::service::{Disconnect, Service};
use super::wiped_reader::WipedReader;
use super::wire::{REQUEST_HEAD_BYTES, RequestHead, command};

/// Takes in many small requests at once.
const BUFFER_BYTES: usize = 128 << 10;

/// Reads requests until the client leaves; their answers go to `replies`.
///
/// A disk that has too much to do slows clients down: a portion of a request waits here until the disk has a place for it. The
/// thread of this task never waits.
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
        let plan = match service.export.plan(&head, structured) {
            Ok(Plan::Leave) => break,
            Ok(plan) => plan,
            Err(errno) => {
                if head.command == command::WRITE {
                    reader.skip(head.bytes.into()).await?;
                }
                let (asked, held) = (Asked::new(head, 1, place), in_flight.bytes(0).await?);
                let answer = Answer::refused(errno);
                drop(replies.send(Reply { asked, offset: head.offset, answer, held }));
                continue;
            }
        };
        let portions = portions(head, structured, service.borders);
        let asked = Asked::new(head, portions.clone().count(), place);
        for portion in portions {
            let held = in_flight.bytes(plan.bytes_carried(&portion)).await?;
            let mut data = WipedBytes::default();
            if let Plan::Write { .. } = plan {
                data = WipedBytes::zeros(portion.bytes as usize);
                reader.read_exact(&mut data).await?;
            }
            let (asked, offset) = (asked.clone(), portion.offset);
            let reply = move |answer| Reply { asked, offset, answer, held };
            let Some(op) = plan.op(&portion, data) else {
                drop(replies.send(reply(Answer::Done)));
                continue;
            };
            let (place, replies) = (in_flight.place_on_disk().await?, replies.clone());
            // Nobody waits for the reply when the client is gone.
            let done = Box::new(move |answer| {
                drop(place);
                drop(replies.send(reply(Answer::new(&portion, answer))));
            });
            service.device.submit(Request { op, done });
        }
    }
    Ok(())
}

/// What one connection may still ask for.
struct InFlight {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// Shared with all other connections, as all that follows.
    shared_bytes: Arc<Semaphore>,
    shared_bytes_max: u32,
    portion_bytes: u32,
    long_reply_bytes: Arc<Semaphore>,
    /// Of requests that the disk has not answered.
    places_on_disk: Arc<Semaphore>,
}

/// A share of it, until it is dropped.
pub(super) type Held = OwnedSemaphorePermit;

impl InFlight {
    fn new(service: &Service) -> Self {
        let limits = &service.limits;
        // Portions are no shorter than blocks.
        let portion_bytes = service.borders.portion_bytes;
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

    /// For a request, until its reply is written.
    async fn place(&self) -> Result<Held, Disconnect> {
        take(&self.requests, 1).await
    }

    /// Bytes for a portion, until it is answered: its own, or of those that are shared. A longer reply in one piece has bytes
    /// that only its like share: clients who read no replies in portions do not keep it waiting.
    async fn bytes(&self, bytes: u32) -> Result<Held, Disconnect> {
        if bytes > self.portion_bytes {
            return take(&self.long_reply_bytes, bytes).await;
        }
        tokio::select! {
            biased;
            own = take(&self.bytes, bytes) => own,
            shared = take(&self.shared_bytes, bytes.min(self.shared_bytes_max)) => shared,
        }
    }

    /// To be given back when the disk has answered, whether the client reads the answer or not.
    async fn place_on_disk(&self) -> Result<Held, Disconnect> {
        take(&self.places_on_disk, 1).await
    }
}

async fn take(semaphore: &Arc<Semaphore>, permits: u32) -> Result<Held, Disconnect> {
    let permit = semaphore.clone().acquire_many_owned(permits).await;
    permit.map_err(|_| Disconnect::Vanished)
}
