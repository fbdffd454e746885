//! Tests that the servers' view does not depend on the workload.

use std::collections::HashMap;

use oblivio_core::durable::{DurableConfig, Want};
use oblivio_core::view::Event;
use oblivio_shares::message::{Request, TreePoint};
use oblivio_shares::servers::ShareServers;
use oblivio_shares::sharing::{Parties, Share};
use oblivio_shares::view::ShareRecorder;
use oblivio_testkit::ServersWithRecords;
use oblivio_testkit::statistics::{Verdicts, uniformity};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::owner::{BLOCK_BYTES, BLOCKS, KINDS, Owner, PRESET};
use crate::{parties, step};

/// The number of accesses for statistical tests.
const ACCESSES: u64 = 2_000;

/// The number of accesses of tests without statistics. Every event that depends on the number of
/// accesses occurs at least once.
const FEW: u64 = 400;

type Workload = fn(u64) -> (Want, Option<Vec<u8>>);

const WORKLOADS: [(&str, Workload); 5] = [
    ("reads of one block", |_| (Want::Block(7), None)),
    ("writes of one block", |i| (Want::Block(7), Some(vec![i as u8; BLOCK_BYTES]))),
    ("reads of all", |i| (Want::Block(i % BLOCKS), None)),
    ("writes of all", |i| (Want::Block(i % BLOCKS), Some(vec![0; BLOCK_BYTES]))),
    ("nothing", |_| (Want::Dummy, Some(Vec::new()))),
];

/// The requests that server 1 receives.
fn seen(workload: Workload, accesses: u64, seed: u64) -> Vec<Request> {
    let mut owner = Owner::new(parties(3, 1), seed);
    for i in 0..accesses {
        owner.access(&[workload(i)]).unwrap();
    }
    owner.servers.world().seen[0].clone()
}

/// The facts of a request except leaves and shares: its length and its point.
fn shape(request: &Request) -> (usize, Option<TreePoint>) {
    let at = match request {
        Request::Select { at, .. } | Request::Write { at, .. } => Some(*at),
        _ => None,
    };
    (request.encode().len(), at)
}

#[test]
fn servers_are_asked_the_same_whatever_the_owner_does() {
    let shapes = WORKLOADS
        .map(|(_, workload)| -> Vec<_> { seen(workload, FEW, 1).iter().map(shape).collect() });
    for (other, (name, _)) in shapes.iter().zip(WORKLOADS) {
        assert!(*other == shapes[0], "{name}");
    }
    assert!(shapes[0].len() as u64 > 2 * FEW);
}

#[test]
fn an_owner_whose_view_is_recorded_waits_for_links_as_others_do() {
    let owner = Owner::new(parties(3, 1), 6);
    owner.servers.world().waits_for_links = 2;
    let servers = Box::new(ServersWithRecords::without(owner.servers.clone()));
    let mut servers = ShareRecorder::new(servers, |_: &Event, _: &[u8]| {}, vec![3]);
    assert_eq!([1, 2, 3].map(|failed| servers.wait_for_links(failed)), [true, true, false]);
}

#[test]
fn leaves_are_uniform_whatever_the_owner_does() {
    let mut verdicts = Verdicts::new(1e-6);
    for (name, workload) in WORKLOADS {
        let (mut single, mut pairs, mut before) = (vec![0; 16], vec![0; 16], 0);
        for request in seen(workload, ACCESSES, 2) {
            if let Request::Select { select, .. } = request {
                let leaf = select.leaf.0 as usize;
                single[leaf] += 1;
                pairs[before * 4 + leaf % 4] += 1;
                before = leaf % 4;
            }
        }
        verdicts.add(format!("{name}: leaves"), uniformity(&single));
        verdicts.add(format!("{name}: consecutive pairs"), uniformity(&pairs));
    }
    verdicts.conclude();
}

