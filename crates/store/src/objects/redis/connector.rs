//! Opens links to nodes: TCP or TLS, the password, and what the node reports about itself.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use oblivio_wire::authority_tls::{AuthorityTls, plain_link};
use oblivio_wire::link::{Link, MonotonicTime};
use oblivio_wire::tls;
use zeroize::Zeroizing;

use super::failure::{Failure, FailureKind};
use super::node_info::NodeInfo;
use super::topology::Address;
use crate::error::{OpenError, OpenErrorKind};
use crate::objects::resp::{Command, Decoder, Reply};
use crate::redis_location::{RedisLocation, RedisSecurity};

/// The maximum length of a reply while a link is opened. `CLUSTER SLOTS` of a thousand nodes is the
/// longest.
pub(super) const SETUP_BYTES_MAX: usize = 1 << 20;

/// The maximum length of a password file in bytes.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// Opens links to the nodes of one cluster.
pub(super) struct NodeConnector {
    /// `None` without TLS.
    tls: Option<AuthorityTls>,
    user: Option<String>,
    password: Option<Zeroizing<Vec<u8>>>,
    /// The time limit for connecting, and for each step after that.
    within: Duration,
    /// Whether to connect to nodes that may lose acknowledged writes.
    weak_flush: bool,
}

/// A link whose replies are read by the caller.
pub(super) struct SetupLink {
    link: Link,
    decoder: Decoder,
    within: Duration,
}

impl NodeConnector {
    /// Reads the files that a location names.
    ///
    /// # Errors
    /// [`NoCredential`](OpenErrorKind::NoCredential) if a file cannot be used.
    pub(super) fn new(
        location: &RedisLocation,
        within: Duration,
        weak_flush: bool,
    ) -> Result<Self, OpenError> {
        let unusable = |message| OpenError::new(OpenErrorKind::NoCredential, message);
        let tls = match location.security() {
            RedisSecurity::Plain => None,
            RedisSecurity::Authorities(ca) => {
                Some(AuthorityTls::from_file(ca).map_err(|error| {
                    unusable(format!("cannot use the certificates in {}: {error}", ca.display()))
                })?)
            }
            RedisSecurity::SystemAuthorities => {
                let found = rustls_native_certs::load_native_certs().certs;
                Some(AuthorityTls::new(found).map_err(|_| {
                    let advice = "install ca-certificates, or name a file with ca=FILE";
                    unusable(format!("this system trusts no certificate authority; {advice}"))
                })?)
            }
        };
        let password = location.password().map(read_password).transpose().map_err(unusable)?;
        let user = location.user().map(str::to_owned);
        Ok(Self { tls, user, password, within, weak_flush })
    }

    /// Connects to a node and authenticates.
    pub(super) fn connect(&self, node: &Address) -> Result<SetupLink, Failure> {
        let link = self.dial(node).map_err(|error| unreachable(&error, self.within))?;
        let mut link = SetupLink { link, decoder: Decoder::default(), within: self.within };
        self.authenticate(&mut link)?;
        Ok(link)
    }

    fn dial(&self, node: &Address) -> io::Result<Link> {
        let server = (&*node.host, node.port);
        tls::connect(server, self.within, |stream, left| match &self.tls {
            Some(tls) => tls.handshake(stream, &node.host, left),
            None => plain_link(stream, self.within),
        })
    }

    fn authenticate(&self, link: &mut SetupLink) -> Result<(), Failure> {
        let Some(password) = &self.password else { return Ok(()) };
        let user = self.user.as_ref().map(|user| user.as_bytes());
        let arguments = [Some(&b"AUTH"[..]), user, Some(password)].into_iter().flatten();
        // Not a `Command`, because this memory must be wiped.
        let capacity = 64 + arguments.clone().map(|argument| argument.len() + 16).sum::<usize>();
        let mut encoded = Zeroizing::new(Vec::with_capacity(capacity));
        encoded.extend(format!("*{}\r\n", arguments.clone().count()).as_bytes());
        for argument in arguments {
            encoded.extend(format!("${}\r\n", argument.len()).as_bytes());
            encoded.extend(argument);
            encoded.extend(b"\r\n");
        }
        let reply = link.exchange(&encoded, 1)?.pop();
        match reply {
            Some(Reply::Status(_)) => Ok(()),
            Some(Reply::Error(text)) if is_transient(&text) => {
                Err(Failure::transient("it does not accept links now; check the server"))
            }
            // An error could repeat the password, so it is not shown.
            _ => Err(Failure::new(
                FailureKind::NotAdmitted,
                "it does not accept the password; check user= and the password file, and \
                 `ACL LIST` on the node",
            )),
        }
    }

    /// Checks that a node keeps the writes that it acknowledges.
    ///
    /// # Errors
    /// [`NotDurable`](FailureKind::NotDurable) if it does not, or does not allow this check.
    pub(super) fn check_durability(&self, link: &mut SetupLink) -> Result<(), Failure> {
        if self.weak_flush {
            return Ok(());
        }
        let get = |(name, _, _): &(&str, _, _)| Command::new(&[b"CONFIG", b"GET", name.as_bytes()]);
        let replies = link.call(&REQUIRED.iter().map(get).collect::<Vec<_>>())?;
        for ((name, required, why), reply) in REQUIRED.iter().zip(&replies) {
            let found = match reply {
                Reply::Array(items) => match &items[..] {
                    [Reply::Bulk(_), Reply::Bulk(value)] => Some(value),
                    _ => None,
                },
                Reply::Error(text) if is_transient(text) => {
                    return Err(Failure::of_error(text));
                }
                _ => None,
            };
            let problem = match found {
                Some(value) if value == required.as_bytes() => continue,
                Some(value) => format!(
                    "it has {name} {}: {why}; set {name} {required} there",
                    oblivio_core::error::sanitize_message(&String::from_utf8_lossy(value))
                ),
                None => format!(
                    "it does not allow CONFIG GET {name}, so its durability cannot be checked; \
                     allow it for this user (+config|get)"
                ),
            };
            let message =
                format!("{problem}, or add &weak-flush to the URL if you accept that loss");
            return Err(Failure::new(FailureKind::NotDurable, message));
        }
        Ok(())
    }
}

