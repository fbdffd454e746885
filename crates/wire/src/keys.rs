//! Who somebody is: a key of Ed25519, by which servers and clients know each other.
//!
//! | file | holds | whose |
//! |---|---|---|
//! | a key file | a private key, PKCS #8 in PEM form | its owner's alone: mode 600 |
//! | an allow file | a line for each client: its public key, its name, and what it may | a server's |
//! | a peers file | a line for each server that computes with others: its public key, and where it is | a server's |
//!
//! A public key is written `oblivio-key-1 BASE64`, and may have a word behind it that says whose it is.

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

/// What stands before a public key.
const PREFIX: &str = "oblivio-key-1";

/// Bytes of a public key.
const KEY_BYTES: usize = 32;

/// What stands before the key in a `SubjectPublicKeyInfo` of Ed25519 (RFC 8410).
const SPKI_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a key or a file of keys is of no use. The message holds nothing secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(String);

/// Of a server or a client. Public.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// The one of these bytes (RFC 8032).
    pub fn of_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// As its bytes.
    pub fn bytes(&self) -> [u8; KEY_BYTES] {
        self.0
    }

    /// As TLS has it.
    pub(crate) fn spki(&self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.0].concat()
    }

    /// Out of what TLS has; none if it is another kind of key.
    pub(crate) fn of_spki(spki: &[u8]) -> Option<Self> {
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

/// `oblivio-key-1 BASE64`, or the second word alone; what is behind it is not looked at.
impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let key = if first == PREFIX { words.next().unwrap_or_default() } else { first };
        let bytes = STANDARD.decode(key).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| {
            KeyError(format!(
                "this is no public key: one is written {PREFIX} and 44 letters behind it"
            ))
        })
    }
}

/// Who this is. Secret; wiped when dropped.
pub struct SecretKey {
    pkcs8: Zeroizing<Vec<u8>>,
    public: PublicKey,
}

impl SecretKey {
    /// A fresh one.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let drawn = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|_| KeyError("the system gives no random numbers for a key".into()))?;
        Self::of_pkcs8(Zeroizing::new(drawn.as_ref().to_vec()))
    }

    fn of_pkcs8(pkcs8: Zeroizing<Vec<u8>>) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8)
            .map_err(|_| KeyError("the private key is none of Ed25519".into()))?;
        let public = pair.public_key().as_ref().try_into();
        let public = public.map_err(|_| KeyError("the private key has no public one".into()))?;
        Ok(Self { pkcs8, public: PublicKey(public) })
    }

    /// By which others know it.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.pkcs8.to_vec()).into()
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// When it cannot be read, holds no key, or others than its owner may read it.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let shown = path.display();
        let unreadable =
            |cause: io::Error| KeyError(format!("cannot read the key file {shown}: {cause}"));
        let file = fs::File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(KeyError(format!(
                "others can read the key file {shown}: take that from them (chmod 600 {shown})"
            )));
        }
        let mut text = Zeroizing::new(Vec::with_capacity(4096));
        file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
        let none = |_| KeyError(format!("{shown} holds no private key in PEM form"));
        let der = PrivatePkcs8KeyDer::from_pem_slice(&text).map_err(none)?;
        Self::of_pkcs8(Zeroizing::new(der.secret_pkcs8_der().to_vec()))
            .map_err(|error| KeyError(format!("{shown}: {error}")))
    }

    /// Writes a new key file, for its owner alone.
    ///
    /// # Errors
    /// When there is one already, or the system refuses. A file that cannot be written to its end
    /// is removed.
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
            // If it cannot be removed either, the cause of the first failure says more.
            let _ = fs::remove_file(path);
        })
    }
}

/// A client that a server lets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedClient {
    /// By which it is known.
    pub key: PublicKey,
    /// What its volumes lie under.
    pub name: String,
    /// Bytes that its volumes may take together; no bound if there is none.
    pub quota_bytes: Option<u64>,
}

/// Reads an allow file: a line for each client, `oblivio-key-1 BASE64 NAME [quota=SIZE]`. Empty
/// lines, and those that begin with `#`, are ignored.
///
/// # Errors
/// When a line says anything else, or a key or a name comes twice.
pub fn allowed_clients(text: &str) -> Result<Vec<AllowedClient>, KeyError> {
    let mut clients: Vec<AllowedClient> = Vec::new();
    for (line, number) in lines_that_say_something(text) {
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
                "line {number} of the allow file: another client has this {what} already"
            )));
        }
        clients.push(client);
    }
    Ok(clients)
}

/// Without empty lines and those that begin with `#`, and each with its number.
fn lines_that_say_something(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let lines = text.lines().map(str::trim).zip(1..);
    lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
}

