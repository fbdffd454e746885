//! Share servers and a bucket server in this process, over sockets and TLS. The servers' files are
//! in a folder that is removed when the servers end.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use oblivio::Location;
use oblivio_bucket_server::{BucketLimits, BucketServer, BucketServerHandle, BucketServerOptions};
use oblivio_cli::clock::Stopwatch;
use oblivio_core::durable::AnyStore;
use oblivio_core::store::{LevelShape, TreeShape};
use oblivio_core::{Error, ErrorKind};
use oblivio_lab::LabError;
use oblivio_lab::relay::Relay;
use oblivio_lab::s3oram::Servers;
use oblivio_models::link::Link;
use oblivio_store::StoreOptions;
use oblivio_wire::keys::{AllowedClient, PeerServer, PublicKey, SecretKey};
use tempfile::TempDir;

/// The volume's name on each server.
const NAME: &str = "measured";

const CLIENT_KEY: &str = "client.key";

const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Running servers, a client's key, and relays.
pub(crate) struct ShareServers {
    folder: TempDir,
    addresses: Vec<SocketAddr>,
    keys: Vec<PublicKey>,
    running: Vec<Running>,
    /// The address and the key of the bucket server, once it has started.
    alone: Option<(SocketAddr, PublicKey)>,
    relays: Vec<RunningRelay>,
    /// The number of servers of the latest volume, and the number that may collude.
    used: (u8, u8),
    client: AllowedClient,
}

struct Running {
    handle: BucketServerHandle,
    thread: Option<JoinHandle<()>>,
}

struct RunningRelay {
    relay: Arc<Relay>,
    thread: Option<JoinHandle<()>>,
}

impl ShareServers {
    /// Starts `servers` share servers, in a temporary folder in `folder`.
    pub(crate) fn start(folder: &Path, servers: usize) -> Result<Self, LabError> {
        let folder = tempfile::Builder::new().prefix("oblivio-shares").tempdir_in(folder);
        let folder = folder.map_err(no_servers)?;
        let client_key = SecretKey::generate().map_err(no_servers)?;
        client_key.write(&folder.path().join(CLIENT_KEY)).map_err(no_servers)?;
        let addresses = free_addresses(servers).map_err(no_servers)?;
        let keys = (0..servers).map(|_| SecretKey::generate()).collect::<Result<Vec<_>, _>>();
        let keys = keys.map_err(no_servers)?;
        let peers: Vec<_> = keys
            .iter()
            .zip(&addresses)
            .map(|(key, address)| PeerServer {
                key: key.public(),
                address: address.to_string(),
                label: None,
            })
            .collect();
        let public = keys.iter().map(SecretKey::public).collect();
        let client =
            AllowedClient { key: client_key.public(), name: "lab".to_owned(), quota_bytes: None };
        let mut started = Self {
            folder,
            addresses,
            keys: public,
            running: Vec::new(),
            alone: None,
            relays: Vec::new(),
            used: (0, 0),
            client,
        };
        for (number, key) in keys.into_iter().enumerate() {
            let address = started.addresses[number];
            started.run(address, &number.to_string(), key, Some(peers.clone()))?;
        }
        Ok(started)
    }

    /// Runs a server whose files are in the folder `name`, and returns its address. Without peers,
    /// the server is a bucket server.
    fn run(
        &mut self,
        address: SocketAddr,
        name: &str,
        key: SecretKey,
        peers: Option<Vec<PeerServer>>,
    ) -> Result<SocketAddr, LabError> {
        let folder = self.folder.path().join(name);
        std::fs::create_dir(&folder).map_err(no_servers)?;
        let clients = vec![self.client.clone()];
        let limits = BucketLimits::default();
        let options = BucketServerOptions { folder, key, clients, peers, limits };
        let server = BucketServer::bind(address, options).map_err(no_servers)?;
        let (handle, address) = (server.handle(), server.address());
        let run = move || drop(server.run());
        let thread = thread::Builder::new().spawn(run).map_err(no_servers)?;
        self.running.push(Running { handle, thread: Some(thread) });
        Ok(address)
    }

    fn client_key(&self) -> PathBuf {
        self.folder.path().join(CLIENT_KEY)
    }

