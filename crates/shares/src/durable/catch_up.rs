//! Sends each returning server the blocks that were written to the root while the server was
//! missing, at most *A*. The servers' progress tells which blocks each server lacks.
//!
//! A missing share is computed from the shares of the other servers. The shares have degree *t*, so
//! there are more shares than recovery needs, and wrong shares are detected. Each recovered block
//! must also be sealed under the number of its access.

use oblivio_core::{BucketId, Error};

use super::array::ShareArray;
use super::fetch::{Fetched, fetch};
use super::participants::Participation;
use super::server_progress::{IS_FURTHER, check_epoch};
use super::servers;
use crate::message::{HostEpoch, Request, Slots, TreePoint};
use crate::sharing::Share;

/// A server that lacks blocks of the root.
struct Laggard {
    server: usize,
    /// The number of blocks of the root that the server has.
    written: usize,
}

impl ShareArray {
    /// Sends each returned server the blocks that it lacks. The returned servers then participate
    /// again. If too few other servers remain to recover the blocks, the returned servers stay
    /// excluded.
    ///
    /// With the position map in trees, all servers took part in each access, so none lacks a block.
    pub(super) fn catch_up(&mut self, at: TreePoint) -> Result<(), Error> {
        if self.params.is_in_trees() {
            return Ok(());
        }
        let mut laggards = self.find_laggards(at)?;
        let slots_at_once = Slots::at_once(self.params.slot_bytes());
        while let Some(first) = laggards.iter().map(|laggard| laggard.written).min()
            && first < at.written
        {
            let count = slots_at_once.min(at.written - first);
            let slots = Slots { bucket: BucketId::ROOT, first, count };
            let fetched = self.fetch_from_current(at, slots)?;
            if self.participants[0].count() < self.params.parties.for_product() {
                return Ok(());
            }
            for place in 0..count {
                self.write_to(
                    &mut laggards,
                    TreePoint { written: first + place, ..at },
                    &fetched,
                    place,
                )?;
            }
        }
        laggards
            .iter()
            .for_each(|laggard| self.participants[0].set(laggard.server, Participation::Current));
        Ok(())
    }

    /// Asks the servers that may have returned for their progress, and updates their participation.
    /// Returns the servers that lack blocks, with the number of blocks that each has.
    fn find_laggards(&mut self, at: TreePoint) -> Result<Vec<Laggard>, Error> {
        let may_be_back = self.participants[0].may_be_back();
        let mut laggards = Vec::new();
        if !may_be_back.contains(&true) {
            return Ok(laggards);
        }
        let tree = self.params.tree;
        let requests = may_be_back.iter().map(|it| it.then_some(Request::Epoch));
        let results = self.servers(0).ask_some(requests.collect());
        for (server, result) in results.into_iter().enumerate() {
            let epoch = match result.map(servers::expect_epoch) {
                None => continue,
                Some(Err(error)) => {
                    self.fail(0, server, error)?;
                    continue;
                }
                Some(Ok(epoch)) => epoch,
            };
            let participation = check_epoch(tree, &epoch)
                .map_or_else(|astray| astray, |there| participation_of(there, at));
            if let Participation::Lagging = participation {
                let HostEpoch { at: TreePoint { written, .. }, .. } = epoch;
                laggards.push(Laggard { server, written });
            }
            self.participants[0].set(server, participation);
        }
        Ok(laggards)
    }

    fn fetch_from_current(&mut self, at: TreePoint, slots: Slots) -> Result<Fetched, Error> {
        let (participates, slot_bytes) = (self.participants[0].current(), self.params.slot_bytes());
        let mut fetched = fetch(&mut self.servers(0), &participates, at, slots, slot_bytes);
        for (server, error) in fetched.failed.drain(..) {
            self.fail(0, server, error)?;
        }
        Ok(fetched)
    }

    /// Writes a block to the laggards that lack it. A server that does not store the block is
    /// removed from `laggards`.
    fn write_to(
        &mut self,
        laggards: &mut Vec<Laggard>,
        at: TreePoint,
        fetched: &Fetched,
        place: usize,
    ) -> Result<(), Error> {
        let parties = self.params.parties;
        let Ok(decoded) = fetched.decoded(parties, place) else {
            return Err(
                self.corrupt(0, "shares for a server that is catching up contradict each other")
            );
        };
        self.record_wrong(&decoded.wrong_servers)?;
        let number = self.params.accesses_at(at);
        let opened = self.sealer.open(&decoded.block);
        if opened.is_none_or(|opened| opened.name().number != number) {
            return Err(
                self.corrupt(0, "a block for a server that is catching up is not what was written")
            );
        }
        let request = |(server, number)| {
            laggards.iter().find(|it| it.server == server && it.written == at.written)?;
            let share = fetched.share_of(number, parties, place, &decoded.wrong_servers)?;
            Some(Request::Write { at, block: Share::Computed(share) })
        };
        let requests = (0..).zip(parties.numbers()).map(request).collect();
        let results = self.servers(0).ask_some(requests);
        for (server, result) in results.into_iter().enumerate() {
            match result.map(servers::expect_done) {
                Some(Ok(())) => {
                    let laggard = laggards.iter_mut().find(|it| it.server == server);
                    laggard.into_iter().for_each(|laggard| laggard.written += 1);
                }
                Some(Err(error)) => {
                    self.fail(0, server, error)?;
                    laggards.retain(|laggard| laggard.server != server);
                }
                None => (),
            }
        }
        Ok(())
    }
}

/// The participation of a server that has reached point `there`, when the other servers have
/// reached `at`.
fn participation_of(there: TreePoint, at: TreePoint) -> Participation {
    let TreePoint { evictions, written } = there;
    if evictions != at.evictions {
        Participation::Astray("is not at the same eviction as the others")
    } else if written < at.written {
        Participation::Lagging
    } else if written <= at.written + 1 {
        Participation::Current
    } else {
        Participation::Astray(IS_FURTHER)
    }
}
