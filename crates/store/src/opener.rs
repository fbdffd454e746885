//! Creates and opens the storage at a location.
//!
//! # To add a store
//! `docs/add-a-store.md` in the repository lists the steps ("A URL of its own"): the store in its
//! own file, then [`StoreKind`], [`Location`], this file, tests, help texts, and documents. The
//! simplest complete store to start from is the example `own_store` of the crate `oblivio`.
//!
//! A new engine of named objects needs none of these steps: it implements
//! [`Objects`](crate::objects::Objects), and gets a variant of
//! [`Engine`](crate::objects_location::Engine) and
//! [`EngineLocation`](crate::objects_location::EngineLocation).
//!
//! For a new variant of [`StoreKind`] or [`Location`], the compiler reports an incomplete `match`
//! in these methods, or in private functions of this file that they call:
//! [`StoreKind::bytes_needed`], [`StoreKind::client_bytes_max`], [`Location::create`],
//! [`Location::open_as_it_is`], [`Location::look`], [`Location::check_vacant`],
//! [`Location::remove`], [`Location::files_needed`] and [`Location::shared_file`]. It does not
//! report [`Location::open`], [`Location::open_without_header`], [`Location::is_incomplete`] and
//! the function `check_apart`, which assume a [`File`](Location::File): check each of them. A
//! stripe over stores of the new kind needs no further code.
//!
//! # Requirements
//! - **A URL contains no secret**: it names a file or an environment variable with the secret.
//! - **Capabilities.** The store declares its abilities in
//!   [`capabilities`](oblivio_core::store::BucketStore::capabilities): parts of buckets, or whole
//!   buckets only. It refuses operations that it lacks and does not emulate them; a scheme that
//!   needs more is refused at creation (ADR 1). A store over other stores has the abilities that
//!   all of them have.
//! - **The store keeps its shapes.** [`Location::open`] does not receive shapes: the store returns
//!   the shapes it was created with. They are public and untrusted: check lengths and numbers
//!   before use. [`container`](crate::container) does this for files.
//! - **Frames are in the store's buffer.** Put all pieces of a trip into one buffer. For a write,
//!   pass it to [`Blanks::new`](oblivio_core::store::Blanks::new), call the closure once, then send
//!   the buffer. Only [`SealedTrip`](oblivio_core::store::SealedTrip) forwards bytes that were
//!   sealed for one store to others, as [`StripedStore`] does; only
//!   [`SealedCopy`](oblivio_core::store::SealedCopy) forwards bytes that were read, as copying a
//!   volume does.
//! - **A failed [`Location::create`] leaves nothing behind**. After a successful creation
//!   everything is durable, including file names.
//! - **One writer.** A second opening for writing fails with [`Locked`](OpenErrorKind::Locked);
//!   readers share the storage. **`beside_writer`** reads without a lock.
//! - **`read_only`** refuses writes with [`Refused`](oblivio_core::StoreErrorKind::Refused), before
//!   the closure is called, and a flush does nothing.
//! - **`allow_incomplete`** opens incomplete storage and reports it in [`Condition`]. Without it,
//!   opening fails with [`Truncated`](OpenErrorKind::Truncated).
//! - **`direct`** fails with [`DirectRefused`](OpenErrorKind::DirectRefused) in `create` and `open`
//!   if the store does not support direct I/O ([`no_direct`]): no option is ignored silently.
//! - **A failed write or flush is final.** The system may have dropped unwritten data, so all
//!   further calls fail. [`StoreFailure`](crate::StoreFailure) records the error.
//! - **Errors of opening** are [`OpenError`], with an [`OpenErrorKind`]; exit codes follow from the
//!   kind. [`OpenError::io`] maps system errors.
//!
//! # Tests and their purpose
//! - **`check_durable_store`** finds wrong positions, shapes and orders, stale reads, and flushed
//!   writes that are lost after reopening. It does not test locks, and reopens only stores that the
//!   test passes to it.
//! - **Tests of the store**, as in `conformance.rs`, `damage.rs`, `location.rs` and `stripe.rs` of
//!   `tests/file`: a second writer, a reader that writes, cut-off storage, a URL that does not
//!   round-trip, leftovers of a failed creation.
//! - **By hand**: `create URL`, `serve nbd URL --run 'nbdcopy image "$uri"'`, `check URL` and
//!   `rescue URL` find where the program and its messages assume files.
//!   [`check_vacant`](Location::check_vacant) checks paths, and `crates/cli/src/volume/room.rs`
//!   the files of [`files_needed`](Location::files_needed).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oblivio_core::durable::AnyStore;
use oblivio_core::store::{TreeShape, shapes_of};

