//! What servers see of an array whose position map is in smaller trees on them.

use std::collections::{HashMap, HashSet};

use oblivio_core::durable::{EraStart, Want};
use oblivio_core::scheme::Op;
use oblivio_shares::field::Gf256;
use oblivio_shares::message::{Point, Request};
use oblivio_shares::sharing::{Share, recover};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::owner::{BLOCK_BYTES, BLOCKS, MARK_PAGES_BYTES, Owner};
use crate::parties;

fn owner(seed: u64) -> Owner {
    Owner::in_trees(parties(3, 1), seed)
}

/// All trees, the last of the map first, and of each the same three things; and each is evicted after as many accesses.
#[test]
fn servers_are_asked_the_same_whatever_the_owner_does() {
    let seen = |workload: Workload<'_>| {
        let mut owner = owner(13);
        (0..9).for_each(|i| owner.write(i, 1).unwrap());
        let before = owner.servers.world().seen[2].len();
        (0..40).for_each(|i| workload(&mut owner, i));
        let world = owner.servers.world();
        let requests = world.seen[2][before..].iter().zip(&world.seen_in[2][before..]);
        let shapes = requests.map(|(it, tree)| (what(it), *tree, it.encode().len()));
        shapes.collect::<Vec<_>>()
    };
    let written = seen(&|owner, i| owner.write(i % 9, 7).unwrap());
    let one_access: Vec<_> = written[..9].iter().map(|(what, tree, _)| (*what, *tree)).collect();
    let of_each = ["metadata", "select", "write"];
    let expected = [2, 1, 0].into_iter().flat_map(|tree| of_each.map(|what| (what, tree)));
    assert_eq!(one_access, expected.collect::<Vec<_>>());
    assert_eq!(written.iter().filter(|(what, _, _)| *what == "evict").count(), 3 * 10);
    for other in [
        seen(&|owner, _| owner.read(3).unwrap()),
        seen(&|owner, i| owner.read(10 + i).unwrap()),
        seen(&|owner, _| owner.access(&[(Want::Nothing, None)]).unwrap()),
        seen(&|owner, i| {
            owner.forget(i % 9);
            owner.read(i % 9).unwrap();
        }),
    ] {
        assert_eq!(other, written);
    }
}

/// What the owner does, time and again.
type Workload<'w> = &'w dyn Fn(&mut Owner, u64);

fn what(request: &Request) -> &'static str {
    match request {
        Request::Metadata { .. } => "metadata",
        Request::Select { .. } => "select",
        Request::Write { .. } => "write",
        Request::Evict { .. } => "evict",
        _ => "more",
    }
}

/// What is shown for a block that is nowhere, and for none, is drawn as for any other: every leaf comes.
#[test]
fn leaves_are_uniform_in_every_tree_whatever_the_owner_does() {
    let workloads: [Workload<'_>; 3] = [
        &|owner, _| owner.read(3).unwrap(),
        &|owner, _| owner.access(&[(Want::Nothing, None)]).unwrap(),
        &|owner, i| owner.write(i % BLOCKS, 7).unwrap(),
    ];
    for (seed, workload) in (20..).zip(workloads) {
        let mut owner = owner(seed);
        (0..480).for_each(|i| workload(&mut owner, i));
        let world = owner.servers.world();
        for tree in 0..3 {
            let leaves =
                world.seen[0].iter().zip(&world.seen_in[0]).filter_map(|(it, of)| match it {
                    Request::Select { select, .. } if *of == tree => Some(select.leaf.0),
                    _ => None,
                });
            let mut counts = std::collections::BTreeMap::<u64, f64>::new();
            leaves.for_each(|leaf| *counts.entry(leaf).or_default() += 1.0);
            // 16 leaves of the data, 4 and 2 of the map.
            let all = [16, 4, 2][usize::from(tree)];
            let mean = 480.0 / all as f64;
            let apart: f64 = counts.values().map(|count| (count - mean).powi(2) / mean).sum();
            assert_eq!(counts.len(), all);
            assert!(apart < 45.0, "{tree}: {counts:?}");
        }
    }
}

