//! A saved study with changes from the fuzzer.
//!
//! ```text
//! input = setup, changes of three bytes each: offset (2 bytes, times 3), new byte
//! setup = whether to update the checksum (1 bit), whether to truncate the file (1 bit);
//!         as a number, the length of a truncated file, as a fraction of 256
//! ```
//!
//! A study that can be resumed runs, or fails with an error of the engine. Any other file is
//! refused with the error `SimError::Saved`.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use oblivio_sim::SimError;
use oblivio_sim::controller::OramSpec;
use oblivio_sim::functional::{Phase, Requests, Study};

const LEAF_LEVEL: u8 = 6;
const SEED: u64 = 1;

/// Offsets of changes are multiples of this number, so that two bytes reach the whole file.
const STEP: usize = 3;

const SUM_BYTES: usize = size_of::<u32>();

fn spec() -> OramSpec {
    OramSpec { tree_top_levels: 3, tree_top_ways: Some(4), ..OramSpec::paper(LEAF_LEVEL) }
}

fn uniform(paths: u64) -> Phase<'static> {
    Phase { requests: Requests::Uniform, paths }
}

fn saved() -> &'static [u8] {
    static SAVED: OnceLock<Vec<u8>> = OnceLock::new();
    SAVED.get_or_init(|| {
        let mut study = Study::new(&spec(), SEED, &mut |_| ()).unwrap();
        study.run(&[uniform(500)], &[], &mut |_| ()).unwrap();
        let mut file = Vec::new();
        study.save("a note", &mut file).unwrap();
        file
    })
}

fuzz_target!(|input: &[u8]| {
    let Some((setup, changes)) = input.split_first() else { return };
    let mut file = saved().to_vec();
    for change in changes.as_chunks::<3>().0 {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) * STEP;
        let end = file.len();
        file[place % end] = change[2];
    }
    if setup & 1 != 0 {
        let (body, sum) = file.split_at_mut(saved().len() - SUM_BYTES);
        sum.copy_from_slice(&crc32fast::hash(body).to_le_bytes());
    }
    if setup & 2 != 0 {
        file.truncate(file.len() * usize::from(*setup) / 256);
    }
    match Study::resume(&spec(), SEED, &file[..]) {
        Ok((mut study, note)) => {
            match study.run(&[uniform(200)], &[200], &mut |_| ()) {
                Ok(_) | Err(SimError::Engine(_)) => {}
                Err(error) => panic!("unexpected error of a resumed study: {error}"),
            }
            // Saving fails after an error of the engine.
            let _ = study.save(&note, &mut Vec::new());
        }
        Err(SimError::Saved(_)) => {}
        Err(error) => panic!("unexpected error of a saved study: {error}"),
    }
});