use crate::connector;
use crate::container::HEADER_COPIES;
use crate::error::{OpenError, OpenErrorKind};
use crate::location::{Location, Members, StoreKind};
use crate::look_ahead::READ_AHEAD_BYTES_MAX;
use crate::medium;
use crate::packed::PackedStore;
use crate::remote::{RemoteMode, RemoteOptions, RemoteStore};
use crate::remote_location::RemoteLocation;
use crate::store::{FileOptions, FileStore};
use crate::striped::StripedStore;
use crate::striping::{self, Mark, StripeName};

/// The maximum space in bytes that a file with only headers takes on its file system, with an
/// allowance for the overhead of the file system.
const HALF_MADE_BYTES_MAX: u64 = 1 << 20;

/// A boxed store of any kind.
pub type BoxedStore = AnyStore;

/// Options for creating and opening storage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Whether to bypass the system's page cache.
    pub direct: bool,
    /// Whether to refuse writes, and share the storage with other readers.
    pub read_only: bool,
    /// Whether to read a file without a lock while another process may write to it. Data may then
    /// be half written. For readers of files only; servers have their own rules.
    pub beside_writer: bool,
    /// Whether to open incomplete storage for reading. Reads of the missing part fail, and all
    /// other reads succeed. Share servers can then also be opened for writing: if `t` servers may
    /// collude, servers may be missing as long as `t + 1` remain.
    pub allow_incomplete: bool,
    /// Time limit for reconnecting to a server after the link was lost. Does not apply to files.
    pub retry_for: Duration,
    /// Time limit for opening storage on a server that drops the link or has no connection left. If
    /// the server refuses connections after that, it is probably restarting, so the client retries.
    /// If the server refuses the first connection, the client does not retry, because the address
    /// may be wrong.
    pub retry_opening_for: Duration,
}

impl StoreOptions {
    /// Sets [`direct`](Self::direct).
    #[must_use]
    pub const fn with_direct(self, direct: bool) -> Self {
        Self { direct, ..self }
    }

    /// Sets [`read_only`](Self::read_only).
    #[must_use]
    pub const fn with_read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// Sets [`beside_writer`](Self::beside_writer).
    #[must_use]
    pub const fn with_beside_writer(self, beside_writer: bool) -> Self {
        Self { beside_writer, ..self }
    }

    /// Sets [`allow_incomplete`](Self::allow_incomplete).
    #[must_use]
    pub const fn with_allow_incomplete(self, allow_incomplete: bool) -> Self {
        Self { allow_incomplete, ..self }
    }

    /// Sets [`retry_for`](Self::retry_for) and [`retry_opening_for`](Self::retry_opening_for).
    #[must_use]
    pub const fn with_retry_for(self, retry_for: Duration) -> Self {
        Self { retry_for, retry_opening_for: retry_for, ..self }
    }
}

/// The default of [`StoreOptions::retry_for`].
pub(crate) const RETRY_FOR: Duration = Duration::from_secs(60);

/// The default of [`StoreOptions::retry_opening_for`].
pub(crate) const RETRY_OPENING_FOR: Duration = Duration::from_secs(5);

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            direct: false,
            read_only: false,
            beside_writer: false,
            allow_incomplete: false,
            retry_for: RETRY_FOR,
            retry_opening_for: RETRY_OPENING_FOR,
        }
    }
}

