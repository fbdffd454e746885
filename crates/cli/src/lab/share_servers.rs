//! Share servers in this process, over sockets and TLS, with files in a folder that goes when they do.

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
    /// On how many of them the volume is that was made last, and how many of these may collude.
    used: (u8, u8),
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
    /// Starts so many, with a folder of their own in `folder`.
    pub(crate) fn start(folder: &Path, servers: usize) -> Result<Self, LabError> {
        let folder = tempfile::Builder::new().prefix("oblivio-shares").tempdir_in(folder);
        let folder = folder.map_err(no_servers)?;
        let client = SecretKey::generate().map_err(no_servers)?;
        client.write(&folder.path().join(CLIENT_KEY)).map_err(no_servers)?;
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
        let mut started = Self {
            folder,
            addresses,
            keys: public,
            running: Vec::new(),
            relays: Vec::new(),
            used: (0, 0),
        };
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

    /// Where the volume is, if its servers are reached there.
    fn location(&self, addresses: &[SocketAddr]) -> Result<Location, LabError> {
        let list = |each: Vec<String>| each.join(",");
        let (servers, colluding) = self.used;
        let servers = usize::from(servers);
        let keys = self.keys.iter().take(servers).map(|key| {
            let shown = key.to_string();
            shown.split_whitespace().last().unwrap_or_default().to_owned()
        });
        let url = format!(
            "shares://{}/{NAME}?server={}&key={}&collude={colluding}",
            list(addresses.iter().take(servers).map(SocketAddr::to_string).collect()),
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
    fn create(&mut self, servers: u8, colluding: u8) -> Result<AnyStore, LabError> {
        self.used = (servers, colluding);
        let location = self.location(&self.addresses)?;
        location.create(&[no_tree()], &StoreOptions::default()).map_err(no_servers)
    }

    fn behind(&mut self, link: Link) -> Result<AnyStore, LabError> {
        self.end_relays();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let stopwatch = Arc::new(Stopwatch::start());
        for to in self.addresses.iter().take(self.used.0.into()) {
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
fn free_addresses(count: usize) -> std::io::Result<Vec<SocketAddr>> {
    let listening: Vec<_> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
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
    use oblivio_lab::s3oram::{Clocks, Effort, Plan, Results, Shape, run};

    use super::*;
    use crate::clock::{processor_time_of_process, processor_time_of_thread};

    /// The smallest tree that there can be of short blocks, on real servers and behind the link.
    #[test]
    fn a_small_tree_is_measured_directly_and_behind_a_link_and_on_more_servers_with_the_bytes_of_the_model()
     {
        let folder = tempfile::tempdir().unwrap();
        let mut servers = ShareServers::start(folder.path(), 5).unwrap();
        let shape = Shape {
            block_bytes: 4096,
            height: 1,
            slots: 74,
            accesses: 16,
            evictions: [1, 1],
            servers: 3,
            colluding: 1,
        };
        let of_five =
            [1, 2].map(|colluding| Shape { servers: 5, colluding, evictions: [1, 0], ..shape });
        let plan = Plan { effort: Effort::QUICK, shapes: [&[shape][..], &of_five].concat() };
        assert_eq!(plan.servers(), 5);
        let stopwatch = Stopwatch::start();
        let wall = Arc::new(move || stopwatch.elapsed());
        let clocks = Clocks {
            wall,
            thread: Arc::new(processor_time_of_thread),
            processors: Arc::new(processor_time_of_process),
        };
        let results = run(&plan, &clocks, Some(&mut servers), &|_| ()).unwrap();
        assert_eq!(results.measured.len(), 4);
        for point in &results.measured {
            let Shape { servers, colluding, .. } = point.shape;
            // As many shares go up as are no seeds, and one comes down from each.
            let [sent, answers] = [servers - colluding, servers].map(f64::from);
            assert_eq!((point.access.whole.count, point.eviction.whole.count), (15, 1));
            // Shares of the block and of the query, but for the heads of messages.
            let [up, down] = point.access_bytes;
            assert!((4_200.0 * sent..4_500.0 * sent + 100.0).contains(&up), "{up}");
            assert!((4_096.0 * answers..4_200.0 * answers).contains(&down), "{down}");
        }
        let behind = &results.measured[1];
        // Two trips of 15 ms at least.
        assert!(behind.link.is_some() && behind.access.whole.least >= 0.03);
        let again = Results::from_json(&results.to_json().unwrap()).unwrap();
        assert_eq!(again.text(), results.text());
        assert!(results.text().contains("its write"));
        assert!(results.text().contains("A 16, 5 servers of which 2 may collude | loopback"));
    }
}
