//! Connects to a bucket server: its address, its key, and the client's key.

use std::io;
use std::path::Path;
use std::time::Duration;

use oblivio_wire::keys::{PublicKey, SecretKey};
use oblivio_wire::link::Link;
use oblivio_wire::tls::{Caller, reach};

use crate::error::{OpenError, OpenErrorKind};
use crate::remote::Dial;
use crate::remote_place::RemotePlace;

/// Connects to one server through TLS, also after a lost link.
#[derive(Clone)]
pub struct TlsDial {
    host: String,
    port: u16,
    caller: Caller,
}

/// The connector for a server's location.
///
/// # Errors
/// If the client's key cannot be read.
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
    /// Connects to the server with this public key, authenticated by the client's key.
    ///
    /// # Errors
    /// If the client's key is unusable.
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
