//! Tests of the whole scheme, with all servers in one process: reads return the contents last
//! written, and the view of *t* servers reveals nothing.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod coins;
mod epochs;
mod refusals;
mod view;
mod world;

use oblivio_shares::field::{Field, Gf256, Mersenne61};
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::{Preset, Tree};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use world::World;

/// The shape of buckets: large enough that no bucket overflows in these tests, and small enough for
/// a short running time.
const PRESET: Preset = Preset { slots: 24, accesses: 8 };

fn reads_what_was_written<F: Field>(parties: Parties, height: u8, accesses: usize) {
    let tree = Tree::new(height, PRESET).unwrap();
    let blocks = tree.blocks_max() as usize;
    let mut world = World::<F>::new(parties, tree, blocks, 5, 1);
    let mut expected = vec![vec![F::ZERO; 5]; blocks];
    let mut choices = StdRng::seed_from_u64(2);
    for _ in 0..accesses {
        let address = choices.random_range(0..blocks);
        let mut data = vec![F::ZERO; 5];
        F::draw(&mut choices, &mut data);
        let data = choices.random::<bool>().then_some(data);
        let found = world.access(address, data.as_deref());
        assert!(found == expected[address], "block {address}");
        if let Some(data) = data {
            expected[address] = data;
        }
    }
    assert_eq!(world.client.evictions() as usize, accesses / usize::from(PRESET.accesses));
    for (address, expected) in expected.iter().enumerate() {
        assert!(world.access(address, None) == *expected, "block {address}");
    }
}

#[test]
fn what_is_read_is_what_was_written_over_both_fields_and_any_number_of_servers() {
    for (servers, colluding) in [(3, 1), (5, 1), (5, 2), (7, 3)] {
        let parties = Parties::new(servers, colluding).unwrap();
        reads_what_was_written::<Gf256>(parties, 3, 400);
        reads_what_was_written::<Mersenne61>(parties, 3, 200);
    }
    reads_what_was_written::<Gf256>(Parties::new(3, 1).unwrap(), 1, 400);
    reads_what_was_written::<Gf256>(Parties::new(3, 1).unwrap(), 6, 2_000);
}

#[test]
fn an_eviction_ahead_of_its_time_moves_what_is_there() {
    let tree = Tree::new(3, PRESET).unwrap();
    let mut world = World::<Gf256>::new(Parties::new(3, 1).unwrap(), tree, 30, 2, 3);
    for address in 0..30usize {
        world.access(address, Some(&[address as u8 + 1, 7]));
        if address % 3 == 0 {
            world.evict();
        }
    }
    for address in 0..30 {
        assert_eq!(world.access(address, None), [address as u8 + 1, 7]);
    }
}

#[test]
fn what_was_put_into_a_tree_is_there() {
    for (height, blocks) in [(1, 16), (3, 50), (3, 64)] {
        let tree = Tree::new(height, PRESET).unwrap();
        let mut world = World::<Gf256>::new(Parties::new(3, 1).unwrap(), tree, blocks, 2, 5);
        world.load(|address, block| block.copy_from_slice(&[address as u8, 7]));
        for round in 0..3 {
            for address in 0..blocks {
                let found = world.access(address, Some(&[address as u8, round]));
                let before = if round == 0 { 7 } else { round - 1 };
                assert_eq!(found, [address as u8, before], "round {round}");
            }
        }
    }
}

/// Any 2t + 1 servers may answer, and any 2t + 1 may deal.
#[test]
fn any_servers_do_if_they_are_enough() {
    let tree = Tree::new(2, PRESET).unwrap();
    let mut world = World::<Gf256>::new(Parties::new(5, 1).unwrap(), tree, 16, 3, 4);
    for round in 0..60u8 {
        let servers = [[1, 2, 3], [5, 4, 1], [2, 4, 5], [3, 1, 5]][usize::from(round) % 4];
        (world.answering, world.dealing) = (servers.to_vec(), servers.to_vec());
        let address = usize::from(round) % 16;
        let before = if round < 16 { [0; 3] } else { [round - 16; 3] };
        assert_eq!(world.access(address, Some(&[round; 3])), before);
    }
}
