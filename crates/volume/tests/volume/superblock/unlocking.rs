//! Unlocking: the order of its steps, and what storage sees.

use std::cell::RefCell;
use std::rc::Rc;

use oblivio_core::view::{Event, EventSink, Operation, Recorder};
use oblivio_core::{LayoutKind, MemoryStore};
use oblivio_volume::keys::{Secret, UnlockLimits};
use oblivio_volume::superblock::copies::{COPIES, shape, write_copies};
use oblivio_volume::superblock::{SuperblockErrorKind as Kind, Unlocked};
use oblivio_volume::unlock::{NewerCopies, UnlockError, read_public, unlock};

use super::{key_file, kind, passphrase, superblock};

/// The events that storage has seen so far.
#[derive(Clone, Default)]
struct View(Rc<RefCell<Vec<Event>>>);

impl View {
    fn seen(&self) -> Vec<Event> {
        self.0.borrow().clone()
    }
}

impl EventSink for View {
    fn record(&mut self, event: &Event, _: &[u8]) {
        self.0.borrow_mut().push(*event);
    }
}

/// A store that was made for a volume and holds no superblock.
fn empty() -> MemoryStore {
    MemoryStore::new(&vec![shape(); 4], LayoutKind::Heap).unwrap()
}

fn with_superblock() -> MemoryStore {
    let mut store = empty();
    write_copies(&mut store, &superblock()).unwrap();
    store
}

/// Unlocks with `secret`. Also returns what storage saw before the secret was requested, and in
/// total.
fn unlock_with(
    secret: Secret,
    limits: UnlockLimits,
) -> (Result<Unlocked, UnlockError<()>>, Vec<Event>, Vec<Event>) {
    let view = View::default();
    let mut store = Recorder::new(with_superblock(), view.clone());
    let mut before = None;
    let outcome = unlock(
        &mut store,
        limits,
        NewerCopies::Refuse,
        None,
        |_| None,
        || {
            before = Some(view.seen());
            Ok(secret)
        },
    );
    (outcome, before.expect("the secret was requested"), view.seen())
}

#[test]
fn storage_shows_each_copy_once_before_the_secret_is_asked_for_and_nothing_after_it() {
    let all = UnlockLimits::default();
    let one = |slot| UnlockLimits { slot: Some(slot), ..all };
    let too_little = UnlockLimits { memory_kib_max: 0, ..all };
    let cases = [
        (key_file(1), all, Ok(1)),
        (passphrase("correct horse"), all, Ok(0)),
        (key_file(1), one(1), Ok(1)),
        (key_file(2), all, Err(Kind::WrongKey)),
        (passphrase("another horse"), all, Err(Kind::WrongKey)),
        (passphrase("correct horse"), too_little, Err(Kind::TooCostly)),
        (key_file(1), one(7), Err(Kind::InvalidRequest)),
    ];
    for (secret, limits, expected) in cases {
        let (outcome, before, seen) = unlock_with(secret, limits);
        let outcome = match outcome {
            Ok(owner) => Ok(owner.slot),
            Err(UnlockError::NotUnlocked(error)) => Err(error.kind()),
            Err(error) => panic!("{error:?}"),
        };
        assert_eq!(outcome, expected);
        assert_eq!(before, seen, "{expected:?}: the secret changed what storage sees");
        assert!(seen.iter().all(|event| event.operation == Operation::Read));
        let mut places: Vec<_> = seen.iter().map(|event| event.piece.unwrap()).collect();
        places.dedup();
        assert_eq!(places.len(), COPIES, "{seen:?}");
    }
}

#[test]
fn no_secret_is_requested_if_storage_shows_no_superblock() {
    let secret = || -> Result<Secret, ()> { panic!("a secret was requested") };
    let limits = UnlockLimits::default();
    match unlock(&mut empty(), limits, NewerCopies::Refuse, None, |_| None, secret) {
        Err(UnlockError::NoSuperblock(error)) => assert_eq!(error.kind(), Kind::NotAVolume),
        other => panic!("{other:?}"),
    }
    assert_eq!(kind(read_public(&mut empty())), Kind::NotAVolume);
}

#[test]
fn the_error_of_the_secret_source_is_returned() {
    let outcome = unlock(
        &mut with_superblock(),
        UnlockLimits::default(),
        NewerCopies::Refuse,
        None,
        |_| None,
        || Err("it was forgotten"),
    );
    assert!(matches!(outcome, Err(UnlockError::NoSecret("it was forgotten"))), "{outcome:?}");
}

#[test]
fn anyone_can_look_at_what_stands_in_clear() {
    let view = View::default();
    let locked = read_public(&mut Recorder::new(with_superblock(), view.clone())).unwrap();
    assert_eq!(locked.encode(), superblock().encode());
    assert_eq!(view.seen().len(), COPIES);
}
