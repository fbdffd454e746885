//! Runs a workload on a recorded ORAM, and counts rare states.

use std::collections::HashSet;
use std::ops::{AddAssign, Range};
use std::sync::{Arc, Mutex};

use oblivio_core::front::{self, Environment, FrontTally, MapConfig, OramConfig, SchemeConfig};
use oblivio_core::geometry::Geometry;
use oblivio_core::scheme;
use oblivio_core::schemes::TreeScheme;
use oblivio_core::stash::StashView;
use oblivio_core::store::{BucketStore, LevelShape, TreeShape};
use oblivio_core::view::{Contents, Event, EventSink, Recorder};
use oblivio_core::{
    Access, DurableRawOram, EraSealer, Error, FreecursiveConfig, FreecursiveOram, Front, HitPolicy,
    Integrity, Key, MasterKey, MemoryStore, Op, Oram, RawConfig, Sealer, TreeConfig, TreeTopKind,
};
use oblivio_testkit::workload::{Request, Workload};
use rand::rngs::StdRng;
use rand::{CryptoRng, RngExt, SeedableRng};

use crate::support::noting::{Notes, Noting};

pub(crate) const LEAF_LEVEL: u8 = 6;
pub(crate) const LEAVES: u64 = 1 << LEAF_LEVEL;
pub(crate) const BLOCK_BYTES: usize = 32;
const SLOTS_PER_BUCKET: u16 = 2;
pub(crate) const CAPACITY: u64 = 200;

/// A stash bound that no run exceeds: the number of data blocks.
const STASH_BLOCKS_MAX: usize = CAPACITY as usize;

/// The number of blocks forgotten at once, before about half of the batches.
const FORGOTTEN_AT_ONCE: u64 = 3;

/// The lengths of batches, used cyclically.
const BATCHES: [usize; 6] = [1, 7, 2, 16, 1, 5];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Path,
    /// RAW ORAM, with its parameter A: the number of accesses per eviction.
    Raw(u32),
    /// Rotating RAW ORAM, with its parameter A: the number of accesses per eviction.
    Rotating(u32),
}

impl Scheme {
    /// Every scheme, with `evict_period` accesses per eviction if the scheme has that parameter.
    pub(crate) fn each(evict_period: u32) -> impl Iterator<Item = Self> {
        TreeScheme::ALL.iter().map(move |scheme| match scheme {
            TreeScheme::Path => Self::Path,
            TreeScheme::Raw => Self::Raw(evict_period),
            TreeScheme::Rotating => Self::Rotating(evict_period),
        })
    }
}

/// The location of the position map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frontend {
    /// The position map is on the client.
    Flat,
    /// The position map is in the tree, with a PLB. For Path and RAW ORAM.
    Freecursive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Zeros,
    Random,
}

/// All public parameters of a run, its seed, and whether blocks are forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) scheme: Scheme,
    pub(crate) frontend: Frontend,
    /// The integrity of Freecursive ORAM. With a flat position map, it only determines the space in
    /// each slot.
    pub(crate) integrity: Integrity,
    pub(crate) tree_top_levels: u8,
    pub(crate) tree_top: TreeTopKind,
    pub(crate) hits: HitPolicy,
    pub(crate) batched: bool,
    pub(crate) data: Data,
    pub(crate) stash_blocks_max: usize,
    pub(crate) accesses: usize,
    pub(crate) seed: u64,
    /// Whether blocks are forgotten between batches. Would be secret in a real system.
    pub(crate) forgets: bool,
}

impl Setup {
    pub(crate) fn new(scheme: Scheme, accesses: usize) -> Self {
        Self {
            scheme,
            frontend: Frontend::Flat,
            integrity: Integrity::None,
            tree_top_levels: 0,
            tree_top: TreeTopKind::Dedicated,
            hits: HitPolicy::Access,
            batched: false,
            data: Data::Random,
            stash_blocks_max: STASH_BLOCKS_MAX,
            accesses,
            seed: 1,
            forgets: false,
        }
    }

