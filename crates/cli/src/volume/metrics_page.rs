//! The page of metrics for Prometheus.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use oblivio_watch::is_own_name;

use crate::clock::Stopwatch;
use crate::error::CliError;

/// Time that a client may take to send its request.
const ASK_WITHIN: Duration = Duration::from_secs(2);

/// Maximum length of a request in bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// A page of metrics, which is served until the program ends.
pub(super) struct MetricsPage {
    address: SocketAddr,
}

impl MetricsPage {
    /// Serves the output of `page` to anyone who reaches the address, one request at a time.
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
                // A failed answer is the client's problem; the next one is served.
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

/// The status and text to answer instead of metrics, if the request is refused.
///
/// A browser always sends the host in exactly one `Host` header. Without this check, a page of
/// another site whose name resolves to this machine could read the metrics. Beyond loopback the
/// address may have any name, so any valid name is accepted there.
fn refusal(head: &[u8], address: SocketAddr) -> Option<(&'static str, String)> {
    let is_name = |host: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        !host.is_empty() && host.bytes().all(is_plain)
    };
    let Some(host) = host(head).filter(is_name) else {
        let advice = "send exactly one Host header, with the name of this server\n";
        return Some(("400 Bad Request", advice.into()));
    };
    if address.ip().is_loopback() && !is_own_name(host, address) {
        let advice = format!("this page is at http://{address}/metrics, under no other name\n");
        return Some(("421 Misdirected Request", advice));
    }
    if !head.starts_with(b"GET /metrics ") {
        return Some(("404 Not Found", "metrics are at /metrics\n".into()));
    }
    None
}

/// The value of the only `Host` header. `None` if there is no such header or more than one, or if
/// it is malformed.
fn host(head: &[u8]) -> Option<&str> {
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':')?);
        name.trim_ascii().eq_ignore_ascii_case(b"host").then_some((name, value))
    });
    let (name, value) = hosts.next()?;
    // A header name has no blanks around it. A line with blanks before the name may continue the
    // previous line (RFC 9112).
    let is_only = hosts.next().is_none() && name.len() == "host".len();
    is_only.then(|| str::from_utf8(value[1..].trim_ascii()).ok()).flatten()
}

/// Reads one HTTP request from a connection, and answers it. Gives no answer if the request is too
/// long, late or incomplete.
fn answer(
    mut stream: TcpStream,
    address: SocketAddr,
    page: &impl Fn() -> String,
) -> io::Result<()> {
    let asking = Stopwatch::start();
    stream.set_write_timeout(Some(ASK_WITHIN))?;
    let (mut request, mut read) = ([0; REQUEST_BYTES_MAX], 0);
    // The head of a request ends with an empty line.
    let end = loop {
        if let Some(end) = request[..read].windows(4).position(|end| end == b"\r\n\r\n") {
            break end;
        }
        if read == request.len() {
            return Ok(());
        }
        let left = ASK_WITHIN.saturating_sub(asking.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut request[read..])? {
            0 => return Ok(()),
            bytes => read += bytes,
        }
    };
    let refused = refusal(&request[..end], address);
    let (status, body) = refused.unwrap_or_else(|| ("200 OK", page()));
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_this_machine_answers_under_its_own_name_alone() {
        let status = |headers: &str, address: &str| {
            let head = format!("GET /metrics HTTP/1.1\r\n{headers}");
            refusal(head.as_bytes(), address.parse().unwrap()).map(|(status, _)| &status[..3])
        };
        let here = "127.0.0.1:9411";
        for own in ["Host: 127.0.0.1:9411", "hOST:LocalHost:9411\r\nAccept: */*"] {
            assert_eq!(status(own, here), None, "{own:?}");
        }
        for foreign in ["Host: evil.example:9411", "host: 127.0.0.1:80", "Host: 127.0.0.1"] {
            assert_eq!(status(foreign, here), Some("421"), "{foreign:?}");
        }
        let beyond = "192.0.2.7:9411";
        assert_eq!(status("Host: store.example:9411", beyond), None);
        for (malformed, own) in [
            ("", ""),
            ("Accept: */*", ""),
            ("Host:", ""),
            ("Host", "127.0.0.1:9411"),
            ("Host: a\r\nHost : ", "127.0.0.1:9411"),
            ("Host : ", "127.0.0.1:9411"),
            ("X: a\r\n Host: ", "127.0.0.1:9411"),
            ("Host: 127.0.0.1:9411\r\nhost: ", "127.0.0.1:9411"),
            ("Host: evil.example@", "127.0.0.1:9411"),
            ("Host: evil.example/ ", "127.0.0.1:9411"),
        ] {
            let headers = format!("{malformed}{own}");
            assert_eq!(status(&headers, here), Some("400"), "{headers:?}");
            assert_eq!(status(&headers, beyond), Some("400"), "{headers:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_request_are_refused() {
        let here = "127.0.0.1:9411".parse().unwrap();
        let head = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9411";
        assert!(refusal(head, here).is_none());
        for at in 0..head.len() {
            assert!(refusal(&head[..at], here).is_some(), "{at}");
        }
        // The host name, with any of its bytes changed.
        for at in head.len() - "127.0.0.1:9411".len()..head.len() {
            for byte in [0, b'\r', b'\n', b'x', 0x80, 0xff] {
                let mut changed = head.to_vec();
                changed[at] = byte;
                assert!(refusal(&changed, here).is_some(), "{at} {byte}");
            }
        }
    }
}
