//! The connection of a client: requests and answers, one after the other.
//!
//! A request is answered before the next one is read. Further requests wait in the socket.

use std::io;
use std::sync::Arc;

use oblivio_wire::link::Link;
use oblivio_wire::link::MonotonicTime;
use oblivio_wire::message::{DATA_BYTES, MESSAGE_BYTES_MAX, put_data_head};
use oblivio_wire::{Answer, FailureKind, OpenMode, Opened, Request};

use super::admission::ConnectionPermit;
use super::client_volumes::ClientVolumes;
use super::memory::Grant;
use super::refusal::Refusal;
use super::server_connection::{Ended, ServerConnection};
use super::service::Service;
use super::share_host::ComputeRequest;
use super::volume::{ConnectionId, Role, Volume};
use super::working::Working;

/// The connection of a client.
pub(super) struct Connection<'s> {
    service: &'s Service,
    volumes: &'s ClientVolumes,
    connection: ServerConnection<'s>,
    number: ConnectionId,
    open: Option<Open>,
}

/// A volume that the client has open.
struct Open {
    volume: Arc<Volume>,
    name: String,
    role: Role,
}

/// The reason why a request cannot be answered with its result.
#[derive(Debug)]
pub(super) enum Unanswered {
    Refused(Refusal),
    /// The memory for the answer was not free in time.
    NoMemory(io::Error),
}

impl From<Refusal> for Unanswered {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Self {
        Self::NoMemory(error)
    }
}

impl<'s> Connection<'s> {
    pub(super) fn new(
        service: &'s Service,
        volumes: &'s ClientVolumes,
        link: Link,
        seat: ConnectionPermit<'s>,
        number: ConnectionId,
    ) -> Self {
        Self {
            service,
            volumes,
            connection: ServerConnection::new(service, link, seat, MESSAGE_BYTES_MAX),
            number,
            open: None,
        }
    }

    /// Serves requests until the client disconnects, a request is refused, the link fails, or the
    /// server must stop. Then releases the volume, and ends the link.
    pub(super) fn serve(mut self) -> Result<(), Ended> {
        let outcome = self.answer_all();
        self.leave();
        self.connection.end(&outcome);
        outcome
    }

    fn answer_all(&mut self) -> Result<(), Ended> {
        let service = self.service;
        loop {
            let mut grant = service.memory.grant(self.volumes.owner);
            let received = self.connection.receive_request(&mut grant)?;
            let Some(request) = received else { return Ok(()) };
            let number = request.number();
            let mut answer = service.buffers.take();
            match self.answer(request, &mut grant, &mut answer) {
                Ok(()) => self.connection.send(&answer)?,
                // Nothing was done, and later requests do not depend on it.
                Err(Unanswered::Refused(refusal)) if refusal.kind == FailureKind::Absent => {
                    self.connection.send_failure(number, refusal)?;
                }
                Err(Unanswered::Refused(refusal)) => return Err(self.refuse(number, refusal)),
                // The client asks again over another link.
                Err(Unanswered::NoMemory(error)) => return Err(Ended::Link(error)),
            }
        }
    }

