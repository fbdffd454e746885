//! A bucket server and one client with a few connections.
//!
//! ```text
//! input = (connection and action, arguments)*
//! ```
//!
//! Each complete message gets an answer, which may end the connection. Answers match a model of the
//! volumes, and requests of fenced connections are refused. No connection of the server ends with a
//! panic.
#![no_main]

#[path = "support/buckets.rs"]
mod buckets;
#[path = "support/client_volumes_model.rs"]
mod client_volumes_model;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use client_volumes_model::ClientVolumesModel;
use libfuzzer_sys::fuzz_target;
use oblivio_bucket_server::{BucketLimits, BucketServer, BucketServerOptions};
use oblivio_core::BucketId;
use oblivio_core::store::{LevelShape, Part, Piece, TreeId, TreeShape};
use oblivio_wire::keys::{AllowedClient, SecretKey};
use oblivio_wire::link::Link;
use oblivio_wire::message::{MESSAGE_BYTES_MAX, VERSION};
use oblivio_wire::tls::ClientTls;
use oblivio_wire::{Answer, OpenMode, Request, frame};
use tempfile::TempDir;

/// Timeout of a handshake, and of an answer.
const PATIENCE: Duration = Duration::from_secs(20);

const CONNECTIONS: usize = 3;

/// Maximum number of steps, each of which may need a handshake.
const STEPS_MAX: usize = 20;

/// The client's quota in bytes: enough for the volumes created here, but not for large trees from
/// the fuzzer.
const QUOTA_BYTES: u64 = 4 << 20;

/// The keys of the server, in a file, and of the server's only client.
struct Keys {
    server_file: PathBuf,
    client: SecretKey,
    caller: ClientTls,
    _folder: TempDir,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let [server, client] = [(); 2].map(|()| SecretKey::generate().unwrap());
    let folder = TempDir::new().unwrap();
    let server_file = folder.path().join("server");
    server.write(&server_file).unwrap();
    let caller = ClientTls::new(&client, server.public()).unwrap();
    Keys { server_file, client, caller, _folder: folder }
});

fuzz_target!(|input: &[u8]| {
    let folder = TempDir::new().unwrap();
    let server = BucketServer::bind("127.0.0.1:0".parse().unwrap(), options(&folder)).unwrap();
    let (address, handle) = (server.address(), server.handle());
    thread::scope(|scope| {
        let running = scope.spawn(|| server.run().unwrap());
        let mut client = Client::new(address);
        let mut input = Input(input);
        for _ in 0..STEPS_MAX {
            let Some(step) = input.0.split_off_first() else { break };
            client.step(*step, &mut input);
        }
        drop(client);
        handle.stop();
        running.join().unwrap();
    });
    let metrics = handle.metrics();
    assert!(metrics.lines().any(|line| line == "oblivio_store_defects_total 0"), "{metrics}");
});

fn options(folder: &TempDir) -> BucketServerOptions {
    let limits = BucketLimits {
        connections_max: 2 * STEPS_MAX,
        connections_per_client_max: 2 * STEPS_MAX,
        handshakes_max: 2 * STEPS_MAX,
        ..BucketLimits::default()
    };
    let client = AllowedClient {
        key: KEYS.client.public(),
        name: "client".into(),
        quota_bytes: Some(QUOTA_BYTES),
    };
    let key = SecretKey::read(&KEYS.server_file).unwrap();
    BucketServerOptions {
        folder: folder.path().into(),
        key,
        clients: vec![client],
        peers: None,
        limits,
    }
}

/// The rest of the fuzzer's input. Zeros follow its end.
struct Input<'i>(&'i [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn name(&mut self) -> String {
        ["a", "b"][usize::from(self.byte() % 2)].into()
    }

    fn shapes(&mut self) -> Vec<TreeShape> {
        let trees = 1 + self.byte() % 2;
        let mut tree = || TreeShape::new(levels(self.byte()));
        (0..trees).map(|_| tree()).collect()
    }

    fn pieces(&mut self) -> Vec<Piece> {
        (0..self.byte() % 8).map(|_| self.piece()).collect()
    }

    /// Returns a piece that usually exists in volumes with [`Self::shapes`].
    fn piece(&mut self) -> Piece {
        let [place, part] = [self.byte(), self.byte()];
        let level = place % 5;
        let index = u64::from(place >> 3) & ((1 << level) - 1);
        let part = match part % 6 {
            0 | 1 => Part::Whole,
            2 => Part::Header,
            slot => Part::Slot(u16::from(slot - 3)),
        };
        let tree = TreeId(u16::from(place >> 7));
        Piece { tree, bucket: BucketId::new(level, index), part }
    }

    fn request(&mut self, connection: usize, model: &ClientVolumesModel) -> Request {
        let number = u64::from(self.byte());
        match number % 11 {
            0 | 1 => Request::Open { name: self.name(), mode: OpenMode::Create(self.shapes()) },
            2 | 3 => Request::Open { name: self.name(), mode: self.mode() },
            4 => {
                let (name, older) = (self.name(), u64::from(self.byte() % 4));
                let session = model.session(&name).unwrap_or(0).wrapping_sub(older);
                Request::Resume { name, session }
            }
            5 => Request::Look { name: self.name() },
            6 => Request::Remove { name: self.name() },
            7 => Request::Flush { number },
            8 => Request::Read { number, pieces: self.pieces() },
            _ => {
                let (pieces, [first, more]) = (self.pieces(), [self.byte(), self.byte()]);
                // Occasionally one byte too many or too few.
                let more = match more {
                    254 => 1,
                    255 => -1,
                    _ => 0,
                };
                let bytes = model.bytes(connection, &pieces).saturating_add_signed(more);
                let bytes = (0..bytes).map(|i| first.wrapping_add(i as u8)).collect();
                Request::Write { number, pieces, bytes }
            }
        }
    }

    fn mode(&mut self) -> OpenMode {
        match self.byte() % 5 {
            0 | 1 => OpenMode::Write,
            2 => OpenMode::Look,
            flag => OpenMode::Read { allow_incomplete: flag == 3 },
        }
    }
}

