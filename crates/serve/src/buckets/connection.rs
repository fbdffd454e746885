//! One connection: what a client says, one message after the other, and what it is answered.
//!
//! Only one message is taken in at a time, and answered before the next is read. What a client sends meanwhile waits in its own
//! system.

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::time::Duration;

use oblivio_wire::link::{Link, LinkReader};
use oblivio_wire::message::{DATA_BYTES, VERSION};
use oblivio_wire::{Answer, Failure, FailureKind, OpenMode, Opened, Request, frame};

use super::admission::Seat;
use super::memory::ClientGrant;
use super::refusal::Refusal;
use super::service::Service;
use super::shelf::Shelf;
use super::spare::Buffer;
use super::volume::{Caller, Role, Volume};

/// A message and what it is taken apart to are in memory at the same time: pieces take twice as much then.
const COPIES_OF_A_MESSAGE: u64 = 3;

/// How long a client that was refused something gets to read why, and to end the connection itself.
const LINGER: Duration = Duration::from_secs(2);

/// Of one client.
pub(super) struct Connection<'s> {
    service: &'s Service,
    shelf: &'s Shelf,
    link: Link,
    seat: Seat<'s>,
    number: Caller,
    open: Option<Open>,
}

/// A volume that the client has open.
struct Open {
    volume: Arc<Volume>,
    role: Role,
}

/// Why a connection ends before its client ends it.
#[derive(Debug)]
pub(super) enum Ended {
    /// The link failed.
    Link(io::Error),
    /// The client was refused something, and told so.
    Refused(FailureKind),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Link(error)
    }
}

impl<'s> Connection<'s> {
    pub(super) fn new(
        service: &'s Service,
        shelf: &'s Shelf,
        link: Link,
        seat: Seat<'s>,
        number: Caller,
    ) -> Self {
        Self { service, shelf, link, seat, number, open: None }
    }

    /// Until the client goes, or the server is to stop.
    pub(super) fn serve(mut self) -> Result<(), Ended> {
        let outcome = self.answer_all();
        self.leave();
        if let Err(Ended::Refused(_)) = outcome {
            self.linger();
        }
        self.seat.pulse.sends(LINGER);
        self.link.writer.close();
        outcome
    }

