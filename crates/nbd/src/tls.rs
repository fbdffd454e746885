//! The TLS configuration, from certificate and key files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use zeroize::Zeroizing;

use super::{ServeError, TlsFiles};

/// The maximum size of an accepted file in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Builds the TLS acceptor of a server.
pub(super) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServeError> {
    let provider = Arc::new(ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(unusable(&files.certificate))?;
    let server = match &files.client_authorities {
        None => server.with_no_client_auth(),
        Some(path) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(authorities(path)?), provider);
            server.with_client_cert_verifier(verifier.build().map_err(unusable(path))?)
        }
    };
    let config = server
        .with_single_cert(certificates(&files.certificate)?, key(&files.key)?)
        .map_err(unusable(&files.certificate))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn authorities(path: &Path) -> Result<RootCertStore, ServeError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store.add(certificate).map_err(unusable(path))?;
    }
    Ok(store)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let bytes = read(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let certificates = certificates.map_err(unusable(path))?;
    if certificates.is_empty() {
        return Err(unusable(path)("the file contains no certificate in PEM format"));
    }
    Ok(certificates)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, ServeError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(unusable(path))
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, ServeError> {
    let bytes = fs::metadata(path).map_err(unusable(path))?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(unusable(path)("the file is too large for certificates or a key"));
    }
    fs::read(path).map(Zeroizing::new).map_err(unusable(path))
}

fn unusable<E: ToString>(path: &Path) -> impl Fn(E) -> ServeError {
    move |problem| ServeError::Tls(path.to_owned(), problem.to_string())
}
