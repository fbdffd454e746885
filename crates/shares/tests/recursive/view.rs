//! What servers see, alone and *t* of them together: how many accesses there were, paths that are drawn in every tree, and shares that say nothing.

use std::collections::HashSet;

use oblivio_shares::field::{Field, Gf256};
use oblivio_shares::message::Evict;
use oblivio_shares::recursive::{Levels, MapShape};
use oblivio_shares::sharing::{Parties, Share};
use oblivio_shares::tree::Preset;
use oblivio_testkit::statistics::{
    Verdicts, histogram, homogeneity, serial_correlation, uniformity, uniformity_of_pairs,
};

use crate::world::{Kind, Message, Seen, World};

/// No bucket overflows, whatever is accessed.
const PRESET: Preset = Preset { slots: 24, accesses: 6 };
const BLOCKS: usize = 192;
const BLOCK_BYTES: usize = 48;
/// A map block tells of four blocks, or eight.
const MAP: MapShape = MapShape { block_bytes: 4, client_entries_max: 16 };
/// Leaves of the trees: of the data, of its map, and of that.
const LEAVES: [u64; 3] = [32, 8, 2];

/// What an owner does: a name, and of each access the block and whether it is written.
type Workload = (&'static str, fn(usize) -> (usize, bool));

/// Data has a pattern that shares must not show.
const DATA: [u8; BLOCK_BYTES] = [0x55; BLOCK_BYTES];

const WORKLOADS: [Workload; 6] = [
    ("nothing is ever written", |n| (n % 7, false)),
    ("one block is written", |_| (3, true)),
    ("one block is read", |n| (3, n == 0)),
    ("blocks of one map block are read in turn", |n| (n % 4, false)),
    ("all blocks are written in turn", |n| (n % BLOCKS, true)),
    ("blocks are written and read by chance", |n| (n * n * 7 % BLOCKS, n % 3 == 0)),
];

fn parties(servers: u8, colluding: u8) -> Parties {
    Parties::new(servers, colluding).unwrap()
}

fn levels() -> Levels {
    let levels = Levels::new::<Gf256>(BLOCKS as u64, BLOCK_BYTES, PRESET, MAP).unwrap();
    assert_eq!(levels.iter().map(|level| level.tree.leaves()).collect::<Vec<_>>(), LEAVES);
    levels
}

/// What each server got.
fn seen(parties: Parties, workload: Workload, accesses: usize, seed: u64) -> Vec<Vec<Seen<u8>>> {
    let mut world = World::<Gf256>::new(parties, levels(), seed);
    for n in 0..accesses {
        let (address, is_write) = workload.1(n);
        world.access(address, is_write.then_some(&DATA));
    }
    world.servers.seen
}

/// All of it but what is drawn: the path of an access, and elements. Of an eviction, the paths as well.
fn shape(seen: &Seen<u8>) -> String {
    let of_all =
        |shares: &[Share<u8>]| shares.iter().map(|it| format!("{it:?} ")).collect::<String>();
    let what = match &seen.message {
        Message::Metadata(_) => "metadata".to_owned(),
        Message::Select(select) => format!("select by {:?}", select.query),
        Message::Write(write) => format!("write {} {:?}", write.slot, write.block),
        Message::Evict(Evict { number, attempt, matrices }) => {
            format!("evict {number} {attempt} {}", of_all(matrices))
        }
    };
    format!("trip {}, tree {}: {what}", seen.trip, seen.tree)
}

#[test]
fn what_servers_get_has_one_shape_whatever_the_owner_does() {
    for parties in [parties(3, 1), parties(5, 2)] {
        let shapes = |workload| {
            let seen = seen(parties, workload, 60, 1);
            seen.iter().map(|seen| seen.iter().map(shape).collect()).collect::<Vec<Vec<_>>>()
        };
        let first = shapes(WORKLOADS[0]);
        // Of each tree three messages for an access, and three for an eviction.
        assert!(first.iter().all(|of_server| of_server.len() == 3 * 3 * (60 + 10)));
        for workload in &WORKLOADS[1..] {
            assert!(shapes(*workload) == first, "{}", workload.0);
        }
    }
}

#[test]
fn no_seed_comes_twice() {
    for parties in [parties(3, 1), parties(5, 2), parties(7, 3)] {
        let mut seeds = HashSet::new();
        for (workload, seed) in WORKLOADS.into_iter().zip(1..) {
            for seen in seen(parties, workload, 40, seed) {
                for share in seen.iter().flat_map(|seen| seen.shares().1) {
                    if let Share::Drawn(seed) = share {
                        assert!(seeds.insert(*seed), "{}", workload.0);
                    }
                }
            }
        }
        assert!(seeds.len() > 1000);
    }
}

/// The elements of all shares of some kind in a tree, as a server expands them. Those of each message stand for themselves.
fn elements(seen: &[Seen<u8>], kind: Kind, tree: usize) -> Vec<Vec<u8>> {
    let levels = levels();
    let of_kind = seen.iter().filter(|seen| seen.tree == tree && seen.shares().0 == kind);
    of_kind.flat_map(|seen| seen.expanded::<Gf256>(&levels)).collect()
}

const KINDS: [Kind; 3] = [Kind::Queries, Kind::Slots, Kind::Matrices];

fn kinds() -> impl Iterator<Item = (Kind, usize)> {
    (0..LEAVES.len()).flat_map(|tree| KINDS.map(|kind| (kind, tree)))
}

/// How often each byte comes; or, of few bytes, each half of one.
fn counts(elements: impl IntoIterator<Item = u8>) -> Vec<u64> {
    let elements: Vec<_> = elements.into_iter().map(u64::from).collect();
    if elements.len() > 8000 {
        return histogram(elements, 256, 256);
    }
    histogram(elements.iter().flat_map(|it| [it >> 4, it & 15]), 16, 16)
}

const ACCESSES: usize = 300;

/// What each server gets is uniform, and so is the difference of any two messages of a kind that follow each other: one polynomial for
/// both would show by how much their secrets differ.
#[test]
fn the_shares_of_one_server_are_uniform() {
    let mut verdicts = Verdicts::new(1e-6);
    for workload in WORKLOADS {
        for (i, seen) in seen(parties(3, 1), workload, ACCESSES, 5).iter().enumerate() {
            for (kind, tree) in kinds() {
                let elements = elements(seen, kind, tree);
                let name = format!("{kind:?} of tree {tree}, server {}, {}", i + 1, workload.0);
                verdicts.add(name.clone(), uniformity(&counts(elements.iter().flatten().copied())));
                let differences = elements.windows(2).flat_map(|two| {
                    two[0].iter().zip(&two[1]).map(|(a, b)| a ^ b).collect::<Vec<_>>()
                });
                verdicts.add(format!("differences: {name}"), uniformity(&counts(differences)));
            }
        }
    }
    verdicts.conclude();
}

/// What a slot says is shared as the block is: the first elements of each message alone are uniform.
#[test]
fn what_slots_say_is_uniform() {
    let mut verdicts = Verdicts::new(1e-6);
    for workload in WORKLOADS {
        for (i, seen) in seen(parties(3, 1), workload, ACCESSES, 9).iter().enumerate() {
            for (tree, level) in levels().iter().enumerate() {
                let slots = elements(seen, Kind::Slots, tree);
                for place in 0..level.metadata_elements {
                    let name =
                        format!("element {place} of tree {tree}, server {}, {}", i + 1, workload.0);
                    verdicts.add(name, uniformity(&counts(slots.iter().map(|slot| slot[place]))));
                }
            }
        }
    }
    verdicts.conclude();
}

/// Of *t* servers together: each pair of their shares comes as often as any other.
#[test]
fn the_shares_of_as_many_servers_as_may_collude_are_uniform_together() {
    let mut verdicts = Verdicts::new(1e-6);
    for workload in WORKLOADS {
        let seen = seen(parties(5, 2), workload, ACCESSES, 7);
        for (i, j) in (0..5).flat_map(|i| (0..i).map(move |j| (i, j))) {
            for (kind, tree) in kinds() {
                let [one, other] =
                    [i, j].map(|server| elements(&seen[server], kind, tree).into_iter().flatten());
                let pairs: Vec<_> =
                    one.zip(other).map(|(a, b)| (u64::from(a), u64::from(b))).collect();
                let name =
                    format!("{kind:?} of tree {tree}, {} and {}, {}", j + 1, i + 1, workload.0);
                let bins = if pairs.len() > 8000 { 16 } else { 4 };
                verdicts.add(name, uniformity_of_pairs(pairs, 256, bins));
            }
        }
    }
    verdicts.conclude();
}

/// The paths that are shown for accesses, of each tree in order.
fn paths(workload: Workload, accesses: usize, seed: u64) -> [Vec<u64>; 3] {
    let seen = seen(parties(3, 1), workload, accesses, seed);
    let of = |tree| {
        let leaf = |seen: &Seen<u8>| match &seen.message {
            Message::Select(select) if seen.tree == tree => Some(select.leaf.0),
            _ => None,
        };
        seen[0].iter().filter_map(leaf).collect()
    };
    [0, 1, 2].map(of)
}

#[test]
fn paths_are_drawn_in_every_tree_whatever_the_owner_does() {
    let mut verdicts = Verdicts::new(1e-6);
    let mut all = Vec::new();
    for workload in WORKLOADS {
        let paths = paths(workload, 1501, 8);
        for (tree, (paths, leaves)) in paths.iter().zip(LEAVES).enumerate() {
            let name = format!("tree {tree}, {}", workload.0);
            verdicts.add(
                format!("paths, {name}"),
                uniformity(&histogram(paths.clone(), leaves, leaves)),
            );
            verdicts.add(format!("one after the other, {name}"), serial_correlation(paths));
            // Where two that follow each other go on the upper levels, and where on the lower.
            let few = leaves.min(4);
            for bits in
                [|leaf: u64, few: u64, _| leaf % few, |leaf, few, leaves| leaf / (leaves / few)]
            {
                let pairs = paths.as_chunks::<2>().0.iter();
                let pairs = pairs.map(|[a, b]| (bits(*a, few, leaves), bits(*b, few, leaves)));
                verdicts.add(format!("pairs, {name}"), uniformity_of_pairs(pairs, few, few));
            }
        }
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            // Those of one access, and of one and the next, say nothing of each other, whether the lower or the upper end of a leaf is
            // looked at.
            let bins = 2;
            let upper = |leaf: u64, tree: usize| leaf / (LEAVES[tree] / bins);
            for later in [0, 1] {
                let both = || paths[one].iter().zip(&paths[other][later..]);
                let name = format!("trees {one} and {other}, {later} later, {}", workload.0);
                let lower = both().map(|(a, b)| (a % bins, b % bins));
                verdicts.add(format!("{name}, below"), uniformity_of_pairs(lower, bins, bins));
                let above = both().map(|(a, b)| (upper(*a, one), upper(*b, other)));
                verdicts.add(format!("{name}, above"), uniformity_of_pairs(above, bins, bins));
                let across = both().map(|(a, b)| (a % bins, upper(*b, other)));
                verdicts.add(format!("{name}, across"), uniformity_of_pairs(across, bins, bins));
            }
        }
        all.push((workload.0, paths));
    }
    verdicts.conclude();
    let mut verdicts = Verdicts::new(1e-6);
    for two in all.windows(2) {
        for (tree, leaves) in LEAVES.into_iter().enumerate() {
            let [one, other] = [0, 1].map(|i| histogram(two[i].1[tree].clone(), leaves, leaves));
            verdicts.add(
                format!("tree {tree}, {} and {}", two[0].0, two[1].0),
                homogeneity(&one, &other),
            );
        }
    }
    verdicts.conclude();
}

