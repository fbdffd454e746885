//! A durable, byte-addressed disk over an oblivious RAM.
//!
//! The crate `oblivio` is the way in: `Volume::create` and `Volume::open`, with examples. What is here are the parts that it is made
//! of, for programs that put them together otherwise.
//!
//! ```
//! use oblivio_volume::schemes;
//! use oblivio_volume::superblock::VolumeParams;
//!
//! // What a disk of 1 GiB would be like, before it is made.
//! let params = VolumeParams::plan(&schemes::requirements(1 << 30))?;
//! let cost = params.cost()?;
//! assert_eq!(params.capacity_bytes(), 1 << 30);
//! assert!(cost.client_bytes() < 48 << 20);
//! # Ok::<(), oblivio_volume::VolumeError>(())
//! ```
//!
//! A volume is durable as far as it was flushed, and authenticated: what storage changes or sets back is noticed. It is not constant-time, and
//! hides when there are requests only at a fixed rate. Nobody outside of the project has audited it. There are no features.
//!
//! | module | what it holds |
//! |---|---|
//! | [`volume`] | a durable array of blocks: the commit protocol |
//! | [`state_dir`] | where the client keeps its state |
//! | [`Coins`] | randomness that is renewed |
//! | [`tampering`] | that storage was found to be changed |
//! | [`wrong_servers`] | which servers have answered wrong |
//! | [`superblock`] | the parameters and key slots of a volume, in several copies |
//! | [`keys`] | what opens a volume |
//! | [`mod@unlock`] | from storage and a secret to its owner |
//! | [`key_change`] | how that is changed |
//! | [`copying`] | a volume moved between stores without being opened |
//! | [`schemes`] | what volumes stand on |
//! | [`plan`] | parameters, and what they cost |
//! | [`rescue`] | what is left of a damaged volume |
//! | [`disk`] | a volume as a disk of bytes, with a cache |
//! | [`device`] | a disk, as servers see it |
//! | [`insight`] | what goes on inside, for the owner to look at |
//!
//! Storage is handed to a volume, as the trait of the engine: it knows no store, and opens no
//! connection. ADR 5 of the repository argues why nothing is lost, `docs/format.md` of the
//! repository has every byte.

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
