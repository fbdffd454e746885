//! The engine of Oblivio: Oblivious RAM over untrusted storage.
//!
//! Encryption hides what data says. Oblivious RAM (ORAM) also hides which data is accessed, how
//! often, and whether it is read or written. This crate holds the algorithms. They do no I/O, have
//! no clock or threads, and take their randomness from the caller.
//!
//! ```
//! use oblivio_core::{Key, MemoryStore, Oram, RawConfig, RawOram, Sealer};
//! use rand::{SeedableRng, rngs::StdRng};
//!
//! let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
//! let config = RawConfig::new(10_000, 64)?; // 10,000 blocks of 64 bytes
//! let store = MemoryStore::new(&[config.tree.shape()?], MemoryStore::default_layout())?;
//! // Neither durable nor authenticated: see "Limitations" on the first page of this crate.
//! let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree.tree);
//! let mut oram = RawOram::raw(&config, sealer, store, coins)?;
//!
//! oram.write(1234, &[7; 64])?;
//! oram.update(1234, &mut |block| block[0] += 1)?;
//! let mut block = [0; 64];
//! oram.read(1234, &mut block)?;
//! assert_eq!((block[0], block[1]), (8, 7));
//! # Ok::<(), oblivio_core::Error>(())
//! ```
//!
//! # Where to start
//! - [`manual`] teaches Path ORAM and RAW ORAM from the beginning.
//! - [`Oram`] is the trait of accesses; [`PathOram`] and [`RawOram`] are the two basic ORAMs.
//!   [`front::build`] makes any other ORAM from its parameters, and [`Front`] has the operations
//!   that only the owner needs.
//! - [`store::BucketStore`] is the only interface to untrusted storage; implement it to put an ORAM
//!   on another kind of storage. [`view::Recorder`] wraps any store and records what storage sees.
//!
//! # Modules
//! | module | contents |
//! |---|---|
//! | [`geometry`] | levels, slots, leaf labels, the order of evictions |
//! | [`pieces`] | the requests and results of a round trip to storage |
//! | [`layout`] | the location of a bucket in storage |
//! | [`bucket`] | the encoding of a bucket |
//! | [`seal`] | encryption, with AES or AEGIS; the only way to write blocks to storage |
//! | [`stash`] | blocks on the client, and PushToLeaf |
//! | [`posmap`] | the path to which each block is mapped |
//! | [`scheme`] | Path ORAM, RAW ORAM and rotating RAW ORAM |
//! | [`front`] | arrays of blocks over a scheme: flat, position map in a tree, cached, ρ |
//! | [`durable`] | schemes for storage that outlives the client |
//! | [`store`] | the interface to storage, and a store in memory |
//! | [`records`] | unencrypted records: superblocks and anchors |
//! | [`view`] | recordings of the adversary's view |
//!
//! Other public items without a page here (saved simulations, memory regions, slow reference
//! versions) are for the other crates of Oblivio and may change at any time.
//!
//! Random generators must implement the traits of [`rand_core`], in the version re-exported here.
//! Those of `rand` 0.10 do.
//!
//! # Features
//! All features are on by default.
//!
//! | feature | adds | without it |
//! |---|---|---|
//! | `std` | view files, CSV, shared sinks, conversions of I/O errors | `no_std`, needs `alloc` |
//! | `mmap` | large regions as mappings, if possible of huge pages; implies `std` | allocation |
//! | `pmmac` | [`Integrity::Pmmac`], which needs `ring` | no such variant |
//!
//! Every ORAM works without these features, and storage sees the same. With `default-features =
//! false` the crate builds for machines without an operating system (`make no-std` builds it for
//! one). The crate `aegis`, which seals the buckets of [`DurableRawOram`], contains C. If there is
//! no C compiler for the machine, enable the feature `pure-rust` of `aegis`. `pmmac` works on every
//! target of `ring`.
//!
//! # Limitations
//! - **Most ORAMs here are not durable.** Key, stash and position map are only in memory, whatever
//!   the store: after the program ends, the storage cannot be opened again. [`DurableRawOram`] can
//!   be saved and restored, and `oblivio-volume` makes a disk of it that survives crashes.
//! - **Most are not authenticated.** Storage is assumed to be honest but curious. Its answers are
//!   validated so that nothing panics and no value is out of range. But an attacker who changes a
//!   bit in storage can change a block unnoticed. [`DurableRawOram`] authenticates everything it
//!   opens, and [`Integrity::Pmmac`] the blocks that are requested.
//! - **The client is not constant-time.** An attacker who measures its cache or branches learns
//!   more than storage does.
//!
//! The crate has not been audited by anyone outside the project.

#![cfg_attr(not(test), no_std)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod address_set;
mod block_cache;
pub mod bucket;
pub mod durable;
pub mod error;
pub mod front;
pub mod geometry;
mod hint;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod image;
pub mod layout;
pub mod manual;
#[doc(hidden)]
pub mod memory;
pub mod pieces;
pub mod posmap;
pub mod records;
#[doc(hidden)]
pub mod reference;
pub mod scheme;
pub mod schemes;
pub mod seal;
pub mod stash;
pub mod store;
pub mod view;
pub mod wiped;

pub use rand_core;

pub use bucket::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, CAPACITY_MAX};
pub use durable::rotating::{DurableRawOram, RotatingConfig};
pub use error::{Error, ErrorKind, StoreError, StoreErrorKind};
pub use front::{
    Access, CacheConfig, CachedOram, FlatOram, FreecursiveConfig, FreecursiveOram, Front,
    HitPolicy, Integrity, Oram, PathOram, RawOram, RecursiveConfig, RecursiveOram, RemapPolicy,
    RhoConfig, RhoOram,
};
pub use geometry::{BucketId, Geometry, Leaf};
pub use layout::{Layout, LayoutKind};
pub use posmap::Recursion;
#[cfg(fuzzing)]
pub use posmap::nested_fuzzing;
pub use scheme::{Op, RawConfig, TreeConfig};
pub use seal::{EraSealer, Key, MasterKey, NoSecrecy, Sealer};
pub use stash::TreeTopKind;
pub use store::{BucketStore, MemoryStore};
