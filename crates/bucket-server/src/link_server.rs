//! A server of one client over existing links, without sockets or TLS. Crash tests use it with
//! simulated disks.

use std::net::Shutdown;
use std::sync::Arc;

use oblivio_wire::link::Link;

use super::admission::{Ends, Kind};
use super::connection::Connection;
use super::place::Shelving;
use super::service::Service;
use super::shelf::Shelf;
use super::{BucketLimits, BucketServerError};

/// Serves links, each on the caller's thread.
pub struct LinkServer {
    service: Service,
    shelf: Shelf,
    client: Arc<str>,
}

/// The caller ends the link itself.
struct EndedElsewhere;

impl Ends for EndedElsewhere {
    fn end(&self, _: Shutdown) {}
}

impl LinkServer {
    /// Keeps the volumes of its client in `places`.
    ///
    /// # Errors
    /// If the limits are unusable, or the system provides no random numbers.
    pub fn new(places: Box<dyn Shelving>, limits: BucketLimits) -> Result<Self, BucketServerError> {
        let service = Service::new(limits, None)?;
        let shelf = Shelf::new(places, None, None, &service.limits);
        Ok(Self { service, shelf, client: "client".into() })
    }

    /// Serves a link until it ends or a request is refused. Returns at once if no seat is free.
    pub fn serve(&self, link: Link) {
        let Self { service, shelf, client } = self;
        let Some(thread) = service.admission.thread() else { return };
        let number = thread.number;
        service.admission.stranger(number, Box::new(EndedElsewhere), &service.metrics.not_let_in);
        if let Ok(seat) = service.admission.is_known(number, client, Kind::Client)
            && let Err(ended) = Connection::new(service, shelf, link, seat, number).serve()
        {
            tracing::debug!(connection = number, ?ended, "a connection ended early");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor, Read, Sink, Write};
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use oblivio_wire::link::{LinkReader, LinkWriter};
    use oblivio_wire::message::VERSION;
    use oblivio_wire::{Request, frame};

    use super::*;
    use crate::place::ClientFolder;

    /// Sends a hello and then nothing, and reports the buffers in use meanwhile.
    struct Silent(&'static LinkServer, Cursor<Vec<u8>>, Sender<usize>);

    impl Read for Silent {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let said = self.1.read(buffer)?;
            if said == 0 {
                let _ = self.2.send(self.0.service.buffers.in_use());
            }
            Ok(said)
        }
    }

    impl LinkReader for Silent {
        fn limit(&mut self, _: Option<Duration>) -> io::Result<()> {
            Ok(())
        }
        fn close(&mut self) {}
    }

    struct Nobody(Sink);

    impl Write for Nobody {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl LinkWriter for Nobody {
        fn close(&mut self) {}
    }

    #[test]
    fn a_silent_connection_holds_no_buffer() {
        let folder = tempfile::tempdir().unwrap();
        let places = Box::new(ClientFolder(folder.path().into()));
        let server: &'static _ =
            Box::leak(Box::new(LinkServer::new(places, BucketLimits::default()).unwrap()));
        server.service.buffers.take().extend([0; 1000]);
        let mut hello = Vec::new();
        frame::send(&mut hello, &Request::Hello { version: VERSION }.encode()).unwrap();
        let (tell, told) = channel();
        let reader = Box::new(Silent(server, Cursor::new(hello), tell));
        server.serve(Link { reader, writer: Box::new(Nobody(io::sink())) });
        assert_eq!(told.iter().collect::<Vec<_>>(), [0]);
    }
}
