//! What storage sees of a store over objects follows from the calls of the store alone.

use std::thread;
use std::time::Duration;

use oblivio_core::store::{BucketStore, Piece, SealedByClient};
use oblivio_store::objects::memory::{MemoryService, Request};
use oblivio_store::objects::{ObjectName, Prefix};
use oblivio_store::{PackedMode, PackedStore};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::world::{bucket_bytes, eviction, options, piece, shapes};

/// A call of a store. Its pieces are what a bucket server would see as well.
#[derive(Clone, Debug)]
enum Call {
    Prefetch(Vec<Piece>),
    Read(Vec<Piece>),
    Write(Vec<Piece>),
    Flush,
    Reopen,
}

/// How a run differs from another one with the same calls.
#[derive(Clone, Copy)]
struct Run {
    /// Chooses the order in which requests run, and the data.
    seed: u64,
    data: Data,
    is_slow: bool,
}

#[derive(Clone, Copy)]
enum Data {
    Random,
    Zeros,
    /// Each bucket gets the data that it has.
    Unchanged,
}

/// The calls of a client that reads paths, evicts, and flushes at times.
fn calls(seed: u64, count: usize) -> Vec<Call> {
    let mut coins = StdRng::seed_from_u64(seed);
    let (mut calls, mut evictions) = (Vec::new(), 0);
    for _ in 0..count {
        match coins.random_range(0..12) {
            0 => calls.push(Call::Flush),
            1 => calls.push(Call::Write(vec![piece(0, 1, coins.random_range(0..2))])),
            2 => calls.push(Call::Read(vec![piece(0, 1, 0), piece(0, 1, 1)])),
            // After a crash, which chunks exist depends on the service.
            3 if coins.random_range(0..4) == 0 => calls.extend([Call::Flush, Call::Reopen]),
            3..8 => {
                let path = eviction(coins.random_range(0..40));
                if coins.random() {
                    calls.push(Call::Prefetch(path.clone()));
                }
                calls.push(Call::Read(path));
            }
            _ => {
                calls.push(Call::Write(eviction(evictions)));
                evictions += 1;
            }
        }
    }
    calls
}

/// Makes `calls` and returns the requests of each.
fn requests(calls: &[Call], run: Run) -> Vec<Vec<Request>> {
    let service = MemoryService::new(run.seed);
    let mut coins = StdRng::seed_from_u64(run.seed);
    let client = Box::new(service.client());
    let mut store = PackedStore::create(client, &shapes(), &options(false)).unwrap();
    service.take_log();
    let mut log = Vec::new();
    for call in calls {
        if run.is_slow {
            thread::sleep(Duration::from_micros(300));
        }
        match call {
            Call::Prefetch(pieces) => store.prefetch(pieces),
            Call::Read(pieces) => drop(store.read(pieces).unwrap()),
            Call::Write(pieces) => {
                let mut bytes = Vec::new();
                for piece in pieces {
                    let length = bucket_bytes(piece);
                    bytes.extend((0..length).map(|_| match run.data {
                        Data::Random => coins.random(),
                        Data::Zeros => 0,
                        Data::Unchanged => piece.bucket.index() as u8,
                    }));
                }
                let sealed = SealedByClient::new(&bytes);
                store.write(pieces, &mut |blanks| sealed.put(blanks)).unwrap();
            }
            Call::Flush => store.flush().unwrap(),
            Call::Reopen => {
                drop(store);
                let client = Box::new(service.client());
                store = PackedStore::open(client, PackedMode::Write, &options(false)).unwrap().0;
            }
        }
        log.push(service.take_log());
    }
    log
}

/// Runs with other data, another order of answers, and pauses between calls make the same requests.
#[test]
fn requests_follow_from_the_calls() {
    for seed in 0..20 {
        let calls = calls(seed, 300);
        let run = Run { seed: 1, data: Data::Random, is_slow: false };
        let expected = requests(&calls, run);
        let others = [
            Run { seed: 2, ..run },
            Run { data: Data::Zeros, ..run },
            Run { data: Data::Unchanged, ..run },
            Run { is_slow: seed == 0, ..run },
        ];
        for (which, other) in others.into_iter().enumerate() {
            let found = requests(&calls, other);
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_eq!(found, expected, "run {which}, seed {seed}, call {i}: {:?}", calls[i]);
            }
        }
    }
}

/// Each call makes only the requests that it must make.
#[test]
fn calls_make_no_other_requests_than_stated() {
    let calls = calls(7, 3000);
    let run = Run { seed: 1, data: Data::Random, is_slow: false };
    let (mut created, mut heads) = (0, 0);
    for (call, requests) in calls.iter().zip(requests(&calls, run)) {
        match call {
            Call::Prefetch(pieces) | Call::Read(pieces) => {
                let is_read = matches!(call, Call::Read(_));
                let small = pieces.iter().filter(|piece| piece.tree.0 == 0).count();
                let listings = requests.iter().filter(|it| matches!(it, Request::List(..)));
                assert_eq!(listings.count(), usize::from(is_read && small > 0));
                let needed: usize = pieces.iter().map(bucket_bytes).sum();
                let mut read = 0;
                for request in &requests {
                    match request {
                        Request::Get(ObjectName::Chunk { .. }, range) => {
                            read += (range.end - range.start) as usize;
                        }
                        Request::List(Prefix::Heads, Some(_)) => {}
                        other => panic!("{call:?} made {other:?}"),
                    }
                }
                assert!(read <= needed, "{call:?} read {read} bytes: {requests:?}");
            }
            Call::Write(_) => {
                for request in &requests {
                    match request {
                        Request::Create(ObjectName::Chunk { .. }, _) => created += 1,
                        other => panic!("{call:?} made {other:?}"),
                    }
                }
            }
            Call::Flush => {
                let mut kinds = requests.iter().map(|request| match request {
                    Request::Create(ObjectName::Tail { .. }, _) => 0,
                    Request::Sync => 1,
                    Request::Create(ObjectName::Head(_), _) => 2,
                    Request::Delete(_) => 3,
                    other => panic!("a flush made {other:?}"),
                });
                heads += usize::from(
                    requests.iter().any(|it| matches!(it, Request::Create(ObjectName::Head(_), _))),
                );
                let mut latest = 0;
                assert!(
                    kinds.all(|kind| {
                        let is_in_order = kind >= latest || (kind, latest) == (1, 2);
                        latest = kind.max(latest);
                        is_in_order
                    }),
                    "{requests:?}"
                );
            }
            Call::Reopen => {}
        }
    }
    assert!(created > 300 && heads > 100, "{created} chunks, {heads} heads");
}
