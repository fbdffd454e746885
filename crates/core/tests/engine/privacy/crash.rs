//! Simulates a client that crashes, restores an earlier state, and repeats the lost accesses.

use oblivio_core::durable::rotating;
use oblivio_core::posmap::{LivePosMap, Mapping};
use oblivio_core::scheme::{ClientLocation, Move};
use oblivio_core::seal::Era;
use oblivio_core::view::Contents;
use oblivio_core::{
    DurableRawOram, EraSealer, Leaf, MasterKey, MemoryStore, Op, Oram, RawConfig, RotatingConfig,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::run::{BLOCK_BYTES, CAPACITY, Data, Scheme, Setup, Store, create_store};

type Rotating = DurableRawOram<Store, StdRng>;
type Block = [u8; BLOCK_BYTES];

/// The number of crashes: the first during the client's work, the others during recovery.
const CRASHES: usize = 3;

/// The view of accesses that were lost in a crash, and the view of each repetition.
pub(crate) struct Lost {
    pub(crate) first: Contents,
    pub(crate) again: Vec<Contents>,
}

/// Makes the maximum number of accesses that a state allows, and repeats them from that state after
/// each of [`CRASHES`] crashes.
pub(crate) fn lose_and_repeat(setup: &Setup) -> Lost {
    let Scheme::Rotating(evict_period) = setup.scheme else {
        unreachable!("only rotating RAW ORAM can restore a state");
    };
    let config = RawConfig::of_tree(setup.tree(), evict_period);
    let mut coins = StdRng::seed_from_u64(setup.seed);
    let master = MasterKey::draw(&mut coins);
    let sealer = EraSealer::fresh(master.clone(), config.tree.tree, &mut coins);
    let store = create_store(&config.rotating_shapes().unwrap());
    let oram_coins = StdRng::from_rng(&mut coins);
    let mut oram = Rotating::rotating(&config, sealer, store, oram_coins).unwrap();
    (0..CAPACITY).for_each(|address| oram.write(address, &draw(setup, &mut coins)).unwrap());

    let saved = SavedState::of(&mut oram);
    let mut log = Vec::new();
    take_view(&mut oram);
    while oram.backend().accesses_left() > 0 {
        let step = oram.plan_accesses(&[coins.random_range(0..CAPACITY)]).unwrap()[0];
        log.push((step, draw(setup, &mut coins)));
        carry_out(&mut oram, &log[log.len() - 1..]);
    }
    let first = take_view(&mut oram);
    let again = (0..CRASHES).map(|_| {
        let recovery_coins = StdRng::from_rng(&mut coins);
        saved.recover(&mut oram, &config, &master, recovery_coins);
        carry_out(&mut oram, &log);
        take_view(&mut oram)
    });
    Lost { first, again: again.collect() }
}

fn draw(setup: &Setup, coins: &mut StdRng) -> Block {
    match setup.data {
        Data::Zeros => [0; BLOCK_BYTES],
        Data::Random => coins.random(),
    }
}

fn carry_out(oram: &mut Rotating, log: &[(Move, Block)]) {
    for (step, data) in log {
        oram.carry_out(&[*step], &mut [Op::Write(data)]).unwrap();
    }
}

/// Takes the view since the previous call.
fn take_view(oram: &mut Rotating) -> Contents {
    let store = oram.backend_mut().store_mut();
    let memory = std::mem::replace(store.store_mut(), nowhere());
    let (_, view) = std::mem::replace(store, Store::new(memory, Contents::new())).into_parts();
    view
}

fn nowhere() -> MemoryStore {
    MemoryStore::new(&[], MemoryStore::default_layout()).unwrap()
}

/// The state that a client must save.
struct SavedState {
    evictions: u64,
    accesses_since_eviction: u32,
    eras: Vec<Era>,
    map: Vec<(u64, Mapping)>,
    blocks: Vec<(ClientLocation, u64, Leaf, Vec<u8>)>,
}

impl SavedState {
    fn of(oram: &mut Rotating) -> Self {
        oram.backend_mut().mark_durable();
        let backend = oram.backend();
        Self {
            evictions: backend.evictions(),
            accesses_since_eviction: backend.accesses_since_eviction(),
            eras: backend.sealer().eras().cloned().collect(),
            blocks: backend
                .client_blocks()
                .map(|(location, address, leaf, bytes)| (location, address, leaf, bytes.to_vec()))
                .collect(),
            map: oram.table().mapped(0..CAPACITY).collect(),
        }
    }

    /// Restores the client of `oram` from this state. Uses only the storage of `oram`.
    fn recover(&self, oram: &mut Rotating, config: &RawConfig, master: &MasterKey, coins: StdRng) {
        let tree = &config.tree;
        let nothing = Store::new(nowhere(), Contents::new());
        let store = std::mem::replace(oram.backend_mut().store_mut(), nothing);
        let sealer = EraSealer::new(master.clone(), tree.tree, self.eras.clone());
        let Self { evictions, accesses_since_eviction, .. } = *self;
        let mut table = LivePosMap::new(CAPACITY, tree.geometry.leaf_level()).unwrap();
        self.map.iter().for_each(|(address, mapping)| table.set(*address, *mapping));
        let state = rotating::RestoredState { evictions, accesses_since_eviction, table };
        let config = RotatingConfig::flat(config.clone());
        *oram = DurableRawOram::resume(&config, sealer, store, state, coins).unwrap();
        for (location, address, leaf, bytes) in &self.blocks {
            oram.restore_client_block(*location, *address, *leaf, bytes).unwrap();
        }
        oram.begin_era();
    }
}
