//! Tests that the view of one server, or of *t* servers together, shows only the number of
//! accesses, random paths, and shares that reveal nothing.

use std::collections::HashSet;

use oblivio_core::Leaf;
use oblivio_shares::client::Client;
use oblivio_shares::field::{Field, Gf256};
use oblivio_shares::message::{DealtShares, Evict};
use oblivio_shares::multiplication::reduce;
use oblivio_shares::sharing::{Parties, Share};
use oblivio_shares::tree::{Preset, Tree};
use oblivio_testkit::statistics::{
    Verdicts, histogram, homogeneity, serial_correlation, uniformity, uniformity_of_pairs,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::world::{Kind, SentMessage, World};

/// The shape of buckets. No bucket overflows in these tests.
const PRESET: Preset = Preset { slots: 16, accesses: 5 };
const HEIGHT: u8 = 3;
const BLOCKS: usize = 20;
const BLOCK_BYTES: usize = 48;
const ACCESSES: usize = 300;

/// A workload: its name, and a function that returns, for each access, the block and whether the
/// access writes.
type Workload = (&'static str, fn(usize) -> (usize, bool));

/// The contents of every block: a repeated byte that shares must not show.
const DATA: [u8; BLOCK_BYTES] = [0x55; BLOCK_BYTES];

const WORKLOADS: [Workload; 5] = [
    ("nothing is ever written", |n| (n % 7, false)),
    ("one block is written", |_| (3, true)),
    ("one block is read", |n| (3, n == 0)),
    ("all blocks are written in turn", |n| (n % BLOCKS, true)),
    ("blocks are written and read by chance", |n| (n * n * 7 % BLOCKS, n % 3 == 0)),
];

fn parties(servers: u8, colluding: u8) -> Parties {
    Parties::new(servers, colluding).unwrap()
}

/// The messages that each server receives.
fn seen(
    parties: Parties,
    workload: Workload,
    accesses: usize,
    seed: u64,
) -> Vec<Vec<SentMessage<u8>>> {
    let tree = Tree::new(HEIGHT, PRESET).unwrap();
    let mut world = World::<Gf256>::new(parties, tree, BLOCKS, BLOCK_BYTES, seed).watched();
    for n in 0..accesses {
        let (address, is_write) = workload.1(n);
        world.access(address, is_write.then_some(&DATA));
    }
    world.seen.unwrap()
}

/// The facts of a message except random values: omits the path of an access, and the elements and
/// seeds of shares.
fn shape(seen: &SentMessage<u8>) -> String {
    let of_all =
        |shares: &[Share<u8>]| shares.iter().map(|it| format!("{it:?} ")).collect::<String>();
    match seen {
        SentMessage::Load(slots, share) => format!("load {slots:?} {share:?}"),
        SentMessage::Select(select) => format!("select by {:?}", select.query),
        SentMessage::Write(write) => format!("write {} {:?}", write.slot, write.block),
        SentMessage::Evict(Evict { number, attempt, matrices }) => {
            format!("evict {number} {attempt} {}", of_all(matrices))
        }
        SentMessage::Dealt(dealer, DealtShares { number, attempt, level, shares, .. }) => {
            format!("from {dealer} {number} {attempt} {level} {}", of_all(shares))
        }
    }
}

#[test]
fn what_servers_get_has_one_shape_whatever_the_owner_does() {
    for parties in [parties(3, 1), parties(5, 2)] {
        let shapes = |workload| {
            let seen = seen(parties, workload, 40, 1);
            seen.iter().map(|seen| seen.iter().map(shape).collect()).collect::<Vec<Vec<_>>>()
        };
        let first = shapes(WORKLOADS[0]);
        assert!(first.iter().all(|of_server| of_server.len() > 40));
        for workload in &WORKLOADS[1..] {
            assert!(shapes(*workload) == first, "{}", workload.0);
        }
    }
}

/// The messages that each server receives when data is loaded. Each leaf takes the same number of
/// messages.
fn loaded(fill: fn(usize, &mut [u8])) -> Vec<Vec<SentMessage<u8>>> {
    let tree = Tree::new(HEIGHT, PRESET).unwrap();
    let mut world = World::<Gf256>::new(parties(3, 1), tree, BLOCKS, BLOCK_BYTES, 11).watched();
    world.load(fill);
    world.seen.unwrap()
}

#[test]
fn what_is_put_into_a_tree_does_not_show() {
    let shapes = |fill| -> Vec<Vec<String>> {
        loaded(fill).iter().map(|seen| seen.iter().map(shape).collect()).collect()
    };
    let zeros = shapes(|_, _| ());
    assert!(zeros.iter().all(|of_server| of_server.len() == 2 << HEIGHT));
    assert!(zeros == shapes(|address, block| block.fill(address as u8)));
    let mut verdicts = Verdicts::new(1e-6);
    for (i, seen) in loaded(|_, block| block.fill(0x55)).iter().enumerate() {
        let elements = elements(seen, Kind::Leaves).into_iter().flatten();
        verdicts.add(format!("server {}", i + 1), uniformity(&counts(elements)));
    }
    verdicts.conclude();
}

#[test]
fn no_seed_comes_twice() {
    for parties in [parties(3, 1), parties(5, 2), parties(7, 3)] {
        let mut seeds = HashSet::new();
        for workload in WORKLOADS {
            let seed = seeds.len() as u64 + 1;
            for seen in seen(parties, workload, 40, seed) {
                for share in seen.iter().flat_map(|seen| seen.shares().1) {
                    if let Share::Drawn(seed) = share {
                        assert!(seeds.insert(*seed), "{}", workload.0);
                    }
                }
            }
        }
        assert!(seeds.len() > 500);
    }
}

/// The elements of all shares of one kind, as a server expands them, for each message separately.
fn elements(seen: &[SentMessage<u8>], kind: Kind) -> Vec<Vec<u8>> {
    let tree = Tree::new(HEIGHT, PRESET).unwrap();
    let of_kind = seen.iter().filter(|seen| seen.shares().0 == kind);
    of_kind.flat_map(|seen| seen.expanded::<Gf256>(tree, BLOCK_BYTES)).collect()
}

const KINDS: [Kind; 4] = [Kind::Queries, Kind::Blocks, Kind::Matrices, Kind::Dealt];

fn counts(elements: impl IntoIterator<Item = u8>) -> Vec<u64> {
    histogram(elements.into_iter().map(u64::from), 256, 256)
}

/// The shares of each server are uniform, and so is the difference of two consecutive messages of a
/// kind. One polynomial for two messages would reveal the difference of their secrets.
#[test]
fn the_shares_of_one_server_are_uniform() {
    let mut verdicts = Verdicts::new(1e-6);
    for workload in WORKLOADS {
        for (i, seen) in seen(parties(3, 1), workload, ACCESSES, 5).iter().enumerate() {
            for kind in KINDS {
                let elements = elements(seen, kind);
                let name = format!("{kind:?} of server {}, {}", i + 1, workload.0);
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

/// The shares that a server computes in a round are uniform again, so they reveal nothing about the
/// blocks.
#[test]
fn what_comes_of_a_round_is_uniform() {
    let mut verdicts = Verdicts::new(1e-6);
    let parties = parties(3, 1);
    for workload in WORKLOADS {
        for (i, seen) in seen(parties, workload, ACCESSES, 6).iter().enumerate() {
            let dealt: Vec<_> =
                seen.iter().filter(|it| matches!(it, SentMessage::Dealt(..))).collect();
            let made = dealt.chunks_exact(3).flat_map(|round| {
                let of_dealers: Vec<_> =
                    round.iter().map(|seen| elements(&[(*seen).clone()], Kind::Dealt)).collect();
                let buckets = 0..of_dealers[0].len();
                let bucket = |bucket: usize| {
                    let shares: Vec<_> = of_dealers.iter().map(|it| &it[bucket][..]).collect();
                    reduce::<Gf256>(&[1, 2, 3], &shares).unwrap()
                };
                buckets.flat_map(bucket).collect::<Vec<_>>()
            });
            let name = format!("server {}, {}", i + 1, workload.0);
            verdicts.add(name, uniformity(&counts(made)));
        }
    }
    verdicts.conclude();
}

/// The shares of *t* servers together are uniform: each pair of their shares is equally frequent.
#[test]
fn the_shares_of_as_many_servers_as_may_collude_are_uniform_together() {
    let mut verdicts = Verdicts::new(1e-6);
    for workload in WORKLOADS {
        let seen = seen(parties(5, 2), workload, ACCESSES, 7);
        for (i, j) in (0..5).flat_map(|i| (0..i).map(move |j| (i, j))) {
            for kind in KINDS {
                let [one, other] =
                    [i, j].map(|server| elements(&seen[server], kind).into_iter().flatten());
                let pairs = one.zip(other).map(|(a, b)| (u64::from(a), u64::from(b)));
                let name = format!("{kind:?} of {} and {}, {}", j + 1, i + 1, workload.0);
                verdicts.add(name, uniformity_of_pairs(pairs, 256, 16));
            }
        }
    }
    verdicts.conclude();
}

/// The path that each access shows, in order.
fn paths(workload: Workload, accesses: usize, seed: u64) -> Vec<u64> {
    let seen = seen(parties(3, 1), workload, accesses, seed);
    let leaf = |seen: &SentMessage<u8>| match seen {
        SentMessage::Select(select) => Some(select.leaf.0),
        _ => None,
    };
    seen[0].iter().filter_map(leaf).collect()
}

#[test]
fn paths_are_drawn_whatever_the_owner_does() {
    let mut verdicts = Verdicts::new(1e-6);
    let leaves = 1 << HEIGHT;
    let mut all = Vec::new();
    for workload in WORKLOADS {
        let paths = paths(workload, 10 * ACCESSES, 8);
        verdicts.add(
            format!("paths, {}", workload.0),
            uniformity(&histogram(paths.clone(), leaves, leaves)),
        );
        verdicts.add(format!("consecutive, {}", workload.0), serial_correlation(&paths));
        let pairs = paths.as_chunks::<2>().0.iter().map(|[a, b]| (*a, *b));
        verdicts.add(format!("pairs, {}", workload.0), uniformity_of_pairs(pairs, leaves, leaves));
        all.push((workload.0, paths));
    }
    // The path shown for a block that was never written reveals nothing either.
    for two in all.windows(2) {
        let [one, other] = [0, 1].map(|i| histogram(two[i].1.clone(), leaves, leaves));
        verdicts.add(format!("{} and {}", two[0].0, two[1].0), homogeneity(&one, &other));
    }
    verdicts.conclude();
}

#[test]
fn a_block_that_was_never_accessed_is_looked_for_anywhere() {
    let mut verdicts = Verdicts::new(1e-6);
    let tree = Tree::new(HEIGHT, PRESET).unwrap();
    let leaves = tree.leaves();
    for address in 0..BLOCKS {
        let mut coins = StdRng::seed_from_u64(address as u64);
        let first = |_| {
            let mut client =
                Client::<Gf256>::new(parties(3, 1), tree, BLOCKS, BLOCK_BYTES).unwrap();
            client.select(address, &mut coins).unwrap().1[0].leaf.0
        };
        let paths: Vec<_> = (0..500).map(first).collect();
        verdicts.add(format!("block {address}"), uniformity(&histogram(paths, leaves, leaves)));
    }
    verdicts.conclude();
}

/// The evicted path follows only from the number of evictions, whose lowest bit is the direction at
/// the root.
#[test]
fn evictions_are_counted() {
    let tree = Tree::new(HEIGHT, PRESET).unwrap();
    for workload in WORKLOADS {
        let seen = seen(parties(3, 1), workload, 100, 9);
        let evicted = seen[0].iter().filter_map(|seen| match seen {
            SentMessage::Evict(evict) => Some(evict.number),
            _ => None,
        });
        let evicted: Vec<_> = evicted.collect();
        assert_eq!(evicted, (0..20).collect::<Vec<_>>(), "{}", workload.0);
        assert_eq!(tree.evicted(9), Leaf(1));
    }
}

/// The tests of uniformity raise an alarm if one element in ten is in the clear, or if two messages
/// have one polynomial, and none for uniform elements.
#[test]
fn what_is_not_uniform_is_found() {
    let mut coins = StdRng::seed_from_u64(10);
    let mut mask = vec![0; 20_000];
    Gf256::draw(&mut coins, &mut mask);
    let alarms = |p: f64| {
        let mut verdicts = Verdicts::new(1e-6);
        verdicts.add("found", p);
        !verdicts.alarms().is_empty()
    };
    assert!(!alarms(uniformity(&counts(mask.iter().copied()))));
    // One element in ten is in the clear: a zero.
    let with_zeros = mask.iter().map(|it| if coins.random_ratio(1, 10) { 0 } else { *it });
    assert!(alarms(uniformity(&counts(with_zeros))));
    let again = mask.iter().map(|it| it ^ 0x55);
    assert!(alarms(uniformity(&counts(mask.iter().zip(again).map(|(a, b)| a ^ b)))));
}
