//! TLS, with certificates generated for each test.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oblivio_nbd::{Listen, NbdOptions, ServeError, TlsFiles, TlsMode, serve};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use tempfile::TempDir;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::client::{
    ACK, Client, EXPORT_NAME, FLUSH, GO, INFO, INVALID, LIST, STARTTLS, STRUCTURED_REPLY, TLS_REQD,
    UNSUP, export_query, request,
};
use super::disk::MemoryDisk;
use super::tools::{run, try_run};
use super::{DISK_BYTES, TestServer, foreign};

/// A folder with an authority, and with certificates that it signed for a server and a client. The
/// file names are those that libnbd and qemu expect.
pub(crate) struct Certificates(TempDir);

impl Certificates {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(folder.path().join("ca-cert.pem"), authority.pem()).unwrap();
        for (role, purpose) in [
            ("server", ExtendedKeyUsagePurpose::ServerAuth),
            ("client", ExtendedKeyUsagePurpose::ClientAuth),
        ] {
            let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
            let mut params = CertificateParams::new(names).unwrap();
            params.extended_key_usages = vec![purpose];
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            let key = KeyPair::generate().unwrap();
            let certificate = params.signed_by(&key, &authority).unwrap();
            fs::write(folder.path().join(format!("{role}-cert.pem")), certificate.pem()).unwrap();
            fs::write(folder.path().join(format!("{role}-key.pem")), key.serialize_pem()).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn files(&self) -> TlsFiles {
        TlsFiles {
            certificate: self.path("server-cert.pem"),
            key: self.path("server-key.pem"),
            client_authorities: None,
        }
    }

    pub(crate) fn files_for_known_clients(&self) -> TlsFiles {
        TlsFiles { client_authorities: Some(self.path("ca-cert.pem")), ..self.files() }
    }

    /// Returns a TLS client that trusts the authority.
    fn session(&self) -> rustls::ClientConnection {
        self.session_of(|config| config.with_no_client_auth())
    }

    /// Connects an authenticated client that has not chosen an export yet.
    pub(crate) fn known_client(&self, socket: &Path) -> Client<impl Read + Write + use<>> {
        let certificate = CertificateDer::from_pem_file(self.path("client-cert.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.path("client-key.pem")).unwrap();
        let session =
            self.session_of(|config| config.with_client_auth_cert(vec![certificate], key).unwrap());
        let mut client = Client::connect(socket);
        client.say_option(STARTTLS, b"");
        assert_eq!(client.hear_option_reply(STARTTLS), (ACK, vec![]));
        let mut known = Client { stream: rustls::StreamOwned::new(session, client.stream) };
        // A reply under TLS means that the server has verified the certificate.
        known.say_option(99, b"");
        assert_eq!(known.hear_option_reply(99), (UNSUP, vec![]));
        known
    }

    fn session_of(
        &self,
        with_client_auth: impl FnOnce(
            rustls::ConfigBuilder<rustls::ClientConfig, rustls::client::WantsClientCert>,
        ) -> rustls::ClientConfig,
    ) -> rustls::ClientConnection {
        let mut authorities = rustls::RootCertStore::empty();
        authorities.add(CertificateDer::from_pem_file(self.path("ca-cert.pem")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(authorities);
        let name = "localhost".try_into().unwrap();
        let config = with_client_auth(config);
        rustls::ClientConnection::new(Arc::new(config), name).unwrap()
    }

    /// Returns a folder with the same authority, but no client certificate.
    fn without_client(&self) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(self.path("ca-cert.pem"), folder.path().join("ca-cert.pem")).unwrap();
        folder
    }
}

fn server(tls: TlsMode) -> TestServer {
    let options = NbdOptions { tls, ..NbdOptions::default() };
    TestServer::start(MemoryDisk::new(DISK_BYTES, 4), options)
}

/// The server's URI, including the folder of the client's certificates.
fn secure_uri(server: &TestServer, trusted: &Path) -> String {
    let (socket, trusted) = (server.socket(), trusted.display());
    format!("nbds+unix:///?socket={}&tls-certificates={trusted}", socket.display())
}

#[test]
fn data_round_trip_under_tls() {
    let certificates = Certificates::new();
    let server = server(TlsMode::Required(certificates.files()));
    assert!(server.handle.uri().starts_with("nbds+unix:///"));
    let (uri, image) = (secure_uri(&server, certificates.0.path()), foreign::image(5));
    assert_eq!(run("nbdinfo", &["--size", &uri]).trim(), DISK_BYTES.to_string());
    let (from, to) = (certificates.path("image"), certificates.path("copy"));
    fs::write(&from, &image).unwrap();
    run("nbdcopy", &["--connections=2", from.to_str().unwrap(), &uri]);
    assert!(server.disk.contents() == image);
    run("nbdcopy", &["--connections=2", &uri, to.to_str().unwrap()]);
    assert!(fs::read(&to).unwrap() == image);
}

#[test]
fn tls_works_over_tcp_with_a_host_name() {
    let certificates = Certificates::new();
    let options =
        NbdOptions { tls: TlsMode::Required(certificates.files()), ..NbdOptions::default() };
    let disk = std::sync::Arc::new(MemoryDisk::new(DISK_BYTES, 1));
    let server = serve(disk, Listen::Tcp("127.0.0.1:0".parse().unwrap()), options).unwrap();
    let uri = server.uri().replace("127.0.0.1", "localhost");
    let uri = format!("{uri}?tls-certificates={}", certificates.0.path().display());
    assert_eq!(run("nbdinfo", &["--size", &uri]).trim(), DISK_BYTES.to_string());
}

#[test]
fn qemu_speaks_tls() {
    let certificates = Certificates::new();
    let server = server(TlsMode::Required(certificates.files_for_known_clients()));
    let folder = certificates.0.path().display();
    let credentials = format!("tls-creds-x509,id=tls0,endpoint=client,dir={folder}");
    let image = format!(
        "driver=nbd,server.type=unix,server.path={},tls-creds=tls0,tls-hostname=localhost",
        server.socket().display()
    );
    run("qemu-img", &["info", "--object", &credentials, "--image-opts", &image]);
}

#[test]
fn offered_tls_is_optional() {
    let certificates = Certificates::new();
    let server = server(TlsMode::Offered(certificates.files()));
    run("nbdinfo", &["--size", &server.handle.uri()]);
    run("nbdinfo", &["--size", &secure_uri(&server, certificates.0.path())]);
}

#[test]
fn required_tls_comes_before_everything_else() {
    let certificates = Certificates::new();
    let server = server(TlsMode::Required(certificates.files()));
    let mut client = Client::connect(&server.socket());
    let query = export_query(b"", &[]);
    for (code, data) in
        [(LIST, &[][..]), (INFO, &query), (GO, &query), (STRUCTURED_REPLY, &[]), (99, &[])]
    {
        client.say_option(code, data);
        assert_eq!(client.hear_option_reply(code), (TLS_REQD, vec![]));
    }
    client.say_option(1, b"");
    client.assert_closed();
    let plain = format!("nbd+unix:///?socket={}", server.socket().display());
    assert!(!try_run("nbdinfo", &[&plain]).status.success());
}

#[test]
fn a_client_without_a_trusted_certificate_is_refused() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let server = server(TlsMode::Required(certificates.files_for_known_clients()));
    run("nbdinfo", &["--size", &secure_uri(&server, certificates.0.path())]);
    let unknown = certificates.without_client();
    assert!(!try_run("nbdinfo", &[&secure_uri(&server, unknown.path())]).status.success());
    // A client that trusts the server, but whose certificate is signed by another authority.
    for name in ["client-cert.pem", "client-key.pem"] {
        fs::copy(others.path(name), unknown.path().join(name)).unwrap();
    }
    assert!(!try_run("nbdinfo", &[&secure_uri(&server, unknown.path())]).status.success());
}

#[test]
fn clear_text_after_starttls_is_ignored() {
    let certificates = Certificates::new();
    let server = server(TlsMode::Required(certificates.files()));
    let mut client = Client::connect(&server.socket());
    let go = super::client::option(GO, &export_query(b"", &[]));
    client.say(&[super::client::option(STARTTLS, b""), go].concat());
    assert_eq!(client.hear_option_reply(STARTTLS), (ACK, vec![]));
    // The server sends a TLS alert and ends the connection, without a reply to the option.
    let rest = client.hear_to_the_end();
    assert!(!rest.windows(8).any(|bytes| bytes == 0x3e889045565a9_u64.to_be_bytes()));
}

/// The padding flag that a client sends before TLS still holds under TLS. Without the flag, the
/// client expects padding.
#[test]
fn the_clients_padding_flag_holds_under_tls() {
    let certificates = Certificates::new();
    let server = server(TlsMode::Required(certificates.files()));
    for (flags, padding) in [(1_u32, 124), (3, 0)] {
        let mut client = Client::connect_silently(&server.socket());
        client.say(&flags.to_be_bytes());
        client.say_option(STARTTLS, b"");
        assert_eq!(client.hear_option_reply(STARTTLS), (ACK, vec![]));
        let mut session = certificates.session();
        let mut stream = rustls::Stream::new(&mut session, &mut client.stream);
        stream.write_all(&super::client::option(EXPORT_NAME, b"")).unwrap();
        let mut export = vec![0; 8 + 2 + padding];
        stream.read_exact(&mut export).unwrap();
        assert_eq!(export[..8], DISK_BYTES.to_be_bytes());
        assert!(export[10..].iter().all(|byte| *byte == 0));
        // The next bytes are the reply to a request, not padding.
        stream.write_all(&request(0, FLUSH, 77, 0, 0)).unwrap();
        let mut reply = [0; 16];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(reply[..4], 0x6744_6698_u32.to_be_bytes());
    }
}

#[test]
fn starttls_has_no_data() {
    let certificates = Certificates::new();
    let server = server(TlsMode::Required(certificates.files()));
    let mut client = Client::connect(&server.socket());
    client.say_option(STARTTLS, b"data");
    assert_eq!(client.hear_option_reply(STARTTLS), (INVALID, vec![]));
}

#[test]
fn unusable_files_are_named() {
    let certificates = Certificates::new();
    let empty = certificates.path("empty");
    fs::write(&empty, "").unwrap();
    let files = certificates.files();
    let missing = certificates.path("missing");
    for (files, culprit) in [
        (TlsFiles { certificate: missing.clone(), ..files.clone() }, &missing),
        (TlsFiles { certificate: empty.clone(), ..files.clone() }, &empty),
        (TlsFiles { key: empty.clone(), ..files.clone() }, &empty),
        (TlsFiles { client_authorities: Some(empty.clone()), ..files.clone() }, &empty),
        (
            TlsFiles { key: certificates.path("client-key.pem"), ..files.clone() },
            &files.certificate,
        ),
    ] {
        let options = NbdOptions { tls: TlsMode::Offered(files), ..NbdOptions::default() };
        let listen = Listen::Unix(certificates.path("nbd.sock"));
        let disk = std::sync::Arc::new(MemoryDisk::new(DISK_BYTES, 1));
        match serve(disk, listen, options).err() {
            Some(ServeError::Tls(path, _)) => assert_eq!(path, *culprit),
            other => panic!("{other:?}"),
        }
    }
}
