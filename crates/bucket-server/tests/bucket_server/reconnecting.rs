//! S³ORAM arrays on share servers, of which one is missing for a while or whose links break.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use oblivio_core::durable::{Durable, DurableConfig, EraStart, Want};
use oblivio_core::{MasterKey, Op};
use oblivio_shares::durable::S3OramParams;
use oblivio_shares::message::{Answer, HostEpoch, Request};
use oblivio_shares::remote::{ShareServer, SharedStore};
use oblivio_shares::servers::{Patience, ServerAnswer, ShareServers, into_store};
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::Preset;
use oblivio_store::{Connector, RemoteOptions};
use oblivio_testkit::ServersWithRecords;
use oblivio_wire::keys::PeerServer;
use oblivio_wire::link::Link;
use oblivio_wire::tls::ClientTls;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::party::shapes;
use super::shares::ServerGroup;

const PRESET: Preset = Preset { slots: 32, accesses: 4 };

/// Connects to one share server.
#[derive(Clone)]
struct TestConnector {
    client_tls: ClientTls,
    address: String,
}

impl Connector for TestConnector {
    fn connect(&mut self, within: Duration) -> io::Result<Link> {
        self.client_tls.handshake(TcpStream::connect(&self.address)?, within)
    }
}

/// The servers of an array. While the array uses them, a test can check which servers are missing.
#[derive(Clone)]
struct Shared(Arc<Mutex<SharedStore>>);

impl Shared {
    fn create(group: &ServerGroup, retry_for: Duration) -> Self {
        let server = |PeerServer { key, address, .. }: &PeerServer| {
            let client_tls = ClientTls::new(&group.alice.key, *key).unwrap();
            let connector = TestConnector { client_tls, address: address.clone() };
            let make_connector =
                Box::new(move || Box::new(connector.clone()) as Box<dyn Connector>);
            ShareServer { address: address.clone(), key: *key, make_connector }
        };
        let servers = group.peers.split_last().unwrap().1.iter().map(server).collect();
        let options = RemoteOptions::new("disk").with_retry_for(retry_for);
        let store = SharedStore::create(servers, &shapes(), 1, options).unwrap();
        Self(Arc::new(Mutex::new(store)))
    }

    fn store(&self) -> MutexGuard<'_, SharedStore> {
        self.0.lock().unwrap()
    }

    /// Asks each server for its epoch.
    fn epochs(&mut self) -> Vec<HostEpoch> {
        let epoch =
            |answered: Option<ServerAnswer>| match Answer::decode(&answered.unwrap().unwrap())
                .unwrap()
            {
                Answer::Epoch(epoch) => epoch,
                other => panic!("no epoch: {other:?}"),
            };
        let asked = vec![Some(Request::Epoch); self.count()];
        self.ask(0, asked, Patience::Long).into_iter().map(epoch).collect()
    }
}

impl ShareServers for Shared {
    fn count(&self) -> usize {
        self.store().count()
    }

    fn ask(
        &mut self,
        tree: u8,
        requests: Vec<Option<Request>>,
        patience: Patience,
    ) -> Vec<Option<ServerAnswer>> {
        self.store().ask(tree, requests, patience)
    }

    fn begin_retries(&mut self) {
        self.store().begin_retries();
    }

    fn wait_for_missing(&mut self) {
        self.store().wait_for_missing();
    }

    fn wait_for_links(&mut self, failed: u32) -> bool {
        self.store().wait_for_links(failed)
    }

    fn key(&self, server: usize) -> [u8; 32] {
        self.store().key(server)
    }

    fn name(&self, server: usize) -> String {
        self.store().name(server)
    }
}

fn access(array: &mut dyn Durable, address: u64, op: Op<'_>, coins: &mut StdRng) {
    let plan = array.plan(&[Want::Block(address)], &[], coins).unwrap();
    array.carry_out(&plan, &mut [op]).unwrap();
}

/// An array on servers, with the randomness of its accesses.
struct Disk {
    array: Box<dyn Durable>,
    shared: Shared,
    coins: StdRng,
}

impl Disk {
    /// Creates an array on all servers of `group`, of which one may collude.
    fn create(group: &ServerGroup, block_bytes: usize, retry_for: Duration) -> Self {
        let (shared, mut coins) = (Shared::create(group, retry_for), StdRng::seed_from_u64(1));
        let parties = Parties::new(shared.count() as u8, 1).unwrap();
        let params = S3OramParams::new(20, block_bytes as u32, parties, PRESET).unwrap();
        let key = MasterKey::from_bytes([9; 32]);
        let mut array = params
            .create(key, &[], into_store(ServersWithRecords::without(shared.clone())), &mut coins)
            .unwrap();
        array.begin_era(EraStart::Opening, &mut coins);
        Self { array, shared, coins }
    }

    fn write(&mut self, address: u64) {
        let data = vec![address as u8; self.array.facts().block_bytes];
        access(&mut *self.array, address, Op::Write(&data), &mut self.coins);
    }

    fn check(&mut self, address: u64) {
        let mut found = vec![0xee; self.array.facts().block_bytes];
        access(&mut *self.array, address, Op::Read(&mut found), &mut self.coins);
        assert!(found.iter().all(|byte| *byte == address as u8));
    }
}

#[test]
fn accesses_work_without_one_of_five_servers_and_evictions_wait_for_it() {
    let mut group = ServerGroup::of(5, None);
    let mut disk = Disk::create(&group, 64, Duration::from_secs(1));
    (0..5).for_each(|address| disk.write(address));
    assert_eq!(disk.shared.store().missing(), 0);
    let stopped = group.stop(2);
    (5..7).for_each(|address| disk.write(address));
    assert_eq!(disk.shared.store().missing(), 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            group.start_again(stopped);
        });
        // This write fills the root, so it needs an eviction, for which the server must be back.
        disk.write(7);
    });
    assert_eq!(disk.shared.store().missing(), 0);
    let epochs = disk.shared.epochs();
    assert!(epochs[2].at.evictions == 2 && epochs.iter().all(|it| it.at == epochs[2].at));
    assert_eq!(disk.array.check(&mut |_| ()).unwrap(), 8);
    (0..8).for_each(|address| disk.check(address));
}

/// Messages in transit at a cut arrive over the next link, so evictions need no second attempt.
#[test]
fn evictions_complete_over_links_that_break() {
    // Blocks in one part, and blocks in parts on all lanes.
    for (block_bytes, end_after) in [(64, 30_000), (60 << 10, 15 << 20)] {
        let ends = Arc::default();
        let group = ServerGroup::of_bad_links(3, end_after, &ends);
        let mut disk = Disk::create(&group, block_bytes, Duration::from_secs(20));
        (0..2).for_each(|_| (0..20).for_each(|address| disk.write(address)));
        let evictions = 40 / u64::from(PRESET.accesses);
        for HostEpoch { at, attempt, .. } in disk.shared.epochs() {
            assert_eq!(
                (at.evictions, attempt),
                (evictions, evictions),
                "an eviction needed a second attempt"
            );
        }
        assert!(ends.load(Ordering::Relaxed) >= 10, "{ends:?}");
        (0..20).for_each(|address| disk.check(address));
    }
}
