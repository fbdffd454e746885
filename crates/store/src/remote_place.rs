//! Where a volume of a bucket server is: `oblivio+tls://HOST:PORT/NAME?server=KEY&key=FILE`.
//!
//! | part | what it is |
//! |---|---|
//! | `HOST` | a name, an address, or an address of IPv6 in brackets |
//! | `:PORT` | [`PORT`] if it is left out |
//! | `/NAME` | what the volume is called among those of the client |
//! | `server=` | the public key by which the server is known, as `oblivio key server` prints it |
//! | `key=` | the file of the client's private key; escapes as in any URL |
//!
//! None of it is secret: the file is.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use oblivio_wire::Invalid;
use oblivio_wire::keys::{self, KeyError, PublicKey};
use oblivio_wire::message::check_name;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// Where bucket servers listen, unless it is said otherwise.
pub const PORT: u16 = 2411;

/// What stands before `://`.
pub(crate) const SCHEME: &str = "oblivio+tls";

/// A volume on a bucket server, and the keys of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemotePlace {
    /// A name or an address, an address of IPv6 without brackets.
    host: String,
    port: u16,
    name: String,
    server: PublicKey,
    key: PathBuf,
}

/// What is left as it is in a path: all else is escaped.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

impl RemotePlace {
    /// Takes apart what follows `://`.
    ///
    /// # Errors
    /// A sentence that says what is missing or strange. It repeats nothing.
    pub(crate) fn parse(rest: &[u8]) -> Result<Self, String> {
        let rest = str::from_utf8(rest)
            .map_err(|_| format!("{SCHEME}:// goes with text: escape what is none in key="))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let form = || format!("it is written {SCHEME}://HOST:PORT/NAME?server=KEY&key=FILE");
        let (authority, name) = place.split_once('/').ok_or_else(form)?;
        let (host, port) = host_and_port(authority).ok_or_else(form)?;
        check_name(name).map_err(Invalid::why)?;
        let [server, key] = parameters(query, ["server", "key"])?;
        let server = server.ok_or_else(|| {
            "which key the server has is missing: ?server=KEY, as `oblivio key server` prints it there"
                .to_owned()
        })?;
        let (server, key) = (public_key(server)?, path(key.ok_or(NO_KEY)?));
        Ok(Self { host, port, name: name.to_owned(), server, key })
    }

    /// A name or an address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Where the server listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the volume is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key by which the server is known.
    pub fn server(&self) -> PublicKey {
        self.server
    }

    /// The file of the client's key.
    pub fn key(&self) -> &Path {
        &self.key
    }
}

/// As it is written: it parses to the same.
impl fmt::Display for RemotePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, name, server, key } = self;
        let (at, server, key) = (shown_address(host, *port), shown_key(server), shown_path(key));
        write!(f, "{SCHEME}://{at}/{name}?server={server}&key={key}")
    }
}

/// Why there is no key.
pub const NO_KEY: &str =
    "the file of the client's key is missing: &key=FILE, which `oblivio key client` makes";

/// The values of these parameters, which stand between `&`, each once at most. A value may have a `=` itself.
///
/// # Errors
/// A sentence that says which parameter is strange, by its number: what nobody knows may be a password, and is not repeated.
pub fn parameters<'q, const COUNT: usize>(
    query: &'q str,
    known: [&str; COUNT],
) -> Result<[Option<&'q str>; COUNT], String> {
    let mut values = [None; COUNT];
    for (field, number) in query.split('&').filter(|field| !field.is_empty()).zip(1..) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let place = known.iter().position(|known| *known == name).ok_or_else(|| {
            format!(
                "parameter {number} behind the question mark is none that there is: there are {}=",
                known.join("=, ")
            )
        })?;
        if value.is_empty() {
            return Err(format!("nothing stands behind {name}= (parameter {number}): say what"));
        }
        if values[place].replace(value).is_some() {
            return Err(format!("{name}= is there again as parameter {number}: say it once"));
        }
    }
    Ok(values)
}

/// A key as it is written in a URL.
pub fn public_key(value: &str) -> Result<PublicKey, String> {
    let value: Vec<u8> = percent_decode(value.as_bytes()).collect();
    let value = String::from_utf8(value).unwrap_or_default();
    value.parse().map_err(|error: KeyError| error.to_string())
}

/// A path as it is written in a URL.
pub fn path(value: &str) -> PathBuf {
    OsString::from_vec(percent_decode(value.as_bytes()).collect()).into()
}

/// As [`public_key`] reads it.
pub fn shown_key(key: &PublicKey) -> String {
    key.to_string().split_whitespace().last().unwrap_or_default().to_owned()
}

/// As [`path`] reads it.
pub fn shown_path(path: &Path) -> impl fmt::Display {
    percent_encode(path.as_os_str().as_bytes(), PATH)
}

/// As [`host_and_port`] reads it.
pub fn shown_address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Where a server is: [`PORT`] if it is left out.
pub fn host_and_port(authority: &str) -> Option<(String, u16)> {
    let (host, port) = keys::host_and_port(authority)?;
    Some((host.to_owned(), port.unwrap_or(PORT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

    #[test]
    fn what_is_shown_names_the_same_and_what_is_missing_is_said() {
        for rest in [
            format!("server.example:99/disk?server={KEY}&key=/srv/keys/key"),
            format!("10.0.0.1/a.obl?key=k%20y&server={KEY}"),
            format!("[::1]:7/x?server={KEY}&key=%ff%26"),
        ] {
            let place = RemotePlace::parse(rest.as_bytes()).unwrap();
            let shown = place.to_string();
            let again = shown.strip_prefix("oblivio+tls://").unwrap();
            assert_eq!(RemotePlace::parse(again.as_bytes()), Ok(place), "{shown}");
        }
        let place = RemotePlace::parse(format!("h/a?server={KEY}&key=k").as_bytes()).unwrap();
        assert_eq!((place.host(), place.port(), place.name()), ("h", PORT, "a"));
        for (rest, said) in [
            ("h/a?key=k".into(), "oblivio key server"),
            (format!("h/a?server={KEY}"), "oblivio key client"),
            (format!("h?server={KEY}&key=k"), "HOST:PORT/NAME"),
            (format!("h:0/a?server={KEY}&key=k"), "HOST:PORT/NAME"),
            (format!("me@h/a?server={KEY}&key=k"), "HOST:PORT/NAME"),
            (format!("h/../a?server={KEY}&key=k"), "a name of"),
            ("h/a?server=short&key=k".into(), "no public key"),
            (format!("h/a?server={KEY}&key=k&more=1"), "parameter 3 behind the question mark"),
            (format!("h/a?server={KEY}&key=k&more=1"), "there are server=, key="),
            (format!("h/a?server={KEY}&key=k&key=k"), "key= is there again as parameter 3"),
            (format!("h/a?key=&server={KEY}"), "nothing stands behind key= (parameter 1)"),
        ] {
            let refused = RemotePlace::parse(rest.as_bytes()).unwrap_err();
            assert!(refused.contains(said), "{rest}: {refused}");
            assert!(!refused.contains("more"), "it may be a password: {refused}");
        }
    }
}
