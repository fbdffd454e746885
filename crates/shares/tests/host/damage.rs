//! Tests that a server does not deal shares that were damaged on its disk.

use oblivio_core::StoreErrorKind;
use oblivio_shares::message::{Answer, Request};
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::{Preset, Tree};

use crate::world::World;

const PRESET: Preset = Preset { slots: 128, accesses: 4 };

/// The size of blocks. Blocks of this size are evicted in three pieces.
const BLOCK_BYTES: usize = 9_000;

/// Bytes of the root's file before the first slot.
const HEAD_BYTES: usize = 8192;

/// A server reports a damaged share and does not deal it. The test flips a bit in the root, or in
/// both places of a leaf: in a slot's first, middle or last piece, or in a checksum.
#[test]
fn a_server_reports_a_damaged_share_and_does_not_deal_it() {
    let tree = Tree::new(1, PRESET).unwrap();
    let mut world = World::new(Parties::new(3, 1).unwrap(), tree, 4, BLOCK_BYTES);
    while world.client.evictions() < 2 || !world.client.must_evict() {
        world.access_any();
    }
    let number = world.client.evictions();
    let evictions = world.client.evict(&mut world.coins).unwrap();
    let slots = usize::from(PRESET.slots);
    let root = HEAD_BYTES + number as usize % 2 * usize::from(PRESET.accesses) * BLOCK_BYTES;
    let leaf = tree.evicted(number).0 as usize;
    // Both places of the leaf, because it does not matter here which of them is current.
    let in_leaf = |at: usize| [2 * leaf, 2 * leaf + 1].map(|it| it * slots * BLOCK_BYTES + at);
    let sums = 2 * tree.leaves() as usize * slots * BLOCK_BYTES;
    for (name, at) in [
        ("root", vec![root]),
        ("root", vec![root + 4 * BLOCK_BYTES - 1]),
        ("root", vec![root + BLOCK_BYTES + 4096]),
        ("leaves", in_leaf(0).into()),
        ("leaves", in_leaf(slots * BLOCK_BYTES - 1).into()),
        ("leaves", in_leaf(77 * BLOCK_BYTES + 5_000).into()),
        ("leaves", [2 * leaf, 2 * leaf + 1].map(|it| sums + it * slots * 3 * 4).into()),
    ] {
        let disk = world.disks[0].clone();
        let flip = || at.iter().for_each(|at| disk.flips_a_bit_at(name, *at));
        flip();
        // With one level, the server reads all its data before it needs messages of others.
        let request = world.attempt(&evictions).swap_remove(0);
        match world.ask(0, &request) {
            Answer::Refused(it) if it.kind == StoreErrorKind::Damaged => {
                assert!(it.why.contains("does not match its checksum"), "{}", it.why);
            }
            other => panic!("{name} {at:?}: {other:?}"),
        }
        flip();
    }
    let requests = world.attempt(&evictions);
    assert_eq!(world.ask_all(requests), [const { Answer::Done }; 3]);
    (0..4).for_each(|block| drop(world.access(block, None)));
}

/// A server that lacks a block does not deal. Otherwise it would deal zeros instead of the block.
#[test]
fn a_server_that_lacks_a_block_does_not_deal() {
    let tree = Tree::new(1, PRESET).unwrap();
    let mut world = World::new(Parties::new(3, 1).unwrap(), tree, 4, 700);
    while world.client.evictions() < 2 || !world.client.must_evict() {
        world.access_any();
    }
    let evictions = world.client.evict(&mut world.coins).unwrap();
    let half = (evictions[0].number % 2) as usize * usize::from(PRESET.accesses);
    // Server 1 restarts after the client has asked for its point.
    world.disks[0].clone().flips_a_bit_at("root", HEAD_BYTES + (half + 3) * 700);
    world.restart(0);
    assert_eq!(world.epochs()[0].at.written, 3);
    let request = world.attempt(&evictions).swap_remove(0);
    match world.ask(0, &request) {
        Answer::Refused(it) => assert!(it.why.contains("write 3, not"), "{}", it.why),
        other => panic!("{other:?}"),
    }
}

/// Damage that an eviction copies is found when the copy is dealt. Server 5 copies its root in an
/// eviction, and deals the copy in a later one.
#[test]
fn damage_that_is_copied_is_found_when_it_is_dealt() {
    let preset = Preset { slots: 24, accesses: 4 };
    let tree = Tree::new(2, preset).unwrap();
    let mut world = World::new(Parties::new(5, 1).unwrap(), tree, 4, 700);
    while world.client.evictions() < 2 || !world.client.must_evict() {
        world.access_any();
    }
    let half = (world.client.evictions() % 2) as usize * usize::from(preset.accesses);
    world.disks[4].clone().flips_a_bit_at("root", HEAD_BYTES + half * 700);
    world.evict();
    while !world.client.must_evict() {
        world.access_any();
    }
    let evictions = world.client.evict(&mut world.coins).unwrap();
    let requests = world.attempt(&evictions).into_iter().map(|request| match request {
        Request::Evict { evict, .. } => Request::Evict { evict, dealers: vec![1, 2, 5] },
        other => other,
    });
    let answers = world.ask_all(requests.collect());
    match &answers[4] {
        Answer::Refused(it) => {
            assert!(it.why.contains("does not match its checksum"), "{}", it.why)
        }
        other => panic!("{other:?}"),
    }
}
