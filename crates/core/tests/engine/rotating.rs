//! Tests of rotating RAW ORAM: it behaves as RAW ORAM, its states survive evictions, and it
//! authenticates everything from storage.

use std::collections::HashMap;

use oblivio_core::durable::rotating::{RestoredState, ignored_ops};
use oblivio_core::geometry::BucketId;
use oblivio_core::posmap::LivePosMap;
use oblivio_core::reference::ReferenceRaw;
use oblivio_core::scheme::{ClientLocation, Move, TakenSlot};
use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_core::view::{Event, Operation, Recorder};
use oblivio_core::{
    DurableRawOram, EraSealer, ErrorKind, Geometry, LayoutKind, Leaf, MasterKey, MemoryStore, Op,
    Oram, RawConfig, Recursion, RotatingConfig, TreeConfig, TreeTopKind,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::support::heads::without_heads;

mod unwritten;

type Store = Recorder<MemoryStore, Vec<Event>>;
type Rotating = DurableRawOram<Store, StdRng>;

fn pick<T: Copy>(among: &[T], coins: &mut StdRng) -> T {
    *among.choose(coins).expect("the choices must not be empty")
}

/// Draws a small tree of any form, tight or with spare levels.
fn any_config(coins: &mut StdRng) -> RawConfig {
    let capacity = pick(&[1, 2, 7, 64, 100, 255, 256, 500], coins);
    let profile = pick(&[&[2][..], &[3], &[5], &[1, 2, 3, 4], &[6, 1, 1, 5]], coins);
    let geometry = |leaf_level: u8| {
        let slots = (0..=usize::from(leaf_level))
            .map(|j| *profile.get(j).unwrap_or(&profile[profile.len() - 1]));
        Geometry::profile(&slots.collect::<Vec<_>>()).unwrap()
    };
    let tightest = (0..).find(|level| geometry(*level).tree_slots() >= capacity).unwrap();
    let geometry = geometry(tightest + pick(&[0, 1, 2], coins));
    let tree_top_levels = pick(&[0, 1, 2, 9], coins).min(geometry.leaf_level());
    let block_bytes = pick(&[16, 17, 100], coins);
    let tree_top = match pick(&[0, 0, 0, 1, 2, 4], coins) {
        0 => TreeTopKind::Dedicated,
        ways => TreeTopKind::SetAssociative { ways },
    };
    let tree = TreeConfig::new(capacity, block_bytes, geometry, capacity as usize + 1)
        .with_tree_top_levels(tree_top_levels)
        .with_tree_top(tree_top)
        .with_tree(TreeId(pick(&[0, 1], coins)));
    RawConfig::of_tree(tree, pick(&[1, 2, 3, 5, 8], coins))
}

/// Draws a small tree like [`any_config`], with a position map of any depth in the tree.
fn any_recursive_config(coins: &mut StdRng) -> RotatingConfig {
    loop {
        let mut raw = any_config(coins);
        raw.tree.block_bytes = pick(&[16, 32, 100], coins);
        let recursion = Recursion {
            data_blocks: raw.tree.capacity.div_ceil(2),
            client_entries_max: pick(&[1, 2, 10, 1000], coins),
            plb_blocks: pick(&[8, 9, 20], coins),
        };
        let leaf_level = raw.tree.geometry.leaf_level();
        let blocks = recursion.tree_blocks(raw.tree.block_bytes, leaf_level).unwrap();
        if blocks <= raw.tree.geometry.tree_slots() {
            raw.tree.capacity = blocks;
            raw.tree.stash_blocks_max = blocks as usize + 1;
            return RotatingConfig::flat(raw).with_recursion(Some(recursion));
        }
    }
}

fn store(config: &RotatingConfig) -> Store {
    let trees = config.shapes().unwrap().into_trees();
    let mut shapes = vec![trees[0].clone(); usize::from(config.raw.tree.tree.0)];
    shapes.extend(trees);
    Recorder::new(MemoryStore::new(&shapes, LayoutKind::Striped).unwrap(), Vec::new())
}

fn make(config: &RawConfig, seed: u64) -> Rotating {
    make_any(&RotatingConfig::flat(config.clone()), seed)
}

fn make_any(config: &RotatingConfig, seed: u64) -> Rotating {
    let tree = config.raw.tree.tree;
    let sealer = EraSealer::fresh(master(), tree, &mut StdRng::seed_from_u64(!seed));
    DurableRawOram::new(config, sealer, store(config), StdRng::seed_from_u64(seed)).unwrap()
}

fn master() -> MasterKey {
    MasterKey::from_bytes([7; 32])
}

/// The view that storage should see, derived from a plain table that maps each bucket to the place
/// of its latest version.
struct Expected {
    config: RawConfig,
    table: HashMap<(u8, u64), u64>,
    evictions: u64,
    trips: Vec<(Operation, Vec<BucketId>)>,
}

impl Expected {
    fn new(config: &RawConfig) -> Self {
        let leaves = config.tree.geometry.leaves();
        let mut expected =
            Self { config: config.clone(), table: HashMap::new(), evictions: 0, trips: Vec::new() };
        // A new tree counts as if every path had been evicted once.
        (0..leaves).for_each(|_| expected.write_next());
        expected.trips.clear();
        expected
    }

    fn levels(&self) -> std::ops::RangeInclusive<u8> {
        self.config.tree.tree_top_levels..=self.config.tree.geometry.leaf_level()
    }

    fn read(&mut self, leaf: Leaf) {
        let place =
            |level| BucketId::new(level + 1, self.table[&(level, leaf.0 % (1u64 << level))]);
        self.trips.push((Operation::Read, self.levels().map(place).collect()));
    }

    fn write_next(&mut self) {
        let mut written = Vec::new();
        for level in self.levels() {
            let ring = (1 << level) + self.config.spare_evictions();
            let place = self.evictions % ring;
            self.table.insert((level, self.evictions % (1 << level)), place);
            written.push(BucketId::new(level + 1, place));
        }
        self.trips.push((Operation::Write, written));
        self.evictions += 1;
    }
}

/// The calls to storage (trips) that read or wrote, each with its operation and the places of its
/// slots. Omits announcements and heads (the metadata of buckets).
fn trips(events: &[Event]) -> Vec<(Operation, Vec<BucketId>)> {
    let mut trips: Vec<(u64, Operation, Vec<Piece>)> = Vec::new();
    for event in events {
        let Some(piece) = event.piece.filter(|_| event.operation != Operation::Prefetch) else {
            continue;
        };
        assert_eq!(piece.part, Part::Whole);
        match trips.last_mut().filter(|(trip, ..)| *trip == event.trip) {
            Some((.., pieces)) => pieces.push(piece),
            None => trips.push((event.trip, event.operation, vec![piece])),
        }
    }
    let buckets = |pieces: Vec<Piece>| {
        let slots = pieces[0].tree;
        without_heads(slots, pieces).into_iter().map(|piece| piece.bucket).collect()
    };
    trips.into_iter().map(|(_, operation, pieces)| (operation, buckets(pieces))).collect()
}

#[test]
fn it_is_raw_oram() {
    for seed in 0..400 {
        let coins = &mut StdRng::seed_from_u64(seed + 1_000_000);
        let config = any_config(coins);
        let tree = &config.tree;
        let mut reference = ReferenceRaw::new(
            tree.geometry.clone(),
            tree.block_bytes,
            u64::from(config.evict_period),
            StdRng::seed_from_u64(seed),
        );
        if let TreeTopKind::SetAssociative { ways } = tree.tree_top {
            reference = reference.with_sets(tree.tree_top_levels, ways);
        }
        let mut oram = make(&config, seed);
        let mut expected = Expected::new(&config);
        let mut leaves_seen = 0;
        for n in 0..150 {
            let range = if coins.random() { tree.capacity } else { tree.capacity.min(5) };
            let address = coins.random_range(0..range);
            let new = coins.random::<bool>().then(|| vec![coins.random(); tree.block_bytes]);
            let old = reference.access(address, new.as_deref());
            match new {
                Some(new) => oram.write(address, &new).unwrap(),
                None => {
                    let mut block = vec![0xA5; tree.block_bytes];
                    oram.read(address, &mut block).unwrap();
                    assert!(block == old, "seed {seed}, access {n}");
                }
            }
            let stash: Vec<_> = oram.backend().stash().addresses().collect();
            assert_eq!(stash, reference.stash_addresses(), "seed {seed}, access {n}");
        }
        // RAW ORAM shows the same leaves. The table knows the places of their buckets.
        for leaf in &reference.leaves[leaves_seen..] {
            expected.read(*leaf);
            let accesses = leaves_seen as u64 % (u64::from(config.evict_period) + 1);
            if accesses == u64::from(config.evict_period) {
                expected.write_next();
            }
            leaves_seen += 1;
        }
        let seen = trips(oram.backend_mut().store_mut().sink());
        assert_eq!(seen, expected.trips, "seed {seed}");
        oram.check(&mut |_| {}).unwrap();
    }
}

/// The state that a client must save.
struct SavedState {
    evictions: u64,
    accesses_since_eviction: u32,
    eras: Vec<oblivio_core::seal::Era>,
    table: Vec<(u64, oblivio_core::posmap::Mapping)>,
    blocks: Vec<(ClientLocation, u64, Leaf, Vec<u8>)>,
    taken: Vec<TakenSlot>,
}

fn save(oram: &mut Rotating) -> SavedState {
    oram.backend_mut().mark_durable();
    let backend = oram.backend();
    SavedState {
        evictions: backend.evictions(),
        accesses_since_eviction: backend.accesses_since_eviction(),
        eras: backend.sealer().eras().cloned().collect(),
        blocks: oram.client_blocks().map(|(h, a, l, bytes)| (h, a, l, bytes.to_vec())).collect(),
        table: oram.table().mapped(0..u64::MAX).collect(),
        taken: backend.taken_slots().collect(),
    }
}

fn resume(config: &RotatingConfig, saved: &SavedState, store: Store, seed: u64) -> Rotating {
    let tree = &config.raw.tree;
    let sealer = EraSealer::new(master(), tree.tree, saved.eras.clone());
    let SavedState { evictions, accesses_since_eviction, .. } = *saved;
    let mut table =
        LivePosMap::new(config.client_entries().unwrap(), tree.geometry.leaf_level()).unwrap();
    saved.table.iter().for_each(|(entry, mapping)| table.set(*entry, *mapping));
    let state = RestoredState { evictions, accesses_since_eviction, table };
    let coins = StdRng::seed_from_u64(seed);
    let mut oram = DurableRawOram::resume(config, sealer, store, state, coins).unwrap();
    for (location, address, leaf, bytes) in &saved.blocks {
        oram.restore_client_block(*location, *address, *leaf, bytes).unwrap();
    }
    saved.taken.iter().for_each(|slot| oram.restore_taken_slot(*slot).unwrap());
    oram.begin_era();
    oram
}

/// Takes the store out of an ORAM, and leaves an empty one, as if the client were lost.
fn take_store(oram: &mut Rotating, config: &RotatingConfig) -> Store {
    std::mem::replace(oram.backend_mut().store_mut(), store(config))
}

/// An operation of an ORAM as a client would log it.
enum Logged {
    Moves(Vec<Move>, Option<u8>),
    Forget(u64, u64),
}

/// Makes a random operation: an access to a block, a dummy, or a request to forget blocks. First
/// makes the accesses to the position map that the operation needs. Stops if the state allows no
/// more accesses. Logs all operations.
fn ask(oram: &mut Rotating, array: &mut [Vec<u8>], log: &mut Vec<Logged>, coins: &mut StdRng) {
    let capacity = array.len() as u64;
    let address = coins.random_range(0..capacity);
    let forgotten = coins.random_bool(0.1).then(|| {
        let end = if coins.random() { capacity } else { (address + 3).min(capacity) };
        address..end
    });
    loop {
        let needed = match &forgotten {
            Some(range) => oram.missing_positions_to_forget(range.clone()).unwrap(),
            None => oram.missing_positions_to_access(&[address]).unwrap(),
        };
        let logged = if !needed.is_empty() {
            let now = needed.len().min(oram.window_accesses_max());
            Logged::Moves(oram.plan_accesses(&needed[..now]).unwrap(), None)
        } else if let Some(range) = &forgotten {
            Logged::Forget(range.start, range.end)
        } else if coins.random_bool(0.1) {
            Logged::Moves(oram.plan_dummies(1), None)
        } else {
            let fill = coins.random::<bool>().then(|| coins.random::<u8>());
            Logged::Moves(oram.plan_accesses(&[address]).unwrap(), fill)
        };
        if matches!(
            &logged,
            Logged::Moves(moves, _) if moves.len() as u64 > oram.backend().accesses_left()
        ) {
            return;
        }
        carry_out(oram, array, &logged);
        log.push(logged);
        if needed.is_empty() {
            return;
        }
    }
}

#[test]
fn a_kept_state_survives_all_allowed_accesses_and_replays_the_same_paths() {
    outlives(|coins| RotatingConfig::flat(any_config(coins)));
}

#[test]
fn a_kept_state_with_its_position_map_in_the_tree_survives_as_much() {
    outlives(any_recursive_config);
}

fn outlives(any_config: impl Fn(&mut StdRng) -> RotatingConfig) {
    let (mut used_up, mut replayed) = (0, 0);
    for seed in 0..200 {
        let coins = &mut StdRng::seed_from_u64(seed);
        let config = any_config(coins);
        let tree = &config.raw.tree;
        let mut oram = make_any(&config, seed);
        let mut array = vec![vec![0u8; tree.block_bytes]; config.data_blocks() as usize];
        for crash in 0..4 {
            let saved = save(&mut oram);
            let saved_array = array.clone();
            let seen_before = oram.backend_mut().store_mut().sink().len();
            // Continue until the state allows no more accesses, or stop earlier.
            let requests = match oram.backend().accesses_left() {
                left if coins.random() => left.min(500),
                left => coins.random_range(0..=left.min(500)),
            };
            let mut log = Vec::new();
            for _ in 0..requests {
                ask(&mut oram, &mut array, &mut log, coins);
            }
            if oram.backend().accesses_left() == 0 {
                used_up += 1;
                let step = oram.plan_dummies(1);
                let error = oram.carry_out(&step, &mut ignored_ops(1));
                assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidRequest);
            }
            let first = trips(&oram.backend_mut().store_mut().sink()[seen_before..]);

            // The client is lost. A prefix of its operations was logged and is replayed.
            let mut store = take_store(&mut oram, &config);
            let seen_before = store.sink().len();
            log.truncate(coins.random_range(0..=log.len()));
            store.sink_mut().shrink_to_fit();
            oram = resume(&config, &saved, store, coins.random());
            array = saved_array;
            for logged in &log {
                carry_out(&mut oram, &mut array, logged);
            }
            let again = trips(&oram.backend_mut().store_mut().sink()[seen_before..]);
            assert_eq!(again, first[..again.len()], "seed {seed}, crash {crash}");
            replayed += again.len();
            let seen = oram.backend_mut().store_mut().sink().len();
            let alive = oram.check(&mut |_| {}).unwrap_or_else(|error| {
                panic!("seed {seed}, crash {crash}: {error}");
            });
            if config.recursion.is_none() {
                assert_eq!(alive, self::alive(&oram));
            }
            oram.backend_mut().store_mut().sink_mut().truncate(seen);
            for address in 0..config.data_blocks() {
                let mut block = vec![0xA5; tree.block_bytes];
                oram.read(address, &mut block).unwrap();
                assert!(block == array[address as usize], "seed {seed}, crash {crash}");
            }
        }
    }
    assert!(used_up > 100 && replayed > 5_000, "{used_up} {replayed}");
}

