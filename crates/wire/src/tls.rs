//! TLS 1.3 between peers that know each other's keys. There are no certificates and no authorities:
//! each side presents a raw public key (RFC 7250) and proves that it has the private key.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::mem;
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, Connection,
    DigitallySignedStruct, DistinguishedName, Error as TlsError, ServerConfig, ServerConnection,
    SignatureScheme,
};

use crate::keys::{PublicKey, SecretKey};
use crate::link::{Link, LinkReader, LinkWriter, MonotonicTime};

/// The TLS configuration of a client, for one server.
#[derive(Clone)]
pub struct ClientTls(Arc<ClientConfig>);

/// The TLS configuration of a server.
#[derive(Clone)]
pub struct ServerTls(Arc<ServerConfig>);

impl ClientTls {
    /// Creates the configuration for the client `me`, which accepts only a server with the key
    /// `server`.
    ///
    /// # Errors
    /// If the key is unusable.
    pub fn new(me: &SecretKey, server: PublicKey) -> io::Result<Self> {
        let provider = Arc::new(provider());
        let own = certified(me, &provider)?;
        let pinned =
            Arc::new(Pinned { keys: BTreeSet::from([server]), provider: provider.clone() });
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(pinned)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
        // Each link authenticates both keys, and a resumption ticket would link connections.
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }

    /// Performs the handshake as the client, within `within`. Then waits for the server to accept
    /// the client, again for at most `within`.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] if the server has another key or refuses this client; I/O
    /// errors of the link; `InvalidData` if the server's first byte is not its acceptance.
    pub fn handshake(&self, stream: TcpStream, within: Duration) -> io::Result<Link> {
        // The key identifies the server. The name is neither checked nor sent.
        let name = ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into());
        let connection = ClientConnection::new(self.0.clone(), name).map_err(unusable)?;
        let (mut link, _) = shake_hands(connection.into(), stream, within, Sends::BesideReading)?;
        // In TLS 1.3 a client finishes the handshake before the server has checked its key.
        let mut byte = [0];
        link.reader.limit(Some(within))?;
        link.reader.read_exact(&mut byte)?;
        link.reader.limit(None)?;
        match byte {
            [ADMITTED] => Ok(link),
            _ => {
                Err(io::Error::new(ErrorKind::InvalidData, "unexpected first byte from the server"))
            }
        }
    }
}

impl ServerTls {
    /// Creates the configuration for the server `me`, which accepts clients with one of the keys
    /// `clients`.
    ///
    /// # Errors
    /// If the key is unusable.
    pub fn new(me: &SecretKey, clients: impl IntoIterator<Item = PublicKey>) -> io::Result<Self> {
        let provider = Arc::new(provider());
        let own = certified(me, &provider)?;
        let keys = clients.into_iter().collect();
        let mut config = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(Arc::new(Pinned { keys, provider }))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
        config.send_tls13_tickets = 0;
        Ok(Self(Arc::new(config)))
    }

    /// Performs the handshake as the server, within `within`. Also returns the client's key.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] if the client's key is not allowed; I/O errors of the link.
    pub fn answer(&self, stream: TcpStream, within: Duration) -> io::Result<(Link, PublicKey)> {
        let connection = ServerConnection::new(self.0.clone()).map_err(unusable)?;
        let alert_stream = stream.try_clone()?;
        let handshake = shake_hands(connection.into(), stream, within, Sends::InTurn);
        let (mut link, peer) = handshake.inspect_err(|_| linger(&alert_stream))?;
        let peer = peer.ok_or_else(|| io::Error::from(ErrorKind::PermissionDenied))?;
        link.writer.write_all(&[ADMITTED])?;
        link.writer.flush()?;
        Ok((link, peer))
    }
}

/// The default provider with AES-128 first, because AES-256 takes a fifth longer. A key of 128 bits
/// suffices: buckets are also sealed, and for shares, queries and matrices, which only the link
/// protects, 128 bits are secure enough.
pub(crate) fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider
}

