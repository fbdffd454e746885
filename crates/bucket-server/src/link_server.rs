//! A server of one client over existing links, without sockets or TLS. Crash tests use it with
//! simulated disks.

use std::net::Shutdown;
use std::sync::Arc;

use oblivio_wire::link::Link;

use super::admission::{ClosableStream, Kind};
use super::client_volumes::ClientVolumes;
use super::connection::Connection;
use super::service::Service;
use super::volume_storage::VolumeCatalog;
use super::{BucketLimits, BucketServerError};

/// Serves clients over existing links, each on the caller's thread.
pub struct LinkServer {
    service: Service,
    volumes: ClientVolumes,
    client: Arc<str>,
}

/// A stream that the server does not close, because the caller closes it.
struct EndedByCaller;

impl ClosableStream for EndedByCaller {
    fn end(&self, _: Shutdown) {}
}

impl LinkServer {
    /// Creates a server for one client, with its volumes in `catalog`.
    ///
    /// # Errors
    /// If the limits are unusable, or the system provides no random numbers.
    pub fn new(
        catalog: Box<dyn VolumeCatalog>,
        limits: BucketLimits,
    ) -> Result<Self, BucketServerError> {
        let service = Service::new(limits, None)?;
        let volumes = ClientVolumes::new(catalog, None, None, &service.limits);
        Ok(Self { service, volumes, client: "client".into() })
    }

    /// Serves a link until the client ends it, the link fails, or a request is refused. Returns at
    /// once if no seat is free.
    pub fn serve(&self, link: Link) {
        let Self { service, volumes, client } = self;
        let Some(thread) = service.admission.thread() else { return };
        let number = thread.number;
        service.admission.begin_handshake(
            number,
            Box::new(EndedByCaller),
            &service.metrics.refused,
        );
        if let Ok(seat) = service.admission.admit(number, client, Kind::Client)
            && let Err(ended) = Connection::new(service, volumes, link, seat, number).serve()
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
    use crate::volume_storage::ClientFolder;

    /// A link on which the client sends a hello and then nothing. Reports the bytes of pooled
    /// buffers in use meanwhile.
    struct Silent(&'static LinkServer, Cursor<Vec<u8>>, Sender<usize>);

    impl Read for Silent {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.1.read(buffer)?;
            if bytes == 0 {
                let _ = self.2.send(self.0.service.buffers.in_use());
            }
            Ok(bytes)
        }
    }

    impl LinkReader for Silent {
        fn limit(&mut self, _: Option<Duration>) -> io::Result<()> {
            Ok(())
        }
        fn close(&mut self) {}
    }

    struct DiscardWriter(Sink);

    impl Write for DiscardWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl LinkWriter for DiscardWriter {
        fn close(&mut self) {}
    }

    #[test]
    fn a_silent_connection_holds_no_buffer() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Box::new(ClientFolder(folder.path().into()));
        let server: &'static _ =
            Box::leak(Box::new(LinkServer::new(catalog, BucketLimits::default()).unwrap()));
        server.service.buffers.take().extend([0; 1000]);
        let mut hello = Vec::new();
        frame::send(&mut hello, &Request::Hello { version: VERSION }.encode()).unwrap();
        let (sender, receiver) = channel();
        let reader = Box::new(Silent(server, Cursor::new(hello), sender));
        server.serve(Link { reader, writer: Box::new(DiscardWriter(io::sink())) });
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [0]);
    }
}
