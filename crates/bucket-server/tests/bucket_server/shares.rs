//! Share servers: which clients may request computations, and which servers may deal.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use oblivio_bucket_server::{BucketLimits, WatchVolumes};
use oblivio_core::StoreErrorKind;
use oblivio_shares::client::Client as ShareClient;
use oblivio_shares::field::Gf256;
use oblivio_shares::host::Host;
use oblivio_shares::message::{
    Answer as ShareAnswer, Evict, HostEpoch, Request as ShareRequest, Setup, TreePoint,
};
use oblivio_shares::remote::SharesLocation;
use oblivio_shares::servers::{AnyServers, Patience, ServerAnswer, share_servers};
use oblivio_shares::sharing::{Parties, Share};
use oblivio_shares::tree::{Preset, Tree};
use oblivio_store::{BoxedStore, StoreKind, StoreOptions};
use oblivio_wire::keys::{PeerServer, PublicKey, SecretKey};
use oblivio_wire::link::MonotonicTime;
use oblivio_wire::{Answer, FailureKind, OpenMode, Request, frame};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tempfile::TempDir;

use super::bad_links::BadLinks;
use super::party::{Client, Party, READ, Server, create, open_request, shapes};
use oblivio_testkit::memory_disk::wait_until;

fn compute(message: &[u8]) -> Request {
    Request::Compute { number: 4, message: message.to_vec() }
}

fn peer_of(client: &Party, name: &str) -> Request {
    Request::Peer { client: client.key.public(), name: name.into() }
}

fn at(key: PublicKey, address: SocketAddr) -> PeerServer {
    PeerServer { key, address: address.to_string(), label: None }
}

/// Returns an address with a free port.
fn any_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Starts a server with seats for two clients. Its peers exist only as keys.
fn start(folder: &TempDir, clients: &[&Party], peers: &[&Party]) -> Server {
    let own = Party::named("server").key;
    let peers = peers.iter().map(|peer| at(peer.key.public(), any_address())).collect();
    let address = "127.0.0.1:0".parse().unwrap();
    let limits = BucketLimits { connections_max: 2, ..BucketLimits::default() };
    Server::start_as(folder.path(), clients, limits, (own, address), Some(peers))
}

#[test]
fn a_server_without_peers_refuses_computations_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let (mut client, _) = server.open(&alice, "disk", create());
    let refused = client.last_refusal(&compute(b"how far are you?"));
    assert!(refused.contains("oblivio serve shares"), "{refused}");
    let refused = server.greet(&alice).last_refusal(&peer_of(&alice, "disk"));
    assert!(refused.contains("oblivio serve shares"), "{refused}");
    assert_eq!(server.metric("requests_total{kind=\"compute\"}"), 1);
}

#[test]
fn only_writers_may_request_computations() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, peer) = (Party::named("alice"), Party::named("peer"));
    let server = start(&folder, &[&alice], &[&peer]);
    let (mut old, _) = server.open(&alice, "disk", create());
    let (new, _) = server.open(&alice, "disk", OpenMode::Write);
    assert_eq!(old.last_failure(&compute(b"late")), FailureKind::Fenced);
    drop((old, new));
    wait_until(|| server.metric("connections") == 0);
    for mode in [READ, OpenMode::Look] {
        let (mut client, _) = server.open(&alice, "disk", mode.clone());
        // Any connection that has the volume open may ask for the epoch.
        let ShareAnswer::Epoch(epoch) = answer_of(&mut client, &ShareRequest::Epoch) else {
            panic!("no epoch")
        };
        assert!(!epoch.is_set_up);
        drop(client);
        wait_until(|| server.metric("connections") == 0);
        // A connection that cannot write may not make servers connect to each other.
        for message in [&ShareRequest::Connect.encode()[..], b""] {
            let (mut client, _) = server.open(&alice, "disk", mode.clone());
            assert_eq!(client.last_failure(&compute(message)), FailureKind::Refused);
            drop(client);
            wait_until(|| server.metric("connections") == 0);
        }
    }
    assert_eq!(server.greet(&alice).last_failure(&compute(b"")), FailureKind::Invalid);
    let deal = Request::Deal { message: vec![1] };
    assert_eq!(server.greet(&alice).last_failure(&deal), FailureKind::Invalid);
    let refused = server.greet(&alice).last_refusal(&peer_of(&alice, "disk"));
    assert!(refused.contains("another server"), "{refused}");
}

