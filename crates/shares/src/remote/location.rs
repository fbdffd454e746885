//! The location of a volume on share servers:
//! `shares://HOST:PORT,HOST:PORT,HOST:PORT/NAME?server=KEY,KEY,KEY&key=FILE`.
//!
//! - `HOST:PORT`: the address of each of 3 to 7 servers, in the order of their numbers, as in
//!   [`RemoteLocation`](oblivio_store::RemoteLocation)
//! - `/NAME`: the name of the client's volume, the same on each server
//! - `server=`: the public key of each server, in the same order
//! - `key=`: the file of the client's private key
//! - `collude=`: the number of servers that may collude; by default (*servers* - 1) / 2, rounded
//!   down
//!
//! Nothing in the URL is secret. The contents of the key file are secret.

use std::fmt;
use std::path::{Path, PathBuf};

use oblivio_wire::Invalid;
use oblivio_wire::keys::PublicKey;
use oblivio_wire::message::check_name;

use super::{SERVERS_MAX, SERVERS_MIN};
use oblivio_store::remote_location::{
    NO_KEY, host_and_port, parameters, path, public_key, shown_address, shown_key, shown_path,
};

/// The URL scheme of volumes on share servers.
pub(super) const SCHEME: &str = "shares";

/// The location of a volume on share servers: their addresses, with the servers' public keys and
/// the path of the client's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharesLocation {
    servers: Vec<SharesAddress>,
    name: String,
    key: PathBuf,
    colluding: usize,
}

/// The address and the public key of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharesAddress {
    /// A host name or an IP address, an IPv6 address without brackets.
    pub host: String,
    /// The port of the server.
    pub port: u16,
    /// The server's public key.
    pub server: PublicKey,
}

impl SharesLocation {
    /// Parses the part of a URL after `://`.
    ///
    /// # Errors
    /// A message about what is missing or invalid. It does not repeat the input.
    pub fn parse(rest: &[u8]) -> Result<Self, String> {
        let rest = str::from_utf8(rest)
            .map_err(|_| format!("a {SCHEME}:// URL must be UTF-8: escape other bytes in key="))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let form = || {
            format!(
                "the form is \
                 {SCHEME}://HOST:PORT,HOST:PORT,HOST:PORT/NAME?server=KEY,KEY,KEY&key=FILE"
            )
        };
        let (authorities, name) = place.split_once('/').ok_or_else(form)?;
        let addresses: Option<Vec<_>> = authorities.split(',').map(host_and_port).collect();
        let addresses = addresses.ok_or_else(form)?;
        check_name(name).map_err(Invalid::why)?;
        let [keys, key, colluding] = parameters(query, ["server", "key", "collude"])?;
        let keys = keys.ok_or_else(|| {
            "missing ?server=KEY,KEY,KEY (the servers' public keys; `oblivio key server` prints \
             the key of each server there)"
                .to_owned()
        })?;
        let keys = keys.split(',').map(public_key).collect::<Result<Vec<_>, _>>()?;
        let key = path(key.ok_or(NO_KEY)?);
        let count = addresses.len();
        if !(SERVERS_MIN..=SERVERS_MAX).contains(&count) {
            return Err(format!(
                "a {SCHEME}:// URL names {SERVERS_MIN} to {SERVERS_MAX} servers, separated by \
                 commas; this one names {count}"
            ));
        }
        if keys.len() != count {
            return Err(format!(
                "server= needs one key for each server: there are {count} servers and {} keys",
                keys.len()
            ));
        }
        if names_twice(&addresses) || names_twice(&keys) {
            return Err(
                "a server is named twice, by its address or its key: name different servers".into(),
            );
        }
        let colluding_max = (count - 1) / 2;
        let colluding = colluding.map_or(Some(colluding_max), |number| number.parse().ok());
        let colluding = colluding.filter(|colluding| (1..=colluding_max).contains(colluding));
        let colluding = colluding.ok_or_else(|| {
            format!(
                "collude= must be 1 to {colluding_max} of {count} servers: shares can only be \
                 multiplied if fewer than half of the servers may collude"
            )
        })?;
        let servers = addresses.into_iter().zip(keys);
        let servers = servers.map(|((host, port), server)| SharesAddress { host, port, server });
        Ok(Self { servers: servers.collect(), name: name.to_owned(), key, colluding })
    }

