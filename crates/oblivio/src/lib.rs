//! Oblivious storage for programs: what `oblivio` does on the command line, as a library.
//!
//! A [`Volume`] is a disk of bytes that outlives the program, on storage that is not trusted. Storage learns neither what it
//! holds nor which of it is used; what it does learn, `docs/threat-model.md` of the repository says.
//!
//! ```
//! use oblivio::{Secret, Volume};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (disk, state) = (folder.path().join("disk.obl"), folder.path().join("state"));
//! # let place = oblivio::Place::new(&disk)?.with_state(&state);
//! # let create = |secret: &Secret, bytes| place.create(secret, bytes);
//! # let open = |secret: &Secret| place.open(secret);
//! let secret = Secret::key_file(&[7; 32]); // 32 bytes that nobody can guess
//! # let _ = || Volume::create(&disk, &secret, 1);
//! let volume = create(&secret, 16 << 20)?; // or: Volume::create("disk.obl", &secret, 16 << 20)?
//! volume.write_at(b"nobody sees where", 1_000_000)?;
//! volume.flush()?; // from here on it survives a crash
//! volume.close()?;
//!
//! let volume = open(&secret)?; // or: Volume::open("disk.obl", &secret)?
//! let mut read = [0; 17];
//! volume.read_at(&mut read, 1_000_000)?;
//! assert_eq!(&read, b"nobody sees where");
//! # volume.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A volume is two things: storage, and the *client's directory*, which says where the blocks are. **Without the directory
//! the data cannot be found**: keep it as you keep the data, and never where storage is. Unless one is
//! [named](Place::with_state), it is below the user's other state ([`home`]), where the program looks, too: what one makes the other opens.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Volume`] | a disk in use |
//! | [`Place`] | where one is, and how it is made and opened |
//! | [`Array`] | an array of blocks in memory, or on a store of one's own, that lives as long as the program |
//! | [`Error`], [`ErrorKind`] | what can go wrong: the exit codes of the program |
//! | [`home`] | where the clients' directories of a user are |
//! | [`opening`], [`creation`] | the steps between, for programs that ask and tell more |
//!
//! An [`Array`] is less: it lives as long as the program, and needs no directory.
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
//! # What it is not
//! - **An array is not durable.** Key, stash and positions are in memory alone, whatever the store. A volume is durable: what was
//!   [flushed](Volume::flush) survives a crash.
//! - **The schemes of [`oblivio_core`] by themselves are neither durable nor authenticated.** Volumes and arrays are authenticated, unless an array is
//!   [told not to be](ArrayOptions::unauthenticated).
//! - **Time is not hidden**: storage sees when there was a request. A volume can be used at a fixed rate
//!   ([`DiskOptions`]).
//! - **Nobody outside of the project has audited it**, and formats may change before version 1.
//!
//! # Features
//! None: what this crate needs of [`oblivio_core`] is always there.
//!
//! # Where to go on
//! - The examples of this package are whole programs, and tests: a volume, a key-value store, a store of one's own on a database, and a view that
//!   is drawn.
//! - The crates below are [`oblivio_core`] (the algorithms, with a [manual](oblivio_core::manual)), [`oblivio_store`] (where buckets can be
//!   kept) and [`oblivio_volume`] (the disk). They are there for programs that need a part alone.
//! - In the repository, `docs/library.md` goes through all this, and `docs/add-a-store.md` through a store of one's own.

mod array;
pub mod creation;
mod error;
pub mod home;
mod location;
pub mod opening;
mod place;
mod requirements;
mod volume;

pub use array::{Array, ArrayOptions, Positions, Scheme};
pub use error::{Error, ErrorKind};
pub use location::Location;
pub use oblivio_core;
pub use oblivio_store;
pub use oblivio_store::{BoxedStore, StoreKind, StoreOptions};
pub use oblivio_volume;
pub use oblivio_volume::keys::Secret;
pub use oblivio_volume::{ArrayRequirements, DiskOptions, Recovery, VolumeOptions};
pub use place::Place;
pub use requirements::requirements;
pub use volume::Volume;

/// The code of the documents is compiled, and run unless it names a file.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/library.md")]
    struct Library;
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../README.md")]
    struct FirstPageOfThePackage;
}
