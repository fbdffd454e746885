//! TLS 1.3 between two who know each other's keys. There are no certificates and no authorities: each shows a raw public key (RFC
//! 7250) and proves that it has the private one.

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
use crate::link::{Link, LinkReader, LinkWriter, Moment};

/// What a client needs to call one server.
#[derive(Clone)]
pub struct Caller(Arc<ClientConfig>);

/// What a server needs to be called.
#[derive(Clone)]
pub struct Called(Arc<ServerConfig>);

impl Caller {
    /// Of the client `me`, to call the server that has the key `server`, and no other.
    ///
    /// # Errors
    /// When the key is of no use.
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
        // Each link proves both keys anew, and nothing in one tells of another.
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }

    /// Shakes hands, all of it within so long.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] if the server is another or does not let this client in; those of the link.
    pub fn call(&self, stream: TcpStream, within: Duration) -> io::Result<Link> {
        // The key says who the server is. Its name is not looked at, and not sent.
        let name = ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into());
        let connection = ClientConnection::new(self.0.clone(), name).map_err(unusable)?;
        let (mut link, _) = shake_hands(connection.into(), stream, within, Sends::BesideReading)?;
        // In TLS 1.3 a client is done before the server has looked at its key.
        let mut said = [0];
        link.reader.limit(Some(within))?;
        link.reader.read_exact(&mut said)?;
        link.reader.limit(None)?;
        match said {
            [LET_IN] => Ok(link),
            _ => Err(io::Error::new(ErrorKind::InvalidData, "the server begins otherwise")),
        }
    }
}

impl Called {
    /// Of the server `me`, for clients that have one of these keys.
    ///
    /// # Errors
    /// When the key is of no use.
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

    /// Shakes hands, all of it within so long, and says who called.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] if it is nobody who may; those of the link.
    pub fn answer(&self, stream: TcpStream, within: Duration) -> io::Result<(Link, PublicKey)> {
        let connection = ServerConnection::new(self.0.clone()).map_err(unusable)?;
        let told = stream.try_clone()?;
        let met = shake_hands(connection.into(), stream, within, Sends::InTurn);
        let (mut link, peer) = met.inspect_err(|_| leave(&told))?;
        let peer = peer.ok_or_else(|| io::Error::from(ErrorKind::PermissionDenied))?;
        link.writer.write_all(&[LET_IN])?;
        link.writer.flush()?;
        Ok((link, peer))
    }
}

/// AES-128 before the others: AES-256 takes a fifth longer. Buckets were sealed before they are sent. Shares, queries and matrices were not, and
/// on the link nothing else covers them: 128 bits do.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider
}