/// The path of the query is the one that was asked about before it.
#[test]
fn an_access_shows_one_path_of_each_tree() {
    let mut owner = owner(14);
    (0..50).for_each(|i| owner.write(i * 7 % BLOCKS, 1).unwrap());
    let world = owner.servers.world();
    for seen in &world.seen {
        for pair in seen.windows(2) {
            if let [Request::Metadata { at: before, leaf }, Request::Select { at, select }] = pair {
                assert_eq!((before, *leaf), (at, select.leaf));
            }
        }
    }
}

/// What servers recover together that are more than may collude: which block is which, but not where on the disk it is.
#[test]
fn servers_that_recover_what_slots_say_read_no_addresses() {
    let mut owner = owner(21);
    let accessed: Vec<_> = (0..BLOCKS).chain(0..BLOCKS).collect();
    for address in &accessed {
        owner.read(*address).unwrap();
    }
    let world = owner.servers.world();
    for tree in 0..3 {
        let written = [0, 2].map(|server| {
            let requests = world.seen[server].iter().zip(&world.seen_in[server]);
            let (mut slot_bytes, mut written) = (0, Vec::new());
            for (request, _) in requests.filter(|(_, of)| **of == tree) {
                match request {
                    Request::Setup(setup) => slot_bytes = setup.block_bytes,
                    Request::Write { block, .. } => {
                        written.push(block.clone().into_elements::<Gf256>(slot_bytes).unwrap());
                    }
                    _ => (),
                }
            }
            written
        });
        let labels = written[0].iter().zip(&written[1]).map(|(one, three)| {
            let slot = recover::<Gf256>(&[1, 3], &[one, three]).unwrap();
            u64::from_le_bytes([slot[0], slot[1], slot[2], 0, 0, 0, 0, 0])
        });
        let labels: Vec<_> = labels.collect();
        assert_eq!(labels.len(), accessed.len());
        // Of each tree, four blocks are told of by one of the next.
        let addresses = accessed.iter().map(|address| address >> (2 * tree));
        let mut of_address = HashMap::new();
        for (address, label) in addresses.zip(&labels) {
            assert_eq!(*of_address.entry(address).or_insert(*label), *label);
        }
        assert_eq!(of_address.values().collect::<HashSet<_>>().len(), of_address.len());
        let said = of_address.iter().filter(|(address, label)| address.abs_diff(**label) < 2);
        assert_eq!(said.count(), 0, "tree {tree}");
    }
}

/// All that an access sends is sent again as it was, to the last byte, if the access was under way when the client stopped: else a mark would be made of two queries.
#[test]
fn what_is_done_again_is_sent_again_as_it_was() {
    let mut owner = owner(15);
    let mut choices = StdRng::seed_from_u64(16);
    let mut again = 0;
    for _ in 0..80 {
        let at = owner.servers.world().asked + choices.random_range(1..10);
        owner.servers.world().stop = Some((at, vec![choices.random(), true, choices.random()]));
        let _ = owner.write(choices.random_range(0..BLOCKS), choices.random());
        owner.servers.connect();
        owner.reopen().unwrap();
    }
    let world = owner.servers.world();
    for (seen, seen_in) in world.seen.iter().zip(&world.seen_in) {
        let mut first = HashMap::<(u8, Point, bool), &Request>::new();
        for (request, tree) in seen.iter().zip(seen_in) {
            let key = match request {
                Request::Select { at, .. } => (*tree, *at, false),
                Request::Write { at, .. } => (*tree, *at, true),
                _ => continue,
            };
            match first.get(&key) {
                Some(before) => {
                    again += 1;
                    assert_eq!(*before, request);
                }
                None => drop(first.insert(key, request)),
            }
        }
    }
    assert!(again > 200, "{again}");
}

#[test]
fn copies_of_a_client_that_go_on_differently_share_differently() {
    let mut owner = owner(17);
    (0..9).for_each(|i| owner.write(i, 1).unwrap());
    owner.checkpoint().unwrap();
    let query = |seed: u64| {
        let mut coins = StdRng::seed_from_u64(seed);
        let (mut array, _) = owner.restored();
        let before = owner.servers.world().seen[0].len();
        array.begin_era(EraStart::Opening, &mut coins);
        array.check_storage().unwrap();
        let plan = array.plan(&[Want::Block(1)], &[], &mut coins).unwrap();
        // It is cut off by the first query: the next copy finds servers as this one did.
        let at = owner.servers.world().asked + 2;
        owner.servers.world().stop = Some((at, vec![true; 3]));
        array.carry_out(&plan, &mut [Op::Write(&[7; BLOCK_BYTES])]).unwrap_err();
        owner.servers.connect();
        owner.servers.world().seen[0][before..].last().cloned().unwrap()
    };
    let [one, other] = [query(1), query(2)];
    let (Request::Select { select: one, .. }, Request::Select { select: other, .. }) = (one, other)
    else {
        panic!("queries are last");
    };
    assert_eq!(one.leaf, other.leaf);
    assert_ne!(one.query, other.query);
}

