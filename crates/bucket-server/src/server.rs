//! The server: bind, accept and stop.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::Shutdown;

use super::acceptor::Acceptor;
use super::{BucketServerError, BucketServerOptions, WatchVolumes};

/// The pause after a connection could not be accepted, usually because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listening server. Clients wait until [`Self::run`].
pub struct BucketServer {
    acceptor: Arc<Acceptor>,
    listener: Arc<TcpListener>,
    address: SocketAddr,
}

/// A handle to a running server.
#[derive(Clone)]
pub struct BucketServerHandle {
    acceptor: Arc<Acceptor>,
    listener: Arc<TcpListener>,
}

impl BucketServer {
    /// Listens at `address`. Port 0 chooses a free port.
    ///
    /// # Errors
    /// If the options are unusable, or listening fails.
    pub fn bind(
        address: SocketAddr,
        options: BucketServerOptions,
    ) -> Result<Self, BucketServerError> {
        let acceptor = Arc::new(Acceptor::new(options)?);
        let listen = |error| BucketServerError::Listen(address, error);
        let listener = Arc::new(TcpListener::bind(address).map_err(listen)?);
        let address = listener.local_addr().map_err(listen)?;
        Ok(Self { acceptor, listener, address })
    }

    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a handle to stop and inspect the server while it runs.
    pub fn handle(&self) -> BucketServerHandle {
        BucketServerHandle { acceptor: self.acceptor.clone(), listener: self.listener.clone() }
    }

    /// Sets the watcher of volumes that are opened from now on. Only the first call has an effect.
    /// A server that only keeps stores ignores it.
    pub fn watch_volumes(&self, watch: Box<WatchVolumes>) {
        if let Ok(computing) = self.acceptor.service.computing() {
            let _ = computing.watch.set(watch);
        }
    }

    /// Serves clients on this thread and others until [`BucketServerHandle::stop`]. Before it
    /// returns, it answers requests in flight, for at most the limit `stop_within`, and closes the
    /// stores without a flush. Then another server may use the folder, even if handles of this one
    /// exist.
    ///
    /// # Errors
    /// If the system cannot start the first thread, or the watching thread panicked.
    pub fn run(self) -> Result<(), BucketServerError> {
        let (handle, watch_died) = (self.handle(), AtomicBool::new(false));
        let Self { acceptor, listener, address } = self;
        tracing::info!(%address, "serving stores");
        let outcome = thread::scope(|scope| {
            thread::Builder::new()
                .name("buckets-watch".into())
                .spawn_scoped(scope, || {
                    if catch_unwind(AssertUnwindSafe(|| acceptor.watch())).is_err() {
                        // Without the watching thread, slow clients would stay for ever.
                        watch_died.store(true, Ordering::Release);
                        tracing::error!("the thread that watches connections panicked");
                        handle.stop();
                    }
                })
                .map_err(BucketServerError::System)?;
            while let Some(own) = acceptor.service.admission.thread() {
                let acceptor = &acceptor;
                let served = listener.accept().and_then(|(stream, _)| {
                    thread::Builder::new().name("buckets".into()).spawn_scoped(scope, move || {
                        // A defect in one connection must not end the others.
                        let accepted =
                            catch_unwind(AssertUnwindSafe(|| acceptor.accept(stream, &own)));
                        if accepted.is_err() {
                            acceptor.service.metrics.defects.increment();
                            tracing::error!(
                                connection = own.number,
                                "the thread of a connection panicked"
                            );
                        }
                    })
                });
                match served {
                    Err(error) if !acceptor.service.admission.is_stopped() => {
                        tracing::warn!(%error, "cannot accept a connection");
                        thread::sleep(ACCEPT_PAUSE);
                    }
                    _ => (),
                }
            }
            Ok(())
        });
        acceptor.close();
        if watch_died.into_inner() {
            let defect =
                "the thread that watches connections panicked; this is a defect, please report it";
            return Err(BucketServerError::System(io::Error::other(defect)));
        }
        outcome
    }
}

impl BucketServerHandle {
    /// Accepts no more clients and requests. [`BucketServer::run`] returns after requests in flight
    /// are answered.
    pub fn stop(&self) {
        self.acceptor.service.admission.stop();
        // Wakes the accepting thread. Fails if it was stopped before.
        let _: io::Result<()> =
            rustix::net::shutdown(&*self.listener, Shutdown::Both).map_err(io::Error::from);
    }

    /// The metrics of the server, in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        self.acceptor.metrics_text()
    }
}
