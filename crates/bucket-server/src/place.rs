//! Where volumes lie.
//!
//! A server keeps them in folders of its disk:
//!
//! ```text
//! FOLDER/CLIENT/VOLUME/buckets    the store
//! FOLDER/CLIENT/VOLUME/session    see `session`
//! FOLDER/CLIENT/VOLUME/shares     what computes beside it: see `shares_folder`
//! ```
//!
//! A path is made of the folder, of the name of a client as the allow file has it, and of a name that
//! [`check_name`](oblivio_wire::message::check_name) lets through: of nothing else that a client says.

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

/// The store of a volume in its folder.
const STORE: &str = "buckets";

/// Where the volumes of one client lie.
pub trait Shelving: Send + Sync {
    /// Of the volume of this name, which need not be there.
    fn place(&self, name: &str) -> Box<dyn Place>;

    /// How many volumes there are, and the bytes that they may take.
    ///
    /// # Errors
    /// Those of the system.
    fn used(&self) -> io::Result<(usize, u64)>;
}

/// Where one volume lies. What it is told to do is durable when it returns.
pub trait Place: Send + Sync {
    /// Whether there is a volume.
    ///
    /// # Errors
    /// When the system does not let anybody look.
    fn is_there(&self) -> io::Result<bool>;

    /// Makes it ready for a volume. What an interrupted creation or removal has left is of no matter.
    ///
    /// # Errors
    /// Those of the system.
    fn make_ready(&self) -> io::Result<()>;

    /// Makes the store, and so the volume: it is the last that is made.
    ///
    /// # Errors
    /// When it cannot be made, or is there.
    fn create(&self, shapes: &[TreeShape]) -> Result<(), OpenError>;

    /// Opens the store as it is, whatever it holds.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn open(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError>;

    /// Removes the volume: the store is the first to go.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self) -> io::Result<()>;

    /// Removes what [`Self::make_ready`] made, if there is no volume. What cannot be removed is in nobody's way.
    fn clear_away(&self);

    /// The number of the latest opening to write; none if there was none.
    ///
    /// # Errors
    /// Those of the system, and when it is damaged.
    fn session(&self) -> io::Result<Option<u64>>;

    /// Keeps another.
    ///
    /// # Errors
    /// Those of the system.
    fn keep_session(&self, session: u64) -> io::Result<()>;

    /// For what computes on shares of the volume. It goes with the volume. There is none where nothing computes.
    fn shares(&self) -> Option<Box<dyn Folder>> {
        None
    }

    /// Bytes that these take.
    ///
    /// # Errors
    /// Those of the system.
    fn shares_allocated_bytes(&self) -> io::Result<u64> {
        Ok(0)
    }
}

/// The folder of a client.
pub(super) struct ClientFolder(pub(super) PathBuf);

impl Shelving for ClientFolder {
    fn place(&self, name: &str) -> Box<dyn Place> {
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

impl Place for VolumeFolder {
    fn is_there(&self) -> io::Result<bool> {
        self.0.join(STORE).try_exists()
    }

    /// The folder of the client may be new, too. That of the server is not: if it is gone, another would not be locked.
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
        Some(Box::new(SharesFolder::of(&self.0)))
    }

    fn shares_allocated_bytes(&self) -> io::Result<u64> {
        shares_folder::allocated_bytes(&self.0)
    }
}
