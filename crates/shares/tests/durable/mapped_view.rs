//! Tests that the servers' view of an array does not depend on the workload, if the position map is
//! in trees.

use std::collections::{HashMap, HashSet};

use oblivio_core::durable::{EraStart, Want};
use oblivio_core::scheme::Op;
use oblivio_shares::field::Gf256;
use oblivio_shares::message::{Request, Setup, TreePoint};
use oblivio_shares::sharing::{Parties, Share, recover};
use oblivio_testkit::statistics::{
    Verdicts, histogram, homogeneity, serial_correlation, uniformity, uniformity_of_pairs,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::owner::{BLOCK_BYTES, BLOCKS, MARK_PAGES_BYTES, Owner, PRESET};
use crate::parties;

fn owner(seed: u64) -> Owner {
    Owner::in_trees(parties(3, 1), seed)
}

/// Servers receive the same requests for any workload. Each access makes the same three requests in
/// each tree, from the last map tree to the data. All trees have the same eviction period.
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
        seen(&|owner, _| owner.access(&[(Want::Dummy, None)]).unwrap()),
        seen(&|owner, i| {
            owner.forget(i % 9);
            owner.read(i % 9).unwrap();
        }),
    ] {
        assert_eq!(other, written);
    }
}

/// A workload: an action that the owner repeats, given the number of the repetition.
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

/// The numbers of leaves of tree 0 (the data), tree 1 (its map) and tree 2 (the map of tree 1).
const LEAVES: [u64; 3] = [16, 4, 2];

/// An action that the owner repeats.
type Action = fn(&mut Owner, u64);

/// The workloads, each with its name.
const WORKLOADS: [(&str, Action); 6] = [
    ("one block is read", |owner, _| owner.read(3).unwrap()),
    ("one block is written", |owner, i| owner.write(3, i as u8).unwrap()),
    ("no block is accessed", |owner, _| owner.access(&[(Want::Dummy, None)]).unwrap()),
    ("blocks of one map block are read in turn", |owner, i| owner.read(i % 4).unwrap()),
    // Data has a pattern that shares must not show.
    ("all blocks are written in turn", |owner, i| owner.write(i % BLOCKS, 0x55).unwrap()),
    ("blocks are written and read by chance", |owner, i| {
        let block = i * i * 7 % BLOCKS;
        if i % 3 == 0 { owner.write(block, 0x55) } else { owner.read(block) }.unwrap();
    }),
];

/// Creates an owner that has made `accesses` accesses.
fn after(workload: Action, accesses: u64, parties: Parties, seed: u64) -> Owner {
    let mut owner = Owner::in_trees(parties, seed);
    (0..accesses).for_each(|i| workload(&mut owner, i));
    owner
}

/// The requests to a server for one tree, in order.
fn seen_of(owner: &Owner, server: usize, tree: usize) -> Vec<Request> {
    let world = owner.servers.world();
    let requests = world.seen[server].iter().zip(&world.seen_in[server]);
    let of_tree = requests.filter(|(_, of)| usize::from(**of) == tree);
    of_tree.map(|(request, _)| request.clone()).collect()
}

/// The paths that accesses show, for each tree, in order.
fn paths(owner: &Owner) -> [Vec<u64>; 3] {
    let leaf = |request: Request| match request {
        Request::Select { select, .. } => Some(select.leaf.0),
        _ => None,
    };
    [0, 1, 2].map(|tree| seen_of(owner, 0, tree).into_iter().filter_map(leaf).collect())
}

