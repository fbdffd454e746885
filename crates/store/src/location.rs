//! Locations of storage, as people write them.
//!
//! | written | names |
//! |---|---|
//! | `disk.obl`, `./disk.obl`, `a:b` | the file with that path |
//! | `file:disk.obl` | the same: a literal path follows `file:` |
//! | `file:///srv/my%20disk.obl` | the file with that absolute path, percent-decoded |
//! | `oblivio+tls://host/disk?server=KEY&key=FILE` | a volume on a server: [`RemoteLocation`] |
//! | `folder:objects`, `folder:///srv/objects` | a directory with one file per object |
//! | `s3://bucket/prefix?…`, `gs://…`, `az://…` | an object store: [`CloudLocation`] |
//! | `redis://host,host/name` | a Redis or Valkey cluster: [`RedisLocation`] |
//! | `near:FILE,folder:objects` | the same, with copies of the upper levels in a local file |
//! | `stripe:a.obl,file:///srv/b.obl` | a store striped over these members, in that order |
//! | any other `scheme://…` | refused; never a file of that name |
//!
//! The crates `oblivio` and `oblivio_shares` also accept `shares://…`, a volume on share servers;
//! this crate does not.
//!
//! A colon alone does not make a URL. Write a path that looks like a URL with a leading `./` or
//! `file:`.
//!
//! After `stripe:` follow 2 to 16 locations, separated by commas. They must not be stripes or share
//! servers. Paths in this list are percent-encoded: a comma is `%2C`, and a percent sign `%25`.
//!
//! A location contains no secret, because command lines are public and messages repeat it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode, percent_encode};

use crate::cloud_location::{CloudLocation, CloudService};
use crate::objects_location::{Engine, EngineLocation, FOLDER, NearFile, ObjectsLocation};
use crate::redis_location::{REDISS_SCHEME, RedisLocation};
use crate::remote_location::{self, RemoteLocation};
use crate::striping::{MEMBERS_MAX, MEMBERS_MIN};

/// A location of storage.
///
/// [`Display`](fmt::Display) shows a location that parses to the same one, if its path is UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// A local file.
    File(PathBuf),
    /// A volume on a bucket server.
    Remote(Box<RemoteLocation>),
    /// A store over named objects.
    Objects(Box<ObjectsLocation>),
    /// A stripe over several stores: its members, in order.
    Stripe(Members),
}

/// The members of a stripe in their order: [`MEMBERS_MIN`] to [`MEMBERS_MAX`] different locations,
/// none of them a stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members(Vec<Location>);

impl Members {
    /// Creates the list of members of a stripe.
    ///
    /// # Errors
    /// If there are too few or too many locations, or a location is named twice or is a stripe.
    pub fn new(members: Vec<Location>) -> Result<Self, InvalidLocation> {
        let count = members.len();
        if !(MEMBERS_MIN..=MEMBERS_MAX).contains(&count) {
            return Err(InvalidLocation(format!(
                "stripe: needs {MEMBERS_MIN} to {MEMBERS_MAX} locations separated by commas, but \
                 has {count}; write a comma in a path as %2C"
            )));
        }
        if members.iter().any(|member| matches!(member, Location::Stripe(_))) {
            return Err(nested());
        }
        if members.iter().any(|member| InList(member).to_string().contains(',')) {
            return Err(InvalidLocation(
                "stripe: cannot contain a location with a comma; name one node of a Redis cluster"
                    .into(),
            ));
        }
        if (1..count).any(|i| members[..i].contains(&members[i])) {
            return Err(InvalidLocation(
                "stripe: names a location twice; each member needs its own".into(),
            ));
        }
        Ok(Self(members))
    }

    /// The members, in order.
    pub fn list(&self) -> &[Location] {
        &self.0
    }

    /// The name of each member, as the list after `stripe:` contains it.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(|member| InList(member).to_string()).collect()
    }

    /// Parses the list after `stripe:`.
    fn parse(written: &[u8]) -> Result<Self, InvalidLocation> {
        let members = written.split(|byte| *byte == b',').zip(1..).map(|(member, number)| {
            if member.starts_with(STRIPE_PREFIX) {
                return Err(nested());
            }
            // Checked here because the commas of a `shares://` URL have already split it.
            if split_url(member).is_some_and(|(scheme, _)| is_of_shares(scheme)) {
                return Err(shares_in_a_stripe());
            }
            if member.starts_with(NEAR_PREFIX) {
                return Err(InvalidLocation("stripe: cannot contain near:".into()));
            }
            if member.is_empty() {
                let message = format!("member {number} of the stripe has no path; name a file");
                return Err(InvalidLocation(message));
            }
            parse(member, |path| percent_decode(path).collect())
        });
        Self::new(members.collect::<Result<_, _>>()?)
    }
}