    /// A setup of Freecursive ORAM over `scheme`. `accesses` is the number of requests; storage
    /// sees more paths.
    pub(crate) fn freecursive(scheme: Scheme, accesses: usize) -> Self {
        Self { frontend: Frontend::Freecursive, ..Self::new(scheme, accesses) }
    }

    /// This setup with every combination of tree top and batches; for Freecursive ORAM, also with
    /// and without PMMAC.
    pub(crate) fn variants(self) -> impl Iterator<Item = Self> {
        let integrities =
            [Integrity::None, Integrity::Pmmac].into_iter().take(match self.frontend {
                Frontend::Flat => 1,
                Frontend::Freecursive => 2,
            });
        integrities.flat_map(move |integrity| {
            [(0, false), (0, true), (2, false), (2, true)].map(|(tree_top_levels, batched)| Self {
                integrity,
                tree_top_levels,
                batched,
                ..self
            })
        })
    }

    /// Makes a run of each workload. If blocks can be forgotten, also makes a run with forgetting.
    pub(crate) fn runs(self) -> impl Iterator<Item = Run> {
        let forgets = [false, true].into_iter().take(match self.scheme {
            Scheme::Path | Scheme::Raw(_) => 1,
            Scheme::Rotating(_) => 2,
        });
        let setups = forgets.map(move |forgets| Self { forgets, ..self });
        setups.flat_map(|setup| Workload::ALL.map(|workload| setup.run(workload)))
    }

    pub(crate) fn tree(&self) -> TreeConfig {
        let geometry = Geometry::uniform(LEAF_LEVEL, SLOTS_PER_BUCKET).unwrap();
        let block_bytes = BLOCK_BYTES + self.integrity.bytes();
        let mut tree = TreeConfig::new(CAPACITY, block_bytes, geometry, self.stash_blocks_max);
        tree.tree_top_levels = self.tree_top_levels;
        tree.tree_top = self.tree_top;
        if self.frontend == Frontend::Freecursive {
            let config = self.freecursive_config();
            tree.capacity = config.tree_capacity().unwrap();
            tree.burst_accesses_max = config.burst_accesses_max().unwrap();
        }
        tree
    }

    /// The public shape of a bucket on `level` of the tree, without the head in rotating RAW ORAM.
    pub(crate) fn bucket_shape(&self, level: u8) -> LevelShape {
        let level = usize::from(level);
        match self.scheme {
            Scheme::Path | Scheme::Raw(_) => self.tree().shape().unwrap().levels()[level],
            Scheme::Rotating(evict_period) => {
                let config = RawConfig::of_tree(self.tree(), evict_period);
                config.rotating_shapes().unwrap()[0].levels()[level + 1]
            }
        }
    }

    /// The lengths of the batches of the run.
    pub(crate) fn batches(&self) -> Vec<usize> {
        if !self.batched {
            return vec![1; self.accesses];
        }
        let mut left = self.accesses;
        let lengths = BATCHES.into_iter().cycle().map_while(|length| {
            let length = length.min(left);
            left -= length;
            (length > 0).then_some(length)
        });
        lengths.collect()
    }

    /// A seed that differs between schemes, front ends, integrity settings and workloads, and with
    /// forgetting, so that runs do not share their leaves.
    fn seed_of(&self, workload: Workload) -> u64 {
        let scheme = match self.scheme {
            Scheme::Path => 0,
            Scheme::Raw(evict_period) => u64::from(evict_period),
            Scheme::Rotating(evict_period) => 1 << 7 | u64::from(evict_period),
        };
        let frontend = self.frontend as u64;
        let setup = scheme << 8 | u64::from(self.forgets) << 7 | frontend << 6;
        let integrity = (self.integrity as u64) << 63;
        integrity | self.seed << 16 | setup | workload as u64
    }

