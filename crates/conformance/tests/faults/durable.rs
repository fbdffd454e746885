//! Faults of stores that show once they are opened again.

use oblivio_conformance::{check_durable_store, check_store};
use oblivio_core::layout::LayoutKind;
use oblivio_core::store::{
    BucketStore, Capabilities, Fill, Frames, Part, Piece, TreeId, TreeShape, shapes_of,
};
use oblivio_core::{MemoryStore, StoreError};

use crate::memory;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Nothing of what a flush does.
    FlushDoesNothing,
    /// As if there were nothing to do any more.
    OnlyTheFirstFlushCounts,
    /// Writes of parts do not count as writes.
    PartsAreNotFlushed,
    /// The last bucket stays behind.
    FlushIsCutShort,
    /// What was written and not flushed takes its neighbours along.
    LossIsContagious,
    /// An opening makes a new store.
    OpeningBeginsAnew,
    /// An opening finds fewer trees.
    OpeningLosesATree,
    /// An opening goes back to the flush before.
    OpeningTakesTheFlushBefore,
}

/// A store whose medium is a copy in memory.
struct Volatile {
    store: MemoryStore,
    medium: Vec<u8>,
    before: Vec<u8>,
    flushes: u32,
    is_dirty: bool,
    fault: Fault,
}

impl Volatile {
    fn create(shapes: &[TreeShape], fault: Fault) -> Self {
        let store = memory(shapes, LayoutKind::Heap);
        let medium = store.contents().to_vec();
        Self { before: medium.clone(), medium, store, flushes: 0, is_dirty: false, fault }
    }

    fn reopened(self) -> Self {
        let mut shapes = shapes_of(&self);
        let mut medium = match self.fault {
            Fault::OpeningTakesTheFlushBefore => self.before.clone(),
            _ => self.medium,
        };
        if self.fault == Fault::LossIsContagious && self.is_dirty {
            medium.fill(0);
        }
        if self.fault == Fault::OpeningLosesATree {
            shapes.pop();
        }
        let mut opened = Self::create(&shapes, self.fault);
        let medium = &medium[..opened.store.contents().len()];
        if self.fault != Fault::OpeningBeginsAnew {
            opened.store.contents_mut().copy_from_slice(medium);
        }
        Self { medium: medium.to_vec(), before: self.before, ..opened }
    }
}

impl BucketStore for Volatile {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.store.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        self.store.prefetch(pieces);
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.store.read(pieces)
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        let counts =
            |piece: &Piece| piece.part == Part::Whole || self.fault != Fault::PartsAreNotFlushed;
        self.is_dirty |= pieces.iter().any(counts);
        self.store.write(pieces, fill)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.flushes += 1;
        let does_nothing = match self.fault {
            Fault::FlushDoesNothing => true,
            Fault::OnlyTheFirstFlushCounts => self.flushes > 1,
            _ => !self.is_dirty,
        };
        if does_nothing {
            return Ok(());
        }
        self.is_dirty = false;
        self.before = self.medium.clone();
        let written = self.store.contents();
        let bytes = match self.fault {
            Fault::FlushIsCutShort => written.len() - 200,
            _ => written.len(),
        };
        self.medium[..bytes].copy_from_slice(&written[..bytes]);
        Ok(())
    }
}

#[test]
fn a_store_that_keeps_what_was_flushed_conforms() {
    check_durable_store(|shapes| Volatile::create(shapes, Fault::None), Volatile::reopened);
}

#[test]
fn stores_that_lose_what_was_flushed_do_not() {
    for fault in [
        Fault::FlushDoesNothing,
        Fault::OnlyTheFirstFlushCounts,
        Fault::PartsAreNotFlushed,
        Fault::FlushIsCutShort,
        Fault::LossIsContagious,
        Fault::OpeningBeginsAnew,
        Fault::OpeningLosesATree,
        Fault::OpeningTakesTheFlushBefore,
    ] {
        let make = |shapes: &[TreeShape]| Volatile::create(shapes, fault);
        // Nobody notices as long as it is open.
        check_store(make);
        let outcome = std::panic::catch_unwind(|| check_durable_store(make, Volatile::reopened));
        assert!(outcome.is_err(), "{fault:?} passed");
    }
}
