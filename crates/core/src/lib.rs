//! The engine of Oblivio: Oblivious RAM over storage that is not trusted.
//!
//! Encryption hides what data says. Oblivious RAM (ORAM) also hides which data is touched, when,
//! how often, and whether it is read or written. This crate holds the algorithms: no I/O, no clock,
//! no threads, no randomness of its own.
//!
//! ```
//! use oblivio_core::{Key, MemoryStore, Oram, RawConfig, RawOram, Sealer};
//! use rand::{SeedableRng, rngs::StdRng};
//!
//! let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
//! let config = RawConfig::new(10_000, 64)?; // 10,000 blocks of 64 bytes
//! let store = MemoryStore::new(&[config.tree.shape()?], MemoryStore::default_layout())?;
//! // Neither durable nor authenticated: what that means is on the first page of this crate.
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
//! - [`Oram`] is what one uses; [`PathOram`] and [`RawOram`] are what one makes. [`front::build`] makes any
//!   other ORAM from its parameters, and [`Front`] is what its owner has besides.
//! - [`store::BucketStore`] is the one trait to untrusted storage; implement it to put an ORAM
//!   somewhere new. [`view::Recorder`] wraps any store and records what storage sees.
//!
//! # The rooms
//! | module | what it holds |
//! |---|---|
//! | [`geometry`] | levels, slots, leaf labels, the order of evictions |
//! | [`pieces`] | what a trip asks for, and what it brings |
//! | [`layout`] | where a bucket lies in storage |
//! | [`bucket`] | a bucket as bytes |
//! | [`seal`] | AES in counter mode, and the only way for bytes into storage |
//! | [`stash`] | blocks on the client, and PushToLeaf |
//! | [`posmap`] | which path each block is mapped to |
//! | [`scheme`] | Path ORAM and RAW ORAM |
//! | [`front`] | arrays of blocks over a scheme: flat, with the position map in a tree, behind a cache, ρ |
//! | [`durable`] | schemes for storage that outlives the client |
//! | [`store`] | the trait to storage, and memory |
//! | [`records`] | what storage may read: superblocks and anchors |
//! | [`view`] | the adversary's view, recorded |
//!
//! What else is public and has no page here (saved simulations, regions of memory, slow versions to compare with) is for the other
//! crates of Oblivio, and changes without notice.
//!
//! Randomness is whatever implements the traits of [`rand_core`], in the version that stands here: the generators of `rand` 0.10 do.
//!
//! # Features
//! All of these are on by default.
//!
//! | feature | with it | without it |
//! |---|---|---|
//! | `std` | views can be written to files and as CSV, a sink can be shared behind a lock, and a kind of error of the system has one of a store | the crate is `no_std`, and needs an allocator |
//! | `mmap` | large regions of memory are mappings, with huge pages if the system gives them. It implies `std` | they come from the allocator |
//! | `pmmac` | there is [`Integrity::Pmmac`], which needs `ring` | there is no such variant |
//!
//! All else is the same without them: every ORAM here, and what storage sees of it. With `default-features = false` the crate
//! is built for machines without an operating system (`make no-std` builds it for one). It seals buckets with AEGIS, which is in
//! C: without a C compiler for the machine, ask the crate `aegis` for its feature `pure-rust`. `pmmac` can be had wherever
//! `ring` can.
//!
//! # What it does not do
//! - **Most ORAMs here are not durable.** Key, stash and position map are in memory alone, whatever the store: once the program
//!   ends, nothing opens the storage again. [`RotatingOram`] can be saved and resumed, and `oblivio-volume` makes a disk of it
//!   that survives crashes.
//! - **Most are not authenticated.** Storage is taken to be curious and not malicious: what it returns is checked so
//!   far that nothing panics and nothing out of range is believed, but who changes a bit there changes an answer, and
//!   nobody notices. [`RotatingOram`] authenticates all it opens, [`Integrity::Pmmac`] the blocks asked for.
//! - **The client is not constant-time**: who measures its cache or its branches learns more than storage does.
//!
//! Nobody outside the project has audited it.

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
pub use durable::rotating::{RotatingConfig, RotatingOram};
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
