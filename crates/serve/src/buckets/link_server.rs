//! The server of one client over links that are there already: without sockets, without TLS. So it can be tried in a world where
//! machines die, with the disks of that world.

use std::net::Shutdown;
use std::sync::Arc;

use oblivio_wire::link::Link;

use super::admission::Ends;
use super::connection::Connection;
use super::place::Shelving;
use super::service::Service;
use super::shelf::Shelf;
use super::{BucketLimits, BucketServerError};

/// Serves links, each on the thread that brings it.
pub struct LinkServer {
    service: Service,
    shelf: Shelf,
    client: Arc<str>,
}

/// Whoever has brought the link ends it.
struct EndedElsewhere;

impl Ends for EndedElsewhere {
    fn end(&self, _: Shutdown) {}
}

impl LinkServer {
    /// Keeps the volumes of its client there.
    ///
    /// # Errors
    /// When the limits cannot be used, or the system gives no random numbers.
    pub fn new(places: Box<dyn Shelving>, limits: BucketLimits) -> Result<Self, BucketServerError> {
        let service = Service::new(limits)?;
        let shelf = Shelf::new(places, None, &service.limits);
        Ok(Self { service, shelf, client: "client".into() })
    }

    /// Serves a link until it ends, or its client is refused something. Nobody is served who finds no room.
    pub fn serve(&self, link: Link) {
        let Self { service, shelf, client } = self;
        let Some(thread) = service.admission.thread() else { return };
        let number = thread.number;
        service.admission.stranger(number, Box::new(EndedElsewhere), &service.metrics.not_let_in);
        if let Some(seat) = service.admission.is_known(number, client)
            && let Err(ended) = Connection::new(service, shelf, link, seat, number).serve()
        {
            tracing::debug!(connection = number, ?ended, "a connection has ended early");
        }
    }
}
