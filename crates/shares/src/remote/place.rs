//! Where a volume of share servers is: `shares://HOST:PORT,HOST:PORT,HOST:PORT/NAME?server=KEY,KEY,KEY&key=FILE`.
//!
//! | part | what it is |
//! |---|---|
//! | `HOST:PORT` | of each server, from 3 to 7 of them, as in [`RemotePlace`](oblivio_store::RemotePlace). Their order is that of their numbers |
//! | `/NAME` | what the volume is called among those of the client, on each of them |
//! | `server=` | the public key of each, in the same order |
//! | `key=` | the file of the client's private key |
//! | `collude=` | how many of them may put together what they know; (*servers* - 1) / 2 if it is left out |
//!
//! None of it is secret: the file is.

use std::fmt;
use std::path::{Path, PathBuf};

use oblivio_wire::Invalid;
use oblivio_wire::keys::PublicKey;
use oblivio_wire::message::check_name;

use super::{SERVERS_MAX, SERVERS_MIN};
use oblivio_store::remote_place::{
    NO_KEY, host_and_port, parameters, path, public_key, shown_address, shown_key, shown_path,
};

/// What stands before `://`.
pub(super) const SCHEME: &str = "shares";

/// A volume on share servers, and the keys of all sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharesPlace {
    servers: Vec<SharesAddress>,
    name: String,
    key: PathBuf,
    colluding: usize,
}

/// One of the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharesAddress {
    /// A name or an address, an address of IPv6 without brackets.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// The key by which it is known.
    pub server: PublicKey,
}

impl SharesPlace {
    /// Takes apart what follows `://`.
    ///
    /// # Errors
    /// A sentence that says what is missing or strange. It repeats nothing.
    pub fn parse(rest: &[u8]) -> Result<Self, String> {
        let rest = str::from_utf8(rest)
            .map_err(|_| format!("{SCHEME}:// goes with text: escape what is none in key="))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let form = || {
            format!(
                "it is written {SCHEME}://HOST:PORT,HOST:PORT,HOST:PORT/NAME?server=KEY,KEY,KEY&key=FILE"
            )
        };
        let (authorities, name) = place.split_once('/').ok_or_else(form)?;
        let addresses: Option<Vec<_>> = authorities.split(',').map(host_and_port).collect();
        let addresses = addresses.ok_or_else(form)?;
        check_name(name).map_err(Invalid::why)?;
        let [keys, key, colluding] = parameters(query, ["server", "key", "collude"])?;
        let keys = keys.ok_or_else(|| {
            "which keys the servers have is missing: ?server=KEY,KEY,KEY, as `oblivio key server` prints each there"
                .to_owned()
        })?;
        let keys = keys.split(',').map(public_key).collect::<Result<Vec<_>, _>>()?;
        let key = path(key.ok_or(NO_KEY)?);
        let count = addresses.len();
        if !(SERVERS_MIN..=SERVERS_MAX).contains(&count) {
            return Err(format!(
                "{SCHEME}:// goes with {SERVERS_MIN} to {SERVERS_MAX} servers and commas between them, and there are {count}"
            ));
        }
        if keys.len() != count {
            return Err(format!(
                "server= goes with a key for each server: there are {count} servers and {} keys",
                keys.len()
            ));
        }
        if names_twice(&addresses) || names_twice(&keys) {
            return Err(
                "a server is named twice, by its address or its key: each is another one".into()
            );
        }
        let colluding_max = (count - 1) / 2;
        let colluding = colluding.map_or(Some(colluding_max), |number| number.parse().ok());
        let colluding = colluding.filter(|colluding| (1..=colluding_max).contains(colluding));
        let colluding = colluding.ok_or_else(|| {
            format!(
                "collude= goes with 1 to {colluding_max} of {count} servers: more of them could tell a block alone"
            )
        })?;
        let servers = addresses.into_iter().zip(keys);
        let servers = servers.map(|((host, port), server)| SharesAddress { host, port, server });
        Ok(Self { servers: servers.collect(), name: name.to_owned(), key, colluding })
    }

    /// In the order of their numbers.
    pub fn servers(&self) -> &[SharesAddress] {
        &self.servers
    }

    /// What the volume is called on each of them.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file of the client's key.
    pub fn key(&self) -> &Path {
        &self.key
    }

    /// How many servers may put together what they know.
    pub fn colluding(&self) -> usize {
        self.colluding
    }
}

/// As it is written: it parses to the same.
impl fmt::Display for SharesPlace {
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
        let key = |byte| shown_key(&PublicKey::of_bytes([byte; 32]));
        (1..=count).map(key).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn what_is_shown_names_the_same_and_what_is_strange_is_said() {
        let [three, five] = [3, 5].map(keys);
        for rest in [
            format!("a,b,c/disk?server={three}&key=k"),
            format!("a:1,[::1]:1,a:2/disk.obl?key=/k%20y%2c&server={three}&collude=1"),
            format!("a,b,c,d,e/disk?server={five}&key=k"),
            format!("a,b,c,d,e/disk?server={five}&key=k&collude=1"),
        ] {
            let place = SharesPlace::parse(rest.as_bytes()).unwrap();
            let shown = place.to_string();
            let again = shown.strip_prefix("shares://").unwrap();
            assert_eq!(SharesPlace::parse(again.as_bytes()), Ok(place), "{shown}");
        }
        for (rest, said) in [
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
            (format!("a,b,c/x?server={three}&key=k&more=1"), "there are server=, key=, collude="),
            (format!("a,b,c/x?server={three}&key=k&server={three}"), "server= is there again"),
            (format!("a,b,c/x?server={three}&key=k&collude=two"), "1 to 1 of 3"),
        ] {
            let refused = SharesPlace::parse(rest.as_bytes()).unwrap_err();
            assert!(refused.contains(said), "{rest}: {refused}");
        }
    }
}
