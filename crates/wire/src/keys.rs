//! Ed25519 keys with which servers and clients authenticate each other.
//!
//! | file | contents | owner |
//! |---|---|---|
//! | key file | a private key, PKCS #8 in PEM form; mode 600 | a client or a server |
//! | allow file | a line per client: its public key, name and quota | a server |
//! | peers file | a line per peer share server: its public key and address | a server |
//!
//! A public key is written `oblivio-key-1 BASE64`. A comment may follow it.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::Ipv6Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

use crate::message::check_name;
use crate::private;
use crate::size::parse_size;

/// The prefix of a written public key.
const PREFIX: &str = "oblivio-key-1";

/// Bytes of a public key.
const KEY_BYTES: usize = 32;

/// The prefix of an Ed25519 `SubjectPublicKeyInfo` before the key itself (RFC 8410).
const SPKI_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The maximum number of bytes that are read from a key file. The rest of a larger file is ignored.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a key or a file of keys is unusable. The message contains nothing secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(String);

/// The public key of a server or a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// Creates a key from its 32 bytes (RFC 8032).
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of the key (RFC 8032).
    pub fn bytes(&self) -> [u8; KEY_BYTES] {
        self.0
    }

    /// The key as a `SubjectPublicKeyInfo`, the form that TLS uses.
    pub(crate) fn spki(&self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.0].concat()
    }

    /// Parses a `SubjectPublicKeyInfo`; `None` unless it holds an Ed25519 key.
    pub(crate) fn from_spki(spki: &[u8]) -> Option<Self> {
        let key = spki.strip_prefix(&SPKI_PREFIX)?;
        Some(Self(key.try_into().ok()?))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX} {}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Parses `oblivio-key-1 BASE64`, or the base64 alone. The rest of the line is ignored.
impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let key = if first == PREFIX { words.next().unwrap_or_default() } else { first };
        let bytes = STANDARD.decode(key).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| {
            KeyError(format!(
                "this is not a public key; a public key is {PREFIX} and 44 base64 characters"
            ))
        })
    }
}

/// A private key. Secret; wiped when dropped.
pub struct SecretKey {
    pkcs8: Zeroizing<Vec<u8>>,
    public: PublicKey,
}

impl SecretKey {
    /// Generates a random key.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let drawn = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| {
            KeyError("cannot generate a key: the system provides no random numbers".into())
        })?;
        Self::from_pkcs8(Zeroizing::new(drawn.as_ref().to_vec()))
    }

    fn from_pkcs8(pkcs8: Zeroizing<Vec<u8>>) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8)
            .map_err(|_| KeyError("the private key is not an Ed25519 key".into()))?;
        let public = pair.public_key().as_ref().try_into();
        let public =
            public.map_err(|_| KeyError("the private key has no valid public key".into()))?;
        Ok(Self { pkcs8, public: PublicKey(public) })
    }

    /// The public key that belongs to this private key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.pkcs8.to_vec()).into()
    }

    /// Reads the private key in a key file.
    ///
    /// # Errors
    /// If the file cannot be read, holds no key, or grants other users any permission.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let shown = path.display();
        let unreadable =
            |cause: io::Error| KeyError(format!("cannot read the key file {shown}: {cause}"));
        let file = fs::File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(KeyError(format!(
                "key file {shown} is readable by others; run chmod 600 {shown}"
            )));
        }
        let mut text = Zeroizing::new(Vec::with_capacity(4096));
        file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
        let none = |_| KeyError(format!("{shown} is not a private key in PEM form"));
        let der = PrivatePkcs8KeyDer::from_pem_slice(&text).map_err(none)?;
        Self::from_pkcs8(Zeroizing::new(der.secret_pkcs8_der().to_vec()))
            .map_err(|error| KeyError(format!("{shown}: {error}")))
    }

    /// Writes a new key file that only its owner may read.
    ///
    /// # Errors
    /// If the file exists, or I/O fails. An incomplete file is removed.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = private::file_options().write(true).create_new(true).open(path)?;
        let body = Zeroizing::new(STANDARD.encode(&*self.pkcs8));
        let mut text = Zeroizing::new(String::from("-----BEGIN PRIVATE KEY-----\n"));
        for line in body.as_bytes().chunks(64) {
            text.push_str(str::from_utf8(line).unwrap_or_default());
            text.push('\n');
        }
        text.push_str("-----END PRIVATE KEY-----\n");
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).inspect_err(|_| {
            // The first error says more than a failure to remove the file.
            let _ = fs::remove_file(path);
        })
    }
}

/// A client that may connect to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedClient {
    /// The client's public key.
    pub key: PublicKey,
    /// The name of the client. The client's volumes are stored under this name.
    pub name: String,
    /// Maximum number of bytes that the client's volumes may take together; `None` for no limit.
    pub quota_bytes: Option<u64>,
}

