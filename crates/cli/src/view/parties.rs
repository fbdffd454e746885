//! Of which servers a view is shown: one, as many as may collude, or all.

use oblivio_core::view::{Observed, ViewServers, party_of_tree};

use super::input::ViewInput;
use crate::error::CliError;

/// Whose view is shown. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parties {
    pub(super) servers: ViewServers,
    /// In order, from 1.
    pub(super) shown: Vec<u8>,
    /// Those of them of which it is known what they and others sent to each other.
    pub(super) watched: Vec<u8>,
}

impl Parties {
    /// Those that are named, or all of which there is something if none is; none if storage is one place, or views do not say it.
    pub(super) fn of(inputs: &[ViewInput], named: &[u8]) -> Result<Option<Self>, CliError> {
        let mut servers: Option<ViewServers> = None;
        for input in inputs {
            let Some(these) = input.servers() else {
                let path = input.path().display();
                let why = format!(
                    "{path} does not say which servers saw it: storage was one place, or it was recorded by an older version of this program"
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
        // What a client records has all of them, and a server itself alone.
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
                "no file has what server {missing} saw: give the one that was recorded there as well"
            )));
        }
        let watched = shown.iter().copied().filter(|party| servers.watches(*party)).collect();
        Ok(Some(Self { servers, shown, watched }))
    }

    /// Whether these are more than may put together what they see.
    pub(super) fn are_too_many(&self) -> bool {
        self.shown.len() > usize::from(self.servers.colluding())
    }

    /// Whether one of them saw it. What is said of no server, all have seen.
    pub(super) fn saw(&self, observed: &Observed) -> bool {
        let party = match observed {
            Observed::Exchange(exchange) => Some(exchange.party),
            Observed::Event(event) => {
                event.piece.and_then(|piece| party_of_tree(piece.tree)).map(|(party, _)| party)
            }
        };
        party.is_none_or(|party| self.shown.contains(&party))
    }
}

/// The servers of two files, of which each has seen what the other has not.
fn joined(one: ViewServers, other: ViewServers) -> Result<ViewServers, CliError> {
    let is_one_volume = (one.count(), one.colluding()) == (other.count(), other.colluding());
    if !is_one_volume {
        return Err(CliError::Input(
            "these are views of different volumes: give those of the servers of one".into(),
        ));
    }
    let are_apart =
        one.watched() != 0 && other.watched() != 0 && one.watched() & other.watched() == 0;
    let both = are_apart.then(|| one.watching(one.watched() | other.watched())).flatten();
    both.ok_or_else(|| {
        CliError::Input(
            "two of these files have what one server saw: give one of each server, as `oblivio serve shares --record-views` makes them".into(),
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
    fn files_are_put_together_if_each_is_of_other_servers_of_one_volume() {
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