/// A path is shown once to say what is on it, and then to select from it: no other.
#[test]
fn the_path_of_metadata_is_that_of_the_query_after_it_and_those_of_evictions_are_counted() {
    let levels = levels();
    for workload in WORKLOADS {
        for seen in seen(parties(3, 1), workload, 100, 9) {
            let mut evictions = [0; 3];
            let mut asked: [Vec<u64>; 3] = Default::default();
            for Seen { tree, message, .. } in seen {
                match message {
                    Message::Metadata(leaf) => asked[tree].push(leaf.0),
                    Message::Select(select) => {
                        assert_eq!(asked[tree], [select.leaf.0], "{}", workload.0);
                        asked[tree].clear();
                    }
                    Message::Evict(evict) => {
                        let shape = levels.iter().nth(tree).unwrap().tree;
                        let evicted = shape.evicted(evictions[tree]);
                        assert_eq!(evict.number, evictions[tree]);
                        assert_eq!(asked[tree], [evicted.0, shape.beside(evicted).0]);
                        asked[tree].clear();
                        evictions[tree] += 1;
                    }
                    Message::Write(_) => (),
                }
            }
            assert_eq!(evictions, [16; 3]);
        }
    }
}

#[test]
fn a_block_that_was_never_accessed_is_looked_for_anywhere() {
    let mut verdicts = Verdicts::new(1e-6);
    for address in (0..BLOCKS).step_by(17) {
        let first = |seed: u64| {
            let mut world =
                World::<Gf256>::new(parties(3, 1), levels(), seed << 8 | address as u64);
            world.access(address, None);
            let leaf = |seen: &Seen<u8>| match &seen.message {
                Message::Select(select) => Some(select.leaf.0),
                _ => None,
            };
            world.servers.seen[0].iter().filter_map(leaf).collect::<Vec<_>>()
        };
        // Of two leaves, as many of the one as of the other are too even to be true: so the number is odd.
        let paths: Vec<_> = (0..671).map(first).collect();
        for (tree, leaves) in LEAVES.into_iter().enumerate() {
            // The last tree comes first.
            let of_tree = paths.iter().map(|paths| paths[LEAVES.len() - 1 - tree]);
            let name = format!("block {address}, tree {tree}");
            verdicts.add(name, uniformity(&histogram(of_tree, leaves, leaves)));
        }
    }
    verdicts.conclude();
}

/// The tests above find what they look for.
#[test]
fn what_is_not_uniform_is_found() {
    let alarms = |p: f64| {
        let mut verdicts = Verdicts::new(1e-6);
        verdicts.add("found", p);
        !verdicts.alarms().is_empty()
    };
    let seen = &seen(parties(3, 1), WORKLOADS[4], ACCESSES, 10)[0];
    let marks: Vec<u8> = elements(seen, Kind::Slots, 1).iter().map(|slot| slot[0]).collect();
    assert!(!alarms(uniformity(&counts(marks.iter().copied()))));
    let with_zeros =
        marks.iter().zip(0..).map(|(it, n)| if n % 10 == 0 { Gf256::ZERO } else { *it });
    assert!(alarms(uniformity(&counts(with_zeros))));
}
