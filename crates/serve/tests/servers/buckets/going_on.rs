//! A volume on five share servers, one of which is missing for a while.

use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use oblivio_core::durable::{Durable, DurableConfig, EraStart, Want};
use oblivio_core::store::{
    Answered, BucketStore, Capabilities, Fill, Frames, Patience, Piece, ShareServers, TreeId,
    TreeShape,
};
use oblivio_core::{MasterKey, Op, StoreError, StoreErrorKind};
use oblivio_shares::durable::S3OramParams;
use oblivio_shares::message::{Answer, HostEpoch, Request};
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::Preset;
use oblivio_store::shares::{ShareServer, SharedStore};
use oblivio_store::{Dial, RemoteOptions};
use oblivio_wire::keys::PeerServer;
use oblivio_wire::link::Link;
use oblivio_wire::tls::Caller;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::party::shapes;
use super::shares::Circle;

const SERVERS: usize = 5;
const BLOCK_BYTES: usize = 64;
const PRESET: Preset = Preset { slots: 32, accesses: 4 };

/// Calls one server.
#[derive(Clone)]
struct Calls {
    caller: Caller,
    address: String,
}

impl Dial for Calls {
    fn dial(&mut self, within: Duration) -> io::Result<Link> {
        self.caller.call(TcpStream::connect(&self.address)?, within)
    }
}

/// The servers, of which a test can see which are missing while an array has them.
#[derive(Clone)]
struct Shared(Arc<Mutex<SharedStore>>);

impl Shared {
    fn create(circle: &Circle) -> Self {
        let server = |PeerServer { key, address, .. }: &PeerServer| {
            let caller = Caller::new(&circle.alice.key, *key).unwrap();
            let calls = Calls { caller, address: address.clone() };
            let dialing = Box::new(move || Box::new(calls.clone()) as Box<dyn Dial>);
            ShareServer { address: address.clone(), key: *key, dialing }
        };
        let servers = circle.peers[..SERVERS].iter().map(server).collect();
        let options = RemoteOptions::new("disk").with_retry_for(Duration::from_secs(1));
        let store = SharedStore::create(servers, &shapes(), 1, options).unwrap();
        Self(Arc::new(Mutex::new(store)))
    }

    fn store(&self) -> MutexGuard<'_, SharedStore> {
        self.0.lock().unwrap()
    }

    /// How far each is.
    fn epochs(&mut self) -> Vec<HostEpoch> {
        let epoch = |answered: Option<Answered>| match Answer::decode(&answered.unwrap().unwrap())
            .unwrap()
        {
            Answer::Epoch(epoch) => epoch,
            other => panic!("no epoch: {other:?}"),
        };
        let asked = vec![Some(Request::Epoch.encode()); SERVERS];
        self.ask(asked, Patience::Long).into_iter().map(epoch).collect()
    }
}

impl ShareServers for Shared {
    fn count(&self) -> usize {
        self.store().count()
    }

    fn ask(&mut self, messages: Vec<Option<Vec<u8>>>, patience: Patience) -> Vec<Option<Answered>> {
        self.store().ask(messages, patience)
    }

    fn begin_to_try(&mut self) {
        self.store().begin_to_try();
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

impl BucketStore for Shared {
    fn shape(&self, _: TreeId) -> Option<&TreeShape> {
        None
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn prefetch(&mut self, _: &[Piece]) {}

    fn read(&mut self, _: &[Piece]) -> Result<Frames<'_>, StoreError> {
        Err(StoreError::new(StoreErrorKind::Refused, "there are no records"))
    }

    fn write(&mut self, _: &[Piece], _: &mut Fill<'_>) -> Result<(), StoreError> {
        Err(StoreError::new(StoreErrorKind::Refused, "there are no records"))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.store().flush()
    }

    fn servers(&mut self) -> Option<&mut dyn ShareServers> {
        Some(self)
    }
}

fn access(array: &mut dyn Durable, address: u64, op: Op<'_>, coins: &mut StdRng) {
    let plan = array.plan(&[Want::Block(address)], &[], coins).unwrap();
    array.carry_out(&plan, &mut [op]).unwrap();
}

#[test]
fn accesses_go_on_without_one_of_five_servers_and_an_eviction_when_it_is_back() {
    let mut circle = Circle::of(SERVERS, None);
    let mut shared = Shared::create(&circle);
    let parties = Parties::new(SERVERS as u8, 1).unwrap();
    let params = S3OramParams::new(20, BLOCK_BYTES as u32, parties, PRESET).unwrap();
    let (key, mut coins) = (MasterKey::from_bytes([9; 32]), StdRng::seed_from_u64(1));
    let mut array = params.create(key, &[], Box::new(shared.clone()), &mut coins).unwrap();
    array.begin_era(EraStart::Opening, &mut coins);
    let mut write = |array: &mut dyn Durable, address: u64| {
        access(array, address, Op::Write(&[address as u8; BLOCK_BYTES]), &mut coins);
    };
    (0..5).for_each(|address| write(&mut *array, address));
    assert_eq!(shared.store().missing(), 0);
    let stopped = circle.stop(2);
    (5..7).for_each(|address| write(&mut *array, address));
    assert_eq!(shared.store().missing(), 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            circle.start_again(stopped);
        });
        // The root is full then.
        write(&mut *array, 7);
    });
    assert_eq!(shared.store().missing(), 0);
    let epochs = shared.epochs();
    assert!(epochs[2].at.evictions == 2 && epochs.iter().all(|it| it.at == epochs[2].at));
    assert_eq!(array.check(&mut |_| ()).unwrap(), 8);
    for address in 0..8 {
        let mut found = [0xee; BLOCK_BYTES];
        access(&mut *array, address, Op::Read(&mut found), &mut coins);
        assert_eq!(found, [address as u8; BLOCK_BYTES]);
    }
}