    /// Handles a request, and appends the encoded answer to `out`.
    fn answer(
        &mut self,
        request: Request,
        grant: &mut Grant<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unanswered> {
        let until = MonotonicTime::now().after(self.service.limits.message_within);
        let requests = &self.service.metrics.requests;
        let answer = match request {
            Request::Hello { version } => {
                requests.hello.increment();
                ServerConnection::welcome(version)?
            }
            Request::Open { name, mode } => {
                requests.open.increment();
                let (volumes, who, metrics) = (self.volumes, self.number, &self.service.metrics);
                let role = match mode {
                    OpenMode::Read { .. } => Role::Reader,
                    OpenMode::Look => Role::Viewer,
                    OpenMode::Create(_) | OpenMode::Write => Role::Writer,
                };
                self.have_open(&name, role, |volume| match &mode {
                    OpenMode::Create(shapes) => volumes.create(volume, who, shapes),
                    OpenMode::Write => volume.open_to_write(who, metrics),
                    OpenMode::Read { allow_incomplete } => {
                        volume.open_to_read(who, *allow_incomplete)
                    }
                    OpenMode::Look => volume.open_to_look(who),
                })?
            }
            Request::Resume { name, session } => {
                requests.resume.increment();
                let (who, metrics) = (self.number, &self.service.metrics);
                self.have_open(&name, Role::Writer, |volume| volume.resume(who, session, metrics))?
            }
            Request::Look { name } => {
                requests.look.increment();
                self.check_nothing_open()?;
                Answer::Looked { is_there: self.volumes.has(&name)? }
            }
            Request::Remove { name } => {
                requests.remove.increment();
                self.check_nothing_open()?;
                self.volumes.volume(&name).remove()?;
                Answer::Done { number: 0 }
            }
            Request::Read { number, pieces } => {
                requests.read.increment();
                let (volume, who) = self.volume()?;
                let bytes_max = self.service.limits.message_bytes_max - DATA_BYTES;
                let parsed = size_of_val(&pieces[..]) as u64;
                let grow = |bytes| grant.change(parsed + bytes, until);
                return volume.read(who, number, &pieces, bytes_max, grow, out);
            }
            Request::Write { number, pieces, bytes } => {
                requests.write.increment();
                let (volume, who) = self.volume()?;
                volume.write(who, &pieces, &bytes)?;
                Answer::Done { number }
            }
            Request::Flush { number } => {
                requests.flush.increment();
                let (volume, who) = self.volume()?;
                volume.flush(who, &self.service.metrics)?;
                Answer::Done { number }
            }
            Request::Compute { number, message } => {
                requests.compute.increment();
                let computed = self.compute(&message)?;
                drop(message);
                // For the result and its encoded copy.
                grant.change(2 * computed.len() as u64, until)?;
                put_data_head(out, number, computed.len());
                out.extend(computed);
                return Ok(());
            }
            Request::Peer { .. } => {
                requests.peer.increment();
                self.service.computing()?;
                let message = "this is the key of a client; only another server can join a volume";
                return Err(Refusal::new(FailureKind::Refused, message).into());
            }
            Request::Deal { .. } => {
                return Err(Refusal::invalid("a client cannot deal").into());
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
        let volume = self.volumes.volume(name);
        let opened = open(&volume)?;
        self.open = Some(Open { volume, name: name.to_owned(), role });
        Ok(Answer::Opened(opened))
    }

    fn check_nothing_open(&self) -> Result<(), Refusal> {
        let is_open = self.open.is_some();
        (!is_open)
            .then_some(())
            .ok_or_else(|| Refusal::invalid("a connection is for a single volume"))
    }

    fn volume(&self) -> Result<(&Volume, (ConnectionId, Role)), Refusal> {
        let Open { volume, role, .. } = self.opened()?;
        Ok((volume, (self.number, *role)))
    }

    fn opened(&self) -> Result<&Open, Refusal> {
        self.open.as_ref().ok_or_else(nothing_open)
    }

    fn compute(&mut self, message: &[u8]) -> Result<Vec<u8>, Refusal> {
        let Self { service, volumes, open, number, connection } = self;
        let Open { volume, name, role } = open.as_ref().ok_or_else(nothing_open)?;
        let working = Working::new(connection, service.limits.works_every);
        let request =
            ComputeRequest { service, report_progress: &|| working.report_progress(), message };
        let computed = volumes.compute(volume, name, (*number, *role), request)?;
        let bytes_max = service.limits.message_bytes_max - DATA_BYTES;
        if computed.len() > bytes_max {
            let message =
                format!("the result is longer than the limit of an answer, {bytes_max} bytes");
            return Err(Refusal::new(FailureKind::Failed, message));
        }
        Ok(computed)
    }

    fn refuse(&mut self, number: u64, refusal: Refusal) -> Ended {
        if refusal.kind == FailureKind::Fenced {
            tracing::info!(connection = self.number, "a connection was fenced");
        }
        self.connection.refuse(number, refusal)
    }

    /// Releases the volume for other connections.
    fn leave(&mut self) {
        if let Some(Open { volume, .. }) = self.open.take() {
            volume.leave(self.number);
            drop(volume);
            self.volumes.close_idle();
        }
    }
}

fn nothing_open() -> Refusal {
    Refusal::invalid("no volume is open on this connection")
}

/// Releases the volume even after a panic.
impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
