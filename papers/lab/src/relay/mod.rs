//! A relay between two sockets that is as slow as a link.
//!
//! Clients connect to the relay, and the relay connects to the server. The relay forwards bytes
//! with the rates and the delay of a [`Link`]: all connections share the rate of a direction, and
//! bytes arrive half a round trip after they left. Each direction of a connection has two threads,
//! with a bounded queue in between:
//!
//! ```text
//! sender ─ socket ─► read a chunk ─► lane: when does its last bit leave?
//!      ─► queue ─► wait for its arrival ─► socket ─► receiver
//! ```
//!
//! Connection set-up and breaks are not delayed. Packets, packet loss and congestion control are
//! not modelled.

mod connection;
mod counts;
mod cuts;
mod lane;
mod queue;

pub use counts::{Counts, DirectionCounts};
pub use cuts::Cuts;

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use connection::Connection;
use lane::Lane;

use crate::LabError;
use oblivio_models::link::Link;

/// The time since an arbitrary start. It is monotonic.
pub type Clock<'a> = &'a (dyn Fn() -> Duration + Sync);

/// The maximum number of connections. Each needs five threads, and buffers for both directions.
const CONNECTIONS_MAX: usize = 256;

/// The maximum size in bytes of a connection's queue in one direction. A relay in user space cannot
/// imitate a link with more bytes in flight.
const UNDER_WAY_BYTES_MAX: usize = 256 << 20;

/// The timeout for connecting to the server, which is on this machine.
const SERVER_PATIENCE: Duration = Duration::from_secs(2);

/// The wait before accepting again, after the system failed to accept a connection.
const PAUSE: Duration = Duration::from_millis(20);

/// A relay that listens.
pub struct Relay {
    listener: TcpListener,
    address: SocketAddr,
    to: SocketAddr,
    link: Link,
    shared: Arc<Shared>,
    connections: Mutex<HashMap<u64, Arc<Connection>>>,
    is_stopped: AtomicBool,
}

/// State that all connections share.
struct Shared {
    down: Lane,
    up: Lane,
    counts: Mutex<Counts>,
    cuts: Option<Cuts>,
}

impl Relay {
    /// Listens at `listen`, for clients of the server at `to`. Port 0 chooses a free port.
    ///
    /// # Errors
    /// [`LabError::Plan`] if an address is not a loopback address, if `listen` is not available, or
    /// if the link has too many bytes in flight.
    pub fn bind(
        listen: SocketAddr,
        to: SocketAddr,
        link: Link,
        cuts: Option<Cuts>,
    ) -> Result<Self, LabError> {
        let down = Lane::new(link.down_bytes_per_second(), link.one_way());
        let up = Lane::new(link.up_bytes_per_second(), link.one_way());
        let shared = Arc::new(Shared { down, up, counts: Mutex::default(), cuts });
        Self::listen_on(shared, listen, to, link)
    }

    /// Creates another relay on the same link. Both relays share the rate, the counts and the rule
    /// for cuts, and must run with the same clock.
    ///
    /// # Errors
    /// The errors of [`Self::bind`].
    pub fn beside(&self, listen: SocketAddr, to: SocketAddr) -> Result<Self, LabError> {
        Self::listen_on(self.shared.clone(), listen, to, self.link)
    }

    fn listen_on(
        shared: Arc<Shared>,
        listen: SocketAddr,
        to: SocketAddr,
        link: Link,
    ) -> Result<Self, LabError> {
        for address in [listen, to] {
            if !address.ip().is_loopback() {
                return Err(LabError::Plan(format!(
                    "a relay stays on this machine: {address} is no loopback address, such as \
                     127.0.0.1:{}",
                    address.port()
                )));
            }
        }
        let Shared { down, up, .. } = &*shared;
        if down.queue_bytes_max().max(up.queue_bytes_max()) > UNDER_WAY_BYTES_MAX {
            return Err(LabError::Plan(format!(
                "{link}: more than {} MiB would be in flight: choose a lower rate or a shorter \
                 delay",
                UNDER_WAY_BYTES_MAX >> 20
            )));
        }
        let cannot_listen = |error| {
            LabError::Plan(format!(
                "the relay cannot listen at {listen}: {error}; choose another port, or 0 for any"
            ))
        };
        let listener = TcpListener::bind(listen).map_err(cannot_listen)?;
        let address = listener.local_addr().map_err(cannot_listen)?;
        Ok(Self {
            listener,
            address,
            to,
            link,
            shared,
            connections: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        })
    }

    /// The address where the relay listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The link that the relay imitates.
    pub fn link(&self) -> Link {
        self.link
    }

    /// The connections and bytes so far.
    pub fn counts(&self) -> Counts {
        *lock(&self.shared.counts)
    }

    /// Forwards connections until [stopped](Self::stop).
    pub fn run(&self, clock: Clock<'_>) {
        thread::scope(|scope| {
            for id in 0.. {
                let client = self.listener.accept();
                if self.is_stopped.load(Ordering::SeqCst) {
                    break;
                }
                match client {
                    Ok((client, _)) if lock(&self.connections).len() < CONNECTIONS_MAX => {
                        scope.spawn(move || self.carry(id, client, clock));
                    }
                    Ok(_) => lock(&self.shared.counts).refused += 1,
                    Err(_) => thread::sleep(PAUSE),
                }
            }
        });
    }

    /// Breaks all connections, and lets [`Self::run`] return.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        lock(&self.connections).values().for_each(|connection| connection.close());
        // Wake the accept call. If this connection fails, the call has already ended.
        let _ = TcpStream::connect(self.address);
    }

    fn carry(&self, id: u64, client: TcpStream, clock: Clock<'_>) {
        let Ok(connection) = self.connect(client).map(Arc::new) else {
            lock(&self.shared.counts).refused += 1;
            return;
        };
        lock(&self.connections).insert(id, connection.clone());
        // Either `stop` has seen this connection, or it is closed here.
        if self.is_stopped.load(Ordering::SeqCst) {
            connection.close();
        }
        lock(&self.shared.counts).connections += 1;
        connection.carry(&self.shared, clock);
        lock(&self.connections).remove(&id);
    }

    fn connect(&self, client: TcpStream) -> io::Result<Connection> {
        let server = TcpStream::connect_timeout(&self.to, SERVER_PATIENCE)?;
        // Forward small writes at once.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        Ok(Connection::new(client, server, &self.shared))
    }
}

/// Locks a mutex, even if a thread panicked while holding it. Counts and queues are consistent
/// after each step.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
