//! An ORAM over storage with contents from the fuzzer.
//!
//! ```text
//! input = setup, 8 requests, 8 requests, contents
//! ```
//!
//! The first requests fill an ORAM over honest storage, so that its counters advance. Then
//! `contents` overwrite the start of storage, and the ORAM serves the other requests. A request may
//! only fail with `Corrupt`, after which the ORAM stays stopped, or with `StashFull`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_core::scheme::Scheme;
use oblivio_core::store::TreeId;
use oblivio_core::{
    ErrorKind, FlatOram, Front, Geometry, Key, LayoutKind, MemoryStore, NoSecrecy, Oram, PathOram,
    RawConfig, RawOram, Sealer, TreeConfig,
};
use rand::SeedableRng;
use rand::rngs::StdRng;

const CAPACITY: u64 = 7;
const BLOCK_BYTES: usize = 16;

fuzz_target!(|input: &[u8]| {
    let Some(([setup], input)) = input.split_first_chunk() else { return };
    let Some((before, input)) = input.split_first_chunk::<8>() else { return };
    let Some((after, contents)) = input.split_first_chunk::<8>() else { return };
    let tree = tree(*setup);
    let (store, sealer) = (store(&tree), sealer(*setup));
    let coins = StdRng::seed_from_u64(1);
    if setup & 1 == 0 {
        let mut oram = PathOram::path(&tree, sealer, store, coins).unwrap();
        serve(&mut oram, before).unwrap();
        lay_over(oram.store_mut().contents_mut(), contents);
        serves_or_stops(&mut oram, after);
    } else {
        let config = RawConfig::of_tree(tree, 1 + u32::from(setup >> 4 & 3));
        let mut oram = RawOram::raw(&config, sealer, store, coins).unwrap();
        serve(&mut oram, before).unwrap();
        lay_over(oram.store_mut().contents_mut(), contents);
        serves_or_stops(&mut oram, after);
    }
});

fn tree(setup: u8) -> TreeConfig {
    let geometry = Geometry::profile(&[2, 1, 2]).unwrap();
    let config = TreeConfig::new(CAPACITY, BLOCK_BYTES, geometry, CAPACITY as usize);
    config.with_tree_top_levels(setup >> 2 & 1)
}

fn store(tree: &TreeConfig) -> MemoryStore {
    MemoryStore::new(&[tree.shape().unwrap()], LayoutKind::Heap).unwrap()
}

fn sealer(setup: u8) -> Sealer {
    if setup & 2 == 0 {
        Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets())
    } else {
        Sealer::aes128(Key::from_bytes([7; 16]), TreeId(0))
    }
}

fn lay_over(storage: &mut [u8], contents: &[u8]) {
    let bytes = storage.len().min(contents.len());
    storage[..bytes].copy_from_slice(&contents[..bytes]);
}

/// Serves `requests`. The two low bits of a request select the operation, its other bits the block.
fn serve<B: Scheme>(oram: &mut FlatOram<B, StdRng>, requests: &[u8]) -> Result<(), ErrorKind> {
    requests.iter().try_for_each(|request| {
        let address = u64::from(request >> 2) % CAPACITY;
        let outcome = match request & 3 {
            0 => oram.read(address, &mut [0; BLOCK_BYTES]),
            1 => oram.write(address, &[*request; BLOCK_BYTES]),
            2 => oram.update(address, &mut |block| block[0] ^= 1),
            _ => oram.evict(),
        };
        outcome.map_err(|error| error.kind())
    })
}

fn serves_or_stops<B: Scheme>(oram: &mut FlatOram<B, StdRng>, requests: &[u8]) {
    match serve(oram, requests) {
        // A store that returns old blocks can fill the stash.
        Ok(()) | Err(ErrorKind::StashFull) => {
            let scan = oram.check_invariants().map_err(|error| error.kind());
            assert!(matches!(scan, Ok(()) | Err(ErrorKind::Corrupt)), "{scan:?}");
        }
        Err(kind) => {
            assert_eq!(kind, ErrorKind::Corrupt);
            assert_eq!(serve(oram, &[0]), Err(ErrorKind::MustReopen));
        }
    }
}
