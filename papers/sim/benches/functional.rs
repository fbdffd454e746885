//! Measures paths per second of the functional mode, and a lower bound on the time of a path: reads
//! and writes of all slots on random paths, without an ORAM. Run all with `cargo bench -p
//! oblivio-sim --bench functional`, or leaf level 20 only with `-- 20`. Level 24 takes 1.4 GB, and
//! a minute to fill.

#![expect(clippy::unwrap_used, reason = "what cannot run cannot be measured")]

use divan::Bencher;
use divan::counter::ItemsCount;
use oblivio_sim::controller::OramSpec;
use oblivio_sim::functional::{Phase, Requests, Study};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const LEAF_LEVELS: [u8; 3] = [16, 20, 24];
const PATHS: u64 = 20_000;
const Z: usize = 4;

fn main() {
    divan::main();
}

#[divan::bench(args = LEAF_LEVELS, sample_count = 25, sample_size = 1)]
fn uniform_requests(bencher: Bencher, leaf_level: u8) {
    let spec = OramSpec::paper(leaf_level);
    let mut study = Study::new(&spec, 1, &mut |_| ()).unwrap();
    let phase = Phase { requests: Requests::Uniform, paths: PATHS };
    bencher
        .counter(ItemsCount::new(PATHS))
        .bench_local(|| study.run(&[phase], &[], &mut |_| ()).unwrap());
}

#[divan::bench(args = LEAF_LEVELS, sample_count = 25, sample_size = 1)]
fn floor(bencher: Bencher, leaf_level: u8) {
    let top = OramSpec::paper(leaf_level).tree_top_levels;
    let mut slots = vec![1u64; Z << (leaf_level + 1)];
    let mut coins = StdRng::seed_from_u64(1);
    bencher.counter(ItemsCount::new(PATHS)).bench_local(|| {
        for _ in 0..PATHS {
            let leaf: usize = coins.random_range(0..1 << leaf_level);
            for level in (top..=leaf_level).rev() {
                let first = ((1 << level) - 1 + (leaf & ((1 << level) - 1))) * Z;
                slots[first..first + Z].iter_mut().for_each(|slot| *slot += 1);
            }
        }
    });
}
