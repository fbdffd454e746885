//! The location of a volume: on any store, or on share servers.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use oblivio_core::store::TreeShape;
use oblivio_shares::remote::{SharedStore, SharesLocation};
use oblivio_store::location::shares_url;
use oblivio_store::{
    BoxedStore, InvalidLocation, OpenError, OpenErrorKind, OpenedStore, Remnants, RemoteMode,
    StoreKind, StoreOptions,
};

/// The location of a volume.
///
/// [`Display`](fmt::Display) shows the location as text that parses to the same location, if its
/// path is UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file, a bucket server, or a stripe over several.
    Store(oblivio_store::Location),
    /// A volume on share servers: `shares://…`.
    Shares(Box<SharesLocation>),
}

impl From<oblivio_store::Location> for Location {
    fn from(store: oblivio_store::Location) -> Self {
        Self::Store(store)
    }
}

impl FromStr for Location {
    type Err = InvalidLocation;

    fn from_str(written: &str) -> Result<Self, InvalidLocation> {
        Self::parse(OsStr::new(written))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(store) => store.fmt(f),
            Self::Shares(place) => place.fmt(f),
        }
    }
}

impl Location {
    /// Parses a path or a URL. A path need not be UTF-8.
    ///
    /// # Errors
    /// If the text is empty, or a URL that names no storage.
    pub fn parse(written: &OsStr) -> Result<Self, InvalidLocation> {
        let Some(rest) = shares_url(written) else {
            return oblivio_store::Location::parse(written).map(Self::Store);
        };
        let place = SharesLocation::parse(rest).map_err(InvalidLocation::new)?;
        Ok(Self::Shares(Box::new(place)))
    }

    /// Local files that the location names: stores and client keys.
    pub fn local_files(&self) -> Vec<&Path> {
        match self {
            Self::Store(store) => store.local_files(),
            Self::Shares(place) => vec![place.key()],
        }
    }

    /// The kind of storage.
    pub fn kind(&self) -> StoreKind {
        match self {
            Self::Store(store) => store.kind(),
            Self::Shares(place) => {
                let (servers, colluding) = (place.servers().len(), place.colluding());
                StoreKind::Shares { servers, colluding }
            }
        }
    }

    /// Makes new storage for trees of these shapes, `TreeId(0)` first.
    ///
    /// # Errors
    /// See [`oblivio_store::Location::create`].
    pub fn create(
        &self,
        shapes: &[TreeShape],
        options: &StoreOptions,
    ) -> Result<BoxedStore, OpenError> {
        match self {
            Self::Store(store) => store.create(shapes, options),
            Self::Shares(place) => place.create(shapes, options),
        }
    }

    /// Opens existing storage.
    ///
    /// # Errors
    /// See [`oblivio_store::Location::open`].
    pub fn open(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        match self {
            Self::Store(store) => store.open(options),
            Self::Shares(place) => place.open(options),
        }
    }

    /// Opens a file without relying on its header: see
    /// [`oblivio_store::Location::open_without_header`]. `None` on share servers.
    ///
    /// # Errors
    /// See [`oblivio_store::Location::open_without_header`].
    pub fn open_without_header(
        &self,
        shapes: &[TreeShape],
        options: &StoreOptions,
    ) -> Result<Option<OpenedStore>, OpenError> {
        match self {
            Self::Store(store) => store.open_without_header(shapes, options),
            Self::Shares(_) => Ok(None),
        }
    }