/// Leaves are uniform in every tree, for any workload. A dummy access, and an access to a block
/// without a position, draw their path like any other access. Paths in different trees are
/// independent.
#[test]
fn leaves_are_uniform_in_every_tree_whatever_the_owner_does() {
    let mut verdicts = Verdicts::new(1e-6);
    let mut all = Vec::new();
    for ((name, workload), seed) in WORKLOADS.into_iter().zip(20..) {
        let paths = paths(&after(workload, 1001, parties(3, 1), seed));
        for (tree, (paths, leaves)) in paths.iter().zip(LEAVES).enumerate() {
            let name = format!("tree {tree}, {name}");
            let counts = histogram(paths.clone(), leaves, leaves);
            verdicts.add(format!("paths, {name}"), uniformity(&counts));
            verdicts.add(format!("consecutive, {name}"), serial_correlation(paths));
            // Compare the upper levels of two consecutive paths, and the lower levels.
            let few = leaves.min(4);
            for part in [|leaf, few, _| leaf % few, |leaf: u64, few, leaves| leaf / (leaves / few)]
            {
                let pairs = paths.as_chunks::<2>().0.iter();
                let pairs = pairs.map(|[a, b]| (part(*a, few, leaves), part(*b, few, leaves)));
                verdicts.add(format!("pairs, {name}"), uniformity_of_pairs(pairs, few, few));
            }
        }
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            // Compare the paths of one access in two trees, and of one access and the next, at both
            // ends of the path.
            let upper = |leaf: u64, tree: usize| leaf / (LEAVES[tree] / 2);
            for later in [0, 1] {
                let both = || paths[one].iter().zip(&paths[other][later..]);
                let name = format!("trees {one} and {other}, {later} later, {name}");
                let lower = both().map(|(a, b)| (a % 2, b % 2));
                verdicts.add(format!("{name}, below"), uniformity_of_pairs(lower, 2, 2));
                let above = both().map(|(a, b)| (upper(*a, one), upper(*b, other)));
                verdicts.add(format!("{name}, above"), uniformity_of_pairs(above, 2, 2));
                let across = both().map(|(a, b)| (a % 2, upper(*b, other)));
                verdicts.add(format!("{name}, across"), uniformity_of_pairs(across, 2, 2));
            }
        }
        all.push((name, paths));
    }
    for two in all.windows(2) {
        for (tree, leaves) in LEAVES.into_iter().enumerate() {
            let [one, other] = [0, 1].map(|i| histogram(two[i].1[tree].clone(), leaves, leaves));
            let name = format!("tree {tree}, {} and {}", two[0].0, two[1].0);
            verdicts.add(name, homogeneity(&one, &other));
        }
    }
    verdicts.conclude();
}

/// The first access to a block shows a random path in every tree. No path follows from the block's
/// address.
#[test]
fn a_block_that_was_never_accessed_is_looked_for_anywhere() {
    let (mut first, mut all) = ([(); 3].map(|()| Vec::new()), [(); 3].map(|()| Vec::new()));
    for seed in 0..24 {
        let owner = after(|owner, i| owner.read(i).unwrap(), BLOCKS, parties(3, 1), 100 + seed);
        for (tree, paths) in paths(&owner).iter().enumerate() {
            // Four blocks of a tree share a map block, and only the first access finds it without a
            // position.
            let firsts = paths.iter().step_by(1 << (2 * tree)).copied();
            first[tree].extend(
                firsts.clone().zip(0..).map(|(leaf, block): (u64, u64)| (block % 2, leaf % 2)),
            );
            all[tree].extend(firsts);
        }
    }
    let mut verdicts = Verdicts::new(1e-6);
    for (tree, leaves) in LEAVES.into_iter().enumerate() {
        // With two leaves an exactly even split would look too uniform, so the number is odd.
        let odd = all[tree].len() - 1;
        let counts = histogram(all[tree][..odd].iter().copied(), leaves, leaves);
        verdicts.add(format!("tree {tree}"), uniformity(&counts));
        let pairs = first[tree][..odd].iter().copied();
        verdicts.add(format!("blocks of tree {tree}"), uniformity_of_pairs(pairs, 2, 2));
    }
    verdicts.conclude();
}

/// An access shows one path of each tree: the query is for the path whose metadata was read before.
/// Before an eviction, the client reads the metadata of the two paths that follow from the number
/// of evictions.
#[test]
fn an_access_shows_one_path_of_each_tree() {
    for ((name, workload), seed) in WORKLOADS.into_iter().zip(40..) {
        let owner = after(workload, 40, parties(3, 1), seed);
        for (server, tree) in (0..3).flat_map(|server| (0..3).map(move |tree| (server, tree))) {
            let (mut asked, mut evictions, mut shape) = (Vec::new(), 0, None);
            for request in seen_of(&owner, server, tree) {
                match request {
                    Request::Setup(setup) => shape = Some(setup.tree),
                    Request::Metadata { at, leaf } => asked.push((at, leaf)),
                    Request::Select { at, select } => {
                        assert_eq!(asked, [(at, select.leaf)], "{name}");
                        asked.clear();
                    }
                    Request::Evict { evict, .. } => {
                        let tree = shape.unwrap();
                        let evicted = tree.evicted(evictions);
                        let leaves = asked.iter().map(|(_, leaf)| *leaf);
                        assert!(leaves.eq([evicted, tree.sibling_leaf(evicted)]), "{name}");
                        assert_eq!(evict.number, evictions);
                        asked.clear();
                        evictions += 1;
                    }
                    _ => (),
                }
            }
            assert_eq!(evictions, 40 / u64::from(PRESET.accesses));
        }
    }
}

