//! A test suite for [`BucketStore`]. Every store of Oblivio passes the suite, and so should yours.
//!
//! Call [`check_store`] from a test, with a function that makes an empty store:
//!
//! ```
//! use oblivio_conformance::check_store;
//! use oblivio_core::MemoryStore;
//!
//! // An empty store with trees of these shapes, `TreeId(0)` first.
//! check_store(|shapes| MemoryStore::new(shapes, MemoryStore::default_layout()).unwrap());
//! ```
//!
//! If a store outlives the program, use [`check_durable_store`], which also reopens it. The example
//! `own_store` of the crate `oblivio` does so for a store on a database.
//!
//! A failed check panics and says what the store did wrong. A store must refuse the operations that
//! its [capabilities](BucketStore::capabilities) exclude. The data written are random bytes from a
//! fixed seed, so a failing run can be repeated.

mod checked_store;
mod contract;
mod durable;

use oblivio_core::store::{BucketStore, TreeShape};

use checked_store::{CheckedStore, shapes};

/// Checks the stores that `make` returns against the contract of [`BucketStore`]. `make` must
/// return an empty store with trees of the given shapes, `TreeId(0)` first. It is called about a
/// dozen times, for a few small trees each.
///
/// # Panics
/// When the store violates the contract. The message says how.
pub fn check_store<S: BucketStore>(mut make: impl FnMut(&[TreeShape]) -> S) {
    let shapes = shapes();
    contract::check(|| CheckedStore::new(make(&shapes), &shapes));
}

/// Runs [`check_store`], and checks that flushed data survive the store: `reopen` takes a store,
/// loses it, and opens it again.
///
/// `reopen` should lose the store as a crash would. A store may write out buffered data when it is
/// dropped, and that would hide a flush that does nothing. So open a copy of its files, made before
/// the drop.
///
/// After a crash, a bucket that was written but not flushed must be readable. Its contents are not
/// compared. Then the suite writes it again.
///
/// ```
/// use oblivio_conformance::check_durable_store;
/// # use oblivio_core::{MemoryStore, StoreError};
/// # use oblivio_core::store::*;
/// # struct File { store: MemoryStore, disk: Vec<u8> }
/// # impl File {
/// #     fn create(shapes: &[TreeShape]) -> Self {
/// #         let store = MemoryStore::new(shapes, MemoryStore::default_layout()).unwrap();
/// #         Self { disk: store.contents().to_vec(), store }
/// #     }
/// #     fn open(shapes: &[TreeShape], disk: Vec<u8>) -> Self {
/// #         let mut store = MemoryStore::new(shapes, MemoryStore::default_layout()).unwrap();
/// #         store.contents_mut().copy_from_slice(&disk);
/// #         Self { store, disk }
/// #     }
/// # }
/// # impl BucketStore for File {
/// #     fn shape(&self, tree: TreeId) -> Option<&TreeShape> { self.store.shape(tree) }
/// #     fn capabilities(&self) -> Capabilities { self.store.capabilities() }
/// #     fn prefetch(&mut self, pieces: &[Piece]) { self.store.prefetch(pieces); }
/// #     fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
/// #         self.store.read(pieces)
/// #     }
/// #     fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
/// #         self.store.write(pieces, fill)
/// #     }
/// #     fn flush(&mut self) -> Result<(), StoreError> {
/// #         self.disk = self.store.contents().to_vec();
/// #         Ok(())
/// #     }
/// # }
///
/// check_durable_store(
///     |shapes| File::create(shapes),
///     |file| {
///         let on_disk = file.disk.clone(); // what a crash would leave
///         let shapes = shapes_of(&file);
///         drop(file);
///         File::open(&shapes, on_disk)
///     },
/// );
/// ```
///
/// # Panics
/// When the store violates the contract. The message says how.
pub fn check_durable_store<S: BucketStore>(
    mut make: impl FnMut(&[TreeShape]) -> S,
    mut reopen: impl FnMut(S) -> S,
) {
    check_store(&mut make);
    let shapes = shapes();
    durable::check(|| CheckedStore::new(make(&shapes), &shapes), &mut reopen);
}