/// Opened storage, and its condition.
pub struct OpenedStore {
    /// The store that was opened.
    pub store: BoxedStore,
    /// The condition in which the storage was found.
    pub condition: Condition,
}

/// The condition in which storage was found. Not authenticated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Bytes that the storage takes on its disk or server.
    pub allocated_bytes: u64,
    /// Whether a part of the storage is missing.
    pub is_cut_off: bool,
    /// The damage that was found and not repaired, with one sentence per problem.
    pub damage: Vec<String>,
    /// The damage that was repaired on opening, with one sentence per problem.
    pub mended: Vec<String>,
}

/// The parts of storage that still exist and are about to be removed.
#[derive(Default)]
pub struct Remnants {
    /// The parts that can be read, opened for reading. For share servers, one store for each server
    /// with a part.
    pub stores: Vec<BoxedStore>,
    /// Bytes that the storage takes; `None` if unknown.
    pub bytes: Option<u64>,
    /// The names of share servers that have no part of the storage.
    pub absent: Vec<String>,
}

impl Condition {
    /// Adds the condition of a store that is a part of this storage. `name` is the name of that
    /// store in messages.
    pub fn add(&mut self, name: &str, found: Self) {
        let of_it = |sentences: Vec<String>| {
            let name = name.to_owned();
            sentences.into_iter().map(move |sentence| format!("{name}: {sentence}"))
        };
        self.allocated_bytes = self.allocated_bytes.saturating_add(found.allocated_bytes);
        self.is_cut_off |= found.is_cut_off;
        self.damage.extend(of_it(found.damage));
        self.mended.extend(of_it(found.mended));
    }
}

impl StoreKind {
    /// Bytes that [`Location::create`] would need for trees of these shapes once they are full.
    ///
    /// # Errors
    /// If storage of this kind cannot hold trees of these shapes.
    pub fn bytes_needed(self, shapes: &[TreeShape]) -> Result<u64, OpenError> {
        match self {
            // A server stores files.
            Self::File | Self::Remote => FileStore::bytes_needed(shapes),
            Self::Objects(engine) => PackedStore::bytes_needed(shapes, &engine.options()),
            Self::Stripe { members } => {
                let dealt = striping::distribute_levels(shapes, members, StripeName::default())?;
                dealt.iter().map(|shapes| FileStore::bytes_needed(shapes)).sum()
            }
            // Only the records. Servers need more for their computations, which they report at
            // setup.
            Self::Shares { servers, .. } => Ok(servers as u64 * FileStore::bytes_needed(shapes)?),
        }
    }

    /// Maximum client memory, in bytes, that an open store of this kind with trees of these shapes
    /// needs for write-behind and read-ahead. A trip longer than that needs more.
    pub fn client_bytes_max(self, shapes: &[TreeShape]) -> u64 {
        match self {
            Self::File => {
                (FileOptions::default().write_behind_bytes_max + READ_AHEAD_BYTES_MAX) as u64
            }
            Self::Remote => RemoteStore::client_bytes_max(),
            Self::Objects(engine) => PackedStore::client_bytes_max(shapes, &engine.options()),
            Self::Stripe { members } => members as u64 * Self::File.client_bytes_max(shapes),
            Self::Shares { servers, .. } => servers as u64 * Self::Remote.client_bytes_max(shapes),
        }
    }
}

impl Location {
    /// Creates storage at this location for trees of these shapes, `TreeId(0)` first.
    ///
    /// # Errors
    /// If something exists at the location, the storage cannot hold the shapes, or the system
    /// refuses. After an error, nothing is left behind.
    pub fn create(
        &self,
        shapes: &[TreeShape],
        options: &StoreOptions,
    ) -> Result<BoxedStore, OpenError> {
        match self {
            Self::File(path) => {
                Ok(Box::new(FileStore::create(path, shapes, &file_options(options))?))
            }
            Self::Objects(place) => place.create(shapes, options),
            Self::Remote(place) => {
                if options.direct {
                    return Err(no_direct());
                }
                Ok(Box::new(RemoteStore::create(
                    connector::connector_for(place)?,
                    shapes,
                    remote_options(place.name(), options),
                )?))
            }
            Self::Stripe(members) => create_stripe(members, shapes, options),
        }
    }

