//! From a location to storage: the one place where stores are made and opened.
//!
//! # To add a store
//! `docs/add-a-store.md` of the repository has the steps ("A URL of its own"): the store in a file
//! of its own, then [`StoreKind`], [`Location`], this file, tests, help texts, and documents. The
//! simplest complete store to begin with is the example `own_store` of the crate `oblivio`.
//!
//! In this file the compiler points at [`StoreKind::bytes_needed`],
//! [`StoreKind::client_bytes_max`], [`Location::create`], [`Location::open_as_it_is`],
//! [`Location::look`], [`Location::check_vacant`], [`Location::remove`],
//! [`Location::files_needed`] and [`Location::in_common`]. It does not point at
//! [`Location::open`], [`Location::open_without_header`], [`Location::is_half_made`] and the
//! function `check_apart`, which were written with [`File`](Location::File) in mind: check each of
//! them. A stripe over stores of the new kind needs nothing more.
//!
//! # What a store has to get right
//! - **A URL holds no secret**: name a file or a variable that holds one.
//! - **Capabilities.** The store says what it can do in
//!   [`capabilities`](oblivio_core::store::BucketStore::capabilities): parts of buckets, or whole
//!   buckets only. It refuses what it lacks and does not make up for it; a scheme that needs more
//!   is refused when it is made (ADR 1). A store over others can do what all of them can.
//! - **The store keeps its shapes.** [`Location::open`] is not passed them: the store returns those
//!   it was created with. They are public, and not trusted: check lengths and numbers before use.
//!   [`container`](crate::container) does this for files.
//! - **Frames lie in the buffer of the store.** Place all pieces of a trip in one buffer. For a
//!   write, pass it to [`Blanks::new`](oblivio_core::store::Blanks::new), call the closure once,
//!   then send what it left. Only [`SealedTrip`](oblivio_core::store::SealedTrip) forwards bytes
//!   that were sealed for one store to others, as [`StripedStore`] does; only
//!   [`Moved`](oblivio_core::store::Moved) forwards what was read, as a copy of a volume does.
//! - **A failed [`Location::create`] leaves nothing behind**, and what a successful one made is
//!   durable, names included.
//! - **One writer.** A second opening to write is [`Locked`](OpenErrorKind::Locked); readers share.
//!   **`beside_writer`** reads without a lock.
//! - **`read_only`** refuses writes with [`Refused`](oblivio_core::StoreErrorKind::Refused), before
//!   the closure is called, and a flush does nothing.
//! - **`may_be_cut_off`** opens storage that is not whole, and says so in [`Condition`]. Without
//!   it, opening fails with [`Truncated`](OpenErrorKind::Truncated).
//! - **`direct`** fails with [`DirectRefused`](OpenErrorKind::DirectRefused) in `create` and `open`
//!   if the store has no direct requests ([`no_direct`]): no option is ignored silently.
//! - **A failed write or flush is final.** The system may have dropped what it could not write; all
//!   further calls fail. [`StoreFailure`](crate::StoreFailure) keeps the failure.
//! - **Errors of opening** are [`OpenError`], with an [`OpenErrorKind`]; exit codes follow from the
//!   kind. [`OpenError::io`] maps those of the system.
//!
//! # Tests, and what they find
//! - **`check_durable_store`**: wrong places, shapes and orders, reads that are not the latest
//!   write, and flushed writes that are gone after reopening. It does not lock, and reopens only
//!   what the test hands it.
//! - **Tests of the store**, as in `conformance.rs`, `damage.rs`, `location.rs` and `stripe.rs` of
//!   `tests/file`: a second writer, a reader that writes, cut-off storage, a URL that does not come
//!   back, what a failed creation leaves.
//! - **By hand**: `create URL`, `serve nbd URL --run 'nbdcopy image "$uri"'`, `check URL` and
//!   `rescue URL` find what the program and its messages assume of files.
//!   [`check_vacant`](Location::check_vacant) looks at paths, and
//!   `crates/cli/src/volume/room.rs` at those that [`files_needed`](Location::files_needed) gives.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oblivio_core::durable::AnyStore;
use oblivio_core::store::{TreeShape, shapes_of};

