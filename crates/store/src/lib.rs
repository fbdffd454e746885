//! Untrusted storage, and the locations that name it.
//!
//! A [`Location`] is the written form of a storage location, and opens it; [`opener`] explains how
//! to add a store. [`FileStore`] keeps the trees of a volume in one sparse file and implements
//! [`oblivio_core::store::BucketStore`]. A store sees bucket addresses and ciphertext. The file
//! contains no secret and is not trusted. [`StripedStore`] is one store over several stores that
//! work in parallel; [`RemoteStore`] is a store on a server.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use oblivio_core::RawConfig;
//! use oblivio_core::store::TreeId;
//! use oblivio_store::{Location, StoreOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # let url = format!("file://{}/volume", folder.path().display());
//! let location: Location = url.parse()?; // file:///srv/volume, say
//! let shape = RawConfig::new(1000, 4096)?.tree.shape()?;
//! let store = location.create(&[shape.clone()], &StoreOptions::default())?;
//! drop(store);
//!
//! let opened = location.open(&StoreOptions::default())?;
//! assert_eq!(opened.store.shape(TreeId(0)), Some(&shape));
//! // Buckets that were never written take no space.
//! assert!(opened.condition.allocated_bytes < location.kind().bytes_needed(&[shape])?);
//! # Ok(())
//! # }
//! ```
//!
//! # Limits
//! A store keeps bytes and hides nothing: it sees which buckets are accessed, when and how often. A
//! store is **not authenticated**: it detects a faulty disk, but no tampering. Only
//! [flushed](oblivio_core::store::BucketStore::flush) writes are durable. The `Volume` of the crate
//! `oblivio` adds obliviousness, sealing and durability.
//!
//! The crate has no Cargo features. To write your own store, follow `docs/add-a-store.md` in the
//! repository; the crate `oblivio-conformance` tests it.
//!
//! # Modules
//! | module | contents |
//! |---|---|
//! | [`location`] | storage locations as people write them |
//! | [`opener`] | creates and opens storage at a location |
//! | [`container`] | the encoding of the file's header |
//! | `fields` | reads numbers from untrusted bytes |
//! | `header` | reads, writes and repairs the copies of the header |
//! | `store` | [`FileStore`]: turns trips of pieces into few, long requests |
//! | `file_layout` | the position of a piece in the file |
//! | `pending` | written bytes that are not in the file yet |
//! | `medium` | the file: open, lock, read, write |
//! | `fetching` | reads a trip from the page cache or the disk |
//! | `look_ahead` | the thread that reads announced trips |
//! | `failure` | the error that makes a composite store refuse all later calls |
//! | `striped` | [`StripedStore`]: a trip over several stores in parallel |
//! | [`striping`] | distributes levels over members, and checks that members belong together |
//! | [`near`] | [`NearStore`](near::NearStore): a store with copies of its upper levels in a file |
//! | [`objects`] | engines of named objects that are written once |
//! | [`objects_location`] | locations of engines, and the stores there |
//! | [`cloud_location`] | the location of a volume in an object store |
//! | [`redis_location`] | the location of a volume on a Redis or Valkey cluster |
//! | [`remote_location`], [`connector`] | the location of a server, and connections to it |
//! | [`remote`] | [`RemoteStore`]: a store on a server |
//! | [`packed`] | [`PackedStore`]: buckets packed into objects that are written once |
//! | `prefetched` | announced pieces of a remote store |
//! | `worker` | the thread of each member of a stripe |
//! | `buffer` | memory for direct I/O |
//! | `syncer` | the thread that starts write-back before a flush |

mod buffer;
pub mod cloud_location;
pub mod connector;
pub mod container;
mod error;
mod failure;
mod fetching;
mod fields;
mod file_layout;
mod header;
pub mod location;
mod look_ahead;
mod medium;
pub mod near;
pub mod objects;
pub mod objects_location;
pub mod opener;
pub mod packed;
mod pending;
mod prefetched;
pub mod redis_location;
pub mod remote;
pub mod remote_location;
mod store;
mod striped;
pub mod striping;
mod syncer;
mod worker;

pub use cloud_location::{CloudLocation, CloudService, CredentialSource};
pub use error::{OpenError, OpenErrorKind};
pub use failure::StoreFailure;
pub use file_layout::absent;
pub use location::{InvalidLocation, Location, Members, StoreKind, path_text};
pub use objects_location::{Engine, EngineLocation, NearFile, ObjectsLocation};
pub use opener::{BoxedStore, Condition, OpenedStore, Remnants, StoreOptions};
pub use packed::{PackedMode, PackedOptions, PackedStore};
pub use redis_location::{REDIS_PORT, RedisLocation, RedisSecurity};
pub use remote::{Connector, PendingComputation, RemoteMode, RemoteOptions, RemoteStore};
pub use remote_location::{PORT, RemoteLocation};
pub use store::{FileOptions, FileStore};
pub use striped::StripedStore;
