//! Serves requests on any combination, and makes room when its stash is full.

use std::cell::Cell;
use std::ops::Range;

use oblivio_core::view::Event;
use oblivio_core::{Access, Error, ErrorKind, HitPolicy, Op};
use oblivio_testkit::workload;

use super::build::{BLOCK_BYTES, CAPACITY, Log, compose};
use super::composed::Composed;
use super::factors::{Bound, Combination, Requests, Scheme};

/// The lengths of batches, used cyclically.
const BATCHES: [usize; 6] = [1, 7, 2, 16, 1, 70];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Read,
    Write,
    Update,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) address: u64,
    pub(crate) kind: RequestKind,
    /// The fill byte of a write, or the mask of an update.
    pub(crate) fill: u8,
}

impl Request {
    fn apply(&self, block: &mut [u8]) {
        match self.kind {
            RequestKind::Read => {}
            RequestKind::Write => block.fill(self.fill),
            RequestKind::Update => block.iter_mut().for_each(|byte| *byte ^= self.fill),
        }
    }
}

/// A running ORAM, and the plain array that it should equal.
pub(crate) struct GridOram {
    combination: Combination,
    pub(crate) composed: Box<dyn Composed>,
    log: Log,
    array: Vec<[u8; BLOCK_BYTES]>,
    /// Number of requests served so far.
    pub(crate) requests: u64,
    /// Number of requests that a call of `serve_on_client` served.
    pub(crate) found_on_client: u64,
    /// Number of calls of `make_room`.
    pub(crate) room_made: u64,
}

impl GridOram {
    pub(crate) fn new(combination: &Combination, seed: u64) -> Self {
        let (composed, log) = compose(combination, seed).unwrap_or_else(|error| {
            panic!("the engine refuses {combination:?}: {error}");
        });
        let array = vec![[0; BLOCK_BYTES]; CAPACITY as usize];
        Self {
            combination: *combination,
            composed,
            log,
            array,
            requests: 0,
            found_on_client: 0,
            room_made: 0,
        }
    }

    /// Serves all `requests`, in batches if the combination has them, and compares each answer with
    /// the array.
    pub(crate) fn serve_all(&mut self, requests: &[Request]) {
        let mut rest = requests;
        for length in BATCHES.into_iter().cycle() {
            let length = match self.combination.requests {
                Requests::Single => 1,
                Requests::Batches => length.min(rest.len()),
            };
            if rest.is_empty() {
                return;
            }
            let (batch, after) = rest.split_at(length);
            self.serve(batch);
            rest = after;
        }
    }

    fn serve(&mut self, batch: &[Request]) {
        let mut served = 0;
        while served < batch.len() {
            let (now, outcome) = self.try_to_serve(&batch[served..]);
            served += now;
            if let Err(error) = outcome {
                self.make_room(&error);
            }
        }
    }

    /// Tries to serve a batch. Returns the number of its requests that took effect, and the result.
    fn try_to_serve(&mut self, batch: &[Request]) -> (usize, Result<(), Error>) {
        let mut expected = self.array.clone();
        let served = Cell::new(0);
        let mut reads = vec![[0xA5; BLOCK_BYTES]; batch.len()];
        let fills: Vec<_> = batch.iter().map(|request| [request.fill; BLOCK_BYTES]).collect();
        let mut seen = vec![[0; BLOCK_BYTES]; batch.len()];
        let mut updates: Vec<_> = batch
            .iter()
            .zip(&mut seen)
            .map(|(request, seen)| {
                |block: &mut [u8]| {
                    seen.copy_from_slice(block);
                    request.apply(block);
                    served.set(served.get() + 1);
                }
            })
            .collect();
        // Only an update tells whether it was served. So if a batch can be refused half way, all
        // requests are updates, and some of them change nothing.
        let as_updates = self.combination.bound == Bound::Tight && batch.len() > 1;
        let accesses = batch.iter().zip(&mut reads).zip(&fills).zip(&mut updates);
        let mut accesses: Vec<_> = accesses
            .map(|(((request, read), fill), update)| Access {
                address: request.address,
                op: match request.kind {
                    RequestKind::Read if !as_updates => Op::Read(read),
                    RequestKind::Write if !as_updates => Op::Write(fill),
                    _ => Op::Update(update),
                },
            })
            .collect();
        let outcome = match (self.tries_client_first(), &mut accesses[..]) {
            (true, [Access { address, op }]) => {
                let found = self.composed.serve_on_client(*address, op);
                self.found_on_client += u64::from(matches!(found, Ok(true)));
                match found {
                    Ok(true) => Ok(()),
                    Ok(false) => self.composed.oram().access(&mut accesses),
                    Err(error) => Err(error),
                }
            }
            _ => self.composed.oram().access(&mut accesses),
        };
        drop(accesses);
        drop(updates);
        let served = match &outcome {
            Ok(()) => batch.len(),
            Err(_) => served.get(),
        };
        for ((request, read), seen) in batch.iter().zip(&reads).zip(&seen).take(served) {
            let held = &mut expected[request.address as usize];
            let answer = match request.kind {
                RequestKind::Read if !as_updates => Some(read),
                RequestKind::Write if !as_updates => None,
                _ => Some(seen),
            };
            assert!(
                answer.is_none_or(|answer| answer == held),
                "wrong answer to {request:?}, {:?}",
                self.combination
            );
            request.apply(held);
        }
        self.array = expected;
        self.requests += served as u64;
        (served, outcome)
    }

    fn tries_client_first(&self) -> bool {
        (self.combination.scheme, self.combination.hits) == (Scheme::Rotating, HitPolicy::Serve)
    }

    #[track_caller]
    fn make_room(&mut self, refused: &Error) {
        assert_eq!(refused.kind(), ErrorKind::StashFull, "{refused}, {:?}", self.combination);
        assert_eq!(self.combination.bound, Bound::Tight, "{:?}", self.combination);
        self.composed.make_room().unwrap();
        self.room_made += 1;
        assert!(self.room_made < 200_000, "no eviction makes room, {:?}", self.combination);
    }

    /// Forgets blocks. Returns whether the ORAM supports it.
    pub(crate) fn forget(&mut self, range: Range<u64>) -> bool {
        loop {
            match self.composed.forget(range.clone()) {
                Ok(true) => {
                    let blocks = &mut self.array[range.start as usize..range.end as usize];
                    blocks.fill([0; BLOCK_BYTES]);
                    return true;
                }
                Ok(false) => return false,
                Err(error) => self.make_room(&error),
            }
        }
    }

    /// Moves the blocks that a component in front of the ORAM holds, such as a cache, to the ORAM.
    pub(crate) fn flush(&mut self) {
        while let Err(error) = self.composed.flush() {
            self.make_room(&error);
        }
    }

    /// The view since the previous call.
    pub(crate) fn take_view(&self) -> Vec<Event> {
        self.log.take()
    }
}

/// The requests of a workload, with the data that they write.
pub(crate) fn requests(
    workload: workload::Workload,
    seed: u64,
    kinds: impl Fn(usize, bool) -> RequestKind,
) -> impl Iterator<Item = Request> {
    workload.requests(CAPACITY, seed).enumerate().map(move |(i, request)| Request {
        address: request.address,
        kind: kinds(i, request.is_write),
        fill: (i as u8).wrapping_mul(37) ^ seed as u8 | 1,
    })
}