/// Connects to a server and calls it there: each of its addresses, until one answers. Each has as long.
///
/// # Errors
/// That of the last address.
pub fn reach<T>(
    server: impl ToSocketAddrs,
    within: Duration,
    mut call: impl FnMut(TcpStream, Duration) -> io::Result<T>,
) -> io::Result<T> {
    let mut failure = io::Error::new(ErrorKind::NotFound, "the server has no address");
    for address in server.to_socket_addrs()? {
        let until = Moment::now().after(within);
        let called = TcpStream::connect_timeout(&address, within).and_then(|stream| {
            let left = until.left().ok_or(ErrorKind::TimedOut)?;
            call(stream, left)
        });
        match called {
            Ok(called) => return Ok(called),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn certified(me: &SecretKey, provider: &CryptoProvider) -> io::Result<Arc<CertifiedKey>> {
    let key = provider.key_provider.load_private_key(me.der()).map_err(unusable)?;
    Ok(Arc::new(CertifiedKey::new(vec![CertificateDer::from(me.public().spki())], key)))
}

fn unusable(error: TlsError) -> io::Error {
    io::Error::other(error)
}

/// What a failure of TLS is to whoever waits for the link.
fn broken(error: TlsError) -> io::Error {
    let kind = match error {
        TlsError::InvalidCertificate(_)
        | TlsError::NoCertificatesPresented
        | TlsError::AlertReceived(_) => ErrorKind::PermissionDenied,
        _ => ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}

/// Those whose keys are known.
#[derive(Debug)]
struct Pinned {
    keys: BTreeSet<PublicKey>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn check(&self, spki: &CertificateDer<'_>) -> Result<(), TlsError> {
        let is_known = PublicKey::of_spki(spki).is_some_and(|key| self.keys.contains(&key));
        let unknown = CertificateError::ApplicationVerificationFailure;
        is_known.then_some(()).ok_or(TlsError::InvalidCertificate(unknown))
    }
}

/// The methods that verifiers of servers and of clients share.
macro_rules! verify_raw_keys {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, TlsError> {
            Err(TlsError::General("TLS 1.3 alone is spoken".into()))
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

/// What a server sends first: the client may come.
const LET_IN: u8 = 0;

/// The other side takes something of what it is sent within so long.
const TAKES_WITHIN: Duration = Duration::from_secs(60);

/// A stranger who has not heard why it is left has so long to hear it.
const HEARS_WITHIN: Duration = Duration::from_millis(200);

/// Ends a stream so that the other side can read what it was told: one that is closed while something is unread takes that back.
fn leave(mut stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(HEARS_WITHIN));
    let mut unread = [0; 4096];
    let until = Moment::now().after(HEARS_WITHIN);
    while until.left().is_some() && stream.read(&mut unread).unwrap_or(0) > 0 {}
}

/// Bytes that are read from the system at once.
const READ_BYTES: usize = 256 << 10;

/// Bytes that are encrypted before they are sent, at most.
const WRITE_BYTES: usize = 256 << 10;

fn shake_hands(
    mut connection: Connection,
    stream: TcpStream,
    within: Duration,
    sends: Sends,
) -> io::Result<(Link, Option<PublicKey>)> {
    stream.set_nodelay(true)?;
    // Whoever takes nothing for so long is gone.
    stream.set_write_timeout(Some(TAKES_WITHIN))?;
    // Whoever writes keeps to [`WRITE_BYTES`].
    connection.set_buffer_limit(None);
    let shared = Arc::new(Shared {
        connection: Mutex::new(connection),
        sender: Mutex::new(Sender { stream: stream.try_clone()?, sends, records: Vec::new() }),
    });
    let buffer = vec![0; READ_BYTES].into();
    let mut reader =
        TlsReader { stream, shared: shared.clone(), until: None, buffer, came: 0, taken: 0 };
    reader.limit(Some(within))?;
    while shared.connection().is_handshaking() {
        shared.send_what_waits(&mut shared.sender(), 0)?;
        if shared.connection().is_handshaking() && !reader.receive()? {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    shared.send_what_waits(&mut shared.sender(), 0)?;
    reader.limit(None)?;
    let peer = shared.connection().peer_certificates().and_then(|shown| shown.first().cloned());
    let peer = peer.and_then(|key| PublicKey::of_spki(&key));
    let writer = TlsWriter { shared, unsent: 0 };
    Ok((Link { reader: Box::new(reader), writer: Box::new(writer) }, peer))
}

/// What both halves use. Whoever needs both locks takes `sender` first.
struct Shared {
    connection: Mutex<Connection>,
    sender: Mutex<Sender>,
}

struct Sender {
    stream: TcpStream,
    sends: Sends,
    /// The copy. Its memory is kept for what is sent next.
    records: Vec<u8>,
}

/// How what was encrypted goes to the system.
#[derive(Clone, Copy)]
enum Sends {
    /// From a copy: whoever reads meanwhile goes on while the system takes it.
    BesideReading,
    /// From where it was encrypted: whoever would read meanwhile waits. For a side that reads and sends by one thread. Of two that are linked, one at
    /// most may send so. If both waited for the other to read, neither would.
    InTurn,
}

impl Shared {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(&self) -> MutexGuard<'_, Sender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what waits: so many bytes before they were encrypted, and what TLS itself has to say.
    fn send_what_waits(&self, sender: &mut Sender, bytes: usize) -> io::Result<()> {
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
        // With what each record has around it: it would grow to twice as much as is ever sent at once.
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
    until: Option<Moment>,
    buffer: Box<[u8]>,
    /// How much of the buffer came, and how much of that was taken in: nothing is, while there is something to read.
    came: usize,
    taken: usize,
}

impl TlsReader {
    /// Takes in what comes next. Answers whether anything does.
    fn receive(&mut self) -> io::Result<bool> {
        if self.taken == self.came {
            self.wait()?;
        }
        let mut rest = &self.buffer[self.taken..self.came];
        let is_end = rest.is_empty();
        let mut connection = self.shared.connection();
        self.taken += connection.read_tls(&mut rest)?;
        let outcome = connection.process_new_packets().map(drop).map_err(broken);
        // Without an error there is nothing to say, and what waits is somebody's who is about to send it: whoever reads must not be stuck in that.
        let says_why = outcome.is_err() && connection.wants_write();
        drop(connection);
        if says_why {
            // Whoever sends meanwhile may send it as well.
            match self.shared.sender.try_lock() {
                Ok(mut sender) => self.shared.send_what_waits(&mut sender, 0)?,
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
        (self.came, self.taken) = (0, 0);
        self.came = loop {
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
                    return Err(io::Error::new(error.kind(), "the link has broken off"));
                }
                read => return read,
            }
            self.receive()?;
        }
    }
}

impl LinkReader for TlsReader {
    fn limit(&mut self, within: Option<Duration>) -> io::Result<()> {
        self.until = within.map(|within| Moment::now().after(within));
        Ok(())
    }

    fn close(&mut self) {
        // Whoever is gone needs not be told.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

struct TlsWriter {
    shared: Arc<Shared>,
    /// Bytes that were written and perhaps not sent yet.
    unsent: usize,
}

impl Write for TlsWriter {
    /// Encrypts, and sends once there is enough: each time that something is sent, somebody is woken to read it.
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
        self.shared.send_what_waits(&mut self.shared.sender(), unsent)
    }
}

impl LinkWriter for TlsWriter {
    fn close(&mut self) {
        self.shared.connection().send_close_notify();
        let mut sender = self.shared.sender();
        // Whoever is gone, or takes nothing, is not told.
        let _ = sender.stream.set_nonblocking(true);
        let _ = self.shared.send_what_waits(&mut sender, self.unsent);
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

    /// A client and a server, and whether they take each other.
    fn meet(
        client: &SecretKey,
        expected: PublicKey,
        server: &SecretKey,
        allowed: &[PublicKey],
    ) -> (io::Result<Link>, io::Result<(Link, PublicKey)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let caller = Caller::new(client, expected).unwrap();
        let called = Called::new(server, allowed.iter().copied()).unwrap();
        // The system keeps little for those who do not read.
        let keep_little = |socket: &dyn AsFd| {
            sockopt::set_socket_send_buffer_size(socket, 16 << 10).unwrap();
            sockopt::set_socket_recv_buffer_size(socket, 16 << 10).unwrap();
        };
        keep_little(&listener);
        thread::scope(|scope| {
            let answered = scope.spawn(move || {
                let stream = listener.accept().unwrap().0;
                keep_little(&stream);
                called.answer(stream, SOON)
            });
            let stream = TcpStream::connect(address).unwrap();
            keep_little(&stream);
            let link = caller.call(stream, SOON);
            (link, answered.join().unwrap())
        })
    }

    #[test]
    fn those_who_know_each_other_meet_and_nobody_else() {
        let [me, other, server] = [(); 3].map(|()| SecretKey::generate().unwrap());
        let allowed = [me.public()];
        let (link, answered) = meet(&me, server.public(), &server, &allowed);
        let (mut link, (mut theirs, peer)) = (link.unwrap(), answered.unwrap());
        assert_eq!(peer, me.public());
        // More each way at once than the system keeps for those who do not read: nobody waits for the other to read first.
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
                    let mut came = vec![0; data.len()];
                    half.read_exact(&mut came).unwrap();
                    assert!(came == *data);
                });
            }
        });
        // Whoever waits is told that the other has gone, in good order.
        link.writer.close();
        assert_eq!(theirs.reader.read(&mut [0]).unwrap(), 0);
        let (link, answered) = meet(&other, server.public(), &server, &allowed);
        assert_eq!(answered.map(drop).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(link.map(drop).unwrap_err().kind(), ErrorKind::PermissionDenied);
        let (link, answered) = meet(&me, other.public(), &server, &allowed);
        assert_eq!(link.map(drop).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert!(answered.is_err());
    }

    /// The client says in which order it wants them, and the server goes by that.
    #[test]
    fn links_take_aes_128_where_both_have_it() {
        let [me, server] = [(); 2].map(|()| SecretKey::generate().unwrap());
        let Caller(calls) = Caller::new(&me, server.public()).unwrap();
        let Called(called) = Called::new(&server, [me.public()]).unwrap();
        let name = ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into());
        let mut calls: Connection = ClientConnection::new(calls, name).unwrap().into();
        let mut called: Connection = ServerConnection::new(called).unwrap().into();
        let said = |from: &mut Connection, to: &mut Connection| {
            let mut said = Vec::new();
            while from.wants_write() {
                from.write_tls(&mut said).unwrap();
            }
            let mut rest = &said[..];
            while !rest.is_empty() {
                to.read_tls(&mut rest).unwrap();
                to.process_new_packets().unwrap();
            }
        };
        for _ in 0..2 {
            said(&mut calls, &mut called);
            said(&mut called, &mut calls);
        }
        for side in [&calls, &called] {
            assert!(!side.is_handshaking());
            let suite = side.negotiated_cipher_suite().map(|suite| suite.suite());
            assert_eq!(suite, Some(CipherSuite::TLS13_AES_128_GCM_SHA256));
        }
    }

    #[test]
    fn what_is_written_piece_by_piece_waits_for_the_flush() {
        let [me, server] = [(); 2].map(|()| SecretKey::generate().unwrap());
        let (link, answered) = meet(&me, server.public(), &server, &[me.public()]);
        let (mut writer, mut reader) = (link.unwrap().writer, answered.unwrap().0.reader);
        writer.write_all(b"length").unwrap();
        writer.write_all(b" and message").unwrap();
        let mut came = [0; 18];
        reader.limit(Some(Duration::from_millis(50))).unwrap();
        let early = reader.read(&mut came).unwrap_err().kind();
        assert!([ErrorKind::TimedOut, ErrorKind::WouldBlock].contains(&early), "{early}");
        writer.flush().unwrap();
        reader.limit(Some(SOON)).unwrap();
        reader.read_exact(&mut came).unwrap();
        assert_eq!(&came, b"length and message");
    }

    /// A client and a server.
    fn pair() -> [Link; 2] {
        let [me, server] = [(); 2].map(|()| SecretKey::generate().unwrap());
        let (link, answered) = meet(&me, server.public(), &server, &[me.public()]);
        [link.unwrap(), answered.unwrap().0]
    }

    /// Whoever reads would be stuck in it, and the other side with him if that does not read before it has sent.
    #[test]
    fn whoever_reads_sends_nothing_of_what_another_has_written() {
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
    fn an_end_waits_for_nobody_who_takes_nothing() {
        for swapped in [false, true] {
            let [mut one, mut other] = pair();
            if swapped {
                std::mem::swap(&mut one, &mut other);
            }
            // It takes no more than the system keeps.
            one.writer.write_all(&[7; 200 << 10]).unwrap();
            let begun = Moment::now();
            one.writer.close();
            assert!(begun.after(Duration::from_secs(2)).left().is_some());
            drop(other);
        }
    }

    #[test]
    fn what_is_sent_on_a_link_that_has_ended_is_an_error() {
        for mut link in pair() {
            link.reader.close();
            link.writer.write_all(b"too late").unwrap();
            assert!(link.writer.flush().is_err());
        }
    }

    /// Shows the public key of somebody else, and has its own private one.
    fn impostor(own: &SecretKey, shown: PublicKey) -> Arc<CertifiedKey> {
        let key = ring::default_provider().key_provider.load_private_key(own.der()).unwrap();
        Arc::new(CertifiedKey::new(vec![CertificateDer::from(shown.spki())], key))
    }

    #[test]
    fn whoever_shows_the_key_of_another_does_not_get_in() {
        let [me, server, thief] = [(); 3].map(|()| SecretKey::generate().unwrap());
        let as_me = Caller::new(&me, server.public()).unwrap();
        let mut config = (*as_me.0).clone();
        config.client_auth_cert_resolver =
            Arc::new(AlwaysResolvesClientRawPublicKeys::new(impostor(&thief, me.public())));
        let false_client = Caller(Arc::new(config));
        let as_server = Called::new(&server, [me.public()]).unwrap();
        let mut config = (*as_server.0).clone();
        config.cert_resolver =
            Arc::new(AlwaysResolvesServerRawPublicKeys::new(impostor(&thief, server.public())));
        let false_server = Called(Arc::new(config));
        for (caller, called) in [(false_client, as_server), (as_me, false_server)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            thread::scope(|scope| {
                let answered =
                    scope.spawn(move || called.answer(listener.accept().unwrap().0, SOON));
                assert!(caller.call(TcpStream::connect(address).unwrap(), SOON).is_err());
                assert!(answered.join().unwrap().is_err());
            });
        }
    }

    #[test]
    fn whoever_says_nothing_or_little_is_left() {
        let [me, server] = [(); 2].map(|()| SecretKey::generate().unwrap());
        let called = Called::new(&server, [me.public()]).unwrap();
        for says in [&b""[..], b"\x16\x03", b"GET / HTTP/1.1\r\n\r\n"] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            stream.write_all(says).unwrap();
            let within = Duration::from_millis(50);
            let refused = called.answer(listener.accept().unwrap().0, within);
            let kind = refused.map(drop).unwrap_err().kind();
            let expected = [ErrorKind::TimedOut, ErrorKind::WouldBlock, ErrorKind::InvalidData];
            assert!(expected.contains(&kind), "{says:?}: {kind}");
        }
    }
}
