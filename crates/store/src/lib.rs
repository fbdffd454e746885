//! Untrusted storage on a file.
//!
//! [`FileStore`] keeps the trees of a volume in one sparse file and serves them as
//! [`oblivio_core::store::BucketStore`]. It sees what storage sees: names of buckets and ciphertext.
//! Nothing in the file is secret and nothing in it is believed.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use oblivio_core::RawConfig;
//! use oblivio_store::{FileOptions, FileStore};
//!
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("volume");
//! let shape = RawConfig::new(1000, 4096)?.tree.shape()?;
//! let store = FileStore::create(&path, &[shape.clone()], &FileOptions::default())?;
//! assert!(store.allocated_bytes()? < store.bytes()); // what was never written takes no room
//! drop(store);
//!
//! let store = FileStore::open(&path, &FileOptions::default())?;
//! assert_eq!(store.shapes(), [shape]);
//! # Ok(())
//! # }
//! ```
//!
//! # The rooms
//! | module | what it holds |
//! |---|---|
//! | [`container`] | the header of the file, as bytes |
//! | `store` | [`FileStore`]: trips of pieces, and how they become few and long requests |
//! | `places` | where a piece lies in the file |
//! | `pending` | what was written and is not in the file yet |
//! | `medium` | the file itself: opened, locked, read, written |
//! | `buffer` | memory that a direct request may use |
//! | `syncer` | the thread that has the medium write ahead of a flush |

mod buffer;
pub mod container;
mod error;
mod medium;
mod pending;
mod places;
mod store;
mod syncer;

pub use error::{FileError, FileErrorKind};
pub use store::{FileOptions, FileStore};