#[test]
fn a_peer_server_may_only_join_existing_volumes() {
    let folder = tempfile::tempdir().unwrap();
    let [alice, peer, stranger] = ["alice", "peer", "stranger"].map(Party::named);
    let server = start(&folder, &[&alice], &[&peer]);
    let _owner = server.open(&alice, "disk", create());
    assert!(server.try_greet(&stranger).is_none());
    for (client, name) in [(&stranger, "disk"), (&peer, "disk"), (&alice, "other")] {
        let refused = server.greet(&peer).last_failure(&peer_of(client, name));
        assert_eq!(refused, FailureKind::NoVolume, "{name}");
    }
    for strange in [
        open_request("disk", OpenMode::Write),
        compute(b""),
        Request::Deal { message: vec![] },
        Request::Remove { name: "disk".into() },
    ] {
        assert_eq!(server.greet(&peer).last_failure(&strange), FailureKind::Refused);
    }
}

/// Connections of servers cannot use seats of clients, and vice versa.
#[test]
fn servers_and_clients_have_separate_seats() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, peer) = (Party::named("alice"), Party::named("peer"));
    let server = start(&folder, &[&alice], &[&peer]);
    let servers: Vec<_> = (0..5).map(|_| server.greet(&peer)).collect();
    assert_eq!((server.metric("connections"), server.metric("peers")), (0, 5));
    let clients: Vec<_> = (0..2).map(|_| server.greet(&alice)).collect();
    assert!(server.try_greet(&alice).is_none());
    drop((servers, clients));
    wait_until(|| server.metric("peers") == 0);
}

/// Servers that compute with each other, and the key of another server that they know.
pub(super) struct ServerGroup {
    servers: Vec<Server>,
    pub(super) peers: Vec<PeerServer>,
    stranger: Party,
    pub(super) alice: Party,
    folders: Vec<TempDir>,
}

/// A stopped server that can be started again.
pub(super) struct Stopped {
    server: usize,
    address: SocketAddr,
}

impl ServerGroup {
    fn start(quota_bytes: Option<u64>) -> Self {
        Self::of(3, quota_bytes)
    }

    /// Starts a group of `count` servers.
    pub(super) fn of(count: usize, quota_bytes: Option<u64>) -> Self {
        Self::with(count, quota_bytes, BucketLimits::default())
    }

    /// Starts a group of `count` servers. Links between them end after `end_after` bytes, and
    /// `ends` counts the cut links.
    pub(super) fn of_bad_links(count: usize, end_after: u64, ends: &Arc<AtomicU32>) -> Self {
        let address_of = |address| BadLinks::start(address, end_after, ends);
        Self::start_with(count, None, BucketLimits::default(), address_of)
    }

    fn with(count: usize, quota_bytes: Option<u64>, limits: BucketLimits) -> Self {
        Self::start_with(count, quota_bytes, limits, |address| address)
    }

    /// Starts a group. `address_of` maps the address of a server to the address that others use.
    fn start_with(
        count: usize,
        quota_bytes: Option<u64>,
        limits: BucketLimits,
        address_of: impl Fn(SocketAddr) -> SocketAddr,
    ) -> Self {
        let alice = Party { quota_bytes, ..Party::named("alice") };
        let keys: Vec<_> = (0..count).map(|_| Party::named("server").key).collect();
        let stranger = Party::named("stranger");
        let addresses: Vec<_> = (0..=count).map(|_| any_address()).collect();
        let public = keys.iter().map(SecretKey::public).chain([stranger.key.public()]);
        let peers = public.zip(&addresses).map(|(key, address)| at(key, *address));
        let peers: Vec<_> = peers.collect();
        let folders: Vec<_> = keys.iter().map(|_| tempfile::tempdir().unwrap()).collect();
        // For the servers, and for tests that act as one of them.
        for (key, folder) in keys.iter().zip(&folders) {
            key.write(&folder.path().join(KEY_FILE)).unwrap();
        }
        let others =
            peers.iter().zip(&addresses).map(|(peer, address)| at(peer.key, address_of(*address)));
        let others: Vec<_> = others.collect();
        let servers = keys.into_iter().zip(&folders).zip(addresses);
        let servers = servers.map(|((key, folder), address)| {
            let (limits, peers) = (limits.clone(), Some(others.clone()));
            Server::start_as(folder.path(), &[&alice], limits, (key, address), peers)
        });
        let servers = servers.collect();
        Self { servers, peers, stranger, alice, folders }
    }