    /// Runs `workload` on a fresh ORAM.
    pub(crate) fn run(&self, workload: Workload) -> Run {
        let mut coins = StdRng::seed_from_u64(self.seed_of(workload));
        let tree = self.tree();
        let requests: Vec<_> = workload.requests(CAPACITY, self.seed).take(self.accesses).collect();
        let oram_coins = StdRng::from_rng(&mut coins);
        let scheme = match self.scheme {
            Scheme::Path => SchemeConfig::Path(tree),
            Scheme::Raw(evict_period) => SchemeConfig::Raw(RawConfig::of_tree(tree, evict_period)),
            Scheme::Rotating(evict_period) => {
                let master = MasterKey::draw(&mut coins);
                let sealer = EraSealer::fresh(master, tree.tree, &mut coins);
                let config = RawConfig::of_tree(tree, evict_period);
                let store = create_store(&config.rotating_shapes().unwrap());
                let mut oram =
                    DurableRawOram::rotating(&config, sealer, store, oram_coins).unwrap();
                let states = self.drive(&mut oram, &requests, &mut coins);
                let view = oram.into_store().into_parts().1;
                return Run { setup: *self, workload, accesses: requests, view, states };
            }
        };
        let map = match self.frontend {
            Frontend::Flat => MapConfig::Flat(self.hits),
            Frontend::Freecursive => MapConfig::Freecursive(self.freecursive_config()),
        };
        let mut key = [0; 16];
        rand::Rng::fill_bytes(&mut coins, &mut key);
        let mut environment = Recorded {
            key,
            view: View::default(),
            notes: Notes::default(),
            coins: Some(oram_coins),
        };
        let config = OramConfig { map, ..OramConfig::flat(scheme) };
        let mut oram = front::build(&config, &mut environment).unwrap();
        let states = self.drive(&mut *oram, &requests, &mut coins);
        let (view, accesses) =
            (std::mem::take(&mut *environment.view.0.lock().unwrap()), environment.notes.take());
        Run { setup: *self, workload, accesses, view, states }
    }

    fn drive(
        &self,
        oram: &mut (impl TestedOram + ?Sized),
        requests: &[Request],
        coins: &mut StdRng,
    ) -> States {
        let mut states = States::default();
        let mut written = HashSet::new();
        let mut rest = requests;
        for length in self.batches() {
            let (batch, after) = rest.split_at(length);
            rest = after;
            if self.forgets && coins.random() {
                let start = batch[0].address;
                let range = start..(start + FORGOTTEN_AT_ONCE).min(CAPACITY);
                states.forgotten_just_before += usize::from(written.contains(&start));
                written.retain(|address| !range.contains(address));
                oram.forget(range);
            }
            states.look_at_batch(batch, &mut written);
            states.look_at_stash_before(oram, batch[0].address, self.stash_blocks_max);
            let mut blocks = vec![vec![0; oram.block_bytes()]; length];
            if self.data == Data::Random {
                blocks.iter_mut().for_each(|block| coins.fill(&mut block[..]));
            }
            let accesses = batch.iter().zip(&mut blocks).map(|(request, block)| Access {
                address: request.address,
                op: if request.is_write { Op::Write(block) } else { Op::Read(block) },
            });
            oram.access(&mut accesses.collect::<Vec<_>>()).unwrap();
            states.peak_stash_blocks = oram.stash().occupancy().peak_blocks();
        }
        states.frontend = oram.tally();
        states
    }
}

/// A view that the test can read after the run.
#[derive(Clone, Default)]
struct View(Arc<Mutex<Contents>>);

impl EventSink for View {
    fn record(&mut self, event: &Event, sealed: &[u8]) {
        self.0.lock().unwrap().record(event, sealed);
    }
}

/// Recorded stores, under schemes that note the block and the operation of each access.
struct Recorded {
    key: [u8; 16],
    view: View,
    notes: Notes,
    coins: Option<StdRng>,
}