fn levels(bits: u8) -> Vec<LevelShape> {
    let is_set = |bit: u8| u64::from(bits >> bit & 1);
    let slot_bytes = 20 + 500 * is_set(0);
    let level = |level: u8| LevelShape {
        // Some levels have fewer buckets than possible, or none.
        buckets: ((1 << level) - is_set(1)) * (1 - is_set(2) * u64::from(level == 2)),
        slots: 3,
        header_bytes: 16,
        slots_offset: 16 + 8 * is_set(3),
        slot_bytes,
        bucket_bytes: 24 + 3 * slot_bytes + 100 * is_set(4),
    };
    (0..=1 + (bits >> 5) % 4).map(level).collect()
}

/// A client, and a model of the answers that it must get.
struct Client {
    address: SocketAddr,
    links: [Option<Link>; CONNECTIONS],
    model: ClientVolumesModel,
}

impl Client {
    fn new(address: SocketAddr) -> Self {
        Self { address, links: [const { None }; CONNECTIONS], model: ClientVolumesModel::default() }
    }

    fn step(&mut self, step: u8, input: &mut Input<'_>) {
        let (connection, action) = (usize::from(step) % CONNECTIONS, step / CONNECTIONS as u8);
        if self.links[connection].is_none() {
            let stream = TcpStream::connect(self.address).unwrap();
            self.links[connection] = Some(KEYS.caller.handshake(stream, PATIENCE).unwrap());
            // Action 0 sends another message instead of the hello.
            if action != 0 {
                self.send(connection, &Request::Hello { version: VERSION }.encode());
            }
        }
        match action {
            1 => self.leave(connection),
            // A message with one byte changed by the fuzzer.
            2..=12 => {
                let mut message = input.request(connection, &self.model).encode();
                let place = usize::from(input.byte()) % message.len();
                message[place] = input.byte();
                self.send(connection, &message);
            }
            // A message from the fuzzer.
            13..=15 => {
                let bytes = usize::from(input.byte()).min(input.0.len());
                let message = input.0.split_off(..bytes).unwrap_or_default();
                self.send(connection, message);
            }
            // A truncated message, then the end of the connection.
            16 => {
                let message = input.request(connection, &self.model).encode();
                let framed = [&(message.len() as u32).to_le_bytes()[..], &message].concat();
                let end = usize::from(input.byte()) % framed.len();
                let link = self.links[connection].as_mut().expect("the link is up");
                let _ = link.writer.write_all(&framed[..end]);
                self.leave(connection);
            }
            // An impossible length.
            17 => {
                let length = u32::MAX >> (input.byte() % 7);
                let link = self.links[connection].as_mut().expect("the link is up");
                link.writer.write_all(&length.to_le_bytes()).unwrap();
                self.hear(connection, &[]);
            }
            _ => {
                let request = input.request(connection, &self.model);
                self.send(connection, &request.encode());
            }
        }
    }

    /// Sends a message and checks the answer.
    fn send(&mut self, connection: usize, message: &[u8]) {
        let link = self.links[connection].as_mut().expect("the link is up");
        frame::send(&mut link.writer, message).unwrap();
        self.hear(connection, message);
    }

    fn hear(&mut self, connection: usize, message: &[u8]) {
        let link = self.links[connection].as_mut().expect("the link is up");
        link.writer.flush().unwrap();
        link.reader.limit(Some(PATIENCE)).unwrap();
        let heard = frame::receive(&mut link.reader, MESSAGE_BYTES_MAX).unwrap();
        let answer =
            Answer::decode(&heard.expect("there is an answer").into()).expect("it is valid");
        if !self.model.check(connection, Request::decode(message), answer) {
            self.leave(connection);
        }
    }

    fn leave(&mut self, connection: usize) {
        if let Some(mut link) = self.links[connection].take() {
            link.writer.close();
        }
        self.model.leave(connection);
    }
}
