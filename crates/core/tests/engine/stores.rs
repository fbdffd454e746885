//! Tests of stores whose answers are short or missing.

use oblivio_core::store::{
    BucketRange, LevelShape, Part, Piece, SealedCopy, Span, TreeId, TreeShape,
};
use oblivio_core::view::{Event, Operation, Recorder};
use oblivio_core::{BucketId, BucketStore, LayoutKind, MemoryStore, StoreError, StoreErrorKind};
use oblivio_testkit::{Call, Faulty};

/// A store with a tree of three buckets.
fn memory() -> MemoryStore {
    let levels = vec![LevelShape::of_heads(1, 3), LevelShape::of_heads(2, 8)];
    MemoryStore::new(&[TreeShape::new(levels)], LayoutKind::Striped).unwrap()
}

/// A store that answers each read with one frame of `bytes` bytes, and fails all writes and
/// flushes.
fn short(bytes: usize) -> impl BucketStore {
    let answer = move |memory: &mut MemoryStore, call: &mut Call<'_>| match call.operation {
        Operation::Write => Err(StoreError::new(StoreErrorKind::Refused, "read-only")),
        Operation::Flush => Err(StoreError::new(StoreErrorKind::Failed, "not durable")),
        Operation::Read => {
            call.forward(memory)?;
            call.answer.bytes.resize(9, 0);
            call.answer.spans = vec![Span { start: 0, bytes }];
            Ok(())
        }
        Operation::Prefetch => Ok(()),
    };
    Faulty::new(memory(), answer)
}

#[test]
fn moving_refuses_answers_of_wrong_length() {
    let range = |level, buckets| BucketRange { tree: TreeId(0), level, buckets };
    for bytes in [0, 2, 4] {
        let mut short = short(bytes);
        let refused = SealedCopy::default().read(&mut short, &range(0, 0..1)).unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Damaged);
        let mut copy = SealedCopy::default();
        copy.read(&mut memory(), &range(0, 0..1)).unwrap();
        assert!(copy.first_difference(&mut short).unwrap().is_some(), "{bytes}");
    }
    let refused = SealedCopy::default().read(&mut short(8), &range(1, 0..2)).unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Damaged);
}

#[test]
fn failed_and_short_calls_are_recorded() {
    let piece = |bucket| Piece { tree: TreeId(0), bucket: BucketId(bucket), part: Part::Whole };
    let mut recorder = Recorder::new(short(3), Vec::new());
    let pieces = [piece(1), piece(2)];
    recorder.prefetch(&pieces[..1]);
    assert_eq!(recorder.read(&pieces).unwrap().len(), 1);
    assert!(
        recorder
            .write(&pieces, &mut |_| unreachable!("the write must fail before it fills the blanks"))
            .is_err()
    );
    assert!(recorder.flush().is_err());
    let seen = |trip, operation, bucket: Option<u64>, bytes| Event {
        trip,
        operation,
        piece: bucket.map(piece),
        bytes,
    };
    assert_eq!(
        recorder.into_parts().1,
        [
            seen(0, Operation::Prefetch, Some(1), 0),
            seen(1, Operation::Read, Some(1), 3),
            seen(1, Operation::Read, Some(2), 0),
            seen(2, Operation::Write, Some(1), 0),
            seen(2, Operation::Write, Some(2), 0),
            seen(3, Operation::Flush, None, 0),
        ]
    );
}
