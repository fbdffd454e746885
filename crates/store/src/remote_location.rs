//! The location of a volume on a bucket server: `oblivio+tls://HOST:PORT/NAME?server=KEY&key=FILE`.
//!
//! | part | meaning |
//! |---|---|
//! | `HOST` | a name, an IPv4 address, or an IPv6 address in brackets |
//! | `:PORT` | default: [`PORT`] |
//! | `/NAME` | the volume's name; each client has separate names |
//! | `server=` | the server's public key, as `oblivio key server` prints it |
//! | `key=` | the file with the client's private key, percent-encoded |
//!
//! The URL contains no secret. The key file contains a secret.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use oblivio_wire::Invalid;
use oblivio_wire::keys::{self, KeyError, PublicKey};
use oblivio_wire::message::check_name;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// The default port of bucket servers.
pub const PORT: u16 = 2411;

/// The URL scheme of volumes on bucket servers.
pub(crate) const SCHEME: &str = "oblivio+tls";

/// The location of a volume on a bucket server, with the server's public key and the path of the
/// client's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteLocation {
    /// The host name or IP address of the server. An IPv6 address has no brackets here.
    host: String,
    port: u16,
    name: String,
    server: PublicKey,
    key: PathBuf,
}

/// The characters to escape in a path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

impl RemoteLocation {
    /// Parses the part of a URL after `://`.
    ///
    /// # Errors
    /// A message that says what is missing or wrong, without repeating values.
    pub(crate) fn parse(rest: &[u8]) -> Result<Self, String> {
        let rest = str::from_utf8(rest).map_err(|_| {
            format!("{SCHEME}:// must be UTF-8; percent-encode other bytes in key=")
        })?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let form = || format!("write it as {SCHEME}://HOST:PORT/NAME?server=KEY&key=FILE");
        let (authority, name) = place.split_once('/').ok_or_else(form)?;
        let (host, port) = host_and_port(authority).ok_or_else(form)?;
        check_name(name).map_err(Invalid::why)?;
        let [server, key] = parameters(query, ["server", "key"])?;
        let server = server.ok_or_else(|| {
            "missing ?server=KEY (the server's public key; run `oblivio key server` on the \
             server to print it)"
                .to_owned()
        })?;
        let (server, key) = (public_key(server)?, path(key.ok_or(NO_KEY)?));
        Ok(Self { host, port, name: name.to_owned(), server, key })
    }

    /// The host name or IP address of the server.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The server's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The name of the volume.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server's public key.
    pub fn server(&self) -> PublicKey {
        self.server
    }

    /// The path of the file with the client's private key.
    pub fn key(&self) -> &Path {
        &self.key
    }
}

/// Displays the URL, which parses to the same value.
impl fmt::Display for RemoteLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, name, server, key } = self;
        let (at, server, key) = (shown_address(host, *port), shown_key(server), shown_path(key));
        write!(f, "{SCHEME}://{at}/{name}?server={server}&key={key}")
    }
}

/// The message for a missing key file.
pub const NO_KEY: &str =
    "missing &key=FILE (the client's key file; `oblivio key client` creates it)";

/// Parses the parameters of a URL, which are separated by `&`. Returns the values in the order of
/// the names `known`, `None` for a missing parameter. Each parameter may occur once. A value may
/// contain `=`.
///
/// # Errors
/// A message that names the wrong parameter by its number. An unknown parameter may be a password,
/// so it is not repeated.
pub fn parameters<'q, const COUNT: usize>(
    query: &'q str,
    known: [&str; COUNT],
) -> Result<[Option<&'q str>; COUNT], String> {
    let mut values = [None; COUNT];
    for (field, number) in query.split('&').filter(|field| !field.is_empty()).zip(1..) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let place = known.iter().position(|known| *known == name).ok_or_else(|| {
            format!(
                "parameter {number} after the question mark is unknown; known are {}=",
                known.join("=, ")
            )
        })?;
        if value.is_empty() {
            return Err(format!("{name}= (parameter {number}) has no value; add one"));
        }
        if values[place].replace(value).is_some() {
            return Err(format!("{name}= occurs again as parameter {number}; write it once"));
        }
    }
    Ok(values)
}

/// Parses a public key as a URL contains it.
pub fn public_key(value: &str) -> Result<PublicKey, String> {
    let value: Vec<u8> = percent_decode(value.as_bytes()).collect();
    let value = String::from_utf8(value).unwrap_or_default();
    value.parse().map_err(|error: KeyError| error.to_string())
}

/// Decodes a path as a URL contains it.
pub fn path(value: &str) -> PathBuf {
    OsString::from_vec(percent_decode(value.as_bytes()).collect()).into()
}

/// Formats a key so that [`public_key`] parses it.
pub fn shown_key(key: &PublicKey) -> String {
    key.to_string().split_whitespace().last().unwrap_or_default().to_owned()
}

/// Formats a path so that [`path`] decodes it.
pub fn shown_path(path: &Path) -> impl fmt::Display {
    percent_encode(path.as_os_str().as_bytes(), PATH)
}

/// Formats an address so that [`host_and_port`] parses it.
pub fn shown_address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Parses the address of a server, with the default port [`PORT`]; `None` if it is invalid.
pub fn host_and_port(authority: &str) -> Option<(String, u16)> {
    let (host, port) = keys::host_and_port(authority)?;
    Some((host.to_owned(), port.unwrap_or(PORT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

    #[test]
    fn urls_round_trip_and_errors_name_what_is_missing() {
        for rest in [
            format!("server.example:99/disk?server={KEY}&key=/srv/keys/key"),
            format!("10.0.0.1/a.obl?key=k%20y&server={KEY}"),
            format!("[::1]:7/x?server={KEY}&key=%ff%26"),
        ] {
            let place = RemoteLocation::parse(rest.as_bytes()).unwrap();
            let shown = place.to_string();
            let again = shown.strip_prefix("oblivio+tls://").unwrap();
            assert_eq!(RemoteLocation::parse(again.as_bytes()), Ok(place), "{shown}");
        }
        let place = RemoteLocation::parse(format!("h/a?server={KEY}&key=k").as_bytes()).unwrap();
        assert_eq!((place.host(), place.port(), place.name()), ("h", PORT, "a"));
        for (rest, expected) in [
            ("h/a?key=k".into(), "oblivio key server"),
            (format!("h/a?server={KEY}"), "oblivio key client"),
            (format!("h?server={KEY}&key=k"), "HOST:PORT/NAME"),
            (format!("h:0/a?server={KEY}&key=k"), "HOST:PORT/NAME"),
            (format!("me@h/a?server={KEY}&key=k"), "HOST:PORT/NAME"),
            (format!("h/../a?server={KEY}&key=k"), "a volume name has"),
            ("h/a?server=short&key=k".into(), "not a public key"),
            (format!("h/a?server={KEY}&key=k&more=1"), "parameter 3 after the question mark"),
            (format!("h/a?server={KEY}&key=k&more=1"), "known are server=, key="),
            (format!("h/a?server={KEY}&key=k&key=k"), "key= occurs again as parameter 3"),
            (format!("h/a?key=&server={KEY}"), "key= (parameter 1) has no value"),
        ] {
            let refused = RemoteLocation::parse(rest.as_bytes()).unwrap_err();
            assert!(refused.contains(expected), "{rest}: {refused}");
            assert!(!refused.contains("more"), "it repeats a possible password: {refused}");
        }
    }
}
