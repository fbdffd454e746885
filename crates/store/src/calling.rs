//! How a bucket server is reached: its address, its key, and the client's own.

use std::io;
use std::time::Duration;

use oblivio_wire::keys::SecretKey;
use oblivio_wire::link::Link;
use oblivio_wire::tls::{Caller, reach};

use crate::error::{OpenError, OpenErrorKind};
use crate::remote::Dial;
use crate::remote_place::RemotePlace;

/// Calls one server, again and again.
struct Calling {
    host: String,
    port: u16,
    caller: Caller,
}

/// What reaches the server of a place.
///
/// # Errors
/// When the client's key cannot be read.
pub(crate) fn dial(place: &RemotePlace) -> Result<Box<dyn Dial>, OpenError> {
    let key = SecretKey::read(place.key())
        .map_err(|error| OpenError::new(OpenErrorKind::NoCredential, error.to_string()))?;
    let caller = Caller::new(&key, place.server())
        .map_err(|cause| OpenError::io("use the client's key", cause))?;
    Ok(Box::new(Calling { host: place.host().to_owned(), port: place.port(), caller }))
}

impl Dial for Calling {
    fn dial(&mut self, within: Duration) -> io::Result<Link> {
        let Self { host, port, caller } = self;
        reach((&**host, *port), within, |stream, left| caller.call(stream, left))
    }
}
