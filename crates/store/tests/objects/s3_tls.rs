//! S3 objects through TLS.

use std::sync::Arc;
use std::time::Duration;

use oblivio_core::StoreErrorKind;
use oblivio_store::objects::{Answer, ObjectName, Objects, S3Objects, S3Options};
use oblivio_store::{CloudLocation, CloudService};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

use crate::contract;
use crate::s3_server::{BUCKET, S3Server};

/// A server with a certificate for `localhost`, and the certificate in PEM form.
pub(crate) fn server_with_tls() -> (S3Server, String) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .unwrap();
    let server = S3Server::start_with(Some(TlsAcceptor::from(Arc::new(config))));
    (server, signed.cert.pem())
}

#[test]
fn only_a_service_with_a_trusted_certificate_is_used() {
    let (server, certificate) = server_with_tls();
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, certificate).unwrap();

    let open = |host: &str, more: &str| {
        let (port, credentials) = (server.address.port(), server.credentials());
        let credentials = credentials.display();
        let rest =
            format!("{BUCKET}/p?endpoint=https://{host}:{port}&credentials={credentials}{more}");
        let location = CloudLocation::parse(CloudService::S3, rest.as_bytes()).unwrap();
        let mut options = S3Options::default();
        options.retry_for = Duration::from_secs(1);
        S3Objects::open(&location, &options)
    };
    let name = ObjectName::Head(1);
    let mut objects = open("localhost", &format!("&ca={}", ca.display())).unwrap();
    assert_eq!(contract::create(&mut objects, name, &[b"abc"]), Answer::Created);
    assert_eq!(contract::get(&mut objects, name, 1..3), Answer::Bytes("bc".into()));

    // The certificate of another host, and one that an unknown authority has signed.
    let other_host = open("127.0.0.1", &format!("&ca={}", ca.display())).unwrap();
    for mut objects in [Ok(other_host), open("localhost", "")].into_iter().flatten() {
        let ticket = objects.begin_create(ObjectName::Head(2), Vec::new());
        let error = objects.wait(ticket).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }

    std::fs::write(&ca, "no certificate").unwrap();
    let error = open("localhost", &format!("&ca={}", ca.display())).map(drop).unwrap_err();
    assert!(error.to_string().contains("contains no certificate"), "{error}");
}
