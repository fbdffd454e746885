//! An eviction, until all servers are through with it.
//!
//! Servers deal to each other, and any of them can fail at any message. Then those that are through go back, and all are asked anew, with matrices that are shared anew: an attempt counts on all servers or on none (`docs/adr/0016`). None is
//! asked while another is ahead, so no two servers are ever through with different attempts.

use oblivio_core::{Error, StoreError, StoreErrorKind};

use super::access::{ALL_ARE_NEEDED, ShareArray, drawn};
use super::known::overflow;
use super::servers::{self, ask_some};
use super::standing::Standing;
use crate::message::{Point, Request};

/// How often an eviction is begun before it is given up. The volume can be opened again then, and begins it anew.
const ATTEMPTS_MAX: usize = 5;

impl ShareArray {
    /// Evicts the next path, on all servers and in what the client knows.
    pub(super) fn evict_on_servers(&mut self) -> Result<(), Error> {
        let next = self.known.client.next_eviction().map_err(overflow)?;
        let Point { evictions: number, written } = self.known.client.at();
        let (parties, tree) = (self.params.parties, self.params.tree);
        let mut failed = Vec::new();
        for _ in 0..ATTEMPTS_MAX {
            let servers = self.servers()?;
            let (epochs, silent) = servers::parted(servers::epochs(servers));
            failed = silent;
            if !failed.is_empty() {
                continue;
            }
            let standing = Standing { epochs };
            standing.least(servers, tree)?;
            let is_through: Vec<_> =
                standing.epochs.iter().map(|epoch| epoch.at.evictions > number).collect();
            if is_through.iter().all(|is_through| *is_through) {
                self.known.client.evicted(next);
                return Ok(());
            }
            let begins_at = Point { evictions: number, written };
            let is_lost = |(at, is_through): (Point, &bool)| !is_through && at != begins_at;
            let points = standing.epochs.iter().map(|epoch| epoch.at);
            if let Some(server) = points.zip(&is_through).position(is_lost) {
                let error = StoreError::new(StoreErrorKind::Failed, "it has lost a write");
                return Err(servers::failure(servers, vec![(server, error)], ALL_ARE_NEEDED));
            }
            let go_back = |through: &bool| through.then_some(Request::GoBack { evictions: number });
            failed = failures(ask_some(servers, is_through.iter().map(go_back).collect()));
            if !failed.is_empty() {
                continue;
            }
            let attempt = standing.attempt() + 1;
            let Self { known, coins, .. } = self;
            let evictions = known.client.eviction_shares(&next, attempt, drawn(coins)?);
            let dealers: Vec<_> = parties.numbers().take(parties.for_product()).collect();
            let requests = evictions
                .into_iter()
                .map(|evict| Some(Request::Evict { evict, dealers: dealers.clone() }));
            failed = failures(ask_some(self.servers()?, requests.collect()));
            if failed.is_empty() {
                self.known.client.evicted(next);
                return Ok(());
            }
        }
        let advice = "An eviction needs all servers, and links between them: see that they reach each other, and open the volume again";
        Err(servers::failure(self.servers()?, failed, advice))
    }
}

/// Those of the servers that were asked which have not done it.
fn failures(said: Vec<Option<servers::Said>>) -> Vec<(usize, StoreError)> {
    let said = said.into_iter().enumerate().filter_map(|(i, said)| Some((i, said?)));
    said.filter_map(|(server, said)| Some((server, servers::done(said).err()?))).collect()
}