/// A kind of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreKind {
    /// A local file.
    #[default]
    File,
    /// A volume on a bucket server.
    Remote,
    /// Named objects that are written once.
    Objects(Engine),
    /// A stripe over several stores.
    Stripe {
        /// The number of members.
        members: usize,
    },
    /// A volume on share servers.
    Shares {
        /// The number of servers.
        servers: usize,
        /// The number of servers that may collude.
        colluding: usize,
    },
}

impl StoreKind {
    /// The kinds of storage that are a single file or server, and not a set of them.
    pub const ALL: [Self; 7] = [
        Self::File,
        Self::Remote,
        Self::Objects(Engine::Folder),
        Self::Objects(Engine::Cloud(CloudService::S3)),
        Self::Objects(Engine::Cloud(CloudService::Gcs)),
        Self::Objects(Engine::Cloud(CloudService::Azure)),
        Self::Objects(Engine::Redis),
    ];

    /// The URL scheme of this kind; for a stripe, the prefix before the colon.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Remote => remote_location::SCHEME,
            Self::Objects(engine) => engine.scheme(),
            Self::Stripe { .. } => "stripe",
            Self::Shares { .. } => SHARES,
        }
    }

    fn of_scheme(scheme: &str) -> Option<Self> {
        if scheme.eq_ignore_ascii_case(REDISS_SCHEME) {
            return Some(Self::Objects(Engine::Redis));
        }
        Self::ALL.into_iter().find(|kind| kind.scheme().eq_ignore_ascii_case(scheme))
    }
}

impl Location {
    /// Parses a location. A path need not be UTF-8.
    ///
    /// # Errors
    /// If the path is empty or contains a zero byte, or the text is a URL or a list after `stripe:`
    /// but not a storage location.
    pub fn parse(written: &OsStr) -> Result<Self, InvalidLocation> {
        let bytes = written.as_bytes();
        match bytes.strip_prefix(STRIPE_PREFIX) {
            // `stripe://…` looks like a URL, but no such URL exists.
            Some(members) if split_url(bytes).is_none() => {
                Members::parse(members).map(Self::Stripe)
            }
            _ => match bytes.strip_prefix(NEAR_PREFIX) {
                // `near://…` looks like a URL, but no such URL exists.
                Some(rest) if !rest.starts_with(b"//") => parse_near(rest),
                _ => parse(bytes, <[u8]>::to_vec),
            },
        }
    }

    /// The paths of all local files that the location names: stores, and files with a client's key.
    pub fn local_files(&self) -> Vec<&Path> {
        match self {
            Self::File(path) => vec![path],
            Self::Remote(place) => vec![place.key()],
            Self::Objects(place) => place.local_files(),
            Self::Stripe(Members(members)) => members.iter().flat_map(Self::local_files).collect(),
        }
    }

    fn in_folder(path: PathBuf) -> Self {
        let engine = EngineLocation::Folder(path);
        Self::Objects(Box::new(ObjectsLocation { engine, near: None }))
    }

    /// The kind of storage.
    pub fn kind(&self) -> StoreKind {
        match self {
            Self::File(_) => StoreKind::File,
            Self::Remote(_) => StoreKind::Remote,
            Self::Objects(place) => StoreKind::Objects(place.engine()),
            Self::Stripe(members) => StoreKind::Stripe { members: members.0.len() },
        }
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
            Self::File(path) => {
                if Self::parse(path.as_os_str()).as_ref() != Ok(self) {
                    f.write_str("file:")?;
                }
                path.display().fmt(f)
            }
            Self::Remote(place) => place.fmt(f),
            Self::Objects(place) => {
                if let Some(NearFile { path, bytes_max }) = &place.near {
                    let path = percent_encode(path.as_os_str().as_bytes(), NEAR_PATH);
                    write!(f, "near:{path}")?;
                    bytes_max.map_or(Ok(()), |bytes| write!(f, "?bytes={bytes}"))?;
                    f.write_str(",")?;
                }
                place.engine.fmt(f)
            }
            Self::Stripe(members) => write!(f, "stripe:{}", members.names().join(",")),
        }
    }
}