use crate::calling;
use crate::container::HEADER_COPIES;
use crate::dealing::{self, Mark, StripeName};
use crate::error::{OpenError, OpenErrorKind};
use crate::location::{Location, Members, StoreKind};
use crate::look_ahead::READ_AHEAD_BYTES_MAX;
use crate::medium;
use crate::remote::{RemoteMode, RemoteOptions, RemoteStore};
use crate::remote_place::RemotePlace;
use crate::store::{FileOptions, FileStore};
use crate::striped::StripedStore;

/// What a file may take that has no more in it than headers, and what file systems add to it.
const HALF_MADE_BYTES_MAX: u64 = 1 << 20;

/// Storage, whatever it is.
pub type BoxedStore = AnyStore;

/// How storage is used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Pass by the page cache of the system.
    pub direct: bool,
    /// Refuse writes, and share the storage with others that do.
    pub read_only: bool,
    /// Read beside whoever writes to a file: nobody is kept out, and what is read may be half written. For those who only read. A server has rules of its own.
    pub beside_writer: bool,
    /// Open storage to read even if a part of it is gone: that part cannot be read, and the rest can. Share servers are opened so also to write: as many may be gone as
    /// leave one more than may collude.
    pub may_be_cut_off: bool,
    /// How long to try to reach a server again after its link was lost. Files know no such thing.
    pub retry_for: Duration,
    /// How long to try again to open storage on a server that ends the link or has no room. If it
    /// refuses a connection after that, it is probably restarting, and is retried. A server that
    /// refuses the first connection is tried once: the address may be wrong.
    pub retry_opening_for: Duration,
}

impl StoreOptions {
    /// The same, but for [`direct`](Self::direct).
    #[must_use]
    pub const fn with_direct(self, direct: bool) -> Self {
        Self { direct, ..self }
    }

    /// The same, but for [`read_only`](Self::read_only).
    #[must_use]
    pub const fn with_read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// The same, but for [`beside_writer`](Self::beside_writer).
    #[must_use]
    pub const fn with_beside_writer(self, beside_writer: bool) -> Self {
        Self { beside_writer, ..self }
    }

    /// The same, but for [`may_be_cut_off`](Self::may_be_cut_off).
    #[must_use]
    pub const fn with_may_be_cut_off(self, may_be_cut_off: bool) -> Self {
        Self { may_be_cut_off, ..self }
    }

    /// The same, but for [`retry_for`](Self::retry_for) and
    /// [`retry_opening_for`](Self::retry_opening_for).
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
            may_be_cut_off: false,
            retry_for: RETRY_FOR,
            retry_opening_for: RETRY_OPENING_FOR,
        }
    }
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

/// What there is of storage that is going to be removed.
#[derive(Default)]
pub struct Remains {
    /// What can still be read of it, to read; for share servers a store of each that has one.
    pub stores: Vec<BoxedStore>,
    /// Bytes that it takes; none if nobody knows.
    pub bytes: Option<u64>,
    /// Those of several servers that have nothing of it, as people call them.
    pub absent: Vec<String>,
}

impl Condition {
    /// Counts in what was found of one of several stores, which is called so.
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
    /// Bytes that [`Location::create`] would take up in the end for trees of these shapes.
    ///
    /// # Errors
    /// When no storage of this kind can hold them.
    pub fn bytes_needed(self, shapes: &[TreeShape]) -> Result<u64, OpenError> {
        match self {
            // A server keeps files.
            Self::File | Self::Remote => FileStore::bytes_needed(shapes),
            Self::Stripe { members } => {
                let dealt = dealing::deal(shapes, members, StripeName::default())?;
                dealt.iter().map(|shapes| FileStore::bytes_needed(shapes)).sum()
            }
            // Of records: what servers compute with comes on top, and they say so when it is set up.
            Self::Shares { servers, .. } => Ok(servers as u64 * FileStore::bytes_needed(shapes)?),
        }
    }

