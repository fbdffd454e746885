//! The connection of another share server: the volume that it joins, and the messages that it
//! deals.

use std::sync::Arc;

use oblivio_wire::keys::PublicKey;
use oblivio_wire::link::Link;
use oblivio_wire::{Answer, FailureKind, Request};

use super::admission::{ClosableStream, ConnectionPermit};
use super::client_volumes::ClientVolumes;
use super::refusal::Refusal;
use super::server_connection::{Ended, ServerConnection};
use super::service::Service;
use super::volume::{ConnectionId, Volume};

/// The maximum length of a message of another server in bytes. The longest is a portion of an
/// eviction: see [`part_bytes`](oblivio_shares::host::part_bytes).
const PEER_MESSAGE_BYTES_MAX: usize = 4 << 20;

/// The connection of one other server.
pub(super) struct PeerConnection<'s> {
    service: &'s Service,
    directory: &'s dyn ClientDirectory,
    peer: PublicKey,
    connection: ServerConnection<'s>,
    /// A handle that closes the link. Moves to the volume when the server joins one.
    link: Option<Box<dyn ClosableStream>>,
    number: ConnectionId,
    joined: Option<Joined>,
}

/// The volumes of all clients.
pub(super) trait ClientDirectory {
    /// The volumes of the client with this key.
    fn volumes_of(&self, client: &PublicKey) -> Option<&ClientVolumes>;
}

/// A volume that the other server has joined.
struct Joined {
    volume: Arc<Volume>,
    /// The number of the other server in this volume.
    server: u8,
}

impl<'s> PeerConnection<'s> {
    pub(super) fn new(
        service: &'s Service,
        directory: &'s dyn ClientDirectory,
        peer: PublicKey,
        (link, ends): (Link, Box<dyn ClosableStream>),
        seat: ConnectionPermit<'s>,
        number: ConnectionId,
    ) -> Self {
        let connection = ServerConnection::new(service, link, seat, PEER_MESSAGE_BYTES_MAX);
        Self { service, directory, peer, connection, link: Some(ends), number, joined: None }
    }

    /// Serves messages until the other server disconnects, a message is refused, the link fails, or
    /// this server must stop. Then leaves the volume, and ends the link.
    pub(super) fn serve(mut self) -> Result<(), Ended> {
        let outcome = match self.take_all() {
            // This server ended the link itself.
            Err(Ended::Link(_)) if !self.part() => Ok(()),
            outcome => outcome,
        };
        self.connection.end(&outcome);
        outcome
    }

    fn take_all(&mut self) -> Result<(), Ended> {
        let computing = match self.service.computing() {
            Ok(computing) => computing,
            Err(refusal) => return Err(self.connection.refuse(0, refusal)),
        };
        // The connection was authenticated by the key of another server.
        let Some(other) = computing.other(self.peer.bytes()).cloned() else { return Ok(()) };
        loop {
            let mut grant = other.memory.grant(None);
            let received = self.connection.receive_request(&mut grant)?;
            let Some(request) = received else { return Ok(()) };
            let number = request.number();
            match self.take(request) {
                Ok(Some(answer)) => self.connection.send(&answer.encode())?,
                Ok(None) => (),
                Err(refusal) => return Err(self.connection.refuse(number, refusal)),
            }
        }
    }

    fn take(&mut self, request: Request) -> Result<Option<Answer>, Refusal> {
        let metrics = &self.service.metrics;
        match (request, &self.joined) {
            (Request::Hello { version }, _) => {
                metrics.requests.hello.increment();
                ServerConnection::welcome(version).map(Some)
            }
            (Request::Peer { client, name }, None) => {
                metrics.requests.peer.increment();
                self.join(&client, &name)?;
                Ok(Some(Answer::Done { number: 0 }))
            }
            (Request::Deal { message }, Some(Joined { volume, server })) => {
                metrics.dealt_in.record(message.len());
                volume.take_dealt(*server, self.number, &message)?;
                Ok(None)
            }
            _ => {
                let message = "a server must join a volume, and then may only deal";
                Err(Refusal::new(FailureKind::Refused, message))
            }
        }
    }

    fn join(&mut self, client: &PublicKey, name: &str) -> Result<(), Refusal> {
        // The same answer in all cases, so that another server does not learn which volumes exist.
        let refused = |refusal: Refusal| {
            tracing::warn!(peer = %self.peer, ?refusal, "refusing a server that joins a volume");
            let message = "this server shares no volume of this name with the connecting one";
            Refusal::new(FailureKind::NoVolume, message)
        };
        let volumes = self.directory.volumes_of(client);
        let volumes = volumes.ok_or_else(|| refused(Refusal::no_volume()))?;
        if !volumes.has(name).map_err(refused)? {
            return Err(refused(Refusal::no_volume()));
        }
        let link = self
            .link
            .take()
            .ok_or_else(|| Refusal::invalid("a connection is for a single volume"))?;
        let volume = volumes.volume(name);
        let server = volume.join(self.peer, self.number, link).map_err(refused)?;
        self.connection.joins();
        self.joined = Some(Joined { volume, server });
        Ok(())
    }

    /// Leaves the volume, if the other server has joined one. Returns false if this server had
    /// already ended the connection.
    fn part(&mut self) -> bool {
        let left = self.joined.take();
        left.is_none_or(|Joined { volume, server }| volume.part(server, self.number))
    }
}

/// Leaves the volume even after a panic.
impl Drop for PeerConnection<'_> {
    fn drop(&mut self) {
        self.part();
    }
}
