//! A server with threads of its own.

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
use super::{Listen, NbdOptions, NotLetIn, ServeError, TlsMode};

/// How long to wait when a connection cannot be accepted, usually because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What workers get to finish when nobody waits for them any more.
const WORKERS_END: Duration = Duration::from_secs(1);
/// When a disk blocks all workers, not even time goes on for them; then this is added.
const BLOCKED_END: Duration = Duration::from_secs(2);

/// A server that runs. Stops when dropped.
pub struct ServerHandle {
    uri: String,
    service: Arc<Service>,
    clients: Arc<AtomicUsize>,
    end: Option<Receiver<Result<Counts, ServeError>>>,
    thread: JoinHandle<()>,
}

/// What a server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Clients that connected.
    pub connections: u64,
    /// Requests that they made.
    pub requests: u64,
}

/// Serves `device` at `listen`, on threads of its own. Clients can connect when this returns.
///
/// # Errors
/// When the options cannot be used, or it is not possible to listen there.
pub fn serve(
    device: Arc<dyn BlockDevice>,
    listen: Listen,
    options: NbdOptions,
) -> Result<ServerHandle, ServeError> {
    bind(&listen, options)?.serve(device)
}

/// Listens at `listen`, for a disk that is still to come. Clients wait until then.
///
/// # Errors
/// When the options cannot be used, or it is not possible to listen there.
pub fn bind(listen: &Listen, options: NbdOptions) -> Result<BoundServer, ServeError> {
    check_reachable(listen, &options)?;
    let checked = Checked::new(&options)?;
    Ok(BoundServer { listener: Listener::bind(listen)?, options, checked })
}

/// A server that listens, and has no disk yet.
pub struct BoundServer {
    listener: Listener,
    options: NbdOptions,
    checked: Checked,
}

impl BoundServer {
    /// Serves `device`, on a thread of its own.
    ///
    /// # Errors
    /// When the system gives no threads or no randomness.
    pub fn serve(self, device: Arc<dyn BlockDevice>) -> Result<ServerHandle, ServeError> {
        let Self { listener, options, checked } = self;
        let service = Arc::new(Service::with(device, &options, checked)?);
        let clients = Arc::new(AtomicUsize::new(0));
        let uri = uri(&listener, &options);
        // One thread for all connections: what it does for a request takes a tenth of what the disk does, and to hand
        // requests and replies from thread to thread takes longer than that. No disk keeps it waiting.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ServeError::Threads)?;
        let server = Server { service: service.clone(), clients: clients.clone() };
        let (sender, end) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("nbd".into())
            // Nobody may wait for the end any more.
            .spawn(move || drop(sender.send(server.run(runtime, listener))))
            .map_err(ServeError::Threads)?;
        tracing::info!(uri, "serving NBD");
        Ok(ServerHandle { uri, service, clients, end: Some(end), thread })
    }
}

/// Whoever reaches the disk is its owner: nobody should reach it unknown.
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
    /// Where clients find the disk.
    pub fn uri(&self) -> String {
        self.uri.clone()
    }

    /// Clients that are connected.
    pub fn connections(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// Whom it has not let in so far.
    pub fn not_let_in(&self) -> NotLetIn {
        self.service.not_let_in()
    }

    /// Whether its thread has ended, which it does by itself only if it panics. [`Self::shutdown`]
    /// says so, too.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Takes no more clients and no more requests, lets requests in flight finish, and removes the
    /// socket file.
    ///
    /// # Errors
    /// When requests in flight did not finish in time.
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
                    ServeError::Threads(io::Error::other("the server panicked"))
                }
            })
        }))
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.stop() {
            tracing::warn!(%error, "the NBD server did not end well");
        }
    }
}

/// As clients write it.
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
        // A worker whose disk never answers must not keep the others waiting.
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
        // Nobody finds a server any more.
        drop((accept, file));
        let limit = Duration::from_secs(self.service.limits.shutdown_seconds_max);
        let finished = timeout(limit, async { while tasks.join_next().await.is_some() {} }).await;
        let counts = Counts { connections, requests: self.service.requests() };
        finished.map(|()| counts).map_err(|_| ServeError::Unfinished { connections: tasks.len() })
    }

    fn take<S: Stream>(&self, stream: S, client: u64, tasks: &mut JoinSet<()>) {
        let (service, counted) = (self.service.clone(), Counted::new(self.clients.clone()));
        tasks.spawn(async move {
            tracing::debug!(client, "an NBD client connects");
            match service.serve(stream).await {
                Ok(()) => tracing::debug!(client, "an NBD client leaves"),
                Err(reason) => tracing::warn!(client, %reason, "an NBD client is left"),
            }
            drop(counted);
        });
    }
}

/// Counts a client for as long as it lives.
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
