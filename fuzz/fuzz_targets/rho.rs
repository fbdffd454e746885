//! Rho, which has a small tree in front of the main tree, over storage that lies about both.
//!
//! ```text
//! input = setup, 24 requests, 24 requests, length of the main tree's lies, lies of both trees
//! ```
//!
//! Storage is honest for the first requests and lies for the others. Path ORAM does not
//! authenticate its reads, so wrong data may be returned. But nothing may panic, and after
//! `Corrupt` or `Store` the ORAM stays stopped.
#![no_main]

#[path = "support/hostile.rs"]
mod hostile;

use hostile::{Hostile, hostile};
use libfuzzer_sys::fuzz_target;
use oblivio_core::front::rho::TwoTrees;
use oblivio_core::scheme::PathScheme;
use oblivio_core::{
    ErrorKind, FlatOram, FreecursiveConfig, FreecursiveOram, Front, Key, LayoutKind, MemoryStore,
    Oram, RhoConfig, RhoOram, Sealer, TreeConfig,
};
use rand::SeedableRng;
use rand::rngs::StdRng;

const CAPACITY: u64 = 60;
const BLOCK_BYTES: usize = 16;
/// Number of blocks of the small tree: fewer than the requests name, so that some return to the
/// main tree.
const SMALL_BLOCKS: u64 = 8;

/// Maximum number of idle rounds before a request, if a stash is full.
const IDLE_ROUNDS_MAX: usize = 10;

type Path = PathScheme<Hostile<MemoryStore>>;
type Trees = TwoTrees<Path, StdRng>;
type Rho<F> = RhoOram<F, Path, StdRng>;
type Block = [u8; BLOCK_BYTES];

fuzz_target!(|input: &[u8]| {
    let Some(([setup], input)) = input.split_first_chunk() else { return };
    let Some((before, input)) = input.split_first_chunk::<24>() else { return };
    let Some((after, input)) = input.split_first_chunk::<24>() else { return };
    let Some(([of_main], lies)) = input.split_first_chunk() else { return };
    let lies = lies.split_at(lies.len().min(usize::from(*of_main)));
    let config = RhoConfig::new(SMALL_BLOCKS, BLOCK_BYTES)
        .unwrap()
        .with_small_per_main(1 + usize::from(setup >> 1 & 3));
    if setup & 1 == 0 {
        let trees = trees(&config, &TreeConfig::path(CAPACITY, BLOCK_BYTES).unwrap());
        let main = FlatOram::new(trees, StdRng::seed_from_u64(1)).unwrap();
        run(&config, main, before, after, lies);
    } else {
        let free = FreecursiveConfig::new(CAPACITY, BLOCK_BYTES)
            .unwrap()
            .with_fan_out(4)
            .with_client_entries_max(4)
            .with_plb_blocks(2)
            .with_plb_ways(1);
        let trees = trees(&config, &free.path_tree().unwrap());
        let main = FreecursiveOram::new(&free, trees, StdRng::seed_from_u64(1)).unwrap();
        run(&config, main, before, after, lies);
    }
});

fn run<F: Front + AsRef<Trees> + AsMut<Trees>>(
    config: &RhoConfig,
    main: F,
    before: &[u8],
    after: &[u8],
    lies: (&[u8], &[u8]),
) {
    let mut oram = RhoOram::new(config, main).unwrap();
    let mut model = vec![[0; BLOCK_BYTES]; CAPACITY as usize];
    serve(&mut oram, Some(&mut model), before).expect("storage was honest");
    oram.check_invariants().expect("storage was honest");
    let [main, small] = oram.trees_mut();
    main.store_mut().rule.lie(lies.0);
    small.store_mut().rule.lie(lies.1);
    match serve(&mut oram, None, after) {
        // A store that returns old blocks can fill a stash permanently.
        Ok(()) | Err(ErrorKind::StashFull) => (),
        Err(kind) => {
            assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::Store), "{kind:?}");
            assert_eq!(serve(&mut oram, None, &[0]), Err(ErrorKind::MustReopen));
            assert!(oram.idle_round().is_err_and(|error| error.kind() == ErrorKind::MustReopen));
        }
    }
}

fn trees(config: &RhoConfig, main: &TreeConfig) -> Trees {
    let [main, small] = [main, &config.small].map(|tree| {
        let shapes = vec![tree.shape().unwrap(); usize::from(tree.tree.0) + 1];
        let store = hostile(MemoryStore::new(&shapes, LayoutKind::Heap).unwrap());
        let sealer = Sealer::aes128(Key::from_bytes([7; 16]), tree.tree);
        PathScheme::new(tree, sealer, store).unwrap()
    });
    TwoTrees::new(config, main, small, StdRng::seed_from_u64(2)).unwrap()
}

/// Serves `requests`. The low bit of a request selects the operation, its other bits the block. If
/// there is a model of the contents, a read must return the data last written.
fn serve<F: Front + AsRef<Trees> + AsMut<Trees>>(
    oram: &mut Rho<F>,
    mut model: Option<&mut [Block]>,
    requests: &[u8],
) -> Result<(), ErrorKind> {
    requests.iter().try_for_each(|request| {
        for _ in 0..IDLE_ROUNDS_MAX {
            if oram.check_ready().is_ok() {
                break;
            }
            oram.idle_round().map_err(|error| error.kind())?;
        }
        let address = u64::from(request >> 1) % CAPACITY;
        let mut block = [*request; BLOCK_BYTES];
        let outcome = match request & 1 {
            0 => oram.read(address, &mut block),
            _ => oram.write(address, &block),
        };
        outcome.map_err(|error| error.kind())?;
        if let Some(model) = &mut model {
            let expected = &mut model[address as usize];
            if request & 1 == 1 {
                *expected = block;
            }
            assert!(block == *expected);
        }
        Ok(())
    })
}
