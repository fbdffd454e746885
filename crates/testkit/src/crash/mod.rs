//! A simulation of machines that crash, to test durable volumes.
//!
//! A [`World`] owns the state that outlives a process: the contents of one store and of one client
//! directory. It hands out a [`CrashStore`] and a [`CrashDir`], injects faults into both, and
//! decides what survives a crash.
//!
//! # Faults, and why a volume must survive them
//! - **The process is killed** ([`Survival::All`]). Updates and the OOM killer do that daily. The
//!   page cache survives, but is no more durable than before: a power cut may follow.
//! - **The power fails** ([`Survival::None`], [`Survival::Random`]). Unsynced writes are lost,
//!   survive, or survive in part: caches write back in any order.
//! - **A write is torn** ([`Survival::Random`] with `torn`). Disks write only single sectors of 512
//!   bytes atomically.
//! - **A file has a hole** (the same). Its length reached the disk before its bytes. The hole shows
//!   zeros, or the contents of an earlier file: valid records of the past.
//! - **A rename or a new file is lost** (the same). Names are stored and synced separately from
//!   contents.
//! - **One disk of several fails or loses writes** ([`World::striped`]). A striped store writes and
//!   flushes on all disks at once, and each disk fails independently.
//! - **Only one machine fails** ([`World::crash_apart`]). The store is on another machine, and
//!   keeps what the client lost.
//! - **The store's machine crashes, and the client does not** ([`InjectedFault::StoreDiesAt`]).
//!   Servers are updated and run out of memory. The client must not notice anything but the delay.
//! - **One of several servers crashes, in its own step or with a message**
//!   ([`InjectedFault::StationAt`]). Servers that compute together can stop at any message, and
//!   only they know what is durable.
//! - **A message is lost, or is the last on its link** (the same). The sender does not know whether
//!   it arrived.
//! - **A connection is cut** ([`line()`]), at any byte, also within a message.
//! - **The machine crashes during an operation** ([`InjectedFault::CrashAt`]). Crashes do not only
//!   happen between operations. A sync in progress may have worked.
//! - **An operation fails** ([`InjectedFault::FailAt`], [`InjectedFault::FailEvery`]). Causes are
//!   cables, controllers and quotas. The effect of the failed operation is unknown.
//! - **A sync fails** ([`FailedSync::Drops`]). Linux reports it once and marks the lost pages
//!   clean; the next sync succeeds without them.
//! - **The disk is full** ([`InjectedFault::DiskFullAt`], [`InjectedFault::DiskFullFrom`]). Logs
//!   grow. A full disk must not cause data loss.
//! - **A crash during recovery** (several [`Life`]s of a [`Trial`]). A failure often recurs at
//!   once.
//! - **Storage is rolled back** ([`World::restore_store`]). The store is the adversary, and old
//!   buckets were sealed with the right key.
//! - **The client's directory is rolled back** ([`World::restore_dir`]). Users restore backups.
//! - **Buckets are flipped, swapped or replaced** ([`World::flip_bit`], [`World::swap_buckets`],
//!   [`World::replace_bucket`]). Causes are decay and the adversary.
//!
//! Two faults are not simulated. A store never loses synced bytes by itself (tamper with it
//! instead). Also, writes that a failed sync dropped are not visible *after* a restart.
//!
//! # Use
//! A [`Trial`] drives a [`BlockDevice`](oblivio_volume::device::BlockDevice) with a [`workload`]
//! through faults and crashes. It compares the device with a [`ShadowDisk`], a model of the
//! contract of a disk. All decisions come from seeds, and there is no clock. So a failure repeats
//! with its seed, if the volume makes its calls in the same order. With several threads, the order
//! of their calls decides.

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
pub use fault::{
    Counts, FailedOperation, FailedSync, InjectedFault, OpKind, Station, StationFailure, Survival,
};
pub use line::{CutAfter, LineEnd, line};
pub use raw_disk::RawDisk;
pub use servers::{CLIENT, Delivery, ServerDisk};
pub use shadow::{Report, ShadowDisk, Ticket, Wrong, WrongBlock};
pub use store::CrashStore;
pub use ticking_disk::TickingDisk;
pub use trial::{Life, Loss, Trial, TrialOutcome, apply};
pub use view::StoreEvent;
pub use watched_dir::{DirStep, WatchedDir};
pub use world::{Snapshot, World};
