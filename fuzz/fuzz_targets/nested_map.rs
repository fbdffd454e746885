//! A position map in the tree, whose blocks have contents from the fuzzer.
//!
//! ```text
//! input = (action, address, 8 entries)*
//! ```
//!
//! Every function that meets an entry for a leaf outside the tree fails with `Corrupt`, so blocks
//! map only to leaves of the tree. If the client does not know the position of a block, it knows
//! the position of the position-map block that holds it. Forgotten blocks are not live.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oblivio_core::geometry::Leaf;
use oblivio_core::nested_fuzzing::{Map, Position};
use oblivio_core::posmap::Mapping;
use oblivio_core::{Error, ErrorKind, Recursion};

const DATA_BLOCKS: u64 = 250;
const LEAF_LEVEL: u8 = 6;
const ENTRIES: usize = 8;
const ENTRY_BYTES: usize = 4;
const BLOCK_BYTES: usize = ENTRIES * ENTRY_BYTES;
/// The first address of the position map. The last group of data blocks is incomplete, so the
/// addresses from `DATA_BLOCKS` to this one are unused.
const MAP_START: u64 = 256;
/// Number of addresses: those below `MAP_START`, 32 position-map blocks for the data, and 4
/// position-map blocks for these 32.
const BLOCKS: u64 = MAP_START + 32 + 4;
const STEP_BYTES: usize = 2 + ENTRIES;

fuzz_target!(|input: &[u8]| {
    let recursion = Recursion { data_blocks: DATA_BLOCKS, client_entries_max: 4, plb_blocks: 4 };
    assert_eq!(recursion.tree_blocks(BLOCK_BYTES, LEAF_LEVEL).unwrap(), BLOCKS);
    let mut map = Map::new(&recursion, BLOCK_BYTES, LEAF_LEVEL).unwrap();
    for step in input.chunks_exact(STEP_BYTES) {
        let [what, place, entries @ ..] = step else { return };
        if take(&mut map, *what, *place, entries).is_err_and(|error| !is_allowed(&error)) {
            panic!("the map refuses a valid request");
        }
        (0..DATA_BLOCKS).chain(MAP_START..BLOCKS).for_each(|address| check(&map, address));
    }
});

fn is_allowed(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::InvalidRequest)
}

fn take(map: &mut Map, what: u8, place: u8, entries: &[u8]) -> Result<(), Error> {
    let of_data = u64::from(place) % DATA_BLOCKS;
    let of_map = MAP_START + u64::from(place) % (BLOCKS - MAP_START);
    let block: Vec<u8> = entries.iter().flat_map(|entry| u32::from(*entry).to_le_bytes()).collect();
    match what % 6 {
        // Also invalid blocks: data, nonexistent leaves, blocks already in the PLB.
        0 if place == 0 => map.restore_client_block(of_data, 0, &block),
        0 => map.restore_client_block(of_map, u64::from(what), &block),
        // As after an access, which never fetches a block that is in the PLB.
        1 | 2 if !map.is_in_plb(of_map) => map.insert(of_map, &block, what % 6 == 1),
        3 => {
            let leaf = Leaf(u64::from(entries[0]) & ((1 << LEAF_LEVEL) - 1));
            let address = if entries[2] & 1 == 0 { of_data } else { of_map };
            map.set(address, Mapping { leaf, live: entries[1] & 1 == 1 })
        }
        4 => map
            .entries_of(of_map, &block)
            .map(|found| found.iter().filter_map(|(_, it)| *it).for_each(exists)),
        5 => {
            let range = of_data..(of_data + u64::from(entries[0])).min(DATA_BLOCKS);
            let missing = map.missing_to_forget(range.clone())?;
            map.forget(range.clone())?;
            assert!(missing.is_empty());
            range.for_each(|address| assert!(!may_be_live(map, address), "{address}"));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn exists(mapping: Mapping) {
    assert!(mapping.leaf.0 < 1 << LEAF_LEVEL);
}

fn check(map: &Map, address: u64) {
    match map.get(address) {
        Ok(Position::Known(mapping)) => mapping.into_iter().for_each(exists),
        Ok(Position::Missing(block)) => {
            assert!((MAP_START..BLOCKS).contains(&block) && !map.is_in_plb(block));
            assert!(matches!(map.get(block), Ok(Position::Known(_))));
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt),
    }
}

/// Whether a block may have been written, according to the client's map.
fn may_be_live(map: &Map, address: u64) -> bool {
    match map.get(address) {
        Ok(Position::Known(mapping)) => mapping.is_some_and(|mapping| mapping.live),
        Ok(Position::Missing(block)) => may_be_live(map, block),
        // A corrupt map answers no query for this block.
        Err(_) => false,
    }
}
