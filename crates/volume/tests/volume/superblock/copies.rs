//! The four copies of the superblock: damage, crashes, repair.

use oblivio_core::store::{Part, Piece, Span};
use oblivio_core::view::Operation;
use oblivio_core::{BucketId, BucketStore, LayoutKind, MemoryStore, StoreError, StoreErrorKind};
use oblivio_testkit::{Call, Faulty, Rule};
use oblivio_volume::keys::UnlockLimits;
use oblivio_volume::superblock::copies::{
    BACK, COPIES, FRONT, read_copies, repair, rewrite_copies, shape, write_copies,
};
use oblivio_volume::superblock::{SUPERBLOCK_BYTES, Superblock, SuperblockErrorKind as Kind};
use oblivio_volume::{VolumeError, VolumeErrorKind};

use super::{Bytes, key_file, kind, next, passphrase, superblock, with_checksum};

#[test]
fn every_layout_takes_them() {
    for layout in
        [LayoutKind::Heap, LayoutKind::Striped, LayoutKind::Subtree { unit_bytes: 64 << 10 }]
    {
        let mut store = MemoryStore::new(&vec![shape(); 4], layout).unwrap();
        assert_eq!(kind(read_copies(&mut store).newest()), Kind::NotAVolume);
        write_copies(&mut store, &superblock()).unwrap();
        assert_eq!(sequences(&mut store), [Some(2); COPIES]);
        assert_eq!(newest(&mut store), 2);
    }
}

#[test]
fn a_store_without_room_is_refused() {
    let mut store = MemoryStore::new(&[shape()], LayoutKind::Heap).unwrap();
    assert_eq!(kind(write_copies(&mut store, &superblock())), Kind::Store);
    assert_eq!(kind(repair(&mut store, &superblock())), Kind::Store);
    assert_eq!(kind(read_copies(&mut store).newest()), Kind::Store);
}

#[test]
fn any_subset_may_be_damaged_but_all() {
    for damaged in 0u8..1 << COPIES {
        let mut store = with(&superblock());
        for copy in bits(damaged) {
            bytes_of(&mut store, copy)[5000] ^= 1;
        }
        let copies = read_copies(&mut store);
        for (copy, found) in copies.each().iter().enumerate() {
            assert_eq!(found.is_err(), damaged >> copy & 1 == 1);
        }
        if damaged == 0b1111 {
            assert_eq!(kind(copies.newest()), Kind::Damaged);
            continue;
        }
        let unlocked = copies.newest().unwrap().unlock(&key_file(1)).unwrap();
        let repaired = repair(&mut store, &unlocked.superblock).unwrap();
        assert_eq!(repaired, damaged.count_ones() as usize);
        assert_eq!(sequences(&mut store), [Some(2); COPIES]);
        assert_eq!(repair(&mut store, &unlocked.superblock).unwrap(), 0);
    }
}

#[test]
fn the_newest_copy_counts_wherever_it_is() {
    for new in 1u8..1 << COPIES {
        let mut store = with(&superblock());
        let newer = next(&superblock());
        for copy in bits(new) {
            bytes_of(&mut store, copy).copy_from_slice(&newer.encode()[..]);
        }
        assert_eq!(newest(&mut store), 3);
        assert_eq!(repair(&mut store, &newer).unwrap(), COPIES - new.count_ones() as usize);
        assert_eq!(sequences(&mut store), [Some(3); COPIES]);
    }
}

/// Partly erased storage is reported as a damaged volume. A single copy of a newer program
/// outweighs three readable copies.
#[test]
fn the_worst_problem_is_reported() {
    let mut store = with(&superblock());
    (0..COPIES).for_each(|copy| bytes_of(&mut store, copy).fill(0));
    assert_eq!(kind(read_copies(&mut store).newest()), Kind::NotAVolume);
    bytes_of(&mut store, 2)[..8].copy_from_slice(b"oblivio\0");
    assert_eq!(kind(read_copies(&mut store).newest()), Kind::Damaged);

    let mut newer = superblock().encode();
    newer[8] = 4;
    let mut store = with(&superblock());
    bytes_of(&mut store, 3).copy_from_slice(&with_checksum(newer)[..]);
    let copies = read_copies(&mut store);
    let error = copies.newest().unwrap_err();
    assert_eq!(error.kind(), Kind::UnknownVersion);
    assert!(error.to_string().contains("format version 4"), "{error}");
}

