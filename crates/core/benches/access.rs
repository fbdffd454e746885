//! One access of each scheme at several block sizes, for quick checks during development. The
//! authoritative measurements come from `make bench-engine`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run has no result")]

use divan::Bencher;
use oblivio_core::{Key, MemoryStore, Oram, PathOram, RawConfig, RawOram, Sealer, TreeConfig};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const CAPACITY: u64 = 1 << 14;
const BLOCK_BYTES: [usize; 3] = [64, 1024, 4096];

fn main() {
    divan::main();
}

fn parts(config: &TreeConfig) -> (Sealer, MemoryStore, StdRng) {
    let mut coins = StdRng::seed_from_u64(1);
    let store =
        MemoryStore::new(&[config.shape().unwrap()], MemoryStore::default_layout()).unwrap();
    (Sealer::aes128(Key::draw(&mut coins), config.tree), store, coins)
}

fn read_at_random(bencher: Bencher, mut oram: impl Oram) {
    let mut block = vec![1; oram.block_bytes()];
    (0..CAPACITY).for_each(|address| oram.write(address, &block).unwrap());
    let mut coins = StdRng::seed_from_u64(2);
    bencher
        .with_inputs(|| coins.random_range(0..CAPACITY))
        .bench_local_values(|address| oram.read(address, &mut block).unwrap());
}

#[divan::bench(args = BLOCK_BYTES, sample_size = 500)]
fn path(bencher: Bencher, block_bytes: usize) {
    let config = TreeConfig::path(CAPACITY, block_bytes).unwrap();
    let (sealer, store, coins) = parts(&config);
    read_at_random(bencher, PathOram::path(&config, sealer, store, coins).unwrap());
}

#[divan::bench(args = BLOCK_BYTES, sample_size = 500)]
fn raw(bencher: Bencher, block_bytes: usize) {
    let config = RawConfig::new(CAPACITY, block_bytes).unwrap();
    let (sealer, store, coins) = parts(&config.tree);
    read_at_random(bencher, RawOram::raw(&config, sealer, store, coins).unwrap());
}
