//! A durable, byte-addressed disk over an oblivious RAM.
//!
//! Start with the crate `oblivio`, which has `Volume::create` and `Volume::open`, with examples.
//! This crate has the parts it is made of, for programs that combine them in other ways.
//!
//! ```
//! use oblivio_volume::schemes;
//! use oblivio_volume::superblock::VolumeParams;
//!
//! // The parameters and the cost of a disk of 1 GiB.
//! let params = VolumeParams::plan(&schemes::requirements(1 << 30))?;
//! let cost = params.cost()?;
//! assert_eq!(params.capacity_bytes(), 1 << 30);
//! assert!(cost.client_bytes() < 48 << 20);
//! # Ok::<(), oblivio_volume::VolumeError>(())
//! ```
//!
//! Flushed data is durable, and all data is authenticated: a volume detects if storage changes it
//! or rolls it back. The code is not constant-time, and hides the times of requests only at a fixed
//! rate. It has not been audited outside of the project. The crate has no Cargo features.
//!
//! | module | what it holds |
//! |---|---|
//! | [`volume`] | a durable array of blocks: the commit protocol |
//! | [`state_dir`] | where the client keeps its state |
//! | [`Coins`] | a random number generator that is reseeded |
//! | [`tampering`] | the note that storage was found to be changed |
//! | [`wrong_servers`] | the list of servers that have given wrong answers |
//! | [`superblock`] | the parameters and key slots of a volume, in several copies |
//! | [`keys`] | the secrets that open a volume |
//! | [`mod@unlock`] | unlocking a volume with a secret |
//! | [`key_change`] | adding and removing key slots |
//! | [`copying`] | copying a volume between stores without opening it |
//! | [`schemes`] | the schemes of volumes |
//! | [`plan`] | parameters and their cost |
//! | [`rescue`] | reading the remaining data of a damaged volume |
//! | [`disk`] | a volume as a disk of bytes, with a cache |
//! | [`device`] | the disk interface that servers use |
//! | [`insight`] | counts of a volume in use, for its owner |
//!
//! The caller passes storage to a volume, as the engine's trait: this crate knows no store and
//! opens no connection. ADR 5 of the repository argues why nothing is lost, and `docs/format.md` of
//! the repository specifies every byte.

mod anchor;
#[cfg(fuzzing)]
pub mod anchor_fuzzing;
mod announced;
mod coins;
pub mod copying;
pub mod device;
pub mod disk;
mod error;
pub mod insight;
pub mod key_change;
pub mod keys;
mod ledger;
mod newest;
mod owner_records;
pub mod plan;
pub mod rescue;
pub mod schemes;
mod state;
pub mod state_dir;
pub mod superblock;
pub mod tampering;
pub mod unlock;
pub mod volume;
pub mod wrong_servers;

pub use coins::Coins;
pub use disk::{Disk, DiskOptions, Schedule};
pub use error::{VolumeError, VolumeErrorKind};
pub use owner_records::{RecordsAge, authentic_records, check_newest};
pub use plan::ArrayRequirements;
#[cfg(fuzzing)]
pub use state::fuzzing as state_fuzzing;
pub use volume::{Extent, Lengths, Recovery, SyncMoves, Volume, VolumeOptions};
