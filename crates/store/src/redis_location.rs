//! The location of a volume on a Redis or Valkey cluster:
//! `redis://HOST:PORT,HOST:PORT/NAME?ca=FILE&user=NAME&password=FILE&plain`.
//!
//! | part | meaning |
//! |---|---|
//! | `HOST` | a name, an IPv4 address, or an IPv6 address in brackets; any nodes of the cluster |
//! | `:PORT` | default: [`REDIS_PORT`] |
//! | `/NAME` | the volume's name, which its keys in the cluster begin with |
//! | `ca=` | a PEM file with the certificates to trust, percent-encoded; default: the system's |
//! | `user=` | the user of the cluster's access control list; default: the default user |
//! | `password=` | the file with the user's password, percent-encoded |
//! | `plain` | no TLS: every host on the way can read the password and change what is sent |
//! | `weak-flush` | uses a cluster that may lose what it acknowledged |
//!
//! `rediss://` means the same. The URL contains no secret. The password file contains a secret.

use std::fmt;
use std::path::{Path, PathBuf};

use oblivio_wire::keys;
use oblivio_wire::message::check_name;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode, percent_encode};

use crate::remote_location::{parameters, path, shown_address, shown_path};

/// The default port of Redis and Valkey.
pub const REDIS_PORT: u16 = 6379;

/// The URL scheme of volumes on a Redis or Valkey cluster.
pub(crate) const REDIS_SCHEME: &str = "redis";

/// The URL scheme that means the same.
pub(crate) const REDISS_SCHEME: &str = "rediss";

/// The maximum number of nodes in a URL.
const NODES_MAX: usize = 64;

/// The location of a volume on a Redis or Valkey cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisLocation {
    nodes: Vec<(String, u16)>,
    name: String,
    security: RedisSecurity,
    user: Option<String>,
    password: Option<PathBuf>,
    has_weak_flush: bool,
}

/// How a client knows that it is connected to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisSecurity {
    /// The nodes have certificates of an authority that the system trusts.
    SystemAuthorities,
    /// The nodes have certificates of an authority in this PEM file.
    Authorities(PathBuf),
    /// The client does not check, and uses TCP without TLS.
    Plain,
}

impl RedisLocation {
    /// Parses the part of a URL after `://`.
    ///
    /// # Errors
    /// A message that says what is missing or wrong, without repeating values.
    pub fn parse(rest: &[u8]) -> Result<Self, String> {
        let rest = str::from_utf8(rest).map_err(|_| {
            format!(
                "{REDIS_SCHEME}:// must be UTF-8; percent-encode other bytes in ca= and password="
            )
        })?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let form = || {
            format!("write it as {REDIS_SCHEME}://HOST:PORT,HOST:PORT/NAME?user=NAME&password=FILE")
        };
        let (authorities, name) = place.split_once('/').ok_or_else(form)?;
        let nodes: Option<Vec<_>> = authorities.split(',').map(node).collect();
        let nodes = nodes.ok_or_else(form)?;
        if nodes.len() > NODES_MAX {
            return Err(format!("it names {} nodes; at most {NODES_MAX} are read", nodes.len()));
        }
        check_name(name).map_err(oblivio_wire::Invalid::why)?;
        // `parameters` numbers the fields and needs values, so these get one.
        let has = |flag: &str| query.split('&').any(|field| field == flag);
        let [is_plain, has_weak_flush] = [PLAIN, WEAK_FLUSH].map(has);
        let with_value = |field: &str| match [PLAIN, WEAK_FLUSH].contains(&field) {
            true => format!("{field}=yes"),
            false => field.to_owned(),
        };
        let query = query.split('&').map(with_value).collect::<Vec<_>>().join("&");
        let known = ["ca", "user", "password", PLAIN, WEAK_FLUSH];
        let [ca, user, password, plain, weak_flush] = parameters(&query, known)?;
        for (flag, found, is_there) in
            [(PLAIN, plain, is_plain), (WEAK_FLUSH, weak_flush, has_weak_flush)]
        {
            if found.is_some() && !is_there {
                return Err(format!("{flag} has no value; write only its name"));
            }
        }
        let security = match (ca, is_plain) {
            (Some(_), true) => return Err("ca= has no effect with plain; remove one".into()),
            (Some(ca), false) => RedisSecurity::Authorities(path(ca)),
            (None, true) => RedisSecurity::Plain,
            (None, false) => RedisSecurity::SystemAuthorities,
        };
        if user.is_some() && password.is_none() {
            return Err("user= needs &password=FILE (the file with the user's password)".into());
        }
        let user = user.map(decoded).transpose()?;
        let password = password.map(path);
        Ok(Self { nodes, name: name.to_owned(), security, user, password, has_weak_flush })
    }

    /// The hosts and ports of the nodes to ask first. An IPv6 address has no brackets here.
    pub fn nodes(&self) -> &[(String, u16)] {
        &self.nodes
    }

    /// The name of the volume.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the nodes prove that they belong to the cluster.
    pub fn security(&self) -> &RedisSecurity {
        &self.security
    }

