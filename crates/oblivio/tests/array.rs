//! Arrays as programs use them, with each scheme and each position map.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::sync::{Arc, Mutex};
use std::thread;

use oblivio::oblivio_core::view::Operation;
use oblivio::oblivio_core::{Access, MemoryStore, Op, StoreError, StoreErrorKind};
use oblivio::{Array, ArrayOptions, ErrorKind, Positions, Scheme};
use oblivio_testkit::{Call, Faulty, Rule};

const CAPACITY: u64 = 500;
const BYTES: usize = 64;

fn each() -> Vec<ArrayOptions> {
    let schemes = [Scheme::Raw, Scheme::Path];
    let placed = schemes.into_iter().flat_map(|scheme| {
        let options = ArrayOptions::new(CAPACITY, BYTES).with_scheme(scheme);
        [Positions::OnClient, Positions::InTree]
            .map(|positions| options.clone().with_positions(positions))
    });
    placed.flat_map(|options| [options.clone(), options.unauthenticated()]).collect()
}

#[test]
fn each_kind_holds_what_was_written() {
    for options in each() {
        let mut array = options.in_memory().unwrap();
        assert_eq!((array.capacity(), array.block_bytes()), (CAPACITY, BYTES));
        for round in 0..3u8 {
            for address in 0..CAPACITY {
                array.write(address, &[address as u8 ^ round; BYTES]).unwrap();
                array.update(CAPACITY - 1 - address, |block| block[7] = round).unwrap();
            }
        }
        array.dummy().unwrap();
        array.background_evict().unwrap();
        for address in 0..CAPACITY {
            let mut block = [0; BYTES];
            array.read(address, &mut block).unwrap();
            assert_eq!(block[0], address as u8 ^ 2, "{options:?}: {address}");
        }
    }
}

#[test]
fn a_batch_of_any_length_is_served_in_its_order_or_refused_as_a_whole() {
    for options in each() {
        let mut array = options.in_memory().unwrap();
        let (old, new) = ([1; BYTES], [2; BYTES]);
        let mut batch: Vec<_> = (0..300)
            .map(|i| Access { address: i % 200, op: Op::Write(if i < 200 { &old } else { &new }) })
            .collect();
        array.access(&mut batch).unwrap();
        let refused = [
            Access { address: 0, op: Op::Write(&[3; BYTES]) },
            Access { address: CAPACITY, op: Op::Write(&[3; BYTES]) },
        ];
        let error = array.access(&mut { refused }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert_eq!(array.write(1, &[3; BYTES - 1]).unwrap_err().kind(), ErrorKind::Input);
        for (address, expected) in [(0, 2), (99, 2), (100, 1), (199, 1), (200, 0)] {
            let mut block = [9; BYTES];
            array.read(address, &mut block).unwrap();
            assert_eq!(block, [expected; BYTES], "{options:?}: {address}");
        }
    }
}

#[test]
fn impossible_options_are_refused_with_an_input_error() {
    for (capacity, bytes) in [(0, 64), (u64::MAX, 64), (10, 0), (10, 15), (10, usize::MAX)] {
        for positions in [Positions::OnClient, Positions::InTree] {
            let options = ArrayOptions::new(capacity, bytes).with_positions(positions);
            for options in [options.clone(), options.unauthenticated()] {
                let error = options.in_memory().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Input, "{options:?}: {error}");
            }
        }
    }
    assert!(Array::in_memory(1, 16).is_ok());
}

/// The behavior of storage that a test requests.
#[derive(Default)]
struct StoreBehavior {
    fails: Option<StoreErrorKind>,
    fails_to_flush: bool,
    flushes: u64,
    lies: bool,
}

/// Storage that fails or lies as a test requests.
type Lying = Faulty<MemoryStore, BehaviorRule>;

struct BehaviorRule(Arc<Mutex<StoreBehavior>>);

impl Rule<MemoryStore> for BehaviorRule {
    fn handle(&mut self, store: &mut MemoryStore, call: &mut Call<'_>) -> Result<(), StoreError> {
        let mut behavior = self.0.lock().unwrap();
        match call.operation {
            Operation::Read => {
                if let Some(kind) = behavior.fails {
                    return Err(StoreError::new(kind, "storage does not answer"));
                }
                if behavior.lies {
                    // Flip a bit of every slot.
                    store.contents_mut().iter_mut().step_by(16).for_each(|byte| *byte ^= 1);
                }
            }
            Operation::Flush if behavior.fails_to_flush => {
                return Err(StoreError::new(StoreErrorKind::Full, "there is no room"));
            }
            Operation::Flush => behavior.flushes += 1,
            _ => {}
        }
        call.forward(store)
    }
}