    /// The most bytes of client memory that an opened store of this kind takes: what is kept back, and what is read ahead.
    /// A trip that is longer comes on top.
    pub fn client_bytes_max(self) -> u64 {
        match self {
            Self::File => {
                (FileOptions::default().write_behind_bytes_max + READ_AHEAD_BYTES_MAX) as u64
            }
            Self::Remote => RemoteStore::client_bytes_max(),
            Self::Stripe { members } => members as u64 * Self::File.client_bytes_max(),
            Self::Shares { servers, .. } => servers as u64 * Self::Remote.client_bytes_max(),
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
            Self::Remote(place) => {
                if options.direct {
                    return Err(no_direct());
                }
                Ok(Box::new(RemoteStore::create(
                    calling::dial(place)?,
                    shapes,
                    remote_options(place.name(), options),
                )?))
            }
            Self::Stripe(members) => create_stripe(members, shapes, options),
        }
    }

    /// Opens storage that there is.
    ///
    /// # Errors
    /// When it is not ours, not whole, in use elsewhere, or the system refuses. When it is one member of a stripe, or
    /// what is named is not all of one in its order.
    pub fn open(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        let opened = self.open_as_it_is(options).map_err(|error| match self {
            // All that says so of the contents of a file. Of members, and of what cannot be opened, the name is said.
            Self::File(path) if error.is_about_contents() => error.of(&path.display().to_string()),
            _ => error,
        })?;
        match dealing::mark_of(&shapes_of(&*opened.store)) {
            Some(mark) => Err(member_alone(mark)),
            None => Ok(opened),
        }
    }

    /// The same, and it may be a member of a stripe: for a server, whose clients know what it is to them.
    ///
    /// # Errors
    /// The others of [`Self::open`].
    pub fn open_as_it_is(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        match self {
            Self::File(path) => {
                let store = FileStore::open(path, &file_options(options))?;
                let condition = condition_of_file(&store, options.read_only)?;
                Ok(OpenedStore { store: Box::new(store), condition })
            }
            Self::Remote(place) => open_remote(place, remote_mode(options)?, options),
            Self::Stripe(members) => {
                open_stripe(members, options.read_only, |member| member.open_as_it_is(options))
            }
        }
    }

    /// Opens a file to read, and takes it for one with trees of these shapes, whatever its header
    /// says. `None` for storage of another kind, which keeps its shapes elsewhere.
    ///
    /// # Errors
    /// Those of [`FileStore::open_without_header`].
    pub fn open_without_header(
        &self,
        shapes: &[TreeShape],
        options: &StoreOptions,
    ) -> Result<Option<OpenedStore>, OpenError> {
        let Self::File(path) = self else { return Ok(None) };
        let opened = FileStore::open_without_header(path, shapes, &file_options(options));
        let store = opened.map_err(|error| match error.is_about_contents() {
            true => error.of(&path.display().to_string()),
            false => error,
        })?;
        let condition = condition_of_file(&store, true)?;
        Ok(Some(OpenedStore { store: Box::new(store), condition }))
    }

