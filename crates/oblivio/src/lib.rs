//! Oblivious storage as a library: everything that the program `oblivio` does on the command line.
//!
//! A [`Volume`] is a disk of bytes that outlives the program, on untrusted storage. Storage learns
//! neither what the volume holds nor which parts are used. `docs/threat-model.md` in the repository
//! says what storage does learn.
//!
//! ```
//! use oblivio::{Secret, Volume};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (disk, state) = (folder.path().join("disk.obl"), folder.path().join("state"));
//! # let location = oblivio::VolumeLocation::new(&disk)?.with_state(&state);
//! # let create = |secret: &Secret, bytes| location.create(secret, bytes);
//! # let open = |secret: &Secret| location.open(secret);
//! let secret = Secret::key_file(&[7; 32]); // use 32 secret random bytes
//! # let _ = || Volume::create(&disk, &secret, 1);
//! let volume = create(&secret, 16 << 20)?; // or: Volume::create("disk.obl", &secret, 16 << 20)?
//! volume.write_at(b"written somewhere", 1_000_000)?;
//! volume.flush()?; // from here on it survives a crash
//! volume.close()?;
//!
//! let volume = open(&secret)?; // or: Volume::open("disk.obl", &secret)?
//! let mut read = [0; 17];
//! volume.read_at(&mut read, 1_000_000)?;
//! assert_eq!(&read, b"written somewhere");
//! # volume.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A volume has two parts: storage, and the *client's directory*, which holds the map of the
//! blocks. **Without the directory the data cannot be found**: keep it as you keep the data, but
//! never where storage is. By default it is in the user's state directory ([`home`]), where the
//! program `oblivio` also searches, so that the library and the program open each other's volumes.
//! [`VolumeLocation::with_state`] names another directory.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Volume`] | a disk in use |
//! | [`VolumeLocation`] | the location of a volume, which creates and opens it |
//! | [`Array`] | an array in memory or on a custom store, which is lost when the program ends |
//! | [`Error`], [`ErrorKind`] | errors; each kind has an exit code of the program |
//! | [`home`] | the client's directories of a user |
//! | [`opening`], [`creation`] | the single steps, for programs that need more control |
//!
//! An [`Array`] is simpler: it is lost when the program ends, and needs no directory.
//!
//! ```
//! use oblivio::Array;
//!
//! let mut array = Array::in_memory(1000, 64)?; // 1000 blocks of 64 bytes
//! array.write(7, &[42; 64])?;
//! array.update(7, |block| block[0] += 1)?;
//! # Ok::<(), oblivio::Error>(())
//! ```
//!
//! # Limitations
//! - **An array is not durable.** Key, stash and positions are only in memory, whatever the store.
//!   A volume is durable: what was [flushed](Volume::flush) survives a crash.
//! - **The schemes of [`oblivio_core`] by themselves are neither durable nor authenticated.**
//!   Volumes and arrays are authenticated, unless an array is [explicitly
//!   not](ArrayOptions::unauthenticated).
//! - **Time is not hidden**: storage sees when there was a request. A volume can be used at a fixed
//!   rate ([`DiskOptions`]).
//! - **It has not been audited outside of the project**, and formats may change before version 1.
//!
//! # Features
//! This crate has no Cargo features. Those of [`oblivio_core`] that it needs are always enabled.
//!
//! # Further reading
//! - The examples of this package are complete programs and tests: a volume, a key-value store, a
//!   custom store on a database, and a view that is drawn.
//! - The crates below are [`oblivio_core`] (the algorithms, with a [manual](oblivio_core::manual)),
//!   [`oblivio_store`] (stores of buckets) and [`oblivio_volume`] (the disk), for programs that
//!   need only a part.
//! - In the repository, `docs/library.md` is a guide to this crate, and `docs/add-a-store.md` to
//!   custom stores.

mod array;
pub mod creation;
mod error;
pub mod home;
mod location;
pub mod opening;
mod requirements;
mod volume;
mod volume_location;

pub use array::{Array, ArrayOptions, Positions, Scheme};
pub use error::{Error, ErrorKind};
pub use location::Location;
pub use oblivio_core;
pub use oblivio_store;
pub use oblivio_store::{BoxedStore, StoreKind, StoreOptions};
pub use oblivio_volume;
pub use oblivio_volume::keys::Secret;
pub use oblivio_volume::{ArrayRequirements, DiskOptions, Recovery, VolumeOptions};
pub use requirements::requirements;
pub use volume::Volume;
pub use volume_location::VolumeLocation;

/// Compiles the code of the repository's documents, and runs it unless it is marked `no_run`.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/library.md")]
    struct Library;
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../README.md")]
    struct FirstPageOfThePackage;
}