    /// Returns a party with the key of the server with index `server`, counted from 0.
    fn as_peer(&self, server: usize) -> Party {
        let key = SecretKey::read(&self.folders[server].path().join(KEY_FILE)).unwrap();
        Party { key, ..Party::named("server") }
    }

    pub(super) fn stop(&mut self, server: usize) -> Stopped {
        let old = self.servers.remove(server);
        let stopped = Stopped { server, address: old.address };
        old.stop();
        stopped
    }

    pub(super) fn start_again(&mut self, Stopped { server, address }: Stopped) {
        let (folder, peers) = (self.folders[server].path(), Some(self.peers.clone()));
        let (limits, key) = (BucketLimits::default(), self.as_peer(server).key);
        let new = Server::start_as(folder, &[&self.alice], limits, (key, address), peers);
        self.servers.insert(server, new);
    }

    /// The setup for the first server.
    fn setup(&self) -> Setup {
        Setup {
            number: 1,
            parties: Parties::new(3, 1).unwrap(),
            tree: Tree::new(3, PRESET).unwrap(),
            block_bytes: BLOCK_BYTES,
            metadata_bytes: 0,
            keys: self.peers[..3].iter().map(|peer| peer.key.bytes()).collect(),
        }
    }

    /// The location of a volume on the three servers of the group.
    fn location(&self, name: &str) -> SharesLocation {
        let key = self.folders[0].path().join("alice.key");
        if !key.exists() {
            self.alice.key.write(&key).unwrap();
        }
        let list = |shown: fn(&PeerServer) -> String| {
            self.peers[..3].iter().map(shown).collect::<Vec<_>>().join(",")
        };
        let addresses = list(|peer| peer.address.clone());
        let keys = list(|peer| peer.key.to_string().split_once(' ').unwrap().1.to_owned());
        let url = format!("{addresses}/{name}?server={keys}&key={}", key.display());
        SharesLocation::parse(url.as_bytes()).unwrap()
    }
}

const PRESET: Preset = Preset { slots: 24, accesses: 4 };
const BLOCK_BYTES: usize = 500;
const KEY_FILE: &str = "server.key";

/// Sends a share request to one server, and returns the answer.
fn answer_of(client: &mut Client, request: &ShareRequest) -> ShareAnswer {
    match client.ask(&compute(&request.encode())) {
        Answer::Data { number: 4, bytes } => ShareAnswer::decode(&bytes).unwrap(),
        other => panic!("nothing was computed: {other:?}"),
    }
}