    /// Opens storage for inspection, without fencing another client: see
    /// [`oblivio_store::Location::look`]. `None` if the storage is only in local files.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub fn look(&self, options: &StoreOptions) -> Result<Option<OpenedStore>, OpenError> {
        match self {
            Self::Store(store) => store.look(options),
            Self::Shares(place) => {
                let options = options.clone().with_read_only(true);
                place.look(&options).map(Some)
            }
        }
    }

    /// Fails if [`Self::create`] would refuse because a volume exists.
    ///
    /// # Errors
    /// [`OpenErrorKind::Exists`] if the location is not vacant.
    pub fn check_vacant(&self) -> Result<(), OpenError> {
        match self {
            Self::Store(store) => store.check_vacant(),
            Self::Shares(place) => place.check_vacant(),
        }
    }

    /// The parts of storage that exist, complete or not: see
    /// [`oblivio_store::Location::remnants`].
    ///
    /// # Errors
    /// See [`oblivio_store::Location::remnants`].
    pub fn remnants(&self) -> Result<Remnants, OpenError> {
        match self {
            Self::Store(store) => store.remnants(),
            Self::Shares(place) => place.remnants(),
        }
    }

    /// Removes storage, whether its creation was finished or not.
    ///
    /// # Errors
    /// If no storage exists at the location, or if it cannot be removed.
    pub fn remove(&self) -> Result<(), OpenError> {
        match self {
            Self::Store(store) => store.remove(),
            Self::Shares(place) => place.remove(),
        }
    }

    /// Opens share servers to rebuild one of them: see [`SharesLocation::open_to_repair`].
    ///
    /// # Errors
    /// Errors of [`SharesLocation::open_to_repair`], and [`OpenErrorKind::WrongMembers`] if the
    /// location is not on share servers.
    pub fn open_to_repair(
        &self,
        server: usize,
        mode: RemoteMode,
        options: &StoreOptions,
    ) -> Result<SharedStore, OpenError> {
        match self {
            Self::Shares(place) => place.open_to_repair(server, mode, options),
            Self::Store(_) => {
                let message = "only volumes on share servers can be repaired: name a shares:// URL";
                Err(OpenError::new(OpenErrorKind::WrongMembers, message))
            }
        }
    }

    /// The files that [`Self::create`] would make, with their sizes: see
    /// [`oblivio_store::Location::files_needed`]. Empty on share servers.
    ///
    /// # Errors
    /// If the location cannot hold the shapes.
    pub fn files_needed(&self, shapes: &[TreeShape]) -> Result<Vec<(&Path, u64)>, OpenError> {
        match self {
            Self::Store(store) => store.files_needed(shapes),
            Self::Shares(_) => Ok(Vec::new()),
        }
    }

    /// Whether the existing files may be left from an interrupted creation: see
    /// [`oblivio_store::Location::is_incomplete`]. Always `false` on share servers.
    ///
    /// # Errors
    /// If the location cannot hold the shapes.
    pub fn is_incomplete(&self, shapes: &[TreeShape]) -> Result<bool, OpenError> {
        match self {
            Self::Store(store) => store.is_incomplete(shapes),
            Self::Shares(_) => Ok(false),
        }
    }

    /// A file that `self` and `other` both use, by its path in `self`. `None` if there is no such
    /// file, or if either location is on share servers.
    pub fn shared_file(&self, other: &Self) -> Option<&Path> {
        match (self, other) {
            (Self::Store(store), Self::Store(other)) => store.shared_file(other),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use oblivio_core::store::LevelShape;

    use super::*;

    #[test]
    fn share_servers_are_one_location_and_cannot_be_members() {
        let keys = ["AQ", "Ag", "Aw"].map(|first| format!("{first}{}=", "A".repeat(41))).join(",");
        let url = format!("shares://one,two,three/disk?server={keys}&key=/k");
        let location: Location = url.parse().unwrap();
        assert_eq!(location.kind(), StoreKind::Shares { servers: 3, colluding: 1 });
        assert_eq!(location.to_string().parse().as_ref(), Ok(&location));
        let level = LevelShape {
            buckets: 1,
            slots: 0,
            header_bytes: 8,
            slots_offset: 8,
            slot_bytes: 0,
            bucket_bytes: 8,
        };
        let files = location.files_needed(&[TreeShape::new(vec![level])]).unwrap();
        assert!(files.is_empty() && location.kind().scheme() == "shares");
        let refused = format!("stripe:a,{url}").parse::<Location>().unwrap_err();
        assert!(refused.to_string().contains("cannot contain share servers"), "{refused}");
        assert!("shares://one,two/disk".parse::<Location>().is_err());
    }
}
