//! Connects to a bucket server, given its address, its key, and the client's key.

use std::io;
use std::path::Path;
use std::time::Duration;

use oblivio_wire::keys::{PublicKey, SecretKey};
use oblivio_wire::link::Link;
use oblivio_wire::tls::{ClientTls, connect};

use crate::error::{OpenError, OpenErrorKind};
use crate::remote::Connector;
use crate::remote_location::RemoteLocation;

/// Opens TLS links to one server: the first link, and a new link after each lost one.
#[derive(Clone)]
pub struct TlsConnector {
    host: String,
    port: u16,
    client_tls: ClientTls,
}

/// Creates the connector for a server's location.
///
/// # Errors
/// If the client's key cannot be read or used.
pub(crate) fn connector_for(place: &RemoteLocation) -> Result<Box<dyn Connector>, OpenError> {
    let key = secret_key(place.key())?;
    Ok(Box::new(TlsConnector::new(&key, place.host(), place.port(), place.server())?))
}

/// Reads the private key of a client.
///
/// # Errors
/// [`NoCredential`](OpenErrorKind::NoCredential) if the key cannot be read.
pub fn secret_key(path: &Path) -> Result<SecretKey, OpenError> {
    SecretKey::read(path)
        .map_err(|error| OpenError::new(OpenErrorKind::NoCredential, error.to_string()))
}

impl TlsConnector {
    /// Creates a connector to a server. The server must have the public key `server`, and the
    /// client authenticates with its private key `key`.
    ///
    /// # Errors
    /// If the client's key is unusable.
    pub fn new(
        key: &SecretKey,
        host: &str,
        port: u16,
        server: PublicKey,
    ) -> Result<Self, OpenError> {
        let client_tls = ClientTls::new(key, server)
            .map_err(|cause| OpenError::io("use the client's key", cause))?;
        Ok(Self { host: host.to_owned(), port, client_tls })
    }
}

impl Connector for TlsConnector {
    fn connect(&mut self, within: Duration) -> io::Result<Link> {
        let Self { host, port, client_tls } = self;
        connect((&**host, *port), within, |stream, left| client_tls.handshake(stream, left))
    }
}
