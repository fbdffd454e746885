//! Adapts the simulated connections of the world to the link traits of client and server.

use std::io::{self, Read, Write};
use std::time::Duration;

use oblivio_testkit::crash::LineEnd;
use oblivio_wire::link::{Link, LinkReader, LinkWriter};

/// The end of a connection that a link serves: the client's (`Calls`) or the server's (`IsCalled`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Calls,
    IsCalled,
}

pub(super) fn link(end: LineEnd, role: Role) -> Link {
    let reader = Box::new(Reader { end: end.clone(), within: None });
    Link { reader, writer: Box::new(Writer { end, role }) }
}

struct Reader {
    end: LineEnd,
    within: Option<Duration>,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.end.read(buffer, self.within)
    }
}

impl LinkReader for Reader {
    fn limit(&mut self, within: Option<Duration>) -> io::Result<()> {
        self.within = within;
        Ok(())
    }

    fn close(&mut self) {
        self.end.stop_reading();
    }
}

struct Writer {
    end: LineEnd,
    role: Role,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.end.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.role == Role::Calls {
            self.end.wait_until_idle();
        }
        Ok(())
    }
}

impl LinkWriter for Writer {
    fn close(&mut self) {
        self.end.cut();
    }
}