/// The kind of data in a message that is sent as shares.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Queries,
    Slots,
    Matrices,
}

/// All kinds of shares, in all trees.
fn kinds() -> impl Iterator<Item = (Kind, usize)> {
    let kinds = [Kind::Queries, Kind::Slots, Kind::Matrices];
    (0..LEAVES.len()).flat_map(move |tree| kinds.map(|kind| (kind, tree)))
}

/// The elements of all shares of one kind in a tree, as a server expands them.
fn elements(owner: &Owner, server: usize, (kind, tree): (Kind, usize)) -> Vec<Vec<u8>> {
    let (mut shares, mut setup) = (Vec::new(), None);
    for request in seen_of(owner, server, tree) {
        match (kind, request) {
            (_, Request::Setup(it)) => setup = Some(it),
            (Kind::Queries, Request::Select { select, .. }) => shares.push(select.query),
            (Kind::Slots, Request::Write { block, .. }) => shares.push(block),
            (Kind::Matrices, Request::Evict { evict, .. }) => shares.extend(evict.matrices),
            _ => (),
        }
    }
    let Setup { tree, block_bytes, .. } = setup.unwrap();
    let elements = match kind {
        Kind::Queries => tree.path_slots(),
        Kind::Slots => block_bytes,
        Kind::Matrices => 2 * tree.slots() * tree.slots(),
    };
    shares.into_iter().map(|it| it.into_elements::<Gf256>(elements).unwrap()).collect()
}

/// Counts how often each byte value occurs, or each value of half a byte if there are few bytes.
fn counts(elements: impl IntoIterator<Item = u8>) -> Vec<u64> {
    let elements: Vec<_> = elements.into_iter().map(u64::from).collect();
    if elements.len() > 8000 {
        return histogram(elements, 256, 256);
    }
    histogram(elements.iter().flat_map(|it| [it >> 4, it & 15]), 16, 16)
}

/// The shares of each server are uniform, and so is the difference of two consecutive messages of a
/// kind. One polynomial for two messages would reveal the difference of their secrets. Metadata is
/// shared like the block, so each byte of the metadata is also tested separately.
#[test]
fn the_shares_of_one_server_are_uniform() {
    let mut verdicts = Verdicts::new(1e-6);
    for ((name, workload), seed) in WORKLOADS.into_iter().zip(50..) {
        let owner = after(workload, 170, parties(3, 1), seed);
        for (server, (kind, tree)) in (0..3).flat_map(|it| kinds().map(move |kind| (it, kind))) {
            let elements = elements(&owner, server, (kind, tree));
            let name = format!("{kind:?} of tree {tree}, server {}, {name}", server + 1);
            verdicts.add(name.clone(), uniformity(&counts(elements.iter().flatten().copied())));
            let differences = elements
                .windows(2)
                .flat_map(|two| two[0].iter().zip(&two[1]).map(|(a, b)| a ^ b).collect::<Vec<_>>());
            verdicts.add(format!("differences: {name}"), uniformity(&counts(differences)));
            if let Kind::Slots = kind {
                for place in 0..METADATA_BYTES {
                    let bytes = elements.iter().map(|slot| slot[place]);
                    verdicts.add(format!("byte {place}, {name}"), uniformity(&counts(bytes)));
                }
            }
        }
    }
    verdicts.conclude();
}

/// Bytes of metadata: three of a label, one of a leaf, and the mark.
const METADATA_BYTES: usize = 5;

/// The shares of *t* servers together are uniform: each pair of their shares is equally frequent.
#[test]
fn the_shares_of_as_many_servers_as_may_collude_are_uniform_together() {
    let mut verdicts = Verdicts::new(1e-6);
    for ((name, workload), seed) in WORKLOADS.into_iter().zip(60..) {
        let owner = after(workload, 36, parties(5, 2), seed);
        for (i, j) in (0..5).flat_map(|i| (0..i).map(move |j| (i, j))) {
            for (kind, tree) in kinds() {
                let [one, other] =
                    [i, j].map(|server| elements(&owner, server, (kind, tree)).into_iter());
                let pairs: Vec<_> = one.flatten().zip(other.flatten()).collect();
                let bins = if pairs.len() > 8000 { 16 } else { 4 };
                let pairs = pairs.into_iter().map(|(a, b)| (u64::from(a), u64::from(b)));
                let name = format!("{kind:?} of tree {tree}, {} and {}, {name}", j + 1, i + 1);
                verdicts.add(name, uniformity_of_pairs(pairs, 256, bins));
            }
        }
    }
    verdicts.conclude();
}

