//! A server for tests, and clients that send exactly the messages of a test.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use oblivio_bucket_server::{
    BucketLimits, BucketServer, BucketServerHandle, BucketServerOptions, WatchVolumes,
};
use oblivio_core::geometry::BucketId;
use oblivio_core::store::{LevelShape, Part, Piece, TreeId, TreeShape};
use oblivio_wire::keys::{AllowedClient, PeerServer, PublicKey, SecretKey};
use oblivio_wire::link::Link;
use oblivio_wire::message::{MESSAGE_BYTES_MAX, VERSION};
use oblivio_wire::tls::ClientTls;
use oblivio_wire::{Answer, Failure, FailureKind, OpenMode, Opened, Request, frame};

use oblivio_testkit::memory_disk::PATIENCE;

/// Size of each bucket of [`shapes`] in bytes.
pub(super) const BUCKET_BYTES: usize = 1024;

/// Number of buckets on the lowest level of [`shapes`].
pub(super) const LEAVES: u64 = 64;

/// The shapes of a volume with a single tree.
pub(super) fn shapes() -> Vec<TreeShape> {
    shapes_of(BUCKET_BYTES as u64)
}

pub(super) fn shapes_of(bucket_bytes: u64) -> Vec<TreeShape> {
    let level = |level: u32| LevelShape {
        buckets: 1 << level,
        slots: 4,
        header_bytes: 16,
        slots_offset: 24,
        slot_bytes: 100,
        bucket_bytes,
    };
    vec![TreeShape::new((0..=LEAVES.ilog2()).map(level).collect())]
}

/// Returns a piece that is the whole bucket `index` of the lowest level.
pub(super) fn leaf(index: u64) -> Piece {
    let bucket = BucketId::new(LEAVES.ilog2() as u8, index);
    Piece { tree: TreeId(0), bucket, part: Part::Whole }
}

/// A running server. Stops when dropped.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) handle: BucketServerHandle,
    public: PublicKey,
    running: Option<JoinHandle<()>>,
}

/// A party with a key, which the server may or may not know.
pub(super) struct Party {
    pub(super) key: SecretKey,
    pub(super) name: &'static str,
    pub(super) quota_bytes: Option<u64>,
}

impl Party {
    pub(super) fn named(name: &'static str) -> Self {
        Self { key: SecretKey::generate().unwrap(), name, quota_bytes: None }
    }
}

impl Server {
    pub(super) fn start(folder: &Path, clients: &[&Party]) -> Self {
        Self::start_with(folder, clients, BucketLimits::default())
    }

    pub(super) fn start_with(folder: &Path, clients: &[&Party], limits: BucketLimits) -> Self {
        let key = SecretKey::generate().unwrap();
        let address = "127.0.0.1:0".parse().unwrap();
        Self::start_as(folder, clients, limits, (key, address), None)
    }

    /// Starts a server with this key and address.
    pub(super) fn start_as(
        folder: &Path,
        clients: &[&Party],
        limits: BucketLimits,
        (key, address): (SecretKey, SocketAddr),
        peers: Option<Vec<PeerServer>>,
    ) -> Self {
        Self::start_watched(folder, clients, limits, (key, address), peers, None)
    }

    /// Starts a server with this key and address, and with a watcher of volumes.
    pub(super) fn start_watched(
        folder: &Path,
        clients: &[&Party],
        limits: BucketLimits,
        (key, address): (SecretKey, SocketAddr),
        peers: Option<Vec<PeerServer>>,
        watch: Option<Box<WatchVolumes>>,
    ) -> Self {
        let public = key.public();
        let clients = clients.iter().map(|party| AllowedClient {
            key: party.key.public(),
            name: party.name.to_owned(),
            quota_bytes: party.quota_bytes,
        });
        let options = BucketServerOptions {
            folder: folder.into(),
            key,
            clients: clients.collect(),
            peers,
            limits,
        };
        let server = BucketServer::bind(address, options).unwrap();
        watch.into_iter().for_each(|watch| server.watch_volumes(watch));
        let (address, handle) = (server.address(), server.handle());
        let run = move || server.run().unwrap();
        let running = Some(thread::Builder::new().spawn(run).unwrap());
        Self { address, handle, public, running }
    }

    pub(super) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.handle.stop();
        let ended = self.running.take().map(JoinHandle::join);
        if !thread::panicking() {
            ended.into_iter().for_each(Result::unwrap);
            assert_eq!(self.metric("defects_total"), 0);
        }
    }

    /// The value of the metric `name`.
    pub(super) fn metric(&self, name: &str) -> u64 {
        let text = self.handle.metrics();
        let line = text.lines().find_map(|line| {
            line.strip_prefix("oblivio_store_")?.strip_prefix(name)?.strip_prefix(' ')
        });
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    /// Connects as `party`. Returns the client once the server has answered its hello.
    pub(super) fn greet(&self, party: &Party) -> Client {
        self.try_greet(party).unwrap()
    }

    /// Like [`Self::greet`], but `None` if the server refuses the client.
    pub(super) fn try_greet(&self, party: &Party) -> Option<Client> {
        let mut client = self.try_connect(party)?;
        client.try_say(&Request::Hello { version: VERSION })?;
        match client.try_hear()? {
            Answer::Welcome { version: VERSION } => Some(client),
            Answer::Failed(Failure { kind: FailureKind::Full, .. }) => None,
            other => panic!("no welcome: {other:?}"),
        }
    }

    /// Connects as `party`. Returns a client that has sent no message yet.
    pub(super) fn try_connect(&self, party: &Party) -> Option<Client> {
        let stream = TcpStream::connect(self.address).unwrap();
        let cut = stream.try_clone().unwrap();
        let link =
            ClientTls::new(&party.key, self.public).unwrap().handshake(stream, PATIENCE).ok()?;
        Some(Client { link, cut })
    }

    /// Connects as `party` and opens a volume.
    pub(super) fn open(&self, party: &Party, name: &str, mode: OpenMode) -> (Client, Opened) {
        let mut client = self.greet(party);
        let opened = client.opened(&Request::Open { name: name.into(), mode });
        (client, opened)
    }

    pub(super) fn resume(&self, party: &Party, name: &str, session: u64) -> (Client, Opened) {
        let mut client = self.greet(party);
        let opened = client.opened(&Request::Resume { name: name.into(), session });
        (client, opened)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.end();
        }
    }
}

