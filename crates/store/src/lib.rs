//! Untrusted storage, and where it is.
//!
//! A [`Location`] is what people write for where storage is, and opens it: see [`opener`] for how a store is
//! added. [`FileStore`] keeps the trees of a volume in one sparse file and serves
//! them as [`oblivio_core::store::BucketStore`]. It sees what storage sees: names of buckets and ciphertext.
//! Nothing in the file is secret and nothing in it is believed. [`StripedStore`] is one store over several others, which
//! work at the same time; [`RemoteStore`] is one on a server.
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
//! // What was never written takes no room.
//! assert!(opened.condition.allocated_bytes < location.kind().bytes_needed(&[shape])?);
//! # Ok(())
//! # }
//! ```
//!
//! # What it is not
//! A store keeps bytes, and hides nothing: which buckets are asked for, when, and how often, is what it sees. It is **not authenticated**:
//! it finds what a broken disk does, and not what somebody changes who means to. And it is durable only as far as it was
//! [flushed](oblivio_core::store::BucketStore::flush). Oblivious, sealed and durable is what stands on it: the `Volume` of the crate `oblivio`.
//!
//! There are no features. For a store of one's own, `docs/add-a-store.md` of the repository goes through each step, and the crate
//! `oblivio-conformance` checks it.
//!
//! # The rooms
//! | module | what it holds |
//! |---|---|
//! | [`location`] | where storage is, as people write it |
//! | [`opener`] | from a location to storage |
//! | [`container`] | the header of the file, as bytes |
//! | `header` | the copies of it in the file: written, found, mended |
//! | `store` | [`FileStore`]: trips of pieces, and how they become few and long requests |
//! | `places` | where a piece lies in the file |
//! | `pending` | what was written and is not in the file yet |
//! | `medium` | the file itself: opened, locked, read, written |
//! | `fetching` | how a trip is read: out of the page cache, or from the medium |
//! | `look_ahead` | the thread that reads what was announced |
//! | `failure` | the failure that makes a composite store refuse all later calls |
//! | `striped` | [`StripedStore`]: a trip over several stores at once |
//! | [`dealing`] | which of them holds what, and whether they belong together |
//! | [`remote_place`], [`calling`] | where a server is, and how it is reached |
//! | [`remote`] | [`RemoteStore`]: a store on a server |
//! | `worker` | the thread of each of them |
//! | `buffer` | memory that a direct request may use |
//! | `syncer` | the thread that has the medium write ahead of a flush |

mod buffer;
pub mod calling;
pub mod container;
pub mod dealing;
mod error;
mod failure;
mod fetching;
mod header;
pub mod location;
mod look_ahead;
mod medium;
pub mod opener;
mod pending;
mod places;
pub mod remote;
pub mod remote_place;
mod store;
mod striped;
mod syncer;
mod worker;

pub use error::{OpenError, OpenErrorKind};
pub use failure::StoreFailure;
pub use location::{InvalidLocation, Location, Members, StoreKind, path_text};
pub use opener::{BoxedStore, Condition, OpenedStore, Remains, StoreOptions};
pub use places::absent;
pub use remote::{Asking, Dial, RemoteMode, RemoteOptions, RemoteStore};
pub use remote_place::{PORT, RemotePlace};
pub use store::{FileOptions, FileStore};
pub use striped::StripedStore;
