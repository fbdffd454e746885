//! Durable RAW ORAM, the default scheme of volumes, over storage that lies.
//!
//! ```text
//! input = setup, 24 requests, 24 requests, lies
//! ```
//!
//! Storage is honest for the first requests and lies for the others. Half of the setups have the
//! position map in the tree. In these setups, storage also holds pages that record which slots are
//! taken. No read may return wrong data. The ORAM may only fail with `Corrupt` or `Store`, and then
//! must be reopened.
#![no_main]

#[path = "support/hostile.rs"]
mod hostile;

use hostile::{Hostile, hostile};
use libfuzzer_sys::fuzz_target;
use oblivio_core::{
    DurableRawOram, EraSealer, ErrorKind, LayoutKind, MasterKey, MemoryStore, Oram, RawConfig,
    Recursion, RotatingConfig,
};
use rand::SeedableRng;
use rand::rngs::StdRng;

const CAPACITY: u64 = 60;
const BLOCK_BYTES: usize = 32;

type Rotating = DurableRawOram<Hostile<MemoryStore>, StdRng>;

fuzz_target!(|input: &[u8]| {
    let Some(([setup], input)) = input.split_first_chunk() else { return };
    let Some((before, input)) = input.split_first_chunk::<24>() else { return };
    let Some((after, lies)) = input.split_first_chunk::<24>() else { return };
    let mut oram = oram(*setup);
    let mut model = vec![[0; BLOCK_BYTES]; CAPACITY as usize];
    serve(&mut oram, &mut model, before).expect("storage was honest");
    oram.backend_mut().store_mut().rule.lie(lies);
    let served = serve(&mut oram, &mut model, after);
    let served = served.and_then(|()| oram.check(&mut |_| ()).map_err(|error| error.kind()));
    if let Err(kind) = served {
        assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::Store), "{kind:?}");
        // Requests that need no access may still be answered.
        let _ = serve(&mut oram, &mut model, after);
    }
    oram.backend_mut().store_mut().rule.lie(&[]);
    let checked = oram.check(&mut |_| ()).map_err(|error| error.kind());
    match served {
        Ok(_) => assert!(checked.is_ok(), "storage is honest again: {checked:?}"),
        // After an error, also one of a check, the ORAM must be reopened.
        Err(_) => assert_eq!(checked, Err(ErrorKind::MustReopen)),
    }
});

fn oram(setup: u8) -> Rotating {
    let mut coins = StdRng::seed_from_u64(1);
    let mut config = match setup & 1 {
        0 => RotatingConfig::flat(RawConfig::new(CAPACITY, BLOCK_BYTES).unwrap()),
        _ => {
            let recursion =
                Recursion { data_blocks: CAPACITY, client_entries_max: 4, plb_blocks: 4 };
            RotatingConfig::recursive(recursion, BLOCK_BYTES).unwrap()
        }
    };
    config.raw.tree.tree_top_levels = 1 + (setup >> 1 & 1);
    let shapes = config.shapes().unwrap().into_trees();
    let store = hostile(MemoryStore::new(&shapes, LayoutKind::Heap).unwrap());
    let key = MasterKey::draw(&mut coins);
    let sealer = EraSealer::fresh(key, config.raw.tree.tree, &mut coins);
    DurableRawOram::new(&config, sealer, store, coins).unwrap()
}

/// Serves `requests`. The two low bits of a request select the operation, its other bits the block.
/// A successful read must return the data last written.
fn serve(
    oram: &mut Rotating,
    model: &mut [[u8; BLOCK_BYTES]],
    requests: &[u8],
) -> Result<(), ErrorKind> {
    requests.iter().try_for_each(|request| {
        let address = u64::from(request >> 2) % CAPACITY;
        let expected = &mut model[address as usize];
        let outcome = match request & 3 {
            0 | 1 => {
                let mut block = [0; BLOCK_BYTES];
                let outcome = oram.read(address, &mut block);
                assert!(outcome.is_err() || block == *expected);
                outcome
            }
            2 => {
                *expected = [*request; BLOCK_BYTES];
                oram.write(address, expected)
            }
            _ => {
                let needed = oram.missing_positions_to_forget(address..address + 1).unwrap();
                if needed.is_empty() {
                    expected.fill(0);
                    oram.forget(address..address + 1)
                } else {
                    Ok(())
                }
            }
        };
        outcome.map_err(|error| error.kind())
    })
}