/// What is shown for a block that is nowhere yet is not where it goes.
#[test]
fn the_first_path_of_a_block_says_nothing_of_its_second() {
    let mut owner = owner(24);
    let path = |owner: &mut Owner, block| {
        let before = owner.servers.world().seen[0].len();
        owner.read(block).unwrap();
        let world = owner.servers.world();
        let mut seen = world.seen[0][before..].iter().zip(&world.seen_in[0][before..]);
        seen.find_map(|(it, tree)| match it {
            Request::Select { select, .. } if *tree == 0 => Some(select.leaf),
            _ => None,
        })
    };
    let again = (0..BLOCKS).filter(|block| path(&mut owner, *block) == path(&mut owner, *block));
    // One in 16, by chance.
    let again = again.count() as u64;
    assert!(again < BLOCKS / 4, "{again} of {BLOCKS}");
}

/// The shares of all matrices, of each server in their order, for the evictions that come after one access, if this changes something before it.
fn evictions(changes: impl FnOnce(&mut Owner)) -> Vec<Vec<Share<u8>>> {
    let mut owner = owner(32);
    // After the next access, all trees are evicted. Block 1 lies in the root twice, and one of them is taken.
    (0..9).for_each(|i| owner.write(i, 1).unwrap());
    (0..2).for_each(|_| owner.write(1, 2).unwrap());
    let before = owner.servers.world().seen[0].len();
    changes(&mut owner);
    owner.access(&[(Want::Nothing, None)]).unwrap();
    let world = owner.servers.world();
    let shares = world.seen.iter().map(|seen| {
        let matrices = seen[before..].iter().filter_map(|request| match request {
            Request::Evict { evict, .. } => Some(evict.matrices.clone()),
            _ => None,
        });
        matrices.flatten().collect()
    });
    shares.collect()
}

/// From which seeds.
fn seeds(shares: &[Vec<Share<u8>>]) -> HashSet<[u8; 32]> {
    let seeds = shares.iter().flatten().filter_map(|share| match share {
        Share::Drawn(seed) => Some(*seed),
        Share::Computed(_) => None,
    });
    seeds.collect()
}

/// What an eviction moves follows from what servers say. Two copies of a client to which they say different things have different matrices: from one seed, shares would show by how much.
#[test]
fn matrices_that_differ_are_shared_from_other_coins_though_the_plans_are_the_same() {
    let usual = evictions(|_| ());
    assert_eq!(usual, evictions(|_| ()), "the same is shared alike");
    // One of each matrix: trees have leaves on levels 4, 2 and 1.
    assert_eq!(seeds(&usual).len(), 5 + 3 + 2);
    // What was taken is there again.
    let all_count = evictions(|owner| {
        let disks = owner.servers.world().disks.clone();
        disks.iter().for_each(|disk| {
            let pages_at = disk.content("root").len() - MARK_PAGES_BYTES;
            disk.overwrite("root", pages_at, &[0; MARK_PAGES_BYTES]);
        });
    });
    let usual_of_data: Vec<_> = usual.iter().map(|shares| shares[..5].to_vec()).collect();
    assert!(usual_of_data.iter().zip(&all_count).all(|(one, other)| one[..] != other[..5]));
    assert!(seeds(&usual).is_disjoint(&seeds(&all_count)));
}

/// Whether two copies move the same is nobody's business either.
#[test]
fn copies_with_other_plans_share_the_same_matrices_differently() {
    let of = |seed| evictions(move |owner| owner.coins = StdRng::seed_from_u64(seed));
    let [one, same, other] = [40, 40, 41].map(|seed| seeds(&of(seed)));
    assert_eq!(one, same);
    assert!(one.is_disjoint(&other));
}
