//! Tests of blocks taken out of ρ and put back, against a plain map and a literal model of ρ's
//! array.

use std::collections::HashMap;

use oblivio_core::front::CacheTally;
use oblivio_core::{Error, Front, RemapPolicy};
use oblivio_testkit::workload::Workload;

use super::*;

/// The expected state of a block.
#[derive(Clone, Copy, Default)]
struct Model {
    fill: u8,
    /// Whether the block was written or put back.
    exists: bool,
    is_out: bool,
}

/// An ORAM with ρ from which the test takes blocks, and its expected state.
struct TestedRho<F> {
    oram: RhoOram<F, PathScheme<MemoryStore>, StdRng>,
    blocks: Vec<Model>,
    array: Array,
    small_per_main: usize,
    expected: RhoTally,
    refusals: u64,
    /// Number of blocks that [`Front::take_on_client`] found on the client.
    found: u64,
}

impl<F: Front + AsRef<Trees> + AsMut<Trees>> TestedRho<F> {
    fn new(config: &RhoConfig, main: F) -> Self {
        let oram = RhoOram::new(config, main).unwrap();
        let blocks = vec![Model::default(); oram.capacity() as usize];
        let array = Array::new(config);
        let (expected, small_per_main) = (RhoTally::default(), config.small_per_main);
        Self { oram, blocks, array, small_per_main, expected, refusals: 0, found: 0 }
    }

    fn served<T>(&mut self, mut work: impl FnMut(&mut Self) -> Result<T, Error>) -> T {
        for _ in 0..1000 {
            match work(self) {
                Ok(done) => return done,
                Err(error) => assert_eq!(error.kind(), ErrorKind::StashFull, "{error}"),
            }
            self.refusals += 1;
            self.oram.evict().unwrap();
        }
        panic!("no round makes room");
    }

    fn request(&mut self, coins: &mut StdRng) {
        let capacity = self.oram.capacity();
        let address = match (coins.random_range(0..3), self.array.last_victim) {
            (0, Some(victim)) => victim,
            (1, _) => coins.random_range(0..capacity.min(12)),
            _ => coins.random_range(0..capacity),
        };
        if self.blocks[address as usize].is_out {
            self.put_back(address, coins.random());
        } else {
            match coins.random_range(0..6) {
                0 => self.write(address, coins.random()),
                1 => self.read(address),
                2 | 3 => self.take_on_client(address),
                _ => self.take(address),
            }
        }
    }

    fn write(&mut self, address: u64, fill: u8) {
        self.served(|this| this.oram.write(address, &[fill; BLOCK_BYTES]));
        self.blocks[address as usize] = Model { fill, exists: true, is_out: false };
        self.array.request(address, true, &mut self.expected);
    }

    fn read(&mut self, address: u64) {
        let mut seen = [0xA5; BLOCK_BYTES];
        self.served(|this| this.oram.read(address, &mut seen));
        assert_eq!(seen, [self.blocks[address as usize].fill; BLOCK_BYTES], "block {address}");
        self.array.request(address, false, &mut self.expected);
    }

    fn take(&mut self, address: u64) {
        let mut seen = [0xA5; BLOCK_BYTES];
        let existed = self.served(|this| this.oram.take(address, &mut seen));
        assert_eq!(existed, self.blocks[address as usize].exists, "block {address}");
        self.is_taken(address, seen);
    }

    /// Takes a block out if it is on the client. Storage sees nothing, whether the block is found
    /// or not.
    fn take_on_client(&mut self, address: u64) {
        let mut seen = [0xA5; BLOCK_BYTES];
        let before = self.oram.tally();
        let is_found = self.oram.take_on_client(address, &mut seen).unwrap();
        let after = self.oram.tally();
        assert_eq!(after, RhoTally { hits: after.hits, misses: after.misses, ..before });
        if is_found {
            self.found += 1;
            self.is_taken(address, seen);
        } else {
            assert_eq!((seen, after), ([0xA5; BLOCK_BYTES], before));
        }
    }