pub(super) struct Client {
    pub(super) link: Link,
    /// The stream of the link, to cut the link.
    pub(super) cut: TcpStream,
}

impl Client {
    pub(super) fn say(&mut self, request: &Request) {
        self.try_say(request).unwrap();
    }

    pub(super) fn try_say(&mut self, request: &Request) -> Option<()> {
        self.try_send(&request.encode())
    }

    pub(super) fn try_send(&mut self, message: &[u8]) -> Option<()> {
        frame::send(&mut self.link.writer, message).ok()?;
        self.link.writer.flush().ok()
    }

    /// Sends bytes that need not be a message.
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.link.writer.write_all(bytes)?;
        self.link.writer.flush()
    }

    pub(super) fn hear(&mut self) -> Answer {
        self.try_hear().expect("an answer")
    }

    /// Receives the next answer. `None` if the connection has ended.
    pub(super) fn try_hear(&mut self) -> Option<Answer> {
        self.link.reader.limit(Some(PATIENCE)).unwrap();
        let message = frame::receive(&mut self.link.reader, MESSAGE_BYTES_MAX).ok()??;
        Some(Answer::decode(&message.into()).unwrap())
    }

    pub(super) fn ask(&mut self, request: &Request) -> Answer {
        self.say(request);
        self.hear()
    }

    pub(super) fn opened(&mut self, request: &Request) -> Opened {
        match self.ask(request) {
            Answer::Opened(opened) => opened,
            other => panic!("not opened: {other:?}"),
        }
    }

    /// Sends a request, and returns the kind of the failure that the server answers.
    pub(super) fn failure(&mut self, request: &Request) -> FailureKind {
        self.say(request);
        self.hear_failure()
    }

    pub(super) fn hear_failure(&mut self) -> FailureKind {
        match self.hear() {
            Answer::Failed(Failure { kind, .. }) => kind,
            other => panic!("no failure: {other:?}"),
        }
    }

    /// Sends a request, and returns the message of the refusal. The connection must then end.
    pub(super) fn last_refusal(&mut self, request: &Request) -> String {
        match self.ask(request) {
            Answer::Failed(Failure { kind: FailureKind::Refused, message, .. }) => {
                self.expect_end();
                message
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Sends a request, and returns the kind of the failure. The connection must then end.
    pub(super) fn last_failure(&mut self, request: &Request) -> FailureKind {
        let kind = self.failure(request);
        self.expect_end();
        kind
    }

    /// Asserts that the connection ends without another answer.
    pub(super) fn expect_end(&mut self) {
        // After a refusal, the server waits for its client to end the connection.
        let _ = self.cut.shutdown(Shutdown::Write);
        assert_eq!(self.try_hear(), None, "the connection has not ended");
    }

    pub(super) fn write(&mut self, index: u64, byte: u8) {
        let request = write_of(7, index, byte);
        assert_eq!(self.ask(&request), Answer::Done { number: 7 });
    }

    pub(super) fn flush(&mut self) {
        assert_eq!(self.ask(&Request::Flush { number: 8 }), Answer::Done { number: 8 });
    }

    /// Reads leaf `index`, and returns the byte that fills it.
    pub(super) fn read(&mut self, index: u64) -> u8 {
        match self.ask(&Request::Read { number: 9, pieces: vec![leaf(index)] }) {
            Answer::Data { number: 9, bytes } => {
                assert_eq!(bytes[..], [bytes[0]; BUCKET_BYTES]);
                bytes[0]
            }
            other => panic!("not read: {other:?}"),
        }
    }
}

/// Returns a request that fills leaf `index` with `byte`.
pub(super) fn write_of(number: u64, index: u64, byte: u8) -> Request {
    Request::Write { number, pieces: vec![leaf(index)], bytes: vec![byte; BUCKET_BYTES] }
}

pub(super) fn create() -> OpenMode {
    OpenMode::Create(shapes())
}

pub(super) fn look(name: &str) -> Request {
    Request::Look { name: name.into() }
}

pub(super) fn open_request(name: &str, mode: OpenMode) -> Request {
    Request::Open { name: name.into(), mode }
}

pub(super) const READ: OpenMode = OpenMode::Read { allow_incomplete: false };

pub(super) fn quick_limits() -> BucketLimits {
    BucketLimits {
        handshake_within: Duration::from_secs(1),
        message_within: Duration::from_millis(500),
        stop_within: Duration::from_secs(1),
        ..BucketLimits::default()
    }
}
