//! A durable, byte-addressed disk over an oblivious RAM.
//!
//! | module | what it holds |
//! |---|---|
//! | [`volume`] | a durable array of blocks: the commit protocol |
//! | `ledger`, `state` | what the client keeps of it: state files |
//! | [`state_dir`] | where the client keeps it |
//! | [`Coins`] | randomness that is renewed |
//! | `anchor` | what storage keeps of it, so that neither side can go back |
//! | `announced` | what storage is about to be shown of an opening |
//! | [`tampering`] | that storage was found to be changed |
//! | `newest` | which superblock the client takes |
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
//!
//! Storage is handed to a volume, as the trait of the engine: it knows no store.
//! ADR 5 of the repository argues why nothing is lost, `docs/format.md` of the repository has every byte.

mod anchor;
#[cfg(fuzzing)]
pub mod anchor_fuzzing;
mod announced;
mod coins;
pub mod copying;
pub mod device;
pub mod disk;
mod error;
pub mod key_change;
pub mod keys;
mod ledger;
mod newest;
pub mod plan;
pub mod rescue;
pub mod schemes;
mod state;
pub mod state_dir;
pub mod superblock;
pub mod tampering;
pub mod unlock;
pub mod volume;

pub use coins::Coins;
pub use disk::{Disk, DiskOptions, Schedule};
pub use error::{VolumeError, VolumeErrorKind};
pub use plan::Wish;
#[cfg(fuzzing)]
pub use state::fuzzing as state_fuzzing;
pub use volume::{Extent, Lengths, Recovery, SyncMoves, Volume, VolumeOptions};
