//! Accepts connections: TLS handshake and access control.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use oblivio_wire::keys::PublicKey;
use oblivio_wire::link::Link;
use oblivio_wire::message::check_name;
use oblivio_wire::tls::ServerTls;
use oblivio_wire::{Answer, Failure, FailureKind, frame};
use rustix::net::sockopt;

use super::admission::{ClosableStream, ConnectionPermit, Kind, NoSeat, Thread};
use super::client_volumes::ClientVolumes;
use super::clock;
use super::computing::Computing;
use super::connection::Connection;
use super::metrics::Gauges;
use super::peer::{ClientDirectory, PeerConnection};
use super::server_connection::{self, Ended};
use super::service::Service;
use super::volume_storage::ClientFolder;
use super::{BucketLimits, BucketServerError, BucketServerOptions};

/// Maximum interval of checks for slow connections and idle stores.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Acceptor {
    pub(super) service: Service,
    tls: ServerTls,
    clients: HashMap<PublicKey, Client>,
    /// The names of the other servers, by key. Seats of a server are counted by its name.
    peers: HashMap<PublicKey, Arc<str>>,
    /// The folder of the volumes. Locked, because two servers over one folder would not know each
    /// other's sessions.
    folder: File,
}

struct Client {
    name: Arc<str>,
    volumes: ClientVolumes,
}

/// An authenticated peer.
#[derive(Clone, Copy)]
enum Identity<'d> {
    Client(&'d Client),
    Peer(PublicKey, &'d Arc<str>),
}

/// An admitted connection.
struct AdmittedConnection<'d> {
    identity: Identity<'d>,
    link: Link,
    /// The stream of the link, to close it from another thread.
    ends: Box<dyn ClosableStream>,
    seat: ConnectionPermit<'d>,
}

