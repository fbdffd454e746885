//! From a location to storage: the one place where stores are made and opened.
//!
//! # To add a store
//! The store itself is a module of this crate, or a crate that this one may know: it implements
//! [`BucketStore`] with every method, passes the conformance suite of the test kit, and says what a failure
//! is with a [`StoreErrorKind`](oblivio_core::StoreErrorKind). Then:
//!
//! 1. Add a variant to [`StoreKind`] with its scheme, and to [`StoreKind::ALL`]. Messages then name it.
//! 2. Add a variant to [`Location`] that holds what its URL says, and take the URL apart in
//!    [`Location::parse`]. A secret is never a part of it: name a file or a variable that holds one. Its
//!    [`Display`](std::fmt::Display) must give what parses to it again.
//! 3. The compiler now points at every `match` in this file. [`Location::open`] and [`Location::create`]
//!    answer the store in a box, and [`StoreKind::bytes_needed`] what it would take. An option that the
//!    store does not have is an error that says so, and never left out in silence.
//! 4. Map its failures to [`OpenErrorKind`]: exit codes follow from the kind.
//! 5. Describe the URL in the table of [`location`](crate::location), and in the help of the program.
//!
//! Nothing else changes: whoever uses storage is handed a [`BoxedStore`], and does not know which it is.

use std::fs;
use std::io;
use std::path::Path;

use oblivio_core::store::{BucketStore, TreeShape};

use crate::container::HEADER_COPIES;
use crate::error::{OpenError, OpenErrorKind};
use crate::location::{Location, StoreKind};
use crate::store::{FileOptions, FileStore};

/// Storage, whatever it is.
pub type BoxedStore = Box<dyn BucketStore + Send>;

/// How storage is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// Pass by the page cache of the system.
    pub direct: bool,
    /// Refuse writes, and share the storage with others that do.
    pub read_only: bool,
    /// Open storage to read even if a part of it is gone: that part cannot be read, and the rest can.
    pub may_be_cut_off: bool,
}

/// Storage that was opened.
pub struct OpenedStore {
    /// The storage.
    pub store: BoxedStore,
    /// What the opening found.
    pub condition: Condition,
}

/// The state in which storage was found. Nothing vouches for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Bytes that it takes where it is.
    pub allocated_bytes: u64,
    /// A part of it is gone.
    pub is_cut_off: bool,
    /// What is wrong with it, a sentence for each.
    pub damage: Vec<String>,
    /// What was wrong with it and has been mended, a sentence for each.
    pub mended: Vec<String>,
}

impl StoreKind {
    /// Bytes that [`Location::create`] would take up in the end for trees of these shapes.
    ///
    /// # Errors
    /// When no storage of this kind can hold them.
    pub fn bytes_needed(self, shapes: &[TreeShape]) -> Result<u64, OpenError> {
        match self {
            Self::File => FileStore::bytes_needed(shapes),
        }
    }
}

impl Location {
    /// Makes new storage for trees of these shapes, `TreeId(0)` first.
    ///
    /// # Errors
    /// When there is something already, when it cannot hold the shapes, or when the system refuses.
    /// Nothing is left behind.
    pub fn create(
        &self,
        shapes: &[TreeShape],
        options: &StoreOptions,
    ) -> Result<BoxedStore, OpenError> {
        match self {
            Self::File(path) => {
                Ok(Box::new(FileStore::create(path, shapes, &file_options(options))?))
            }
        }
    }

    /// Opens storage that there is.
    ///
    /// # Errors
    /// When it is not ours, not whole, in use elsewhere, or the system refuses.
    pub fn open(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        match self {
            Self::File(path) => {
                let store = FileStore::open(path, &file_options(options))?;
                let condition = condition_of_file(&store, options.read_only)?;
                Ok(OpenedStore { store: Box::new(store), condition })
            }
        }
    }

    /// Whether [`Self::create`] would find nothing there. It looks again by itself: this is to know in time.
    ///
    /// # Errors
    /// [`OpenErrorKind::Exists`] when something is there.
    pub fn check_vacant(&self) -> Result<(), OpenError> {
        match self {
            Self::File(path) => check_no_file(path),
        }
    }

    /// Removes storage that was created and did not become what it should.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        match self {
            Self::File(path) => fs::remove_file(path),
        }
    }
}

fn file_options(options: &StoreOptions) -> FileOptions {
    let StoreOptions { direct, read_only, may_be_cut_off } = *options;
    FileOptions { direct, read_only, may_be_cut_off, ..FileOptions::default() }
}

fn condition_of_file(store: &FileStore, read_only: bool) -> Result<Condition, OpenError> {
    let allocated_bytes = store
        .allocated_bytes()
        .map_err(|cause| OpenError::io("learn how much room the file takes", cause))?;
    let mut condition = Condition { allocated_bytes, ..Condition::default() };
    let (whole, missing) = (store.bytes(), store.missing_bytes());
    if missing > 0 {
        condition.is_cut_off = true;
        let sentence = format!("{missing} of {whole} bytes were cut off the end of the file");
        condition.damage.push(sentence);
    }
    let copies = store.damaged_header_copies();
    if copies > 0 && read_only {
        let sentence =
            format!("{copies} of {HEADER_COPIES} copies of the file's header are damaged");
        condition.damage.push(sentence);
    } else if copies > 0 {
        condition.mended.push("damaged copies of the file's header were mended".into());
    }
    Ok(condition)
}

fn check_no_file(path: &Path) -> Result<(), OpenError> {
    let Ok(there) = path.metadata() else { return Ok(()) };
    let what = match there.file_type() {
        kind if kind.is_file() => "exists: choose another name, or remove it first",
        kind if kind.is_dir() => "is a directory: name a file in it that does not exist",
        _ => {
            "is a device, a pipe or a socket, and a volume is a file: name one that does not exist"
        }
    };
    Err(OpenError::new(OpenErrorKind::Exists, format!("{} {what}", path.display())))
}
