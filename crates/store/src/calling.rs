//! How a bucket server is reached: its address, its key, and the client's own.

use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use oblivio_wire::keys::SecretKey;
use oblivio_wire::link::{Link, Moment};
use oblivio_wire::tls::Caller;

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
    /// Each of the server's addresses has as long.
    fn dial(&mut self, within: Duration) -> io::Result<Link> {
        let Self { host, port, caller } = self;
        let mut failure = io::Error::new(ErrorKind::NotFound, "the server has no address");
        for address in (&**host, *port).to_socket_addrs()? {
            let until = Moment::now().after(within);
            let called = TcpStream::connect_timeout(&address, within).and_then(|stream| {
                let left = until.left().ok_or(ErrorKind::TimedOut)?;
                caller.call(stream, left)
            });
            match called {
                Ok(link) => return Ok(link),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}