/// At every point of a crash, with every outcome for unflushed writes: two equal copies hold the
/// new superblock or the old one, and it opens.
#[test]
fn a_crash_while_writing_leaves_two_copies() {
    let (old, new) = (superblock(), next(&superblock()));
    let (mut saw_old, mut saw_new) = (0, 0);
    for calls in 0..=WRITE_CALLS {
        for outcomes in all_outcomes() {
            let mut store = Crashing::store(with(&old), calls);
            let outcome = write_copies(&mut store, &new);
            assert_eq!(outcome.is_ok(), calls == WRITE_CALLS, "a write has {WRITE_CALLS} calls");
            let mut store = after_crash(store, &outcomes);
            let found = sequences(&mut store);
            let twice =
                [2, 3].into_iter().any(|n| found.iter().filter(|s| **s == Some(n)).count() >= 2);
            assert!(twice, "{calls} calls, {outcomes:?}: {found:?}");
            let copies = read_copies(&mut store);
            let unlocked = copies.newest().unwrap().unlock(&key_file(1)).unwrap();
            match unlocked.superblock.sequence() {
                2 => saw_old += 1,
                _ => saw_new += 1,
            }
            repair(&mut store, &unlocked.superblock).unwrap();
            assert_eq!(sequences(&mut store), [Some(unlocked.superblock.sequence()); COPIES]);
        }
    }
    assert!(saw_old > 0 && saw_new > 0, "{saw_old} old, {saw_new} new");
}

/// After a crash or damage, one pair may hold the only copies of the newest superblock. That pair
/// is not written first.
#[test]
fn a_second_crash_does_not_take_the_last_good_pair() {
    let old = superblock();
    let middle = next(&old);
    let mut last = middle.clone();
    last.remove_slot(&super::volume_key(), 0).unwrap();
    let old = old.encode();
    for good in [0b0011u8, 0b1100, 0b0001, 0b0100, 0b0111, 0b1101] {
        for other_is_old in [false, true] {
            for (calls, outcomes) in
                (0..=WRITE_CALLS).flat_map(|c| all_outcomes().map(move |f| (c, f)))
            {
                let mut store = with(&middle);
                for copy in bits(!good & 0b1111) {
                    let bytes = bytes_of(&mut store, copy);
                    bytes.copy_from_slice(&old[..]);
                    bytes[9000] ^= u8::from(!other_is_old);
                }
                let mut store = Crashing::store(store, calls);
                let _ = write_copies(&mut store, &last);
                let mut store = after_crash(store, &outcomes);
                let sequence = newest(&mut store);
                assert!(
                    sequence >= 3,
                    "{good:04b}, {calls} calls, {outcomes:?}: back at {sequence}"
                );
            }
        }
    }
}

#[test]
fn a_crash_while_repairing_leaves_the_good_copies() {
    let superblock = superblock();
    for good in 1u8..1 << COPIES {
        for (calls, outcomes) in (0..REPAIR_CALLS).flat_map(|c| all_outcomes().map(move |f| (c, f)))
        {
            let mut store = with(&superblock);
            bits(!good & 0b1111).for_each(|copy| bytes_of(&mut store, copy)[100] ^= 1);
            let mut store = Crashing::store(store, calls);
            let _ = repair(&mut store, &superblock);
            let found = sequences(&mut after_crash(store, &outcomes));
            assert!(bits(good).all(|copy| found[copy] == Some(2)), "{good:04b}: {found:?}");
        }
    }
}

/// After a failed sync, some copies of the new superblock are only in a cache, and the other copies
/// are old. `rewrite_copies` first makes the new superblock durable in the pair with the most new
/// copies, so that the old copies of the other pair survive a crash until then.
#[test]
fn a_crash_while_settling_leaves_a_superblock() {
    let old = superblock();
    let new = next(&old);
    for cached in [0b0011u8, 0b1100, 0b0001, 0b1000] {
        for (calls, outcomes) in (0..=WRITE_CALLS).flat_map(|c| all_outcomes().map(move |f| (c, f)))
        {
            let mut store = Crashing::store(with(&old), calls);
            for copy in bits(cached) {
                let bytes = bytes_of(&mut store.store, copy);
                store.rule.unflushed.push((copy, bytes.to_vec()));
                bytes.copy_from_slice(&new.encode()[..]);
            }
            let outcome = rewrite_copies(&mut store, &new);
            assert_eq!(outcome.is_ok(), calls == WRITE_CALLS, "{WRITE_CALLS} calls");
            let found = sequences(&mut after_crash(store, &outcomes));
            assert!(found.iter().any(Option::is_some), "{cached:04b}, {calls} calls, {outcomes:?}");
            assert!(outcome.is_err() || found == [Some(3); COPIES], "{found:?}");
        }
    }
}

#[test]
fn a_copy_that_cannot_be_read_does_not_hide_the_others() {
    let bad_sector =
        |store: &mut MemoryStore, call: &mut Call<'_>| match call.pieces.contains(&place(0)) {
            true => Err(StoreError::new(StoreErrorKind::Failed, "bad sector")),
            false => call.forward(store),
        };
    let mut store = Faulty::new(with(&superblock()), bad_sector);
    let copies = read_copies(&mut store);
    let kinds: Vec<_> =
        copies.each().iter().map(|copy| copy.as_ref().map_err(|e| e.kind())).collect();
    assert_eq!(kinds[0].as_ref().unwrap_err(), &Kind::Store);
    assert_eq!(copies.newest().unwrap().unauthenticated_sequence(), 2);
}

