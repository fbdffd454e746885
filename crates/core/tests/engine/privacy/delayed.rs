//! Tests of the leaves that storage sees behind a cache with delayed remapping.

use oblivio_core::scheme::{self, PathScheme, RawScheme};
use oblivio_core::{
    CacheConfig, CachedOram, FlatOram, FreecursiveOram, Front, Key, Oram, RawConfig, RemapPolicy,
    Sealer,
};
use oblivio_testkit::statistics::Verdicts;
use oblivio_testkit::workload::Workload;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::FALSE_ALARMS;
use super::leaves::judge;
use super::paths::assert_whole;
use super::run::{
    BLOCK_BYTES, CAPACITY, Frontend, Run, Scheme, Setup, States, Store, freecursive_config, store,
};
use super::trips::{Purpose, leaves};
use crate::support::noting::Noting;

const REQUESTS: usize = 8000;

/// A cache of one block, in which every change of address is a miss, and a larger cache.
const CACHES: [CacheConfig; 2] =
    [CacheConfig { blocks: 1, ways: 1 }, CacheConfig { blocks: 12, ways: 4 }];

/// The workloads that miss a cache often enough for the tests.
fn workloads(cache: CacheConfig) -> &'static [Workload] {
    use Workload::{Scan, TwoAlternating, Uniform, Zipf};
    if cache.blocks == 1 { &[TwoAlternating, Zipf] } else { &[Scan, Uniform, Zipf] }
}

/// Serves `workload` through a cache. Storage sees the accesses that take blocks out, and those to
/// the position map.
fn serve<O: Front>(oram: O, cache: CacheConfig, workload: Workload) -> CachedOram<O> {
    let mut oram = CachedOram::new(cache, RemapPolicy::Delayed, oram).unwrap();
    for request in workload.requests(CAPACITY, 1).take(REQUESTS) {
        let mut block = [1; BLOCK_BYTES];
        if request.is_write {
            oram.write(request.address, &block).unwrap();
        } else {
            oram.read(request.address, &mut block).unwrap();
        }
    }
    oram
}

fn run(setup: Setup, cache: CacheConfig, workload: Workload) -> Run {
    let mut coins = StdRng::seed_from_u64(cache.blocks as u64);
    let tree = setup.tree();
    let sealer = Sealer::aes128(Key::draw(&mut coins), tree.tree);
    let store = store(tree.shape().unwrap());
    match setup.scheme {
        Scheme::Raw(evict_period) => {
            let config = RawConfig::of_tree(tree, evict_period);
            let scheme = RawScheme::new(&config, sealer, store).unwrap();
            run_on(setup, scheme, cache, workload, coins, RawScheme::store_mut)
        }
        _ => {
            let scheme = PathScheme::new(&tree, sealer, store).unwrap();
            run_on(setup, scheme, cache, workload, coins, PathScheme::store_mut)
        }
    }
}

fn run_on<B: scheme::Scheme>(
    setup: Setup,
    scheme: B,
    cache: CacheConfig,
    workload: Workload,
    coins: StdRng,
    store_mut: fn(&mut B) -> &mut Store,
) -> Run {
    let scheme = Noting::new(scheme);
    let take = |scheme: &mut Noting<B>| {
        let notes = scheme.take_notes();
        (notes, std::mem::take(store_mut(scheme.scheme_mut()).sink_mut()))
    };
    let (accesses, view) = match setup.frontend {
        Frontend::Flat => {
            let mut oram = serve(FlatOram::new(scheme, coins).unwrap(), cache, workload);
            take(oram.oram_mut().scheme_mut())
        }
        Frontend::Freecursive => {
            let oram = FreecursiveOram::new(&freecursive_config(), scheme, coins).unwrap();
            take(serve(oram, cache, workload).oram_mut().scheme_mut())
        }
    };
    Run { setup, workload, accesses, view, states: States::default() }
}

#[test]
fn leaves_are_uniform_independent_and_fresh() {
    let mut verdicts = Verdicts::new(FALSE_ALARMS);
    for scheme in [Scheme::Path, Scheme::Raw(3)] {
        for setup in [Setup::new(scheme, REQUESTS), Setup::freecursive(scheme, REQUESTS)] {
            for cache in CACHES {
                for workload in workloads(cache) {
                    let run = run(setup, cache, *workload);
                    assert!(run.accesses.len() > 3000, "{workload} rarely misses");
                    judge(&run, &leaves(&run, Purpose::Access), &mut verdicts);
                    assert_whole(&run);
                }
            }
        }
    }
    verdicts.conclude();
}