fn why_not(client: &mut Client, setup: Setup, kind: StoreErrorKind) -> String {
    match answer_of(client, &ShareRequest::Setup(setup)) {
        ShareAnswer::Refused(refusal) => {
            assert_eq!(refusal.kind, kind, "{}", refusal.why);
            refusal.why
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_setup_needs_known_servers_the_own_key_and_quota() {
    let group = ServerGroup::start(Some(10 << 20));
    let (server, alice) = (&group.servers[0], &group.alice);
    let (mut client, _) = server.open(alice, "disk", create());
    let setup = group.setup();
    let refused =
        why_not(&mut client, Setup { number: 2, ..setup.clone() }, StoreErrorKind::Refused);
    assert!(refused.contains(&group.peers[0].key.to_string()), "{refused}");
    let stranger = Party::named("stranger").key.public();
    let mut keys = setup.keys.clone();
    keys[2] = stranger.bytes();
    let refused = why_not(&mut client, Setup { keys, ..setup.clone() }, StoreErrorKind::Refused);
    assert!(refused.contains(&stranger.to_string()), "{refused}");
    let tree = Tree::new(10, PRESET).unwrap();
    let refused = why_not(&mut client, Setup { tree, ..setup.clone() }, StoreErrorKind::Full);
    assert!(refused.contains("of this client's quota are left"), "{refused}");
    let peer = group.as_peer(1);
    let none = server.greet(&peer).ask(&peer_of(alice, "disk"));
    assert_eq!(answer_of(&mut client, &ShareRequest::Setup(setup.clone())), ShareAnswer::Done);
    // A known server that is not part of this volume.
    let refused = server.greet(&group.stranger).ask(&peer_of(alice, "disk"));
    // The answer is the same for a volume that is not set up, a volume of other servers, and a
    // volume that does not exist.
    let absent = server.greet(&peer).ask(&peer_of(alice, "absent"));
    assert!(
        matches!(&absent, Answer::Failed(it) if it.kind == FailureKind::NoVolume),
        "{absent:?}"
    );
    assert_eq!((&none, &refused), (&absent, &absent));
    let mut first = server.greet(&peer);
    assert_eq!(first.ask(&peer_of(alice, "disk")), Answer::Done { number: 0 });
    // The newer connection replaces the older one.
    let mut second = server.greet(&peer);
    assert_eq!(second.ask(&peer_of(alice, "disk")), Answer::Done { number: 0 });
    first.expect_end();
    let deal = Request::Deal { message: b"no message".to_vec() };
    assert_eq!(second.last_failure(&deal), FailureKind::Invalid);
    // Removing the volume removes its shares and frees their quota.
    let shares = group.folders[0].path().join("alice/disk/shares");
    assert!(shares.is_dir());
    drop(client);
    wait_until(|| {
        server.greet(alice).ask(&Request::Remove { name: "disk".into() })
            == Answer::Done { number: 0 }
    });
    assert!(!shares.parent().unwrap().exists());
    let (mut client, _) = server.open(alice, "disk", create());
    let ShareAnswer::Epoch(epoch) = answer_of(&mut client, &ShareRequest::Epoch) else {
        panic!("no epoch")
    };
    assert!(!epoch.is_set_up);
}

#[test]
fn shares_count_towards_the_quota() {
    let setup = ServerGroup::start(None).setup();
    let shares = Host::file_bytes(&setup);
    let store = StoreKind::File.bytes_needed(&shapes()).unwrap();
    let group = ServerGroup::start(Some(2 * (store + shares) - 1));
    let set_up = |name| {
        let (mut client, _) = group.servers[0].open(&group.alice, name, create());
        answer_of(&mut client, &ShareRequest::Setup(group.setup()))
    };
    assert_eq!(set_up("one"), ShareAnswer::Done);
    let ShareAnswer::Refused(refusal) = set_up("two") else { panic!("the quota was not enforced") };
    assert_eq!(refusal.kind, StoreErrorKind::Full);
    assert!(refusal.why.contains("of this client's quota are left"), "{}", refusal.why);
}

/// A watcher that declined, such as a recorder without space, is not asked again at every request:
/// its view would lack the beginning.
#[test]
fn the_watcher_is_called_once_per_period_of_use() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let [own, one, other] = ["server", "one", "other"].map(Party::named);
    let keys = [&own, &one, &other].map(|it| it.key.public().bytes()).to_vec();
    let peers = [&one, &other].map(|it| at(it.key.public(), any_address())).to_vec();
    let asked = Arc::new(AtomicUsize::new(0));
    let asks = asked.clone();
    let watch: Box<WatchVolumes> = Box::new(move |computed| {
        assert_eq!(computed.name, "disk");
        asks.fetch_add(1, Ordering::Relaxed);
        None
    });
    let address = "127.0.0.1:0".parse().unwrap();
    let (limits, watch) = (BucketLimits::default(), Some(watch));
    let server = Server::start_watched(
        folder.path(),
        &[&alice],
        limits,
        (own.key, address),
        Some(peers),
        watch,
    );
    let (mut client, _) = server.open(&alice, "disk", create());
    let (parties, tree) = (Parties::new(3, 1).unwrap(), Tree::new(3, PRESET).unwrap());
    let setup =
        Setup { number: 1, parties, tree, block_bytes: BLOCK_BYTES, metadata_bytes: 0, keys };
    assert_eq!(answer_of(&mut client, &ShareRequest::Setup(setup)), ShareAnswer::Done);
    assert_eq!(asked.load(Ordering::Relaxed), 0, "the watcher was called before the setup");
    for _ in 0..3 {
        assert!(matches!(
            answer_of(&mut client, &ShareRequest::Epoch),
            ShareAnswer::Epoch(HostEpoch { is_set_up: true, .. })
        ));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

fn servers_in(store: BoxedStore) -> AnyServers {
    share_servers(store).ok().expect("the store is on share servers")
}

/// Sends one request to each server of a store at once. All must succeed. Returns the share in each
/// answer, if there is one.
fn ask_all(store: &mut AnyServers, requests: Vec<ShareRequest>) -> Vec<Option<Vec<u8>>> {
    let requests = requests.into_iter().map(Some).collect();
    let answered = store.ask(0, requests, Patience::Long);
    let share =
        |answered: Option<ServerAnswer>| match ShareAnswer::decode(&answered.unwrap().unwrap())
            .unwrap()
        {
            ShareAnswer::Share(share) => Some(share),
            ShareAnswer::Done => None,
            other => panic!("not done: {other:?}"),
        };
    answered.into_iter().map(share).collect()
}

/// A client with eight blocks on three share servers.
struct Blocks {
    client: ShareClient<Gf256>,
    coins: StdRng,
    store: AnyServers,
    at: TreePoint,
}

impl Blocks {
    /// Sets up a new volume.
    fn set_up(group: &ServerGroup, store: BoxedStore) -> Self {
        let mut store = servers_in(store);
        let setups = (1..=3).map(|number| Setup { number, ..group.setup() });
        ask_all(&mut store, setups.map(ShareRequest::Setup).collect());
        let Setup { parties, tree, .. } = group.setup();
        let client = ShareClient::new(parties, tree, 8, BLOCK_BYTES).unwrap();
        Self { client, coins: StdRng::seed_from_u64(1), store, at: TreePoint::default() }
    }

    /// Reads a block, and then fills it with `next`. Returns the earlier contents. Evicts if an
    /// eviction is due.
    fn exchange(&mut self, address: usize, next: u8) -> Vec<u8> {
        let Self { client, coins, store, at } = self;
        let (selected, selects) = client.select(address, coins).unwrap();
        let at_now = *at;
        let selects = selects.into_iter().map(|select| ShareRequest::Select { at: at_now, select });
        let shares: Vec<_> = ask_all(store, selects.collect()).into_iter().flatten().collect();
        let block = client.recover(&[1, 2, 3], &shares).unwrap().block;
        let writes = client.write(&selected, &[next; BLOCK_BYTES], coins).unwrap().into_iter();
        let writes = writes.map(|write| ShareRequest::Write { at: at_now, block: write.block });
        ask_all(store, writes.collect());
        at.written += 1;
        if client.must_evict() {
            let evicts = client.evict(coins).unwrap().into_iter();
            let evicts = evicts.map(|evict| ShareRequest::Evict { evict, dealers: vec![1, 2, 3] });
            ask_all(store, evicts.collect());
            *at = TreePoint { evictions: at.evictions + 1, written: 0 };
        }
        block.to_vec()
    }
}

#[test]
fn three_servers_evict_together_even_after_one_restarted() {
    let mut group = ServerGroup::start(None);
    let location = group.location("disk");
    let store = location.create(&shapes(), &StoreOptions::default()).unwrap();
    let mut blocks = Blocks::set_up(&group, store);
    let mut holds = [0; 8];
    for round in 0..40u8 {
        let address = usize::from(round) * 5 % 8;
        assert_eq!(blocks.exchange(address, round + 1), [holds[address]; BLOCK_BYTES]);
        holds[address] = round + 1;
        if round == 21 {
            let stopped = group.stop(1);
            group.start_again(stopped);
        }
    }
    let dealt =
        |server: &Server, way: &str| server.metric(&format!("deals_total{{way=\"{way}\"}}"));
    assert!(group.servers.iter().all(|it| dealt(it, "in") > 0 && dealt(it, "out") > 0));
    // Opening the volume again finds the current state of the servers.
    drop(blocks.store);
    assert!(location.check_vacant().is_err());
    blocks.store = servers_in(location.open(&StoreOptions::default()).unwrap().store);
    assert_eq!(blocks.exchange(3, 0), [holds[3]; BLOCK_BYTES]);
    drop(blocks);
    location.remove().unwrap();
    location.check_vacant().unwrap();
}

/// The scheme handles the failure. This test checks that the failure comes in time, and leaves the
/// state unchanged.
#[test]
fn an_eviction_without_one_server_fails_in_time_and_can_be_retried() {
    let mut group = ServerGroup::start(None);
    let options = StoreOptions::default().with_retry_for(Duration::from_secs(1));
    let store = group.location("disk").create(&shapes(), &options).unwrap();
    let mut blocks = Blocks::set_up(&group, store);
    (1..4).for_each(|byte| drop(blocks.exchange(usize::from(byte), byte)));
    let (selected, selects) = blocks.client.select(5, &mut blocks.coins).unwrap();
    let at = blocks.at;
    let selects = selects.into_iter().map(|select| ShareRequest::Select { at, select });
    ask_all(&mut blocks.store, selects.collect());
    let writes = blocks.client.write(&selected, &[5; BLOCK_BYTES], &mut blocks.coins).unwrap();
    let writes = writes.into_iter().map(|it| ShareRequest::Write { at, block: it.block });
    ask_all(&mut blocks.store, writes.collect());
    let evicts = blocks.client.evict(&mut blocks.coins).unwrap();
    let evict = |attempt: u64| -> Vec<_> {
        let again = evicts.iter().map(|evict| Evict { attempt, ..evict.clone() });
        again.map(|evict| ShareRequest::Evict { evict, dealers: vec![1, 2, 3] }).collect()
    };
    let stopped = group.stop(2);
    let in_time = MonotonicTime::now().after(Duration::from_secs(30));
    let requests = evict(evicts[0].attempt).into_iter().map(Some).collect();
    let mut answered = blocks.store.ask(0, requests, Patience::Long);
    let unreached = answered.pop().flatten().unwrap().unwrap_err();
    assert_eq!(unreached.kind(), StoreErrorKind::Unreachable);
    assert!(unreached.to_string().contains("could not be reached"), "{unreached}");
    for answered in answered {
        let answer = ShareAnswer::decode(&answered.unwrap().unwrap()).unwrap();
        assert!(matches!(&answer, ShareAnswer::Refused(_)), "{answer:?}");
    }
    assert!(in_time.left().is_some());
    group.start_again(stopped);
    wait_until(|| {
        let asked = vec![None, None, Some(ShareRequest::Epoch)];
        let answered = blocks.store.ask(0, asked, Patience::Short);
        answered[2].as_ref().is_some_and(Result::is_ok)
    });
    let attempt = blocks.client.next_attempt();
    ask_all(&mut blocks.store, evict(attempt));
    blocks.at = TreePoint { evictions: 1, written: 0 };
    for (address, byte) in [(1, 1), (2, 2), (3, 3), (5, 5), (6, 0)] {
        assert_eq!(blocks.exchange(address, 9), [byte; BLOCK_BYTES]);
    }
}

/// Sets up a volume, fills the root of the first server, and sends the request to evict only to
/// this server, which then waits for the others. Returns a client of each server, and the number of
/// the attempt.
fn evict_alone(group: &ServerGroup) -> (Vec<Client>, u64) {
    let open = |server: &Server| server.open(&group.alice, "disk", create()).0;
    let mut owners: Vec<_> = group.servers.iter().map(open).collect();
    for (owner, number) in owners.iter_mut().zip(1..) {
        let setup = Setup { number, ..group.setup() };
        assert_eq!(answer_of(owner, &ShareRequest::Setup(setup)), ShareAnswer::Done);
    }
    let Setup { parties, tree, .. } = group.setup();
    let mut shares = ShareClient::<Gf256>::new(parties, tree, 8, BLOCK_BYTES).unwrap();
    let evict = shares.evict(&mut StdRng::seed_from_u64(2)).unwrap().remove(0);
    let attempt = evict.attempt;
    // An eviction needs a full root.
    for written in 0..PRESET.accesses.into() {
        let at = TreePoint { written, ..TreePoint::default() };
        let write = ShareRequest::Write { at, block: Share::Drawn([2; 32]) };
        assert_eq!(answer_of(&mut owners[0], &write), ShareAnswer::Done);
    }
    let evict = ShareRequest::Evict { evict, dealers: vec![1, 2, 3] };
    owners[0].say(&compute(&evict.encode()));
    wait_until(|| group.servers[0].metric("deals_total{way=\"out\"}") == 2);
    (owners, attempt)
}

/// Clients consider a silent server lost. So a server sends `Working` during an eviction, and while
/// a request waits for another one.
#[test]
fn a_waiting_client_gets_working_messages() {
    let limits = BucketLimits { works_every: Duration::from_millis(50), ..BucketLimits::default() };
    let mut group = ServerGroup::with(3, None, limits);
    let (mut owners, _) = evict_alone(&group);
    let hear_often = |owner: &mut Client| {
        (0..3).for_each(|_| assert_eq!(owner.hear(), Answer::Working));
    };
    hear_often(&mut owners[0]);
    let (mut new, _) = group.servers[0].open(&group.alice, "disk", OpenMode::Write);
    new.say(&compute(&ShareRequest::Epoch.encode()));
    hear_often(&mut new);
    group.stop(0);
}

/// `Connect` is answered once all links exist, because the client then begins an eviction, which
/// needs all links. A missing server is named in the refusal.
#[test]
fn meet_is_answered_after_all_links_exist() {
    let mut group = ServerGroup::start(None);
    let open = |server: &Server| server.open(&group.alice, "disk", create()).0;
    let mut owners: Vec<_> = group.servers.iter().map(open).collect();
    for (owner, number) in owners.iter_mut().zip(1..) {
        let setup = Setup { number, ..group.setup() };
        assert_eq!(answer_of(owner, &ShareRequest::Setup(setup)), ShareAnswer::Done);
    }
    let others = |group: &ServerGroup| [1, 2].map(|other| group.servers[other].metric("peers"));
    assert_eq!(others(&group), [0, 0]);
    assert_eq!(answer_of(&mut owners[0], &ShareRequest::Connect), ShareAnswer::Done);
    assert_eq!(others(&group), [1, 1]);
    group.stop(2);
    owners.truncate(1);
    let refused = answer_of(&mut owners[0], &ShareRequest::Connect);
    let ShareAnswer::Refused(refusal) = refused else { panic!("not refused: {refused:?}") };
    assert_eq!(refusal.kind, StoreErrorKind::Unreachable);
    assert!(refusal.why.contains("server 3"), "{}", refusal.why);
}

#[test]
fn a_stopped_server_does_not_wait_for_others() {
    let mut group = ServerGroup::start(None);
    let (mut owners, _) = evict_alone(&group);
    let in_time = MonotonicTime::now().after(Duration::from_secs(8));
    group.stop(0);
    assert!(in_time.left().is_some());
    // The request in flight is answered.
    assert!(matches!(owners[0].hear(), Answer::Data { .. }));
}

#[test]
fn a_new_writer_waits_for_the_request_in_flight_and_older_requests_are_refused() {
    let group = ServerGroup::start(None);
    let (server, alice) = (&group.servers[0], &group.alice);
    let (mut owners, attempt) = evict_alone(&group);
    let mut old = owners.remove(0);
    old.say(&compute(&ShareRequest::Epoch.encode()));
    let (mut new, _) = server.open(alice, "disk", OpenMode::Write);
    new.write(1, 1);
    new.say(&compute(&ShareRequest::Epoch.encode()));
    new.link.reader.limit(Some(Duration::from_millis(300))).unwrap();
    assert!(frame::receive(&mut new.link.reader, 1000).is_err(), "it did not wait");
    // The request of `new` is refused, too, because another connection takes over meanwhile.
    let (mut newest, _) = server.open(alice, "disk", OpenMode::Write);
    newest.say(&compute(&ShareRequest::Epoch.encode()));
    let remove = Request::Remove { name: "disk".into() };
    assert_eq!(server.greet(alice).last_failure(&remove), FailureKind::InUse);
    // Other servers connect, and disconnect without dealing.
    for other in [1, 2] {
        let mut peer = server.greet(&group.as_peer(other));
        assert_eq!(peer.ask(&peer_of(alice, "disk")), Answer::Done { number: 0 });
    }
    let Answer::Data { bytes, .. } = old.hear() else { panic!("no answer to the first request") };
    assert!(matches!(ShareAnswer::decode(&bytes).unwrap(), ShareAnswer::Refused(_)));
    assert_eq!(old.hear_failure(), FailureKind::Fenced);
    assert_eq!(new.hear_failure(), FailureKind::Fenced);
    let Answer::Data { bytes, .. } = newest.hear() else { panic!("no answer to the last request") };
    let at = TreePoint { written: PRESET.accesses.into(), ..TreePoint::default() };
    let epoch = HostEpoch { at, attempt, is_set_up: true };
    assert_eq!(ShareAnswer::decode(&bytes).unwrap(), ShareAnswer::Epoch(epoch));
}
