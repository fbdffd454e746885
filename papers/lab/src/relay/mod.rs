//! A relay between two sockets that is as slow as a link.
//!
//! Clients connect to the relay, and it connects to the server. What comes from one is handed to the other as late as a [`Link`]
//! would: all connections share the rate of a direction, and what has left a rate's bucket arrives half a round trip later. A direction
//! of a connection is two threads with a bounded queue in between:
//!
//! ```text
//! sender ─ socket ─► read a little ─► lane: when did the last bit leave? ─► queue ─► wait for its arrival ─► socket ─► receiver
//! ```
//!
//! Not delayed: that a connection is made, and that it breaks. Not modelled: packets, their loss, and what senders do then.

mod connection;
mod counts;
mod cuts;
mod lane;
mod queue;

pub use counts::{Counts, WayCounts};
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

/// The time since some moment. It never goes back.
pub type Clock<'a> = &'a (dyn Fn() -> Duration + Sync);

/// Each takes four threads and the buffers of both directions.
const CONNECTIONS_MAX: usize = 256;

/// A link that has more bytes under way, in one direction, is too much for user space.
const UNDER_WAY_BYTES_MAX: usize = 256 << 20;

/// A server on this machine that takes so long takes no more connections.
const SERVER_PATIENCE: Duration = Duration::from_secs(2);

/// Before connections are taken again, where the system has nothing for another one.
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

/// What all connections have in common.
struct Shared {
    down: Lane,
    up: Lane,
    counts: Mutex<Counts>,
    cuts: Option<Cuts>,
}

impl Relay {
    /// Listens at `listen`, for clients of the server at `to`. Port 0 chooses one.
    ///
    /// # Errors
    /// [`LabError::Plan`] when an address is none of this machine alone, or cannot be had, or the link is too long and too fast.
    pub fn bind(
        listen: SocketAddr,
        to: SocketAddr,
        link: Link,
        cuts: Option<Cuts>,
    ) -> Result<Self, LabError> {
        let down = Lane::new(link.down_bytes_per_second(), link.one_way());
        let up = Lane::new(link.up_bytes_per_second(), link.one_way());
        let shared = Arc::new(Shared { down, up, counts: Mutex::default(), cuts });
        Self::on(shared, listen, to, link)
    }

    /// Another one, on the same link: what goes to one server leaves less of the rate for the others. Both have the counts of all that went over the link, and are run
    /// by the same clock.
    ///
    /// # Errors
    /// As of [`Self::bind`].
    pub fn beside(&self, listen: SocketAddr, to: SocketAddr) -> Result<Self, LabError> {
        Self::on(self.shared.clone(), listen, to, self.link)
    }

    fn on(
        shared: Arc<Shared>,
        listen: SocketAddr,
        to: SocketAddr,
        link: Link,
    ) -> Result<Self, LabError> {
        for address in [listen, to] {
            if !address.ip().is_loopback() {
                return Err(LabError::Plan(format!(
                    "a relay stays on this machine: {address} is no loopback address, such as 127.0.0.1:{}",
                    address.port()
                )));
            }
        }
        let Shared { down, up, .. } = &*shared;
        if down.queue_bytes_max().max(up.queue_bytes_max()) > UNDER_WAY_BYTES_MAX {
            return Err(LabError::Plan(format!(
                "{link}: more than {} MiB are under way on it: choose a lower rate or a shorter delay",
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// As slow as which link it is.
    pub fn link(&self) -> Link {
        self.link
    }

    /// What it has carried so far.
    pub fn counts(&self) -> Counts {
        *lock(&self.shared.counts)
    }

    /// Carries connections until it is [stopped](Self::stop).
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
        // It waits for somebody. If that fails, it does not wait any more.
        let _ = TcpStream::connect(self.address);
    }

    fn carry(&self, id: u64, client: TcpStream, clock: Clock<'_>) {
        let Ok(connection) = self.connect(client).map(Arc::new) else {
            lock(&self.shared.counts).refused += 1;
            return;
        };
        lock(&self.connections).insert(id, connection.clone());
        // Whoever stops it has seen this connection, or is seen here.
        if self.is_stopped.load(Ordering::SeqCst) {
            connection.close();
        }
        lock(&self.shared.counts).connections += 1;
        connection.carry(&self.shared, clock);
        lock(&self.connections).remove(&id);
    }

    fn connect(&self, client: TcpStream) -> io::Result<Connection> {
        let server = TcpStream::connect_timeout(&self.to, SERVER_PATIENCE)?;
        // What arrives is handed on at once, as little as it may be.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        Ok(Connection::new(client, server, &self.shared))
    }
}

/// Of a thread that panicked, what it left is taken: counts and queues are whole after each step.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
