//! Faults of stores that show while they are open.

use oblivio_conformance::check_store;
use oblivio_core::geometry::BucketId;
use oblivio_core::layout::LayoutKind;
use oblivio_core::store::{
    BucketStore, Capabilities, Fill, Frames, Part, Piece, TreeId, TreeShape,
};
use oblivio_core::{MemoryStore, StoreError, StoreErrorKind};

use crate::memory;

/// What a faulty store does with the pieces it is asked for.
#[derive(Clone, Copy)]
enum Fault {
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

struct Faulty(MemoryStore, Fault);

impl Faulty {
    fn refuse(&self, pieces: &[Piece]) -> Result<(), StoreError> {
        let refuses = matches!(self.1, Fault::PartsAreRefused | Fault::PartsAreWrittenAndRefused);
        match pieces.iter().any(|piece| piece.part != Part::Whole) {
            true if refuses => Err(StoreError::new(StoreErrorKind::Refused, "a part")),
            _ => Ok(()),
        }
    }

    fn distort(&self, pieces: &[Piece]) -> Vec<Piece> {
        let mut pieces = pieces.to_vec();
        for piece in &mut pieces {
            match (self.1, piece.part) {
                (Fault::HeaderIsWhole, Part::Header) => piece.part = Part::Whole,
                (Fault::TreesAreOne, _) if piece.bucket == BucketId::ROOT => {
                    piece.tree = TreeId(0);
                }
                (Fault::SlotsAreTheFirst, Part::Slot(_)) => piece.part = Part::Slot(0),
                _ => {}
            }
        }
        if matches!(self.1, Fault::FramesAreSorted) {
            pieces.sort_unstable_by_key(|piece| (piece.tree, piece.bucket, piece.part));
        }
        pieces
    }
}

impl BucketStore for Faulty {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.0.shape(tree)
    }
    fn capabilities(&self) -> Capabilities {
        match self.1 {
            Fault::PartsAreHidden | Fault::PartsAreWrittenAndRefused => Capabilities::NONE,
            _ => self.0.capabilities(),
        }
    }
    fn prefetch(&mut self, pieces: &[Piece]) {
        self.0.prefetch(pieces);
    }
    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.refuse(pieces)?;
        let pieces = self.distort(pieces);
        self.0.read(&pieces)
    }
    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        if matches!(self.1, Fault::WritesAreDropped) {
            return Ok(());
        }
        self.0.write(pieces, fill)?;
        self.refuse(pieces)
    }
    fn flush(&mut self) -> Result<(), StoreError> {
        match self.1 {
            Fault::FlushFails => Err(StoreError::new(StoreErrorKind::Failed, "not durable")),
            _ => self.0.flush(),
        }
    }
}

#[test]
fn faulty_stores_do_not_conform() {
    for fault in [
        Fault::HeaderIsWhole,
        Fault::TreesAreOne,
        Fault::SlotsAreTheFirst,
        Fault::FramesAreSorted,
        Fault::WritesAreDropped,
        Fault::FlushFails,
        Fault::PartsAreRefused,
        Fault::PartsAreHidden,
        Fault::PartsAreWrittenAndRefused,
    ] {
        let outcome = std::panic::catch_unwind(|| {
            check_store(|shapes| Faulty(memory(shapes, LayoutKind::Heap), fault));
        });
        assert!(outcome.is_err(), "fault {} passed", fault as u8);
    }
}
