//! The code that connections from clients and from other servers share: message timeouts, memory
//! for received messages, and refusals, which the peer gets time to read before the link is closed.

use std::io::{self, ErrorKind, Read};
use std::time::Duration;

use bytes::Bytes;
use oblivio_wire::link::{Link, LinkReader, MonotonicTime};
use oblivio_wire::message::VERSION;
use oblivio_wire::{Answer, Failure, FailureKind, Request, frame};

use super::admission::ConnectionPermit;
use super::memory::Grant;
use super::refusal::Refusal;
use super::service::Service;

/// The number of copies of a message in memory: the message, and its parsed form, whose pieces take
/// twice the space.
const COPIES_OF_A_MESSAGE: u64 = 3;

/// Time for a refused peer to read the refusal and end the connection.
const LINGER: Duration = Duration::from_secs(2);

/// An authenticated connection.
pub(super) struct ServerConnection<'s> {
    service: &'s Service,
    link: Link,
    seat: ConnectionPermit<'s>,
    /// The maximum length of a received message in bytes.
    message_bytes_max: usize,
    is_greeted: bool,
}

/// The reason why a connection ends before the peer ends it.
#[derive(Debug)]
pub(super) enum Ended {
    /// The link failed.
    Link(io::Error),
    /// A request was refused, and the refusal was sent.
    Refused(FailureKind),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Link(error)
    }
}

impl<'s> ServerConnection<'s> {
    pub(super) fn new(
        service: &'s Service,
        link: Link,
        seat: ConnectionPermit<'s>,
        message_bytes_max: usize,
    ) -> Self {
        let message_bytes_max = message_bytes_max.min(service.limits.message_bytes_max);
        Self { service, link, seat, message_bytes_max, is_greeted: false }
    }

    /// Receives the next request. `None` if the peer has ended the connection, or the server must
    /// stop. `grant` grows as the bytes of the request arrive.
    pub(super) fn receive_request(
        &mut self,
        grant: &mut Grant<'_>,
    ) -> Result<Option<Request>, Ended> {
        let message = match self.receive(grant) {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(None),
            // The server is to stop, so no more requests are read.
            Err(_) if self.service.admission.is_stopped() => return Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(self.refuse(0, Refusal::invalid(error.to_string())));
            }
            Err(error) => return Err(error.into()),
        };
        let request = match Request::decode(&message) {
            Ok(request) => request,
            Err(invalid) => return Err(self.refuse(0, Refusal::invalid(invalid.to_string()))),
        };
        if matches!(request, Request::Hello { .. }) == self.is_greeted {
            let message = "a connection must begin with exactly one hello";
            return Err(self.refuse(request.number(), Refusal::invalid(message)));
        }
        self.is_greeted = true;
        Ok(Some(request))
    }

    fn receive(&mut self, grant: &mut Grant<'_>) -> io::Result<Option<Bytes>> {
        let limits = &self.service.limits;
        let reader = &mut *self.link.reader;
        // The peer may be silent between messages, but not within one.
        reader.limit(None)?;
        let mut begun = Begun { reader, within: limits.message_within };
        let Some(bytes) = frame::receive_length(&mut begun, self.message_bytes_max)? else {
            return Ok(None);
        };
        let memory = |bytes: usize| bytes as u64 * COPIES_OF_A_MESSAGE;
        let until = MonotonicTime::now().after(limits.message_within);
        grant.announce(memory(bytes));
        self.link.reader.limit(Some(limits.message_within))?;
        // Memory is taken only as bytes arrive, so that a silent client takes none.
        let grow = &mut |bytes| grant.grow(memory(bytes), until);
        let message = self.service.buffers.receive(&mut self.link.reader, bytes, grow)?;
        self.seat.pulse.heard();
        self.service.metrics.received_bytes.add((frame::LENGTH_BYTES + bytes) as u64);
        Ok((!self.service.admission.is_stopped()).then_some(message))
    }

    /// Returns the answer to a hello of `version`.
    pub(super) fn welcome(version: u32) -> Result<Answer, Refusal> {
        if version != VERSION {
            let message = format!("this server speaks version {VERSION}, not {version}");
            return Err(Refusal::new(FailureKind::UnknownVersion, message));
        }
        Ok(Answer::Welcome { version: VERSION })
    }

    /// Sends a refusal. The caller must then end the connection.
    pub(super) fn refuse(&mut self, number: u64, refusal: Refusal) -> Ended {
        let kind = refusal.kind;
        match self.send_failure(number, refusal) {
            Ok(()) => Ended::Refused(kind),
            Err(error) => Ended::Link(error),
        }
    }

    pub(super) fn send_failure(&mut self, number: u64, refusal: Refusal) -> io::Result<()> {
        self.service.metrics.failures.increment();
        let Refusal { kind, message } = refusal;
        self.send(&Answer::Failed(Failure { number, kind, message }).encode())
    }

    pub(super) fn send(&mut self, answer: &[u8]) -> io::Result<()> {
        self.seat.pulse.sends(self.service.limits.message_within);
        frame::send(&mut self.link.writer, answer)?;
        self.link.writer.flush()?;
        self.seat.pulse.has_sent();
        self.service.metrics.sent_bytes.add((frame::LENGTH_BYTES + answer.len()) as u64);
        Ok(())
    }

    /// Ends the link. After a refusal, the peer first gets time to read it.
    pub(super) fn end(&mut self, outcome: &Result<(), Ended>) {
        if let Err(Ended::Refused(_)) = outcome {
            linger(&mut *self.link.reader, LINGER);
        }
        self.seat.pulse.sends(LINGER);
        self.link.writer.close();
    }

    /// Notes that the other server has joined a volume.
    pub(super) fn joins(&self) {
        self.seat.pulse.joins();
    }
}

/// Waits until the peer ends the connection, for at most `within`. Closing a socket with unread
/// bytes would reset it, and the peer's system would discard the refusal.
pub(super) fn linger(reader: &mut dyn LinkReader, within: Duration) {
    let mut unread = [0; 4096];
    if reader.limit(Some(within)).is_ok() {
        while reader.read(&mut unread).is_ok_and(|bytes| bytes > 0) {}
    }
}

/// A reader that starts the timeout of a message with its first byte.
struct Begun<'r> {
    reader: &'r mut dyn LinkReader,
    within: Duration,
}

impl Read for Begun<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.reader.read(buffer)?;
        if bytes < buffer.len() {
            self.reader.limit(Some(self.within))?;
        }
        Ok(bytes)
    }
}
