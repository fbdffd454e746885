//! Faults that show only when a store is reopened.

use oblivio_conformance::{check_durable_store, check_store};
use oblivio_core::layout::LayoutKind;
use oblivio_core::store::{Part, Piece, TreeShape, shapes_of};
use oblivio_core::view::Operation;
use oblivio_core::{MemoryStore, StoreError};
use oblivio_testkit::{Call, Faulty, Rule};

use crate::memory;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReopenFault {
    None,
    /// A flush does nothing.
    FlushDoesNothing,
    /// Only the first flush takes effect.
    OnlyTheFirstFlushCounts,
    /// Writes of parts do not make the store dirty, so a flush after them does nothing.
    PartsAreNotFlushed,
    /// A flush omits the last 200 bytes of the store.
    FlushIsCutShort,
    /// Reopening with unflushed writes also loses flushed buckets.
    LossSpreads,
    /// Reopening creates a new, empty store.
    ReopenCreates,
    /// Reopening loses a tree.
    ReopenLosesATree,
    /// Reopening rolls back to the flush before the last.
    ReopenRollsBack,
}

/// A store whose medium is a second buffer in memory.
type Volatile = Faulty<MemoryStore, Medium>;

struct Medium {
    flushed: Vec<u8>,
    before: Vec<u8>,
    flushes: u32,
    is_dirty: bool,
    fault: ReopenFault,
}

fn create(shapes: &[TreeShape], fault: ReopenFault) -> Volatile {
    let store = memory(shapes, LayoutKind::Heap);
    let flushed = store.contents().to_vec();
    let before = flushed.clone();
    Faulty::new(store, Medium { flushed, before, flushes: 0, is_dirty: false, fault })
}

fn reopen(closed: Volatile) -> Volatile {
    let mut shapes = shapes_of(&closed);
    let Medium { flushed, before, is_dirty, fault, .. } = closed.rule;
    let mut flushed = match fault {
        ReopenFault::ReopenRollsBack => before.clone(),
        _ => flushed,
    };
    if fault == ReopenFault::LossSpreads && is_dirty {
        flushed.fill(0);
    }
    if fault == ReopenFault::ReopenLosesATree {
        shapes.pop();
    }
    let mut opened = create(&shapes, fault);
    flushed.truncate(opened.store.contents().len());
    if fault != ReopenFault::ReopenCreates {
        opened.store.contents_mut().copy_from_slice(&flushed);
    }
    (opened.rule.flushed, opened.rule.before) = (flushed, before);
    opened
}

impl Rule<MemoryStore> for Medium {
    fn handle(&mut self, store: &mut MemoryStore, call: &mut Call<'_>) -> Result<(), StoreError> {
        let counts = |piece: &Piece| {
            piece.part == Part::Whole || self.fault != ReopenFault::PartsAreNotFlushed
        };
        match call.operation {
            Operation::Write => self.is_dirty |= call.pieces.iter().any(counts),
            Operation::Flush => self.flush(store),
            _ => {}
        }
        call.forward(store)
    }
}

impl Medium {
    fn flush(&mut self, store: &MemoryStore) {
        self.flushes += 1;
        let does_nothing = match self.fault {
            ReopenFault::FlushDoesNothing => true,
            ReopenFault::OnlyTheFirstFlushCounts => self.flushes > 1,
            _ => !self.is_dirty,
        };
        if does_nothing {
            return;
        }
        self.is_dirty = false;
        self.before = self.flushed.clone();
        let written = store.contents();
        let bytes = match self.fault {
            ReopenFault::FlushIsCutShort => written.len() - 200,
            _ => written.len(),
        };
        self.flushed[..bytes].copy_from_slice(&written[..bytes]);
    }
}

#[test]
fn a_store_that_keeps_what_was_flushed_conforms() {
    check_durable_store(|shapes| create(shapes, ReopenFault::None), reopen);
}

#[test]
fn stores_that_lose_what_was_flushed_do_not() {
    for fault in [
        ReopenFault::FlushDoesNothing,
        ReopenFault::OnlyTheFirstFlushCounts,
        ReopenFault::PartsAreNotFlushed,
        ReopenFault::FlushIsCutShort,
        ReopenFault::LossSpreads,
        ReopenFault::ReopenCreates,
        ReopenFault::ReopenLosesATree,
        ReopenFault::ReopenRollsBack,
    ] {
        let make = |shapes: &[TreeShape]| create(shapes, fault);
        // The fault does not show while the store stays open.
        check_store(make);
        let outcome = std::panic::catch_unwind(|| check_durable_store(make, reopen));
        assert!(outcome.is_err(), "{fault:?} passed");
    }
}
