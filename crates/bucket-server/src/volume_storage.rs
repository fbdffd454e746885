//! The storage of a server's volumes.
//!
//! A server stores volumes in folders:
//!
//! ```text
//! FOLDER/CLIENT/VOLUME/buckets    the store
//! FOLDER/CLIENT/VOLUME/session    see `session`
//! FOLDER/CLIENT/VOLUME/shares     the shares: see `shares_folder`
//! ```
//!
//! A path consists of the folder, the client's name from the allow file, and a volume name that has
//! passed [`check_name`](oblivio_wire::message::check_name). No other part of a path comes from a
//! client.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use oblivio_core::store::TreeShape;
use oblivio_shares::host::Folder;
use oblivio_store::{Location, OpenError, OpenedStore, StoreOptions};
use oblivio_wire::private;

use super::disk::{System, sync_folder};
use super::session;
use super::shares_folder::{self, SharesFolder};

/// The name of the store's file in a volume's folder.
const STORE: &str = "buckets";

/// The storage of all volumes of one client.
pub trait VolumeCatalog: Send + Sync {
    /// The storage of the volume named `name`, which need not exist.
    fn storage(&self, name: &str) -> Box<dyn VolumeStorage>;

    /// The number of the client's volumes, and the total length of their stores and share files in
    /// bytes.
    ///
    /// # Errors
    /// I/O errors of the system.
    fn used(&self) -> io::Result<(usize, u64)>;
}

/// The storage of one volume. Each operation is durable when it returns.
pub trait VolumeStorage: Send + Sync {
    /// Whether the volume exists.
    ///
    /// # Errors
    /// If the system does not allow the check.
    fn is_there(&self) -> io::Result<bool>;

    /// Prepares the storage for a new volume. An interrupted creation or removal may have left
    /// files behind.
    ///
    /// # Errors
    /// I/O errors of the system.
    fn make_ready(&self) -> io::Result<()>;

    /// Creates the store, and with it the volume. This must be the last step of a creation.
    ///
    /// # Errors
    /// If it exists, or cannot be created.
    fn create(&self, shapes: &[TreeShape]) -> Result<(), OpenError>;

    /// Opens the store. Its contents need not be valid.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError>;

    /// Removes the volume, the store first.
    ///
    /// # Errors
    /// I/O errors of the system.
    fn remove(&self) -> io::Result<()>;

    /// Undoes [`Self::make_ready`], if no volume exists. Best effort: remaining files do no harm.
    fn clear_away(&self);

    /// The number of the latest session that could write. `None` if there was none.
    ///
    /// # Errors
    /// I/O errors of the system, or an error if the file is damaged.
    fn session(&self) -> io::Result<Option<u64>>;

    /// Stores the number of a new session.
    ///
    /// # Errors
    /// I/O errors of the system.
    fn keep_session(&self, session: u64) -> io::Result<()>;

    /// The folder for the shares of the volume, removed together with it. `None` on servers that do
    /// not compute.
    fn shares(&self) -> Option<Box<dyn Folder>> {
        None
    }

    /// Bytes on disk that the shares take.
    ///
    /// # Errors
    /// I/O errors of the system.
    fn shares_allocated_bytes(&self) -> io::Result<u64> {
        Ok(0)
    }
}

/// The folder of a client's volumes.
pub(super) struct ClientFolder(pub(super) PathBuf);

impl VolumeCatalog for ClientFolder {
    fn storage(&self, name: &str) -> Box<dyn VolumeStorage> {
        Box::new(VolumeFolder(self.0.join(name)))
    }

    fn used(&self) -> io::Result<(usize, u64)> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((0, 0)),
            entries => entries?,
        };
        let (mut volumes, mut bytes) = (0, 0u64);
        for entry in entries {
            let volume = entry?.path();
            match fs::metadata(volume.join(STORE)) {
                Ok(store) => {
                    volumes += 1;
                    bytes = bytes.saturating_add(store.len());
                    bytes = bytes.saturating_add(shares_folder::bytes(&volume)?);
                }
                Err(error) if error.kind() == ErrorKind::NotFound => (),
                Err(error) => return Err(error),
            }
        }
        Ok((volumes, bytes))
    }
}

/// The folder of a volume.
pub(super) struct VolumeFolder(pub(super) PathBuf);

impl VolumeFolder {
    fn location(&self) -> Location {
        Location::File(self.0.join(STORE))
    }
}

impl VolumeStorage for VolumeFolder {
    fn is_there(&self) -> io::Result<bool> {
        self.0.join(STORE).try_exists()
    }

    /// Creates the folder of the volume and, if necessary, of the client. Removes shares that an
    /// earlier volume left. Does not create the server's folder: a replacement would not be locked.
    fn make_ready(&self) -> io::Result<()> {
        let client = self.0.parent().unwrap_or(Path::new("."));
        for folder in [client, &self.0] {
            match private::dir_builder().create(folder) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => (),
                made => made?,
            }
        }
        shares_folder::remove(&self.0)?;
        let mut above = self.0.ancestors().skip(1).take(2);
        above.try_for_each(|folder| sync_folder(&System, folder))
    }

    fn create(&self, shapes: &[TreeShape]) -> Result<(), OpenError> {
        self.location().create(shapes, &StoreOptions::default()).map(drop)
    }

    fn open(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        self.location().open_as_it_is(options)
    }

    fn remove(&self) -> io::Result<()> {
        fs::remove_file(self.0.join(STORE))?;
        self.clear_away();
        sync_folder(&System, self.0.parent().unwrap_or(Path::new(".")))
    }

    fn clear_away(&self) {
        if self.is_there().is_ok_and(|is_there| !is_there) {
            let _ = shares_folder::remove(&self.0)
                .and_then(|()| session::remove(&self.0))
                .and_then(|()| fs::remove_dir(&self.0));
        }
    }

    fn session(&self) -> io::Result<Option<u64>> {
        session::read(&self.0)
    }

    fn keep_session(&self, session: u64) -> io::Result<()> {
        session::write(&System, &self.0, session)
    }

    fn shares(&self) -> Option<Box<dyn Folder>> {
        Some(Box::new(SharesFolder::new(&self.0)))
    }

    fn shares_allocated_bytes(&self) -> io::Result<u64> {
        shares_folder::allocated_bytes(&self.0)
    }
}