/// Connects to a server and runs `handshake`. Tries each address of the server until one succeeds.
/// Each address has `within` to connect; `handshake` receives the rest of this time.
///
/// # Errors
/// The error of the last address, or of resolving the host name.
pub fn connect<T>(
    server: impl ToSocketAddrs,
    within: Duration,
    mut handshake: impl FnMut(TcpStream, Duration) -> io::Result<T>,
) -> io::Result<T> {
    let mut failure = io::Error::new(ErrorKind::NotFound, "the server's host name has no address");
    for address in server.to_socket_addrs()? {
        let until = MonotonicTime::now().after(within);
        let connected = TcpStream::connect_timeout(&address, within).and_then(|stream| {
            let left = until.left().ok_or(ErrorKind::TimedOut)?;
            handshake(stream, left)
        });
        match connected {
            Ok(connected) => return Ok(connected),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn certified(me: &SecretKey, provider: &CryptoProvider) -> io::Result<Arc<CertifiedKey>> {
    let key = provider.key_provider.load_private_key(me.der()).map_err(unusable)?;
    Ok(Arc::new(CertifiedKey::new(vec![CertificateDer::from(me.public().spki())], key)))
}

pub(crate) fn unusable(error: TlsError) -> io::Error {
    io::Error::other(error)
}

/// Maps a TLS error to an I/O error.
fn broken(error: TlsError) -> io::Error {
    let kind = match error {
        TlsError::InvalidCertificate(_)
        | TlsError::NoCertificatesPresented
        | TlsError::AlertReceived(_) => ErrorKind::PermissionDenied,
        _ => ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}

/// Verifies that a peer has one of the keys `keys`.
#[derive(Debug)]
struct Pinned {
    keys: BTreeSet<PublicKey>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn check(&self, spki: &CertificateDer<'_>) -> Result<(), TlsError> {
        let is_known = PublicKey::from_spki(spki).is_some_and(|key| self.keys.contains(&key));
        let unknown = CertificateError::ApplicationVerificationFailure;
        is_known.then_some(()).ok_or(TlsError::InvalidCertificate(unknown))
    }
}

/// Defines the methods that the verifiers of servers and of clients share.
macro_rules! verify_raw_keys {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, TlsError> {
            Err(TlsError::General("only TLS 1.3 is supported".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            spki: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, TlsError> {
            let key = SubjectPublicKeyInfoDer::from(&**spki);
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        self.check(key).map(|()| ServerCertVerified::assertion())
    }

    verify_raw_keys!();
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        self.check(key).map(|()| ClientCertVerified::assertion())
    }

    verify_raw_keys!();
}

/// The first byte that a server sends after the handshake. It means that the server accepts the
/// client.
const ADMITTED: u8 = 0;

/// Timeout of a write to the socket while the peer accepts no bytes.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that a refused client has to read the TLS alert.
const ALERT_TIMEOUT: Duration = Duration::from_millis(200);

/// Ends a stream so that the peer can still read the alert. Closing a socket with unread bytes
/// would send a reset, which discards the alert.
fn linger(mut stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(ALERT_TIMEOUT));
    let mut unread = [0; 4096];
    let until = MonotonicTime::now().after(ALERT_TIMEOUT);
    while until.left().is_some() && stream.read(&mut unread).unwrap_or(0) > 0 {}
}

/// Maximum number of bytes per read from the socket.
const READ_BYTES: usize = 256 << 10;

/// Maximum number of bytes of plaintext that are encrypted before they are sent.
const WRITE_BYTES: usize = 256 << 10;

pub(crate) fn shake_hands(
    mut connection: Connection,
    stream: TcpStream,
    within: Duration,
    sends: Sends,
) -> io::Result<(Link, Option<PublicKey>)> {
    stream.set_nodelay(true)?;
    // A peer that takes no bytes for this long is considered lost.
    stream.set_write_timeout(Some(SEND_TIMEOUT))?;
    // [`TlsWriter`] itself keeps to [`WRITE_BYTES`].
    connection.set_buffer_limit(None);
    let shared = Arc::new(Shared {
        connection: Mutex::new(connection),
        sender: Mutex::new(Sender { stream: stream.try_clone()?, sends, records: Vec::new() }),
    });
    let buffer = vec![0; READ_BYTES].into();
    let mut reader =
        TlsReader { stream, shared: shared.clone(), until: None, buffer, received: 0, taken: 0 };
    reader.limit(Some(within))?;
    while shared.connection().is_handshaking() {
        shared.send_pending(&mut shared.sender(), 0)?;
        if shared.connection().is_handshaking() && !reader.receive()? {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    shared.send_pending(&mut shared.sender(), 0)?;
    reader.limit(None)?;
    let peer = shared.connection().peer_certificates().and_then(|shown| shown.first().cloned());
    let peer = peer.and_then(|key| PublicKey::from_spki(&key));
    let writer = TlsWriter { shared, unsent: 0 };
    Ok((Link { reader: Box::new(reader), writer: Box::new(writer) }, peer))
}

/// The state that both halves of a link use. Lock order: `sender` before `connection`.
struct Shared {
    connection: Mutex<Connection>,
    sender: Mutex<Sender>,
}

struct Sender {
    stream: TcpStream,
    sends: Sends,
    /// A copy of the encrypted records that a thread is sending. It is a field so that its memory
    /// is reused.
    records: Vec<u8>,
}

/// How encrypted records are written to the socket.
#[derive(Clone, Copy)]
pub(crate) enum Sends {
    /// Writes from a copy: another thread can read while the socket blocks.
    BesideReading,
    /// Writes from the TLS buffer: another thread cannot read while the socket blocks. For a side
    /// that reads and sends in one thread. At most one end of a link may use this: if both blocked
    /// in a write, neither would read.
    InTurn,
}

impl Shared {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(&self) -> MutexGuard<'_, Sender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends pending records: `bytes` bytes of plaintext, and messages of TLS itself.
    fn send_pending(&self, sender: &mut Sender, bytes: usize) -> io::Result<()> {
        match sender.sends {
            Sends::BesideReading => self.send_a_copy(sender, bytes),
            Sends::InTurn => self.send_in_place(&mut sender.stream),
        }
    }

    fn send_in_place(&self, stream: &mut TcpStream) -> io::Result<()> {
        let mut connection = self.connection();
        while connection.wants_write() {
            match connection.write_tls(stream) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                Ok(_) | Err(_) => (),
            }
        }
        Ok(())
    }

    fn send_a_copy(&self, sender: &mut Sender, bytes: usize) -> io::Result<()> {
        let Sender { stream, records, .. } = sender;
        records.clear();
        // Includes the overhead of each record. Without it, the vector would grow to twice the
        // size.
        records.reserve_exact(bytes + bytes / 512 + 1024);
        let mut connection = self.connection();
        while connection.wants_write() {
            connection.write_tls(records)?;
        }
        drop(connection);
        stream.write_all(records)
    }
}

struct TlsReader {
    stream: TcpStream,
    shared: Arc<Shared>,
    until: Option<MonotonicTime>,
    buffer: Box<[u8]>,
    /// The end of the received bytes in `buffer`.
    received: usize,
    /// The end of the bytes in `buffer` that were processed. Bytes are not processed while there is
    /// plaintext that the caller has not read.
    taken: usize,
}

impl TlsReader {
    /// Processes the next received bytes. Returns `false` at the end of the stream.
    fn receive(&mut self) -> io::Result<bool> {
        if self.taken == self.received {
            self.wait()?;
        }
        let mut rest = &self.buffer[self.taken..self.received];
        let is_end = rest.is_empty();
        let mut connection = self.shared.connection();
        self.taken += connection.read_tls(&mut rest)?;
        let outcome = connection.process_new_packets().map(drop).map_err(broken);
        // Only a TLS alert is sent here. Other pending records belong to the writer, which may
        // block in the socket; the reader must not.
        let says_why = outcome.is_err() && connection.wants_write();
        drop(connection);
        if says_why {
            // If the lock is taken, the writer sends the alert.
            match self.shared.sender.try_lock() {
                Ok(mut sender) => self.shared.send_pending(&mut sender, 0)?,
                Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => (),
            }
        }
        outcome.map(|()| !is_end)
    }

    fn wait(&mut self) -> io::Result<()> {
        let left = match self.until {
            Some(until) => Some(until.left().ok_or(ErrorKind::TimedOut)?),
            None => None,
        };
        self.stream.set_read_timeout(left)?;
        (self.received, self.taken) = (0, 0);
        self.received = loop {
            match self.stream.read(&mut self.buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                read => break read?,
            }
        };
        Ok(())
    }
}

impl Read for TlsReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.shared.connection().reader().read(buffer);
            match read {
                Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Err(io::Error::new(error.kind(), "the link was lost"));
                }
                read => return read,
            }
            self.receive()?;
        }
    }
}

impl LinkReader for TlsReader {
    fn limit(&mut self, within: Option<Duration>) -> io::Result<()> {
        self.until = within.map(|within| MonotonicTime::now().after(within));
        Ok(())
    }

    fn close(&mut self) {
        // The link may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

struct TlsWriter {
    shared: Arc<Shared>,
    /// The number of bytes of plaintext that were encrypted and are possibly still unsent.
    unsent: usize,
}

impl Write for TlsWriter {
    /// Encrypts bytes. Sends them only in a flush or once [`WRITE_BYTES`] are unsent, because every
    /// send wakes the peer's reader.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unsent == WRITE_BYTES {
            self.flush()?;
        }
        let bytes = &bytes[..bytes.len().min(WRITE_BYTES - self.unsent)];
        let written = self.shared.connection().writer().write(bytes)?;
        self.unsent += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let unsent = mem::take(&mut self.unsent);
        self.shared.send_pending(&mut self.shared.sender(), unsent)
    }
}

impl LinkWriter for TlsWriter {
    fn close(&mut self) {
        self.shared.connection().send_close_notify();
        let mut sender = self.shared.sender();
        // Best effort: the peer may be unreachable, or not reading.
        let _ = sender.stream.set_nonblocking(true);
        let _ = self.shared.send_pending(&mut sender, self.unsent);
        let _ = sender.stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd;
    use std::thread;

    use rustix::net::sockopt;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// Connects a client and a server over TLS. Returns the outcome of the handshake on each side.
    fn connect_pair(
        client: &SecretKey,
        expected: PublicKey,
        server: &SecretKey,
        allowed: &[PublicKey],
    ) -> (io::Result<Link>, io::Result<(Link, PublicKey)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client_tls = ClientTls::new(client, expected).unwrap();
        let server_tls = ServerTls::new(server, allowed.iter().copied()).unwrap();
        // Small socket buffers, so that a peer that does not read blocks the sender soon.
        let keep_little = |socket: &dyn AsFd| {
            sockopt::set_socket_send_buffer_size(socket, 16 << 10).unwrap();
            sockopt::set_socket_recv_buffer_size(socket, 16 << 10).unwrap();
        };
        keep_little(&listener);
        thread::scope(|scope| {
            let answered = scope.spawn(move || {
                let stream = listener.accept().unwrap().0;
                keep_little(&stream);
                server_tls.answer(stream, SOON)
            });
            let stream = TcpStream::connect(address).unwrap();
            keep_little(&stream);
            let link = client_tls.handshake(stream, SOON);
            (link, answered.join().unwrap())
        })
    }

    #[test]
    fn only_peers_with_the_expected_keys_are_linked() {
        let [me, other, server] = [(); 3].map(|()| SecretKey::generate().unwrap());
        let allowed = [me.public()];
        let (link, answered) = connect_pair(&me, server.public(), &server, &allowed);
        let (mut link, (mut theirs, peer)) = (link.unwrap(), answered.unwrap());
        assert_eq!(peer, me.public());
        // Each direction carries more bytes than the socket buffers hold: neither side may wait for
        // the other to read first.
        let data: Vec<u8> = (0..1u32 << 20).map(|i| (i * 7 % 251) as u8).collect();
        thread::scope(|scope| {
            for half in [&mut link.writer, &mut theirs.writer] {
                let data = &data;
                scope.spawn(move || {
                    half.write_all(data).unwrap();
                    half.flush().unwrap();
                });
            }
            for half in [&mut link.reader, &mut theirs.reader] {
                let data = &data;
                scope.spawn(move || {
                    let mut received = vec![0; data.len()];
                    half.read_exact(&mut received).unwrap();
                    assert!(received == *data);
                });
            }
        });
        // The reader sees the end of the stream, not a lost link.
        link.writer.close();
        assert_eq!(theirs.reader.read(&mut [0]).unwrap(), 0);
        let (link, answered) = connect_pair(&other, server.public(), &server, &allowed);
        assert_eq!(answered.map(drop).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(link.map(drop).unwrap_err().kind(), ErrorKind::PermissionDenied);
        let (link, answered) = connect_pair(&me, other.public(), &server, &allowed);
        assert_eq!(link.map(drop).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert!(answered.is_err());
    }

    /// Links use AES-128 if both sides support it. The client states its order of preference, and
    /// the server follows that order.
    #[test]
    fn links_use_aes_128_if_both_sides_support_it() {
        let [me, server] = [(); 2].map(|()| SecretKey::generate().unwrap());
        let ClientTls(client) = ClientTls::new(&me, server.public()).unwrap();
        let ServerTls(server_side) = ServerTls::new(&server, [me.public()]).unwrap();
        let name = ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into());
        let mut client: Connection = ClientConnection::new(client, name).unwrap().into();
        let mut server_side: Connection = ServerConnection::new(server_side).unwrap().into();
        let transfer = |from: &mut Connection, to: &mut Connection| {
            let mut sent = Vec::new();
            while from.wants_write() {
                from.write_tls(&mut sent).unwrap();
            }
            let mut rest = &sent[..];
            while !rest.is_empty() {
                to.read_tls(&mut rest).unwrap();
                to.process_new_packets().unwrap();
            }
        };
        for _ in 0..2 {
            transfer(&mut client, &mut server_side);
            transfer(&mut server_side, &mut client);
        }
        for side in [&client, &server_side] {
            assert!(!side.is_handshaking());
            let suite = side.negotiated_cipher_suite().map(|suite| suite.suite());
            assert_eq!(suite, Some(CipherSuite::TLS13_AES_128_GCM_SHA256));
        }
    }

    #[test]
    fn small_writes_are_not_sent_before_the_flush() {
        let [me, server] = [(); 2].map(|()| SecretKey::generate().unwrap());
        let (link, answered) = connect_pair(&me, server.public(), &server, &[me.public()]);
        let (mut writer, mut reader) = (link.unwrap().writer, answered.unwrap().0.reader);
        writer.write_all(b"length").unwrap();
        writer.write_all(b" and message").unwrap();
        let mut received = [0; 18];
        reader.limit(Some(Duration::from_millis(50))).unwrap();
        let early = reader.read(&mut received).unwrap_err().kind();
        assert!([ErrorKind::TimedOut, ErrorKind::WouldBlock].contains(&early), "{early}");
        writer.flush().unwrap();
        reader.limit(Some(SOON)).unwrap();
        reader.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"length and message");
    }

    /// Creates a client and a server that are connected over TLS.
    fn pair() -> [Link; 2] {
        let [me, server] = [(); 2].map(|()| SecretKey::generate().unwrap());
        let (link, answered) = connect_pair(&me, server.public(), &server, &[me.public()]);
        [link.unwrap(), answered.unwrap().0]
    }

    /// A reader does not send bytes that the writer has buffered. Otherwise the reader could block
    /// in the socket, and both sides would deadlock.
    #[test]
    fn a_reader_does_not_send_what_the_writer_has_buffered() {
        for swapped in [false, true] {
            let [mut one, mut other] = pair();
            if swapped {
                std::mem::swap(&mut one, &mut other);
            }
            one.writer.write_all(b"not yet").unwrap();
            other.writer.write_all(b"!").unwrap();
            other.writer.flush().unwrap();
            one.reader.read_exact(&mut [0]).unwrap();
            other.reader.limit(Some(Duration::from_millis(50))).unwrap();
            let early = other.reader.read(&mut [0; 7]).unwrap_err().kind();
            assert!([ErrorKind::TimedOut, ErrorKind::WouldBlock].contains(&early), "{early}");
        }
    }

    #[test]
    fn closing_does_not_wait_for_a_peer_that_does_not_read() {
        for swapped in [false, true] {
            let [mut one, mut other] = pair();
            if swapped {
                std::mem::swap(&mut one, &mut other);
            }
            // The peer takes no more than the socket buffers hold.
            one.writer.write_all(&[7; 200 << 10]).unwrap();
            let begun = MonotonicTime::now();
            one.writer.close();
            assert!(begun.after(Duration::from_secs(2)).left().is_some());
            drop(other);
        }
    }

    #[test]
    fn sending_on_a_closed_link_is_an_error() {
        for mut link in pair() {
            link.reader.close();
            link.writer.write_all(b"too late").unwrap();
            assert!(link.writer.flush().is_err());
        }
    }

    /// Creates a credential that presents the key `shown` but signs with the private key `own`.
    fn impostor(own: &SecretKey, shown: PublicKey) -> Arc<CertifiedKey> {
        let key = ring::default_provider().key_provider.load_private_key(own.der()).unwrap();
        Arc::new(CertifiedKey::new(vec![CertificateDer::from(shown.spki())], key))
    }

    #[test]
    fn showing_another_public_key_fails_without_its_private_key() {
        let [me, server, thief] = [(); 3].map(|()| SecretKey::generate().unwrap());
        let as_me = ClientTls::new(&me, server.public()).unwrap();
        let mut config = (*as_me.0).clone();
        config.client_auth_cert_resolver =
            Arc::new(AlwaysResolvesClientRawPublicKeys::new(impostor(&thief, me.public())));
        let false_client = ClientTls(Arc::new(config));
        let as_server = ServerTls::new(&server, [me.public()]).unwrap();
        let mut config = (*as_server.0).clone();
        config.cert_resolver =
            Arc::new(AlwaysResolvesServerRawPublicKeys::new(impostor(&thief, server.public())));
        let false_server = ServerTls(Arc::new(config));
        for (client_tls, server_tls) in [(false_client, as_server), (as_me, false_server)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            thread::scope(|scope| {
                let answered =
                    scope.spawn(move || server_tls.answer(listener.accept().unwrap().0, SOON));
                assert!(client_tls.handshake(TcpStream::connect(address).unwrap(), SOON).is_err());
                assert!(answered.join().unwrap().is_err());
            });
        }
    }

    #[test]
    fn clients_that_do_not_complete_the_handshake_are_dropped() {
        let [me, server] = [(); 2].map(|()| SecretKey::generate().unwrap());
        let server_tls = ServerTls::new(&server, [me.public()]).unwrap();
        for says in [&b""[..], b"\x16\x03", b"GET / HTTP/1.1\r\n\r\n"] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            stream.write_all(says).unwrap();
            let within = Duration::from_millis(50);
            let refused = server_tls.answer(listener.accept().unwrap().0, within);
            let kind = refused.map(drop).unwrap_err().kind();
            let expected = [ErrorKind::TimedOut, ErrorKind::WouldBlock, ErrorKind::InvalidData];
            assert!(expected.contains(&kind), "{says:?}: {kind}");
        }
    }
}
