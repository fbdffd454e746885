//! What a browser does, byte by byte.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Long enough for a busy machine, short enough for a hanging test.
const PATIENCE: Duration = Duration::from_secs(60);

/// The page is shorter.
const ANSWER_BYTES_MAX: u64 = 100_000;

/// Nothing that a test waits for comes later.
const EVENTS_MAX: usize = 20_000;

/// Where a page is, or the way to it, taken apart.
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

    /// Goes the way that the owner was told, which can be gone once.
    pub(crate) fn enter(url: &str) -> Self {
        let told = Self::of(url);
        let answer = told.get(&format!("/{}/", told.token), &told.host());
        assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
        let location = answer.lines().find_map(|line| line.strip_prefix("location: /")).unwrap();
        Self { token: location.strip_suffix('/').unwrap().to_owned(), ..told }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Asks for a path with such headers. All that is answered, or the beginning of what does not end.
    pub(crate) fn get(&self, path: &str, headers: &str) -> String {
        self.try_get(path, headers).unwrap()
    }

    /// The same, or why there is no answer: the server may have no room for a connection.
    pub(crate) fn try_get(&self, path: &str, headers: &str) -> io::Result<String> {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.1\r\n{headers}\r\n")?;
        let mut answer = String::new();
        stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// As a browser says where it wants to go.
    pub(crate) fn host(&self) -> String {
        format!("Host: {}\r\n", self.socket)
    }
}

/// One who looks at the events.
pub(crate) struct Reader {
    pub(crate) head: String,
    stream: BufReader<TcpStream>,
    /// All bytes so far.
    pub(crate) heard: String,
}

/// An event: its name and what it says.
pub(crate) type Said = (String, Value);

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

    /// The next event, or `None` when there are no more.
    pub(crate) fn next(&mut self) -> Option<Said> {
        let (mut name, mut data) = (String::new(), None);
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            self.heard.push_str(&line);
            if let Some(said) = line.strip_prefix("event: ") {
                name = said.trim().to_owned();
            } else if let Some(said) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(said).unwrap());
            } else if line == "\n"
                && let Some(data) = data.take()
            {
                return Some((name, data));
            }
        }
    }

    /// The first event that is as wanted.
    pub(crate) fn until(&mut self, is_wanted: impl Fn(&str, &Value) -> bool) -> Said {
        for _ in 0..EVENTS_MAX {
            let (name, said) = self.next().expect("no more events came");
            if is_wanted(&name, &said) {
                return (name, said);
            }
        }
        panic!("what was waited for did not come");
    }
}