/// Formats a path as text for programs: the path itself, or its absolute `file://` URL if it is not
/// UTF-8.
pub fn path_text(path: &Path) -> String {
    /// The characters to escape in a URL's path: all except those that RFC 3986 allows there
    /// unescaped.
    const IN_URL: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');
    path.to_str().map_or_else(
        || {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            format!("file://{}", percent_encode(absolute.as_os_str().as_bytes(), IN_URL))
        },
        str::to_owned,
    )
}

/// The characters to escape in a path that is not UTF-8.
const NO_TEXT: &AsciiSet = &CONTROLS.add(b'%').add(b',').add(b':');

/// A location, formatted as a member of the list after `stripe:`.
struct InList<'a>(&'a Location);

impl fmt::Display for InList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = match self.0 {
            // A path that is not UTF-8 is escaped as a whole, including colons, so that it does not
            // look like a URL.
            Location::File(path) if path.to_str().is_none() => {
                percent_encode(path.as_os_str().as_bytes(), NO_TEXT).to_string()
            }
            Location::Objects(place)
                if let Some(path) = place.folder()
                    && path.to_str().is_none() =>
            {
                format!("folder:{}", percent_encode(path.as_os_str().as_bytes(), NO_TEXT))
            }
            // A URL has its own escapes and no commas.
            Location::Remote(place) => place.to_string(),
            Location::Objects(place) if place.folder().is_none() => place.engine.to_string(),
            location => location.to_string().replace('%', "%25").replace(',', "%2C"),
        };
        match written.strip_prefix("//") {
            // After `stripe:`, a leading `//` would look like a URL.
            Some(rest) => write!(f, "%2F/{rest}"),
            None => f.write_str(&written),
        }
    }
}

/// Why a text is not a storage location. The message quotes no part of the text except the scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidLocation(String);

impl InvalidLocation {
    /// Creates an error with this message.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// The prefix of a literal path.
const PATH_PREFIX: &[u8] = b"file:";

/// The prefix of the path of a directory of objects.
const FOLDER_PREFIX: &[u8] = b"folder:";

/// The prefix of a near file and the store that it belongs to.
const NEAR_PREFIX: &[u8] = b"near:";

/// The characters to escape in the path of a near file.
const NEAR_PATH: &AsciiSet = &CONTROLS.add(b'%').add(b',').add(b'?');

/// The prefix of a list of members.
const STRIPE_PREFIX: &[u8] = b"stripe:";

/// Parses a URL or a path. `unescape` decodes a path that is not part of a URL.
fn parse(written: &[u8], unescape: impl Fn(&[u8]) -> Vec<u8>) -> Result<Location, InvalidLocation> {
    match split_url(written) {
        Some((scheme, _)) if is_of_shares(scheme) => Err(InvalidLocation(format!(
            "{SHARES}:// names a volume on share servers, which is not a single store; use \
             `oblivio::Location`"
        ))),
        Some((scheme, rest)) => match StoreKind::of_scheme(scheme) {
            Some(StoreKind::File) => path_of_url("file", rest).map(Location::File),
            Some(StoreKind::Objects(Engine::Folder)) => {
                path_of_url(FOLDER, rest).map(Location::in_folder)
            }
            Some(StoreKind::Objects(Engine::Cloud(service))) => {
                let place = CloudLocation::parse(service, rest).map_err(InvalidLocation)?;
                let engine = EngineLocation::Cloud(place);
                Ok(Location::Objects(Box::new(ObjectsLocation { engine, near: None })))
            }
            Some(StoreKind::Objects(Engine::Redis)) => {
                let place = RedisLocation::parse(rest).map_err(InvalidLocation)?;
                let engine = EngineLocation::Redis(place);
                Ok(Location::Objects(Box::new(ObjectsLocation { engine, near: None })))
            }
            Some(StoreKind::Remote) => {
                let place = RemoteLocation::parse(rest).map_err(InvalidLocation)?;
                Ok(Location::Remote(Box::new(place)))
            }
            Some(StoreKind::Stripe { .. } | StoreKind::Shares { .. }) | None => {
                Err(InvalidLocation(unknown_scheme(scheme)))
            }
        },
        None => match written.strip_prefix(FOLDER_PREFIX) {
            Some(path) => path_of(&unescape(path)).map(Location::in_folder),
            None => {
                let path = written.strip_prefix(PATH_PREFIX).unwrap_or(written);
                path_of(&unescape(path)).map(Location::File)
            }
        },
    }
}

/// Parses what follows `near:`: the path of the near file, percent-encoded, perhaps `?bytes=N`, a
/// comma, and the location of a store over objects.
fn parse_near(rest: &[u8]) -> Result<Location, InvalidLocation> {
    let usage = || {
        InvalidLocation(
            "near: needs a file and a store over objects, such as near:FILE,folder:DIR or \
             near:FILE?bytes=1073741824,folder:DIR; write a comma in the path of the file as %2C"
                .into(),
        )
    };
    let comma = rest.iter().position(|byte| *byte == b',').ok_or_else(usage)?;
    let (file, far) = (&rest[..comma], &rest[comma + 1..]);
    let (file, query) = match file.iter().position(|byte| *byte == b'?') {
        Some(at) => (&file[..at], Some(&file[at + 1..])),
        None => (file, None),
    };
    let bytes_max = query.map(|query| {
        let bytes = query.strip_prefix(b"bytes=").and_then(|bytes| str::from_utf8(bytes).ok());
        bytes.and_then(|bytes| bytes.parse().ok()).ok_or_else(usage)
    });
    let path = path_of(&percent_decode(file).collect::<Vec<_>>())?;
    match parse(far, <[u8]>::to_vec)? {
        Location::Objects(mut place) => {
            place.near = Some(NearFile { path, bytes_max: bytes_max.transpose()? });
            Ok(Location::Objects(place))
        }
        _ => Err(usage()),
    }
}

/// Splits `scheme://rest`, if the text has this form (RFC 3986, section 3.1).
fn split_url(written: &[u8]) -> Option<(&str, &[u8])> {
    const MARK: &[u8] = b"://";
    let end = written.windows(MARK.len()).position(|bytes| bytes == MARK)?;
    let scheme = str::from_utf8(&written[..end]).ok()?;
    let is_in_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_in_scheme);
    is_scheme.then(|| (scheme, &written[end + MARK.len()..]))
}

