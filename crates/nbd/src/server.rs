//! A server that runs on its own thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use oblivio_volume::device::BlockDevice;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::listen::{Listener, SocketFile};
use super::service::{Checked, Service, Stream};
use super::{Listen, NbdOptions, RefusedCounts, ServeError, TlsMode};

/// The pause after a connection could not be accepted, usually because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for the runtime to finish after the shutdown deadline.
const WORKERS_END: Duration = Duration::from_secs(1);
/// Time added to the deadlines in case the disk blocks the server's thread, which stops its timers.
const BLOCKED_END: Duration = Duration::from_secs(2);

/// A running server. Stops when dropped.
pub struct ServerHandle {
    uri: String,
    service: Arc<Service>,
    clients: Arc<AtomicUsize>,
    end: Option<Receiver<Result<Counts, ServeError>>>,
    thread: JoinHandle<()>,
}

/// Totals since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Clients that connected.
    pub connections: u64,
    /// Requests that clients made.
    pub requests: u64,
}

/// Serves `device` at `listen` on a separate thread. Clients can connect once this returns.
///
/// # Errors
/// If the options are unusable, listening fails, or the system provides no thread or no random
/// numbers.
pub fn serve(
    device: Arc<dyn BlockDevice>,
    listen: Listen,
    options: NbdOptions,
) -> Result<ServerHandle, ServeError> {
    bind(&listen, options)?.serve(device)
}

/// Listens at `listen` before the disk is open. Clients wait until [`BoundServer::serve`].
///
/// # Errors
/// If the options are unusable or listening fails.
pub fn bind(listen: &Listen, options: NbdOptions) -> Result<BoundServer, ServeError> {
    check_reachable(listen, &options)?;
    let checked = Checked::new(&options)?;
    Ok(BoundServer { listener: Listener::bind(listen)?, options, checked })
}

/// A server that listens, but has no disk yet.
pub struct BoundServer {
    listener: Listener,
    options: NbdOptions,
    checked: Checked,
}

impl BoundServer {
    /// Serves `device` on a separate thread.
    ///
    /// # Errors
    /// If the system provides no thread or no random numbers.
    pub fn serve(self, device: Arc<dyn BlockDevice>) -> Result<ServerHandle, ServeError> {
        let Self { listener, options, checked } = self;
        let service = Arc::new(Service::with(device, &options, checked)?);
        let clients = Arc::new(AtomicUsize::new(0));
        let uri = uri(&listener, &options);
        // One thread serves all connections. Its work per request is a tenth of the disk's, and
        // passing requests between threads would cost more. The disk never blocks it.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ServeError::Threads)?;
        let server = Server { service: service.clone(), clients: clients.clone() };
        let (sender, end) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("nbd".into())
            // Fails if the handle no longer waits.
            .spawn(move || drop(sender.send(server.run(runtime, listener))))
            .map_err(ServeError::Threads)?;
        tracing::info!(uri, "serving NBD");
        Ok(ServerHandle { uri, service, clients, end: Some(end), thread })
    }
}

/// Refuses unsafe options. A client has full access to the disk, so unauthenticated access from
/// other machines must be explicit.
fn check_reachable(listen: &Listen, options: &NbdOptions) -> Result<(), ServeError> {
    match listen {
        Listen::Tcp(address) if !address.ip().is_loopback() => {
            if !options.beyond_loopback {
                return Err(ServeError::NotLoopback(*address));
            }
            if !options.tls.proves_who_clients_are() && !options.any_client {
                return Err(ServeError::AnyClient(*address));
            }
            Ok(())
        }
        Listen::Tcp(_) | Listen::Unix(_) => Ok(()),
    }
}

impl ServerHandle {
    /// The NBD URI of the export.
    pub fn uri(&self) -> String {
        self.uri.clone()
    }