/// Reads an allow file: one line per client, `oblivio-key-1 BASE64 NAME [quota=SIZE]`. Empty lines
/// and lines that begin with `#` are ignored.
///
/// # Errors
/// If a line has any other form, or a key or name occurs twice.
pub fn allowed_clients(text: &str) -> Result<Vec<AllowedClient>, KeyError> {
    let mut clients: Vec<AllowedClient> = Vec::new();
    for (line, number) in content_lines(text) {
        let client = allowed_client(line)
            .map_err(|problem| KeyError(format!("line {number} of the allow file: {problem}")))?;
        let twice =
            clients.iter().find_map(|it| match (it.key == client.key, it.name == client.name) {
                (true, _) => Some("key"),
                (_, true) => Some("name"),
                _ => None,
            });
        if let Some(what) = twice {
            return Err(KeyError(format!(
                "line {number} of the allow file: another client already has this {what}"
            )));
        }
        clients.push(client);
    }
    Ok(clients)
}

/// The lines that are neither empty nor comments, each with its number. Comments begin with `#`.
fn content_lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let lines = text.lines().map(str::trim).zip(1..);
    lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
}

/// Parses the public key at the beginning of a line, which takes two words.
fn key_of<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<PublicKey, KeyError> {
    match (words.next(), words.next()) {
        (Some(PREFIX), Some(key)) => key.parse(),
        _ => Err(KeyError(format!("the line must begin with a public key ({PREFIX} …)"))),
    }
}

fn allowed_client(line: &str) -> Result<AllowedClient, KeyError> {
    let mut words = line.split_whitespace();
    let key = key_of(&mut words)?;
    let name = words
        .next()
        .ok_or_else(|| KeyError("the client's name is missing after its key".into()))?;
    check_name(name)
        .map_err(|_| KeyError("a client name has 1 to 64 letters, digits, -, _ or .".into()))?;
    let mut quota_bytes = None;
    for word in words {
        let wrong = |why: &str| {
            KeyError(format!(
                "{word}: {why}; only one quota may follow the name, such as quota=400G"
            ))
        };
        let quota = word.strip_prefix("quota=").filter(|_| quota_bytes.is_none());
        let quota = quota.ok_or_else(|| wrong("unknown field"))?;
        quota_bytes = Some(parse_size(quota).map_err(|why| wrong(&why))?);
    }
    Ok(AllowedClient { key, name: name.to_owned(), quota_bytes })
}

/// A share server that computes together with this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerServer {
    /// The server's public key.
    pub key: PublicKey,
    /// The address at which the server listens, as `HOST:PORT`.
    pub address: String,
    /// The human-readable name of the server.
    pub label: Option<String>,
}

/// Reads a peers file: one line per server, `oblivio-key-1 BASE64 HOST:PORT [LABEL]`. Empty lines
/// and lines that begin with `#` are ignored.
///
/// # Errors
/// If a line has any other form, a key or address occurs twice, or a key belongs to one of
/// `clients`.
pub fn peer_servers(text: &str, clients: &[AllowedClient]) -> Result<Vec<PeerServer>, KeyError> {
    let mut peers: Vec<(PeerServer, usize)> = Vec::new();
    for (line, number) in content_lines(text) {
        let peer = peer_server(line, clients, &peers)
            .map_err(|problem| KeyError(format!("line {number} of the peers file: {problem}")))?;
        peers.push((peer, number));
    }
    Ok(peers.into_iter().map(|(peer, _)| peer).collect())
}

/// Parses a line of a peers file. `others` are the servers of earlier lines, with their line
/// numbers.
fn peer_server(
    line: &str,
    clients: &[AllowedClient],
    others: &[(PeerServer, usize)],
) -> Result<PeerServer, KeyError> {
    let mut words = line.split_whitespace();
    let key = key_of(&mut words)?;
    let address = words
        .next()
        .filter(|address| is_host_and_port(address))
        .ok_or_else(|| KeyError("the server's address, HOST:PORT, must follow its key".into()))?;
    let label = words.next().map(str::to_owned);
    if words.next().is_some() {
        return Err(KeyError("at most one word (the label) may follow the address".into()));
    }
    if let Some(client) = clients.iter().find(|client| client.key == key) {
        return Err(KeyError(format!(
            "this is the key of the client {}; use the line that `oblivio key server` prints on \
                 the other server",
            client.name
        )));
    }
    for (other, number) in others {
        let what = match (other.key == key, other.address.eq_ignore_ascii_case(address)) {
            (true, _) => "key",
            (_, true) => "address",
            _ => continue,
        };
        return Err(KeyError(format!(
            "the server of line {number} already has this {what}; each server needs its own"
        )));
    }
    Ok(PeerServer { key, address: address.to_owned(), label })
}

/// Splits an address into host and optional port. The host is a name, an IPv4 address, or an IPv6
/// address in brackets; the brackets are removed. `None` if the address has another form, or port
/// 0.
pub fn host_and_port(address: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, port)
        }
        None => {
            let (host, port) = address.split_at(address.find(':').unwrap_or(address.len()));
            let is_in_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            (!host.is_empty() && host.chars().all(is_in_name)).then_some((host, port))?
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        None => return None,
        Some(port) => {
            let is_number = port.chars().all(|c| c.is_ascii_digit());
            Some(port.parse().ok().filter(|port| is_number && *port > 0)?)
        }
    };
    Some((host, port))
}

