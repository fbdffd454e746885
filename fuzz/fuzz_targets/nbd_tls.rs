//! A session of an NBD client with a server that offers or requires TLS. The client either does not
//! use TLS, or completes the TLS handshake correctly.
//!
//! ```text
//! input = setup, bytes from the client
//! ```
//!
//! The session must end after the last byte from the client. If TLS is required and not used, the
//! disk must get no request. A client that chooses the export by name gets the padding that its
//! flags demand, also under TLS and after structured replies.
#![no_main]

#[path = "support/small_disk.rs"]
mod small_disk;

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use oblivio_nbd::{NbdOptions, Service, TlsFiles, TlsMode};
use small_disk::{DISK_BYTES, SmallDisk};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

const STARTTLS: &[u8] = b"IHAVEOPT\0\0\0\x05\0\0\0\0";
const STRUCTURED: &[u8] = b"IHAVEOPT\0\0\0\x08\0\0\0\0";
const EXPORT_NAME: &[u8] = b"IHAVEOPT\0\0\0\x01\0\0\0\0";

const GREETING_BYTES: usize = 18;
const OPTION_REPLY_BYTES: usize = 20;
const EXPORT_BYTES: usize = 10;
const PADDING_BYTES: usize = 124;

/// The properties of a session, one bit each.
struct Setup {
    tls_required: bool,
    speaks_tls: bool,
    structured: bool,
    by_name: bool,
    no_zeroes: bool,
}

impl Setup {
    fn from_bits(bits: u8) -> Self {
        let is_set = |bit: u8| bits >> bit & 1 == 1;
        Self {
            tls_required: is_set(0),
            speaks_tls: is_set(1),
            structured: is_set(2),
            by_name: is_set(3),
            no_zeroes: is_set(4),
        }
    }

    fn flags(&self) -> [u8; 4] {
        (1 | u32::from(self.no_zeroes) << 1).to_be_bytes()
    }

    /// Returns the bytes that the client sends before those from the fuzzer.
    fn beginning(&self) -> Vec<u8> {
        let structured = if self.structured { STRUCTURED } else { b"" };
        [structured, if self.by_name { EXPORT_NAME } else { b"" }].concat()
    }

    /// Checks the answer after the client has chosen the export by name: the size of the disk and
    /// the padding, and then only replies.
    fn check(&self, heard: &[u8]) {
        let heard = &heard[if self.structured { OPTION_REPLY_BYTES } else { 0 }..];
        let (bytes, heard) = heard.split_at(EXPORT_BYTES);
        assert_eq!(bytes[..8], (DISK_BYTES as u64).to_be_bytes());
        let padding = if self.no_zeroes { 0 } else { PADDING_BYTES };
        assert!(heard[..padding].iter().all(|byte| *byte == 0));
        // Only replies to requests may follow. They begin with a magic.
        assert!(heard.get(padding).is_none_or(|byte| [0x67, 0x66].contains(byte)));
    }
}

/// The servers, and a client that trusts them.
struct World {
    disk: Arc<SmallDisk>,
    offered: Service,
    required: Service,
    client: TlsConnector,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = TempDir::new().unwrap();
    let write = |name: &str, pem: String| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, pem).unwrap();
        path
    };
    let files = TlsFiles {
        certificate: write("certificate", key.cert.pem()),
        key: write("key", key.signing_key.serialize_pem()),
        client_authorities: None,
    };
    let disk = Arc::new(SmallDisk::default());
    let service = |tls| {
        let options = NbdOptions { tls, ..NbdOptions::default() };
        Service::new(disk.clone(), &options).unwrap()
    };
    let mut trusted = RootCertStore::empty();
    trusted.add(key.cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(trusted)
        .with_no_client_auth();
    World {
        offered: service(TlsMode::Offered(files.clone())),
        required: service(TlsMode::Required(files)),
        client: TlsConnector::from(Arc::new(config)),
        disk,
    }
});

fuzz_target!(|input: &[u8]| {
    let Some(([bits], sent)) = input.split_first_chunk() else { return };
    let (setup, world) = (Setup::from_bits(*bits), &*WORLD);
    let service = if setup.tls_required { &world.required } else { &world.offered };
    let before = world.disk.requests();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(1 << 10);
        let client = async {
            match setup.speaks_tls {
                true => speak_tls(&setup, near, sent).await,
                false => speak_in_clear(&setup, near, sent).await,
            }
        };
        // The server usually ends the session, often with an error.
        let _ = tokio::join!(service.serve(far), client);
    });
    if setup.tls_required && !setup.speaks_tls {
        assert_eq!(world.disk.requests(), before, "the disk got a request without TLS");
    }
});

async fn speak_in_clear(setup: &Setup, stream: DuplexStream, sent: &[u8]) {
    let sent = [&setup.flags(), &setup.beginning()[..], sent].concat();
    let heard = talk(stream, &sent).await;
    if setup.by_name && !setup.tls_required {
        setup.check(&heard[GREETING_BYTES..]);
    }
}

async fn speak_tls(setup: &Setup, mut stream: DuplexStream, sent: &[u8]) {
    stream.read_exact(&mut [0; GREETING_BYTES]).await.unwrap();
    stream.write_all(&[&setup.flags(), STARTTLS].concat()).await.unwrap();
    stream.read_exact(&mut [0; OPTION_REPLY_BYTES]).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let stream = WORLD.client.connect(name, stream).await.unwrap();
    let heard = talk(stream, &[&setup.beginning(), sent].concat()).await;
    if setup.by_name {
        setup.check(&heard);
    }
}

/// Sends `sent` and returns all bytes from the server, which may close the connection at any time.
async fn talk(stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite, sent: &[u8]) -> Vec<u8> {
    let (mut hear, mut say) = tokio::io::split(stream);
    let mut heard = Vec::new();
    let speak = async {
        // Writing fails if the server has closed the connection.
        let _ = say.write_all(sent).await;
        let _ = say.shutdown().await;
    };
    // Reading may fail, too: the server closes TLS without a notice after a protocol violation.
    let listen = async { drop(hear.read_to_end(&mut heard).await) };
    tokio::join!(speak, listen);
    heard
}
