//! Tests of the view that one server, or *t* servers together, have of the other servers. The view
//! is recorded at the servers' links. For any workload, the view has the same shape, and its shares
//! are fresh and reveal nothing.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use oblivio_core::durable::Want;
use oblivio_core::store::Capabilities;
use oblivio_core::view::{
    Direction, Event, EventSink, FileSink, Observed, Operation, PeerMessage, PeerMessageSink,
    read_view, server_of_view_tree,
};
use oblivio_core::{BucketId, pieces::Part};
use oblivio_shares::field::Gf256;
use oblivio_shares::multiplication::reduce;
use oblivio_shares::sharing::{Parties, Share, recover, share_of_another};
use oblivio_testkit::statistics::{Verdicts, histogram, uniformity, uniformity_of_pairs};

use crate::owner::{BLOCK_BYTES, BLOCKS, Owner};
use crate::parties;
use crate::wire::Wire;

/// The number of accesses, which lead to fifteen evictions of each tree.
const ACCESSES: u64 = 60;

type Workload = (&'static str, fn(u64) -> (Want, Option<Vec<u8>>));

const WORKLOADS: [Workload; 5] = [
    ("reads of one block", |_| (Want::Block(7), None)),
    ("writes of one block", |i| (Want::Block(7), Some(vec![i as u8; BLOCK_BYTES]))),
    ("reads of all", |i| (Want::Block(i % BLOCKS), None)),
    ("writes of all", |i| (Want::Block(i % BLOCKS), Some(vec![0; BLOCK_BYTES]))),
    ("dummies, sometimes", |i| {
        (if i % 3 == 0 { Want::Block(1) } else { Want::Dummy }, Some(vec![3; BLOCK_BYTES]))
    }),
];

/// Where the client keeps the position map.
#[derive(Clone, Copy, Debug)]
enum Map {
    OnTheClient,
    InTrees,
}

/// The recorded messages of all servers.
struct RecordedWires {
    parties: Parties,
    wires: Vec<Arc<Mutex<Wire>>>,
}

impl RecordedWires {
    fn of((servers, colluding): (u8, u8), map: Map, workload: Workload, seed: u64) -> Self {
        let parties = parties(servers, colluding);
        let mut owner = match map {
            Map::OnTheClient => Owner::new(parties, seed),
            Map::InTrees => Owner::in_trees(parties, seed),
        };
        let wires = owner.servers.world().watch();
        for i in 0..ACCESSES {
            owner.access(&[workload.1(i)]).unwrap();
        }
        Self { parties, wires }
    }

    fn wire(&self, number: u8) -> MutexGuard<'_, Wire> {
        self.wires[usize::from(number) - 1].lock().unwrap()
    }
}

/// The facts of a recorded access to a piece: the operation, the tree of the view, the level, the
/// part of the bucket, and the number of bytes.
type Call = (Operation, u16, u8, Part, u64);

/// The view of a server without random values: without the leaves in requests, and without the
/// shares between servers. The messages are sorted, because they arrive in any order. Received
/// messages have no tree, because they may arrive before the server knows it.
fn shape(wire: &Wire) -> (Vec<Call>, Vec<PeerMessage>) {
    let call = |event: &Event| {
        let piece = event.piece.unwrap();
        (event.operation, piece.tree.0, piece.bucket.level(), piece.part, event.bytes)
    };
    let message = |(exchange, _): &(PeerMessage, _)| match exchange.direction {
        Direction::Sent => PeerMessage { trip: 0, ..*exchange },
        Direction::Received => PeerMessage { trip: 0, tree: None, ..*exchange },
    };
    let mut messages: Vec<_> = wire.messages.iter().map(message).collect();
    messages.sort_by_key(|it| (it.attempt, it.direction, it.partner, it.part, it.round));
    (wire.calls.iter().map(call).collect(), messages)
}

#[test]
fn what_passes_a_server_has_one_shape_whatever_the_owner_does() {
    use Map::{InTrees, OnTheClient};
    for (sizes, map) in
        [((3, 1), OnTheClient), ((5, 1), OnTheClient), ((5, 2), OnTheClient), ((3, 1), InTrees)]
    {
        let shapes = |workload| {
            let seen = RecordedWires::of(sizes, map, workload, 1);
            seen.parties.numbers().map(|number| shape(&seen.wire(number))).collect::<Vec<_>>()
        };
        let first = shapes(WORKLOADS[0]);
        for (number, (calls, messages)) in (1..).zip(&first) {
            assert!(calls.len() as u64 > 2 * ACCESSES && messages.len() > 100);
            // Each server exchanges messages with every other server, in both directions.
            let of: HashSet<_> = messages.iter().map(PeerMessage::from_to).collect();
            assert_eq!(of.len(), 2 * (first.len() - 1), "server {number}");
        }
        for workload in &WORKLOADS[1..] {
            assert!(shapes(*workload) == first, "{sizes:?}, {map:?}: {}", workload.0);
        }
    }
}