/// An array whose blocks are all written, and the behavior of its storage, which a test can change.
fn lying(options: &ArrayOptions) -> (Array, Arc<Mutex<StoreBehavior>>) {
    let behavior: Arc<Mutex<StoreBehavior>> = Arc::default();
    let of_store = behavior.clone();
    let mut array = options
        .on(|shape| {
            let store = MemoryStore::new(&[shape], MemoryStore::default_layout())?;
            Ok(Faulty::new(store, BehaviorRule(of_store)))
        })
        .unwrap();
    for address in 0..CAPACITY {
        array.write(address, &[1; BYTES]).unwrap();
    }
    (array, behavior)
}

#[test]
fn tampering_is_detected_by_an_authenticated_array() {
    for scheme in [Scheme::Raw, Scheme::Path] {
        let options = ArrayOptions::new(CAPACITY, BYTES).with_scheme(scheme);
        let (mut array, behavior) = lying(&options);
        behavior.lock().unwrap().lies = true;
        let found = (0..CAPACITY).find_map(|at| array.read(at, &mut [0; BYTES]).err());
        assert_eq!(found.unwrap().kind(), ErrorKind::Tampered);
        assert_eq!(array.read(0, &mut [0; BYTES]).unwrap_err().kind(), ErrorKind::Failed);
    }
}

#[test]
fn the_kind_of_a_storage_error_is_passed_on() {
    let kinds = [
        (StoreErrorKind::Unreachable, ErrorKind::Unreachable),
        (StoreErrorKind::Full, ErrorKind::NoSpace),
        (StoreErrorKind::Fenced, ErrorKind::Locked),
        (StoreErrorKind::Damaged, ErrorKind::Tampered),
        (StoreErrorKind::UnknownVersion, ErrorKind::UnknownVersion),
        (StoreErrorKind::Failed, ErrorKind::Failed),
    ];
    for (store_kind, expected) in kinds {
        let (mut array, behavior) = lying(&ArrayOptions::new(CAPACITY, BYTES));
        behavior.lock().unwrap().fails = Some(store_kind);
        let error = (0..CAPACITY).find_map(|at| array.read(at, &mut [0; BYTES]).err()).unwrap();
        assert_eq!(error.kind(), expected, "{error}");
    }
}

#[test]
fn storage_is_flushed_on_request_only() {
    for options in each() {
        let (mut array, behavior) = lying(&options);
        assert_eq!(behavior.lock().unwrap().flushes, 0);
        array.flush().unwrap();
        assert_eq!(behavior.lock().unwrap().flushes, 1, "{options:?}");
        array.read(0, &mut [0; BYTES]).unwrap();
        assert_eq!(behavior.lock().unwrap().flushes, 1, "{options:?}");
    }
}

#[test]
fn an_array_whose_storage_was_not_flushed_answers_nothing_more() {
    for options in each() {
        let (mut array, behavior) = lying(&options);
        behavior.lock().unwrap().fails_to_flush = true;
        assert_eq!(array.flush().unwrap_err().kind(), ErrorKind::NoSpace, "{options:?}");
        behavior.lock().unwrap().fails_to_flush = false;
        let after = [
            array.read(0, &mut [0; BYTES]),
            array.write(0, &[0; BYTES]),
            array.dummy(),
            array.background_evict(),
            array.flush(),
        ];
        for answer in after {
            assert_eq!(answer.unwrap_err().kind(), ErrorKind::Failed, "{options:?}");
        }
        assert_eq!(behavior.lock().unwrap().flushes, 0);
    }
}

#[test]
fn the_store_is_handed_back_with_its_type_and_holds_no_plaintext() {
    for options in each() {
        let (array, behavior) = lying(&options);
        behavior.lock().unwrap().flushes = 7;
        let mut array = array.into_store::<MemoryStore>().err().unwrap();
        let mut block = [0; BYTES];
        array.read(42, &mut block).unwrap();
        assert_eq!(block, [1; BYTES], "a wrong type must change nothing: {options:?}");
        let store: Lying = array.into_store().unwrap();
        assert_eq!(store.rule.0.lock().unwrap().flushes, 7);
        let contents = store.store.contents();
        assert!(contents.iter().any(|byte| *byte != 0), "{options:?}");
        assert!(!contents.windows(16).any(|part| part == [1; 16]), "{options:?}");
    }
}

#[test]
fn an_array_moves_to_another_thread() {
    let mut array = ArrayOptions::new(100, 16).in_memory().unwrap();
    let mut block = [0; 16];
    thread::scope(|scope| {
        let buffer = &mut block;
        scope.spawn(move || {
            array.write(7, &[42; 16]).unwrap();
            array.read(7, buffer).unwrap();
        });
    });
    assert_eq!(block, [42; 16]);
}