/// The key with which a line begins.
fn key_of<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<PublicKey, KeyError> {
    match (words.next(), words.next()) {
        (Some(PREFIX), Some(key)) => key.parse(),
        _ => Err(KeyError(format!("it begins with no public key ({PREFIX} …)"))),
    }
}

fn allowed_client(line: &str) -> Result<AllowedClient, KeyError> {
    let mut words = line.split_whitespace();
    let key = key_of(&mut words)?;
    let name =
        words.next().ok_or_else(|| KeyError("the client has no name behind its key".into()))?;
    check_name(name).map_err(|_| {
        KeyError("a client has a name of 1 to 64 letters, digits, -, _ and .".into())
    })?;
    let mut quota_bytes = None;
    for word in words {
        let wrong = |why: &str| {
            KeyError(format!(
                "{word}: {why}; behind the name there may be one quota, such as quota=400G"
            ))
        };
        let quota = word.strip_prefix("quota=").filter(|_| quota_bytes.is_none());
        let quota = quota.ok_or_else(|| wrong("not understood"))?;
        quota_bytes = Some(parse_size(quota).map_err(|why| wrong(&why))?);
    }
    Ok(AllowedClient { key, name: name.to_owned(), quota_bytes })
}

/// A server with which another one computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerServer {
    /// By which it is known.
    pub key: PublicKey,
    /// Where it listens, as `HOST:PORT`.
    pub address: String,
    /// What people call it.
    pub label: Option<String>,
}

/// Reads a peers file: a line for each server, `oblivio-key-1 BASE64 HOST:PORT [LABEL]`. Empty lines, and those that begin with `#`, say
/// nothing.
///
/// # Errors
/// When a line says anything else, a key or an address comes twice, or a key is one of `clients`.
pub fn peer_servers(text: &str, clients: &[AllowedClient]) -> Result<Vec<PeerServer>, KeyError> {
    let mut peers: Vec<(PeerServer, usize)> = Vec::new();
    for (line, number) in lines_that_say_something(text) {
        let peer = peer_server(line, clients, &peers)
            .map_err(|problem| KeyError(format!("line {number} of the peers file: {problem}")))?;
        peers.push((peer, number));
    }
    Ok(peers.into_iter().map(|(peer, _)| peer).collect())
}

/// `others` come with the numbers of their lines.
fn peer_server(
    line: &str,
    clients: &[AllowedClient],
    others: &[(PeerServer, usize)],
) -> Result<PeerServer, KeyError> {
    let mut words = line.split_whitespace();
    let key = key_of(&mut words)?;
    let address = words.next().filter(|address| is_host_and_port(address)).ok_or_else(|| {
        KeyError("where the server is stands behind its key, as HOST:PORT".into())
    })?;
    let label = words.next().map(str::to_owned);
    if words.next().is_some() {
        return Err(KeyError("behind the address there may be one word, and no more".into()));
    }
    if let Some(client) = clients.iter().find(|client| client.key == key) {
        return Err(KeyError(format!(
            "this is the key of the client {}: a line here is what `oblivio key server` prints for another server",
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
            "the server of line {number} has this {what} already: each has its own"
        )));
    }
    Ok(PeerServer { key, address: address.to_owned(), label })
}

/// Takes apart where a server is: a name, or an address, which is in brackets if it is one of IPv6; and a colon and a port behind it, or nothing. The host comes without
/// its brackets.
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

/// Whether it is a host and a port, with a colon between them.
pub fn is_host_and_port(address: &str) -> bool {
    matches!(host_and_port(address), Some((_, Some(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_file_which_is_for_its_owner() {
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
        assert_eq!(PublicKey::of_spki(&key.public().spki()), Some(key.public()));
        assert_eq!(PublicKey::of_spki(&key.public().spki()[1..]), None);
    }

    #[test]
    fn an_allow_file_says_who_may_come_and_nothing_else() {
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
    fn a_peers_file_says_where_servers_are_and_names_the_line_that_does_not() {
        let keys = [1, 2].map(|byte| PublicKey::of_bytes([byte; KEY_BYTES]));
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
            let said = peer_servers(&wrong, &[]).unwrap_err().to_string();
            let line = wrong.lines().count();
            assert!(said.starts_with(&format!("line {line} of the peers file")), "{wrong}: {said}");
        }
        let twice = format!("# where\n{one} host:7\n\n{two} HOST:7");
        let said = peer_servers(&twice, &[]).unwrap_err().to_string();
        assert!(said.starts_with("line 4 of the peers file: the server of line 2 has"), "{said}");
        let alice = AllowedClient { key: keys[1], name: "alice".into(), quota_bytes: None };
        let said = peer_servers(&text, &[alice]).unwrap_err().to_string();
        assert!(said.starts_with("line 4 of the peers file: "), "{said}");
        assert!(said.contains("the client alice"), "{said}");
    }

    #[test]
    fn a_host_is_a_name_or_an_address_and_nothing_else() {
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
