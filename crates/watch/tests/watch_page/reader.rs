//! A minimal browser for tests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The timeout of an answer: long enough for a busy machine, short enough for a hanging test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum bytes of an answer: more than the page has.
const ANSWER_BYTES_MAX: u64 = 100_000;

/// Maximum number of events before the awaited one.
const EVENTS_MAX: usize = 20_000;

/// The parts of an address of the page, or of the one-time address.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) socket: SocketAddr,
    pub(crate) token: String,
}

impl Address {
    pub(crate) fn of(url: &str) -> Self {
        let rest = url.strip_prefix("http://").unwrap().strip_suffix('/').unwrap();
        let (socket, token) = rest.split_once('/').unwrap();
        Self { socket: socket.parse().unwrap(), token: token.to_owned() }
    }

    /// Opens the one-time address and follows its redirect.
    pub(crate) fn enter(url: &str) -> Self {
        let ticket_address = Self::of(url);
        let answer =
            ticket_address.get(&format!("/{}/", ticket_address.token), &ticket_address.host());
        assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
        let location = answer.lines().find_map(|line| line.strip_prefix("location: /")).unwrap();
        Self { token: location.strip_suffix('/').unwrap().to_owned(), ..ticket_address }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Gets `path` with these headers. Returns the whole response, or its beginning if it does not
    /// end.
    pub(crate) fn get(&self, path: &str, headers: &str) -> String {
        self.try_get(path, headers).unwrap()
    }

    /// Like [`Self::get`], but returns I/O errors: the server may refuse the connection.
    pub(crate) fn try_get(&self, path: &str, headers: &str) -> io::Result<String> {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.1\r\n{headers}\r\n")?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// The `Host` header that a browser would send.
    pub(crate) fn host(&self) -> String {
        format!("Host: {}\r\n", self.socket)
    }
}

/// A client that reads the events.
pub(crate) struct Reader {
    pub(crate) head: String,
    stream: BufReader<TcpStream>,
    /// All bytes received so far, as text.
    pub(crate) heard: String,
}

/// An event: its name and data.
pub(crate) type ServerEvent = (String, Value);

impl Reader {
    pub(crate) fn connect(address: &Address) -> Self {
        let mut stream = address.connect();
        let Address { token, .. } = address;
        write!(stream, "GET /{token}/events HTTP/1.1\r\n{}\r\n", address.host()).unwrap();
        let mut reader =
            Self { head: String::new(), stream: BufReader::new(stream), heard: String::new() };
        while !reader.head.ends_with("\r\n\r\n") {
            assert!(reader.stream.read_line(&mut reader.head).unwrap() > 0, "{}", reader.head);
        }
        reader
    }

    /// Returns the next event. `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<ServerEvent> {
        let (mut name, mut data) = (String::new(), None);
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            self.heard.push_str(&line);
            if let Some(text) = line.strip_prefix("event: ") {
                name = text.trim().to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(text).unwrap());
            } else if line == "\n"
                && let Some(data) = data.take()
            {
                return Some((name, data));
            }
        }
    }

    /// Returns the first event that satisfies `is_wanted`.
    pub(crate) fn until(&mut self, is_wanted: impl Fn(&str, &Value) -> bool) -> ServerEvent {
        for _ in 0..EVENTS_MAX {
            let (name, data) = self.next().expect("no more events came");
            if is_wanted(&name, &data) {
                return (name, data);
            }
        }
        panic!("the awaited event did not come");
    }
}
