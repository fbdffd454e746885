//! Serves a disk to programs that know disks and files, and stores to clients elsewhere.
//!
//! A disk is a [`BlockDevice`](oblivio_volume::device::BlockDevice): an oblivious volume, or anything else.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use oblivio_serve::nbd::{self, Listen, NbdOptions, ServeError};
//! use oblivio_volume::device::BlockDevice;
//!
//! /// Lets programs of this user reach a disk by a socket, for as long as `work` takes.
//! fn share(disk: Arc<dyn BlockDevice>, work: impl FnOnce(&str)) -> Result<(), ServeError> {
//!     let socket = Listen::Unix("disk.sock".into());
//!     let server = nbd::serve(disk, socket, NbdOptions::default())?;
//!     work(&server.uri()); // `nbdcopy "$uri" copy.img`, say
//!     server.shutdown().map(drop)
//! }
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`nbd`] | a disk for NBD clients: qemu, nbdcopy, the kernel |
//! | [`fuse`] | a disk as a file in a directory |
//! | [`mount`] | a file system on that file |
//! | [`watch`] | a page that draws what storage sees of a disk, as it happens |
//! | [`buckets`] | servers of stores and of shares, for clients on other machines |
//!
//! # What it is not
//! Clients of a disk see its plaintext, so nothing of this is for machines that are not trusted, but [`buckets`]: those see what storage sees. Whether what
//! was written survives a crash, and whether changed bytes are noticed, is up to the disk; servers pass on what it says. They
//! hide nothing either: who watches a socket sees which offsets are asked for.
//!
//! Whoever embeds [`buckets`] leaves `SIGPIPE` ignored, as Rust programs have it: a client that goes in the middle of an answer is an error, and no signal.
//!
//! There are no features. The program `oblivio` is made of this, and `docs/threat-model.md` of the repository says what each server promises.

pub mod buckets;
pub mod fuse;
pub mod mount;
pub mod nbd;
pub mod watch;