/// The sender and the receiver of a message see the same message, and know to which tree it
/// belongs. Requests for metadata are recorded as reads of the headers of a path, without the leaf.
#[test]
fn both_ends_see_one_message_and_know_for_which_tree_it_is() {
    for map in [Map::OnTheClient, Map::InTrees] {
        let seen = RecordedWires::of((3, 1), map, WORKLOADS[3], 2);
        let ends = |direction| {
            let mut all = Vec::new();
            for number in seen.parties.numbers() {
                for (exchange, dealt) in &seen.wire(number).messages {
                    if exchange.direction == direction {
                        let key = (exchange.attempt, exchange.part, exchange.round);
                        all.push((exchange.from_to(), key, dealt.encode()));
                    }
                }
            }
            all.sort();
            all
        };
        assert!(ends(Direction::Sent) == ends(Direction::Received));
        for number in seen.parties.numbers() {
            let wire = seen.wire(number);
            let trees = wire.trees.len() as u8;
            assert_eq!(trees, if matches!(map, Map::InTrees) { 3 } else { 1 });
            let mut of_attempt = BTreeMap::new();
            for (exchange, _) in &wire.messages {
                if let Some(tree) = exchange.tree {
                    assert_eq!(*of_attempt.entry(exchange.attempt).or_insert(tree), tree);
                }
            }
            let named: HashSet<_> = of_attempt.values().copied().collect();
            assert_eq!(named, (0..trees).collect());
            for (tree, setup) in (0..).zip(&wire.trees) {
                let mut calls = wire.calls.iter().filter_map(|event| {
                    let piece = event.piece?;
                    (server_of_view_tree(piece.tree) == Some((number, tree)))
                        .then_some((event, piece))
                });
                let headers = calls.clone().filter(|(_, piece)| {
                    piece.part == Part::Header && piece.bucket != BucketId::ROOT
                });
                let deepest = headers.map(|(_, piece)| piece.bucket.level()).max();
                let expected = (setup.metadata_bytes > 0).then(|| setup.tree.height() - 1);
                assert_eq!(deepest.filter(|level| *level > 0), expected.filter(|it| *it > 0));
                let evicted = |(event, piece): (&Event, _)| {
                    let piece: oblivio_core::pieces::Piece = piece;
                    event.operation == Operation::Write && piece.part == Part::Whole
                };
                assert!(calls.any(evicted), "tree {tree}");
            }
        }
    }
}

#[test]
fn what_passes_a_server_is_kept_in_a_file() {
    let seen = RecordedWires::of((5, 2), Map::InTrees, WORKLOADS[1], 3);
    for number in seen.parties.numbers() {
        let wire = seen.wire(number);
        let mut file = FileSink::new(Vec::new(), Capabilities::NONE, Some(wire.servers));
        let mut expected = Vec::new();
        for event in &wire.calls {
            file.record(event, &[]);
            expected.push(Observed::Event(*event));
        }
        for (exchange, _) in &wire.messages {
            file.record_message(exchange, &[]);
            expected.push(Observed::PeerMessage(*exchange));
        }
        let file = file.finish().unwrap();
        let reader = read_view(&file[..]).unwrap();
        assert!(reader.servers().is_some_and(|servers| {
            (servers.count(), servers.colluding()) == (5, 2)
                && (1..=5).all(|party| servers.watches(party) == (party == number))
        }));
        assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), expected);
    }
}

/// The shares of one dealer for one bucket in one round.
struct DealtBucket {
    dealer: u8,
    /// The shares that servers received, by server number.
    shares: BTreeMap<u8, Vec<u8>>,
}

/// Identifies a bucket of a round: the attempt, the part, the round, and the index of the bucket in
/// the round.
type BucketRound = (u64, u32, u8, usize);

