//! A client that sends exactly the bytes of a test. It is written from the specification with its
//! own constants, and shares no code with the server.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use oblivio_testkit::memory_disk::PATIENCE;

pub(crate) const EXPORT_NAME: u32 = 1;
pub(crate) const LIST: u32 = 3;
pub(crate) const STARTTLS: u32 = 5;
pub(crate) const INFO: u32 = 6;
pub(crate) const GO: u32 = 7;
pub(crate) const STRUCTURED_REPLY: u32 = 8;

pub(crate) const ACK: u32 = 1;
pub(crate) const UNSUP: u32 = 0x8000_0001;
pub(crate) const POLICY: u32 = 0x8000_0002;
pub(crate) const INVALID: u32 = 0x8000_0003;
pub(crate) const TLS_REQD: u32 = 0x8000_0005;
pub(crate) const UNKNOWN: u32 = 0x8000_0006;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISC: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const WRITE_ZEROES: u16 = 6;

pub(crate) const FUA: u16 = 1;
pub(crate) const NO_HOLE: u16 = 2;
pub(crate) const DF: u16 = 4;
pub(crate) const FAST_ZERO: u16 = 16;

pub(crate) const EPERM: u32 = 1;
pub(crate) const EIO: u32 = 5;
pub(crate) const EINVAL: u32 = 22;
pub(crate) const ENOSPC: u32 = 28;
pub(crate) const ENOTSUP: u32 = 95;
pub(crate) const ESHUTDOWN: u32 = 108;

pub(crate) struct Client<S = UnixStream> {
    pub(crate) stream: S,
}

/// A server's reply to a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Simple { error: u32, cookie: u64 },
    Chunk { flags: u16, kind: u16, cookie: u64, payload: Vec<u8> },
}

impl Client {
    /// Connects. The client is then ready to send options.
    pub(crate) fn connect(socket: &Path) -> Self {
        let mut client = Self::connect_silently(socket);
        client.say(&3_u32.to_be_bytes());
        client
    }

    /// Connects and receives the greeting.
    pub(crate) fn connect_silently(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Self { stream };
        assert_eq!(client.hear(18), b"NBDMAGICIHAVEOPT\x00\x03");
        client
    }

    /// Connects and negotiates. The client is then ready for requests, with simple replies.
    pub(crate) fn ready(socket: &Path) -> Self {
        let mut client = Self::connect(socket);
        client.go();
        client
    }

    /// Connects and negotiates. The client is then ready for requests, with structured replies to
    /// reads.
    pub(crate) fn ready_structured(socket: &Path) -> Self {
        let mut client = Self::connect(socket);
        client.say_option(STRUCTURED_REPLY, b"");
        assert_eq!(client.hear_option_reply(STRUCTURED_REPLY), (ACK, vec![]));
        client.go();
        client
    }
}

impl<S: Read + Write> Client<S> {
    /// Chooses the default export.
    pub(crate) fn go(&mut self) {
        self.say_option(GO, &export_query(b"", &[]));
        while self.hear_option_reply(GO).0 != ACK {}
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn hear(&mut self, bytes: usize) -> Vec<u8> {
        let mut heard = vec![0; bytes];
        self.stream.read_exact(&mut heard).unwrap();
        heard
    }

    fn hear_number(&mut self, bytes: usize) -> u64 {
        self.hear(bytes).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Asserts that the server has closed the connection and sends nothing more.
    pub(crate) fn assert_closed(&mut self) {
        assert_eq!(self.hear_to_the_end(), b"");
    }

    /// Receives all bytes until the server closes the connection, even if the server has not read
    /// all of the client's bytes.
    pub(crate) fn hear_to_the_end(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        if let Err(error) = self.stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
        rest
    }

    pub(crate) fn say_option(&mut self, code: u32, data: &[u8]) {
        self.say(&option(code, data));
    }

    pub(crate) fn hear_option_reply(&mut self, code: u32) -> (u32, Vec<u8>) {
        assert_eq!(self.hear_number(8), 0x3e889045565a9);
        assert_eq!(self.hear_number(4), u64::from(code));
        let reply = self.hear_number(4) as u32;
        let bytes = self.hear_number(4) as usize;
        (reply, self.hear(bytes))
    }

    pub(crate) fn hear_reply(&mut self) -> Reply {
        match self.hear_number(4) {
            0x67446698 => {
                Reply::Simple { error: self.hear_number(4) as u32, cookie: self.hear_number(8) }
            }
            0x668e33ef => {
                let (flags, kind) = (self.hear_number(2) as u16, self.hear_number(2) as u16);
                let cookie = self.hear_number(8);
                let bytes = self.hear_number(4) as usize;
                Reply::Chunk { flags, kind, cookie, payload: self.hear(bytes) }
            }
            magic => panic!("unknown magic {magic:x} of a reply"),
        }
    }

    /// Sends a request and returns the error of its reply.
    pub(crate) fn call(&mut self, flags: u16, command: u16, offset: u64, bytes: u32) -> u32 {
        self.say(&request(flags, command, 77, offset, bytes));
        self.hear_error()
    }

    pub(crate) fn hear_error(&mut self) -> u32 {
        match self.hear_reply() {
            Reply::Simple { error, cookie: 77 } => error,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> u32 {
        self.say(&request(flags, WRITE, 77, offset, data.len() as u32));
        self.say(data);
        self.hear_error()
    }

    pub(crate) fn read(&mut self, offset: u64, bytes: u32) -> Vec<u8> {
        assert_eq!(self.call(0, READ, offset, bytes), 0);
        self.hear(bytes as usize)
    }
}

pub(crate) fn option(code: u32, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u32).to_be_bytes();
    [&b"IHAVEOPT"[..], &code.to_be_bytes(), &length, data].concat()
}

pub(crate) fn export_query(name: &[u8], infos: &[u16]) -> Vec<u8> {
    let infos_bytes: Vec<u8> = infos.iter().flat_map(|info| info.to_be_bytes()).collect();
    let (name_bytes, count) =
        ((name.len() as u32).to_be_bytes(), (infos.len() as u16).to_be_bytes());
    [&name_bytes[..], name, &count, &infos_bytes].concat()
}

pub(crate) fn request(flags: u16, command: u16, cookie: u64, offset: u64, bytes: u32) -> Vec<u8> {
    let mut request = 0x25609513_u32.to_be_bytes().to_vec();
    request.extend(flags.to_be_bytes());
    request.extend(command.to_be_bytes());
    request.extend(cookie.to_be_bytes());
    request.extend(offset.to_be_bytes());
    request.extend(bytes.to_be_bytes());
    request
}
