//! A page for Prometheus.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use oblivio_serve::watch::is_own_name;

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
                let _ = answer(stream, address, &page);
            }
        };
        thread::Builder::new().name("metrics".into()).spawn(serve).map_err(refused)?;
        Ok(Self { address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Whether the request names this server. A browser always says for which host it asks: a foreign
/// page whose name points to this machine would read the figures. An address beyond loopback has
/// names that are not known here, and proves nothing.
fn is_for_this_page(request: &[u8], address: SocketAddr) -> bool {
    let lines = request.split(|byte| *byte == b'\n').skip(1);
    let hosts = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        line[..colon].eq_ignore_ascii_case(b"host").then(|| line[colon + 1..].trim_ascii())
    });
    let is_ours = |host: &[u8]| {
        str::from_utf8(host)
            .is_ok_and(|host| !address.ip().is_loopback() || is_own_name(host, address))
    };
    let hosts: Vec<_> = hosts.collect();
    hosts.len() <= 1 && hosts.into_iter().all(is_ours)
}

/// There is this page, and no other.
fn answer(
    mut stream: TcpStream,
    address: SocketAddr,
    page: &impl Fn() -> String,
) -> io::Result<()> {
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
    let request = &request[..read];
    let (status, body) = if !is_for_this_page(request, address) {
        let advice = format!("this page is at http://{address}/metrics, and under no other name\n");
        ("421 Misdirected Request", advice)
    } else if request.starts_with(b"GET /metrics ") {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_this_machine_answers_under_its_own_name_alone() {
        let here = "127.0.0.1:9411".parse().unwrap();
        let is_answered = |headers: &str, address| {
            is_for_this_page(format!("GET /metrics HTTP/1.1\r\n{headers}\r\n").as_bytes(), address)
        };
        for own in ["", "Host: 127.0.0.1:9411\r\n", "hOST:localhost:9411\r\nAccept: */*\r\n"] {
            assert!(is_answered(own, here), "{own:?}");
        }
        let twice = "Host: 127.0.0.1:9411\r\n".repeat(2);
        for foreign in
            ["Host: evil.example:9411\r\n", "host: 127.0.0.1:80\r\n", "Host:\r\n", &twice]
        {
            assert!(!is_answered(foreign, here), "{foreign:?}");
        }
        let beyond = "192.0.2.7:9411".parse().unwrap();
        assert!(is_answered("Host: store.example:9411\r\n", beyond));
    }
}