/// A repeated access shows the same path as before, and only the latest access is repeated. After a
/// crash, servers see the interrupted access again.
#[test]
fn nothing_is_shown_twice_but_the_access_that_was_under_way() {
    // An access with map trees takes three times as many messages, and more.
    for (of_kind, messages, crashes) in [(KINDS[0], 12, 300), (KINDS[1], 40, 150)] {
        let mut owner = of_kind(parties(3, 1), 3);
        let mut choices = StdRng::seed_from_u64(4);
        for _ in 0..crashes {
            let at = owner.servers.world().asked + choices.random_range(1..messages);
            let does = (0..3).map(|_| choices.random()).collect();
            owner.servers.world().stop = Some((at, does));
            for _ in 0..3 {
                if step(&mut owner, &mut choices).is_err() {
                    break;
                }
            }
            owner.servers.connect();
            owner.reopen().unwrap();
        }
        let mut shown = HashMap::new();
        let mut latest = [TreePoint::default(); 3];
        let mut again = 0;
        let world = owner.servers.world();
        for (request, tree) in world.seen[0].iter().zip(&world.seen_in[0]) {
            let (at, leaf) = match request {
                Request::Select { at, select } => (*at, select.leaf),
                // Before an eviction, the client requests the metadata of two paths that follow
                // from counters.
                Request::Metadata { at, leaf } if at.written < PRESET.accesses.into() => {
                    (*at, *leaf)
                }
                _ => continue,
            };
            let latest = &mut latest[usize::from(*tree)];
            assert!(at >= *latest, "an access is repeated after later ones");
            *latest = at;
            let kind = std::mem::discriminant(request);
            let before = shown.insert((kind, *tree, at), leaf);
            assert!(
                before.is_none_or(|before| before == leaf),
                "the repeated access shows another path"
            );
            again += usize::from(before.is_some());
        }
        assert!(again > 20, "{again}");
    }
}

/// The seeds that a server receives from the client, and the number of times it receives each.
fn seeds(requests: &[Request]) -> HashMap<[u8; 32], usize> {
    let mut seeds = HashMap::new();
    let mut note = |share: &Share<u8>| {
        if let Share::Drawn(seed) = share {
            *seeds.entry(*seed).or_default() += 1;
        }
    };
    for request in requests {
        match request {
            Request::Select { select, .. } => note(&select.query),
            Request::Write { block, .. } => note(block),
            Request::Evict { evict, .. } => evict.matrices.iter().for_each(&mut note),
            _ => (),
        }
    }
    seeds
}

/// No client draws a seed twice, and no two clients draw the same seed.
#[test]
fn no_seed_is_drawn_twice() {
    let mut all: HashMap<[u8; 32], usize> = HashMap::new();
    for (of_kind, seed) in KINDS.into_iter().flat_map(|kind| [(kind, 5), (kind, 6)]) {
        let mut owner = of_kind(parties(3, 1), seed);
        for i in 0..200 {
            let want = if i % 3 == 0 { Want::Dummy } else { Want::Block(i % BLOCKS) };
            owner.access(&[(want, None)]).unwrap();
        }
        let of_servers: Vec<_> = owner.servers.world().seen.iter().map(|it| seeds(it)).collect();
        for seeds in of_servers {
            assert!(seeds.len() > 100, "{}", seeds.len());
            seeds.into_iter().for_each(|(seed, times)| *all.entry(seed).or_default() += times);
        }
    }
    assert!(all.values().all(|times| *times == 1));
}

/// The sharings that the client sent, in order, each with its share for every server. All servers
/// receive the same kinds of requests in the same order.
fn shared(owner: &Owner) -> Vec<Vec<Share<u8>>> {
    let of_server = |requests: &Vec<Request>| -> Vec<Share<u8>> {
        let shares = requests.iter().flat_map(|request| match request {
            Request::Select { select, .. } => vec![select.query.clone()],
            Request::Write { block, .. } => vec![block.clone()],
            Request::Evict { evict, .. } => evict.matrices.clone(),
            _ => Vec::new(),
        });
        shares.collect()
    };
    let seen: Vec<_> = owner.servers.world().seen.iter().map(of_server).collect();
    (0..seen[0].len()).map(|i| seen.iter().map(|shares| shares[i].clone()).collect()).collect()
}