    /// The user of the cluster; `None` for the default user.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Whether to use a cluster that may lose what it acknowledged.
    pub fn has_weak_flush(&self) -> bool {
        self.has_weak_flush
    }

    /// The paths of all local files that the location names.
    pub fn local_files(&self) -> Vec<&Path> {
        let ca = match &self.security {
            RedisSecurity::Authorities(ca) => Some(ca.as_path()),
            RedisSecurity::SystemAuthorities | RedisSecurity::Plain => None,
        };
        ca.into_iter().chain(self.password()).collect()
    }

    /// The path of the file with the password; `None` if the cluster needs no password.
    pub fn password(&self) -> Option<&Path> {
        self.password.as_deref()
    }
}

/// The parameter that turns TLS off.
const PLAIN: &str = "plain";

/// The parameter that accepts a cluster that may lose what it acknowledged.
const WEAK_FLUSH: &str = "weak-flush";

fn node(authority: &str) -> Option<(String, u16)> {
    let (host, port) = keys::host_and_port(authority)?;
    Some((host.to_owned(), port.unwrap_or(REDIS_PORT)))
}

fn decoded(value: &str) -> Result<String, String> {
    let decoded = percent_decode(value.as_bytes()).decode_utf8();
    decoded.map(Into::into).map_err(|_| "user= must be UTF-8".to_owned())
}

/// Displays the URL, which parses to the same value.
impl fmt::Display for RedisLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes.iter().map(|(host, port)| shown_address(host, *port));
        write!(f, "{REDIS_SCHEME}://{}/{}", nodes.collect::<Vec<_>>().join(","), self.name)?;
        let mut separators = std::iter::once('?').chain(std::iter::repeat('&'));
        let mut separate = || separators.next().unwrap_or('&');
        match &self.security {
            RedisSecurity::SystemAuthorities => (),
            RedisSecurity::Authorities(ca) => write!(f, "{}ca={}", separate(), shown_path(ca))?,
            RedisSecurity::Plain => write!(f, "{}{PLAIN}", separate())?,
        }
        if let Some(user) = &self.user {
            let user = percent_encode(user.as_bytes(), NON_ALPHANUMERIC);
            write!(f, "{}user={user}", separate())?;
        }
        if let Some(password) = &self.password {
            write!(f, "{}password={}", separate(), shown_path(password))?;
        }
        if self.has_weak_flush {
            write!(f, "{}{WEAK_FLUSH}", separate())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_round_trip() {
        for rest in [
            "a.example:7000,10.0.0.1:7001,[::1]:7002/disk?ca=/srv/ca.pem&user=me&password=/srv/pw",
            "h/a.obl",
            "h/a?plain",
            "h/a?plain&password=p%20w",
            "h/a?weak-flush",
            "h/a?weak-flush&plain&user=u&password=p",
            "h/a?user=a%26b%c3%bc&ca=%ff&password=%26",
            "h/a?password=p&plain&user=u",
        ] {
            let place = RedisLocation::parse(rest.as_bytes()).unwrap();
            let shown = place.to_string();
            let again = shown.strip_prefix("redis://").unwrap();
            assert_eq!(RedisLocation::parse(again.as_bytes()), Ok(place), "{shown}");
        }
        let place = RedisLocation::parse(b"[::1],h:1/a?user=a%2fb&password=p").unwrap();
        assert_eq!(place.nodes(), [("::1".to_owned(), REDIS_PORT), ("h".to_owned(), 1)]);
        assert_eq!((place.name(), place.user()), ("a", Some("a/b")));
        assert_eq!(place.password(), Some(Path::new("p")));
        assert_eq!(*place.security(), RedisSecurity::SystemAuthorities);
    }

    #[test]
    fn errors_name_what_is_wrong_and_repeat_no_value() {
        for (rest, expected) in [
            ("h:1", "HOST:PORT/NAME"),
            ("h:0/a", "HOST:PORT/NAME"),
            ("h,/a", "HOST:PORT/NAME"),
            ("/a", "HOST:PORT/NAME"),
            ("me:secret@h/a", "HOST:PORT/NAME"),
            ("::1/a", "HOST:PORT/NAME"),
            ("h/..", "a volume name has"),
            ("h/{a}", "a volume name has"),
            ("h/a?user=me", "user= needs &password=FILE"),
            ("h/a?ca=c&plain", "ca= has no effect with plain"),
            ("h/a?plain=secret", "plain has no value"),
            ("h/a?plain&secret=1", "parameter 2 after the question mark is unknown"),
            ("h/a?password=", "password= (parameter 1) has no value"),
            ("h/a?password=f&password=g", "password= occurs again as parameter 2"),
            ("h/a?user=%ff&password=f", "user= must be UTF-8"),
        ] {
            let refused = RedisLocation::parse(rest.as_bytes()).unwrap_err();
            assert!(refused.contains(expected), "{rest}: {refused}");
            assert!(!refused.contains("secret"), "it repeats a possible password: {refused}");
        }
        let many = vec!["h"; NODES_MAX + 1].join(",") + "/a";
        assert!(RedisLocation::parse(many.as_bytes()).unwrap_err().contains("at most 64"));
    }
}