    /// Opens existing storage.
    ///
    /// # Errors
    /// If the location is not a store, is incomplete or in use elsewhere, or the system refuses.
    /// Also if it is a single member of a stripe, or the named stores are not exactly the members
    /// of one stripe in order.
    pub fn open(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        let opened = self.open_as_it_is(options).map_err(|error| match self {
            // Errors about contents do not name the file yet; errors of members and of opening do.
            Self::File(path) if error.is_about_contents() => {
                error.named(&path.display().to_string())
            }
            _ => error,
        })?;
        match striping::mark_of(&shapes_of(&*opened.store)) {
            Some(mark) => Err(member_alone(mark)),
            None => Ok(opened),
        }
    }

    /// Opens existing storage as [`Self::open`] does, but also opens a single member of a stripe.
    /// Servers use this, because only their clients know the whole stripe.
    ///
    /// # Errors
    /// The errors of [`Self::open`], except those about members of a stripe.
    pub fn open_as_it_is(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        match self {
            Self::File(path) => {
                let store = FileStore::open(path, &file_options(options))?;
                let condition = condition_of_file(&store, options.read_only)?;
                Ok(OpenedStore { store: Box::new(store), condition })
            }
            Self::Remote(place) => open_remote(place, remote_mode(options)?, options),
            Self::Objects(place) => place.open(options),
            Self::Stripe(members) => {
                open_stripe(members, options.read_only, |member| member.open_as_it_is(options))
            }
        }
    }

    /// Opens a file for reading as a file with trees of these shapes, without relying on its
    /// header. Returns `None` for other kinds of storage, which keep their shapes elsewhere.
    ///
    /// # Errors
    /// See [`FileStore::open_without_header`].
    pub fn open_without_header(
        &self,
        shapes: &[TreeShape],
        options: &StoreOptions,
    ) -> Result<Option<OpenedStore>, OpenError> {
        let Self::File(path) = self else { return Ok(None) };
        let opened = FileStore::open_without_header(path, shapes, &file_options(options));
        let store = opened.map_err(|error| match error.is_about_contents() {
            true => error.named(&path.display().to_string()),
            false => error,
        })?;
        let condition = condition_of_file(&store, true)?;
        Ok(Some(OpenedStore { store: Box::new(store), condition }))
    }