/// Anyone can compute a checksum and forge copies with the highest number: a copy that does not
/// open, another that opens and is not authentic, and a third that differs from the good copies
/// only in its HMAC.
#[test]
fn forged_copies_do_not_hide_a_good_one() {
    const MAC_AT: usize = SUPERBLOCK_BYTES - 64;
    let limits = UnlockLimits::default();
    for (sequence, changed, expected) in [
        (1u64 << 60, 600, Kind::WrongKey),
        (1 << 60, 40, Kind::Tampered),
        (2, MAC_AT, Kind::Tampered),
    ] {
        let mut forged = superblock().encode();
        forged[16..24].copy_from_slice(&sequence.to_le_bytes());
        forged[changed] ^= 1;
        let forged = with_checksum(forged);
        for good in 0u8..1 << COPIES {
            let mut store = with(&superblock());
            for copy in bits(!good & 0b1111) {
                bytes_of(&mut store, copy).copy_from_slice(&forged[..]);
            }
            let copies = read_copies(&mut store);
            let outcome = copies.unlock(&key_file(1), limits);
            if good == 0 {
                assert_eq!(kind(outcome), expected);
                continue;
            }
            let found = outcome.unwrap().superblock;
            assert_eq!(found.encode(), superblock().encode());
            let refused = kind(copies.unlock(&key_file(9), limits));
            assert_eq!(refused, Kind::WrongKey);
            assert_eq!(repair(&mut store, &found).unwrap(), COPIES - good.count_ones() as usize);
            assert_eq!(sequences(&mut store), [Some(2); COPIES]);
        }
    }
}

/// A crash left newer copies next to older ones. A secret that the owner has removed from the newer
/// superblock does not open the older copies.
#[test]
fn a_removed_secret_does_not_open_the_older_copies_beside_the_newer_ones() {
    let mut newer = superblock();
    newer.remove_slot(&super::volume_key(), 1).unwrap();
    for new in 0u8..1 << COPIES {
        let mut store = with(&superblock());
        for copy in bits(new) {
            bytes_of(&mut store, copy).copy_from_slice(&newer.encode()[..]);
        }
        let copies = read_copies(&mut store);
        let removed = copies.unlock(&key_file(1), UnlockLimits::default());
        if new == 0 {
            assert_eq!(removed.unwrap().superblock.sequence(), 2);
        } else {
            assert_eq!(kind(removed), Kind::WrongKey, "{new:04b}");
            let other = copies.unlock(&passphrase("correct horse"), UnlockLimits::default());
            assert_eq!(other.unwrap().superblock.sequence(), 3);
        }
    }
}

// ───────────────────────────── stores ─────────────────────────────

/// Number of calls that can fail while all copies are written: two writes and two flushes.
const WRITE_CALLS: usize = 4;
const REPAIR_CALLS: usize = 2;

fn with(superblock: &Superblock) -> MemoryStore {
    let mut store = MemoryStore::new(&vec![shape(); 4], LayoutKind::Striped).unwrap();
    write_copies(&mut store, superblock).unwrap();
    store
}

/// A store that holds these bytes in all copies.
pub(crate) fn holding(bytes: &Bytes) -> MemoryStore {
    let mut store = with(&superblock());
    (0..COPIES).for_each(|copy| bytes_of(&mut store, copy).copy_from_slice(bytes));
    store
}

fn place(copy: usize) -> Piece {
    let tree = if copy < 2 { FRONT } else { BACK };
    Piece { tree, bucket: BucketId::new(1, copy as u64 % 2), part: Part::Whole }
}

fn bytes_of(store: &mut MemoryStore, copy: usize) -> &mut [u8] {
    let span = store.span(&place(copy)).unwrap();
    &mut store.contents_mut()[span.start..][..span.bytes]
}

fn sequences(store: &mut impl BucketStore) -> [Option<u64>; COPIES] {
    let copies = read_copies(store);
    let sequence =
        |copy: usize| Some(copies.each()[copy].as_ref().ok()?.unauthenticated_sequence());
    std::array::from_fn(sequence)
}

fn newest(store: &mut impl BucketStore) -> u64 {
    read_copies(store).newest().unwrap().unauthenticated_sequence()
}

fn bits(set: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |bit| set >> bit & 1 == 1)
}

/// The outcome for a copy that was written and not flushed.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Old,
    New,
    Torn,
}

