//! Where storage is, as people write it.
//!
//! | written | what it names |
//! |---|---|
//! | `disk.obl`, `./disk.obl`, `a:b` | the file of that path |
//! | `file:disk.obl` | the same: what follows `file:` is a path as it is |
//! | `file:///srv/my%20disk.obl` | the file of that absolute path, with its escapes undone |
//! | any other `scheme://…` | nothing: it is refused, and never a file of that name |
//!
//! A colon alone makes no URL. What looks like a URL and is a path is written with `./` before it, or with
//! `file:`.
//!
//! A location holds no secret: command lines are public, and messages repeat it.

use std::error::Error as StdError;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use percent_encoding::percent_decode;

/// Where storage is.
///
/// What [`Display`](fmt::Display) shows is a location again: the same one, if its path is text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// A file of this machine.
    File(PathBuf),
}

/// A kind of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreKind {
    /// A file of this machine.
    #[default]
    File,
}

impl StoreKind {
    /// All kinds that there are.
    pub const ALL: [Self; 1] = [Self::File];

    /// What stands before `://` in a URL of this kind.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::File => "file",
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
        match split_url(bytes) {
            Some((scheme, rest)) => match StoreKind::of_scheme(scheme) {
                Some(StoreKind::File) => file_of_url(rest),
                None => Err(InvalidLocation(unknown_scheme(scheme))),
            },
            None => file_of_path(bytes.strip_prefix(PATH_PREFIX).unwrap_or(bytes)),
        }
    }

    /// Which kind of storage is there.
    pub fn kind(&self) -> StoreKind {
        match self {
            Self::File(_) => StoreKind::File,
        }
    }

    /// The path, if it is a file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
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
        let Self::File(path) = self;
        if Self::parse(path.as_os_str()).as_ref() != Ok(self) {
            f.write_str("file:")?;
        }
        path.display().fmt(f)
    }
}

/// Why something names no storage. The message repeats no more of it than the scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidLocation(String);

impl fmt::Display for InvalidLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for InvalidLocation {}

/// What says that a path follows.
const PATH_PREFIX: &[u8] = b"file:";

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
    Ok(Location::File(OsString::from_vec(path.to_vec()).into()))
}

fn unknown_scheme(scheme: &str) -> String {
    let known = StoreKind::ALL.map(|kind| format!("{}://", kind.scheme())).join(", ");
    format!(
        "{scheme}:// names no store: there is {known}. A file of such a name is written ./{scheme}://…"
    )
}
