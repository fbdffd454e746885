//! Where storage is, as people write it.
//!
//! | written | what it names |
//! |---|---|
//! | `disk.obl`, `./disk.obl`, `a:b` | the file of that path |
//! | `file:disk.obl` | the same: what follows `file:` is a path as it is |
//! | `file:///srv/my%20disk.obl` | the file of that absolute path, with its escapes undone |
//! | `oblivio+tls://host/disk?server=KEY&key=FILE` | a volume on a bucket server: see [`RemotePlace`] |
//! | `stripe:a.obl,file:///srv/b.obl` | a store striped over those there, its members, in that order |
//! | any other `scheme://…` | nothing: it is refused, and never a file of that name |
//!
//! `shares://…`, a volume on share servers, is a location of `oblivio` and of `oblivio_shares`.
//!
//! A colon alone makes no URL. What looks like a URL and is a path is written with `./` before it, or with
//! `file:`.
//!
//! Behind `stripe:` are 2 to 16 locations, which are no stripes and no share servers themselves, with commas between them. There, paths have
//! escapes as URLs do: a comma in a path is `%2C`, and a percent sign `%25`.
//!
//! A location holds no secret: command lines are public, and messages repeat it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode, percent_encode};

use crate::dealing::{MEMBERS_MAX, MEMBERS_MIN};
use crate::remote_place::{self, RemotePlace};

/// Where storage is.
///
/// What [`Display`](fmt::Display) shows is a location again: the same one, if its path is text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// A file of this machine.
    File(PathBuf),
    /// A volume on a bucket server.
    Remote(Box<RemotePlace>),
    /// Several stores, over which one is striped.
    Stripe(Members),
}

/// The places over which a store is striped, in their order: from [`MEMBERS_MIN`] to [`MEMBERS_MAX`], all of them
/// different, and none a stripe itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members(Vec<Location>);

impl Members {
    /// Stripes over these places.
    ///
    /// # Errors
    /// When there are too few or too many, when one is named twice, or is a stripe.
    pub fn new(members: Vec<Location>) -> Result<Self, InvalidLocation> {
        let count = members.len();
        if !(MEMBERS_MIN..=MEMBERS_MAX).contains(&count) {
            return Err(InvalidLocation(format!(
                "stripe: goes with {MEMBERS_MIN} to {MEMBERS_MAX} places and commas between them, and there \
                 are {count}: a comma in a path is written %2C"
            )));
        }
        if members.iter().any(|member| matches!(member, Location::Stripe(_))) {
            return Err(nested());
        }
        if (1..count).any(|i| members[..i].contains(&members[i])) {
            return Err(InvalidLocation(
                "stripe: names a place twice: name another for each member".into(),
            ));
        }
        Ok(Self(members))
    }

    /// The first member first.
    pub fn list(&self) -> &[Location] {
        &self.0
    }

    /// What each is called, as it is written in the list.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(|member| InList(member).to_string()).collect()
    }

    /// Takes apart what follows `stripe:`.
    fn parse(written: &[u8]) -> Result<Self, InvalidLocation> {
        let members = written.split(|byte| *byte == b',').zip(1..).map(|(member, number)| {
            if member.starts_with(STRIPE_PREFIX) {
                return Err(nested());
            }
            // Its commas have taken it apart.
            if split_url(member).is_some_and(|(scheme, _)| is_of_shares(scheme)) {
                return Err(shares_in_a_stripe());
            }
            if member.is_empty() {
                let message = format!("member {number} of the stripe has no path: name a file");
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
    /// A file of this machine.
    #[default]
    File,
    /// On a bucket server.
    Remote,
    /// Several files.
    Stripe {
        /// How many.
        members: usize,
    },
    /// On share servers.
    Shares {
        /// How many.
        servers: usize,
        /// How many of them may put together what they know.
        colluding: usize,
    },
}

impl StoreKind {
    /// All kinds that are one place.
    pub const ALL: [Self; 2] = [Self::File, Self::Remote];

    /// What stands before `://` in a URL of this kind; of a stripe, before the colon.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Remote => remote_place::SCHEME,
            Self::Stripe { .. } => "stripe",
            Self::Shares { .. } => SHARES,
        }
    }

    fn of_scheme(scheme: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.scheme().eq_ignore_ascii_case(scheme))
    }
}

impl Location {
    /// Takes apart what somebody wrote. A path need not be text.
    ///
    /// # Errors
    /// When it is empty, or a URL that names no storage.
    pub fn parse(written: &OsStr) -> Result<Self, InvalidLocation> {
        let bytes = written.as_bytes();
        match bytes.strip_prefix(STRIPE_PREFIX) {
            // With `//` it looks like a URL, and there is none of this form.
            Some(members) if split_url(bytes).is_none() => {
                Members::parse(members).map(Self::Stripe)
            }
            _ => parse(bytes, <[u8]>::to_vec),
        }
    }

    /// The files of this machine that it names: those of stores, and the keys of clients.
    pub fn local_files(&self) -> Vec<&Path> {
        match self {
            Self::File(path) => vec![path],
            Self::Remote(place) => vec![place.key()],
            Self::Stripe(Members(members)) => members.iter().flat_map(Self::local_files).collect(),
        }
    }

