//! Locations of stores over engines of objects.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oblivio_core::store::TreeShape;

use crate::cloud_location::{CloudLocation, CloudService};
use crate::error::OpenError;
use crate::near::{self, NearStore};
use crate::objects::folder::FolderObjects;
use crate::objects::{Objects, RedisObjects, RedisOptions, S3Objects, S3Options};
use crate::opener::{BoxedStore, OpenedStore, RETRY_FOR, StoreOptions, no_direct};
use crate::packed::{PackedMode, PackedOptions, PackedStore, Remains};
use crate::redis_location::{REDIS_SCHEME, RedisLocation};

/// The URL scheme of a folder, and its prefix before a literal path.
pub(crate) const FOLDER: &str = "folder";

/// Maximum bytes of the entries of a chunk on Redis, which keeps each value in one piece of memory.
const REDIS_CHUNK_BYTES: usize = 256 << 10;

/// Time limit for a failover of a cluster, while it is opened.
const FAILOVER_WITHIN: Duration = Duration::from_secs(20);

/// Maximum bytes that are kept in memory until a cluster has made them durable.
const UNSYNCED_BYTES_MAX: usize = 64 << 20;

/// An engine of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// One file per object in a directory.
    Folder,
    /// An object store: S3, Google Cloud Storage or Azure.
    Cloud(CloudService),
    /// A Redis or Valkey cluster.
    Redis,
}

/// The location of a store over an engine of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectsLocation {
    /// Where the objects are.
    pub engine: EngineLocation,
    /// The local file with copies of the upper levels, if any.
    pub near: Option<NearFile>,
}

/// The location of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineLocation {
    /// A directory.
    Folder(PathBuf),
    /// A bucket of an object store.
    Cloud(CloudLocation),
    /// A Redis or Valkey cluster.
    Redis(RedisLocation),
}

/// A near file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Maximum bytes of the levels in the file; `None` for a fifth of the store, about the size of
    /// the disk.
    pub bytes_max: Option<u64>,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 5] = [
        Self::Folder,
        Self::Cloud(CloudService::S3),
        Self::Cloud(CloudService::Gcs),
        Self::Cloud(CloudService::Azure),
        Self::Redis,
    ];

    /// The URL scheme of the engine.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Folder => FOLDER,
            Self::Cloud(service) => service.scheme(),
            Self::Redis => REDIS_SCHEME,
        }
    }

    /// The options of a store over this engine.
    pub fn options(self) -> PackedOptions {
        match self {
            Self::Folder => PackedOptions::default().with_late_syncs(true),
            Self::Cloud(_) => PackedOptions::default(),
            Self::Redis => PackedOptions::default()
                .with_chunk_bytes(REDIS_CHUNK_BYTES)
                .with_unsynced_bytes_max(Some(UNSYNCED_BYTES_MAX)),
        }
    }
}

impl ObjectsLocation {
    /// The engine at this location.
    pub fn engine(&self) -> Engine {
        match &self.engine {
            EngineLocation::Folder(_) => Engine::Folder,
            EngineLocation::Cloud(place) => Engine::Cloud(place.service()),
            EngineLocation::Redis(_) => Engine::Redis,
        }
    }

    /// The paths that the location names: a directory of objects, a near file, and files with
    /// credentials.
    pub(crate) fn local_files(&self) -> Vec<&Path> {
        let near = self.near.iter().map(|near| &*near.path);
        match &self.engine {
            EngineLocation::Folder(path) => near.chain([&**path]).collect(),
            EngineLocation::Cloud(place) => near.chain(place.local_files()).collect(),
            EngineLocation::Redis(place) => near.chain(place.local_files()).collect(),
        }
    }

    /// The directory that holds the objects; `None` if they are elsewhere.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.engine {
            EngineLocation::Folder(path) => Some(path),
            EngineLocation::Cloud(_) | EngineLocation::Redis(_) => None,
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
        if let Some(near) = &self.near {
            near::check(&near.path)?;
        }
        if let EngineLocation::Folder(path) = &self.engine {
            FolderObjects::create(path)?;
        }
        let objects = self.connect(options.retry_for)?;
        self.with_near(PackedStore::create(objects, shapes, &self.engine().options())?)
    }

    /// Opens the store. A reader does not use the near file, which a writer may have open.
    pub(crate) fn open(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        if options.direct {
            return Err(no_direct());
        }
        let mode = if options.read_only { PackedMode::Read } else { PackedMode::Write };
        let objects = self.connect(options.retry_for)?;
        let (store, condition) = PackedStore::open(objects, mode, &self.engine().options())?;
        let store = match mode {
            PackedMode::Read => Box::new(store),
            PackedMode::Write => self.with_near(store)?,
        };
        Ok(OpenedStore { store, condition })
    }

    fn with_near(&self, far: PackedStore) -> Result<BoxedStore, OpenError> {
        match &self.near {
            Some(NearFile { path, bytes_max }) => {
                Ok(Box::new(NearStore::open(far, path, *bytes_max)?))
            }
            None => Ok(Box::new(far)),
        }
    }

    /// Whether there are no objects at this location.
    pub(crate) fn is_vacant(&self) -> Result<bool, OpenError> {
        if self.folder().is_some_and(|path| !path.exists()) {
            return Ok(true);
        }
        Ok(PackedStore::remains(self.connect(RETRY_FOR)?)? == Remains::Nothing)
    }

    /// Removes all objects, and the near file.
    pub(crate) fn remove(&self) -> Result<(), OpenError> {
        PackedStore::remove(self.connect(RETRY_FOR)?)?;
        if let EngineLocation::Folder(path) = &self.engine {
            FolderObjects::remove_dir(path);
        }
        self.near.as_ref().map_or(Ok(()), |near| near::remove(&near.path))
    }

    fn connect(&self, retry_for: Duration) -> Result<Box<dyn Objects>, OpenError> {
        match &self.engine {
            EngineLocation::Folder(path) => Ok(Box::new(FolderObjects::open(path)?)),
            EngineLocation::Cloud(place) => {
                let options = S3Options { retry_for, ..S3Options::default() };
                Ok(Box::new(S3Objects::open(place, &options)?))
            }
            EngineLocation::Redis(place) => {
                let options = RedisOptions::default()
                    .with_retry_for(retry_for)
                    .with_retry_opening_for(FAILOVER_WITHIN.min(retry_for))
                    .with_weak_flush(place.has_weak_flush());
                Ok(Box::new(RedisObjects::open(place, options)?))
            }
        }
    }
}

impl fmt::Display for EngineLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{FOLDER}:{}", path.display()),
            Self::Cloud(place) => place.fmt(f),
            Self::Redis(place) => place.fmt(f),
        }
    }
}
