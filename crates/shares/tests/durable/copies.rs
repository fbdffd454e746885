//! Checks that copies of a running client never use a seed for two secrets.
//!
//! If one copy sent a server a seed, and another copy sent it a share of a different secret that
//! was computed with the same seed, this server could recover both secrets alone. The tests vary
//! the servers' answers to each copy, the accesses of each copy, and the times of its checkpoints.

use std::collections::{HashMap, HashSet};

use oblivio_core::durable::{EraStart, Want};
use oblivio_shares::message::{Request, TreePoint};
use oblivio_shares::sharing::{Parties, Share};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::owner::{KINDS, MARK_PAGES_BYTES, Owner};
use crate::parties;

/// The identity of a sharing, as servers see it: the kind of the request, the tree, the point, the
/// attempt, and the index of the matrix.
type Name = (&'static str, u8, TreePoint, u64, usize);

/// The shares of one secret, for each server that received a share.
#[derive(Debug)]
struct Shared {
    name: Name,
    shares: Vec<Option<Share<u8>>>,
}

impl Shared {
    /// Whether `self` and `other` can be the same sharing: one secret on one polynomial.
    fn is_same(&self, other: &Self) -> bool {
        let both = self.shares.iter().zip(&other.shares);
        both.into_iter().all(|(one, other)| one.is_none() || other.is_none() || one == other)
    }
}

fn parts(request: &Request, tree: u8) -> Vec<(Name, Share<u8>)> {
    match request {
        Request::Select { at, select } => {
            vec![(("query", tree, *at, 0, 0), select.query.clone())]
        }
        Request::Write { at, block } => vec![(("write", tree, *at, 0, 0), block.clone())],
        Request::Evict { evict, .. } => {
            let at = TreePoint { evictions: evict.number, written: 0 };
            let matrices = evict.matrices.iter().enumerate();
            let part = |(i, share): (usize, &Share<u8>)| {
                (("matrix", tree, at, evict.attempt, i), share.clone())
            };
            matrices.map(part).collect()
        }
        _ => Vec::new(),
    }
}

/// All sharings that the client sent to the servers. Identical repetitions count once.
fn shared(owner: &Owner) -> Vec<Shared> {
    let world = owner.servers.world();
    let (mut all, mut named) = (Vec::<Shared>::new(), HashMap::<Name, Vec<usize>>::new());
    for (server, requests) in world.seen.iter().zip(&world.seen_in).enumerate() {
        let requests = requests.0.iter().zip(requests.1);
        for (name, share) in requests.flat_map(|(request, tree)| parts(request, *tree)) {
            let of_name = named.entry(name).or_default();
            let fits = |at: &&usize| {
                all[**at].shares[server].as_ref().is_none_or(|before| *before == share)
            };
            let at = of_name.iter().find(fits).copied().unwrap_or_else(|| {
                all.push(Shared { name, shares: vec![None; world.seen.len()] });
                of_name.push(all.len() - 1);
                all.len() - 1
            });
            all[at].shares[server] = Some(share);
        }
    }
    all
}

/// An action in which one copy differs from the others.
type CopyAction = fn(&mut Owner);

/// Makes eight accesses that are planned together, among them some with evictions.
fn plan(owner: &mut Owner, first: u64) {
    access(owner, &|i| Want::Block((first + i) % 6));
}

fn access(owner: &mut Owner, want: &dyn Fn(u64) -> Want) {
    let wanted: Vec<_> = (0..8).map(|i| (want(i), None)).collect();
    if owner.access(&wanted).is_err() {
        // Reopen as often as necessary.
        owner.servers.connect();
        owner.servers.world().refuses.fill(None);
        owner.reopen().unwrap();
    }
}

fn fail(owner: &mut Owner, passing: usize, failing: usize, server: usize) {
    let mut world = owner.servers.world();
    world.passing_evictions = passing;
    (world.failing_evictions, world.failing_server) = (failing, server);
}

/// Actions after which servers answer one copy differently from the others.
const ANSWERS: &[CopyAction] = &[
    |_| (),
    |owner| fail(owner, 0, 1, 0),
    |owner| fail(owner, 0, 1, 1),
    |owner| fail(owner, 0, 1, 2),
    |owner| fail(owner, 0, 2, 0),
    |owner| fail(owner, 0, 3, 1),
    |owner| fail(owner, 1, 1, 2),
    |owner| fail(owner, 1, 2, 0),
    |owner| fail(owner, 2, 4, 1),
    // The client gives up and reopens, with the servers unchanged.
    |owner| fail(owner, 0, 5, 1),
    |owner| owner.servers.world().attempts[0] = Some(1 << 20),
    |owner| {
        owner.servers.world().attempts[0] = Some(3);
        fail(owner, 0, 2, 1);
    },
    // Links are lost during an access, and servers have finished it or not.
    |owner| stop(owner, 2, true),
    |owner| stop(owner, 2, false),
    // The same at the last write before an eviction.
    |owner| stop(owner, 4, true),
    |owner| stop(owner, 4, false),
    |owner| stop(owner, 9, true),
    |owner| stop(owner, 9, false),
    |owner| {
        let refusal = oblivio_shares::message::Refusal {
            kind: oblivio_core::StoreErrorKind::Failed,
            why: "busy".into(),
        };
        owner.servers.world().refuses[2] = Some(refusal);
    },
];

fn stop(owner: &mut Owner, trips: usize, is_done: bool) {
    let mut world = owner.servers.world();
    let servers = world.hosts.len();
    world.stop = Some((world.asked + trips, vec![is_done; servers]));
}

/// Actions after which a copy sends different requests from the other copies.
const REQUESTS: &[CopyAction] = &[
    |owner| plan(owner, 2),
    |owner| owner.forget(4),
    |owner| {
        owner.forget(4);
        owner.forget(5);
    },
    |owner| owner.checkpoint().unwrap(),
    |owner| {
        plan(owner, 0);
        owner.checkpoint().unwrap();
    },
    |owner| owner.write(1, 7).unwrap(),
    |owner| owner.access(&[(Want::Dummy, None)]).unwrap(),
];

/// Checks that no copy of a client with six blocks uses a seed for two secrets, if each copy first
/// performs one of the actions `ways`.
fn check(make: impl Fn() -> Owner, ways: &[CopyAction]) {
    let with_blocks = || {
        let mut owner = make();
        (0..6).for_each(|i| owner.write(i, 1).unwrap());
        owner
    };
    check_accesses(with_blocks, &|i| Want::Block(i % 6), ways);
}

/// Runs one copy of a client for each action, and checks that no seed is used for two secrets
/// across all copies.
fn check_accesses(make: impl Fn() -> Owner, want: &dyn Fn(u64) -> Want, ways: &[CopyAction]) {
    let mut of_seeds: HashMap<[u8; 32], (usize, Shared)> = HashMap::new();
    let (mut again, mut attempts) = (0, Vec::new());
    for way in ways {
        let mut owner = make();
        way(&mut owner);
        access(&mut owner, want);
        owner.servers.world().attempts.fill(None);
        fail(&mut owner, 0, 0, 1);
        access(&mut owner, &|i| want(i + 3));
        let all = shared(&owner);
        attempts.push(all.iter().filter(|it| it.name.0 == "matrix").count());
        for it in all {
            let drawn = it.shares.iter().enumerate().filter_map(|(server, share)| match share {
                Some(Share::Drawn(seed)) => Some((server, *seed)),
                _ => None,
            });
            for (server, seed) in drawn.collect::<Vec<_>>() {
                let Some((of, before)) = of_seeds.get(&seed) else {
                    let shares = it.shares.clone();
                    of_seeds.insert(seed, (server, Shared { name: it.name, shares }));
                    continue;
                };
                let is_one = *of == server && before.is_same(&it);
                assert!(is_one, "one seed for {:?} and {:?}", before.name, it.name);
                again += 1;
            }
        }
    }
    // The copies have sent many equal sharings, but have done different things.
    assert!(again > 10 * ways.len(), "{again}");
    attempts.dedup();
    assert!(attempts.len() > 2, "{attempts:?}");
}

fn all_ways(more: &[CopyAction]) -> Vec<CopyAction> {
    [ANSWERS, REQUESTS, more].concat()
}

#[test]
fn no_seed_is_used_for_two_secrets_in_copies_of_a_client() {
    for of_kind in KINDS {
        check(|| of_kind(parties(3, 1), 7), &all_ways(&[]));
    }
}

/// No seed is used for two secrets, even if the matrices of all evictions are equal because no
/// block moves. A seed for one of these matrices must not go to two servers.
#[test]
fn no_seed_is_used_for_two_secrets_if_nothing_is_moved() {
    for of_kind in KINDS {
        check_accesses(|| of_kind(parties(3, 1), 7), &|_| Want::Dummy, ANSWERS);
    }
}

#[test]
fn no_seed_is_used_for_two_secrets_if_servers_are_missing_or_lie() {
    let of_five: &[CopyAction] = &[
        |owner| missing(owner, 4),
        |owner| missing(owner, 1),
        |owner| {
            missing(owner, 4);
            fail(owner, 0, 1, 3);
        },
        |owner| owner.servers.world().lying_of_blocks[2] = true,
    ];
    check(|| Owner::new(parties(5, 1), 8), &all_ways(of_five));
    check(|| Owner::new(parties(5, 2), 9), &all_ways(&[]));
}

/// Makes a server missing, so that it misses some accesses and their writes. It returns when the
/// client waits for it.
fn missing(owner: &mut Owner, server: usize) {
    owner.servers.world().missing[server] = true;
    owner.servers.world().come_back = true;
}

/// No seed is used for two secrets if servers return different metadata to the copies. For one
/// copy, the marks of taken slots are removed.
#[test]
fn no_seed_is_used_for_two_secrets_if_metadata_differs() {
    let of_marks: &[CopyAction] = &[|owner| {
        let disks = owner.servers.world().disks.clone();
        disks.iter().for_each(|disk| {
            let pages_at = disk.content("root").len() - MARK_PAGES_BYTES;
            disk.overwrite("root", pages_at, &[0; MARK_PAGES_BYTES]);
        });
    }];
    check(|| Owner::in_trees(parties(3, 1), 7), &[ANSWERS, of_marks].concat());
}

/// The seeds of the matrices that a client sends after the action `way`.
fn later_seeds(of_kind: fn(Parties, u64) -> Owner, way: CopyAction) -> HashSet<[u8; 32]> {
    let mut owner = of_kind(parties(3, 1), 7);
    (0..6).for_each(|i| owner.write(i, 1).unwrap());
    way(&mut owner);
    // Make dummy accesses, so that evictions move only the blocks written before.
    access(&mut owner, &|_| Want::Dummy);
    let is_later = |it: &Shared| it.name.0 == "matrix" && it.name.2.evictions > 0;
    let later = shared(&owner).into_iter().filter(is_later);
    let seed = |share| match share {
        Share::Drawn(seed) => Some(seed),
        Share::Computed(_) => None,
    };
    later.flat_map(|it| it.shares).flatten().filter_map(seed).collect()
}

fn begin_era(owner: &mut Owner, seed: u64) {
    owner.array.begin_era(EraStart::Checkpoint, &mut StdRng::seed_from_u64(seed));
}

/// Copies that move the same blocks secret-share their matrices with different coins, unless both
/// copies have done exactly the same. A checkpoint draws new coins. Copies whose coins differ have
/// different new coins, even if their systems return the same randomness.
#[test]
fn copies_share_the_same_matrices_differently() {
    let ways: &[CopyAction] = &[
        |_| (),
        |owner| owner.coins = StdRng::seed_from_u64(40),
        // These blocks have no position.
        |owner| owner.forget(50),
        |owner| owner.forget(51),
        |owner| begin_era(owner, 1),
        |owner| begin_era(owner, 2),
        |owner| {
            owner.forget(50);
            begin_era(owner, 1);
        },
    ];
    for of_kind in KINDS {
        let mut all = HashSet::<[u8; 32]>::new();
        for way in ways {
            let [one, same] = [*way; 2].map(|way| later_seeds(of_kind, way));
            assert!(one.len() > 5, "{}", one.len());
            assert_eq!(one, same);
            let before = all.len();
            all.extend(&one);
            assert_eq!(all.len(), before + one.len());
        }
    }
}
