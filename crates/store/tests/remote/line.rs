//! Plain links over socket pairs, which can be cut at any byte.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use oblivio_wire::link::{Link, LinkReader, LinkWriter, MonotonicTime};

/// Creates a link, and the server's end of it. The link breaks after the numbers of bytes in `cut`.
pub(crate) fn line(cut: Cut) -> (Link, End) {
    let (near, far) = UnixStream::pair().unwrap();
    (link(near), End { stream: far, cut })
}

/// The number of bytes after which a link breaks, in each direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) to_server: usize,
    pub(crate) to_client: usize,
}

impl Cut {
    pub(crate) const NEVER: Self = Self { to_server: usize::MAX, to_client: usize::MAX };
}

pub(crate) fn link(stream: UnixStream) -> Link {
    let reader = Box::new(Reader { stream: stream.try_clone().unwrap(), until: None });
    Link { reader, writer: Box::new(Writer(stream)) }
}

struct Reader {
    stream: UnixStream,
    until: Option<MonotonicTime>,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = match self.until {
            Some(until) => Some(until.left().ok_or(ErrorKind::TimedOut)?),
            None => None,
        };
        self.stream.set_read_timeout(left)?;
        self.stream.read(buffer)
    }
}

impl LinkReader for Reader {
    fn limit(&mut self, within: Option<Duration>) -> io::Result<()> {
        self.until = within.map(|within| MonotonicTime::now().after(within));
        Ok(())
    }

    fn close(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

struct Writer(UnixStream);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LinkWriter for Writer {
    fn close(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// The server's end of a link.
pub(crate) struct End {
    stream: UnixStream,
    cut: Cut,
}

impl End {
    pub(crate) fn try_clone(&self) -> Self {
        Self { stream: self.stream.try_clone().unwrap(), cut: self.cut }
    }

    pub(crate) fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Read for End {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.cut.to_server);
        let bytes = self.stream.read(&mut buffer[..most])?;
        self.cut.to_server -= bytes;
        if self.cut.to_server == 0 {
            self.close();
        }
        Ok(bytes)
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = bytes.len().min(self.cut.to_client);
        let bytes = self.stream.write(&bytes[..most])?;
        self.cut.to_client -= bytes;
        if self.cut.to_client == 0 {
            self.close();
        }
        Ok(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