    fn is_taken(&mut self, address: u64, seen: [u8; BLOCK_BYTES]) {
        let block = &mut self.blocks[address as usize];
        assert_eq!(seen, [block.fill; BLOCK_BYTES], "block {address}");
        block.is_out = true;
        self.array.take(address, &mut self.expected);
    }

    fn put_back(&mut self, address: u64, fill: u8) {
        self.served(|this| this.oram.put_back(address, &[fill; BLOCK_BYTES]));
        self.blocks[address as usize] = Model { fill, exists: true, is_out: false };
        self.array.put_back(address, &mut self.expected);
    }

    /// Checks that the ORAM holds exactly the blocks that exist and are not taken out, each once.
    fn check(&mut self) {
        self.oram.check_invariants().unwrap();
        let mut seen: HashMap<u64, u32> = HashMap::new();
        self.oram.visit_blocks(&mut |block| *seen.entry(block.address).or_default() += 1).unwrap();
        for (address, block) in (0..).zip(&self.blocks) {
            let times = seen.get(&address).copied().unwrap_or(0);
            assert_eq!(times, u32::from(block.exists && !block.is_out), "block {address}");
        }
    }

    fn run(&mut self, coins: &mut StdRng) {
        for i in 1..=400 {
            self.request(coins);
            self.assert_whole_rounds();
            if i % 40 == 0 {
                self.check();
            }
        }
        for address in 0..self.oram.capacity() {
            if self.blocks[address as usize].is_out {
                self.put_back(address, 1);
            }
            self.read(address);
        }
        self.check();
    }

    fn assert_whole_rounds(&self) {
        let tally = self.oram.tally();
        let small = tally.small_accesses + tally.small_dummies;
        assert_eq!(small, self.small_per_main as u64 * tally.rounds());
    }

    /// Checks that the counters of the array equal the model's, and that each access to the small
    /// tree is a hit or an insertion.
    fn assert_tally(&self) {
        let tally = self.oram.tally();
        assert_eq!(of_array(tally), of_array(self.expected));
        assert!(tally.small_accesses <= tally.hits + tally.inserted);
    }
}

#[test]
fn taking_and_putting_back_behave_like_a_map() {
    let (mut put_back, mut found) = (0, 0);
    for seed in 0..40 {
        let coins = &mut coins(seed);
        let config = any_rho(coins);
        if seed % 2 == 0 {
            let main = any_flat(&config, seed, coins);
            let mut tested = TestedRho::new(&config, main);
            tested.run(coins);
            tested.assert_tally();
            (put_back, found) = (put_back + tested.expected.put_back, found + tested.found);
        } else {
            let main = any_freecursive(&config, seed, coins);
            let mut tested = TestedRho::new(&config, main);
            tested.run(coins);
            tested.assert_tally();
            (put_back, found) = (put_back + tested.expected.put_back, found + tested.found);
        }
    }
    assert!(put_back > 500 && found > 200, "{put_back}, {found}");
}

#[test]
fn full_stashes_refuse_lose_nothing_and_recover() {
    let mut refusals = 0;
    for seed in 0..10 {
        let (config, main) = tight(seed);
        let mut tested = TestedRho::new(&config, main);
        // Full of blocks, of which few are ever taken out.
        (0..80).for_each(|address| tested.write(address, 1));
        tested.run(&mut coins(!seed));
        refusals += tested.refusals;
    }
    assert!(refusals > 30, "{refusals}");
}

/// A cache of 8 blocks with delayed remapping, in front of ρ with a small tree of 16 blocks.
fn behind_a_cache() -> CachedOram<FreecursiveRho> {
    let config = RhoConfig::new(16, BLOCK_BYTES).unwrap();
    let free = FreecursiveConfig::new(200, BLOCK_BYTES)
        .unwrap()
        .with_client_entries_max(4)
        .with_plb_blocks(2)
        .with_fan_out(4);
    let trees = trees(&config, &free.path_tree().unwrap(), 1);
    let rho = RhoOram::new(&config, FreecursiveOram::new(&free, trees, coins(1)).unwrap()).unwrap();
    CachedOram::new(CacheConfig { blocks: 8, ways: 4 }, RemapPolicy::Delayed, rho).unwrap()
}

