//! What [`BucketStore`] promises, checked from outside: the suite that every store of Oblivio passes, and that a store of one's own
//! should.
//!
//! A store is called in a test, with something that makes one:
//!
//! ```
//! use oblivio_conformance::check_store;
//! use oblivio_core::MemoryStore;
//!
//! // An empty store with trees of these shapes, `TreeId(0)` first.
//! check_store(|shapes| MemoryStore::new(shapes, MemoryStore::default_layout()).unwrap());
//! ```
//!
//! One that outlives the program is opened again as well, by [`check_durable_store`]. The example `own_store` of the crate
//! `oblivio`, on a database, shows it.
//!
//! A check that fails panics and says what the store did wrong. What a store says that it [cannot
//! do](BucketStore::capabilities) has to be refused. What is written is random bytes from a fixed seed: a failing run can be
//! repeated.

mod bench;
mod contract;
mod durable;

use oblivio_core::store::{BucketStore, TreeShape};

use bench::{Bench, shapes};

/// Holds the stores that `make` returns to the contract. Each has to be empty, with trees of the shapes it was made for,
/// `TreeId(0)` first. A dozen are made, and some small trees are all they have to hold.
///
/// # Panics
/// With what a store does wrong.
pub fn check_store<S: BucketStore>(mut make: impl FnMut(&[TreeShape]) -> S) {
    let shapes = shapes();
    contract::check(|| Bench::new(make(&shapes), &shapes));
}

/// The same, and that what was flushed outlives the store: `reopen` takes one, loses it, and opens it again.
///
/// It should lose it as a crash would. If a store writes out what it kept back when it is dropped, then a flush that does nothing
/// goes unnoticed: open a copy of its files, made before the store is dropped.
///
/// After a crash, a bucket that was written and not flushed has to be readable. What it holds is
/// not compared, and it is then written again.
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
/// #     fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> { self.store.read(pieces) }
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
/// With what a store does wrong.
pub fn check_durable_store<S: BucketStore>(
    mut make: impl FnMut(&[TreeShape]) -> S,
    mut reopen: impl FnMut(S) -> S,
) {
    check_store(&mut make);
    let shapes = shapes();
    durable::check(|| Bench::new(make(&shapes), &shapes), &mut reopen);
}
