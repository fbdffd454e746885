//! An outgoing link to another server.

use std::io::{self, ErrorKind};
use std::net::TcpStream;

use oblivio_wire::link::Link;
use oblivio_wire::message::{DEAL_HEAD, MESSAGE_BYTES_MAX};
use oblivio_wire::{Answer, Failure, Request, frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::CONNECT_TIMEOUT;
use super::recent::DealtMessage;

/// A link on which this server is the client of another server.
pub(super) struct OutgoingLink {
    pub(super) link: Link,
    pub(super) stream: TcpStream,
}

impl OutgoingLink {
    pub(super) fn ask(&mut self, request: &Request, expected: &Answer) -> io::Result<()> {
        let Link { reader, writer } = &mut self.link;
        frame::send(writer, &request.encode())?;
        writer.flush()?;
        reader.limit(Some(CONNECT_TIMEOUT))?;
        let answer = frame::receive(reader, MESSAGE_BYTES_MAX)?.ok_or(ErrorKind::UnexpectedEof)?;
        match Answer::decode(&answer.into()) {
            Ok(answer) if answer == *expected => Ok(()),
            Ok(Answer::Failed(Failure { message, .. })) => Err(io::Error::new(
                ErrorKind::PermissionDenied,
                format!("the server says: {message:?}"),
            )),
            _ => {
                Err(io::Error::new(ErrorKind::InvalidData, "the server sent an unexpected answer"))
            }
        }
    }

    /// Whether the link is still usable, judged without waiting: the other server sends nothing
    /// more unless it disconnects.
    pub(super) fn is_usable(&self) -> bool {
        let mut events = [PollFd::new(&self.stream, PollFlags::IN)];
        poll(&mut events, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready == 0)
    }

    /// Sends messages. After an error the link is unusable.
    pub(super) fn send<'d>(
        mut self,
        dealt: impl IntoIterator<Item = &'d DealtMessage>,
    ) -> io::Result<Self> {
        for DealtMessage { message, .. } in dealt {
            frame::send_parts(&mut self.link.writer, &[&DEAL_HEAD, message])?;
            self.link.writer.flush()?;
        }
        Ok(self)
    }
}
