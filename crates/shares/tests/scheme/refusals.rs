//! Tests that servers and client refuse requests that are out of order, and that a refusal changes
//! nothing.

use oblivio_core::{BucketId, Leaf};
use oblivio_shares::answers::DecodeError;
use oblivio_shares::client::{Client, ClientError};
use oblivio_shares::field::{Gf256, Mersenne61};
use oblivio_shares::message::{DealtShares, Evict, RootWrite, Select, Slots};
use oblivio_shares::server::{Epoch, Server, Stage};
use oblivio_shares::sharing::{Parties, Share};
use oblivio_shares::tree::{Preset, Tree};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// The numbers of field elements of a block, a query, a matrix and a bucket.
const BLOCK: usize = 3;
const PATH: usize = 12;
const MATRIX: usize = 32;
const BUCKET: usize = 12;

fn parties() -> Parties {
    Parties::new(3, 1).unwrap()
}

fn tree() -> Tree {
    Tree::new(2, Preset { slots: 4, accesses: 2 }).unwrap()
}

fn coins() -> StdRng {
    StdRng::seed_from_u64(1)
}

fn share(elements: usize) -> Share<u8> {
    Share::Computed(vec![1; elements])
}

fn select(leaf: u64, elements: usize) -> Select<u8> {
    Select { leaf: Leaf(leaf), query: share(elements) }
}

fn write(slot: usize, elements: usize) -> RootWrite<u8> {
    RootWrite { slot, block: share(elements) }
}

fn evict(number: u64, matrices: usize, elements: usize) -> Evict<u8> {
    Evict { number, attempt: 1, matrices: vec![share(elements); matrices] }
}

fn dealt(level: u8, buckets: usize, elements: usize) -> DealtShares<u8> {
    DealtShares { number: 0, attempt: 1, tile: 0, level, shares: vec![share(elements); buckets] }
}

#[test]
fn servers_refuse_what_is_out_of_order() {
    let server = |number| Server::<Gf256>::new(number, parties(), tree(), BLOCK);
    assert!(server(0).is_err() && server(4).is_err());
    let mut server = server(1).unwrap();
    for (leaf, elements) in [(4, PATH), (u64::MAX, PATH), (0, PATH - 1), (0, PATH + 1), (0, 0)] {
        assert!(server.select(select(leaf, elements)).is_err(), "{leaf}, {elements}");
    }
    let out_of_order = [(1, BLOCK), (usize::MAX, BLOCK), (0, BLOCK - 1), (0, BLOCK + 1), (0, 0)];
    for (slot, elements) in out_of_order {
        assert!(server.write(write(slot, elements)).is_err(), "{slot}, {elements}");
    }
    server.write(write(0, BLOCK)).unwrap();
    server.write(write(1, BLOCK)).unwrap();
    assert!(server.write(write(2, BLOCK)).is_err(), "the root must be evicted first");
    let before = server.select(select(0, PATH)).unwrap();
    assert!(server.deal(&mut coins()).is_err() && server.reduce(&[1, 2, 3], vec![]).is_err());
    for (number, matrices, elements) in
        [(1, 3, MATRIX), (0, 2, MATRIX), (0, 4, MATRIX), (0, 3, MATRIX - 1), (0, 3, MATRIX + 1)]
    {
        assert!(server.begin_eviction(evict(number, matrices, elements)).is_err());
    }
    assert_eq!(server.select(select(0, PATH)).unwrap(), before);
    server.begin_eviction(evict(0, 3, MATRIX)).unwrap();
    assert!(server.select(select(0, PATH)).is_err() && server.write(write(0, BLOCK)).is_err());
    assert!(server.begin_eviction(evict(0, 3, MATRIX)).is_err());
    let right = || dealt(1, 1, BUCKET);
    let of_other_eviction = DealtShares { number: 1, ..right() };
    let of_other_attempt = DealtShares { attempt: 2, ..right() };
    for (dealers, dealt) in [
        (&[1, 2][..], vec![right(); 2]),
        (&[1, 2, 3], vec![right(); 2]),
        (&[1, 2, 2], vec![right(); 3]),
        (&[1, 2, 4], vec![right(); 3]),
        (&[0, 1, 2], vec![right(); 3]),
        (&[1, 2, 3], vec![dealt(1, 0, BUCKET); 3]),
        (&[1, 2, 3], vec![dealt(1, 2, BUCKET); 3]),
        (&[1, 2, 3], vec![right(), right(), dealt(1, 1, BUCKET + 1)]),
        (&[1, 2, 3], vec![right(), right(), dealt(2, 1, BUCKET)]),
        (&[1, 2, 3], vec![right(), of_other_eviction, right()]),
        (&[1, 2, 3], vec![of_other_attempt, right(), right()]),
        (&[], vec![]),
    ] {
        assert!(server.reduce(dealers, dealt).is_err(), "{dealers:?}");
    }
    assert_eq!(server.reduce(&[1, 2, 3], vec![right(); 3]), Ok(false));
    // Shares of one round are invalid in the next.
    assert!(server.reduce(&[1, 2, 3], vec![right(); 3]).is_err());
    assert!(server.commit(1).is_err());
    assert_eq!(server.reduce(&[3, 1, 2], vec![dealt(2, 2, BUCKET); 3]), Ok(true));
    assert_eq!(server.epoch(), Epoch { evictions: 1, written: 0, stage: Stage::Over });
    assert!(server.select(select(0, PATH)).is_err() && server.write(write(0, BLOCK)).is_err());
    assert!(server.commit(0).is_err() && server.commit(2).is_err());
    server.commit(1).unwrap();
    server.write(write(0, BLOCK)).unwrap();
}

