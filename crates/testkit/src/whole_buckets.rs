//! A store that can do no more than a store must.

use oblivio_core::store::{
    BucketStore, Capabilities, Fill, Frames, Part, Piece, TreeId, TreeShape,
};
use oblivio_core::{StoreError, StoreErrorKind};

/// Hides from whoever uses a store all that it can do besides reading and writing whole buckets.
pub struct WholeBuckets<S>(pub S);

fn check(pieces: &[Piece]) -> Result<(), StoreError> {
    if pieces.iter().all(|piece| piece.part == Part::Whole) {
        return Ok(());
    }
    let message = "this store can move whole buckets only";
    Err(StoreError::new(StoreErrorKind::Refused, message))
}

#[deny(clippy::missing_trait_methods)]
impl<S: BucketStore> BucketStore for WholeBuckets<S> {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.0.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        if check(pieces).is_ok() {
            self.0.prefetch(pieces);
        }
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        check(pieces)?;
        self.0.read(pieces)
    }

    fn read_candidates(
        &mut self,
        pieces: &[Piece],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        check(pieces)?;
        self.0.read_candidates(pieces, each)
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        check(pieces)?;
        self.0.write(pieces, fill)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_conformance::check_store;
    use oblivio_core::MemoryStore;
    use oblivio_core::view::{Recorder, Tally};

    #[test]
    fn a_store_of_whole_buckets_conforms() {
        let memory =
            |shapes: &[TreeShape]| MemoryStore::new(shapes, MemoryStore::default_layout()).unwrap();
        check_store(|shapes| WholeBuckets(memory(shapes)));
        check_store(|shapes| Recorder::new(WholeBuckets(memory(shapes)), Tally::new()));
    }
}
