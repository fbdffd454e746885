//! Requests, from the client to the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oblivio_volume::device::{Request, WipedBytes};
use tokio::io::AsyncRead;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::export::Plan;
use super::replies::{Answer, Reply};
use super::service::{Disconnect, Service};
use super::wiped_reader::WipedReader;
use super::wire::{REQUEST_HEAD_BYTES, RequestHead, command};

/// Takes in many small requests at once.
const BUFFER_BYTES: usize = 128 << 10;

/// Reads requests until the client leaves; their answers go to `replies`.
///
/// A disk that has too much to do slows clients down: a request waits here until the disk has a place for it. The
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
        let plan = service.export.plan(&head, structured);
        let carried = match plan {
            Ok(Plan::Read | Plan::Write { .. }) => head.bytes,
            _ => 0,
        };
        let held = in_flight.hold(carried).await?;
        let mut data = WipedBytes::default();
        if head.command == command::WRITE {
            if plan.is_ok() {
                data = WipedBytes::zeros(carried as usize);
                reader.read_exact(&mut data).await?;
            } else {
                reader.skip(head.bytes.into()).await?;
            }
        }
        let reply = move |answer| Reply { answer, head, held };
        match plan {
            Ok(Plan::Leave) => break,
            Ok(plan) => match plan.op(&head, data) {
                Some(op) => {
                    let place = in_flight.place_on_disk().await?;
                    let replies = replies.clone();
                    // Nobody waits for the reply when the client is gone.
                    let done = Box::new(move |answer| {
                        drop(place);
                        drop(replies.send(reply(Answer::new(&head, answer))))
                    });
                    service.device.submit(Request { op, done });
                }
                None => drop(replies.send(reply(Answer::Done))),
            },
            Err(error) => drop(replies.send(reply(Answer::refused(error)))),
        }
    }
    Ok(())
}

/// What one connection may still ask for.
struct InFlight {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// Shared with all other connections.
    bytes_of_all: Arc<Semaphore>,
    /// The same, of requests that the disk has not answered.
    places_of_all: Arc<Semaphore>,
}

/// A share of it, for one request, until its reply is written.
pub(super) struct Held(#[expect(dead_code, reason = "held")] [OwnedSemaphorePermit; 3]);

impl InFlight {
    fn new(service: &Service) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits as usize));
        Self {
            requests: semaphore(service.limits.in_flight_requests_max),
            bytes: semaphore(service.limits.in_flight_bytes_max),
            bytes_of_all: service.bytes_left.clone(),
            places_of_all: service.places_left.clone(),
        }
    }

    async fn hold(&self, bytes: u32) -> Result<Held, Disconnect> {
        // Of what is shared at last: whoever waits for a share of their own keeps nobody else waiting.
        Ok(Held([
            take(&self.requests, 1).await?,
            take(&self.bytes, bytes).await?,
            take(&self.bytes_of_all, bytes).await?,
        ]))
    }

    /// To be given back when the disk has answered, whether the client reads the answer or not.
    async fn place_on_disk(&self) -> Result<OwnedSemaphorePermit, Disconnect> {
        take(&self.places_of_all, 1).await
    }
}

async fn take(
    semaphore: &Arc<Semaphore>,
    permits: u32,
) -> Result<OwnedSemaphorePermit, Disconnect> {
    let permit = semaphore.clone().acquire_many_owned(permits).await;
    permit.map_err(|_| Disconnect::Vanished)
}