    /// Storage that can be looked at while somebody has it open, to see whether it could be opened before [opening](Self::open) it takes it
    /// from them. None where opening takes nothing from anybody.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn look(&self, options: &StoreOptions) -> Result<Option<OpenedStore>, OpenError> {
        let options = StoreOptions { read_only: true, ..options.clone() };
        self.can_be_taken_over().then(|| self.look_at_it(&options)).transpose()
    }

    fn can_be_taken_over(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Remote(_) => true,
            Self::Stripe(members) => members.list().iter().any(Self::can_be_taken_over),
        }
    }

    fn look_at_it(&self, options: &StoreOptions) -> Result<OpenedStore, OpenError> {
        match self {
            // Whoever has it open is found out by the lock.
            Self::File(_) => self.open_as_it_is(options),
            Self::Remote(place) => open_remote(place, RemoteMode::Look, options),
            Self::Stripe(members) => {
                open_stripe(members, true, |member| member.look_at_it(options))
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
            Self::Remote(place) => match RemoteStore::look(calling::dial(place)?, place.name())? {
                true => {
                    let name = place.name();
                    let message = format!(
                        "the server has a volume {name} of this client: choose another name, or \
                         remove what a creation that was interrupted has left (oblivio remove)"
                    );
                    Err(OpenError::new(OpenErrorKind::Exists, message))
                }
                false => Ok(()),
            },
            Self::Stripe(members) => check_all_vacant(members),
        }
    }

    /// What there is of storage, whole or not, for whoever is going to [remove](Self::remove) it. Nobody can write there while that is kept.
    ///
    /// # Errors
    /// When there is nothing, or no storage; when somebody has it open to write, or a server cannot be reached.
    pub fn remains(&self) -> Result<Remains, OpenError> {
        let options = StoreOptions { read_only: true, may_be_cut_off: true, ..Default::default() };
        match self.open_as_it_is(&options) {
            Ok(OpenedStore { store, condition }) => Ok(Remains {
                stores: vec![store],
                bytes: Some(condition.allocated_bytes),
                absent: Vec::new(),
            }),
            // It can be removed, and nobody knows how large it is.
            Err(error) if error.kind() == OpenErrorKind::Damaged => Ok(Remains::default()),
            Err(error) => Err(error),
        }
    }

    /// Removes storage, or what a creation that was interrupted has left of it: all that is there.
    ///
    /// # Errors
    /// When there is nothing, or it cannot be removed.
    pub fn remove(&self) -> Result<(), OpenError> {
        match self {
            Self::File(path) => {
                fs::remove_file(path).map_err(|cause| OpenError::io("remove the file", cause))
            }
            Self::Remote(place) => RemoteStore::remove(calling::dial(place)?, place.name()),
            // All that can be removed are, whatever comes of others.
            Self::Stripe(members) => {
                members.list().iter().map(Self::remove).fold(Ok(()), Result::and)
            }
        }
    }

    /// The files that [`Self::create`] would make for trees of these shapes, and the bytes that each would take up in the
    /// end.
    ///
    /// # Errors
    /// When it cannot hold them.
    pub fn files_needed(&self, shapes: &[TreeShape]) -> Result<Vec<(&Path, u64)>, OpenError> {
        match self {
            Self::File(path) => Ok(vec![(path, FileStore::bytes_needed(shapes)?)]),
            Self::Remote(_) => Ok(Vec::new()),
            Self::Stripe(members) => {
                let mut files = Vec::new();
                let dealt = dealing::deal(shapes, members.list().len(), StripeName::default())?;
                for (member, shapes) in members.list().iter().zip(dealt) {
                    files.extend(member.files_needed(&shapes)?);
                }
                Ok(files)
            }
        }
    }

    /// Whether what is there may be what [`Self::create`] for these shapes has left when it was interrupted: files that are
    /// empty, or as long as they would be, with no more in them than headers. [`Self::remove`] loses nothing then.
    ///
    /// # Errors
    /// When it cannot hold the shapes.
    pub fn is_half_made(&self, shapes: &[TreeShape]) -> Result<bool, OpenError> {
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

    /// A file that is named here and in another location, under whatever name, as it is called here.
    pub fn in_common(&self, other: &Self) -> Option<&Path> {
        let theirs: Vec<_> = other.files().into_iter().filter_map(identity).collect();
        let is_theirs = |path: &&Path| identity(path).is_some_and(|ours| theirs.contains(&ours));
        self.files().into_iter().find(is_theirs)
    }

    fn files(&self) -> Vec<&Path> {
        match self {
            Self::File(path) => vec![path],
            Self::Remote(_) => Vec::new(),
            Self::Stripe(members) => members.list().iter().flat_map(Self::files).collect(),
        }
    }
}

/// All members, or none.
fn create_stripe(
    members: &Members,
    shapes: &[TreeShape],
    options: &StoreOptions,
) -> Result<BoxedStore, OpenError> {
    check_apart(members)?;
    let dealt = dealing::deal(shapes, members.list().len(), StripeName::draw()?)?;
    let mut stores = Vec::with_capacity(dealt.len());
    let mut named = members.list().iter().zip(members.names()).zip(&dealt);
    let all_made = named.try_for_each(|((member, name), shapes)| {
        let store = member.create(shapes, options).map_err(|error| error.of(&name))?;
        stores.push((name, store));
        Ok(())
    });
    let made = stores.len();
    let striped = all_made.and_then(|()| StripedStore::new(stores, options.read_only));
    let striped = striped.inspect_err(|_| {
        for member in &members.list()[..made] {
            // What cannot be removed is in the way of the next attempt, which says so.
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
            // The first were there.
            OpenErrorKind::Missing if !stores.is_empty() => error.of(&name).with(
                "; bring the member back, because nothing can be read without it. Only if the \
                 creation of the stripe was interrupted, remove its other members and make it \
                 again",
            ),
            _ => error.of(&name),
        })?;
        condition.add(&name, opened.condition);
        stores.push((name, opened.store));
    }
    let store = StripedStore::new(stores, read_only)?;
    Ok(OpenedStore { store: Box::new(store), condition })
}

/// All that is in the way is told at once: a creation that was interrupted leaves several.
fn check_all_vacant(members: &Members) -> Result<(), OpenError> {
    let found = members.list().iter().zip(members.names());
    let found = found.filter_map(|(member, name)| Some((name, member.check_vacant().err()?)));
    let (names, mut errors): (Vec<_>, Vec<_>) = found.unzip();
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => {
            let message = format!(
                "{} exist: choose other names, or remove them first if they are left of a creation that was interrupted",
                names.join(", ")
            );
            Err(OpenError::new(OpenErrorKind::Exists, message))
        }
    }
}

