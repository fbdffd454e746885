//! TLS links to servers with certificates, and links without TLS: for services that do not know the
//! keys of this project.

use std::io::{self, ErrorKind};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::link::{Link, LinkReader, LinkWriter, MonotonicTime};
use crate::tls::{Sends, provider, shake_hands, unusable};

/// The TLS configuration of a client that trusts certificate authorities. The client itself has no
/// certificate.
#[derive(Clone)]
pub struct AuthorityTls(Arc<ClientConfig>);

impl AuthorityTls {
    /// Creates a configuration that trusts the certificates in a PEM file.
    ///
    /// # Errors
    /// If the file cannot be read or holds no usable certificate.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        let mut authorities = Vec::new();
        for certificate in CertificateDer::pem_file_iter(path).map_err(io::Error::other)? {
            authorities.push(certificate.map_err(io::Error::other)?);
        }
        Self::new(authorities)
    }

    /// Creates a configuration that trusts these certificates. Unusable ones are skipped.
    ///
    /// # Errors
    /// If no certificate is usable.
    pub fn new(authorities: Vec<CertificateDer<'static>>) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        if roots.add_parsable_certificates(authorities).0 == 0 {
            return Err(io::Error::new(ErrorKind::InvalidData, "no usable certificate"));
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        // A resumption ticket would link connections.
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }

    /// Performs the handshake with the server `host`, a DNS name or an IP address, within `within`.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] if the server has no valid certificate for its name;
    /// [`ErrorKind::InvalidInput`] if `host` is not a name; I/O errors of the link.
    pub fn handshake(&self, stream: TcpStream, host: &str, within: Duration) -> io::Result<Link> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
        let connection = ClientConnection::new(self.0.clone(), name).map_err(unusable)?;
        Ok(shake_hands(connection.into(), stream, within, Sends::BesideReading)?.0)
    }
}

/// Creates a link without TLS. `send_within` is the time limit of a write while the peer accepts no
/// bytes.
///
/// # Errors
/// I/O errors of the system.
pub fn plain_link(stream: TcpStream, send_within: Duration) -> io::Result<Link> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(send_within))?;
    let reader = PlainReader { stream: stream.try_clone()?, until: None };
    Ok(Link { reader: Box::new(reader), writer: Box::new(PlainWriter(stream)) })
}

struct PlainReader {
    stream: TcpStream,
    until: Option<MonotonicTime>,
}

impl io::Read for PlainReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(until) = self.until {
            self.stream.set_read_timeout(Some(until.left().ok_or(ErrorKind::TimedOut)?))?;
        }
        self.stream.read(buffer)
    }
}

impl LinkReader for PlainReader {
    fn limit(&mut self, within: Option<Duration>) -> io::Result<()> {
        self.until = within.map(|within| MonotonicTime::now().after(within));
        self.stream.set_read_timeout(None)
    }

    fn close(&mut self) {
        // The link may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

struct PlainWriter(TcpStream);

impl io::Write for PlainWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LinkWriter for PlainWriter {
    fn close(&mut self) {
        // The link may be closed already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}
