//! How a bucket server is reached: its address, its key, and the client's own.

use std::io;
use std::path::Path;
use std::time::Duration;

use oblivio_wire::keys::{PublicKey, SecretKey};
use oblivio_wire::link::Link;
use oblivio_wire::tls::{Caller, reach};

use crate::error::{OpenError, OpenErrorKind};
use crate::remote::Dial;
use crate::remote_place::RemotePlace;

/// Reaches one server through TLS, again after each lost link.
#[derive(Clone)]
pub struct TlsDial {
    host: String,
    port: u16,
    caller: Caller,
}

/// What reaches the server of a place.
///
/// # Errors
/// When the client's key cannot be read.
pub(crate) fn dial(place: &RemotePlace) -> Result<Box<dyn Dial>, OpenError> {
    let key = secret_key(place.key())?;
    Ok(Box::new(TlsDial::new(&key, place.host(), place.port(), place.server())?))
}

/// Reads the private key of a client.
///
/// # Errors
/// [`NoCredential`](OpenErrorKind::NoCredential).
pub fn secret_key(path: &Path) -> Result<SecretKey, OpenError> {
    SecretKey::read(path)
        .map_err(|error| OpenError::new(OpenErrorKind::NoCredential, error.to_string()))
}

impl TlsDial {
    /// Reaches the server that has this key, with the key of the client.
    ///
    /// # Errors
    /// When the client's key cannot be used.
    pub fn new(
        key: &SecretKey,
        host: &str,
        port: u16,
        server: PublicKey,
    ) -> Result<Self, OpenError> {
        let caller = Caller::new(key, server)
            .map_err(|cause| OpenError::io("use the client's key", cause))?;
        Ok(Self { host: host.to_owned(), port, caller })
    }
}

impl Dial for TlsDial {
    fn dial(&mut self, within: Duration) -> io::Result<Link> {
        let Self { host, port, caller } = self;
        reach((&**host, *port), within, |stream, left| caller.call(stream, left))
    }
}