/// The tests of uniformity raise an alarm if one byte in ten is zero, and none otherwise.
#[test]
fn what_is_not_uniform_is_found() {
    let alarms = |p: f64| {
        let mut verdicts = Verdicts::new(1e-6);
        verdicts.add("found", p);
        !verdicts.alarms().is_empty()
    };
    let owner = after(WORKLOADS[4].1, 240, parties(3, 1), 70);
    let slots = elements(&owner, 0, (Kind::Slots, 1));
    let bytes: Vec<u8> = slots.iter().map(|slot| slot[0]).collect();
    assert!(!alarms(uniformity(&counts(bytes.iter().copied()))));
    let with_zeros = bytes.iter().zip(0..).map(|(it, n)| if n % 10 == 0 { 0 } else { *it });
    assert!(alarms(uniformity(&counts(with_zeros))));
}

/// Servers that recover the contents of slots learn no addresses. More than *t* colluding servers
/// learn the label of the block in a slot, but not the block's address on the disk.
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
        // Four blocks of each tree share a map block.
        let addresses = accessed.iter().map(|address| address >> (2 * tree));
        let mut of_address = HashMap::new();
        for (address, label) in addresses.zip(&labels) {
            assert_eq!(*of_address.entry(address).or_insert(*label), *label);
        }
        assert_eq!(of_address.values().collect::<HashSet<_>>().len(), of_address.len());
        let readable = of_address.iter().filter(|(address, label)| address.abs_diff(**label) < 2);
        assert_eq!(readable.count(), 0, "tree {tree}");
    }
}

/// A repeated access sends the same messages, byte for byte. Otherwise a mark would be computed
/// from two queries.
#[test]
fn a_repeated_access_sends_the_same_messages() {
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
        let mut first = HashMap::<(u8, TreePoint, bool), &Request>::new();
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
        // Stop the copy at its first query, so that the next copy finds the servers unchanged.
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

/// The path that is shown for a block without a position is independent of the path to which the
/// block is then mapped.
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
    // One in 16 is equal by chance.
    let again = again.count() as u64;
    assert!(again < BLOCKS / 4, "{again} of {BLOCKS}");
}

/// For each server, its shares of all matrices in the evictions after an access. `changes` runs
/// before the access.
fn evictions(changes: impl FnOnce(&mut Owner)) -> Vec<Vec<Share<u8>>> {
    let mut owner = owner(32);
    // After the next access, all trees are evicted. Block 1 is in the root twice, and one copy is
    // taken.
    (0..9).for_each(|i| owner.write(i, 1).unwrap());
    (0..2).for_each(|_| owner.write(1, 2).unwrap());
    let before = owner.servers.world().seen[0].len();
    changes(&mut owner);
    owner.access(&[(Want::Dummy, None)]).unwrap();
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

/// The seeds among these shares.
fn seeds(shares: &[Vec<Share<u8>>]) -> HashSet<[u8; 32]> {
    let seeds = shares.iter().flatten().filter_map(|share| match share {
        Share::Drawn(seed) => Some(*seed),
        Share::Computed(_) => None,
    });
    seeds.collect()
}

/// If matrices differ, they are shared from different coins, even if the plans are the same. The
/// moves of an eviction follow from the servers' metadata, so two copies of a client have different
/// matrices if they receive different metadata. Shares from one seed would reveal the difference of
/// the matrices.
#[test]
fn matrices_that_differ_are_shared_from_other_coins_though_the_plans_are_the_same() {
    let usual = evictions(|_| ());
    assert_eq!(usual, evictions(|_| ()), "equal matrices have equal shares");
    // One seed for each matrix: the trees have leaves on levels 4, 2 and 1.
    assert_eq!(seeds(&usual).len(), 5 + 3 + 2);
    // Without marks, taken blocks count again.
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

/// Two copies of a client with different plans secret-share the same matrices with different random
/// coins. Otherwise the servers would learn whether both copies move the same blocks.
#[test]
fn copies_with_other_plans_share_the_same_matrices_differently() {
    let of = |seed| evictions(move |owner| owner.coins = StdRng::seed_from_u64(seed));
    let [one, same, other] = [40, 40, 41].map(|seed| seeds(&of(seed)));
    assert_eq!(one, same);
    assert!(one.is_disjoint(&other));
}