/// Collects the shares of all rounds of all trees.
fn rounds(seen: &RecordedWires) -> BTreeMap<BucketRound, Vec<DealtBucket>> {
    let mut rounds: BTreeMap<BucketRound, Vec<DealtBucket>> = BTreeMap::new();
    for number in seen.parties.numbers() {
        let wire = seen.wire(number);
        let trees = wire.messages.iter().filter_map(|(it, _)| Some((it.attempt, it.tree?)));
        let trees: BTreeMap<_, _> = trees.collect();
        for (exchange, dealt) in &wire.messages {
            let PeerMessage { attempt, part, round, partner, .. } = *exchange;
            if exchange.direction == Direction::Sent {
                continue;
            }
            let setup = &wire.trees[usize::from(trees[&attempt])];
            for (bucket, share) in dealt.shares.iter().enumerate() {
                let elements = setup.tree.slots() * setup.block_bytes;
                let share = share.clone().into_elements::<Gf256>(elements).unwrap();
                let of_round = rounds.entry((attempt, part, round, bucket)).or_default();
                match of_round.iter_mut().find(|it| it.dealer == partner) {
                    Some(dealing) => drop(dealing.shares.insert(number, share)),
                    None => {
                        let shares = BTreeMap::from([(number, share)]);
                        of_round.push(DealtBucket { dealer: partner, shares });
                    }
                }
            }
        }
    }
    for dealings in rounds.values_mut() {
        assert_eq!(dealings.len(), seen.parties.for_product());
        dealings.sort_by_key(|dealing| dealing.dealer);
        assert!(dealings.iter().all(|it| it.shares.len() == seen.parties.servers() - 1));
    }
    rounds
}

fn counts(elements: impl IntoIterator<Item = u8>) -> Vec<u64> {
    histogram(elements.into_iter().map(u64::from), 256, 256)
}

/// The shares that each dealer sends to each server are uniform, and so is the difference of two
/// consecutive messages.
#[test]
fn what_others_deal_to_a_server_is_uniform() {
    let mut verdicts = Verdicts::new(1e-6);
    for (map, workload) in [(Map::OnTheClient, 1), (Map::OnTheClient, 4), (Map::InTrees, 3)] {
        let seen = RecordedWires::of((3, 1), map, WORKLOADS[workload], 4);
        let rounds = rounds(&seen);
        for (from, to) in seen.parties.numbers().flat_map(|from| (1..=3).map(move |to| (from, to)))
        {
            let dealt = rounds.values().flatten().filter(|it| it.dealer == from);
            let dealt: Vec<_> = dealt.filter_map(|it| it.shares.get(&to)).collect();
            if from == to {
                assert!(dealt.is_empty());
                continue;
            }
            let name = format!("{from} to {to}, {map:?}, {}", WORKLOADS[workload].0);
            verdicts
                .add(name.clone(), uniformity(&counts(dealt.iter().copied().flatten().copied())));
            let differences = dealt
                .windows(2)
                .flat_map(|two| two[0].iter().zip(two[1]).map(|(a, b)| a ^ b).collect::<Vec<_>>());
            verdicts.add(format!("differences: {name}"), uniformity(&counts(differences)));
        }
    }
    verdicts.conclude();
}

#[test]
fn no_seed_is_dealt_twice() {
    for (seed, (sizes, map)) in (5..).zip([
        ((3, 1), Map::OnTheClient),
        ((5, 2), Map::OnTheClient),
        ((5, 2), Map::InTrees),
        ((7, 3), Map::OnTheClient),
    ]) {
        // All these servers begin with the same coins.
        let mut seeds = HashSet::new();
        let seen = RecordedWires::of(sizes, map, WORKLOADS[0], seed);
        for number in seen.parties.numbers() {
            let wire = seen.wire(number);
            let received = wire.messages.iter().filter(|it| it.0.direction == Direction::Received);
            for share in received.flat_map(|(_, dealt)| &dealt.shares) {
                if let Share::Drawn(seed) = share {
                    assert!(seeds.insert(*seed), "{sizes:?}, {map:?}");
                }
            }
        }
        assert!(seeds.len() > 100, "{}", seeds.len());
    }
}

/// All sets of *t* servers.
fn coalitions(parties: Parties) -> Vec<Vec<u8>> {
    let all =
        (0..1u8 << parties.servers()).filter(|it| it.count_ones() == parties.colluding() as u32);
    all.map(|mask| parties.numbers().filter(|number| mask >> (number - 1) & 1 == 1).collect())
        .collect()
}

/// The shares that two of five servers receive from a third are uniform together: each pair of
/// elements is equally frequent.
#[test]
fn what_is_dealt_to_a_coalition_is_uniform_together() {
    let mut verdicts = Verdicts::new(1e-6);
    for (map, workload) in [(Map::OnTheClient, 1), (Map::InTrees, 4)] {
        let seen = RecordedWires::of((5, 2), map, WORKLOADS[workload], 6);
        let rounds = rounds(&seen);
        for coalition in coalitions(seen.parties) {
            let pairs = rounds.values().flatten().filter_map(|dealing| {
                let [one, other] = [0, 1].map(|i| dealing.shares.get(&coalition[i]));
                Some(one?.iter().copied().zip(other?.iter().copied()))
            });
            let pairs = pairs.flatten().map(|(a, b)| (u64::from(a), u64::from(b)));
            let name = format!("{coalition:?}, {map:?}, {}", WORKLOADS[workload].0);
            verdicts.add(name, uniformity_of_pairs(pairs, 256, 16));
        }
    }
    verdicts.conclude();
}

