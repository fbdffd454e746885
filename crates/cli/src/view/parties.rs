//! The servers whose view is shown: one server, several that may collude, or all.

use oblivio_core::view::{Observed, ViewServers, server_of_view_tree};

use super::input::ViewInput;
use crate::error::CliError;

/// The servers whose view is shown. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parties {
    pub(super) servers: ViewServers,
    /// Numbers of the shown servers, from 1, ascending.
    pub(super) shown: Vec<u8>,
    /// The shown servers whose messages with other servers are recorded.
    pub(super) watched: Vec<u8>,
}

impl Parties {
    /// The named servers; without names, all recorded ones. `None` for a single view that records
    /// no servers, if no server is named. Otherwise, a view that records no servers is an error,
    /// and so is a named server that no file records.
    pub(super) fn of(inputs: &[ViewInput], named: &[u8]) -> Result<Option<Self>, CliError> {
        let mut servers: Option<ViewServers> = None;
        for input in inputs {
            let Some(these) = input.servers() else {
                let path = input.path().display();
                let why = format!(
                    "{path} does not record which servers saw it: storage was one place, or the \
                     view was recorded by an older version of this program"
                );
                return match (inputs, named) {
                    ([_], []) => Ok(None),
                    ([_], _) => Err(CliError::Input(format!("{why}; leave out --parties"))),
                    _ => Err(CliError::Input(format!("{why}; give it alone"))),
                };
            };
            servers = Some(match servers {
                None => these,
                Some(before) => joined(before, these)?,
            });
        }
        let Some(servers) = servers else { return Ok(None) };
        let all = 1..=servers.count();
        // A client records all servers; a server records only itself.
        let there: Vec<u8> = match servers.watched() {
            0 => all.clone().collect(),
            _ => all.clone().filter(|party| servers.watches(*party)).collect(),
        };
        let mut shown = if named.is_empty() { there.clone() } else { named.to_vec() };
        shown.sort_unstable();
        shown.dedup();
        if let Some(stranger) = shown.iter().find(|party| !servers.has(**party)) {
            let count = servers.count();
            return Err(CliError::Input(format!(
                "there is no server {stranger}: --parties names some of 1 to {count}"
            )));
        }
        if let Some(missing) = shown.iter().find(|party| !there.contains(party)) {
            return Err(CliError::Input(format!(
                "no file holds what server {missing} saw: add the view that was recorded there"
            )));
        }
        let watched = shown.iter().copied().filter(|party| servers.watches(*party)).collect();
        Ok(Some(Self { servers, shown, watched }))
    }

    /// Whether more servers are shown than may collude.
    pub(super) fn are_too_many(&self) -> bool {
        self.shown.len() > usize::from(self.servers.colluding())
    }

    /// Whether one of the shown servers saw `observed`. An observation that names no server was
    /// seen by all servers.
    pub(super) fn saw(&self, observed: &Observed) -> bool {
        let party = match observed {
            Observed::PeerMessage(exchange) => Some(exchange.party),
            Observed::Event(event) => event
                .piece
                .and_then(|piece| server_of_view_tree(piece.tree))
                .map(|(party, _)| party),
        };
        party.is_none_or(|party| self.shown.contains(&party))
    }
}

/// The servers of two files. Fails if a server may be recorded in both files, or if the files
/// differ in the number of servers or of servers that may collude.
fn joined(one: ViewServers, other: ViewServers) -> Result<ViewServers, CliError> {
    let is_one_volume = (one.count(), one.colluding()) == (other.count(), other.colluding());
    if !is_one_volume {
        return Err(CliError::Input(
            "these are views of different volumes: give views of the servers of one volume".into(),
        ));
    }
    let are_apart =
        one.watched() != 0 && other.watched() != 0 && one.watched() & other.watched() == 0;
    let both = are_apart.then(|| one.watching(one.watched() | other.watched())).flatten();
    both.ok_or_else(|| {
        CliError::Input(
            "two of these files hold what the same server saw: give one file of each server, as \
             `oblivio serve shares --record-views` makes them"
                .into(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(count: u8, colluding: u8, watched: u8) -> ViewServers {
        ViewServers::new(count, colluding).unwrap().watching(watched).unwrap()
    }

    #[test]
    fn files_are_combined_if_they_record_different_servers_of_one_volume() {
        let both = joined(servers(5, 2, 0b1), servers(5, 2, 0b10100)).unwrap();
        assert_eq!(both, servers(5, 2, 0b10101));
        for (one, other) in [
            (servers(5, 2, 1), servers(5, 1, 2)),
            (servers(5, 2, 1), servers(3, 1, 2)),
            (servers(5, 2, 1), servers(5, 2, 3)),
            (servers(5, 2, 0), servers(5, 2, 3)),
        ] {
            assert!(joined(one, other).is_err(), "{one:?}, {other:?}");
        }
    }
}