    /// Opens storage for inspection, even if another client has it open. [Opening](Self::open) the
    /// storage later fences that client. Returns `None` if the storage is only in local files:
    /// opening these fences no client.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub fn look(&self, options: &StoreOptions) -> Result<Option<OpenedStore>, OpenError> {
        let options = StoreOptions { read_only: true, ..options.clone() };
        self.can_be_taken_over().then(|| self.look_at_it(&options)).transpose()
    }

    fn can_be_taken_over(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Remote(_) | Self::Objects(_) => true,
            Self::Stripe(members) => members.list().iter().any(Self::can_be_taken_over),
        }
    }

    fn look_at_it(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        match self {
            // The lock detects other users.
            Self::File(_) => self.open_as_it_is(options),
            // The options say that it is open only for reading.
            Self::Objects(place) => place.open(options),
            Self::Remote(place) => open_remote(place, RemoteMode::Look, options),
            Self::Stripe(members) => {
                open_stripe(members, true, |member| member.look_at_it(options))
            }
        }
    }

    /// Checks whether the location is free for [`Self::create`]. This allows an early error;
    /// `create` checks again.
    ///
    /// # Errors
    /// [`OpenErrorKind::Exists`] if something exists at the location.
    pub fn check_vacant(&self) -> Result<(), OpenError> {
        match self {
            Self::File(path) => check_no_file(path),
            Self::Remote(place) => {
                match RemoteStore::look(connector::connector_for(place)?, place.name())? {
                    true => {
                        let name = place.name();
                        let message = format!(
                            "the server already has a volume {name} of this client; choose another \
                         name, or remove it if it is left of an interrupted creation (oblivio \
                         remove)"
                        );
                        Err(OpenError::new(OpenErrorKind::Exists, message))
                    }
                    false => Ok(()),
                }
            }
            Self::Objects(place) => match place.is_vacant()? {
                true => Ok(()),
                false => {
                    let message = format!(
                        "{self} holds objects already; choose another place, or remove them if \
                         they are left of an interrupted creation (oblivio remove)"
                    );
                    Err(OpenError::new(OpenErrorKind::Exists, message))
                }
            },
            Self::Stripe(members) => check_all_vacant(members),
        }
    }

    /// Determines which parts of storage exist, complete or not, before it is
    /// [removed](Self::remove). While the returned stores are open, no other client can write to
    /// them.
    ///
    /// # Errors
    /// If the location holds no store, the store is open for writing elsewhere, or a server cannot
    /// be reached.
    pub fn remnants(&self) -> Result<Remnants, OpenError> {
        let options =
            StoreOptions { read_only: true, allow_incomplete: true, ..Default::default() };
        match self.open_as_it_is(&options) {
            Ok(OpenedStore { store, condition }) => Ok(Remnants {
                stores: vec![store],
                bytes: Some(condition.allocated_bytes),
                absent: Vec::new(),
            }),
            // It can be removed, but its size is unknown.
            Err(error) if error.kind() == OpenErrorKind::Damaged => Ok(Remnants::default()),
            Err(error) => Err(error),
        }
    }

    /// Removes storage, or the leftovers of an interrupted creation.
    ///
    /// # Errors
    /// If nothing exists at the location, or the storage cannot be removed.
    pub fn remove(&self) -> Result<(), OpenError> {
        match self {
            Self::File(path) => {
                fs::remove_file(path).map_err(|cause| OpenError::io("remove the file", cause))
            }
            Self::Remote(place) => {
                RemoteStore::remove(connector::connector_for(place)?, place.name())
            }
            Self::Objects(place) => place.remove(),
            // Removes as many members as possible.
            Self::Stripe(members) => {
                members.list().iter().map(Self::remove).fold(Ok(()), Result::and)
            }
        }
    }

    /// The files that [`Self::create`] would create for trees of these shapes, each with its final
    /// size in bytes.
    ///
    /// # Errors
    /// If the storage cannot hold trees of these shapes.
    pub fn files_needed(&self, shapes: &[TreeShape]) -> Result<Vec<(&Path, u64)>, OpenError> {
        match self {
            Self::File(path) => Ok(vec![(path, FileStore::bytes_needed(shapes)?)]),
            Self::Remote(_) | Self::Objects(_) => Ok(Vec::new()),
            Self::Stripe(members) => {
                let mut files = Vec::new();
                let dealt = striping::distribute_levels(
                    shapes,
                    members.list().len(),
                    StripeName::default(),
                )?;
                for (member, shapes) in members.list().iter().zip(dealt) {
                    files.extend(member.files_needed(&shapes)?);
                }
                Ok(files)
            }
        }
    }

    /// Whether the files of this location may be leftovers of an interrupted [`Self::create`] for
    /// these shapes: each file is missing, is empty, or has full length but takes too little space
    /// for more than headers. Then [`Self::remove`] loses no data. `false` if no file is needed.
    ///
    /// # Errors
    /// If the storage cannot hold the shapes.
    pub fn is_incomplete(&self, shapes: &[TreeShape]) -> Result<bool, OpenError> {
        let files = self.files_needed(shapes)?;
        let is_left = |(path, bytes): &(&Path, u64)| match path.symlink_metadata() {
            Ok(there) => {
                let holds_little = medium::allocated_bytes(&there) <= HALF_MADE_BYTES_MAX;
                there.is_file() && [0, *bytes].contains(&there.len()) && holds_little
            }
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        Ok(!files.is_empty() && files.iter().all(is_left))
    }

    /// A file of this location that is also a file of `other`, even if the two locations name the
    /// file differently; `None` if there is no such file.
    pub fn shared_file(&self, other: &Self) -> Option<&Path> {
        let theirs: Vec<_> = other.files().into_iter().filter_map(identity).collect();
        let is_theirs = |path: &&Path| identity(path).is_some_and(|ours| theirs.contains(&ours));
        self.files().into_iter().find(is_theirs)
    }

    fn files(&self) -> Vec<&Path> {
        match self {
            Self::File(path) => vec![path],
            Self::Remote(_) => Vec::new(),
            Self::Objects(place) => place.folder().into_iter().collect(),
            Self::Stripe(members) => members.list().iter().flat_map(Self::files).collect(),
        }
    }
}