    /// The number of connected clients.
    pub fn connections(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// The numbers of refused clients so far.
    pub fn refused_counts(&self) -> RefusedCounts {
        self.service.refused_counts()
    }

    /// Whether the server's thread has ended. Before shutdown, this happens only if the server
    /// failed. [`Self::shutdown`] then returns an error.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops accepting clients and requests, lets requests in flight finish, and removes the socket
    /// file.
    ///
    /// # Errors
    /// If requests in flight did not finish in time, or the server failed.
    pub fn shutdown(mut self) -> Result<Counts, ServeError> {
        self.stop().unwrap_or(Ok(Counts::default()))
    }

    fn stop(&mut self) -> Option<Result<Counts, ServeError>> {
        self.service.stop();
        let end = self.end.take()?;
        let limit = Duration::from_secs(self.service.limits.shutdown_seconds_max);
        Some(end.recv_timeout(limit + WORKERS_END + BLOCKED_END).unwrap_or_else(|error| {
            Err(match error {
                RecvTimeoutError::Timeout => {
                    ServeError::Unfinished { connections: self.connections() }
                }
                RecvTimeoutError::Disconnected => {
                    ServeError::Threads(io::Error::other("the server's thread panicked"))
                }
            })
        }))
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.stop() {
            tracing::warn!(%error, "the NBD server did not stop properly");
        }
    }
}

/// The URI of the export.
fn uri(listener: &Listener, options: &NbdOptions) -> String {
    let secure = if matches!(options.tls, TlsMode::Required(_)) { "s" } else { "" };
    let name = percent_encoded(options.export_name.as_bytes());
    match listener {
        Listener::Unix(_, file) => {
            let path = percent_encoded(file.path.as_os_str().as_encoded_bytes());
            format!("nbd{secure}+unix:///{name}?socket={path}")
        }
        Listener::Tcp(_, address) => format!("nbd{secure}://{address}/{name}"),
    }
}

fn percent_encoded(bytes: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    bytes
        .iter()
        .map(|&byte| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

struct Server {
    service: Arc<Service>,
    clients: Arc<AtomicUsize>,
}

impl Server {
    fn run(self, runtime: Runtime, listener: Listener) -> Result<Counts, ServeError> {
        let outcome = runtime.block_on(async {
            match listener {
                Listener::Unix(listener, file) => {
                    let listener = UnixListener::from_std(listener).map_err(ServeError::Threads)?;
                    let accept = async move || Ok(listener.accept().await?.0);
                    self.accept_all(accept, Some(file)).await
                }
                Listener::Tcp(listener, _) => {
                    let listener = TcpListener::from_std(listener).map_err(ServeError::Threads)?;
                    let accept = async move || {
                        let (stream, _) = listener.accept().await?;
                        stream.set_nodelay(true)?;
                        Ok(stream)
                    };
                    self.accept_all(accept, None).await
                }
            }
        });
        // Work that waits for a disk that never answers must not keep the thread from ending.
        runtime.shutdown_timeout(WORKERS_END);
        outcome
    }

    async fn accept_all<S: Stream>(
        &self,
        accept: impl AsyncFn() -> io::Result<S>,
        file: Option<SocketFile>,
    ) -> Result<Counts, ServeError> {
        let mut tasks = JoinSet::new();
        let mut connections = 0;
        loop {
            tokio::select! {
                () = self.service.stopped() => break,
                Some(_) = tasks.join_next() => {}
                accepted = accept() => match accepted {
                    Ok(stream) => {
                        connections += 1;
                        self.take(stream, connections, &mut tasks);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept an NBD client");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        // Close the listening socket and remove its file.
        drop((accept, file));
        let limit = Duration::from_secs(self.service.limits.shutdown_seconds_max);
        let finished = timeout(limit, async { while tasks.join_next().await.is_some() {} }).await;
        let counts = Counts { connections, requests: self.service.requests() };
        finished.map(|()| counts).map_err(|_| ServeError::Unfinished { connections: tasks.len() })
    }

    fn take<S: Stream>(&self, stream: S, client: u64, tasks: &mut JoinSet<()>) {
        let (service, counted) = (self.service.clone(), Counted::new(self.clients.clone()));
        tasks.spawn(async move {
            tracing::debug!(client, "NBD client connected");
            match service.serve(stream).await {
                Ok(()) => tracing::debug!(client, "NBD client disconnected"),
                Err(reason) => tracing::warn!(client, %reason, "dropping an NBD client"),
            }
            drop(counted);
        });
    }
}

/// Counts a connected client until dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(clients: Arc<AtomicUsize>) -> Self {
        clients.fetch_add(1, Ordering::Relaxed);
        Self(clients)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