#[test]
fn data_is_put_into_new_trees_alone() {
    let slots = |bucket, first, count| Slots { bucket: BucketId(bucket), first, count };
    let mut server = Server::<Gf256>::new(1, parties(), tree(), BLOCK).unwrap();
    server.load(slots(3, 0, 4), share(BUCKET)).unwrap();
    server.load(slots(6, 3, 1), share(BLOCK)).unwrap();
    for (bucket, first, count, elements) in [
        (0, 0, 4, BUCKET),
        (2, 0, 4, BUCKET),
        (7, 0, 4, BUCKET),
        (u64::MAX, 0, 4, BUCKET),
        (3, 0, 4, BUCKET + 1),
        (3, 0, 4, BUCKET - BLOCK),
        (3, 1, 4, BUCKET),
        (3, usize::MAX, 1, BLOCK),
    ] {
        let refused = server.load(slots(bucket, first, count), share(elements));
        assert!(refused.is_err(), "{bucket}, {first}, {count}, {elements}");
    }
    server.write(write(0, BLOCK)).unwrap();
    assert!(server.load(slots(3, 0, 4), share(BUCKET)).is_err());
    let mut client = Client::<Gf256>::new(parties(), tree(), 4, BLOCK).unwrap();
    let _ = client.select(0, &mut coins()).unwrap();
    let load = |client: &mut Client<Gf256>, seed| {
        client.load(4, &mut StdRng::seed_from_u64(seed), |_, _| Ok(true), |_, _| Ok(()))
    };
    assert_eq!(load(&mut client, 1), Err(ClientError::IsUsed));
    // Two blocks go to the same leaf, which has one slot, half of the time.
    let narrow = Tree::new(1, Preset { slots: 1, accesses: 1 }).unwrap();
    let mut client = Client::<Gf256>::new(parties(), narrow, 2, BLOCK).unwrap();
    let outcomes: Vec<_> = (0..20).map(|seed| load(&mut client, seed)).collect();
    let is_overflow =
        |outcome: &&Result<(), ClientError>| matches!(outcome, Err(ClientError::Overflow(_)));
    let overflows = outcomes.iter().take_while(is_overflow).count();
    // The tree stays new until it is loaded.
    assert!((1..10).contains(&overflows) && outcomes[overflows].is_ok());
    assert!(outcomes[overflows + 1..].iter().all(|it| *it == Err(ClientError::IsUsed)));
}

#[test]
fn what_is_no_element_of_the_field_is_refused() {
    let mut server = Server::<Mersenne61>::new(1, parties(), tree(), BLOCK).unwrap();
    let no_element = Share::Computed(vec![u64::MAX; BLOCK]);
    assert!(server.write(RootWrite { slot: 0, block: no_element }).is_err());
    let client = Client::<Mersenne61>::new(parties(), tree(), 4, 1).unwrap();
    let answers = [vec![1], vec![(1 << 61) - 1], vec![3]];
    let refused = ClientError::Answers(DecodeError::NotAnswers);
    assert_eq!(client.recover(&[1, 2, 3], &answers), Err(refused));
}

#[test]
fn a_client_refuses_what_is_out_of_order() {
    let mut coins = coins();
    assert!(Client::<Gf256>::new(parties(), tree(), 9, BLOCK).is_err());
    let mut client = Client::<Gf256>::new(parties(), tree(), 4, BLOCK).unwrap();
    assert_eq!(client.select(4, &mut coins).unwrap_err(), ClientError::NoSuchBlock);
    for address in 0..2 {
        let selected = client.select(address, &mut coins).unwrap().0;
        let refused = client.write(&selected, &[0; BLOCK + 1], &mut coins);
        assert_eq!(refused, Err(ClientError::BlockLength));
        assert!(client.write(&selected, &[0; BLOCK], &mut coins).is_ok());
    }
    assert_eq!(client.select(0, &mut coins).unwrap_err(), ClientError::MustEvict);
}