/// Whether `address` is `HOST:PORT`.
pub fn is_host_and_port(address: &str) -> bool {
    matches!(host_and_port(address), Some((_, Some(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_round_trips_and_must_be_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = SecretKey::generate().unwrap();
        key.write(&path).unwrap();
        assert_eq!(SecretKey::read(&path).unwrap().public(), key.public());
        assert_eq!(key.write(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = SecretKey::read(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for text in
            ["", "nothing", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
        {
            fs::write(&path, text).unwrap();
            assert!(SecretKey::read(&path).is_err(), "{text:?}");
        }
        let text = key.public().to_string();
        assert_eq!(text.parse::<PublicKey>().unwrap(), key.public());
        assert_eq!(format!("{text} of whom").parse::<PublicKey>().unwrap(), key.public());
        assert!("oblivio-key-1 AAAA".parse::<PublicKey>().is_err());
        assert_eq!(PublicKey::from_spki(&key.public().spki()), Some(key.public()));
        assert_eq!(PublicKey::from_spki(&key.public().spki()[1..]), None);
    }

    #[test]
    fn an_allow_file_accepts_only_keys_names_and_quotas() {
        let keys = [1, 2].map(|byte| PublicKey([byte; KEY_BYTES]));
        let [one, two] = keys.map(|key| key.to_string());
        let text = format!("# who\n\n{one} alice quota=1000\n  {two}   bob\n");
        let clients = allowed_clients(&text).unwrap();
        assert_eq!(clients[0].quota_bytes, Some(1000));
        let in_mebibytes = allowed_clients(&format!("{one} alice quota=400M")).unwrap();
        assert_eq!(in_mebibytes[0].quota_bytes, Some(400 << 20));
        assert_eq!(
            clients[1],
            AllowedClient { key: keys[1], name: "bob".into(), quota_bytes: None }
        );
        for wrong in [
            one.clone(),
            format!("{one} ../etc"),
            format!("{one} alice quota=much"),
            format!("{one} alice quota=-1"),
            format!("{one} alice quota=1X"),
            format!("{one} alice quota=99999999E"),
            format!("{one} alice and more"),
            format!("{one} alice quota=1000 quota=2000"),
            format!("{one} alice\n{one} bob"),
            format!("{one} alice\n{two} alice"),
            "alice".to_owned(),
        ] {
            assert!(allowed_clients(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_peers_file_is_parsed_and_errors_name_the_line() {
        let keys = [1, 2].map(|byte| PublicKey::from_bytes([byte; KEY_BYTES]));
        let [one, two] = keys.map(|key| key.to_string());
        let text = format!("{one} one.example:2411 Paris\n\n# who\n{two} [::1]:9\n");
        let peers = peer_servers(&text, &[]).unwrap();
        assert_eq!((peers[0].key, &*peers[0].address), (keys[0], "one.example:2411"));
        assert_eq!(peers[0].label.as_deref(), Some("Paris"));
        assert_eq!((&*peers[1].address, &peers[1].label), ("[::1]:9", &None));
        for wrong in [
            one.clone(),
            format!("{one} host"),
            format!("{one} host:0"),
            format!("{one} :7"),
            format!("{one} host:70000"),
            format!("{one} host:7 a b"),
            format!("{two} host:7\n{one} host:8\n{two} host:9"),
            "host:7".to_owned(),
        ] {
            let error = peer_servers(&wrong, &[]).unwrap_err().to_string();
            let line = wrong.lines().count();
            assert!(
                error.starts_with(&format!("line {line} of the peers file")),
                "{wrong}: {error}"
            );
        }
        let twice = format!("# where\n{one} host:7\n\n{two} HOST:7");
        let error = peer_servers(&twice, &[]).unwrap_err().to_string();
        assert!(
            error.starts_with("line 4 of the peers file: the server of line 2 already"),
            "{error}"
        );
        let alice = AllowedClient { key: keys[1], name: "alice".into(), quota_bytes: None };
        let error = peer_servers(&text, &[alice]).unwrap_err().to_string();
        assert!(error.starts_with("line 4 of the peers file: "), "{error}");
        assert!(error.contains("the client alice"), "{error}");
    }

    #[test]
    fn only_names_and_addresses_are_hosts() {
        for (address, expected) in [
            ("one.example:2411", Some(("one.example", Some(2411)))),
            ("10.0.0.1", Some(("10.0.0.1", None))),
            ("[::1]:9", Some(("::1", Some(9)))),
            ("[::1]", Some(("::1", None))),
            ("a b:80", None),
            ("a\tb:80", None),
            ("::1:9", None),
            ("[name]:9", None),
            ("[::1]9", None),
            ("me@host:9", None),
            ("host/a:9", None),
            ("host:+9", None),
            ("host:", None),
            (":9", None),
            ("", None),
        ] {
            assert_eq!(host_and_port(address), expected, "{address:?}");
            let has_both = expected.is_some_and(|(_, port)| port.is_some());
            assert_eq!(is_host_and_port(address), has_both, "{address:?}");
        }
    }
}
