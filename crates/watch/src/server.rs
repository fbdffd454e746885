//! The HTTP server of the page, on its own thread.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use super::access::{Admitted, Refusal, admit};
use super::hub::{Events, Hub};
use super::page::Page;
use super::token::Tokens;
use super::{Shown, WatchError, WatchLimits};

/// The pause after a connection could not be accepted, usually because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for readers to receive the last event.
const END: Duration = Duration::from_millis(500);

/// Maximum bytes of a request. A browser sends a few hundred bytes, and cookies of other servers on
/// this machine.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Headers of every response. They keep the page out of caches and out of other pages.
const HEADERS: [(&str, &str); 6] = [
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("x-frame-options", "DENY"),
];

/// Listens at `address`, before the disk is open.
///
/// # Errors
/// [`WatchError::NotLoopback`] if other machines can reach the address, [`WatchError::Listen`] if
/// listening fails, and [`WatchError::Randomness`] if the system provides no random numbers.
pub fn bind(address: SocketAddr, limits: WatchLimits) -> Result<BoundWatch, WatchError> {
    if !address.ip().is_loopback() {
        return Err(WatchError::NotLoopback(address));
    }
    let failed = |error| WatchError::Listen(address, error);
    let listener = StdListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    // Accepted connections inherit this size.
    set_socket_send_buffer_size(&listener, limits.send_buffer_bytes)
        .map_err(|error| failed(error.into()))?;
    let address = listener.local_addr().map_err(failed)?;
    let tokens = Tokens::draw().map_err(WatchError::Randomness)?;
    Ok(BoundWatch { listener, address, tokens, limits })
}

/// A server that listens, but has no disk to show yet.
pub struct BoundWatch {
    listener: StdListener,
    address: SocketAddr,
    tokens: Tokens,
    limits: WatchLimits,
}

impl BoundWatch {
    /// The limits with which the server was created.
    pub fn limits(&self) -> &WatchLimits {
        &self.limits
    }

    /// Starts serving the page of a disk.
    ///
    /// # Errors
    /// [`WatchError::Threads`] if the server's thread cannot be started.
    pub fn serve(self, shown: Shown) -> Result<WatchServer, WatchError> {
        let Self { listener, address, tokens, limits } = self;
        let url = Zeroizing::new(format!("http://{address}/{}/", tokens.ticket.as_str()));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(WatchError::Threads)?;
        let (stop, stopped) = oneshot::channel();
        let shared =
            SharedState { address, tokens, page: Page::new(), hub: Hub::new(&shown, &limits) };
        let server = Server { shared: Arc::new(shared), shown, limits };
        let thread = thread::Builder::new()
            .name("watch".into())
            .spawn(move || server.run(runtime, listener, stopped))
            .map_err(WatchError::Threads)?;
        Ok(WatchServer { url, running: Some((stop, thread)) })
    }
}

/// A running server. Dropping it ends the page.
pub struct WatchServer {
    url: Zeroizing<String>,
    running: Option<(oneshot::Sender<Infallible>, JoinHandle<()>)>,
}

impl WatchServer {
    /// The one-time address of the page. Secret until it is used. The first visitor is redirected
    /// to the page's own address.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for WatchServer {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            // A failure of the page must not make closing the disk fail.
            let _ = thread.join();
        }
    }
}

struct Server {
    shared: Arc<SharedState>,
    shown: Shown,
    limits: WatchLimits,
}

/// The state that all connections share.
struct SharedState {
    address: SocketAddr,
    tokens: Tokens,
    page: Page,
    hub: Hub,
}

impl Server {
    fn run(self, runtime: Runtime, listener: StdListener, stopped: oneshot::Receiver<Infallible>) {
        runtime.block_on(async {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            let Self { shared, shown, limits } = self;
            let mut connections = JoinSet::new();
            let frames = Duration::from_millis(limits.frame_millis.max(1));
            tokio::select! {
                _ = stopped => {}
                _ = shared.hub.run(&shown, frames) => {}
                _ = accept_all(&listener, &shared, &limits, &mut connections) => {}
            }
            // Stop accepting, then end the event streams.
            drop((listener, shown));
            shared.hub.end();
            let all_left = async { while connections.join_next().await.is_some() {} };
            // Readers that do not take the last event are dropped.
            let _ = timeout(END, all_left).await;
        });
        runtime.shutdown_background();
    }
}

async fn accept_all(
    listener: &TcpListener,
    shared: &Arc<SharedState>,
    limits: &WatchLimits,
    connections: &mut JoinSet<()>,
) -> Infallible {
    let patience = Duration::from_secs(limits.request_seconds_max);
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < limits.connections_max => {
                    connections.spawn(serve_connection(stream, shared.clone(), patience));
                }
                Ok(_) => {}
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

/// Serves one request of a connection.
async fn serve_connection(stream: TcpStream, shared: Arc<SharedState>, patience: Duration) {
    let answer = service_fn(|request| {
        let answer = shared.answer(&request);
        async { Ok::<_, Infallible>(answer) }
    });
    // An error concerns only this client.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .keep_alive(false)
        .max_buf_size(REQUEST_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

impl SharedState {
    fn answer(&self, request: &Request<Incoming>) -> Response<Either<Full<Bytes>, Events>> {
        let whole = |text: Bytes| Either::Left(Full::new(text));
        let mut location = None;
        let content =
            admit(request, self.address, &self.tokens).and_then(|admitted| match admitted {
                Admitted::Entrance => {
                    let page = self.tokens.take_ticket().ok_or(Refusal::Used)?;
                    location = HeaderValue::from_str(&format!("/{}/", page.as_str())).ok();
                    Ok(("text/plain; charset=utf-8", NOTHING, whole(Bytes::new())))
                }
                Admitted::Page => {
                    let policy = self.page.policy.as_str();
                    Ok(("text/html; charset=utf-8", policy, whole(self.page.html.clone())))
                }
                Admitted::Events => {
                    let reader = self.hub.register_reader().ok_or(Refusal::Full)?;
                    Ok(("text/event-stream", NOTHING, Either::Right(reader.start())))
                }
            });
        let (status, (kind, policy, body)) = match content {
            Ok(content) if location.is_some() => (StatusCode::SEE_OTHER, content),
            Ok(content) => (StatusCode::OK, content),
            Err(refusal) => {
                let advice = whole(Bytes::from_static(refusal.advice().as_bytes()));
                (refusal.status(), ("text/plain; charset=utf-8", NOTHING, advice))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(mut location) = location {
            location.set_sensitive(true);
            headers.insert(LOCATION, location);
        }
        if let Ok(policy) = HeaderValue::from_str(policy) {
            headers.insert("content-security-policy", policy);
        }
        response
    }
}

/// The content security policy of all responses except the page.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";
