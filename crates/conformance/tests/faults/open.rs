//! Faults that show while a store is open.

use oblivio_conformance::check_store;
use oblivio_core::geometry::BucketId;
use oblivio_core::layout::LayoutKind;
use oblivio_core::store::{BucketStore, Capabilities, Part, Piece, TreeId};
use oblivio_core::view::Operation;
use oblivio_core::{MemoryStore, StoreError, StoreErrorKind};
use oblivio_testkit::{Call, Faulty, Rule};

use crate::memory;

/// A fault in the calls of an open store.
#[derive(Clone, Copy)]
enum CallFault {
    HeaderIsWhole,
    TreesAreOne,
    SlotsAreTheFirst,
    FramesAreSorted,
    WritesAreDropped,
    FlushFails,
    PartsAreRefused,
    PartsAreHidden,
    PartsAreWrittenAndRefused,
}

impl CallFault {
    fn refuse(self, pieces: &[Piece]) -> Result<(), StoreError> {
        let refuses = matches!(self, Self::PartsAreRefused | Self::PartsAreWrittenAndRefused);
        match pieces.iter().any(|piece| piece.part != Part::Whole) {
            true if refuses => Err(StoreError::new(StoreErrorKind::Refused, "a part")),
            _ => Ok(()),
        }
    }

    fn distort(self, pieces: &mut [Piece]) {
        for piece in &mut *pieces {
            match (self, piece.part) {
                (Self::HeaderIsWhole, Part::Header) => piece.part = Part::Whole,
                (Self::TreesAreOne, _) if piece.bucket == BucketId::ROOT => piece.tree = TreeId(0),
                (Self::SlotsAreTheFirst, Part::Slot(_)) => piece.part = Part::Slot(0),
                _ => {}
            }
        }
        if matches!(self, Self::FramesAreSorted) {
            pieces.sort_unstable_by_key(|piece| (piece.tree, piece.bucket, piece.part));
        }
    }
}

impl Rule<MemoryStore> for CallFault {
    fn handle(&mut self, store: &mut MemoryStore, call: &mut Call<'_>) -> Result<(), StoreError> {
        match (call.operation, *self) {
            (Operation::Read, _) => {
                self.refuse(&call.pieces)?;
                self.distort(&mut call.pieces);
            }
            (Operation::Write, Self::WritesAreDropped) => return Ok(()),
            (Operation::Write, _) => {
                call.forward(store)?;
                return self.refuse(&call.pieces);
            }
            (Operation::Flush, Self::FlushFails) => {
                return Err(StoreError::new(StoreErrorKind::Failed, "not durable"));
            }
            _ => {}
        }
        call.forward(store)
    }

    fn capabilities(&self, store: &MemoryStore) -> Capabilities {
        match self {
            Self::PartsAreHidden | Self::PartsAreWrittenAndRefused => Capabilities::NONE,
            _ => store.capabilities(),
        }
    }
}

#[test]
fn faulty_stores_do_not_conform() {
    for fault in [
        CallFault::HeaderIsWhole,
        CallFault::TreesAreOne,
        CallFault::SlotsAreTheFirst,
        CallFault::FramesAreSorted,
        CallFault::WritesAreDropped,
        CallFault::FlushFails,
        CallFault::PartsAreRefused,
        CallFault::PartsAreHidden,
        CallFault::PartsAreWrittenAndRefused,
    ] {
        let outcome = std::panic::catch_unwind(|| {
            check_store(|shapes| Faulty::new(memory(shapes, LayoutKind::Heap), fault));
        });
        assert!(outcome.is_err(), "fault {} passed", fault as u8);
    }
}
