//! The trait of untrusted storage.
//!
//! Everything that leaves the client passes [`BucketStore`]. It sits below the seal, so an
//! implementation or wrapper sees only ciphertext and names of buckets: the adversary's view. ADR 1
//! of the repository explains this design and its measurements.

mod capabilities;
mod memory;
mod sealed_copy;

use alloc::boxed::Box;
use alloc::vec::Vec;

pub use capabilities::Capabilities;
pub use memory::{MemoryStore, Pages};
pub use sealed_copy::{BucketRange, SealedCopy, Written};

use crate::error::StoreError;
pub use crate::pieces::{Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape};
pub use crate::seal::{Blanks, Sealed, SealedByClient, SealedTrip};

/// Untrusted storage for the buckets of one or more trees.
///
/// # Contract
/// - **Callers.** One scheme at a time, from one thread. One [`read`](Self::read) or
///   [`write`](Self::write) is one round trip: a store may serve its pieces in any order or at
///   once.
/// - **Order.** A read returns the bytes of the latest earlier write, even if the piece was
///   prefetched before that write. Writes are ordered after earlier calls and durable once
///   [`flush`](Self::flush) has returned.
/// - **Parts.** A store that [supports](Self::capabilities) only whole buckets refuses to read or
///   write a part of one with [`Refused`](crate::StoreErrorKind::Refused), without any effect.
/// - **Trips.** A trip may name no pieces, or several parts of one bucket. If a piece does not
///   exist, [`read`](Self::read) and [`write`](Self::write) refuse the trip, and
///   [`prefetch`](Self::prefetch) ignores it.
/// - **Absent buckets.** A bucket never written reads as zeros. Which buckets those are is public.
/// - **Crashes.** A crash may lose or tear a write that was not flushed. After reopening, the
///   bucket still reads without an error; its bytes do not matter until it is written again.
/// - **Errors.** After an error the store may hold the old or the new bytes of every piece of the
///   failed write. The scheme above refuses further work.
/// - **Trust.** None. The scheme checks everything a store returns before relying on it.
/// - **Wrappers** implement every method; `#[deny(clippy::missing_trait_methods)]` on the `impl`
///   enforces that.
///
/// A store answers with `Frames`, which borrow its own buffer: memory is returned without a copy,
/// and a network store returns its receive buffer.
pub trait BucketStore {
    /// The shape of `tree`, or `None` if the store has no such tree.
    fn shape(&self, tree: TreeId) -> Option<&TreeShape>;

    /// The capabilities of the store, which never change.
    fn capabilities(&self) -> Capabilities;

    /// Starts to fetch `pieces`, which a later read will request. This is a hint: a store may
    /// ignore it.
    fn prefetch(&mut self, pieces: &[Piece]);

    /// Reads `pieces` in one round trip.
    ///
    /// # Errors
    /// If the medium fails, or a piece is not in any tree of this store.
    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError>;

    /// Reads every candidate value of `pieces` in one round trip. Calls `each` with the index of a
    /// piece and a value, at least once per piece.
    ///
    /// A store over one medium has one value. A store over several servers cannot tell which of
    /// their values is the newest, so the caller must authenticate all of them.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    fn read_candidates(
        &mut self,
        pieces: &[Piece],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        let frames = self.read(pieces)?;
        (0..frames.len()).for_each(|i| each(i, frames.get(i)));
        Ok(())
    }

    /// Writes `pieces` in one round trip. Calls `fill` exactly once, unless an error comes before,
    /// with one blank per piece in the order requested. Only [`crate::seal`] can turn blanks into
    /// [`Sealed`].
    ///
    /// # Errors
    /// If the medium fails, or a piece is not in any tree of this store.
    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError>;

    /// Returns once all earlier writes are durable.
    ///
    /// # Errors
    /// If durability can no longer be guaranteed.
    fn flush(&mut self) -> Result<(), StoreError>;
}

macro_rules! impl_store_for_pointer {
    ($pointer:ty) => {
        #[deny(clippy::missing_trait_methods)]
        impl<S: BucketStore + ?Sized> BucketStore for $pointer {
            fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
                (**self).shape(tree)
            }

            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }

            fn prefetch(&mut self, pieces: &[Piece]) {
                (**self).prefetch(pieces);
            }

            fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
                (**self).read(pieces)
            }

            fn read_candidates(
                &mut self,
                pieces: &[Piece],
                each: &mut dyn FnMut(usize, &[u8]),
            ) -> Result<(), StoreError> {
                (**self).read_candidates(pieces, each)
            }

            fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
                (**self).write(pieces, fill)
            }

            fn flush(&mut self) -> Result<(), StoreError> {
                (**self).flush()
            }
        }
    };
}

impl_store_for_pointer!(Box<S>);
impl_store_for_pointer!(&mut S);

/// The shapes of all trees of a store, starting with `TreeId(0)`.
pub fn shapes_of(store: &(impl BucketStore + ?Sized)) -> Vec<TreeShape> {
    (0..).map_while(|tree| store.shape(TreeId(tree)).cloned()).collect()
}

/// A function that seals the pieces of one write into the medium's own buffer.
pub type Fill<'f> = dyn for<'a> FnMut(Blanks<'a>) -> Sealed<'a> + 'f;