/// The settings of every node: name, value, and what happens with another value.
const REQUIRED: [(&str, &str, &str); 3] = [
    ("appendonly", "yes", "a restart loses writes that it acknowledged"),
    ("appendfsync", "always", "a power loss loses writes that it acknowledged"),
    ("maxmemory-policy", "noeviction", "it deletes data when its memory is full"),
];

fn is_transient(text: &[u8]) -> bool {
    Failure::of_error(text).is_transient()
}

fn unreachable(error: &io::Error, within: Duration) -> Failure {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            Failure::transient(format!("no answer came within {within:.0?}"))
        }
        ErrorKind::PermissionDenied => Failure::new(
            FailureKind::NotAdmitted,
            format!("its certificate is not valid ({error}); check ca=, and the host names in it"),
        ),
        ErrorKind::InvalidData => Failure::new(
            FailureKind::NotAdmitted,
            format!("it does not speak TLS 1.3 ({error}); use its TLS port, or add plain"),
        ),
        ErrorKind::InvalidInput => {
            Failure::new(FailureKind::Failed, format!("its name is malformed ({error})"))
        }
        _ => Failure::transient(format!("{error}")),
    }
}

/// Reads a password file. One line end at its end does not belong to the password.
fn read_password(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    let shown = path.display();
    let unreadable = |cause: io::Error| format!("cannot read the password file {shown}: {cause}");
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.permissions().mode() & 0o077 != 0 {
        return Err(format!("password file {shown} is readable by others; run chmod 600 {shown}"));
    }
    // No reallocation, which would leave a copy.
    let mut password = Zeroizing::new(Vec::with_capacity(PASSWORD_BYTES_MAX as usize + 2));
    file.take(PASSWORD_BYTES_MAX + 1).read_to_end(&mut password).map_err(unreadable)?;
    if password.len() as u64 > PASSWORD_BYTES_MAX {
        return Err(format!("password file {shown} has more than {PASSWORD_BYTES_MAX} bytes"));
    }
    if password.last() == Some(&b'\n') {
        password.pop();
    }
    if password.is_empty() {
        return Err(format!("password file {shown} is empty; write the password into it"));
    }
    Ok(password)
}

impl SetupLink {
    /// Sends commands and waits for their replies.
    pub(super) fn call(&mut self, commands: &[Command]) -> Result<Vec<Reply>, Failure> {
        let encoded: Vec<_> = commands.iter().flat_map(Command::segments).cloned().collect();
        self.exchange(&encoded.concat(), commands.len())
    }

    /// Asks the node about itself.
    pub(super) fn info(&mut self) -> Result<NodeInfo, Failure> {
        let replies = self.call(&NodeInfo::SECTIONS.map(|it| Command::new(&[b"INFO", it])))?;
        NodeInfo::read(&replies)
    }

    pub(super) fn into_link(self) -> Result<Link, Failure> {
        let Self { mut link, decoder, .. } = self;
        if !decoder.is_empty() {
            return Err(Failure::violation("a reply without a command"));
        }
        link.reader.limit(None).map_err(|error| Failure::transient(error.to_string()))?;
        Ok(link)
    }

    fn exchange(&mut self, encoded: &[u8], replies: usize) -> Result<Vec<Reply>, Failure> {
        let within = self.within;
        self.try_exchange(encoded, replies).map_err(|error| match error.kind() {
            ErrorKind::InvalidData => Failure::violation(&error.to_string()),
            _ => unreachable(&error, within),
        })
    }

    fn try_exchange(&mut self, encoded: &[u8], count: usize) -> io::Result<Vec<Reply>> {
        let Self { link, decoder, within } = self;
        let until = MonotonicTime::now().after(*within);
        link.writer.write_all(encoded)?;
        link.writer.flush()?;
        let mut replies = Vec::with_capacity(count);
        let mut buffer = vec![0; 16 << 10];
        while replies.len() < count {
            let invalid = |error| io::Error::new(ErrorKind::InvalidData, error);
            if let Some(reply) = decoder.next(SETUP_BYTES_MAX).map_err(invalid)? {
                replies.push(reply);
                continue;
            }
            link.reader.limit(Some(until.left().ok_or(ErrorKind::TimedOut)?))?;
            match link.reader.read(&mut buffer)? {
                0 => {
                    let closed = "the server closed the link";
                    return Err(io::Error::new(ErrorKind::UnexpectedEof, closed));
                }
                bytes => decoder.feed(&buffer[..bytes]),
            }
        }
        Ok(replies)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_private_password_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let write = |contents: &[u8], mode| {
            fs::write(&path, contents).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read_password(&path)
        };
        assert_eq!(**write(b"secret\n", 0o600).unwrap(), *b"secret");
        assert_eq!(**write(b" secret\n\n", 0o400).unwrap(), *b" secret\n");
        for mode in [0o640, 0o604] {
            let refused = write(b"secret", mode).unwrap_err();
            assert!(refused.contains("is readable by others; run chmod 600"), "{refused}");
        }
        assert!(write(b"\n", 0o600).unwrap_err().contains("is empty"));
        assert!(write(&[b'x'; 4097], 0o600).unwrap_err().contains("more than 4096 bytes"));
        fs::remove_file(&path).unwrap();
        assert!(read_password(&path).unwrap_err().contains("cannot read the password file"));
    }
}