type FreecursiveRho = oblivio_core::front::rho::FreecursiveRho<MemoryStore, StdRng>;

/// Tests that the number of rounds behind a cache does not depend on data or operations.
#[test]
fn behind_a_cache_the_number_of_rounds_depends_only_on_the_addresses() {
    let [mut one, mut other] = [(); 2].map(|()| behind_a_cache());
    for request in Workload::Zipf.requests(200, 5).take(3000) {
        one.read(request.address, &mut [0; BLOCK_BYTES]).unwrap();
        other.write(request.address, &[1; BLOCK_BYTES]).unwrap();
        assert_eq!(one.oram().tally(), other.oram().tally());
    }
    one.check_invariants().unwrap();
    let (cache, rho) = (one.tally(), one.oram().tally());
    assert!(rho.hits > 300 && rho.put_back > 300, "{rho:?}");
    let CacheTally { misses, written_back, .. } = cache;
    assert_eq!((rho.hits + rho.misses, rho.inserted), (misses, written_back));
    let main = one.oram().main().tally();
    assert_eq!(main.data_accesses, rho.misses, "putting back costs no data access");
    assert_eq!(rho.small_accesses, rho.hits + rho.inserted);
}

#[test]
fn flushing_the_cache_loses_nothing() {
    let mut oram = behind_a_cache();
    let (mut coins, mut model) = (coins(2), [0; 200]);
    for _ in 0..2000 {
        let addresses = if coins.random() { 200 } else { 20 };
        let (address, fill) = (coins.random_range(0..addresses), coins.random());
        oram.update(address as u64, &mut |block| {
            assert_eq!(block, [model[address]; BLOCK_BYTES]);
            block.fill(fill);
        })
        .unwrap();
        model[address] = fill;
    }
    oram.flush().unwrap();
    oram.oram_mut().check_invariants().unwrap();
    for (address, fill) in (0..).zip(model) {
        let mut block = [0xA5; BLOCK_BYTES];
        oram.oram_mut().read(address, &mut block).unwrap();
        assert_eq!(block, [fill; BLOCK_BYTES], "block {address}");
    }
}

#[test]
fn a_block_out_of_range_is_refused_before_anything_is_done() {
    let mut rho = behind_a_cache();
    let rho = rho.oram_mut();
    for (address, bytes) in [(200, BLOCK_BYTES), (u64::MAX, BLOCK_BYTES), (1, BLOCK_BYTES - 1)] {
        let mut block = vec![0; bytes];
        for error in [
            rho.take(address, &mut block).unwrap_err(),
            rho.take_on_client(address, &mut block).unwrap_err(),
            rho.put_back(address, &block).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        }
    }
    assert_eq!(rho.tally(), RhoTally::default());
}

#[test]
fn open_rounds_stay_open() {
    let config = RhoConfig::new(16, BLOCK_BYTES).unwrap().with_ends_rounds(false);
    let main = TreeConfig::path(200, BLOCK_BYTES).unwrap();
    let main = FlatOram::new(trees(&config, &main, 1), coins(1)).unwrap();
    let mut rho = RhoOram::new(&config, main).unwrap();
    rho.take(3, &mut [0; BLOCK_BYTES]).unwrap();
    assert_eq!((rho.tally().small_dummies, rho.tally().rounds()), (2, 1));
    rho.put_back(3, &[1; BLOCK_BYTES]).unwrap();
    assert_eq!((rho.tally().small_accesses, rho.tally().rounds()), (1, 1));
    rho.evict().unwrap();
    assert_eq!(
        (rho.tally().small_dummies, rho.tally().rounds()),
        (3, 1),
        "one access is not a round"
    );
}
