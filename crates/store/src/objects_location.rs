//! Locations of stores over engines of objects.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use oblivio_core::store::TreeShape;

use crate::error::OpenError;
use crate::objects::Objects;
use crate::objects::folder::FolderObjects;
use crate::opener::{BoxedStore, OpenedStore, StoreOptions, no_direct};
use crate::packed::{PackedMode, PackedOptions, PackedStore, Remains};

/// The URL scheme of a folder, and its prefix before a literal path.
pub(crate) const FOLDER: &str = "folder";

/// An engine of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// One file per object in a directory.
    Folder,
}

/// The location of a store over an engine of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectsLocation {
    /// A directory.
    Folder(PathBuf),
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 1] = [Self::Folder];

    /// The URL scheme of the engine.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Folder => FOLDER,
        }
    }

    /// The options of a store over this engine.
    pub fn options(self) -> PackedOptions {
        match self {
            Self::Folder => PackedOptions::default(),
        }
    }
}

impl ObjectsLocation {
    /// The engine at this location.
    pub fn engine(&self) -> Engine {
        match self {
            Self::Folder(_) => Engine::Folder,
        }
    }

    /// The paths that the location names: a directory of objects, and files with credentials.
    pub(crate) fn local_files(&self) -> Vec<&Path> {
        match self {
            Self::Folder(path) => vec![path],
        }
    }

    /// The directory that holds the objects; `None` if they are elsewhere.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(path) => Some(path),
        }
    }

    pub(crate) fn create(
        &self,
        shapes: &[TreeShape],
        options: &StoreOptions,
    ) -> Result<BoxedStore, OpenError> {
        if options.direct {
            return Err(no_direct());
        }
        let objects: Box<dyn Objects> = match self {
            Self::Folder(path) => Box::new(FolderObjects::create(path)?),
        };
        Ok(Box::new(PackedStore::create(objects, shapes, &self.engine().options())?))
    }

    pub(crate) fn open(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        if options.direct {
            return Err(no_direct());
        }
        let mode = if options.read_only { PackedMode::Read } else { PackedMode::Write };
        let objects = self.connect()?;
        let (store, condition) = PackedStore::open(objects, mode, &self.engine().options())?;
        Ok(OpenedStore { store: Box::new(store), condition })
    }

    /// Whether there are no objects at this location.
    pub(crate) fn is_vacant(&self) -> Result<bool, OpenError> {
        match self {
            Self::Folder(path) if !path.exists() => return Ok(true),
            Self::Folder(_) => {}
        }
        Ok(PackedStore::remains(self.connect()?)? == Remains::Nothing)
    }

    pub(crate) fn remove(&self) -> Result<(), OpenError> {
        PackedStore::remove(self.connect()?)?;
        match self {
            // Other files in the directory stay.
            Self::Folder(path) => drop(fs::remove_dir(path)),
        }
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Objects>, OpenError> {
        match self {
            Self::Folder(path) => Ok(Box::new(FolderObjects::open(path)?)),
        }
    }
}

impl fmt::Display for ObjectsLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{FOLDER}:{}", path.display()),
        }
    }
}