/// A selected block is written back before any other operation. Otherwise it could be selected
/// again before it has a new path, and the path of a block must be shown only once.
#[test]
fn a_block_is_written_back_before_anything_else_is_done() {
    let mut coins = coins();
    let mut client = Client::<Gf256>::new(parties(), tree(), 4, BLOCK).unwrap();
    let mut other = Client::<Gf256>::new(parties(), tree(), 4, BLOCK).unwrap();
    let (first, _) = client.select(1, &mut coins).unwrap();
    let (stray, _) = other.select(2, &mut coins).unwrap();
    for address in 0..4 {
        assert_eq!(client.select(address, &mut coins).unwrap_err(), ClientError::IsSelected);
    }
    assert_eq!(client.evict(&mut coins).unwrap_err(), ClientError::IsSelected);
    let refused = client.write(&stray, &[0; BLOCK], &mut coins);
    assert_eq!(refused, Err(ClientError::IsSelected));
    assert!(client.write(&first, &[0; BLOCK], &mut coins).is_ok());
    let refused = client.write(&first, &[0; BLOCK], &mut coins);
    assert_eq!(refused, Err(ClientError::IsSelected), "the block was already written back");
    assert!(client.select(1, &mut coins).is_ok());
}

#[test]
fn an_eviction_that_overflows_changes_nothing() {
    let mut coins = coins();
    let tree = Tree::new(5, Preset { slots: 1, accesses: 1 }).unwrap();
    let mut client = Client::<Gf256>::new(parties(), tree, 16, 1).unwrap();
    for address in (0..16).cycle().take(10_000) {
        let selected = client.select(address, &mut coins).unwrap().0;
        assert!(client.write(&selected, &[0], &mut coins).is_ok());
        let before = client.evictions();
        if let Err(error) = client.evict(&mut coins) {
            assert!(matches!(error, ClientError::Overflow(_)));
            assert_eq!(client.evictions(), before);
            assert!(client.must_evict());
            assert_eq!(client.evict(&mut coins), Err(error));
            return;
        }
    }
    panic!("buckets of one slot never overflow");
}

/// Blocks without bytes are valid, and so is an empty share.
#[test]
fn blocks_without_bytes_are_blocks() {
    let mut coins = coins();
    let mut client = Client::<Gf256>::new(parties(), tree(), 4, 0).unwrap();
    let (_, queries) = client.select(1, &mut coins).unwrap();
    let answers: Vec<_> = (1..)
        .zip(queries)
        .map(|(number, query)| {
            Server::<Gf256>::new(number, parties(), tree(), 0).unwrap().select(query).unwrap()
        })
        .collect();
    assert!(client.recover(&[1, 2, 3], &answers).unwrap().block.is_empty());
}

#[test]
fn servers_with_metadata_refuse_requests_out_of_order() {
    let (parties, tree) = (parties(), tree());
    for (number, slot, metadata) in [(0, 9, 2), (4, 9, 2), (1, 2, 2), (1, 0, 0)] {
        assert!(Server::<Gf256>::with_metadata(number, parties, tree, slot, metadata).is_err());
    }
    let mut server = Server::<Gf256>::with_metadata(1, parties, tree, 9, 2).unwrap();
    assert!(server.metadata(Leaf(4)).is_err() && server.metadata(Leaf(u64::MAX)).is_err());
    assert_eq!(server.metadata(Leaf(3)).unwrap(), [0; 3 * 4 * 2]);
    assert!(server.write(write(0, 9)).is_err(), "nothing was selected");
    server.select(select(2, PATH)).unwrap();
    assert!(server.write(write(0, 8)).is_err());
    server.write(write(0, 9)).unwrap();
    assert!(server.write(write(1, 9)).is_err(), "a selected block is written back once");
    // An invalid query takes no block.
    assert!(server.select(select(2, PATH - 1)).is_err());
    assert!(server.write(write(1, 9)).is_err());
    server.select(select(2, PATH)).unwrap();
    server.write(write(1, 9)).unwrap();
    // The mark of the first block is the written share plus the query's share.
    assert_eq!(server.metadata(Leaf(0)).unwrap()[..4], [1, 0, 1, 1]);
    let evict = Evict { number: 0, attempt: 1, matrices: vec![share(MATRIX); 3] };
    server.begin_eviction(evict).unwrap();
    assert!(server.metadata(Leaf(0)).is_err(), "an eviction is in progress");
}
