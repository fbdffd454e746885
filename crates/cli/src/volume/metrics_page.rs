//! A page for Prometheus.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::clock::Stopwatch;
use crate::error::CliError;

/// Whoever has not asked by then is left.
const ASK_WITHIN: Duration = Duration::from_secs(2);

/// What is asked is shorter.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// It is served until the program ends.
pub(super) struct MetricsPage {
    address: SocketAddr,
}

impl MetricsPage {
    /// Serves what `page` says, to whoever reaches the address, one after the other.
    pub(super) fn serve(
        address: SocketAddr,
        page: impl Fn() -> String + Send + 'static,
    ) -> Result<Self, CliError> {
        let refused = |error: io::Error| {
            CliError::Engine(format!("cannot listen on {address}: {error}; choose another address"))
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let serve = move || {
            for stream in listener.incoming().flatten() {
                // Nobody else waits for the page for long.
                let _ = answer(stream, &page);
            }
        };
        thread::Builder::new().name("metrics".into()).spawn(serve).map_err(refused)?;
        Ok(Self { address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// There is this page, and no other.
fn answer(mut stream: TcpStream, page: &impl Fn() -> String) -> io::Result<()> {
    let asking = Stopwatch::start();
    stream.set_write_timeout(Some(ASK_WITHIN))?;
    let (mut request, mut read) = ([0; REQUEST_BYTES_MAX], 0);
    // A request of HTTP ends with an empty line.
    while read < request.len() && !request[..read].windows(4).any(|end| end == b"\r\n\r\n") {
        let left = ASK_WITHIN.saturating_sub(asking.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut request[read..])? {
            0 => return Ok(()),
            bytes => read += bytes,
        }
    }
    let (status, body) = if request.starts_with(b"GET /metrics ") {
        ("200 OK", page())
    } else {
        ("404 Not Found", "figures are at /metrics\n".to_owned())
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