    /// Replaces the relays: starts one new relay for each of these servers. The new relays share
    /// one link. Returns their addresses.
    fn relay(&mut self, to: &[SocketAddr], link: Link) -> Result<Vec<SocketAddr>, LabError> {
        self.end_relays();
        let stopwatch = Arc::new(Stopwatch::start());
        for to in to {
            let relay = match self.relays.first() {
                None => Relay::bind(ANY_PORT, *to, link, None)?,
                Some(first) => first.relay.beside(ANY_PORT, *to)?,
            };
            let relay = Arc::new(relay);
            let (carrying, stopwatch) = (relay.clone(), stopwatch.clone());
            let run = move || carrying.run(&|| stopwatch.elapsed());
            let thread = thread::Builder::new().spawn(run).map_err(no_servers)?;
            self.relays.push(RunningRelay { relay, thread: Some(thread) });
        }
        Ok(self.relays.iter().map(|it| it.relay.address()).collect())
    }

    /// The location of the volume on servers at these addresses.
    fn location(&self, addresses: &[SocketAddr]) -> Result<Location, LabError> {
        let list = |each: Vec<String>| each.join(",");
        let (servers, colluding) = self.used;
        let servers = usize::from(servers);
        let keys = self.keys.iter().take(servers).map(in_url);
        let url = format!(
            "shares://{}/{NAME}?server={}&key={}&collude={colluding}",
            list(addresses.iter().take(servers).map(SocketAddr::to_string).collect()),
            list(keys.collect()),
            self.client_key().display()
        );
        url.parse().map_err(no_servers)
    }

    /// The location of the volume on the bucket server at `address`.
    fn location_alone(&self, address: SocketAddr, key: &PublicKey) -> Result<Location, LabError> {
        let (key, client_key) = (in_url(key), self.client_key());
        let url =
            format!("oblivio+tls://{address}/{NAME}?server={key}&key={}", client_key.display());
        url.parse().map_err(no_servers)
    }

    fn end_relays(&mut self) {
        for RunningRelay { relay, thread } in &mut self.relays {
            relay.stop();
            // A relay whose thread panicked has stopped, too.
            let _ = thread.take().map(JoinHandle::join);
        }
        self.relays.clear();
    }
}

impl Servers for ShareServers {
    fn create(&mut self, servers: u8, colluding: u8) -> Result<AnyStore, LabError> {
        self.used = (servers, colluding);
        let location = self.location(&self.addresses)?;
        location.create(&[no_tree()], &StoreOptions::default()).map_err(no_servers)
    }

    fn connect_behind(&mut self, link: Link) -> Result<AnyStore, LabError> {
        let to: Vec<_> = self.addresses.iter().take(self.used.0.into()).copied().collect();
        let addresses = self.relay(&to, link)?;
        let opened = self.location(&addresses)?.open(&StoreOptions::default());
        Ok(opened.map_err(no_servers)?.store)
    }

    fn remove(&mut self) -> Result<(), LabError> {
        self.end_relays();
        self.location(&self.addresses)?.remove().map_err(no_servers)
    }

    fn create_alone(&mut self, trees: &[TreeShape], link: Link) -> Result<AnyStore, LabError> {
        let (address, key) = match &self.alone {
            Some(alone) => *alone,
            None => {
                let key = SecretKey::generate().map_err(no_servers)?;
                let public = key.public();
                let address = self.run(ANY_PORT, "alone", key, None)?;
                *self.alone.insert((address, public))
            }
        };
        let location = self.location_alone(address, &key)?;
        drop(location.create(trees, &StoreOptions::default()).map_err(no_servers)?);
        let relayed = self.relay(&[address], link)?[0];
        let opened = self.location_alone(relayed, &key)?.open(&StoreOptions::default());
        Ok(opened.map_err(no_servers)?.store)
    }