impl Acceptor {
    pub(super) fn new(options: BucketServerOptions) -> Result<Self, BucketServerError> {
        let BucketServerOptions { folder, key, clients, peers, limits } = options;
        let computing = peers.map(|peers| Computing::new(&key, peers, &limits)).transpose()?;
        let peer_keys: Vec<_> = computing.iter().flat_map(Computing::keys).collect();
        let service = Service::new(limits, computing)?;
        let unusable = |error| BucketServerError::Folder(folder.clone(), error);
        let locked = File::open(&folder).map_err(unusable)?;
        if !locked.metadata().map_err(unusable)?.is_dir() {
            return Err(unusable(io::ErrorKind::NotADirectory.into()));
        }
        locked.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => BucketServerError::InUse(folder.clone()),
            TryLockError::Error(error) => unusable(error),
        })?;
        let keys = clients.iter().map(|client| client.key).chain(peer_keys.iter().copied());
        let tls = ServerTls::new(&key, keys);
        let tls = tls.map_err(BucketServerError::Key)?;
        let mut by_key: HashMap<PublicKey, Client> = HashMap::new();
        for client in clients {
            let catalog = Box::new(ClientFolder(folder.join(&client.name)));
            let volumes =
                ClientVolumes::new(catalog, Some(client.key), client.quota_bytes, &service.limits);
            let is_other = by_key.values().any(|it| *it.name == client.name);
            let is_server = client.key == key.public();
            let is_sound = check_name(&client.name).is_ok() && !is_other && !is_server;
            let entry = Client { name: client.name.as_str().into(), volumes };
            if !is_sound || by_key.insert(client.key, entry).is_some() {
                return Err(BucketServerError::Client(client.name));
            }
        }
        if let Some(key) = peer_keys.iter().find(|key| by_key.contains_key(key)) {
            return Err(BucketServerError::Peer(*key));
        }
        let peers = peer_keys.into_iter().map(|key| (key, key.to_string().into())).collect();
        Ok(Self { service, tls, clients: by_key, peers, folder: locked })
    }

    /// Authenticates a connection, and serves it if it is allowed.
    pub(super) fn accept(&self, stream: TcpStream, thread: &Thread<'_>) {
        let number = thread.number;
        match self.authenticate(stream, number) {
            Ok(Some(admitted)) => self.serve(admitted, number),
            Ok(None) => (),
            Err(error) => {
                if self.service.admission.drop_handshake(number) {
                    self.service.metrics.refused.unauthenticated.increment();
                }
                tracing::debug!(connection = number, %error, "dropping a failed handshake");
            }
        }
    }

    fn authenticate(
        &self,
        stream: TcpStream,
        number: u64,
    ) -> io::Result<Option<AdmittedConnection<'_>>> {
        // Detects peers whose machine has disappeared.
        keep_alive(&stream)?;
        let (watched, ends) = (stream.try_clone()?, stream.try_clone()?);
        self.service.admission.begin_handshake(
            number,
            Box::new(watched),
            &self.service.metrics.refused,
        );
        let (link, key) = self.tls.answer(stream, self.service.limits.handshake_within)?;
        let client = self.clients.get(&key).map(Identity::Client);
        let peer = || self.peers.get(&key).map(|name| Identity::Peer(key, name));
        let identity = client.or_else(peer).ok_or(io::ErrorKind::PermissionDenied)?;
        let (name, kind) = match identity {
            Identity::Client(Client { name, .. }) => (name, Kind::Client),
            Identity::Peer(_, name) => (name, Kind::Peer),
        };
        let seat = match self.service.admission.admit(number, name, kind) {
            Ok(seat) => seat,
            Err(no_seat) => {
                if no_seat != NoSeat::Ended {
                    self.service.metrics.refused.no_room.increment();
                    tracing::warn!(
                        client = &**name,
                        ?no_seat,
                        "refusing a connection: no seat is free"
                    );
                    // The client tries again; by then some of its dead connections may have been
                    // noticed.
                    send_no_room(link, no_seat);
                }
                self.service.admission.drop_handshake(number);
                return Ok(None);
            }
        };
        self.service.metrics.connections.increment();
        tracing::info!(connection = number, client = &**name, ?kind, "client connected");
        Ok(Some(AdmittedConnection { identity, link, ends: Box::new(ends), seat }))
    }

    fn serve(&self, admitted: AdmittedConnection<'_>, number: u64) {
        let AdmittedConnection { identity, link, ends, seat } = admitted;
        let served = match identity {
            Identity::Client(client) => {
                Connection::new(&self.service, &client.volumes, link, seat, number).serve()
            }
            Identity::Peer(key, _) => {
                PeerConnection::new(&self.service, self, key, (link, ends), seat, number).serve()
            }
        };
        match served {
            Ok(()) => tracing::info!(connection = number, "client disconnected"),
            Err(Ended::Link(error)) => {
                tracing::info!(connection = number, %error, "connection lost");
            }
            Err(Ended::Refused(kind)) => {
                tracing::info!(
                    connection = number,
                    ?kind,
                    "closing a connection after a refused request"
                );
            }
        }
    }

    /// Closes slow connections and idle stores until the server has stopped. Once a stop is
    /// requested, aborts computations, and ends the connections that remain after `stop_within`.
    pub(super) fn watch(&self) {
        let BucketLimits { message_within, stores_kept_for, stop_within, .. } = self.service.limits;
        let look_every = CHECK_INTERVAL.min(message_within / 4).min(stores_kept_for / 4);
        let look_every = look_every.max(Duration::from_millis(10));
        let mut stopping_since = None;
        while !self.service.admission.wait_for_the_end(look_every) {
            self.service.admission.close_slow_connections();
            self.clients.values().for_each(|client| client.volumes.close_idle());
            if self.service.admission.is_stopped() {
                self.clients.values().for_each(|client| client.volumes.give_up_computing());
                let now = clock::now();
                if now.saturating_sub(*stopping_since.get_or_insert(now)) >= stop_within {
                    self.service.admission.cut();
                }
            }
        }
    }

    /// Closes the stores after all connections have ended, and unlocks the folder.
    pub(super) fn close(&self) {
        self.clients.values().for_each(|client| client.volumes.close_all());
        let stop_within = self.service.limits.stop_within;
        if let Ok(computing) = self.service.computing()
            && !computing.threads.wait_for_the_end(stop_within)
        {
            tracing::warn!("a connection to another server has not ended yet");
        }
        if let Err(error) = self.folder.unlock() {
            tracing::warn!(%error, "cannot unlock the folder of the stores");
        }
    }

    pub(super) fn metrics_text(&self) -> String {
        let (connections, peers, handshakes) = self.service.admission.counts();
        let stores = self.clients.values().map(|client| client.volumes.stores_open()).sum();
        self.service.metrics.text(&Gauges { connections, peers, handshakes, stores })
    }
}

impl ClientDirectory for Acceptor {
    fn volumes_of(&self, client: &PublicKey) -> Option<&ClientVolumes> {
        self.clients.get(client).map(|client| &client.volumes)
    }
}

/// Time for a client without a seat to read the refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(500);

/// Sends a refusal to a client or server without a seat, in place of the answer to its hello. Until
/// the peer has ended the connection, or [`REFUSAL_TIMEOUT`] is over, it takes a thread and counts
/// as a handshake.
fn send_no_room(mut link: Link, no_seat: NoSeat) {
    let message = match no_seat {
        NoSeat::OwnTaken(connections) => format!(
            "this client has {connections} connections, its limit, and all are in use; close a \
             volume, or try again later"
        ),
        _ => "all connections of this server are in use; try again later".into(),
    };
    let failure = Failure { number: 0, kind: FailureKind::Full, message };
    let sent = frame::send(&mut link.writer, &Answer::Failed(failure).encode());
    if sent.and_then(|()| link.writer.flush()).is_ok() {
        server_connection::linger(&mut *link.reader, REFUSAL_TIMEOUT);
    }
    link.writer.close();
}

/// Enables TCP keep-alive: the system probes the peer after a minute of silence, and gives up after
/// another minute.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15))?;
    sockopt::set_tcp_keepcnt(stream, 4)?;
    Ok(())
}