/// Copies of a client that continue differently share differently. Shares from one seed must be
/// shares of one secret; otherwise they reveal the difference of two secrets.
#[test]
fn copies_of_a_client_that_go_on_differently_share_differently() {
    let copy = |seed| {
        let mut owner = Owner::new(parties(3, 1), seed);
        (0..6).for_each(|i| owner.write(i, 1).unwrap());
        owner
    };
    let access = |owner: &mut Owner, want: Want| owner.access(&[(want, None)]).unwrap();
    let ways: [fn(&mut Owner) -> Want; 5] = [
        |_| Want::Block(3),
        |_| Want::Block(4),
        |_| Want::Dummy,
        // These copies differ only in the blocks in the root.
        |owner| {
            owner.forget(4);
            Want::Block(3)
        },
        |owner| {
            owner.forget(5);
            Want::Block(3)
        },
    ];
    let mut all: HashMap<[u8; 32], Vec<Share<u8>>> = HashMap::new();
    // Several seeds: with one, a forgotten block could by chance be where no matrix moves it.
    for (seed, way) in (0..8).flat_map(|seed| ways.map(|way| (seed, way))) {
        let mut owner = copy(seed);
        let want = way(&mut owner);
        access(&mut owner, want);
        (0..3).for_each(|_| access(&mut owner, Want::Block(9)));
        for shares in shared(&owner) {
            for share in &shares {
                if let Share::Drawn(seed) = share {
                    let before = all.entry(*seed).or_insert_with(|| shares.clone());
                    assert!(*before == shares, "one seed for two secrets");
                }
            }
        }
    }
}

/// A fixed seed always gives the same messages, plans and states, with failing servers and
/// restarting clients. Compares checksums with those of the first version that had this test. A
/// changed view or format, or a new generator in `rand`, changes the checksums.
#[test]
fn a_fixed_seed_gives_the_messages_plans_and_states_that_it_always_gave() {
    let checksums = |of_kind: fn(Parties, u64) -> Owner, servers: u8, colluding: u8| {
        let mut owner = of_kind(parties(servers, colluding), 51);
        let (mut choices, mut stored) = (StdRng::seed_from_u64(52), crc32fast::Hasher::new());
        stored.update(&owner.params.encode());
        for round in 0..36 {
            if round % 3 > 0 {
                let at = owner.servers.world().asked + choices.random_range(1..30);
                let does = (0..servers).map(|_| choices.random()).collect();
                owner.servers.world().stop = Some((at, does));
            }
            let missing = choices.random_range(0..usize::from(servers));
            let may_be_missing = servers > 2 * colluding + 1 && round % 4 == 0;
            owner.servers.world().missing[missing] = may_be_missing;
            if (0..3).all(|_| step(&mut owner, &mut choices).is_ok()) {
                let windows = [vec![round % BLOCKS, 3], vec![3, 4, (round + 1) % BLOCKS]];
                let _ = owner.read_ahead(&windows);
            }
            owner.servers.connect();
            owner.servers.world().missing[missing] = false;
            owner.log.iter().for_each(|record| record.bytes(&mut |it| stored.update(it)));
            if round % 3 > 0 || owner.array.headroom().is_err() {
                owner.reopen().unwrap();
            }
        }
        owner.array.check(&mut |_| ()).unwrap();
        owner.restored().0.salvage(&mut |_, _| (), &mut |_| (), &mut |_| ()).unwrap();
        [owner.servers.world().sent.clone().finalize(), stored.finalize()]
    };
    let [on_client, in_trees] = KINDS;
    let found = [
        checksums(on_client, 3, 1),
        checksums(on_client, 5, 1),
        checksums(in_trees, 3, 1),
        checksums(in_trees, 5, 2),
    ];
    let first = [
        [2_672_802_100, 1_068_885_593],
        [226_514_886, 3_624_026_752],
        [1_178_649_582, 2_248_458_745],
        [2_989_106_066, 2_832_937_950],
    ];
    assert_eq!(found, first);
}
