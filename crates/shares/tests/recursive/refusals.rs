//! What is out of order is refused, and answers that are none end the client without a panic.

use oblivio_core::Leaf;
use oblivio_shares::answers::NoBlock;
use oblivio_shares::client::ClientError;
use oblivio_shares::field::Gf256;
use oblivio_shares::message::{Evict, RootWrite, Select};
use oblivio_shares::recursive::{AccessError, Answers, Ask, Asked, InProcess, Servers};
use oblivio_shares::server::Server;
use oblivio_shares::sharing::{Parties, Share};
use oblivio_shares::tree::{Preset, Tree};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::world::World;
use crate::{BLOCK, PRESET, levels};

fn world(seed: u64) -> World<Gf256> {
    World::new(Parties::new(3, 1).unwrap(), levels::<Gf256>(50, PRESET, 8, 2), seed)
}

#[test]
fn what_is_asked_wrongly_is_refused_and_changes_nothing() {
    let mut world = world(1);
    for _ in 0..3 {
        assert_eq!(world.refusal(50, None), ClientError::NoSuchBlock);
        assert_eq!(world.refusal(usize::MAX, None), ClientError::NoSuchBlock);
        assert_eq!(world.refusal(1, Some(&[0; BLOCK + 1])), ClientError::BlockLength);
        assert_eq!(world.servers.trips, 0);
    }
    assert_eq!(world.access(1, Some(&[7; BLOCK])), [0; BLOCK]);
    assert_eq!(world.access(1, None), [7; BLOCK]);
}

type Spoil = fn(&mut Vec<Answers<u8>>);

/// No answer, too few, too short or too long ones, ones of servers that there are not, and answers that are wrong.
const SPOILED: [(Spoil, ClientError); 8] = [
    (|answers| answers.clear(), NOT_ANSWERS),
    (|answers| answers.truncate(0), NOT_ANSWERS),
    (|answers| drop(last(answers).shares.pop()), NOT_ANSWERS),
    (|answers| drop((last(answers).shares.pop(), last(answers).numbers.pop())), NOT_ANSWERS),
    (|answers| last(answers).shares[0].truncate(1), NOT_ANSWERS),
    (|answers| last(answers).shares[0].push(0), NOT_ANSWERS),
    (|answers| last(answers).numbers[0] = 4, NOT_ANSWERS),
    (
        |answers| last(answers).shares[0].iter_mut().for_each(|it| *it ^= 0x55),
        ClientError::Metadata,
    ),
];

const NOT_ANSWERS: ClientError = ClientError::Answers(NoBlock::NotAnswers);

fn last(answers: &mut [Answers<u8>]) -> &mut Answers<u8> {
    answers.last_mut().unwrap()
}

#[test]
fn answers_that_are_none_end_the_client() {
    for (spoil, expected) in SPOILED {
        for seed in 0..5 {
            let mut world = world(seed);
            for address in 0..20 {
                world.access(address, Some(&[1; BLOCK]));
            }
            let (spoilt, honest) = (spoil, world.servers.spoil);
            world.servers.spoil = spoilt;
            assert_eq!(world.refusal(3, None), expected);
            // It may be half done, so nothing is done after it.
            world.servers.spoil = honest;
            let trips = world.servers.trips;
            assert_eq!(world.refusal(4, None), ClientError::Broken);
            assert_eq!(world.servers.trips, trips);
        }
    }
}

/// A server that was set back says what was there before: the client misses its block.
#[test]
fn a_block_that_is_not_where_it_has_to_be_is_missed() {
    let parties = Parties::new(3, 1).unwrap();
    let levels = levels::<Gf256>(50, PRESET, 8, 50);
    let mut world = World::<Gf256>::new(parties, levels.clone(), 3);
    world.access(7, Some(&[7; BLOCK]));
    let mut others = InProcess::<Gf256>::new(parties, &levels, &mut world.coins).unwrap();
    let mut coins = StdRng::seed_from_u64(4);
    let found = world.client.access(7, None, &mut others, &mut coins);
    assert_eq!(found.unwrap_err(), AccessError::Client(ClientError::Metadata));
}

fn share(elements: usize) -> Share<u8> {
    Share::Computed(vec![1; elements])
}

#[test]
fn servers_refuse_what_is_out_of_order() {
    let parties = Parties::new(3, 1).unwrap();
    let tree = Tree::new(2, Preset { slots: 4, accesses: 2 }).unwrap();
    for (number, slot, metadata) in [(0, 9, 2), (4, 9, 2), (1, 2, 2), (1, 0, 0)] {
        assert!(Server::<Gf256>::with_metadata(number, parties, tree, slot, metadata).is_err());
    }
    let mut server = Server::<Gf256>::with_metadata(1, parties, tree, 9, 2).unwrap();
    assert!(server.metadata(Leaf(4)).is_err() && server.metadata(Leaf(u64::MAX)).is_err());
    assert_eq!(server.metadata(Leaf(3)).unwrap(), [0; 3 * 4 * 2]);
    let write = |slot, elements| RootWrite { slot, block: share(elements) };
    let select = || Select { leaf: Leaf(2), query: share(12) };
    assert!(server.write(write(0, 9)).is_err(), "nothing was selected");
    server.select(select()).unwrap();
    assert!(server.write(write(0, 8)).is_err());
    server.write(write(0, 9)).unwrap();
    assert!(server.write(write(1, 9)).is_err(), "what was selected is written back once");
    // A query that is no query takes nothing.
    assert!(server.select(Select { leaf: Leaf(2), query: share(11) }).is_err());
    assert!(server.write(write(1, 9)).is_err());
    server.select(select()).unwrap();
    server.write(write(1, 9)).unwrap();
    // The mark of the first block: one that was written, and one that was added.
    assert_eq!(server.metadata(Leaf(0)).unwrap()[..4], [1, 0, 1, 1]);
    let evict = Evict { number: 0, attempt: 1, matrices: vec![share(32); 3] };
    server.begin_eviction(evict).unwrap();
    assert!(server.metadata(Leaf(0)).is_err(), "in the middle of an eviction");
}

#[test]
fn servers_in_one_process_refuse_messages_that_are_not_for_all() {
    let parties = Parties::new(3, 1).unwrap();
    let levels = levels::<Gf256>(50, PRESET, 8, 2);
    let mut servers =
        InProcess::<Gf256>::new(parties, &levels, &mut StdRng::seed_from_u64(1)).unwrap();
    let metadata = |tree| Asked { tree, ask: Ask::Metadata(Leaf(0)) };
    assert!(servers.trip(vec![metadata(0), metadata(levels.count() - 1)]).is_ok());
    for asked in [
        metadata(levels.count()),
        Asked { tree: 0, ask: Ask::Select(Vec::new()) },
        Asked { tree: 0, ask: Ask::Write(Vec::new()) },
        Asked { tree: 0, ask: Ask::Evict(Vec::new()) },
    ] {
        assert!(matches!(servers.trip(vec![asked]), Err(AccessError::Refused(_))));
    }
}