impl Recorded {
    fn make_storage(&self, tree: &TreeConfig) -> (Sealer, Recorder<MemoryStore, View>) {
        let shapes = [tree.shape().unwrap()];
        let memory = MemoryStore::new(&shapes, MemoryStore::default_layout()).unwrap();
        (
            Sealer::aes128(Key::from_bytes(self.key), tree.tree),
            Recorder::new(memory, self.view.clone()),
        )
    }
}

impl Environment for Recorded {
    fn scheme(&mut self, config: &SchemeConfig) -> Result<Box<dyn scheme::Scheme + Send>, Error> {
        let (sealer, store) = self.make_storage(config.tree());
        let scheme = config.scheme(sealer, Box::new(store))?;
        Ok(Box::new(Noting::with(scheme, self.notes.clone())))
    }

    fn coins(&mut self) -> Box<dyn CryptoRng + Send> {
        Box::new(self.coins.take().expect("only one front end is made"))
    }
}

pub(crate) type Store = Recorder<MemoryStore, Contents>;

pub(crate) fn store(shape: TreeShape) -> Store {
    create_store(&[shape])
}

pub(crate) fn create_store(shapes: &[TreeShape]) -> Store {
    let memory = MemoryStore::new(shapes, MemoryStore::default_layout()).unwrap();
    Recorder::new(memory, Contents::new())
}

/// Parameters of Freecursive ORAM with levels of 25 and 4 position-map blocks, of which 3 fit the
/// PLB, and counters that overflow frequently.
pub(crate) fn freecursive_config() -> FreecursiveConfig {
    FreecursiveConfig::new(CAPACITY, BLOCK_BYTES)
        .unwrap()
        .with_fan_out(8)
        .with_counter_bits(4)
        .with_client_entries_max(4)
        .with_plb_blocks(3)
        .with_plb_ways(1)
        .with_hits(HitPolicy::Access)
        .with_integrity(Integrity::None)
}

impl Setup {
    fn freecursive_config(&self) -> FreecursiveConfig {
        freecursive_config().with_hits(self.hits).with_integrity(self.integrity)
    }

    pub(crate) fn freecursive_oram<B: scheme::Scheme>(
        &self,
        scheme: B,
        coins: StdRng,
    ) -> FreecursiveOram<Noting<B>, StdRng> {
        FreecursiveOram::new(&self.freecursive_config(), Noting::new(scheme), coins).unwrap()
    }
}

/// The operations of an ORAM, in addition to requests, that the runs need.
trait TestedOram: Oram {
    fn stash(&self) -> StashView<'_>;

    fn forget(&mut self, range: Range<u64>);

    fn tally(&self) -> FrontTally {
        FrontTally::default()
    }
}

impl TestedOram for dyn Front + Send {
    fn stash(&self) -> StashView<'_> {
        Front::stash(self)
    }

    fn tally(&self) -> FrontTally {
        self.counters().front
    }

    fn forget(&mut self, _: Range<u64>) {
        unreachable!("this ORAM cannot forget blocks");
    }
}

impl<S: BucketStore> TestedOram for DurableRawOram<S, StdRng> {
    fn stash(&self) -> StashView<'_> {
        self.backend().stash()
    }

    fn forget(&mut self, range: Range<u64>) {
        self.forget(range).unwrap();
    }
}

/// A run: its view, and the true accesses and states behind it.
pub(crate) struct Run {
    pub(crate) setup: Setup,
    pub(crate) workload: Workload,
    /// The block and the operation of each path access: the requests, and the accesses that a front
    /// end adds.
    pub(crate) accesses: Vec<Request>,
    pub(crate) view: Contents,
    pub(crate) states: States,
}

