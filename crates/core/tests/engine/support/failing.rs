//! A store that fails when it is told to.

use std::cell::Cell;
use std::rc::Rc;

use oblivio_core::store::{BucketStore, Capabilities, Fill, Frames, Piece, TreeId, TreeShape};
use oblivio_core::{MemoryStore, StoreError, StoreErrorKind};

/// Memory that fails once, at a call from now.
pub(crate) struct Failing {
    pub(crate) memory: MemoryStore,
    pub(crate) calls_left: Rc<Cell<u64>>,
}

impl Failing {
    fn call(&self) -> Result<(), StoreError> {
        match self.calls_left.replace(self.calls_left.get().wrapping_sub(1)) {
            0 => Err(StoreError::new(StoreErrorKind::Failed, "a failure for a test")),
            _ => Ok(()),
        }
    }
}

impl BucketStore for Failing {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.memory.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.call()?;
        self.memory.read(pieces)
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.call()?;
        self.memory.write(pieces, fill)
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        self.memory.prefetch(pieces);
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.memory.flush()
    }
}