/// No two members are one file, whatever they are called.
fn check_apart(members: &Members) -> Result<(), OpenError> {
    let (mut seen, names) = (Vec::new(), members.names());
    for (member, name) in members.list().iter().zip(&names) {
        let Location::File(path) = member else { continue };
        // What cannot be looked at is told when it is opened.
        let Some(identity) = identity(path) else { continue };
        if let Some((_, other)) = seen.iter().find(|(known, _)| *known == identity) {
            let message = format!("{other} and {name} are one file: name another for each member");
            return Err(OpenError::new(OpenErrorKind::WrongMembers, message));
        }
        seen.push((identity, name));
    }
    Ok(())
}

/// What a file is, or will be when it is made.
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
    place: &RemotePlace,
    mode: RemoteMode,
    options: &StoreOptions,
) -> Result<OpenedStore, OpenError> {
    let options = remote_options(place.name(), options);
    let (store, condition) = RemoteStore::open(calling::dial(place)?, mode, options)?;
    Ok(OpenedStore { store: Box::new(store), condition })
}

/// How storage on a server is opened with these options.
///
/// # Errors
/// When they ask for direct requests.
pub fn remote_mode(options: &StoreOptions) -> Result<RemoteMode, OpenError> {
    let StoreOptions { direct, read_only, may_be_cut_off, .. } = *options;
    match (direct, read_only) {
        (true, _) => Err(no_direct()),
        (false, true) => Ok(RemoteMode::Read { may_be_cut_off }),
        (false, false) => Ok(RemoteMode::Write),
    }
}

/// How a volume with this name on a server is used with these options.
pub fn remote_options(name: &str, options: &StoreOptions) -> RemoteOptions {
    RemoteOptions {
        retry_for: options.retry_for,
        retry_opening_for: options.retry_opening_for,
        ..RemoteOptions::new(name)
    }
}

/// The error if direct requests are asked of a server.
pub fn no_direct() -> OpenError {
    let message = "only files of this machine can be passed direct requests: leave out that requests are direct";
    OpenError::new(OpenErrorKind::DirectRefused, message)
}

fn member_alone(mark: Mark) -> OpenError {
    let Mark { member, members, .. } = mark;
    OpenError::new(
        OpenErrorKind::WrongMembers,
        format!(
            "this is member {} of a stripe of {members}: name all of them in their order, as stripe:URL,URL",
            member + 1
        ),
    )
}

fn file_options(options: &StoreOptions) -> FileOptions {
    let StoreOptions { direct, read_only, beside_writer, may_be_cut_off, .. } = *options;
    FileOptions { direct, read_only, beside_writer, may_be_cut_off, ..FileOptions::default() }
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