/// Creates all members of a stripe, or none.
fn create_stripe(
    members: &Members,
    shapes: &[TreeShape],
    options: &StoreOptions,
) -> Result<BoxedStore, OpenError> {
    check_apart(members)?;
    let dealt = striping::distribute_levels(shapes, members.list().len(), StripeName::draw()?)?;
    let mut stores = Vec::with_capacity(dealt.len());
    let mut named = members.list().iter().zip(members.names()).zip(&dealt);
    let all_made = named.try_for_each(|((member, name), shapes)| {
        let store = member.create(shapes, options).map_err(|error| error.named(&name))?;
        stores.push((name, store));
        Ok(())
    });
    let made = stores.len();
    let striped = all_made.and_then(|()| StripedStore::new(stores, options.read_only));
    let striped = striped.inspect_err(|_| {
        for member in &members.list()[..made] {
            // The next attempt reports a member that cannot be removed.
            let _ = member.remove();
        }
    })?;
    Ok(Box::new(striped))
}

fn open_stripe(
    members: &Members,
    read_only: bool,
    open: impl Fn(&Location) -> Result<OpenedStore, OpenError>,
) -> Result<OpenedStore, OpenError> {
    check_apart(members)?;
    let mut stores = Vec::with_capacity(members.list().len());
    let mut condition = Condition::default();
    for (member, name) in members.list().iter().zip(members.names()) {
        let opened = open(member).map_err(|error| match error.kind() {
            // The earlier members exist.
            OpenErrorKind::Missing if !stores.is_empty() => error.named(&name).with(
                "; bring the member back, because nothing can be read without it. Only if the \
                 creation of the stripe was interrupted, remove its other members and create it \
                 again",
            ),
            _ => error.named(&name),
        })?;
        condition.add(&name, opened.condition);
        stores.push((name, opened.store));
    }
    let store = StripedStore::new(stores, read_only)?;
    Ok(OpenedStore { store: Box::new(store), condition })
}

/// Fails if a member exists already, and names all such members, because an interrupted creation
/// leaves several.
fn check_all_vacant(members: &Members) -> Result<(), OpenError> {
    let found = members.list().iter().zip(members.names());
    let found = found.filter_map(|(member, name)| Some((name, member.check_vacant().err()?)));
    let (names, mut errors): (Vec<_>, Vec<_>) = found.unzip();
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => {
            let message = format!(
                "{} exist; choose other names, or remove them first if they are left of an \
                 interrupted creation",
                names.join(", ")
            );
            Err(OpenError::new(OpenErrorKind::Exists, message))
        }
    }
}