    /// Which kind of storage is there.
    pub fn kind(&self) -> StoreKind {
        match self {
            Self::File(_) => StoreKind::File,
            Self::Remote(_) => StoreKind::Remote,
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
            Self::Stripe(members) => write!(f, "stripe:{}", members.names().join(",")),
        }
    }
}

/// A path as text for programs: the path itself, or its absolute `file://` URL if it is not UTF-8.
pub fn path_text(path: &Path) -> String {
    /// All but what RFC 3986 leaves unescaped in a path.
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

/// What is escaped in a path that is no text.
const NO_TEXT: &AsciiSet = &CONTROLS.add(b'%').add(b',').add(b':');

/// A location as it is written behind `stripe:`.
struct InList<'a>(&'a Location);

impl fmt::Display for InList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = match self.0 {
            // What is no text is escaped as a whole, colons too: it looks like no URL.
            Location::File(path) if path.to_str().is_none() => {
                percent_encode(path.as_os_str().as_bytes(), NO_TEXT).to_string()
            }
            // It has escapes of its own, and no commas.
            Location::Remote(place) => place.to_string(),
            location => location.to_string().replace('%', "%25").replace(',', "%2C"),
        };
        match written.strip_prefix("//") {
            // Behind `stripe:` it would look like a URL.
            Some(rest) => write!(f, "%2F/{rest}"),
            None => f.write_str(&written),
        }
    }
}

/// Why something names no storage. The message repeats no more of it than the scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidLocation(String);

impl InvalidLocation {
    /// With a sentence that says what is wrong.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// What says that a path follows.
const PATH_PREFIX: &[u8] = b"file:";

/// What says that a list of members follows.
const STRIPE_PREFIX: &[u8] = b"stripe:";

/// A URL of one place, or a path, of which `unescape` undoes what escapes there are.
fn parse(written: &[u8], unescape: impl Fn(&[u8]) -> Vec<u8>) -> Result<Location, InvalidLocation> {
    match split_url(written) {
        Some((scheme, _)) if is_of_shares(scheme) => Err(InvalidLocation(format!(
            "{SHARES}:// names a volume on share servers, which is not a single store: use `oblivio::Location`"
        ))),
        Some((scheme, rest)) => match StoreKind::of_scheme(scheme) {
            Some(StoreKind::File) => file_of_url(rest),
            Some(StoreKind::Remote) => {
                let place = RemotePlace::parse(rest).map_err(InvalidLocation)?;
                Ok(Location::Remote(Box::new(place)))
            }
            Some(StoreKind::Stripe { .. } | StoreKind::Shares { .. }) | None => {
                Err(InvalidLocation(unknown_scheme(scheme)))
            }
        },
        None => file_of_path(&unescape(written.strip_prefix(PATH_PREFIX).unwrap_or(written))),
    }
}

/// Scheme and rest of `scheme://rest`, if it is of that form (RFC 3986, section 3.1).
fn split_url(written: &[u8]) -> Option<(&str, &[u8])> {
    const MARK: &[u8] = b"://";
    let end = written.windows(MARK.len()).position(|bytes| bytes == MARK)?;
    let scheme = str::from_utf8(&written[..end]).ok()?;
    let is_in_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_in_scheme);
    is_scheme.then(|| (scheme, &written[end + MARK.len()..]))
}

/// What follows `file://` is a machine, which can only be this one, and a path from the root (RFC 8089).
fn file_of_url(rest: &[u8]) -> Result<Location, InvalidLocation> {
    let path = rest.strip_prefix(b"localhost").unwrap_or(rest);
    if !path.starts_with(b"/") {
        return Err(InvalidLocation(
            "file:// goes with a path from the root, such as file:///srv/disk.obl: other paths are written \
             without it"
                .into(),
        ));
    }
    file_of_path(&percent_decode(path).collect::<Vec<_>>())
}

fn file_of_path(path: &[u8]) -> Result<Location, InvalidLocation> {
    if path.is_empty() {
        return Err(InvalidLocation("this is no path: name a file".into()));
    }
    if path.contains(&0) {
        return Err(InvalidLocation("a path has no zero byte: write it without %00".into()));
    }
    Ok(Location::File(OsString::from_vec(path.to_vec()).into()))
}

fn unknown_scheme(scheme: &str) -> String {
    let known = StoreKind::ALL.map(|kind| format!("{}://", kind.scheme())).join(", ");
    format!(
        "{scheme}:// names no store: there is {known}, {}:// with several servers behind it, and stripe: with several places. A file of \
         such a name is written ./{scheme}://…",
        SHARES
    )
}

/// What stands before `://` where a volume is on share servers.
const SHARES: &str = "shares";

/// What follows `shares://`, if that is what was written.
pub fn shares_url(written: &OsStr) -> Option<&[u8]> {
    let (scheme, rest) = split_url(written.as_bytes())?;
    is_of_shares(scheme).then_some(rest)
}

fn is_of_shares(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case(SHARES)
}

fn shares_in_a_stripe() -> InvalidLocation {
    InvalidLocation(format!(
        "stripe: cannot name share servers: they hold a volume by themselves, as {}://…",
        SHARES
    ))
}

fn nested() -> InvalidLocation {
    InvalidLocation("stripe: cannot name a stripe: name all members behind one stripe:".into())
}
