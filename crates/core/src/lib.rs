//! The engine of Oblivio: tree-based Oblivious RAM over untrusted storage.
#![doc = ""]
pub mod bucket;
pub mod error;
pub mod geometry;
mod hint;
pub mod layout;
mod memory;
pub mod oram;
pub mod posmap;
pub mod reference;
pub mod scheme;
pub mod seal;
pub mod stash;
pub mod store;
pub mod view;

pub use bucket::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, CAPACITY_MAX};
pub use error::{Error, ErrorKind, StoreError};
pub use geometry::{BucketId, Geometry, Leaf};
pub use layout::{Layout, LayoutKind};
pub use oram::{Access, FlatOram, Oram, PathOram, RawOram};
pub use scheme::{Op, RawConfig, TreeConfig};
pub use seal::{Key, NoSecrecy, Sealer};
pub use store::{BucketStore, MemoryStore};
