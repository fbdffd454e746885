//! Freecursive ORAM, whose position map is also in storage, over storage that lies.
//!
//! ```text
//! input = setup, 24 requests, 24 requests, lies
//! ```
//!
//! Storage is honest for the first requests and lies for the others. With PMMAC, no wrong data may
//! be returned; without it, wrong data is allowed. In both cases only `Corrupt`, `Store` and
//! `StashFull` errors may occur. After the first two, the ORAM stays stopped.
#![no_main]

#[path = "support/hostile.rs"]
mod hostile;

use hostile::{Hostile, hostile};
use libfuzzer_sys::fuzz_target;
use oblivio_core::scheme::{PathScheme, RawScheme, Scheme};
use oblivio_core::{
    ErrorKind, FreecursiveConfig, FreecursiveOram, Integrity, Key, LayoutKind, MemoryStore, Oram,
    Sealer, TreeConfig,
};
use rand::SeedableRng;
use rand::rngs::StdRng;

const CAPACITY: u64 = 60;
const BLOCK_BYTES: usize = 16;

type Block = [u8; BLOCK_BYTES];

fuzz_target!(|input: &[u8]| {
    let Some(([setup], input)) = input.split_first_chunk() else { return };
    let Some((before, input)) = input.split_first_chunk::<24>() else { return };
    let Some((after, lies)) = input.split_first_chunk::<24>() else { return };
    let config = config(*setup);
    let begin_lies = |store: &mut Hostile<MemoryStore>| store.rule.lie(lies);
    if setup & 1 == 0 {
        let tree = config.path_tree().unwrap();
        let scheme = PathScheme::new(&tree, sealer(&tree), store(&tree)).unwrap();
        run(&config, scheme, |scheme| begin_lies(scheme.store_mut()), before, after);
    } else {
        let raw = config.raw_tree().unwrap();
        let scheme = RawScheme::new(&raw, sealer(&raw.tree), store(&raw.tree)).unwrap();
        run(&config, scheme, |scheme| begin_lies(scheme.store_mut()), before, after);
    }
});

fn run<B: Scheme>(
    config: &FreecursiveConfig,
    scheme: B,
    begin_lies: impl FnOnce(&mut B),
    before: &[u8],
    after: &[u8],
) {
    let coins = StdRng::seed_from_u64(1);
    let mut oram = FreecursiveOram::new(config, scheme, coins).unwrap();
    let mut model = vec![[0; BLOCK_BYTES]; CAPACITY as usize];
    let is_guarded = config.integrity == Integrity::Pmmac;
    serve(&mut oram, &mut model, before, true).expect("storage was honest");
    begin_lies(oram.scheme_mut());
    match serve(&mut oram, &mut model, after, is_guarded) {
        // A store that returns old blocks can fill the stash.
        Ok(()) | Err(ErrorKind::StashFull) => (),
        Err(kind) => {
            assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::Store), "{kind:?}");
            let again = serve(&mut oram, &mut model, &[0], is_guarded);
            assert_eq!(again, Err(ErrorKind::MustReopen));
        }
    }
}

fn config(setup: u8) -> FreecursiveConfig {
    FreecursiveConfig::new(CAPACITY, BLOCK_BYTES)
        .unwrap()
        .with_capacity(CAPACITY)
        .with_fan_out(4)
        // Small counters, so that groups are remapped soon.
        .with_counter_bits(2)
        .with_client_entries_max(4)
        .with_plb_blocks(usize::from(setup >> 2 & 3))
        .with_plb_ways(1)
        .with_integrity(if setup & 2 == 0 { Integrity::None } else { Integrity::Pmmac })
}

fn store(tree: &TreeConfig) -> Hostile<MemoryStore> {
    hostile(MemoryStore::new(&[tree.shape().unwrap()], LayoutKind::Heap).unwrap())
}

fn sealer(tree: &TreeConfig) -> Sealer {
    Sealer::aes128(Key::from_bytes([7; 16]), tree.tree)
}

/// Serves `requests`. The low bit of a request selects the operation, its other bits the block. If
/// `is_vouched_for`, because PMMAC is on, a successful read must return the data last written.
fn serve<B: Scheme>(
    oram: &mut FreecursiveOram<B, StdRng>,
    model: &mut [Block],
    requests: &[u8],
    is_vouched_for: bool,
) -> Result<(), ErrorKind> {
    requests.iter().try_for_each(|request| {
        let address = u64::from(request >> 1) % CAPACITY;
        let expected = &mut model[address as usize];
        let outcome = if request & 1 == 0 {
            let mut block = [0; BLOCK_BYTES];
            let outcome = oram.read(address, &mut block);
            assert!(outcome.is_err() || !is_vouched_for || block == *expected);
            outcome
        } else {
            *expected = [*request; BLOCK_BYTES];
            oram.write(address, expected)
        };
        outcome.map_err(|error| error.kind())
    })
}