/// A coalition's best guess of a dealer's product. If the dealer is a member, the coalition knows
/// the product. Otherwise it interpolates the polynomial of lowest degree through its members'
/// shares. If the sharing had that degree, the guess would be right.
fn guessed(parties: Parties, coalition: &[u8], dealing: &DealtBucket) -> Vec<u8> {
    let all = || dealing.shares.keys().copied();
    let known: Vec<u8> = if coalition.contains(&dealing.dealer) {
        all().take(parties.colluding() + 1).collect()
    } else {
        all().filter(|number| coalition.contains(number)).collect()
    };
    let shares: Vec<_> = known.iter().map(|number| &dealing.shares[number][..]).collect();
    recover::<Gf256>(&known, &shares).unwrap()
}

/// A coalition's guesses of the products of a round are uniform. If a coefficient of a sharing were
/// zero or known, a guess would show the contents of blocks.
#[test]
fn what_a_coalition_guesses_of_a_round_is_uniform() {
    let mut verdicts = Verdicts::new(1e-6);
    for (sizes, map, workload) in
        [((3, 1), Map::OnTheClient, 4), ((3, 1), Map::InTrees, 4), ((5, 2), Map::OnTheClient, 4)]
    {
        let seen = RecordedWires::of(sizes, map, WORKLOADS[workload], 7);
        let rounds = rounds(&seen);
        for coalition in coalitions(seen.parties) {
            let guesses = rounds.values().flat_map(|dealings| {
                let dealers: Vec<u8> = dealings.iter().map(|it| it.dealer).collect();
                let products: Vec<_> =
                    dealings.iter().map(|it| guessed(seen.parties, &coalition, it)).collect();
                let products: Vec<_> = products.iter().map(|it| &it[..]).collect();
                reduce::<Gf256>(&dealers, &products).unwrap()
            });
            verdicts
                .add(format!("{coalition:?}, {sizes:?}, {map:?}"), uniformity(&counts(guesses)));
        }
    }
    verdicts.conclude();
}

/// After a round, the shares of *t* servers are uniform together. The shares of *t* + 1 servers
/// recover the contents: more than half of the recovered bytes are zero, because most slots are
/// empty.
#[test]
fn what_a_coalition_has_after_a_round_is_uniform_together_and_one_more_has_all() {
    let mut verdicts = Verdicts::new(1e-6);
    let seen = RecordedWires::of((5, 2), Map::OnTheClient, WORKLOADS[3], 8);
    let rounds = rounds(&seen);
    let made = |server: u8, dealings: &[DealtBucket]| -> Vec<u8> {
        let own = |dealing: &DealtBucket| match dealing.shares.get(&server) {
            Some(share) => share.clone(),
            // The dealer keeps a share as well, on the same polynomial.
            None => {
                let known: Vec<_> = dealing.shares.iter().take(3).collect();
                let (numbers, shares): (Vec<u8>, Vec<&[u8]>) =
                    known.into_iter().map(|(number, share)| (*number, &share[..])).unzip();
                share_of_another::<Gf256>(&numbers, &shares, server).unwrap()
            }
        };
        let dealers: Vec<u8> = dealings.iter().map(|it| it.dealer).collect();
        let shares: Vec<_> = dealings.iter().map(own).collect();
        let shares: Vec<_> = shares.iter().map(|it| &it[..]).collect();
        reduce::<Gf256>(&dealers, &shares).unwrap()
    };
    for coalition in coalitions(seen.parties) {
        let pairs = rounds.values().flat_map(|dealings| {
            let [one, other] = [0, 1].map(|i| made(coalition[i], dealings));
            one.into_iter()
                .zip(other)
                .map(|(a, b)| (u64::from(a), u64::from(b)))
                .collect::<Vec<_>>()
        });
        verdicts.add(format!("{coalition:?}"), uniformity_of_pairs(pairs, 256, 16));
    }
    verdicts.conclude();
    let zeros = rounds.values().flat_map(|dealings| {
        let made = [1, 3, 4].map(|server| made(server, dealings));
        recover::<Gf256>(&[1, 3, 4], &made.each_ref().map(|it| &it[..])).unwrap()
    });
    let zeros: Vec<_> = zeros.collect();
    let empty = zeros.iter().filter(|byte| **byte == 0).count();
    assert!(empty * 2 > zeros.len(), "{empty} of {}", zeros.len());
}
