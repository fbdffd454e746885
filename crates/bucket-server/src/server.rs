//! The server: it binds, accepts and stops.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::Shutdown;

use super::door::Door;
use super::{BucketServerError, BucketServerOptions, WatchVolumes};

/// How long to wait when a connection cannot be accepted, usually because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server that listens. Clients wait until it [runs](Self::run).
pub struct BucketServer {
    door: Arc<Door>,
    listener: Arc<TcpListener>,
    address: SocketAddr,
}

/// What others do with a server that runs.
#[derive(Clone)]
pub struct BucketServerHandle {
    door: Arc<Door>,
    listener: Arc<TcpListener>,
}

impl BucketServer {
    /// Listens at `address`; port 0 means any free one.
    ///
    /// # Errors
    /// When the options cannot be used, or it is not possible to listen there.
    pub fn bind(
        address: SocketAddr,
        options: BucketServerOptions,
    ) -> Result<Self, BucketServerError> {
        let door = Arc::new(Door::new(options)?);
        let listen = |error| BucketServerError::Listen(address, error);
        let listener = Arc::new(TcpListener::bind(address).map_err(listen)?);
        let address = listener.local_addr().map_err(listen)?;
        Ok(Self { door, listener, address })
    }

    /// Where clients find it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// To stop it and to look at it while it runs.
    pub fn handle(&self) -> BucketServerHandle {
        BucketServerHandle { door: self.door.clone(), listener: self.listener.clone() }
    }

    /// Has what passes for volumes watched, of those that are opened from now on; what is said first holds. A server that computes nothing watches nothing.
    pub fn watch_volumes(&self, watch: Box<WatchVolumes>) {
        if let Ok(computing) = self.door.service.computing() {
            let _ = computing.watch.set(watch);
        }
    }

    /// Serves, on this thread and others, until it is [stopped](BucketServerHandle::stop). Requests under way are answered before
    /// it returns. Stores are closed as they are: what no client has flushed is not flushed. Another server may have the folder
    /// then, even if there are handles of this one.
    ///
    /// # Errors
    /// When the system gives no thread to begin with.
    pub fn run(self) -> Result<(), BucketServerError> {
        let (handle, watch_died) = (self.handle(), AtomicBool::new(false));
        let Self { door, listener, address } = self;
        tracing::info!(%address, "keeping stores for others");
        let outcome = thread::scope(|scope| {
            thread::Builder::new()
                .name("buckets-watch".into())
                .spawn_scoped(scope, || {
                    if catch_unwind(AssertUnwindSafe(|| door.watch())).is_err() {
                        // Slow clients would stay for ever from now on.
                        watch_died.store(true, Ordering::Release);
                        tracing::error!("the thread that watches connections panicked");
                        handle.stop();
                    }
                })
                .map_err(BucketServerError::System)?;
            while let Some(own) = door.service.admission.thread() {
                let door = &door;
                let served = listener.accept().and_then(|(stream, _)| {
                    thread::Builder::new().name("buckets".into()).spawn_scoped(scope, move || {
                        // A defect that one client meets is not to end the others.
                        let met = catch_unwind(AssertUnwindSafe(|| door.meet(stream, &own)));
                        if met.is_err() {
                            door.service.metrics.defects.one();
                            tracing::error!(connection = own.number, "a connection panicked");
                        }
                    })
                });
                match served {
                    Err(error) if !door.service.admission.is_stopped() => {
                        tracing::warn!(%error, "cannot accept a client");
                        thread::sleep(ACCEPT_PAUSE);
                    }
                    _ => (),
                }
            }
            Ok(())
        });
        door.close();
        if watch_died.into_inner() {
            let defect =
                "the thread that watches connections panicked, which is a defect: please report it";
            return Err(BucketServerError::System(io::Error::other(defect)));
        }
        outcome
    }
}

impl BucketServerHandle {
    /// Takes no more clients and no more requests. [`BucketServer::run`] returns when those under way are answered.
    pub fn stop(&self) {
        self.door.service.admission.stop();
        // Whoever waits for the next client is woken. It may have been before.
        let _: io::Result<()> =
            rustix::net::shutdown(&*self.listener, Shutdown::Both).map_err(io::Error::from);
    }

    /// What the server has done, in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        self.door.metrics_text()
    }
}