    fn answer_all(&mut self) -> Result<(), Ended> {
        let service = self.service;
        let mut is_greeted = false;
        loop {
            let mut grant = ClientGrant::new(&self.shelf.memory, &service.memory);
            let message = match self.receive(&mut grant) {
                Ok(Some(message)) => message,
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return self.refuse(0, Refusal::invalid(error.to_string()));
                }
                Err(error) => return Err(error.into()),
            };
            let request = match Request::decode(&message) {
                Ok(request) => request,
                Err(invalid) => return self.refuse(0, Refusal::invalid(invalid.to_string())),
            };
            drop(message);
            let number = request.number();
            if matches!(request, Request::Hello { .. }) == is_greeted {
                let message = "a connection begins with a hello, and has one";
                return self.refuse(number, Refusal::invalid(message));
            }
            is_greeted = true;
            let mut answer = service.spare.take();
            match self.answer(request, &mut grant, &mut answer) {
                Ok(()) => self.send(&answer)?,
                // Nothing was done, and nothing of what follows depends on it.
                Err(refusal) if refusal.kind == FailureKind::Absent => {
                    self.send_failure(number, refusal)?;
                }
                Err(refusal) => return self.refuse(number, refusal),
            }
        }
    }

    /// The next message; none when there is none any more. `grant` is for it.
    fn receive(&mut self, grant: &mut ClientGrant<'_>) -> io::Result<Option<Buffer<'s>>> {
        let limits = &self.service.limits;
        let reader = &mut *self.link.reader;
        // A client may be silent for as long as it likes, but not within a message.
        reader.limit(None)?;
        let mut begun = Begun { reader, within: limits.message_within };
        let Some(bytes) = frame::receive_length(&mut begun, limits.message_bytes_max)? else {
            return Ok(None);
        };
        grant.change(bytes as u64 * COPIES_OF_A_MESSAGE);
        self.link.reader.limit(Some(limits.message_within))?;
        // Not before: nothing is kept for whoever says nothing.
        let mut message = self.service.spare.take();
        frame::receive_body(&mut self.link.reader, bytes, &mut message)?;
        self.seat.pulse.heard();
        self.service.metrics.received_bytes.add((frame::LENGTH_BYTES + bytes) as u64);
        Ok((!self.service.admission.is_stopped()).then_some(message))
    }

    /// Appends the answer to `out`, as it is sent.
    fn answer(
        &mut self,
        request: Request,
        grant: &mut ClientGrant<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let requests = &self.service.metrics.requests;
        let answer = match request {
            Request::Hello { version } => {
                requests.hello.one();
                if version != VERSION {
                    let message = format!("this server speaks version {VERSION}, not {version}");
                    return Err(Refusal::new(FailureKind::UnknownVersion, message));
                }
                Answer::Welcome { version: VERSION }
            }
            Request::Open { name, mode } => {
                requests.open.one();
                let (shelf, who, metrics) = (self.shelf, self.number, &self.service.metrics);
                let role = match mode {
                    OpenMode::Read { .. } => Role::Reader,
                    OpenMode::Look => Role::Looker,
                    OpenMode::Create(_) | OpenMode::Write => Role::Writer,
                };
                self.have_open(&name, role, |volume| match &mode {
                    OpenMode::Create(shapes) => shelf.create(volume, who, shapes),
                    OpenMode::Write => volume.open_to_write(who, metrics),
                    OpenMode::Read { may_be_cut_off } => volume.open_to_read(who, *may_be_cut_off),
                    OpenMode::Look => volume.open_to_look(who),
                })?
            }
            Request::Resume { name, session } => {
                requests.resume.one();
                let (who, metrics) = (self.number, &self.service.metrics);
                self.have_open(&name, Role::Writer, |volume| volume.resume(who, session, metrics))?
            }
            Request::Look { name } => {
                requests.look.one();
                self.check_nothing_open()?;
                Answer::Looked { is_there: self.shelf.has(&name)? }
            }
            Request::Remove { name } => {
                requests.remove.one();
                self.check_nothing_open()?;
                self.shelf.volume(&name).remove()?;
                Answer::Done { number: 0 }
            }
            Request::Read { number, pieces } => {
                requests.read.one();
                let (volume, who) = self.volume()?;
                let bytes_max = self.service.limits.message_bytes_max - DATA_BYTES;
                let parsed = size_of_val(&pieces[..]) as u64;
                let grow = |bytes| grant.change(parsed + bytes);
                return volume.read(who, number, &pieces, bytes_max, grow, out);
            }
            Request::Write { number, pieces, bytes } => {
                requests.write.one();
                let (volume, who) = self.volume()?;
                volume.write(who, &pieces, &bytes)?;
                Answer::Done { number }
            }
            Request::Flush { number } => {
                requests.flush.one();
                let (volume, who) = self.volume()?;
                volume.flush(who, &self.service.metrics)?;
                Answer::Done { number }
            }
        };
        out.extend(answer.encode());
        Ok(())
    }

    fn have_open(
        &mut self,
        name: &str,
        role: Role,
        open: impl FnOnce(&Volume) -> Result<Opened, Refusal>,
    ) -> Result<Answer, Refusal> {
        self.check_nothing_open()?;
        let volume = self.shelf.volume(name);
        let opened = open(&volume)?;
        self.open = Some(Open { volume, role });
        Ok(Answer::Opened(opened))
    }

    fn check_nothing_open(&self) -> Result<(), Refusal> {
        let is_open = self.open.is_some();
        (!is_open).then_some(()).ok_or_else(|| Refusal::invalid("a connection is for one volume"))
    }

    fn volume(&self) -> Result<(&Volume, (Caller, Role)), Refusal> {
        let Some(Open { volume, role }) = &self.open else {
            return Err(Refusal::invalid("no volume was opened before"));
        };
        Ok((volume, (self.number, *role)))
    }

    fn refuse(&mut self, number: u64, refusal: Refusal) -> Result<(), Ended> {
        let kind = refusal.kind;
        if kind == FailureKind::Fenced {
            tracing::info!(connection = self.number, "a connection has lost its volume to another");
        }
        self.send_failure(number, refusal)?;
        Err(Ended::Refused(kind))
    }

    fn send_failure(&mut self, number: u64, refusal: Refusal) -> io::Result<()> {
        self.service.metrics.failures.one();
        let Refusal { kind, message } = refusal;
        self.send(&Answer::Failed(Failure { number, kind, message }).encode())
    }

    fn send(&mut self, answer: &[u8]) -> io::Result<()> {
        self.seat.pulse.sends(self.service.limits.message_within);
        frame::send(&mut self.link.writer, answer)?;
        self.link.writer.flush()?;
        self.seat.pulse.has_sent();
        self.service.metrics.sent_bytes.add((frame::LENGTH_BYTES + answer.len()) as u64);
        Ok(())
    }

    /// Others may have the volume.
    fn leave(&mut self) {
        if let Some(Open { volume, .. }) = self.open.take() {
            volume.leave(self.number);
            drop(volume);
            self.shelf.close_idle();
        }
    }

    /// Waits for the client to end the connection. If the server did while something comes, the system of the client would throw
    /// away the answer that says why.
    fn linger(&mut self) {
        let mut unread = [0; 4096];
        if self.link.reader.limit(Some(LINGER)).is_ok() {
            while self.link.reader.read(&mut unread).is_ok_and(|bytes| bytes > 0) {}
        }
    }
}

/// Also when something panicked.
impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The rest of a message has to come in time, once its first byte is there.
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