    fn remove_alone(&mut self) -> Result<(), LabError> {
        self.end_relays();
        let Some((address, key)) = &self.alone else { return Ok(()) };
        self.location_alone(*address, key)?.remove().map_err(no_servers)
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for ShareServers {
    fn drop(&mut self) {
        self.end_relays();
        for Running { handle, thread } in &mut self.running {
            handle.stop();
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

/// Finds free addresses. All listeners exist at once, so no two addresses are equal.
fn free_addresses(count: usize) -> std::io::Result<Vec<SocketAddr>> {
    let listening: Vec<_> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    listening.iter().map(TcpListener::local_addr).collect()
}

/// The key as a URL contains it.
fn in_url(key: &PublicKey) -> String {
    key.to_string().split_whitespace().last().unwrap_or_default().to_owned()
}

/// A tree of one bucket. A store needs the shape of a tree, but share servers store no buckets.
fn no_tree() -> TreeShape {
    TreeShape::new(vec![LevelShape {
        buckets: 1,
        slots: 1,
        header_bytes: 16,
        slots_offset: 24,
        slot_bytes: 100,
        bucket_bytes: 512,
    }])
}

fn no_servers(error: impl std::fmt::Display) -> LabError {
    let message = format!("cannot run servers to measure: {error}; measure none with --quick");
    LabError::Engine(Error::new(ErrorKind::Store, message))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use oblivio_lab::Experiment;
    use oblivio_lab::s3oram::{ComparedOram, Effort, Evaluation, MeasuredTree, S3oramPlan};

    use super::*;

    /// Measures the smallest tree with short blocks on real servers, directly and behind a link.
    /// Compares the transferred bytes with the model.
    #[test]
    fn measured_points_transfer_the_bytes_of_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let servers = ShareServers::start(folder.path(), 5).unwrap();
        let shape = MeasuredTree {
            block_bytes: 4096,
            height: 1,
            slots: 74,
            accesses: 16,
            evictions: [1, 1],
            servers: 3,
            colluding: 1,
            is_loaded: false,
        };
        let of_five = [1, 2].map(|colluding| MeasuredTree {
            servers: 5,
            colluding,
            evictions: [1, 0],
            is_loaded: colluding == 2,
            ..shape
        });
        let plan = S3oramPlan {
            effort: Effort::QUICK,
            shapes: [&[shape][..], &of_five].concat(),
            beside: ComparedOram::ALL.into(),
        };
        assert_eq!(plan.servers(), 5);
        let clocks = super::super::s3oram::clocks();
        let servers: Option<Box<dyn Servers>> = Some(Box::new(servers));
        let evaluation = Evaluation { plan, clocks, servers, load: || None };
        let results = evaluation.run(&[], NonZeroUsize::MIN, &()).unwrap();
        assert_eq!(results.measured.len(), 4);
        for point in &results.measured {
            let MeasuredTree { servers, colluding, .. } = point.shape;
            // The client sends a share to each server that has no seed, and receives a share from
            // every server.
            let [sent, answers] = [servers - colluding, servers].map(f64::from);
            assert_eq!((point.access.whole.count, point.eviction.whole.count), (15, 1));
            // Shares of the block and of the query, plus message headers.
            let [up, down] = point.access_bytes;
            assert!((4_200.0 * sent..4_500.0 * sent + 100.0).contains(&up), "{up}");
            assert!((4_096.0 * answers..4_200.0 * answers).contains(&down), "{down}");
        }
        let behind = &results.measured[1];
        // At least two round trips of 15 ms.
        assert!(behind.link.is_some() && behind.access.whole.least >= 0.03);
        let [path, volume] = &results.beside[..] else { panic!("{:?}", results.beside) };
        for beside in [path, volume] {
            assert_eq!(beside.blocks, 32);
            // Nothing is faster than the link.
            assert!(beside.alone.least >= 0.95 * beside.alone_modelled, "{beside:?}");
        }
        // Six levels of five blocks each way, at 29 and 5 Mbit/s.
        assert!((0.255..0.265).contains(&path.alone_modelled), "{path:?}");
        assert!(path.together.is_none());
        let together = volume.together.unwrap();
        assert!(together.mean < volume.alone.mean, "{volume:?}");
        let again = Evaluation::from_json(&Evaluation::to_json(&results).unwrap()).unwrap();
        assert_eq!(again.text(), results.text());
        assert!(results.text().contains("its write"));
        assert!(results.text().contains("A 16, 5 servers of which 2 may collude | loopback"));
    }
}
