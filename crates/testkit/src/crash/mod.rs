//! A world in which machines die: where a durable volume is tried.
//!
//! A [`World`] owns what outlives a process: the contents of one store and of one client directory.
//! It hands out a [`CrashStore`] and a [`CrashDir`] to use them, does to both what machines do to
//! programs, and decides what is left after a crash.
//!
//! # What goes wrong, and why a volume must survive it
//! | fault | in the world | why |
//! |---|---|---|
//! | the process is killed | [`Survival::All`] | updates and the memory killer do it daily. The page cache lives on, but is no more durable than before: a power cut may follow. |
//! | the power fails | [`Survival::None`], [`Survival::Random`] | what was not synced goes, stays, or goes in parts: caches write back in any order. |
//! | a sector of a write is missing | [`Survival::Random`] with `torn` | a disk promises a sector of 512 bytes and nothing larger. |
//! | a file has a hole | the same | its length reached the disk before its bytes. Zeros show, or what an earlier file left there: sound records of the past. |
//! | a rename or a new file is forgotten | the same | names are kept apart from contents, and are synced apart. |
//! | one disk of several fails, or forgets | [`World::striped`] | a striped store writes and flushes on all at once, and each answers for itself. |
//! | one machine of two fails | [`World::crash_apart`] | the store is another machine, and keeps what the client forgot. |
//! | the store's machine dies, and the client does not | [`Fault::StoreDiesAt`] | servers are updated and run out of memory. Nobody may notice but by the time it takes. |
//! | one of several servers dies, in a step of its own or with a message | [`Fault::StationAt`] | servers that compute with each other can each stop at any message, and only they know what is durable. |
//! | a message is lost, or is the last of its link | the same | whoever sent it does not know how far it came. |
//! | a line is cut | [`line()`] | at any byte, also within a message. |
//! | an operation dies half-way | [`Fault::CrashAt`] | the moment between two operations is not the only one. A sync under way may have worked. |
//! | an operation fails | [`Fault::FailAt`], [`Fault::FailEvery`] | cables, controllers, quotas. What the failed operation did is unknown. |
//! | a sync fails | [`FailedSync::Drops`] | Linux reports it once, calls the lost pages clean, and the next sync succeeds without them. |
//! | the disk is full | [`Fault::DiskFullAt`], [`Fault::DiskFullFrom`] | logs grow. Nothing may be lost for want of room. |
//! | a crash while recovering | several [`Life`]s of a [`Trial`] | what failed once tends to fail again at once. |
//! | storage is rolled back | [`World::restore_store`] | the store is the adversary, and old buckets were sealed with the right key. |
//! | the client's directory is rolled back | [`World::restore_dir`] | people restore backups. |
//! | buckets are flipped, swapped, replaced | [`World::flip_bit`], [`World::swap_buckets`], [`World::replace_bucket`] | decay, and the adversary. |
//!
//! Not in this world: a store that loses synced bytes by itself (do it by tampering), and what a
//! failed sync dropped but a cache still shows *after* a restart: here, it is gone by then.
//!
//! # How it is used
//! A [`Trial`] drives a [`BlockDevice`](oblivio_volume::device::BlockDevice) with a
//! [`workload`] through faults and crashes, and holds it to a [`ShadowDisk`]: the contract of a disk
//! as a model. Every decision comes from seeds, there is no clock: a failure repeats with its
//! seed, as long as the volume asks in the same order. The world takes calls from several threads,
//! and then their order decides.

mod directory;
mod fault;
mod line;
mod medium;
mod raw_disk;
mod servers;
mod shadow;
pub mod small_volume;
mod store;
mod ticking_disk;
mod trial;
mod view;
mod watched_dir;
pub mod workload;
mod world;

#[cfg(test)]
mod tests;

pub use directory::{CrashDir, CrashFile};
pub use fault::{Counts, FailedSync, Fault, Mishap, OpKind, Station, Strike, Survival};
pub use line::{CutAfter, LineEnd, line};
pub use raw_disk::RawDisk;
pub use servers::{CLIENT, Fate, ServerDisk};
pub use shadow::{Report, ShadowDisk, Ticket, Wrong, WrongBlock};
pub use store::CrashStore;
pub use ticking_disk::TickingDisk;
pub use trial::{Life, Loss, Ran, Trial, apply};
pub use view::Seen;
pub use watched_dir::{DirStep, WatchedDir};
pub use world::{Snapshot, World};