/// Checks that no two members are the same file under different names.
fn check_apart(members: &Members) -> Result<(), OpenError> {
    let (mut seen, names) = (Vec::new(), members.names());
    for (member, name) in members.list().iter().zip(&names) {
        let path = match member {
            Location::File(path) => Some(&**path),
            Location::Objects(place) => place.folder(),
            Location::Remote(_) | Location::Stripe(_) => None,
        };
        let Some(path) = path else { continue };
        // A failure is reported when the file is opened.
        let Some(identity) = identity(path) else { continue };
        if let Some((_, other)) = seen.iter().find(|(known, _)| *known == identity) {
            let message =
                format!("{other} and {name} are the same file; each member needs its own");
            return Err(OpenError::new(OpenErrorKind::WrongMembers, message));
        }
        seen.push((identity, name));
    }
    Ok(())
}

/// Identifies a file, whether it exists or would be created.
#[derive(PartialEq)]
enum Identity {
    File { device: u64, inode: u64 },
    Name { folder: PathBuf, name: OsString },
}

fn identity(path: &Path) -> Option<Identity> {
    if let Ok(there) = path.metadata() {
        return Some(Identity::File { device: there.dev(), inode: there.ino() });
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(Identity::Name { folder, name: path.file_name()?.to_owned() })
}

fn open_remote(
    place: &RemoteLocation,
    mode: RemoteMode,
    options: &StoreOptions,
) -> Result<OpenedStore, OpenError> {
    let options = remote_options(place.name(), options);
    let (store, condition) = RemoteStore::open(connector::connector_for(place)?, mode, options)?;
    Ok(OpenedStore { store: Box::new(store), condition })
}

/// The mode in which `options` open storage on a server.
///
/// # Errors
/// If the options request direct I/O.
pub fn remote_mode(options: &StoreOptions) -> Result<RemoteMode, OpenError> {
    let StoreOptions { direct, read_only, allow_incomplete, .. } = *options;
    match (direct, read_only) {
        (true, _) => Err(no_direct()),
        (false, true) => Ok(RemoteMode::Read { allow_incomplete }),
        (false, false) => Ok(RemoteMode::Write),
    }
}

/// The options for the volume `name` on a server.
pub fn remote_options(name: &str, options: &StoreOptions) -> RemoteOptions {
    RemoteOptions {
        retry_for: options.retry_for,
        retry_opening_for: options.retry_opening_for,
        ..RemoteOptions::new(name)
    }
}

/// The error for direct I/O on a server.
pub fn no_direct() -> OpenError {
    let message = "direct I/O is possible only with local files; turn direct I/O off";
    OpenError::new(OpenErrorKind::DirectRefused, message)
}

fn member_alone(mark: Mark) -> OpenError {
    let Mark { member, members, .. } = mark;
    OpenError::new(
        OpenErrorKind::WrongMembers,
        format!(
            "this is member {} of a stripe of {members}; name all members in order, as \
             stripe:URL,URL",
            member + 1
        ),
    )
}

fn file_options(options: &StoreOptions) -> FileOptions {
    let StoreOptions { direct, read_only, beside_writer, allow_incomplete, .. } = *options;
    FileOptions { direct, read_only, beside_writer, allow_incomplete, ..FileOptions::default() }
}

fn condition_of_file(store: &FileStore, read_only: bool) -> Result<Condition, OpenError> {
    let allocated_bytes = store
        .allocated_bytes()
        .map_err(|cause| OpenError::io("determine how much space the file takes", cause))?;
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
        condition.mended.push("damaged copies of the file's header were repaired".into());
    }
    Ok(condition)
}

fn check_no_file(path: &Path) -> Result<(), OpenError> {
    let Ok(there) = path.metadata() else { return Ok(()) };
    let what = match there.file_type() {
        kind if kind.is_file() => "exists; choose another name, or remove it first",
        kind if kind.is_dir() => "is a directory; name a new file in it",
        _ => "is a device, a pipe or a socket, but a volume is a file; name a new file",
    };
    Err(OpenError::new(OpenErrorKind::Exists, format!("{} {what}", path.display())))
}
