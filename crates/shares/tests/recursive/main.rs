//! The scheme with its position map in smaller trees: what is read is what was written, and what servers see says nothing.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod refusals;
mod view;
mod world;

use oblivio_shares::field::{Field, Gf256, Mersenne61};
use oblivio_shares::recursive::{Levels, MapShape};
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::Preset;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use world::World;

/// Large enough that no bucket overflows in any of these tests, and small enough that they are over soon.
const PRESET: Preset = Preset { slots: 32, accesses: 8 };

const BLOCK: usize = 5;

fn levels<F: Field>(blocks: u64, preset: Preset, block_bytes: usize, entries: u64) -> Levels {
    let shape = MapShape { block_bytes, client_entries_max: entries };
    Levels::new::<F>(blocks, BLOCK, preset, shape).unwrap()
}

fn reads_what_was_written<F: Field>(parties: Parties, levels: Levels, accesses: usize) {
    let blocks = levels.iter().next().unwrap().blocks as usize;
    let trees = levels.count();
    let mut world = World::<F>::new(parties, levels, 1);
    let mut expected = vec![vec![F::ZERO; BLOCK]; blocks];
    let mut choices = StdRng::seed_from_u64(2);
    let mut access = |address: usize, data: Option<Vec<F::Element>>| {
        let found = world.access(address, data.as_deref());
        assert!(found == expected[address], "block {address}");
        if let Some(data) = data {
            expected[address] = data;
        }
        (world.client.evictions() as usize, world.servers.trips)
    };
    for n in 1..=accesses {
        let address = choices.random_range(0..blocks);
        let mut data = vec![F::ZERO; BLOCK];
        F::draw(&mut choices, &mut data);
        let (evictions, trips) = access(address, choices.random::<bool>().then_some(data));
        assert_eq!(evictions, n / usize::from(PRESET.accesses));
        assert_eq!(trips, n * (2 * trees + 1) + evictions, "after {n} accesses");
    }
    for address in 0..blocks {
        access(address, None);
    }
}

#[test]
fn what_is_read_is_what_was_written_over_both_fields_and_any_number_of_servers() {
    for (servers, colluding) in [(3, 1), (5, 1), (5, 2), (7, 3)] {
        let parties = Parties::new(servers, colluding).unwrap();
        let levels = |bytes, entries| {
            [
                levels::<Gf256>(100, PRESET, bytes, entries),
                levels::<Mersenne61>(100, PRESET, bytes, entries),
            ]
        };
        for (bytes, entries, trees) in [(4, 1, 5), (9, 16, 2), (4, 100, 1)] {
            let [of_bytes, of_numbers] = levels(bytes, entries);
            assert_eq!([of_bytes.count(), of_numbers.count()], [trees; 2]);
            reads_what_was_written::<Gf256>(parties, of_bytes, 200);
            reads_what_was_written::<Mersenne61>(parties, of_numbers, 60);
        }
    }
}

/// Something that the owner does: to which block, and what is written to it.
fn accesses() -> impl Strategy<Value = Vec<(usize, Option<u8>)>> {
    prop::collection::vec((any::<usize>(), any::<Option<u8>>()), 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the shape: the slow reference is a list of blocks.
    #[test]
    fn any_accesses_find_what_a_list_of_blocks_would_hold(
        blocks in 1u64..300,
        block_bytes in 4usize..40,
        entries in 1u64..20,
        preset in prop::sample::select(vec![PRESET, Preset { slots: 24, accesses: 3 }, Preset { slots: 16, accesses: 1 }]),
        accesses in accesses(),
        seed in any::<u64>(),
    ) {
        let levels = levels::<Gf256>(blocks, preset, block_bytes, entries);
        let mut world = World::<Gf256>::new(Parties::new(3, 1).unwrap(), levels, seed);
        let mut expected = vec![[0; BLOCK]; blocks as usize];
        for (address, data) in accesses {
            // Half of them are for few blocks, so that these come again soon.
            let address = if address % 2 == 0 { address % 3 } else { address } % blocks as usize;
            let data = data.map(|byte| [byte; BLOCK]);
            let found = world.access(address, data.as_ref().map(|data| &data[..]));
            prop_assert_eq!(&found[..], &expected[address][..]);
            expected[address] = data.unwrap_or(expected[address]);
        }
    }
}