    /// The servers, in the order of their numbers.
    pub fn servers(&self) -> &[SharesAddress] {
        &self.servers
    }

    /// The name of the volume on each server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path of the file with the client's private key.
    pub fn key(&self) -> &Path {
        &self.key
    }

    /// The number of servers that may collude.
    pub fn colluding(&self) -> usize {
        self.colluding
    }
}

/// Displays the URL, which parses to the same location.
impl fmt::Display for SharesLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { servers, name, key, colluding } = self;
        let list = |shown: fn(&SharesAddress) -> String| {
            servers.iter().map(shown).collect::<Vec<_>>().join(",")
        };
        let addresses = list(|it| shown_address(&it.host, it.port));
        let keys = list(|it| shown_key(&it.server));
        write!(f, "{SCHEME}://{addresses}/{name}?server={keys}&key={}", shown_path(key))?;
        if *colluding != (servers.len() - 1) / 2 {
            write!(f, "&collude={colluding}")?;
        }
        Ok(())
    }
}

fn names_twice<T: PartialEq>(list: &[T]) -> bool {
    (1..list.len()).any(|i| list[..i].contains(&list[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: u8) -> String {
        let key = |byte| shown_key(&PublicKey::from_bytes([byte; 32]));
        (1..=count).map(key).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn locations_round_trip_and_invalid_ones_are_refused() {
        let [three, five] = [3, 5].map(keys);
        for rest in [
            format!("a,b,c/disk?server={three}&key=k"),
            format!("a:1,[::1]:1,a:2/disk.obl?key=/k%20y%2c&server={three}&collude=1"),
            format!("a,b,c,d,e/disk?server={five}&key=k"),
            format!("a,b,c,d,e/disk?server={five}&key=k&collude=1"),
        ] {
            let place = SharesLocation::parse(rest.as_bytes()).unwrap();
            let shown = place.to_string();
            let again = shown.strip_prefix("shares://").unwrap();
            assert_eq!(SharesLocation::parse(again.as_bytes()), Ok(place), "{shown}");
        }
        for (rest, expected) in [
            (format!("a,b/x?server={}&key=k", keys(2)), "3 to 7 servers"),
            (format!("a,b,c,d,e,f,g,h/x?server={}&key=k", keys(8)), "3 to 7 servers"),
            (format!("a,b,c/x?server={five}&key=k"), "3 servers and 5 keys"),
            (format!("a,b,a/x?server={three}&key=k"), "named twice"),
            (format!("a,b,c/x?server={},{}&key=k", keys(2), keys(1)), "named twice"),
            (format!("a,b,c/x?server={three}&key=k&collude=0"), "1 to 1 of 3"),
            (format!("a,b,c,d/x?server={}&key=k&collude=2", keys(4)), "1 to 1 of 4"),
            (format!("a,b,c/x?server={three}"), "oblivio key client"),
            ("a,b,c/x?key=k".into(), "oblivio key server"),
            (format!("a,,c/x?server={three}&key=k"), "HOST:PORT,"),
            (format!("a,b,c/../x?server={three}&key=k"), "a volume name has"),
            (format!("a,b,c/x?server={three}&key=k&more=1"), "known are server=, key=, collude="),
            (format!("a,b,c/x?server={three}&key=k&server={three}"), "server= occurs again"),
            (format!("a,b,c/x?server={three}&key=k&collude=two"), "1 to 1 of 3"),
        ] {
            let refused = SharesLocation::parse(rest.as_bytes()).unwrap_err();
            assert!(refused.contains(expected), "{rest}: {refused}");
        }
    }
}
