//! A store whose calls are handled by a rule: for faults, lies, delays and counts.

use oblivio_core::store::{
    BucketStore, Capabilities, Fill, Frames, Part, Piece, Span, TreeId, TreeShape,
};
use oblivio_core::view::Operation;
use oblivio_core::{StoreError, StoreErrorKind};

/// Decides the effect of the calls of a [`Faulty`] store of type `S`. A closure is a rule.
pub trait Rule<S> {
    /// Handles `call`: [forwards it](Call::forward), changes it or its answer, or fails.
    ///
    /// # Errors
    /// The error for the caller. A prefetch ignores it.
    fn handle(&mut self, store: &mut S, call: &mut Call<'_>) -> Result<(), StoreError>;

    /// The capabilities that the store reports.
    fn capabilities(&self, store: &S) -> Capabilities
    where
        S: BucketStore,
    {
        store.capabilities()
    }
}

impl<S, F: FnMut(&mut S, &mut Call<'_>) -> Result<(), StoreError>> Rule<S> for F {
    fn handle(&mut self, store: &mut S, call: &mut Call<'_>) -> Result<(), StoreError> {
        self(store, call)
    }
}

/// A store whose calls pass through a rule.
pub struct Faulty<S, R> {
    /// The store that the rule forwards calls to.
    pub store: S,
    /// The rule that handles the calls.
    pub rule: R,
    answer: Answer,
}

/// The frames that a read returns.
#[derive(Default)]
pub struct Answer {
    /// The bytes of all frames.
    pub bytes: Vec<u8>,
    /// The range of each frame in `bytes`.
    pub spans: Vec<Span>,
    /// For each frame, the index of the piece whose value it holds.
    pieces: Vec<usize>,
}

impl Answer {
    /// Adds a frame: a value of the piece with index `piece`.
    pub fn push(&mut self, piece: usize, frame: &[u8]) {
        self.spans.push(Span { start: self.bytes.len(), bytes: frame.len() });
        self.bytes.extend_from_slice(frame);
        self.pieces.push(piece);
    }
}

/// A call of a store.
pub struct Call<'c> {
    /// The operation of the call.
    pub operation: Operation,
    /// The pieces that [`Self::forward`] requests.
    pub pieces: Vec<Piece>,
    /// The frames of the answer. Before [`Self::forward`], the frames of the previous read.
    pub answer: &'c mut Answer,
    fill: Option<&'c mut Fill<'c>>,
    has_candidates: bool,
}

impl Call<'_> {
    /// Whether the caller accepts several values for a piece.
    pub fn has_candidates(&self) -> bool {
        self.has_candidates
    }

    /// Makes this call on `store`. If it is a read, its result becomes the answer.
    ///
    /// # Errors
    /// The errors of `store`.
    pub fn forward(&mut self, store: &mut impl BucketStore) -> Result<(), StoreError> {
        let Self { operation, pieces, answer, fill, has_candidates } = self;
        match (operation, fill) {
            (Operation::Write, Some(fill)) => return store.write(pieces, fill),
            (Operation::Flush, _) => return store.flush(),
            (Operation::Prefetch, _) => store.prefetch(pieces),
            _ => {
                **answer = Answer::default();
                if *has_candidates {
                    return store.read_candidates(pieces, &mut |i, frame| answer.push(i, frame));
                }
                let frames = store.read(pieces)?;
                (0..frames.len()).for_each(|i| answer.push(i, frames.get(i)));
            }
        }
        Ok(())
    }
}

impl<S: BucketStore, R: Rule<S>> Faulty<S, R> {
    /// Creates a store that lets `rule` handle the calls of `store`.
    pub fn new(store: S, rule: R) -> Self {
        Self { store, rule, answer: Answer::default() }
    }

    fn call<'c>(
        &'c mut self,
        operation: Operation,
        pieces: &[Piece],
        fill: Option<&'c mut Fill<'c>>,
        has_candidates: bool,
    ) -> Result<(), StoreError> {
        let (pieces, answer) = (pieces.to_vec(), &mut self.answer);
        let mut call = Call { operation, pieces, answer, fill, has_candidates };
        self.rule.handle(&mut self.store, &mut call)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<S: BucketStore, R: Rule<S>> BucketStore for Faulty<S, R> {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.store.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        self.rule.capabilities(&self.store)
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        let _ = self.call(Operation::Prefetch, pieces, None, false);
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.call(Operation::Read, pieces, None, false)?;
        Ok(Frames::new(&self.answer.bytes, &self.answer.spans))
    }

    fn read_candidates(
        &mut self,
        pieces: &[Piece],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        self.call(Operation::Read, pieces, None, true)?;
        let Answer { bytes, spans, pieces } = &self.answer;
        let frames = Frames::new(bytes, spans);
        // A rule may have removed or added frames.
        let piece = |i| pieces.get(i).copied().unwrap_or(i);
        (0..frames.len()).for_each(|i| each(piece(i), frames.get(i)));
        Ok(())
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.call(Operation::Write, pieces, Some(&mut |blanks| fill(blanks)), false)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.call(Operation::Flush, &[], None, false)
    }
}

/// A store that can move only whole buckets: the minimum that a store must support.
pub type WholeBuckets<S> = Faulty<S, OnlyWhole>;

/// Limits `store` to reading and writing whole buckets.
pub fn whole_buckets<S: BucketStore>(store: S) -> WholeBuckets<S> {
    Faulty::new(store, OnlyWhole)
}

/// A rule that refuses parts of buckets.
pub struct OnlyWhole;

impl<S: BucketStore> Rule<S> for OnlyWhole {
    fn handle(&mut self, store: &mut S, call: &mut Call<'_>) -> Result<(), StoreError> {
        if call.pieces.iter().all(|piece| piece.part == Part::Whole) {
            return call.forward(store);
        }
        let message = "this store can move whole buckets only";
        Err(StoreError::new(StoreErrorKind::Refused, message))
    }

    fn capabilities(&self, _: &S) -> Capabilities {
        Capabilities::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_conformance::check_store;
    use oblivio_core::MemoryStore;
    use oblivio_core::view::{Recorder, Tally};

    #[test]
    fn a_store_below_a_rule_conforms() {
        let memory =
            |shapes: &[TreeShape]| MemoryStore::new(shapes, MemoryStore::default_layout()).unwrap();
        check_store(|shapes| whole_buckets(memory(shapes)));
        check_store(|shapes| Recorder::new(whole_buckets(memory(shapes)), Tally::new()));
        let forward = |store: &mut MemoryStore, call: &mut Call<'_>| call.forward(store);
        check_store(|shapes| Faulty::new(memory(shapes), forward));
    }
}