fn all_outcomes() -> impl Iterator<Item = [Outcome; COPIES]> {
    const OUTCOMES: [Outcome; 3] = [Outcome::Old, Outcome::New, Outcome::Torn];
    (0..3usize.pow(COPIES as u32))
        .map(|code| std::array::from_fn(|copy| OUTCOMES[code / 3usize.pow(copy as u32) % 3]))
}

/// A store that fails after `calls_left` writes and flushes.
type CrashingStore = Faulty<MemoryStore, Crashing>;

/// The rule of a store that crashes. Remembers unflushed writes.
struct Crashing {
    calls_left: usize,
    /// For each write of a copy since the last flush, in order: the number of the copy, and its
    /// contents before the write.
    unflushed: Vec<(usize, Vec<u8>)>,
}

impl Crashing {
    fn store(inner: MemoryStore, calls_left: usize) -> CrashingStore {
        Faulty::new(inner, Self { calls_left, unflushed: Vec::new() })
    }

    fn call(&mut self) -> Result<(), StoreError> {
        let left = self.calls_left.checked_sub(1);
        self.calls_left =
            left.ok_or_else(|| StoreError::new(StoreErrorKind::Failed, "the power has failed"))?;
        Ok(())
    }
}

impl Rule<MemoryStore> for Crashing {
    fn handle(&mut self, inner: &mut MemoryStore, call: &mut Call<'_>) -> Result<(), StoreError> {
        match call.operation {
            Operation::Write => {
                for copy in (0..COPIES).filter(|copy| call.pieces.contains(&place(*copy))) {
                    self.unflushed.push((copy, bytes_of(inner, copy).to_vec()));
                }
                // The failing call may have done a part of its work.
                call.forward(inner)?;
                return self.call();
            }
            Operation::Flush => {
                self.call()?;
                self.unflushed.clear();
            }
            _ => {}
        }
        call.forward(inner)
    }
}

fn after_crash(mut store: CrashingStore, outcomes: &[Outcome; COPIES]) -> MemoryStore {
    // The first entry of each copy was durable.
    for (copy, old) in store.rule.unflushed.iter().rev() {
        let bytes = bytes_of(&mut store.store, *copy);
        match outcomes[*copy] {
            Outcome::New => {}
            Outcome::Old => bytes.copy_from_slice(old),
            // One sector of the new superblock and the rest of the old.
            Outcome::Torn => bytes[512..].copy_from_slice(&old[512..]),
        }
    }
    store.store
}

/// If the link to storage is lost while copies are read, the error has the kind of a lost link.
#[test]
fn the_error_of_copies_that_cannot_be_read_is_of_the_kind_of_the_store() {
    for (of_store, expected) in [
        (StoreErrorKind::Unreachable, VolumeErrorKind::Unreachable),
        (StoreErrorKind::Fenced, VolumeErrorKind::Locked),
        (StoreErrorKind::Failed, VolumeErrorKind::Io),
    ] {
        let fail = move |_: &mut MemoryStore, _: &mut Call<'_>| {
            Err(StoreError::new(of_store, "no copy can be read or written"))
        };
        let mut store = Faulty::new(with(&superblock()), fail);
        let copies = read_copies(&mut store);
        let errors = [
            copies.newest().unwrap_err(),
            copies.unlock(&key_file(1), UnlockLimits::default()).unwrap_err(),
            write_copies(&mut store, &superblock()).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(VolumeError::from(error).kind(), expected);
        }
    }
}

/// Answers each read with `frames` frames of `bytes` bytes.
fn answering(frames: usize, bytes: usize) -> impl BucketStore {
    let answer = move |inner: &mut MemoryStore, call: &mut Call<'_>| {
        call.forward(inner)?;
        if call.operation == Operation::Read {
            let span = Span { bytes, ..call.answer.spans[0] };
            call.answer.spans = vec![span; frames];
        }
        Ok(())
    };
    Faulty::new(with(&superblock()), answer)
}

#[test]
fn frames_that_are_too_short_are_damaged() {
    let copies = read_copies(&mut answering(1, 100));
    assert_eq!(kind(copies.newest()), Kind::Damaged);
}

#[test]
fn a_store_that_answers_with_too_few_frames_or_too_many_is_refused() {
    for frames in [0, 2, 5] {
        let mut store = answering(frames, SUPERBLOCK_BYTES);
        assert_eq!(kind(read_copies(&mut store).newest()), Kind::Store);
        let unlocked = read_copies(&mut store).unlock(&key_file(1), UnlockLimits::default());
        assert_eq!(kind(unlocked), Kind::Store);
        assert_eq!(repair(&mut store, &superblock()).unwrap(), COPIES);
    }
    let mut store = answering(1, SUPERBLOCK_BYTES);
    assert!(read_copies(&mut store).unlock(&key_file(1), UnlockLimits::default()).is_ok());
}