/// Parses a URL with a local path after `scheme://`: a host, which can only be this machine, and an
/// absolute path (RFC 8089).
fn path_of_url(scheme: &str, rest: &[u8]) -> Result<PathBuf, InvalidLocation> {
    let path = rest.strip_prefix(b"localhost").unwrap_or(rest);
    if !path.starts_with(b"/") {
        return Err(InvalidLocation(format!(
            "{scheme}:// needs an absolute path, such as {scheme}:///srv/disk.obl; write other \
             paths after {scheme}:, without //"
        )));
    }
    path_of(&percent_decode(path).collect::<Vec<_>>())
}

fn path_of(path: &[u8]) -> Result<PathBuf, InvalidLocation> {
    if path.is_empty() {
        return Err(InvalidLocation("the path is empty; name a file".into()));
    }
    if path.contains(&0) {
        return Err(InvalidLocation("a path cannot contain a zero byte; remove the %00".into()));
    }
    Ok(OsString::from_vec(path.to_vec()).into())
}

fn unknown_scheme(scheme: &str) -> String {
    let known = StoreKind::ALL.map(|kind| format!("{}://", kind.scheme())).join(", ");
    format!(
        "{scheme}:// is unknown; use {known}, {}:// with several servers, or stripe: with several \
         locations. Write a file of that name as ./{scheme}://…",
        SHARES
    )
}

/// The URL scheme of a volume on share servers.
const SHARES: &str = "shares";

/// The part of a `shares://` URL after the scheme; `None` for any other text.
pub fn shares_url(written: &OsStr) -> Option<&[u8]> {
    let (scheme, rest) = split_url(written.as_bytes())?;
    is_of_shares(scheme).then_some(rest)
}

fn is_of_shares(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case(SHARES)
}

fn shares_in_a_stripe() -> InvalidLocation {
    InvalidLocation(format!(
        "stripe: cannot contain share servers; name them alone, as {}://…",
        SHARES
    ))
}

fn nested() -> InvalidLocation {
    InvalidLocation("stripe: cannot contain a stripe; name all members after one stripe:".into())
}