fn alive(oram: &Rotating) -> u64 {
    oram.table().mapped(0..u64::MAX).filter(|(_, mapping)| mapping.live).count() as u64
}

fn carry_out(oram: &mut Rotating, array: &mut [Vec<u8>], logged: &Logged) {
    let (moves, fill) = match logged {
        Logged::Forget(start, end) => {
            array[*start as usize..*end as usize].iter_mut().for_each(|block| block.fill(0));
            return oram.forget(*start..*end).unwrap();
        }
        Logged::Moves(moves, fill) => (moves, *fill),
    };
    let [step] = moves[..] else {
        return oram.carry_out(moves, &mut ignored_ops(moves.len())).unwrap();
    };
    let Some(block) = array.get_mut(step.address as usize) else {
        return oram.carry_out(moves, &mut ignored_ops(1)).unwrap();
    };
    match fill {
        Some(fill) => {
            block.fill(fill);
            oram.carry_out(&[step], &mut [Op::Write(block)]).unwrap();
        }
        None => {
            let mut buffer = vec![0xA5; block.len()];
            oram.carry_out(&[step], &mut [Op::Read(&mut buffer)]).unwrap();
            assert!(buffer == *block);
        }
    }
}

#[test]
fn an_oram_with_its_position_map_in_the_tree_is_an_array() {
    for seed in 0..150 {
        let coins = &mut StdRng::seed_from_u64(seed + 5_000_000);
        let config = any_recursive_config(coins);
        let mut oram = make_any(&config, seed);
        let block_bytes = config.raw.tree.block_bytes;
        let mut array = vec![vec![0u8; block_bytes]; config.data_blocks() as usize];
        for n in 0..400 {
            let address = coins.random_range(0..array.len());
            match coins.random_range(0..10) {
                0 => {
                    let end = (address + pick(&[1, 2, 30, 1000], coins)).min(array.len());
                    let range = address as u64..end as u64;
                    loop {
                        let needed = oram.missing_positions_to_forget(range.clone()).unwrap();
                        if needed.is_empty() {
                            break;
                        }
                        oram.backend_mut().mark_durable();
                        let now = &needed[..1];
                        let steps = oram.plan_accesses(now).unwrap();
                        oram.carry_out(&steps, &mut ignored_ops(1)).unwrap();
                    }
                    oram.forget(range).unwrap();
                    array[address..end].iter_mut().for_each(|block| block.fill(0));
                }
                1..5 => {
                    array[address].fill(n as u8);
                    oram.write(address as u64, &array[address]).unwrap();
                }
                _ => {
                    let mut block = vec![0xA5; block_bytes];
                    oram.read(address as u64, &mut block).unwrap();
                    assert!(block == array[address], "seed {seed}, request {n}");
                }
            }
        }
        oram.check(&mut |_| {}).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn forgotten_blocks_read_as_zeros_even_if_a_stale_copy_has_the_current_leaf() {
    // Two leaves: about every other draw maps a block to the path of a stale copy.
    let mut config = RawConfig::with_z_a(4, 16, 4, 1, 10).unwrap();
    config.tree.geometry = Geometry::uniform(1, 4).unwrap();
    let mut oram = make(&config, 1);
    let mut coins = StdRng::seed_from_u64(2);
    let mut array = [None; 4];
    for _ in 0..5_000 {
        let address = coins.random_range(0..4u64);
        match coins.random_range(0..4) {
            0 => {
                oram.forget(address..address + 1).unwrap();
                array[address as usize] = None;
            }
            1 => {
                let fill = coins.random::<u8>();
                oram.write(address, &[fill; 16]).unwrap();
                array[address as usize] = Some(fill);
            }
            _ => {
                let mut block = [0xA5; 16];
                oram.read(address, &mut block).unwrap();
                assert_eq!(block, [array[address as usize].unwrap_or(0); 16]);
            }
        }
    }
    oram.check(&mut |_| {}).unwrap();
    assert_eq!(oram.forget(3..5).unwrap_err().kind(), ErrorKind::InvalidRequest);
}

// ───────────────────────────── storage that lies ─────────────────────────────

/// Creates an ORAM in which every bucket in storage was written. Also returns its parameters.
fn settled() -> (RotatingConfig, Rotating) {
    let mut config = RawConfig::with_z_a(40, 16, 3, 2, 40).unwrap();
    config.tree.tree_top_levels = 2;
    let mut oram = make(&config, 5);
    let mut coins = StdRng::seed_from_u64(6);
    for _ in 0..2 * 3 * config.tree.geometry.leaves() {
        oram.write(coins.random_range(0..40), &[coins.random(); 16]).unwrap();
    }
    oram.check(&mut |_| {}).unwrap();
    (RotatingConfig::flat(config), oram)
}

/// The places in storage that hold the latest version of a bucket, and all other places.
fn places(config: &RotatingConfig, oram: &Rotating) -> (Vec<BucketId>, Vec<BucketId>) {
    let g = oram.backend().evictions();
    let config = &config.raw;
    let mut current = Vec::new();
    let mut stale = Vec::new();
    for level in config.tree.tree_top_levels..=config.tree.geometry.leaf_level() {
        let ring = (1 << level) + config.spare_evictions();
        let is_current = |place| (g - (1 << level)..g).any(|eviction| eviction % ring == place);
        let (now, past): (Vec<u64>, Vec<u64>) = (0..ring).partition(|place| is_current(*place));
        current.extend(now.into_iter().map(|place| BucketId::new(level + 1, place)));
        stale.extend(past.into_iter().map(|place| BucketId::new(level + 1, place)));
    }
    (current, stale)
}

/// The two trees in storage that hold the slots and the heads.
const HALVES: [TreeId; 2] = [TreeId(0), TreeId(1)];

fn bytes_of(oram: &mut Rotating, tree: TreeId, bucket: BucketId) -> &mut [u8] {
    let store = oram.backend_mut().store_mut().store_mut();
    let span = store.span(&Piece { tree, bucket, part: Part::Whole }).unwrap();
    &mut store.contents_mut()[span.start..span.start + span.bytes]
}

fn refused(oram: &mut Rotating, defect: &str) {
    let error = oram.check(&mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains(defect), "{error}, not {defect}");
    assert_eq!(oram.write(0, &[0; 16]).unwrap_err().kind(), ErrorKind::MustReopen);
}

#[test]
fn every_flipped_bit_that_could_be_read_is_detected() {
    let (config, mut oram) = settled();
    let (current, stale) = places(&config, &oram);
    let saved = save(&mut oram);
    let (mut flipped, mut store) = (0, take_store(&mut oram, &config));
    let halves = current.into_iter().flat_map(|bucket| HALVES.map(|tree| (tree, bucket)));
    for (tree, bucket) in halves {
        let bytes = {
            let mut reopened = resume(&config, &saved, store, 1);
            let bytes = bytes_of(&mut reopened, tree, bucket).len();
            store = take_store(&mut reopened, &config);
            bytes
        };
        for byte in 0..bytes {
            let mut oram = resume(&config, &saved, store, 1);
            bytes_of(&mut oram, tree, bucket)[byte] ^= 1 << (byte % 8);
            refused(&mut oram, "changed bytes");
            bytes_of(&mut oram, tree, bucket)[byte] ^= 1 << (byte % 8);
            store = take_store(&mut oram, &config);
            flipped += 1;
        }
    }
    assert!(flipped > 1000);
    // Damage to stale buckets does not matter.
    let mut oram = resume(&config, &saved, store, 1);
    for bucket in stale {
        HALVES.iter().for_each(|tree| bytes_of(&mut oram, *tree, bucket).fill(0xEE));
    }
    oram.check(&mut |_| {}).unwrap();
}

#[test]
fn swapped_replayed_and_lost_buckets_are_detected_and_named() {
    let (config, mut oram) = settled();
    let saved = save(&mut oram);
    let (current, _) = places(&config, &oram);
    let mut store = take_store(&mut oram, &config);
    let leaf_places: Vec<_> = current
        .iter()
        .copied()
        .filter(|b| b.level() == config.raw.tree.geometry.leaf_level() + 1)
        .collect();
    for (tamper, defect) in [(0, "another bucket"), (1, "older version"), (2, "nothing")] {
        let mut oram = resume(&config, &saved, store, 1);
        let intact = oram.backend_mut().store_mut().store_mut().contents().to_vec();
        let [a, b] = [leaf_places[0], leaf_places[1]];
        match tamper {
            0 => {
                for tree in HALVES {
                    let of_b = bytes_of(&mut oram, tree, b).to_vec();
                    bytes_of(&mut oram, tree, a).copy_from_slice(&of_b);
                }
            }
            1 => {
                // Storage answers with its contents before the latest round.
                let ring_round = u64::from(config.raw.evict_period)
                    * ((1 << config.raw.tree.geometry.leaf_level()) + config.raw.spare_evictions());
                for _ in 0..ring_round {
                    oram.write(0, &[1; 16]).unwrap();
                }
                oram.backend_mut().store_mut().store_mut().contents_mut().copy_from_slice(&intact);
            }
            _ => HALVES.iter().for_each(|tree| bytes_of(&mut oram, *tree, a).fill(0)),
        }
        refused(&mut oram, defect);
        oram.backend_mut().store_mut().store_mut().contents_mut().copy_from_slice(&intact);
        store = take_store(&mut oram, &config);
    }
}

#[test]
fn writes_of_a_lost_era_are_refused() {
    let (config, mut oram) = settled();
    let saved = save(&mut oram);
    let step = |oram: &mut Rotating, fill: u8| {
        for _ in 0..config.raw.evict_period {
            let steps = oram.plan_accesses(&[3]).unwrap();
            oram.carry_out(&steps, &mut [Op::Write(&[fill; 16])]).unwrap();
        }
    };
    step(&mut oram, 1);
    let lost = oram.backend_mut().store_mut().store_mut().contents().to_vec();
    let store = take_store(&mut oram, &config);
    let mut oram = resume(&config, &saved, store, 9);
    step(&mut oram, 2);
    oram.backend_mut().store_mut().store_mut().contents_mut().copy_from_slice(&lost);
    refused(&mut oram, "changed bytes");
}

#[test]
fn moves_from_elsewhere_and_oversized_batches_are_refused_untouched() {
    let (config, mut oram) = settled();
    oram.backend_mut().mark_durable();
    let seen = oram.backend_mut().store_mut().sink().len();
    let mut block = [0; 16];
    let [good] = oram.plan_accesses(&[1]).unwrap()[..] else { unreachable!() };
    let bad = Move { from: Leaf(good.from.0 ^ 1), ..good };
    let many = oram.plan_accesses(&vec![0; oram.backend().accesses_left() as usize + 1]).unwrap();
    let mut buffers = vec![[0; 16]; many.len()];
    let mut ops: Vec<_> = buffers.iter_mut().map(|buffer| Op::Read(buffer)).collect();
    assert_eq!(oram.plan_accesses(&[40]).unwrap_err().kind(), ErrorKind::InvalidRequest);
    for error in [
        oram.carry_out(&[bad], &mut [Op::Read(&mut block)]),
        oram.carry_out(&[good], &mut []),
        oram.carry_out(&[good], &mut [Op::Write(&[0; 15])]),
        oram.carry_out(&many, &mut ops),
    ] {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidRequest);
    }
    assert_eq!(oram.backend_mut().store_mut().sink().len(), seen);
    oram.carry_out(&[good], &mut [Op::Read(&mut block)]).unwrap();
    drop(config);
}

/// Tests that a tree top never holds more blocks than the bound that the parameters give. The trees
/// are full, and one is overfull. Blocks are accessed in scans, a few of them often, and uniformly
/// at random.
#[test]
fn a_tree_top_holds_no_more_blocks_than_a_plan_counts() {
    // Z, A, the level of the leaves, and the number of levels of the tree top.
    for form in
        [(5, 5, 13, 12), (5, 5, 11, 8), (5, 5, 11, 4), (8, 5, 10, 8), (4, 4, 13, 12), (4, 3, 11, 9)]
    {
        let (most, max, room) = most_in_tree_top(form, |_| ());
        assert!((max / 2..=max).contains(&most) && max <= room, "{most} of {max}: {form:?}");
    }
    let cut = |config: &mut RawConfig| {
        let mut slots = vec![5; 12];
        slots[10] = 2;
        config.tree.geometry = Geometry::profile(&slots).unwrap();
    };
    let overfull = |config: &mut RawConfig| config.tree.capacity *= 2;
    for (most, max, room) in [
        most_in_tree_top((2, 2, 13, 12), |_| ()),
        most_in_tree_top((5, 5, 11, 10), cut),
        most_in_tree_top((5, 5, 11, 10), overfull),
    ] {
        assert!(most <= max && max == room, "{most} of {max}");
    }
}

/// The maximum number of blocks in the tree top (sampled every 500 accesses), the bound that the
/// parameters give, and the number of slots of the tree top.
fn most_in_tree_top(
    (z, a, leaf_level, levels): (u16, u32, u8, u8),
    change: impl Fn(&mut RawConfig),
) -> (u64, u64, u64) {
    let blocks = (1 << leaf_level) * u64::from(a) / 2;
    let mut config = RawConfig::with_z_a(blocks, 16, z, a, 2000).unwrap();
    config.tree.tree_top_levels = levels;
    change(&mut config);
    let blocks = config.tree.capacity;
    assert_eq!(config.tree.geometry.leaf_level(), leaf_level);
    let mut oram = make(&config, 7);
    let mut coins = StdRng::seed_from_u64(u64::from(levels));
    let mut most = 0;
    for access in 0..6 * blocks {
        let address = match access / blocks {
            0 | 4 => access % blocks,
            3 => coins.random_range(0..10),
            _ => coins.random_range(0..blocks),
        };
        oram.write(address, &[1; 16]).unwrap();
        if access % 500 == 0 {
            let in_top = |(location, ..): &(ClientLocation, u64, Leaf, &[u8])| {
                matches!(location, ClientLocation::TreeTop(_))
            };
            most = most.max(oram.client_blocks().filter(in_top).count() as u64);
        }
    }
    let slots = |level: u8| (config.tree.geometry.slots(usize::from(level)) as u64) << level;
    (most, config.tree_top_blocks_max(), (0..levels).map(slots).sum())
}