/// The number of occurrences of rare states. Would be secret in a real system.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct States {
    /// Number of batches whose first requested block was in the stash when the batch began.
    pub(crate) stash_hits: usize,
    /// Number of times that the stash was at its bound when a batch began.
    pub(crate) stash_at_bound: usize,
    /// Number of times that the stash was empty when a batch began.
    pub(crate) stash_empty: usize,
    /// Maximum number of blocks in the stash when a batch began.
    pub(crate) most_at_start: usize,
    /// Maximum number of blocks left in the stash after an eviction.
    pub(crate) peak_stash_blocks: usize,
    /// Number of reads of a block that was never written, or was forgotten since.
    pub(crate) never_written_reads: usize,
    /// Number of requests for a block that the same batch had already requested.
    pub(crate) repeats_in_batch: usize,
    /// Number of requests for a block that had been written before and not forgotten since.
    pub(crate) repeats: usize,
    /// Number of times that a live block was forgotten directly before a request for it.
    pub(crate) forgotten_just_before: usize,
    /// The tally of the front end.
    pub(crate) frontend: FrontTally,
}

impl States {
    fn look_at_batch(&mut self, batch: &[Request], written: &mut HashSet<u64>) {
        let mut in_batch = HashSet::new();
        for Request { address, is_write } in batch {
            self.repeats_in_batch += usize::from(!in_batch.insert(*address));
            self.repeats += usize::from(written.contains(address));
            self.never_written_reads += usize::from(!is_write && !written.contains(address));
            if *is_write {
                written.insert(*address);
            }
        }
    }

    fn look_at_stash_before(
        &mut self,
        oram: &(impl TestedOram + ?Sized),
        address: u64,
        stash_blocks_max: usize,
    ) {
        let stash = oram.stash();
        self.stash_hits += usize::from(stash.addresses().any(|held| held == address));
        self.stash_at_bound += usize::from(stash.blocks() >= stash_blocks_max);
        self.stash_empty += usize::from(stash.blocks() == 0);
        self.most_at_start = self.most_at_start.max(stash.blocks());
    }

    /// Checks the rare states that runs over all workloads must reach: each occurred at least
    /// `times` times, and blocks were stuck in the stash.
    #[track_caller]
    pub(crate) fn assert_rare_ones_occurred(&self, times: usize) {
        let states = [self.stash_hits, self.stash_empty, self.never_written_reads, self.repeats];
        assert!(states.iter().all(|state| *state >= times), "rare states did not occur: {self:?}");
        assert!(self.peak_stash_blocks >= 4, "blocks were never stuck: {self:?}");
    }

    /// Checks the rare states of Freecursive ORAM that other ORAMs do not have: each occurred at
    /// least `times` times.
    #[track_caller]
    pub(crate) fn assert_rare_ones_of_the_frontend_occurred(&self, times: u64) {
        let FrontTally { position_map_accesses, remap_accesses, plb_hits, .. } = self.frontend;
        let states = [position_map_accesses, remap_accesses, plb_hits];
        assert!(states.iter().all(|state| *state >= times), "rare states did not occur: {self:?}");
    }
}

impl AddAssign for States {
    fn add_assign(&mut self, other: Self) {
        self.stash_hits += other.stash_hits;
        self.stash_at_bound += other.stash_at_bound;
        self.stash_empty += other.stash_empty;
        self.most_at_start = self.most_at_start.max(other.most_at_start);
        self.peak_stash_blocks = self.peak_stash_blocks.max(other.peak_stash_blocks);
        self.never_written_reads += other.never_written_reads;
        self.repeats_in_batch += other.repeats_in_batch;
        self.repeats += other.repeats;
        self.forgotten_just_before += other.forgotten_just_before;
        self.frontend.data_accesses += other.frontend.data_accesses;
        self.frontend.position_map_accesses += other.frontend.position_map_accesses;
        self.frontend.remap_accesses += other.frontend.remap_accesses;
        self.frontend.plb_hits += other.frontend.plb_hits;
        self.frontend.stash_hits += other.frontend.stash_hits;
        self.frontend.position_map_stash_hits += other.frontend.position_map_stash_hits;
    }
}
