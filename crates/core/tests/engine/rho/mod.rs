//! Tests of ρ against a plain map and a literal model of its array (the addresses of the blocks in
//! the small tree), over flat and Freecursive main ORAMs.

mod delayed;

use oblivio_core::front::rho::{RhoTally, TwoTrees};
use oblivio_core::scheme::PathScheme;
use oblivio_core::store::TreeId;
use oblivio_core::{
    Access, CacheConfig, CachedOram, ErrorKind, FlatOram, FreecursiveConfig, FreecursiveOram,
    Front, Geometry, HitPolicy, Integrity, Key, LayoutKind, MemoryStore, Op, Oram, RhoConfig,
    RhoOram, Sealer, TreeConfig,
};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const BLOCK_BYTES: usize = 24;

type Trees = TwoTrees<PathScheme<MemoryStore>, StdRng>;

fn coins(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

fn pick<T: Copy>(among: &[T], coins: &mut StdRng) -> T {
    *among.choose(coins).expect("the choices must not be empty")
}

fn scheme(tree: &TreeConfig) -> PathScheme<MemoryStore> {
    let shapes = vec![tree.shape().unwrap(); usize::from(tree.tree.0) + 1];
    let store = MemoryStore::new(&shapes, LayoutKind::Heap).unwrap();
    let sealer = Sealer::aes128(Key::draw(&mut coins(7)), tree.tree);
    PathScheme::new(tree, sealer, store).unwrap()
}

fn trees(config: &RhoConfig, main: &TreeConfig, seed: u64) -> Trees {
    TwoTrees::new(config, scheme(main), scheme(&config.small), coins(!seed)).unwrap()
}

/// Draws a small tree with any bucket sizes, and a number of accesses to it per access to the main
/// tree.
fn any_rho(coins: &mut StdRng) -> RhoConfig {
    let ways = pick(&[1, 2, 8], coins);
    let blocks = ways * pick(&[1, 2, 5], coins);
    let slots: Vec<u16> = (0..pick(&[5, 6], coins)).map(|_| coins.random_range(2..4)).collect();
    let small = TreeConfig::new(blocks as u64, BLOCK_BYTES, Geometry::profile(&slots).unwrap(), 50)
        .with_tree(TreeId(1))
        .with_tree_top_levels(pick(&[0, 2], coins));
    RhoConfig::of_tree(small, ways, pick(&[1, 2, 2, 5], coins))
}

fn any_flat(config: &RhoConfig, seed: u64, coins: &mut StdRng) -> FlatOram<Trees, StdRng> {
    let slots: Vec<u16> = (0..7).map(|_| coins.random_range(2..5)).collect();
    let capacity = pick(&[1, 2, 50, 100], coins);
    let main = TreeConfig::new(capacity, BLOCK_BYTES, Geometry::profile(&slots).unwrap(), 150);
    FlatOram::new(trees(config, &main, seed), self::coins(seed)).unwrap()
}

fn any_freecursive(
    config: &RhoConfig,
    seed: u64,
    coins: &mut StdRng,
) -> FreecursiveOram<Trees, StdRng> {
    let free = FreecursiveConfig::new(pick(&[1, 7, 50, 150], coins), BLOCK_BYTES)
        .unwrap()
        .with_fan_out(pick(&[2, 4, 8], coins))
        .with_counter_bits(pick(&[1, 2, 5, 14], coins))
        .with_client_entries_max(pick(&[1, 2, 10], coins))
        .with_plb_blocks(pick(&[0, 1, 4, 64], coins))
        .with_plb_ways(1)
        .with_hits(pick(&[HitPolicy::Access, HitPolicy::Serve], coins))
        .with_integrity(Integrity::None);
    let trees = trees(config, &free.path_tree().unwrap(), seed);
    FreecursiveOram::new(&free, trees, self::coins(seed)).unwrap()
}

/// Parameters of ρ, and a Freecursive main ORAM, with stashes that are frequently full. Accesses to
/// the position map can fill the main stash in the middle of a request.
fn tight(seed: u64) -> (RhoConfig, FreecursiveOram<Trees, StdRng>) {
    let small =
        TreeConfig::new(24, BLOCK_BYTES, Geometry::uniform(4, 2).unwrap(), 1).with_tree(TreeId(1));
    let config = RhoConfig::of_tree(small, 8, 1);
    let free = FreecursiveConfig::new(80, BLOCK_BYTES)
        .unwrap()
        .with_client_entries_max(1)
        .with_fan_out(2)
        .with_plb_blocks(4)
        .with_plb_ways(4);
    let main = free.path_tree().unwrap().with_stash_blocks_max(1);
    let trees = trees(&config, &main, seed);
    let main = FreecursiveOram::new(&free, trees, coins(seed)).unwrap();
    (config, main)
}

/// A literal model of the array of ρ: the addresses of each set, least recently used first.
struct Array {
    ways: usize,
    sets: Vec<Vec<u64>>,
    last_victim: Option<u64>,
}

impl Array {
    fn new(config: &RhoConfig) -> Self {
        let sets = config.small.capacity as usize / config.ways;
        Self { ways: config.ways, sets: vec![Vec::new(); sets], last_victim: None }
    }

    fn request(&mut self, address: u64, is_write: bool, tally: &mut RhoTally) {
        let sets = self.sets.len() as u64;
        let set = &mut self.sets[(address % sets) as usize];
        if let Some(at) = set.iter().position(|held| *held == address) {
            tally.hits += 1;
            set.remove(at);
            set.push(address);
            return;
        }
        tally.misses += 1;
        if is_write {
            self.put_back(address, tally);
        }
    }

    fn take(&mut self, address: u64, tally: &mut RhoTally) {
        let sets = self.sets.len() as u64;
        let set = &mut self.sets[(address % sets) as usize];
        let held = set.len();
        set.retain(|held| *held != address);
        tally.hits += u64::from(set.len() < held);
        tally.misses += u64::from(set.len() == held);
    }

    fn put_back(&mut self, address: u64, tally: &mut RhoTally) {
        let sets = self.sets.len() as u64;
        let set = &mut self.sets[(address % sets) as usize];
        tally.inserted += 1;
        if set.len() == self.ways {
            self.last_victim = Some(set.remove(0));
            tally.put_back += 1;
        }
        set.push(address);
    }
}

/// The counters that must be equal in the tallies of the ORAM and of the model.
fn of_array(tally: RhoTally) -> [u64; 4] {
    [tally.hits, tally.misses, tally.inserted, tally.put_back]
}

fn run<F>(config: &RhoConfig, main: F, coins: &mut StdRng) -> RhoTally
where
    F: Front + AsRef<Trees> + AsMut<Trees>,
{
    let mut oram = RhoOram::new(config, main).unwrap();
    let mut model = vec![[0; BLOCK_BYTES]; oram.capacity() as usize];
    let (mut array, mut expected) = (Array::new(config), RhoTally::default());
    let per_round = config.small_per_main as u64;
    for i in 1..=200 {
        let addresses = if coins.random() { oram.capacity() } else { oram.capacity().min(12) };
        let address = coins.random_range(0..addresses);
        let held = &mut model[address as usize];
        let kind = coins.random_range(0..4);
        let mut seen = [0xA5; BLOCK_BYTES];
        match kind {
            0 | 1 => {
                oram.read(address, &mut seen).unwrap();
                assert_eq!(seen, *held, "block {address}");
            }
            2 => {
                held.fill(coins.random());
                oram.write(address, held).unwrap();
            }
            _ => {
                oram.update(address, &mut |block| {
                    seen.copy_from_slice(block);
                    block[0] ^= i;
                })
                .unwrap();
                assert_eq!(seen, *held, "block {address}");
                held[0] ^= i;
            }
        }
        array.request(address, kind >= 2, &mut expected);
        let tally = oram.tally();
        assert_eq!(of_array(tally), of_array(expected), "request {i}");
        assert_eq!(tally.small_accesses, tally.hits + tally.inserted);
        assert_eq!(tally.small_accesses + tally.small_dummies, per_round * tally.rounds());
        if i % 40 == 0 {
            oram.check_invariants().unwrap();
        }
    }
    for (address, held) in (0..).zip(&model) {
        let mut seen = [0xA5; BLOCK_BYTES];
        oram.read(address, &mut seen).unwrap();
        assert_eq!(seen, *held, "block {address}");
    }
    oram.check_invariants().unwrap();
    oram.tally()
}

#[test]
fn rho_is_a_map_over_a_flat_main_oram() {
    let mut put_back = 0;
    for seed in 0..40 {
        let coins = &mut coins(seed);
        let config = any_rho(coins);
        let main = any_flat(&config, seed, coins);
        put_back += run(&config, main, coins).put_back;
    }
    assert!(put_back > 500, "{put_back}");
}

#[test]
fn rho_is_a_map_over_a_freecursive_main_oram() {
    let mut put_back = 0;
    for seed in 0..40 {
        let coins = &mut coins(seed);
        let config = any_rho(coins);
        let main = any_freecursive(&config, seed, coins);
        put_back += run(&config, main, coins).put_back;
    }
    assert!(put_back > 500, "{put_back}");
}

/// Tests that no data is lost with ρ behind a cache that remaps at accesses. Every write that ρ
/// gets is a dirty victim of the cache.
#[test]
fn behind_a_cache_nothing_is_lost() {
    let config = RhoConfig::new(16, BLOCK_BYTES).unwrap();
    let main = TreeConfig::path(200, BLOCK_BYTES).unwrap();
    let main = FlatOram::new(trees(&config, &main, 1), coins(1)).unwrap();
    let rho = RhoOram::new(&config, main).unwrap();
    let mut oram = CachedOram::at_access(CacheConfig { blocks: 8, ways: 4 }, rho).unwrap();
    let (mut coins, mut model) = (coins(2), vec![0; 200]);
    for _ in 0..3000 {
        let addresses = if coins.random() { 200 } else { 20 };
        let address = coins.random_range(0..addresses);
        let fill: u8 = coins.random();
        let mut seen = [0; BLOCK_BYTES];
        oram.read(address, &mut seen).unwrap();
        assert_eq!(seen, [model[address as usize]; BLOCK_BYTES]);
        if fill.is_multiple_of(2) {
            oram.write(address, &[fill; BLOCK_BYTES]).unwrap();
            model[address as usize] = fill;
        }
    }
    let tally = oram.oram().tally();
    assert_eq!(tally.hits + tally.misses, oram.tally().misses + oram.tally().written_back);
    assert!(tally.hits > 300 && tally.put_back > 300, "{tally:?}");
    oram.flush().unwrap();
    oram.oram_mut().check_invariants().unwrap();
}

/// Tests that a batch of hits uses every small access of its rounds. Only the last round needs
/// dummies.
#[test]
fn a_batch_of_hits_leaves_no_turn_of_the_small_tree_unused() {
    let config = RhoConfig::new(16, BLOCK_BYTES).unwrap();
    let main = TreeConfig::path(200, BLOCK_BYTES).unwrap();
    let main = FlatOram::new(trees(&config, &main, 1), coins(1)).unwrap();
    let mut oram = RhoOram::new(&config, main).unwrap();
    oram.write(3, &[1; BLOCK_BYTES]).unwrap();
    let before = oram.tally();
    let mut blocks = [[0; BLOCK_BYTES]; 5];
    let batch = blocks.iter_mut().map(|block| Access { address: 3, op: Op::Read(block) });
    oram.access(&mut batch.collect::<Vec<_>>()).unwrap();
    assert_eq!(blocks, [[1; BLOCK_BYTES]; 5]);
    let after = oram.tally();
    assert_eq!(after.rounds() - before.rounds(), 3);
    assert_eq!(after.small_dummies - before.small_dummies, 1);
}

#[test]
fn a_full_stash_refuses_loses_nothing_and_recovers() {
    let mut refusals = 0;
    for seed in 0..10 {
        let (config, main) = tight(seed);
        let mut oram = RhoOram::new(&config, main).unwrap();
        let (mut coins, mut model) = (coins(!seed), vec![0; 80]);
        for _ in 0..1000 {
            let (address, fill) = (coins.random_range(0..80), coins.random());
            let mut seen = 0;
            let mut change = |block: &mut [u8]| {
                seen = block[0];
                block.fill(fill);
            };
            let mut rounds = 0;
            while let Err(error) =
                oram.access(&mut [Access { address, op: Op::Update(&mut change) }])
            {
                assert_eq!(error.kind(), ErrorKind::StashFull);
                refusals += 1;
                rounds += 1;
                assert!(rounds < 1000, "no round makes room");
                oram.idle_round().unwrap();
            }
            assert_eq!(seen, std::mem::replace(&mut model[address as usize], fill));
        }
        oram.check_invariants().unwrap();
    }
    assert!(refusals > 50, "{refusals}");
}

#[test]
fn the_defaults_are_the_papers_and_contradictions_are_refused() {
    let paper = RhoConfig::new(1 << 19, 64).unwrap();
    assert_eq!((paper.small.geometry.leaf_level(), paper.small.tree_top_levels), (19, 6));
    assert_eq!((paper.small_per_main, paper.small.stash_blocks_max), (2, 200));
    assert!(RhoConfig::new(u64::MAX, 64).is_err());

    let config = RhoConfig::new(16, BLOCK_BYTES).unwrap();
    let main = TreeConfig::path(20, BLOCK_BYTES).unwrap();
    let flat = |config: &RhoConfig| FlatOram::new(trees(config, &main, 1), coins(1)).unwrap();
    let other_size = RhoConfig::new(24, BLOCK_BYTES).unwrap();
    let other_blocks = RhoConfig::new(16, 32).unwrap();
    let bad = [
        RhoOram::new(&other_size, flat(&config)).err(),
        RhoOram::new(&other_blocks, flat(&other_blocks)).err(),
        RhoOram::new(&config.clone().with_ways(3), flat(&config)).err(),
        RhoOram::new(&config.clone().with_ways(0), flat(&config)).err(),
    ];
    for error in bad {
        assert_eq!(error.unwrap().kind(), ErrorKind::InvalidConfig);
    }
    let mut oram = RhoOram::new(&config, flat(&config)).unwrap();
    let error = oram.read(20, &mut [0; BLOCK_BYTES]).unwrap_err();
    assert_eq!((error.kind(), oram.tally().rounds()), (ErrorKind::InvalidRequest, 0));
}

#[test]
fn open_rounds_keep_to_the_pattern_and_go_on_with_idle_accesses() {
    let mut coins = coins(3);
    let config = RhoConfig::new(16, BLOCK_BYTES).unwrap().with_ends_rounds(false);
    let main = TreeConfig::path(200, BLOCK_BYTES).unwrap();
    let flat = FlatOram::new(trees(&config, &main, 1), StdRng::seed_from_u64(2)).unwrap();
    let mut oram = RhoOram::new(&config, flat).unwrap();
    let (mut ended_within, mut small_before) = (false, 0);
    for _ in 0..300 {
        if coins.random() {
            oram.idle_access().unwrap();
        } else {
            oram.write(coins.random_range(0..40), &[1; BLOCK_BYTES]).unwrap();
        }
        let tally = oram.tally();
        let small = tally.small_accesses + tally.small_dummies;
        let (whole, under_way) = (small / 2, small % 2);
        let main = tally.main_accesses + tally.main_dummies;
        assert!(main == whole || (under_way == 0 && main + 1 == whole), "{tally:?}");
        ended_within |= under_way != 0 && small != small_before;
        small_before = small;
    }
    assert!(ended_within, "no batch ended within a round");
    oram.check_invariants().unwrap();
}

#[test]
fn a_pattern_without_an_end_is_refused() {
    let main = TreeConfig::path(20, BLOCK_BYTES).unwrap();
    for small_per_main in [0, 65] {
        let good = RhoConfig::new(16, BLOCK_BYTES).unwrap();
        let config = good.with_small_per_main(small_per_main);
        let refused = TwoTrees::new(&config, scheme(&main), scheme(&config.small), coins(1));
        assert_eq!(refused.err().unwrap().kind(), ErrorKind::InvalidConfig);
    }
}

#[test]
fn trees_of_one_name_are_refused() {
    let main = TreeConfig::path(20, BLOCK_BYTES).unwrap();
    let mut config = RhoConfig::new(16, BLOCK_BYTES).unwrap();
    config.small.tree = main.tree;
    let refused = TwoTrees::new(&config, scheme(&main), scheme(&config.small), coins(1));
    let error = refused.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    assert!(error.to_string().contains("another TreeConfig::tree"), "{error}");
}
