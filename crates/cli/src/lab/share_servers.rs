//! Three share servers in this process, over sockets and TLS, with files in a folder that goes when they do.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use oblivio_core::durable::AnyStore;
use oblivio_core::store::{LevelShape, TreeShape};
use oblivio_core::{Error, ErrorKind};
use oblivio_lab::LabError;
use oblivio_lab::link::Link;
use oblivio_lab::relay::Relay;
use oblivio_lab::s3oram::Servers;
use oblivio_serve::buckets::{BucketLimits, BucketServer, BucketServerHandle, BucketServerOptions};
use oblivio_store::{Location, StoreOptions};
use oblivio_wire::keys::{AllowedClient, PeerServer, PublicKey, SecretKey};
use tempfile::TempDir;

use crate::clock::Stopwatch;

const SERVERS: usize = 3;

/// What the volume is called on each of them.
const NAME: &str = "measured";

const CLIENT_KEY: &str = "client.key";

/// Servers, a client's key, and how they are reached.
pub(crate) struct ShareServers {
    folder: TempDir,
    addresses: Vec<SocketAddr>,
    keys: Vec<PublicKey>,
    running: Vec<Running>,
    relays: Vec<RunningRelay>,
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
    /// Starts them, with a folder of their own in `folder`.
    pub(crate) fn start(folder: &Path) -> Result<Self, LabError> {
        let folder = tempfile::Builder::new().prefix("oblivio-shares").tempdir_in(folder);
        let folder = folder.map_err(no_servers)?;
        let client = SecretKey::generate().map_err(no_servers)?;
        client.write(&folder.path().join(CLIENT_KEY)).map_err(no_servers)?;
        let addresses = free_addresses().map_err(no_servers)?;
        let keys = (0..SERVERS).map(|_| SecretKey::generate()).collect::<Result<Vec<_>, _>>();
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
        let mut started =
            Self { folder, addresses, keys: public, running: Vec::new(), relays: Vec::new() };
        for (number, key) in keys.into_iter().enumerate() {
            let folder = started.folder.path().join(number.to_string());
            std::fs::create_dir(&folder).map_err(no_servers)?;
            let options = BucketServerOptions {
                folder,
                key,
                clients: vec![AllowedClient {
                    key: client.public(),
                    name: "lab".to_owned(),
                    quota_bytes: None,
                }],
                peers: Some(peers.clone()),
                limits: BucketLimits::default(),
            };
            let server =
                BucketServer::bind(started.addresses[number], options).map_err(no_servers)?;
            let handle = server.handle();
            let run = move || drop(server.run());
            let thread = thread::Builder::new().spawn(run).map_err(no_servers)?;
            started.running.push(Running { handle, thread: Some(thread) });
        }
        Ok(started)
    }

    fn location(&self, addresses: &[SocketAddr]) -> Result<Location, LabError> {
        let list = |each: Vec<String>| each.join(",");
        let keys = self.keys.iter().map(|key| {
            let shown = key.to_string();
            shown.split_whitespace().last().unwrap_or_default().to_owned()
        });
        let url = format!(
            "shares://{}/{NAME}?server={}&key={}",
            list(addresses.iter().map(SocketAddr::to_string).collect()),
            list(keys.collect()),
            self.folder.path().join(CLIENT_KEY).display()
        );
        url.parse().map_err(no_servers)
    }

    fn end_relays(&mut self) {
        for RunningRelay { relay, thread } in &mut self.relays {
            relay.stop();
            // One that panicked has ended, too.
            let _ = thread.take().map(JoinHandle::join);
        }
        self.relays.clear();
    }
}

impl Servers for ShareServers {
    fn create(&mut self) -> Result<AnyStore, LabError> {
        let location = self.location(&self.addresses)?;
        location.create(&[no_tree()], &StoreOptions::default()).map_err(no_servers)
    }

    fn behind(&mut self, link: Link) -> Result<AnyStore, LabError> {
        self.end_relays();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let stopwatch = Arc::new(Stopwatch::start());
        for to in &self.addresses {
            let relay = match self.relays.first() {
                None => Relay::bind(any_port, *to, link, None)?,
                Some(first) => first.relay.beside(any_port, *to)?,
            };
            let relay = Arc::new(relay);
            let (carrying, stopwatch) = (relay.clone(), stopwatch.clone());
            let run = move || carrying.run(&|| stopwatch.elapsed());
            let thread = thread::Builder::new().spawn(run).map_err(no_servers)?;
            self.relays.push(RunningRelay { relay, thread: Some(thread) });
        }
        let addresses: Vec<_> = self.relays.iter().map(|it| it.relay.address()).collect();
        let opened = self.location(&addresses)?.open(&StoreOptions::default());
        Ok(opened.map_err(no_servers)?.store)
    }

    fn remove(&mut self) -> Result<(), LabError> {
        self.end_relays();
        self.location(&self.addresses)?.remove().map_err(no_servers)
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

/// All are there at once: so no two are the same.
fn free_addresses() -> std::io::Result<Vec<SocketAddr>> {
    let listening: Vec<_> =
        (0..SERVERS).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    listening.iter().map(TcpListener::local_addr).collect()
}

/// A volume has a tree, and here it holds nothing.
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
    let message = format!("no servers to measure: {error}; leave them out with --quick");
    LabError::Engine(Error::new(ErrorKind::Store, message))
}

#[cfg(test)]
mod tests {
    use oblivio_lab::s3oram::{Clock, Effort, Plan, Results, Shape, run};

    use super::*;

    /// The smallest tree that there can be of short blocks, on real servers and behind the link.
    #[test]
    fn a_small_tree_is_measured_directly_and_behind_a_link_with_the_bytes_of_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let mut servers = ShareServers::start(folder.path()).unwrap();
        let shape =
            Shape { block_bytes: 4096, height: 1, slots: 74, accesses: 16, evictions: [1, 1] };
        let plan = Plan { effort: Effort::QUICK, shapes: vec![shape] };
        let stopwatch = Stopwatch::start();
        let clock: Clock = Arc::new(move || stopwatch.elapsed());
        let results = run(&plan, &clock, Some(&mut servers), &|_| ()).unwrap();
        assert_eq!(results.measured.len(), 2);
        for point in &results.measured {
            assert_eq!((point.access.whole.count, point.eviction.whole.count), (15, 1));
            // Two shares and two queries go up, but for the heads of messages.
            let [up, down] = point.access_bytes;
            assert!((8_400.0..9_000.0).contains(&up), "{up}");
            assert!((12_288.0..12_600.0).contains(&down), "{down}");
        }
        let behind = &results.measured[1];
        // Two trips of 15 ms at least.
        assert!(behind.link.is_some() && behind.access.whole.least >= 0.03);
        let again = Results::from_json(&results.to_json().unwrap()).unwrap();
        assert_eq!(again.text(), results.text());
        assert!(results.text().contains("its write"));
    }
}
